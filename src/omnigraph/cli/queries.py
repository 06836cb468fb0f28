"""`omnigraph queries …`: the stored queries of a cluster."""

from __future__ import annotations

import click

from omnigraph.cli.commands import Group
from omnigraph.cli.options import json_option
from omnigraph.cli.scope import CLUSTER_GRAPH
from omnigraph.cli.served import no_cluster


@click.group(cls=Group)
def queries() -> None:
    """Look at the stored queries of a cluster."""


@queries.command(scope=CLUSTER_GRAPH)
@json_option
def validate(as_json: bool) -> None:
    """Check the stored queries against the schemas of their graphs."""
    raise no_cluster("queries validate")


@queries.command("list", scope=CLUSTER_GRAPH)
@json_option
def list_(as_json: bool) -> None:
    """List the stored queries with their parameters."""
    raise no_cluster("queries list")
