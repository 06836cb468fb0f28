"""`omnigraph stats` and `omnigraph snapshot`: how large a graph is, how its storage looks, which tables a branch consists of."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from omnigraph.cli import output
from omnigraph.cli.addressing import open_graph, resolve, resolve_storage
from omnigraph.cli.commands import Command
from omnigraph.cli.options import branch_option, json_option, positional_uri
from omnigraph.cli.scope import DIRECT, WRITE
from omnigraph.cli.wording import dataset_name, size
from omnigraph.commit.messages import counted
from omnigraph.commit.model import MAIN
from omnigraph.wire.shapes import snapshot_output

if TYPE_CHECKING:
    from omnigraph.maintenance.stats import TableStats


@click.command(cls=Command, scope=DIRECT)
@positional_uri
@branch_option
@json_option
@click.pass_context
def stats(context: click.Context, uri: str | None, branch: str | None, as_json: bool) -> None:
    """Show rows, fragments, versions, bytes and index coverage of each type, and the settings of the graph."""
    target = resolve_storage(context, uri)
    found = open_graph(target, "ro").stats(branch)
    if as_json:
        output.json({"uri": target.uri} | found.to_dict())
        return
    manifest = f"{found.manifest_versions} manifest versions, {size(found.manifest_bytes)}"
    output.line(f"stats {target.uri} — branch {found.branch}, {manifest}")
    for name, value in found.config.items():
        output.line(f"  config  {name} = {value}")
    for table in found.tables:
        output.line(
            f"  {dataset_name(table.type_key)}  {counted(table.rows, 'row')}, {counted(table.fragments, 'fragment')}, "
            f"{counted(table.versions, 'version')}, {size(table.bytes)} of {size(table.stored_bytes)} stored"
        )
        for index in table.indexes:
            covered = "all rows" if not index.uncovered_rows else f"all but {counted(index.uncovered_rows, 'row')}"
            output.line(f"    index {index.kind} on '{index.column}': {covered}")
        for pending in table.pending_indexes:
            output.line(f"    ↳ index pending on property '{pending.property}': {pending.reason}")
        for gain in _gains(table):
            output.line(f"    ↳ {gain}")


def _gains(table: TableStats) -> list[str]:
    """What maintenance would do for a table."""
    gains = []
    if table.fragments_to_compact:
        gains.append(f"optimize would compact {counted(table.fragments_to_compact, 'fragment')}")
    if table.stale_indexes:
        gains.append(f"optimize would bring {len(table.stale_indexes)} indexes up to date")
    if table.reclaimable_bytes:
        gains.append(f"cleanup could free up to {size(table.reclaimable_bytes)}")
    return gains


@click.command(cls=Command, scope=WRITE)
@positional_uri
@branch_option
@json_option
@click.pass_context
def snapshot(context: click.Context, uri: str | None, branch: str | None, as_json: bool) -> None:
    """Show the tables of a branch and their published versions."""
    shown = snapshot_output(open_graph(resolve(context, uri), "ro").snapshot(branch or MAIN))
    if as_json:
        output.json(shown)
        return
    datasets = shown.pop("datasets")
    output.fields(shown)
    for dataset in datasets:
        output.line(
            f"{dataset['entity_kind']} type '{dataset['type_name']}' "
            f"published_dataset_version={dataset['published_dataset_version']} "
            f"native_dataset_branch={dataset.get('native_dataset_branch', MAIN)} entities={dataset['entity_count']}"
        )
