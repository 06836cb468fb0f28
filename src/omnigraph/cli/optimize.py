"""`omnigraph optimize`: compact tables and complete their indexes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import click

from omnigraph.cli import output
from omnigraph.cli.addressing import open_graph, resolve_storage
from omnigraph.cli.commands import Command
from omnigraph.cli.counted_progress import counted_progress
from omnigraph.cli.engine import engine_options, spark_of
from omnigraph.cli.options import branch_option, dry_run_option, json_option, message_option, positional_uri
from omnigraph.cli.scope import DIRECT
from omnigraph.cli.settings import Settings
from omnigraph.cli.types_shown import dataset_name
from omnigraph.cli.writing import echo_write

if TYPE_CHECKING:
    from omnigraph.maintenance.optimize import OptimizedTable


@click.command(cls=Command, scope=DIRECT)
@positional_uri
@branch_option
@message_option
@dry_run_option
@json_option
@engine_options
@click.pass_context
def optimize(
    context: click.Context,
    uri: str | None,
    branch: str | None,
    message: str | None,
    dry_run: bool,
    as_json: bool,
    engine: Literal["auto", "local", "spark"],
    spark_master: str | None,
    spark_conf: tuple[str, ...],
    spark_ship_package: bool,
) -> None:
    """Compact the tables of a branch and build and complete their indexes, in one commit."""
    settings = context.ensure_object(Settings)
    target = resolve_storage(context, uri)
    if not dry_run:
        echo_write(settings, "optimize", target)
    graph = open_graph(
        target, "ro" if dry_run else "rw", settings.actor, spark=spark_of(spark_master, spark_conf, spark_ship_package)
    )
    with counted_progress(settings.quiet) as progress:
        report = graph.optimize(branch, engine=engine, message=message, progress=progress, dry_run=dry_run)
    if as_json:
        output.json({"uri": target.uri} | report.to_dict())
        return
    output.line(f"optimize {target.uri} — {len(report.datasets)} datasets")
    for table in report.datasets:
        outcome = _plan(table) if dry_run else _outcome(table)
        output.line(f"  {dataset_name(table.type_key)}  {outcome}")
        for pending in table.pending_indexes:
            output.line(f"    ↳ index pending on property '{pending.property}': {pending.reason}")
    if dry_run:
        output.note("nothing was changed; leave --dry-run out to do it")


def _outcome(table: OptimizedTable) -> str:
    if table.skipped is not None:
        return f"skipped ({table.skipped})"
    if not table.committed:
        return "no-op"
    return f"frags {table.fragments_before} → {table.fragments_after} ✓"


def _plan(table: OptimizedTable) -> str:
    """What would be done about a table."""
    if table.skipped is not None:
        return f"would be skipped ({table.skipped})"
    parts = []
    if table.built_indexes:
        parts.append(f"build {len(table.built_indexes)} indexes")
    if table.folded_indexes:
        parts.append(f"bring {len(table.folded_indexes)} indexes up to date")
    if table.fragments_removed:
        parts.append(f"compact frags {table.fragments_before} → {table.fragments_after}")
    return f"would {', '.join(parts)}" if parts else "no-op"
