"""`omnigraph optimize`: compact tables and complete their indexes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import click

from omnigraph.cli import output
from omnigraph.cli.addressing import open_graph, resolve
from omnigraph.cli.commands import Command
from omnigraph.cli.engine import engine_options, spark_of
from omnigraph.cli.options import branch_option, json_option, positional_uri
from omnigraph.cli.scope import DIRECT
from omnigraph.cli.settings import Settings
from omnigraph.cli.types_shown import dataset_name
from omnigraph.cli.writing import echo_write

if TYPE_CHECKING:
    from omnigraph.maintenance.optimize import OptimizedTable


@click.command(cls=Command, scope=DIRECT)
@positional_uri
@branch_option
@json_option
@engine_options
@click.pass_context
def optimize(
    context: click.Context,
    uri: str | None,
    branch: str | None,
    as_json: bool,
    engine: Literal["auto", "local", "spark"],
    spark_master: str | None,
    spark_conf: tuple[str, ...],
) -> None:
    """Compact the tables of a branch and build and complete their indexes, in one commit."""
    settings = context.ensure_object(Settings)
    target = resolve(context, uri)
    echo_write(settings, "optimize", target)
    graph = open_graph(target, "rw", settings.actor, spark=spark_of(spark_master, spark_conf))
    report = graph.optimize(branch, engine=engine)
    if as_json:
        output.json({"uri": target.uri} | report.to_dict())
        return
    output.line(f"optimize {target.uri} — {len(report.datasets)} datasets")
    for table in report.datasets:
        output.line(f"  {dataset_name(table.type_key)}  {_outcome(table)}")
        for pending in table.pending_indexes:
            output.line(f"    ↳ index pending on property '{pending.property}': {pending.reason}")


def _outcome(table: OptimizedTable) -> str:
    if table.skipped is not None:
        return f"skipped ({table.skipped})"
    if not table.committed:
        return "no-op"
    return f"frags {table.fragments_before} → {table.fragments_after} ✓"
