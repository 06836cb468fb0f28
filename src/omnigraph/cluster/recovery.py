"""Recovery records: written before a change of a graph, and removed after the state records its outcome.
A record that is found was left by a command that died. The graph itself shows whether the change was done.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Literal

import orjson

from omnigraph import failpoints
from omnigraph.cluster.approvals import consume_approval
from omnigraph.cluster.config import is_resource_id
from omnigraph.cluster.desired import graph_of
from omnigraph.cluster.diagnostics import Findings
from omnigraph.cluster.digests import graph_digest
from omnigraph.cluster.layout import RECOVERIES, Place
from omnigraph.cluster.live import is_untouched, look_at, remove_graph
from omnigraph.cluster.lock import now_text
from omnigraph.cluster.state import Entry, State
from omnigraph.errors import OmnigraphError, StorageError
from omnigraph.ids import is_ulid, new_ulid

Operation = Literal["graph_create", "schema_apply", "graph_delete"]
_OPERATIONS = ("graph_create", "schema_apply", "graph_delete")

failpoints.declare("cluster.record_written", "cluster.recovery_settled")


@dataclass(frozen=True)
class Record:
    """One recovery record. The digests are digests of the graph's schema."""

    recovery_id: str
    operation: Operation
    graph_id: str
    created_at: str
    before_digest: str | None = None
    after_digest: str | None = None
    approval_id: str | None = None
    actor: str | None = None


@dataclass(frozen=True)
class Pending:
    """The pending records. `unreadable`: paths of unreadable records, which may concern any graph."""

    records: tuple[Record, ...] = ()
    unreadable: tuple[str, ...] = ()


def new_record(operation: Operation, graph_id: str, **about: str | None) -> Record:
    """A record of a change that is about to be made."""
    return Record(new_ulid(), operation, graph_id, now_text(), **about)


def write_record(place: Place, record: Record) -> None:
    """Write a record; it must be written before its change."""
    path = record_path(record.recovery_id)
    place.store.create(path, orjson.dumps({"version": 1, **asdict(record)}))
    place.store.sync(path)
    failpoints.hit("cluster.record_written")


def record_path(recovery_id: str) -> str:
    return f"{RECOVERIES}/{recovery_id}.json"


def remove_records(place: Place, records: list[Record], findings: Findings) -> None:
    """Remove records whose outcome is in the state."""
    for record in records:
        try:
            place.store.delete(record_path(record.recovery_id))
        except StorageError as error:
            findings.warn("recovery_sidecar_cleanup_failed", record_path(record.recovery_id), error.message)


def pending(place: Place) -> Pending:
    """All pending records, oldest first."""
    records, unreadable = [], []
    for info in place.store.list(RECOVERIES):
        if not info.path.endswith(".json"):
            # File browsers leave files of their own in folders.
            continue
        record = _read(place, info.path)
        if record is None:
            unreadable.append(info.path)
        else:
            records.append(record)
    return Pending(tuple(records), tuple(unreadable))


def _read(place: Place, path: str) -> Record | None:
    """The record of a file; None when it can not be read or understood."""
    try:
        told = orjson.loads(place.store.get(path))
        if told.pop("version") != 1:
            return None
        record = Record(**told)
    except (ValueError, TypeError, KeyError, AttributeError, StorageError):
        return None
    # The graph id is checked because it becomes a path that may be deleted.
    is_graph = isinstance(record.graph_id, str) and is_resource_id(record.graph_id)
    return record if record.operation in _OPERATIONS and is_graph and is_ulid(str(record.recovery_id)) else None


def warn_of_pending(place: Place, findings: Findings) -> Pending:
    """The pending records, each reported as a warning; for commands that do not settle records."""
    found = pending(place)
    for record in found.records:
        findings.warn(
            "cluster_recovery_pending",
            f"graph.{record.graph_id}",
            f"{record.operation} was interrupted (record {record.recovery_id}); apply or refresh settles it",
        )
    _warn_of_unreadable(found, findings)
    return found


def _warn_of_unreadable(found: Pending, findings: Findings) -> None:
    for path in found.unreadable:
        findings.warn("recovery_sidecar_read_error", path, "the recovery record can not be read; graphs are left alone")


@dataclass(frozen=True)
class Swept:
    """The result of a sweep: the state with all outcomes, records to remove once it is written, and blocked graphs."""

    state: State
    settled: tuple[Record, ...] = ()
    blocked: frozenset[str] = frozenset()
    #: Whether a record is unreadable, so that no graph may be changed.
    blocks_all: bool = False

    def is_blocked(self, graph_id: str | None) -> bool:
        return graph_id is not None and (self.blocks_all or graph_id in self.blocked)


