"""`omnigraph init`: a new graph."""

from __future__ import annotations

import click

from omnigraph.cli import output
from omnigraph.cli.addressing import cluster_root, refuse_remote
from omnigraph.cli.commands import Command
from omnigraph.cli.scope import NEW
from omnigraph.cli.settings import Settings
from omnigraph.cli.sources import naming, read_source
from omnigraph.errors import BadRequest


@click.command(cls=Command, scope=NEW)
@click.argument("uri")
@click.option("--schema", "schema_path", metavar="FILE", required=True, help="The schema of the graph, a .pg file.")
@click.option("--force", is_flag=True, help="Replace schema files that belong to no graph; a graph is never replaced.")
@click.pass_obj
def init(settings: Settings, uri: str, schema_path: str, force: bool) -> None:
    """Create an empty graph at URI."""
    refuse_remote(uri)
    schema = read_source(schema_path)
    from omnigraph.graph.entry import init as create

    refuse_inside_cluster(uri)
    with naming(schema_path):
        create(uri, schema, force=force, actor=settings.actor)
    output.line(f"initialized {uri}")


def refuse_inside_cluster(uri: str) -> None:
    """Raise an error for a place inside of a cluster, which creates and records its graphs itself."""
    root = cluster_root(uri)
    if root is not None:
        raise BadRequest(
            f"{uri} lies under the cluster root {root}; "
            "declare the graph in cluster.yaml and run `omnigraph cluster apply`"
        )
