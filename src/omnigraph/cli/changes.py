"""`omnigraph changes …`: the change feed of a branch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from omnigraph.cli import output
from omnigraph.cli.addressing import open_graph, resolve
from omnigraph.cli.change_lines import filter_options, limit_option, show_cause, show_changes
from omnigraph.cli.commands import Group
from omnigraph.cli.options import branch_option, json_option, refuse_both, uri_option
from omnigraph.cli.scope import READ

if TYPE_CHECKING:
    from omnigraph.changes.feed import Block


@click.group(cls=Group)
def changes() -> None:
    """Follow what happens on a branch."""


@changes.command(scope=READ)
@uri_option
@branch_option
@click.option("--cursor", metavar="CURSOR", help="Go on from where an earlier poll ended.")
@click.option("--start", metavar="START", help="Where to begin: `now` (unless given), `beginning` or `after:ID`.")
@limit_option
@click.option("--max-commits", type=int, metavar="N", help="How many commits the poll covers: 1 to 512.")
@filter_options
@json_option
@click.pass_context
def poll(
    context: click.Context,
    uri: str | None,
    branch: str | None,
    cursor: str | None,
    start: str | None,
    limit: int | None,
    max_commits: int | None,
    kinds: tuple[str, ...],
    types: tuple[str, ...],
    ops: tuple[str, ...],
    as_json: bool,
) -> None:
    """Show the commits of a branch behind a cursor, and the cursor to go on from."""
    refuse_both(cursor=cursor, start=start)
    graph = open_graph(resolve(context, uri, named_by="--uri"), "ro")
    wanted: dict[str, Any] = {"limit": limit, "kinds": kinds, "types": types, "ops": ops}
    page = graph.changes(branch, cursor=cursor, start=start, max_commits=max_commits, **wanted)
    blocks: list[Block] = []
    shown = None
    while True:
        for block in page.blocks:
            if as_json:
                blocks.append(block)
                continue
            if shown != block.commit.id:
                show_cause(block.commit)
                shown = block.commit.id
            show_changes(block.changes)
        if page.next_page_token is None:
            break
        page = graph.changes(branch, page_token=page.next_page_token, **wanted)
    if as_json:
        output.json({"blocks": _whole(blocks), "cursor": page.cursor, "caught_up": page.caught_up})
        return
    if shown is None:
        output.line("(no new commits)")
    output.line(f"cursor: {page.cursor}")
    output.line(f"caught_up: {'true' if page.caught_up else 'false'}")


def _whole(blocks: list[Block]) -> list[dict[str, Any]]:
    """Blocks with the parts of a commit that came on several pages put together."""
    whole: list[dict[str, Any]] = []
    for block in blocks:
        told = block.to_dict()
        if whole and whole[-1]["cause"] == told["cause"]:
            whole[-1]["changes"] += told["changes"]
        else:
            whole.append(told)
    return whole


@changes.command(scope=READ)
@uri_option
@click.option("--out", metavar="PATH", required=True, help="The file, or s3:// object, that takes the entities.")
@branch_option
@filter_options
@json_option
@click.pass_context
def baseline(
    context: click.Context,
    uri: str | None,
    out: str,
    branch: str | None,
    kinds: tuple[str, ...],
    types: tuple[str, ...],
    ops: tuple[str, ...],
    as_json: bool,
) -> None:
    """Write all that a branch holds to a file, and show the cursor of the changes behind it."""
    graph = open_graph(resolve(context, uri, named_by="--uri"), "ro")
    captured = graph.baseline(branch, out, kinds=kinds, types=types, ops=ops).to_dict()
    if as_json:
        output.json(captured)
        return
    output.fields(captured)
