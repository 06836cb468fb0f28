"""`omnigraph ensure-indices`: build the indexes that the schema declares."""

from __future__ import annotations

from typing import Literal

import click

from omnigraph.cli import output
from omnigraph.cli.addressing import open_graph, resolve_storage
from omnigraph.cli.commands import Command
from omnigraph.cli.counted_progress import counted_progress
from omnigraph.cli.engine import engine_options, spark_of
from omnigraph.cli.options import branch_option, dry_run_option, json_option, message_option, positional_uri
from omnigraph.cli.scope import DIRECT
from omnigraph.cli.settings import Settings
from omnigraph.cli.writing import echo_write
from omnigraph.commit.model import MAIN


@click.command("ensure-indices", cls=Command, scope=DIRECT)
@positional_uri
@branch_option
@click.option(
    "--type", "types", metavar="TYPE", multiple=True, help="Only this type, such as node:Person; may be repeated."
)
@message_option
@dry_run_option
@json_option
@engine_options
@click.pass_context
def ensure_indices(
    context: click.Context,
    uri: str | None,
    branch: str | None,
    types: tuple[str, ...],
    message: str | None,
    dry_run: bool,
    as_json: bool,
    engine: Literal["auto", "local", "spark"],
    spark_master: str | None,
    spark_conf: tuple[str, ...],
    spark_ship_package: bool,
) -> None:
    """Build the indexes that are declared and missing."""
    settings = context.ensure_object(Settings)
    target = resolve_storage(context, uri)
    if not dry_run:
        echo_write(settings, "ensure-indices", target)
    graph = open_graph(
        target, "ro" if dry_run else "rw", settings.actor, spark=spark_of(spark_master, spark_conf, spark_ship_package)
    )
    with counted_progress(settings.quiet) as progress:
        report = graph.ensure_indices(
            branch or MAIN, types=types or None, engine=engine, message=message, progress=progress, dry_run=dry_run
        )
    if as_json:
        output.json({"uri": target.uri, "branch": branch or MAIN} | report.to_dict())
        return
    built = "to build" if dry_run else "built"
    output.line(f"ensure-indices {target.uri} — {len(report.built)} {built}, {len(report.pending)} pending")
    for index in report.built:
        output.line(f"  {_place(index.type_key, index.column)}: {index.kind}")
    for index in report.pending:
        output.line(f"  {_place(index.type_key, index.column)}: {index.kind} pending: {index.reason}")
    if dry_run:
        output.note("nothing was changed; leave --dry-run out to do it")


def _place(type_key: str, column: str) -> str:
    kind, _, name = type_key.partition(":")
    return f"{kind} type '{name}' property '{column}'"
