"""`omnigraph export`: the nodes and edges of a branch or a snapshot, as JSON lines or tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Literal

import click

from omnigraph.cli import output
from omnigraph.cli.addressing import open_graph, resolve
from omnigraph.cli.commands import Command
from omnigraph.cli.options import branch_option, engine_options, positional_uri, refuse_both, snapshot_option
from omnigraph.cli.progress import shown_progress
from omnigraph.cli.scope import WRITE
from omnigraph.cli.settings import Settings
from omnigraph.spark.options import SparkOptions


@click.command(cls=Command, scope=WRITE)
@positional_uri
@branch_option
@snapshot_option
@click.option(
    "--type", "types", metavar="TYPE", multiple=True, help="Only node and edge types of this name; may be repeated."
)
@click.option("--out", metavar="PATH", default="-", help="A file, a folder or s3://; standard output unless given.")
@click.option(
    "--format",
    type=click.Choice(["jsonl", "parquet", "arrow", "csv"]),
    default="jsonl",
    help="JSON lines, or a folder of Parquet, Arrow or CSV files, which load takes as it is.",
)
@click.option(
    "--files",
    type=click.Choice(["one", "many"]),
    default="one",
    help="One file, or a folder with several for each type.",
)
@engine_options
@click.option("--jsonl", is_flag=True, hidden=True, help="What is written anyway, unless --format says otherwise.")
@click.pass_context
def export(
    context: click.Context,
    uri: str | None,
    branch: str | None,
    snapshot: str | None,
    types: tuple[str, ...],
    out: str,
    format: Literal["jsonl", "parquet", "arrow", "csv"],
    files: Literal["one", "many"],
    engine: Literal["auto", "local", "spark"],
    spark: SparkOptions,
    jsonl: bool,
) -> None:
    """Write the nodes and edges of a graph so that they load back to an equal one."""
    refuse_both(branch=branch, snapshot=snapshot)
    if jsonl:
        output.warn("`--jsonl` is what `omnigraph export` does; leave it out")
    settings = context.ensure_object(Settings)
    graph = open_graph(resolve(context, uri), "ro", spark=spark)
    if out == "-" and format == "jsonl" and files == "one":
        for chunk in graph.export_chunks(branch=branch, snapshot=snapshot, types=types or None):
            output.data(chunk)
        return
    with _progress(settings.quiet) as progress:
        count = graph.export(
            out,
            branch=branch,
            snapshot=snapshot,
            types=types or None,
            format=format,
            files=files,
            engine=engine,
            progress=progress,
        )
    if not settings.quiet:
        output.note(f"exported {count} entities to {out}")


@contextmanager
def _progress(quiet: bool) -> Iterator[Callable[[int, int], None] | None]:
    """What shows how many entities are written."""
    from omnigraph.load.model import Progress

    with shown_progress(quiet) as shown:
        yield None if shown is None else lambda done, total: shown(Progress("write", done, total, done))
