"""Approvals: files by which a person allows one change of one resource, bound to the digests declared and applied then."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace

import orjson

from omnigraph.cluster.diagnostics import Findings
from omnigraph.cluster.layout import APPROVALS, Place
from omnigraph.cluster.lock import now_text
from omnigraph.errors import StorageError
from omnigraph.ids import new_ulid


@dataclass(frozen=True)
class Gate:
    """A change that needs an approval, and the digests to which the approval must be bound."""

    resource: str
    operation: str
    reason: str
    config_digest: str
    before_digest: str | None
    after_digest: str | None = None


@dataclass(frozen=True)
class Approval:
    """One approval file."""

    approval_id: str
    resource: str
    operation: str
    reason: str
    bound_config_digest: str
    bound_before_digest: str | None
    bound_after_digest: str | None
    approved_by: str
    created_at: str
    consumed_at: str | None = None
    consumed_by_operation: str | None = None

    def fits(self, gate: Gate) -> bool:
        """Whether it allows the change of a gate: all digests to which it is bound are unchanged."""
        return (self.operation, self.bound_config_digest, self.bound_before_digest, self.bound_after_digest) == (
            gate.operation,
            gate.config_digest,
            gate.before_digest,
            gate.after_digest,
        )


def new_approval(gate: Gate, actor: str) -> Approval:
    """A new approval of the change of a gate."""
    return Approval(
        new_ulid(),
        gate.resource,
        gate.operation,
        gate.reason,
        gate.config_digest,
        gate.before_digest,
        gate.after_digest,
        actor,
        now_text(),
    )


def write_approval(place: Place, approval: Approval) -> None:
    """Write the file of an approval, or overwrite it when it is used."""
    path = f"{APPROVALS}/{approval.approval_id}.json"
    place.store.put(path, orjson.dumps({"schema_version": 1, **asdict(approval)}, option=orjson.OPT_INDENT_2))
    place.store.sync(path)


def find_approval(place: Place, gate: Gate, findings: Findings) -> Approval | None:
    """The approval that opens a gate, or None; approvals bound to other digests are reported as stale."""
    found = None
    for info in place.store.list(APPROVALS):
        approval = _read(place, info.path)
        if approval is None or approval.resource != gate.resource or approval.consumed_at is not None:
            continue
        if approval.fits(gate):
            found = approval
        else:
            findings.warn(
                "approval_stale",
                gate.resource,
                f"approval {approval.approval_id} of {approval.approved_by} was given for another declaration or state; "
                "approve it again",
            )
    return found


def consume_approval(place: Place, approval_id: str, operation: str) -> Approval | None:
    """Mark an approval as used; returns it, or None when its file is gone or can not be read."""
    approval = _read(place, f"{APPROVALS}/{approval_id}.json")
    if approval is None or approval.consumed_at is not None:
        return approval
    consumed = replace(approval, consumed_at=now_text(), consumed_by_operation=operation)
    write_approval(place, consumed)
    return consumed


def _read(place: Place, path: str) -> Approval | None:
    """The approval of a file; None when the file can not be read or understood."""
    try:
        told = orjson.loads(place.store.get(path))
        if told.pop("schema_version") != 1:
            return None
        return Approval(**told)
    except (ValueError, TypeError, KeyError, AttributeError, StorageError):
        return None
