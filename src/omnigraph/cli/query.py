"""`omnigraph query` and `omnigraph explain`: run a read query, or show how it is answered."""

from __future__ import annotations

from typing import Literal

import click

from omnigraph.cli import output
from omnigraph.cli.addressing import open_graph, resolve
from omnigraph.cli.commands import Command
from omnigraph.cli.options import (
    branch_option,
    json_option,
    memory_option,
    query_engine_options,
    refuse_both,
    snapshot_option,
    timeout_option,
)
from omnigraph.cli.read_formats import ReadOutput, print_read, table_style
from omnigraph.cli.scope import READ
from omnigraph.cli.settings import OUTPUTS, Settings
from omnigraph.cli.sources import QueryCall, naming, takes_query
from omnigraph.cli.stored import run_stored
from omnigraph.commit.model import MAIN
from omnigraph.spark.options import SparkOptions


@click.command(cls=Command, scope=READ)
@takes_query
@branch_option
@snapshot_option
@click.option("--format", "chosen", type=click.Choice(OUTPUTS), help="How to print the answer; a table unless given.")
@json_option
@timeout_option
@memory_option
@query_engine_options
@click.pass_context
def query(
    context: click.Context,
    call: QueryCall,
    branch: str | None,
    snapshot: str | None,
    chosen: str | None,
    as_json: bool,
    timeout: float | None,
    memory_limit: str | None,
    engine: Literal["auto", "local", "spark"],
    spark: SparkOptions,
) -> None:
    """Run a read query and print its answer."""
    refuse_both(branch=branch, snapshot=snapshot)
    settings = context.ensure_object(Settings)
    format = "json" if as_json else chosen or settings.output()
    target = resolve(context)
    if call.text is None:
        if memory_limit is not None:
            raise click.UsageError("--memory-limit is for queries that are sent; a stored query has the server's limit")
        place = {"branch": branch, "snapshot": snapshot}
        run_stored(settings, target, call, format=format, expect_mutation=False, timeout=timeout, **place)
        return
    graph = open_graph(target, "ro", spark=spark)
    with naming(call.file):
        result = graph.query(
            call.text,
            call.name,
            call.params,
            branch=branch,
            snapshot=snapshot,
            timeout=timeout,
            memory_limit=memory_limit,
            engine=engine,
        )
    asked_branch = None if snapshot is not None else branch or MAIN
    print_read(ReadOutput(call.name, asked_branch, snapshot, result), format, table_style(settings))


@click.command(cls=Command, scope=READ)
@takes_query
@branch_option
@snapshot_option
@click.option("--analyze", is_flag=True, help="Run the query, and show the rows and the time of each step.")
@json_option
@query_engine_options
@click.pass_context
def explain(
    context: click.Context,
    call: QueryCall,
    branch: str | None,
    snapshot: str | None,
    analyze: bool,
    as_json: bool,
    engine: Literal["auto", "local", "spark"],
    spark: SparkOptions,
) -> None:
    """Show how a read query is answered.

    It shows the plan, the rewritten plan, and at each step the pushed filters, the indexes and the traversals. With
    --engine spark the steps are the scans, their pushed filters, and Spark's own plan.
    """
    refuse_both(branch=branch, snapshot=snapshot)
    graph = open_graph(resolve(context), "ro", spark=spark)
    with naming(call.file):
        found = graph.explain(
            call.source, call.name, call.params, branch=branch, snapshot=snapshot, analyze=analyze, engine=engine
        )
    if as_json:
        output.json({"query_name": call.name} | found.to_dict())
    else:
        output.line(str(found))
