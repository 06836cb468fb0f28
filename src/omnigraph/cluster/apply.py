"""Applying a declaration: create graphs, change schemas, store contents, delete graphs, then write the state.
Each change of a graph is preceded by a recovery record, and the state is replaced once, at the end. A crash therefore leaves
nothing, unreferenced stored contents, or records from which the next command finds out what was done.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial

from omnigraph import failpoints
from omnigraph.cluster.desired import Desired
from omnigraph.cluster.diagnostics import Findings
from omnigraph.cluster.layout import Place
from omnigraph.cluster.live import (
    ExportInProgress,
    Live,
    is_untouched,
    look_at,
    opened,
    put_payload,
    refuse_running_export,
    remove_graph,
)
from omnigraph.cluster.plan import (
    DEPENDENCY_NOT_APPLIED,
    RECOVERY_PENDING,
    Change,
    Gates,
    blocked_by_gates,
    changes_between,
    gates_of,
)
from omnigraph.cluster.recovery import (
    Record,
    Swept,
    forget_graph,
    new_record,
    recomputed_graph,
    remove_records,
    with_schema,
    write_record,
)
from omnigraph.cluster.state import Entry, Read, State, write_state
from omnigraph.errors import OmnigraphError
from omnigraph.failpoints import FailpointError
from omnigraph.graph.lifecycle import connect, create

failpoints.declare(
    "cluster.graph_created",
    "cluster.schema_applied",
    "cluster.payload_written",
    "cluster.graph_deleted",
    "cluster.before_state",
    "cluster.state_written",
    "cluster.records_removed",
)


@dataclass(frozen=True)
class Applied:
    """The outcome of an apply."""

    changes: tuple[Change, ...]
    read: Read
    converged: bool
    state_written: bool

    @property
    def applied_count(self) -> int:
        return sum(change.disposition == "applied" for change in self.changes)

    @property
    def deferred_count(self) -> int:
        return sum(change.disposition in ("deferred", "blocked") for change in self.changes)


def apply_changes(
    place: Place, desired: Desired, read: Read, swept: Swept, actor: str | None, findings: Findings
) -> Applied:
    """Carry out the differences between the declaration and the ledger; `swept`: the outcome of the preceding recovery."""
    changes = changes_between(desired, swept.state)
    gates = gates_of(place, desired, changes, findings)
    run = _Run(place, desired, swept, gates, actor, findings, swept.state, list(swept.settled))
    run.changes = {change.resource: change for change in blocked_by_gates(changes, gates)}
    run.block_waiting_graphs()
    run.warn_of_deferred()
    run.create_graphs()
    run.change_schemas()
    run.store_contents()
    run.delete_graphs()
    return run.finish(read)


@dataclass
class _Run:
    """A running apply: the state so far, and the outcome of each change."""

    place: Place
    desired: Desired
    swept: Swept
    gates: Gates
    actor: str | None
    findings: Findings
    state: State
    #: Records whose outcome `state` contains; they are removed when it is written.
    records: list[Record]
    changes: dict[str, Change] = field(default_factory=dict)
    #: Whether a change of a graph failed; then no other graph is changed.
    has_failed: bool = False

    # --- graphs -------------------------------------------------------------------------------------------------------

    def block_waiting_graphs(self) -> None:
        """Block the changes of graphs whose recovery record could not be settled."""
        for address, change in self.changes.items():
            if self.swept.is_blocked(change.graph_id):
                self.changes[address] = change.blocked(RECOVERY_PENDING)

    def warn_of_deferred(self) -> None:
        """Warn of resources that are left unchanged because this version does not know their kind."""
        for change in self.changes.values():
            if change.disposition == "deferred":
                self.findings.warn(
                    "apply_unsupported_change",
                    change.resource,
                    f"resources of kind '{change.kind}' are not known to this version, so it was left as it is",
                )

    def create_graphs(self) -> None:
        """Create the graphs that the ledger does not have."""
        for change in self._open("graph", "create"):
            graph_id = change.graph_id or ""
            schema = self.desired.resources[f"schema.{graph_id}"]
            live = look_at(self.place, graph_id)
            if live.exists and not self.has_failed:
                self._fail_existing(change, live)
                continue
            record = new_record("graph_create", graph_id, after_digest=schema.digest, actor=self.actor)
            if self._moved(change, record, "graph_create", partial(self._create, graph_id, schema.content)):
                self.state = with_schema(self.state, graph_id, schema.digest)
                # Replaces a tombstone, if there is one.
                self.state = self.state.with_observation(change.resource, {"exists": True})

    def _fail_existing(self, change: Change, live: Live) -> None:
        """Report that the place of a new graph is taken. A complete graph is adopted by a refresh, never by an apply."""
        self.has_failed = True
        if live.problem is not None:
            self.findings.error("graph_create_incomplete", change.resource, live.problem)
        else:
            self.findings.error(
                "graph_create_failed",
                change.resource,
                "there is a graph already that the state does not know; run `omnigraph cluster refresh` to take it over",
            )
        self._block(change, "graph_create_failed")

    def _create(self, graph_id: str, content: bytes | None) -> None:
        assert content is not None
        root = self.place.graph_root(graph_id)
        context = connect(root.uri, storage_options=root.storage_options or None)
        create(context, content.decode(), actor=self.actor)
        failpoints.hit("cluster.graph_created")

    def change_schemas(self) -> None:
        """Change the schemas of existing graphs to the declared ones; dropped data stays in older snapshots."""
        for change in self._open("schema", "create", "update"):
            graph_id = change.graph_id or ""
            if change.operation == "create" and self._is_created(graph_id):
                # The schema was created together with its graph.
                continue
            resource = self.desired.resources[change.resource]
            before = look_at(self.place, graph_id).schema_digest
            record = new_record(
                "schema_apply", graph_id, before_digest=before, after_digest=resource.digest, actor=self.actor
            )
            text = (resource.content or b"").decode()
            if self._moved(change, record, "schema_apply", partial(self._apply_schema, graph_id, text)):
                self.state = with_schema(self.state, graph_id, resource.digest)

    def _is_created(self, graph_id: str) -> bool:
        entry = self.state.resources.get(f"schema.{graph_id}")
        return entry is not None and entry.digest == self.desired.resources[f"schema.{graph_id}"].digest

    def _apply_schema(self, graph_id: str, text: str) -> None:
        with opened(self.place, graph_id, "rw") as graph:
            graph.apply_schema(text, actor=self.actor)
        failpoints.hit("cluster.schema_applied")

    def delete_graphs(self) -> None:
        """Delete the graphs that are no longer declared and whose deletion is approved."""
        for change in self._open("graph", "delete"):
            graph_id = change.graph_id or ""
            approval = self.gates.open.get(change.resource)
            if approval is None:
                self.findings.error(
                    "apply_approval_invariant_violation", change.resource, "a deletion came so far without an approval"
                )
                continue
            record = new_record("graph_delete", graph_id, approval_id=approval.approval_id, actor=self.actor)
            if self._moved(change, record, "graph_delete", partial(self._delete, graph_id)):
                self.state = forget_graph(self.place, self.state, record)

    def _delete(self, graph_id: str) -> None:
        refuse_running_export(self.place, graph_id)
        remove_graph(self.place, graph_id)
        failpoints.hit("cluster.graph_deleted")

    def _moved(self, change: Change, record: Record, operation: str, move: Callable[[], None]) -> bool:
        """Write the record, then change a graph; returns whether it succeeded. After a failure no other graph is changed."""
        if self.has_failed:
            self.findings.warn(f"{operation}_skipped", change.resource, "another graph could not be changed before")
            self._block(change, f"{operation}_skipped")
            return False
        try:
            write_record(self.place, record)
        except OmnigraphError as error:
            self._fail(change, _code(error, "recovery_sidecar_write_error"), error, f"{operation}_failed")
            return False
        try:
            move()
        except OmnigraphError as error:
            self._fail(change, _code(error, f"{operation}_failed"), error, f"{operation}_failed")
            self._forget_if_untouched(record)
            return False
        self.records.append(record)
        return True

    def _forget_if_untouched(self, record: Record) -> None:
        """Remove the record of a failed change that has changed nothing; otherwise the next command settles it."""
        try:
            self._forget(record, look_at(self.place, record.graph_id))
        except OmnigraphError as error:
            self.findings.warn("cluster_recovery_pending", f"graph.{record.graph_id}", error.message)

    def _forget(self, record: Record, live: Live) -> None:
        if record.operation == "graph_create":
            untouched = live.schema_digest != record.after_digest
        elif record.operation == "schema_apply":
            untouched = live.problem is None and live.schema_digest == record.before_digest
        else:
            untouched = is_untouched(self.place, record.graph_id)
        if untouched:
            remove_records(self.place, [record], self.findings)
        elif record.operation == "graph_delete":
            self.findings.warn(
                "graph_delete_incomplete",
                f"graph.{record.graph_id}",
                "a part of the graph is gone; the next apply ends it",
            )

    def _fail(self, change: Change, code: str, error: OmnigraphError, reason: str) -> None:
        self.has_failed = True
        self.findings.error(code, change.resource, error.message)
        self._block(change, reason)

    def _block(self, change: Change, reason: str) -> None:
        """Block a change and all changes of the same graph that depend on it."""
        self.changes[change.resource] = change.blocked(reason)
        self.state = self.state.with_status(change.resource, "blocked", reason)
        dependents = {dependent for dependent, needed in self.desired.dependencies if needed == change.resource}
        if change.kind == "schema":
            dependents.add(f"graph.{change.graph_id}")
        if change.kind == "graph" and change.operation == "delete":
            dependents |= {address for address, found in self.changes.items() if found.graph_id == change.graph_id}
        for address in sorted(dependents):
            found = self.changes.get(address)
            if found is not None and found.disposition in ("applied", "derived"):
                self.findings.warn(
                    "apply_dependency_blocked", address, f"it needs {change.resource}, which is not applied"
                )
                self._block(found, DEPENDENCY_NOT_APPLIED)

    def _open(self, kind: str, *operations: str) -> list[Change]:
        """The unblocked changes of a kind with one of these operations."""
        return [
            change
            for change in self.changes.values()
            if change.kind == kind and change.operation in operations and change.disposition == "applied"
        ]

    # --- the rest -----------------------------------------------------------------------------------------------------

    def store_contents(self) -> None:
        """Store the contents of queries and policies, and record the profiles of providers."""
        for kind in ("provider", "query", "policy"):
            for change in self._open(kind, "create", "update", "delete"):
                if change.operation == "delete":
                    if self._goes_with_its_graph(change):
                        continue
                    self.state = self.state.with_entry(change.resource, None)
                    continue
                resource = self.desired.resources[change.resource]
                try:
                    if resource.content is not None:
                        put_payload(self.place, resource.address, resource.digest, resource.content)
                        failpoints.hit("cluster.payload_written")
                except OmnigraphError as error:
                    code = _code(error, "resource_payload_write_error")
                    self.findings.error(code, change.resource, error.message)
                    self._block(change, "resource_payload_write_error")
                    continue
                entry = Entry.of(resource)
                self.state = self.state.with_entry(change.resource, entry).with_status(change.resource, "applied")

    def _goes_with_its_graph(self, change: Change) -> bool:
        graph = self.changes.get(f"graph.{change.graph_id}")
        return graph is not None and graph.operation == "delete"

    def finish(self, read: Read) -> Applied:
        """Write the state once if it changed, then remove settled records and use up approvals."""
        self._settle_graphs()
        remaining = changes_between(self.desired, self.state)
        converged = not remaining and not self.swept.blocked and not self.swept.blocks_all and self.findings.ok
        kept = self.desired.resources.keys() | self.state.resources.keys()
        state = replace(
            self.state,
            config_digest=self.desired.config_digest if converged else self.state.config_digest,
            statuses={address: status for address, status in self.state.statuses.items() if address in kept},
        )
        if state == read.state:
            # The state is unchanged: the records were left by a command that died after it had written the state.
            remove_records(self.place, self.records, self.findings)
            return Applied(tuple(self.changes.values()), read, converged, False)
        try:
            failpoints.hit("cluster.before_state")
        except FailpointError as error:
            self.findings.error("injected_failpoint", "__cluster/state.json", error.message)
            return Applied(tuple(self.changes.values()), read, False, False)
        written = write_state(self.place, read, replace(state, revision=read.state.revision + 1), self.findings)
        failpoints.hit("cluster.state_written")
        remove_records(self.place, self.records, self.findings)
        failpoints.hit("cluster.records_removed")
        return Applied(tuple(self.changes.values()), written, converged, True)

    def _settle_graphs(self) -> None:
        """Record the bindings of every existing graph, and its resulting digest."""
        for address, resource in self.desired.resources.items():
            if resource.kind != "graph" or address not in self.state.resources:
                continue
            if self.swept.is_blocked(resource.graph_id):
                continue
            if address in self.changes and self.changes[address].disposition == "blocked":
                self.state = recomputed_graph(self.state, resource.graph_id or "")
                continue
            self.state = self.state.with_entry(address, Entry.of(resource))
            self.state = recomputed_graph(self.state, resource.graph_id or "").with_status(address, "applied")
        for address, change in self.changes.items():
            if change.disposition == "blocked" and address in self.state.resources:
                self.state = self.state.with_status(address, "blocked", change.reason)


def _code(error: OmnigraphError, otherwise: str) -> str:
    if isinstance(error, ExportInProgress):
        return "graph_delete_export_in_progress"
    return "injected_failpoint" if isinstance(error, FailpointError) else otherwise