def sweep(place: Place, state: State, findings: Findings) -> Swept:
    """Settle every pending record; the returned state contains the outcomes and must be written."""
    found = pending(place)
    _warn_of_unreadable(found, findings)
    settled: list[Record] = []
    blocked: set[str] = set()
    for record in found.records:
        try:
            outcome = _settled(place, state, record)
        except OmnigraphError as error:
            outcome = error.message
        if isinstance(outcome, str):
            blocked.add(record.graph_id)
            findings.warn("cluster_recovery_pending", f"graph.{record.graph_id}", f"{record.operation}: {outcome}")
            continue
        if outcome != state:
            findings.warn(
                "cluster_recovery_rolled_forward",
                f"graph.{record.graph_id}",
                f"{record.operation} of an interrupted command had been done; the state says so now",
            )
            told = {"operation": record.operation, "graph_id": record.graph_id, "settled_at": now_text()}
            outcome = replace(outcome, recoveries={**outcome.recoveries, record.recovery_id: told})
        state = outcome
        settled.append(record)
        failpoints.hit("cluster.recovery_settled")
    return Swept(state, tuple(settled), frozenset(blocked), bool(found.unreadable))


def _settled(place: Place, state: State, record: Record) -> State | str:
    """The state with the outcome of a record (unchanged if nothing was done), or a text that says why it stays pending."""
    graph_id = record.graph_id
    if record.operation == "graph_delete":
        if record.approval_id is not None and record.approval_id in state.approvals:
            consume_approval(place, record.approval_id, record.recovery_id)
            return state
        if is_untouched(place, graph_id):
            # Nothing was deleted; a new apply decides whether the deletion is still wanted and approved.
            return state
        # The deletion was approved and has begun: the remains are no graph any more.
        remove_graph(place, graph_id)
        return forget_graph(place, state, record)
    # Opened read-write, so that the graph heals an interrupted schema change itself.
    live = look_at(place, graph_id, "rw")
    if live.problem is not None:
        return live.problem
    if record.operation == "graph_create" and not live.exists:
        return state
    if live.schema_digest == record.after_digest and live.schema_digest is not None:
        return with_schema(state, graph_id, live.schema_digest)
    if record.operation == "schema_apply" and live.schema_digest == record.before_digest:
        return state
    return "the graph has another schema than before and after it; run `omnigraph cluster refresh` when that is meant"


def with_schema(state: State, graph_id: str, schema: str) -> State:
    """The state with this schema digest recorded for a graph."""
    state = state.with_entry(f"schema.{graph_id}", Entry(schema)).with_status(f"schema.{graph_id}", "applied")
    return recomputed_graph(state, graph_id).with_status(f"graph.{graph_id}", "applied")


def recomputed_graph(state: State, graph_id: str) -> State:
    """The state with the digest of a graph recomputed from its schema, queries and bindings."""
    address = f"graph.{graph_id}"
    before = state.resources.get(address, Entry(""))
    schema = state.resources.get(f"schema.{graph_id}")
    prefix = f"query.{graph_id}."
    queries = {
        found.removeprefix(prefix): entry.digest for found, entry in state.resources.items() if found.startswith(prefix)
    }
    provider = None
    if before.embedding_provider is not None and before.embedding_provider in state.resources:
        provider = (before.embedding_provider, state.resources[before.embedding_provider].digest)
    digest = graph_digest(
        graph_id, None if schema is None else schema.digest, queries, provider, before.external_blob_policy
    )
    return state.with_entry(address, replace(before, digest=digest))


def forget_graph(place: Place, state: State, record: Record) -> State:
    """The state with a deleted graph and its resources replaced by a tombstone; its approval is used up."""
    for address in [found for found in state.resources if graph_of(found) == record.graph_id]:
        state = state.with_entry(address, None)
    told = {"exists": False, "tombstone": True, "deleted_at": now_text()}
    if record.approval_id is not None:
        told["approval_id"] = record.approval_id
        used = consume_approval(place, record.approval_id, record.recovery_id)
        kept = {"approval_id": record.approval_id} if used is None else asdict(used)
        state = replace(state, approvals={**state.approvals, record.approval_id: kept})
    return state.with_observation(f"graph.{record.graph_id}", told)
