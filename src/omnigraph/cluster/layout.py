"""The paths of a cluster's files below its storage root."""

from __future__ import annotations

from dataclasses import dataclass

from omnigraph.storage.objects import ObjectStore, open_store
from omnigraph.storage.root import Root

STATE = "__cluster/state.json"
LOCK = "__cluster/lock.json"
RECOVERIES = "__cluster/recoveries"
APPROVALS = "__cluster/approvals"


@dataclass(frozen=True)
class Place:
    """The storage of a cluster: its root, and the store of the control files below it."""

    root: Root
    store: ObjectStore

    def shown(self, path: str) -> str:
        """The full address of a path, for messages."""
        return f"{self.root.uri.rstrip('/')}/{path}"

    def graph_path(self, graph_id: str) -> str:
        """The path of a graph below the root."""
        return f"graphs/{graph_id}.omni"

    def graph_root(self, graph_id: str) -> Root:
        """The storage root of a graph."""
        return Root(self.shown(self.graph_path(graph_id)), self.root.options)


def place_at(root: Root) -> Place:
    """The storage of a cluster at a root; it is not accessed yet."""
    return Place(root, open_store(root))


def payload_path(address: str, digest: str) -> str:
    """The path of the stored content of a query or policy."""
    kind, _, rest = address.partition(".")
    if kind == "query":
        graph_id, _, name = rest.partition(".")
        return f"__cluster/resources/query/{graph_id}/{name}/{digest}.gq"
    return f"__cluster/resources/policy/{rest}/{digest}.yaml"
