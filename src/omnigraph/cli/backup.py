"""`omnigraph backup` and `omnigraph restore`: a graph at another place, as it was at one moment."""

from __future__ import annotations

from typing import Literal

import click

from omnigraph.cli import output
from omnigraph.cli.addressing import echo_write, open_graph, resolve_storage
from omnigraph.cli.commands import Command
from omnigraph.cli.options import dry_run_option, engine_options, json_option
from omnigraph.cli.progress import counted_progress
from omnigraph.cli.scope import DIRECT, NEW
from omnigraph.cli.settings import Settings
from omnigraph.cli.wording import size
from omnigraph.spark.options import SparkOptions


@click.command(cls=Command, scope=DIRECT)
@click.argument("places", nargs=-1, required=True, metavar="[URI] TARGET")
@dry_run_option
@json_option
@engine_options
@click.pass_context
def backup(
    context: click.Context,
    places: tuple[str, ...],
    dry_run: bool,
    as_json: bool,
    engine: Literal["auto", "local", "spark"],
    spark: SparkOptions,
) -> None:
    """Copy a graph with all branches and history to TARGET, or bring the backup there up to date."""
    if len(places) > 2:
        raise click.UsageError("backup takes a graph and a target")
    settings = context.ensure_object(Settings)
    target = resolve_storage(context, places[0] if len(places) == 2 else None)
    if not dry_run:
        echo_write(settings, "backup", target)
    graph = open_graph(target, "rw", settings.actor, spark=spark)
    with counted_progress(settings.quiet) as progress:
        report = graph.backup(places[-1], engine=engine, progress=progress, dry_run=dry_run)
    if as_json:
        output.json({"uri": target.uri} | report.to_dict())
        return
    copied = f"{_files(report.copied_files)} ({size(report.copied_bytes)})"
    output.line(f"backup {target.uri} → {report.target} — {len(report.heads)} branches, {_files(report.files)}")
    output.line(
        f"  {'to copy' if dry_run else 'copied'} {copied}, {'to remove' if dry_run else 'removed'} {_files(report.removed_files)}"
    )
    if dry_run:
        output.note("nothing was changed; leave --dry-run out to do it")


@click.command(cls=Command, scope=NEW)
@click.argument("source")
@click.argument("uri")
@click.option("--at", metavar="MOMENT", help="A commit id, a tag or a time: every branch as it was then.")
@dry_run_option
@json_option
@engine_options
@click.pass_context
def restore(
    context: click.Context,
    source: str,
    uri: str,
    at: str | None,
    dry_run: bool,
    as_json: bool,
    engine: Literal["auto", "local", "spark"],
    spark: SparkOptions,
) -> None:
    """Make a graph at URI, an empty place, of the backup at SOURCE."""
    import omnigraph

    settings = context.ensure_object(Settings)
    with counted_progress(settings.quiet) as progress:
        report = omnigraph.restore(
            source,
            uri,
            at=at,
            engine=engine,
            progress=progress,
            dry_run=dry_run,
            spark=spark,
        )
    if as_json:
        output.json(report.to_dict())
        return
    output.line(f"restore {report.source} → {report.uri} — {len(report.heads)} branches, {_files(report.files)}")
    for name in report.left_out:
        output.line(f"  branch '{name}' was made later")
    if dry_run:
        output.note("nothing was changed; leave --dry-run out to do it")


def _files(count: int) -> str:
    return f"{count} file{'' if count == 1 else 's'}"
