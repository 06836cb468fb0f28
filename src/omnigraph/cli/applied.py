"""The applied cluster that `policy` and `queries` look at: `--cluster`, else the active profile."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from omnigraph.cli.settings import Settings
from omnigraph.errors import BadRequest

if TYPE_CHECKING:
    from omnigraph.cluster.applied import AppliedCluster


def cluster_address(context: click.Context) -> str:
    """The place of the cluster that a call addresses."""
    settings = context.ensure_object(Settings)
    given = settings.flags.get("cluster")
    if given is None:
        profile = settings.profile
        if profile is None or profile.scope != "cluster":
            raise BadRequest("no cluster addressed — pass --cluster <dir|uri>, or --profile <name> of a cluster")
        given = profile.endpoint
    return settings.config.clusters.get(given, given)


def applied_cluster(context: click.Context) -> tuple[AppliedCluster, str | None]:
    """The applied revision of the addressed cluster, and the graph that was named."""
    from omnigraph.cluster.applied import read_applied

    return read_applied(cluster_address(context)), context.ensure_object(Settings).flags.get("graph")
