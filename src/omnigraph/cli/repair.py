"""`omnigraph repair`: tables that moved without a commit of the graph."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from omnigraph.cli import output
from omnigraph.cli.addressing import open_graph, resolve_storage
from omnigraph.cli.commands import Command
from omnigraph.cli.options import branch_option, confirm_option, json_option, positional_uri
from omnigraph.cli.scope import DIRECT
from omnigraph.cli.settings import Settings
from omnigraph.cli.types_shown import dataset_name
from omnigraph.cli.writing import echo_write

if TYPE_CHECKING:
    from omnigraph.maintenance.repair import RepairedTable


@click.command(cls=Command, scope=DIRECT)
@positional_uri
@branch_option
@confirm_option
@click.option("--force", is_flag=True, help="Publish also what changed rows; needs --confirm.")
@json_option
@click.pass_context
def repair(
    context: click.Context, uri: str | None, branch: str | None, confirm: bool, force: bool, as_json: bool
) -> int:
    """Look at tables whose storage is ahead of the graph, and publish what is verified."""
    if force and not confirm:
        raise click.UsageError("--force publishes rows that nobody committed; it needs --confirm")
    settings = context.ensure_object(Settings)
    target = resolve_storage(context, uri)
    echo_write(settings, "repair", target)
    # Looking changes nothing, not even what waits for recovery.
    graph = open_graph(target, "rw" if confirm else "ro", settings.actor)
    report = graph.repair(branch, confirm=confirm, force=force)
    if as_json:
        output.json({"uri": target.uri} | report.to_dict())
        return int(report.refused)
    drifted = [table for table in report.datasets if table.action != "no_op"]
    output.line(f"repair {target.uri} — {len(report.datasets)} datasets, {len(drifted)} drifted")
    for table in drifted:
        output.line(f"  {dataset_name(table.type_key)}{_on(table)}  {_outcome(table)}")
    if drifted and not confirm:
        output.note("nothing was changed; pass --confirm to publish what is verified")
    return int(report.refused)


def _on(table: RepairedTable) -> str:
    return "" if table.branch == "main" else f" on branch '{table.branch}'"


def _outcome(table: RepairedTable) -> str:
    head = "unreadable" if table.lance_head_version is None else str(table.lance_head_version)
    operations = f" by {', '.join(table.operations)}" if table.operations else ""
    problem = f": {table.error}" if table.error is not None else ""
    return (
        f"published {table.published_dataset_version}, storage {head}{operations}: "
        f"{table.classification}, {table.action}{problem}"
    )
