"""`omnigraph cluster …`: graphs, queries and policies that are declared in one folder and applied together."""

from __future__ import annotations

import click

from omnigraph.cli.commands import Group
from omnigraph.cli.options import json_option, together
from omnigraph.cli.scope import CLUSTER_ACTOR, CLUSTER_CONTROL
from omnigraph.cli.served import no_cluster

_options = together(
    click.option("--config", metavar="DIR", default=".", show_default=True, help="The folder with cluster.yaml."),
    json_option,
)


@click.group(cls=Group)
def cluster() -> None:
    """Declare and apply the graphs of a cluster."""


@cluster.command(scope=CLUSTER_CONTROL)
@_options
def validate(config: str, as_json: bool) -> None:
    """Check the declaration by itself."""
    raise no_cluster("cluster validate")


@cluster.command(scope=CLUSTER_CONTROL)
@_options
def plan(config: str, as_json: bool) -> None:
    """Show what applying the declaration would change."""
    raise no_cluster("cluster plan")


@cluster.command(scope=CLUSTER_ACTOR)
@_options
def apply(config: str, as_json: bool) -> None:
    """Make the cluster what the declaration says."""
    raise no_cluster("cluster apply")


@cluster.command(scope=CLUSTER_ACTOR)
@click.argument("resource")
@_options
def approve(resource: str, config: str, as_json: bool) -> None:
    """Approve the change of RESOURCE that waits for it."""
    raise no_cluster("cluster approve")


@cluster.command(scope=CLUSTER_CONTROL)
@_options
def status(config: str, as_json: bool) -> None:
    """Show the state of the cluster."""
    raise no_cluster("cluster status")


@cluster.command(scope=CLUSTER_CONTROL)
@_options
def refresh(config: str, as_json: bool) -> None:
    """Compare the state with what there is, and write it down."""
    raise no_cluster("cluster refresh")


@cluster.command("import", scope=CLUSTER_CONTROL)
@_options
def import_(config: str, as_json: bool) -> None:
    """Make a first state from what there is."""
    raise no_cluster("cluster import")


@cluster.command("force-unlock", scope=CLUSTER_CONTROL)
@click.argument("lock_id", metavar="ID")
@_options
def force_unlock(lock_id: str, config: str, as_json: bool) -> None:
    """Remove the lock ID that a dead process left."""
    raise no_cluster("cluster force-unlock")
