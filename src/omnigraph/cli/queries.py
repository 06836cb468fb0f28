"""`omnigraph queries …`: the stored queries of a cluster, as they are applied."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from omnigraph.cli import output
from omnigraph.cli.addressing import applied_cluster
from omnigraph.cli.commands import Group
from omnigraph.cli.options import json_option
from omnigraph.cli.scope import CLUSTER_GRAPH

if TYPE_CHECKING:
    from omnigraph.cluster.applied import AppliedGraph
    from omnigraph.language.query.ast import Query


@click.group(cls=Group)
def queries() -> None:
    """Look at the stored queries of a cluster."""


@queries.command(scope=CLUSTER_GRAPH)
@json_option
@click.pass_context
def validate(context: click.Context, as_json: bool) -> None:
    """Check the stored queries against the schemas of their graphs."""
    from omnigraph.errors import BadRequest
    from omnigraph.graph.entry import open as open_graph
    from omnigraph.language.query.compile import compile_query

    cluster, graph_id = applied_cluster(context)
    graphs = (
        [cluster.graph(graph_id)] if graph_id is not None or len(cluster.graphs) == 1 else [*cluster.graphs.values()]
    )
    count, broken = 0, []
    for found in graphs:
        with open_graph(found.uri, "ro", storage_options=found.storage_options or None) as graph:
            catalog = graph.contract().catalog
        for stored in found.queries:
            count += 1
            try:
                compile_query(stored.text, stored.name, catalog)
            except BadRequest as error:
                broken.append({"query": f"{found.graph_id}.{stored.name}", "message": error.message})
    if as_json:
        output.json({"ok": not broken, "breakages": broken, "warnings": []})
    else:
        for breakage in broken:
            output.line(f"ERROR query `{breakage['query']}`: {breakage['message']}")
        if not broken:
            output.line(f"OK    {count} stored queries fit the schemas of {len(graphs)} graph(s)")
    if broken:
        context.exit(1)


@queries.command("list", scope=CLUSTER_GRAPH)
@json_option
@click.pass_context
def list_(context: click.Context, as_json: bool) -> None:
    """List the stored queries with their parameters."""
    cluster, graph_id = applied_cluster(context)
    found = list(_declared(cluster.graph(graph_id)))
    if as_json:
        output.json({"queries": [_shape(query) for query in found]})
        return
    for query in found:
        params = ", ".join(f"${param.name}: {param.type}" for param in query.params)
        output.line(f"{'mutation' if query.is_mutation else 'read'}  {query.name}({params})")
        for word, text in (("description", query.description), ("instruction", query.instruction)):
            if text is not None:
                output.line(f"  {word}: {text}")


def _declared(graph: AppliedGraph) -> Iterator[Query]:
    from omnigraph.language.query.parser import find_query, parse_query_file

    for stored in graph.queries:
        yield find_query(parse_query_file(stored.text, stored.name), stored.name)


def _shape(query: Query) -> dict[str, Any]:
    about = {"description": query.description, "instruction": query.instruction}
    return {
        "name": query.name,
        "mcp_expose": False,
        "tool_name": query.name,
        "mutation": query.is_mutation,
        **{name: text for name, text in about.items() if text is not None},
        "params": [
            {"name": param.name, "type": str(param.type).removesuffix("?"), "nullable": param.type.nullable}
            for param in query.params
        ],
    }
