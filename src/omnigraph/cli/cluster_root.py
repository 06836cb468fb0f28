"""Whether a graph belongs to a cluster, which keeps account of its graphs and their schemas."""

from __future__ import annotations

import re

_GRAPH_OF_A_CLUSTER = re.compile(r"(?P<root>.+)/graphs/[^/]+\.omni")


def cluster_root(uri: str) -> str | None:
    """The root of the cluster that a graph's place lies in, None when it lies in none."""
    from omnigraph.storage.objects import open_store
    from omnigraph.storage.root import Root

    place = Root.parse(uri)
    inside = _GRAPH_OF_A_CLUSTER.fullmatch(place.uri)
    if inside is not None and open_store(Root(inside["root"], place.options)).exists("__cluster/state.json"):
        return inside["root"]
    return None
