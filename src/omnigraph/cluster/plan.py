"""The plan: the changes between the declaration and the ledger, their dispositions, and the resources that they affect."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from omnigraph.cluster.approvals import Approval, Gate, find_approval
from omnigraph.cluster.desired import Desired, Resource, graph_of
from omnigraph.cluster.diagnostics import Findings
from omnigraph.cluster.layout import Place
from omnigraph.cluster.live import opened
from omnigraph.cluster.recovery import Pending
from omnigraph.cluster.state import Entry, State
from omnigraph.errors import OmnigraphError

Disposition = Literal["applied", "derived", "deferred", "blocked"]

APPROVAL_REQUIRED = "approval_required"
DEPENDENCY_NOT_APPLIED = "dependency_not_applied"
RECOVERY_PENDING = "cluster_recovery_pending"
SCHEMA_APPLY_FAILED = "schema_apply_failed"
UNSUPPORTED_KIND = "unsupported_kind"

#: The kinds of resources that an apply can change, as the first words of their addresses.
_KINDS = frozenset({"graph", "schema", "query", "policy", "provider"})


@dataclass(frozen=True)
class Change:
    """One resource whose declaration differs from its applied state."""

    resource: str
    operation: Literal["create", "update", "delete"]
    before_digest: str | None
    after_digest: str | None
    disposition: Disposition = "applied"
    reason: str | None = None
    binding_change: bool = False
    metadata_change: Literal["policy_bindings", "embedding_profile"] | None = None
    migration: Mapping[str, Any] | None = None

    @property
    def graph_id(self) -> str | None:
        return graph_of(self.resource)

    @property
    def kind(self) -> str:
        """The first word of the address."""
        return self.resource.partition(".")[0]

    def blocked(self, reason: str) -> Change:
        return replace(self, disposition="blocked", reason=reason)

    def to_dict(self) -> dict[str, Any]:
        told: dict[str, Any] = {"resource": self.resource, "operation": self.operation}
        for name in ("before_digest", "after_digest"):
            if getattr(self, name) is not None:
                told[name] = getattr(self, name)
        told["disposition"] = self.disposition
        if self.reason is not None:
            told["reason"] = self.reason
        if self.binding_change:
            told["binding_change"] = True
        if self.metadata_change is not None:
            told["metadata_change"] = self.metadata_change
        if self.migration is not None:
            told["migration"] = self.migration
        return told


@dataclass(frozen=True)
class Gates:
    """The changes that need an approval, and the present approvals."""

    listed: tuple[Gate, ...]
    open: Mapping[str, Approval]

    def to_list(self) -> list[dict[str, Any]]:
        return [
            {"resource": gate.resource, "reason": gate.reason, "satisfied": gate.resource in self.open}
            for gate in self.listed
        ]


def changes_between(desired: Desired, state: State) -> list[Change]:
    """Every change from the ledger to the declaration, by address."""
    found = []
    for address in sorted(desired.resources.keys() | state.resources.keys()):
        change = _change(address, desired.resources.get(address), state.resources.get(address))
        if change is not None:
            found.append(change)
    return found


def _change(address: str, want: Resource | None, have: Entry | None) -> Change | None:
    if want is None:
        assert have is not None
        change = Change(address, "delete", have.digest, None)
        # A newer version has applied it, and this version does not know how to remove it.
        return change if change.kind in _KINDS else replace(change, disposition="deferred", reason=UNSUPPORTED_KIND)
    if have is None:
        return Change(address, "create", None, want.digest)
    wanted = Entry.of(want)
    if wanted == have:
        return None
    change = Change(address, "update", have.digest, want.digest, "derived" if want.kind == "graph" else "applied")
    if wanted.applies_to != have.applies_to:
        return replace(change, binding_change=True, metadata_change="policy_bindings")
    if want.kind == "graph" and wanted.embedding_profile != have.embedding_profile:
        return replace(change, metadata_change="embedding_profile")
    return change


def gates_of(place: Place, desired: Desired, changes: Iterable[Change], findings: Findings) -> Gates:
    """The gates of the changes: one for each graph that would be deleted."""
    listed = tuple(
        Gate(change.resource, "delete", "delete_graph", desired.config_digest, change.before_digest)
        for change in changes
        if change.kind == "graph" and change.operation == "delete"
    )
    found = {gate.resource: find_approval(place, gate, findings) for gate in listed}
    return Gates(listed, {resource: approval for resource, approval in found.items() if approval is not None})


def blocked_by_gates(changes: Iterable[Change], gates: Gates) -> list[Change]:
    """The changes; deletions of graphs without approval are blocked, together with their schemas and queries."""
    closed = {gate.resource.removeprefix("graph.") for gate in gates.listed if gate.resource not in gates.open}
    return [
        change.blocked(APPROVAL_REQUIRED) if change.operation == "delete" and change.graph_id in closed else change
        for change in changes
    ]


def blocked_by_recovery(changes: Iterable[Change], waiting: Pending) -> list[Change]:
    """The changes; changes of graphs with a pending recovery record are blocked."""
    graphs = {record.graph_id for record in waiting.records}
    return [
        change.blocked(RECOVERY_PENDING)
        if change.graph_id is not None and (waiting.unreadable or change.graph_id in graphs)
        else change
        for change in changes
    ]


def with_migrations(place: Place, desired: Desired, changes: Iterable[Change], findings: Findings) -> list[Change]:
    """The changes; schema changes of existing graphs get their migration steps."""
    found, failing = [], set()
    for change in changes:
        if change.kind == "schema" and change.operation == "update" and change.disposition == "applied":
            change = _previewed(place, desired, change, findings)
            if change.disposition == "blocked":
                failing.add(change.graph_id)
        found.append(change)
    return [
        change.blocked(DEPENDENCY_NOT_APPLIED) if change.graph_id in failing and change.kind != "schema" else change
        for change in found
    ]


def _previewed(place: Place, desired: Desired, change: Change, findings: Findings) -> Change:
    assert change.graph_id is not None
    content = desired.resources[change.resource].content
    assert content is not None
    try:
        with opened(place, change.graph_id, "ro") as graph:
            planned = graph.plan_schema(content.decode())
    except OmnigraphError as error:
        findings.warn("schema_preview_unavailable", change.resource, error.message)
        return change
    told = planned.to_dict()
    change = replace(change, migration={"supported": told["supported"], "steps": told["steps"]})
    return change if planned.supported else change.blocked(SCHEMA_APPLY_FAILED)


def blast_radius(desired: Desired, changes: Iterable[Change]) -> list[dict[str, Any]]:
    """For each change the resources that depend on it, directly or through others."""
    dependents: dict[str, set[str]] = {}
    for dependent, needed in desired.dependencies:
        dependents.setdefault(needed, set()).add(dependent)
    told = []
    for change in changes:
        affected: set[str] = set()
        waiting = [change.resource]
        while waiting:
            for address in dependents.get(waiting.pop(), ()):
                if address not in affected:
                    affected.add(address)
                    waiting.append(address)
        told.append({"resource": change.resource, "affected": sorted(affected)})
    return told
