"""The actual contents of storage: the graphs of a cluster, and the stored contents of queries and policies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from omnigraph import failpoints
from omnigraph.cluster.digests import file_digest
from omnigraph.cluster.layout import Place, payload_path
from omnigraph.commit.staging_jobs import BACKUP, list_jobs
from omnigraph.errors import Conflict, GraphNotFound, OmnigraphError, StorageError
from omnigraph.graph.entry import open as open_graph
from omnigraph.graph.lifecycle import CLAIM
from omnigraph.storage.objects import open_store

if TYPE_CHECKING:
    from omnigraph.graph.graph import Graph


@dataclass(frozen=True)
class Live:
    """The actual state of a graph. `problem`: why it can not be opened although its place is not empty, else None."""

    exists: bool
    manifest_version: int | None = None
    schema_digest: str | None = None
    problem: str | None = None

    def observation(self, desired_schema: str | None) -> dict[str, Any]:
        """The observation that the ledger records."""
        told: dict[str, Any] = {"exists": self.exists}
        if self.manifest_version is not None:
            told["manifest_version"] = self.manifest_version
        if self.schema_digest is not None:
            told["schema_digest"] = self.schema_digest
        if desired_schema is not None:
            told["desired_schema_digest"] = desired_schema
        if self.problem is not None:
            told["error"] = self.problem
        return told


def opened(place: Place, graph_id: str, mode: Literal["ro", "rw"]) -> Graph:
    """A handle of a graph of the cluster."""
    root = place.graph_root(graph_id)
    return open_graph(root.uri, mode, storage_options=root.storage_options or None)


def look_at(place: Place, graph_id: str, mode: Literal["ro", "rw"] = "ro") -> Live:
    """The actual state of a graph. Mode "rw" also heals what a dead writer left."""
    try:
        with opened(place, graph_id, mode) as graph:
            return Live(True, graph.snapshot().version, file_digest(graph.schema().encode()))
    except GraphNotFound as error:
        path = place.graph_path(graph_id)
        if not place.store.exists(path) or place.store.exists(f"{path}/{CLAIM}"):
            # Nothing, or the remains of a dead creator, which the next creator removes.
            return Live(False)
        return Live(True, problem=error.message)
    except OmnigraphError as error:
        return Live(True, problem=error.message)


#: The mark of a graph whose deletion has begun.
_GOING = "__deleting.json"
failpoints.declare("cluster.graph_marked")

PayloadState = Literal["whole", "missing", "mismatch"]


def payload_state(place: Place, address: str, digest: str) -> PayloadState:
    """Whether the stored content of a query or policy exists and has the digest; raises StorageError when unknown."""
    content = place.store.get_or_none(payload_path(address, digest))
    if content is None:
        return "missing"
    return "whole" if file_digest(content) == digest else "mismatch"


def put_payload(place: Place, address: str, digest: str, content: bytes) -> None:
    """Store the content of a query or policy, unless it is stored already."""
    if payload_state(place, address, digest) == "whole":
        return
    path = payload_path(address, digest)
    place.store.put(path, content)
    place.store.sync(path)


def is_untouched(place: Place, graph_id: str) -> bool:
    """Whether an interrupted deletion has changed nothing: the graph has no deletion mark and can be opened."""
    if place.store.exists(f"{place.graph_path(graph_id)}/{_GOING}"):
        return False
    live = look_at(place, graph_id)
    return live.exists and live.problem is None


class ExportInProgress(Conflict):
    """A graph is being copied to a backup, so it is not deleted now."""


def refuse_running_export(place: Place, graph_id: str) -> None:
    """Raise `ExportInProgress` while a backup of a graph is taken; the record of a dead backup counts until its lease ends."""
    for job in list_jobs(open_store(place.graph_root(graph_id))):
        if job.kind == BACKUP and not job.is_expired():
            raise ExportInProgress(
                f"a backup of the graph is being taken (by {job.process}); nothing was deleted, apply again when it has "
                "ended"
            )


def remove_graph(place: Place, graph_id: str) -> None:
    """Remove everything at the place of a graph.
    A mark is written first, then the manifest is removed, so that the remains are never taken for a graph.
    """
    path = place.graph_path(graph_id)
    if place.store.exists(path):
        place.store.put(f"{path}/{_GOING}", b"{}")
        place.store.sync(f"{path}/{_GOING}")
    failpoints.hit("cluster.graph_marked")
    place.store.delete_prefix(f"{path}/__manifest")
    place.store.delete_prefix(path)
    if place.store.exists(path):
        raise StorageError(f"something is left at {place.shown(path)}", kind="transient", path=place.shown(path))
