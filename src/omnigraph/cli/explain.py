"""`omnigraph explain`: how a read query is answered."""

from __future__ import annotations

from typing import Literal

import click

from omnigraph.cli import output
from omnigraph.cli.addressing import open_graph, resolve
from omnigraph.cli.commands import Command
from omnigraph.cli.engine import query_engine_options, spark_of
from omnigraph.cli.options import branch_option, json_option, refuse_both, snapshot_option
from omnigraph.cli.scope import READ
from omnigraph.cli.sources import QueryCall, naming, takes_query


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
    spark_master: str | None,
    spark_conf: tuple[str, ...],
    spark_ship_package: bool,
) -> None:
    """Show how a read query is answered.

    It shows the plan, the rewritten plan, and at each step the pushed filters, the indexes and the traversals. With
    --engine spark the steps are the scans, their pushed filters, and Spark's own plan.
    """
    refuse_both(branch=branch, snapshot=snapshot)
    graph = open_graph(resolve(context), "ro", spark=spark_of(spark_master, spark_conf, spark_ship_package))
    with naming(call.file):
        found = graph.explain(
            call.source, call.name, call.params, branch=branch, snapshot=snapshot, analyze=analyze, engine=engine
        )
    if as_json:
        output.json({"query_name": call.name} | found.to_dict())
    else:
        output.line(str(found))
