"""`omnigraph blob …`: the bytes of one blob value, or what is known about it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

import click

from omnigraph.cli import output
from omnigraph.cli.addressing import open_graph, resolve
from omnigraph.cli.commands import Group
from omnigraph.cli.options import branch_option, json_option, refuse_both, snapshot_option, together
from omnigraph.cli.scope import READ
from omnigraph.commit.model import MAIN
from omnigraph.errors import BadRequest, BlobRangeNotSatisfiable
from omnigraph.wire.shapes import blob_output

if TYPE_CHECKING:
    from omnigraph.client.values import RemoteBlob
    from omnigraph.graph.blobs import BlobValue

_LARGEST = 2**63 - 1


@click.group(cls=Group)
def blob() -> None:
    """Read blob values."""


#: The arguments that name one value.
_selector = together(
    click.argument("entity", type=click.Choice(["node", "edge"])),
    click.argument("type_name", metavar="TYPE"),
    click.argument("entity_id", metavar="ID"),
    click.argument("property"),
    branch_option,
    snapshot_option,
)


def _find(
    context: click.Context,
    entity: Literal["node", "edge"],
    type_name: str,
    entity_id: str,
    property: str,
    branch: str | None,
    snapshot: str | None,
) -> BlobValue | RemoteBlob:
    refuse_both(branch=branch, snapshot=snapshot)
    graph = open_graph(resolve(context), "ro")
    return graph.read_blob(entity, type_name, entity_id, property, branch=branch, snapshot=snapshot)


@blob.command(scope=READ)
@_selector
@click.option("--offset", metavar="N", type=click.IntRange(min=0), default=0, help="The first byte; 0 unless given.")
@click.option("--length", metavar="N", type=click.IntRange(min=0), help="How many bytes; to the end unless given.")
@click.option("--out", metavar="PATH", help="Write to this file instead of stdout.")
@click.pass_context
def get(
    context: click.Context,
    entity: Literal["node", "edge"],
    type_name: str,
    entity_id: str,
    property: str,
    branch: str | None,
    snapshot: str | None,
    offset: int,
    length: int | None,
    out: str | None,
) -> None:
    """Write the bytes of one value to stdout or a file."""
    value = _find(context, entity, type_name, entity_id, property, branch, snapshot)
    if value.length is None:
        raise BadRequest(f"this blob is external: its bytes are at {value.uri}; see `omnigraph blob stat`")
    start, end = _range(offset, length, value.length)
    if out is None:
        for chunk in _chunks(value, start, end):
            output.data(chunk)
    else:
        from omnigraph.storage.outputs import Output

        Output.parse(out).write(_chunks(value, start, end))


@blob.command(scope=READ)
@_selector
@json_option
@click.pass_context
def stat(
    context: click.Context,
    entity: Literal["node", "edge"],
    type_name: str,
    entity_id: str,
    property: str,
    branch: str | None,
    snapshot: str | None,
    as_json: bool,
) -> None:
    """Show the size of one value, or where an external one lies."""
    value = _find(context, entity, type_name, entity_id, property, branch, snapshot)
    target_branch = None if snapshot is not None else branch or MAIN
    shown = blob_output(entity, type_name, entity_id, property, value, target_branch, snapshot)
    if as_json:
        output.json(shown)
        return
    target = shown.pop("target")
    output.fields(shown.pop("selector") | shown | target)


def _range(offset: int, length: int | None, size: int) -> tuple[int, int]:
    """The requested byte range; an end after the end of the value is cut to it."""
    if length == 0:
        raise BadRequest("--length must be at least 1")
    end = size if length is None else offset + length
    if end > _LARGEST or (offset and offset >= size):
        raise BlobRangeNotSatisfiable(
            f"bytes {offset} to {end} are not within the {size} bytes of this blob", start=offset, end=end, length=size
        )
    return offset, min(end, size)


def _chunks(value: BlobValue | RemoteBlob, start: int, end: int) -> Iterator[bytes]:
    from omnigraph.graph.blobs import LONGEST_RANGE

    for position in range(start, end, LONGEST_RANGE):
        yield value.read(position, min(position + LONGEST_RANGE, end))
