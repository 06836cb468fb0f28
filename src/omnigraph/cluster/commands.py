"""The commands on a cluster. Each returns an `Outcome`: whether it succeeded, its data, and what it found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import wraps
from pathlib import Path
from typing import Any, Concatenate, ParamSpec

from omnigraph.cluster.apply import apply_changes
from omnigraph.cluster.approvals import new_approval, write_approval
from omnigraph.cluster.config import read_config
from omnigraph.cluster.desired import Desired, read_desired
from omnigraph.cluster.diagnostics import Findings, Stop
from omnigraph.cluster.layout import STATE, Place, place_at
from omnigraph.cluster.lock import force_unlock as remove_lock
from omnigraph.cluster.lock import held_lock, state_observations
from omnigraph.cluster.observe import observed
from omnigraph.cluster.plan import (
    blast_radius,
    blocked_by_gates,
    blocked_by_recovery,
    changes_between,
    gates_of,
    with_migrations,
)
from omnigraph.cluster.recovery import remove_records, sweep, warn_of_pending
from omnigraph.cluster.sources import FILE, Folder, Source
from omnigraph.cluster.state import Read, State, read_state, write_state
from omnigraph.errors import OmnigraphError, StorageError
from omnigraph.failpoints import FailpointError

_Given = ParamSpec("_Given")


@dataclass
class Outcome:
    """The outcome of a command. `data`: the fields that not every command has."""

    source: Source
    findings: Findings = field(default_factory=Findings)
    data: dict[str, Any] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        return self.findings.ok

    def to_dict(self) -> dict[str, Any]:
        found = [diagnostic.to_dict() for diagnostic in self.findings.listed]
        return {"ok": self.ok, "config_dir": self.source.shown, **self.data, "diagnostics": found}


def _command(
    work: Callable[Concatenate[Outcome, _Given], None],
) -> Callable[Concatenate[Path | Source, _Given], Outcome]:
    """A command from its function. It takes a folder or a sent declaration; Stop and storage errors end it."""

    @wraps(work)
    def run(declared: Path | Source, /, *args: _Given.args, **options: _Given.kwargs) -> Outcome:
        outcome = Outcome(Folder(declared) if isinstance(declared, Path) else declared)
        try:
            work(outcome, *args, **options)
        except Stop:
            pass
        except FailpointError as error:
            outcome.findings.error("injected_failpoint", STATE, error.message)
        except StorageError as error:
            outcome.findings.error("state_read_error", STATE, error.message)
        return outcome

    return run


@_command
def validate(outcome: Outcome) -> None:
    """Check a declaration by itself."""
    outcome.data["config_file"] = str(Path(outcome.source.shown) / FILE)
    desired = read_desired(outcome.source, outcome.findings)
    outcome.data |= {
        "resource_digests": desired.digests(),
        "resources": [desired.resources[address].to_dict() for address in sorted(desired.resources)],
        "dependencies": _dependencies(desired),
    }


@_command
def plan(outcome: Outcome) -> None:
    """Compare a declaration with what is applied; nothing is written."""
    desired, place = _declared(outcome)
    with held_lock(place, "plan", is_locking=desired.config.is_locking, findings=outcome.findings) as lock_id:
        read = read_state(place, outcome.findings)
        _tell(outcome, place, read, lock_id)
        if not read.found:
            outcome.findings.warn("state_missing", STATE, "nothing was applied yet; everything will be created")
        waiting = warn_of_pending(place, outcome.findings)
    changes = changes_between(desired, read.state)
    gates = gates_of(place, desired, changes, outcome.findings)
    changes = blocked_by_recovery(blocked_by_gates(changes, gates), waiting)
    changes = with_migrations(place, desired, changes, outcome.findings)
    outcome.data = {
        "desired_revision": {"config_digest": desired.config_digest},
        "resource_digests": desired.digests(),
        "dependencies": _dependencies(desired),
        "state_observations": outcome.data["state_observations"],
        "changes": [change.to_dict() for change in changes],
        "blast_radius": blast_radius(desired, changes),
        "approvals_required": gates.to_list(),
    }


@_command
def apply(outcome: Outcome, actor: str | None) -> None:
    """Apply the declaration to the cluster."""
    desired, place = _declared(outcome)
    findings = outcome.findings
    with held_lock(place, "apply", is_locking=desired.config.is_locking, findings=findings) as lock_id:
        read = _required_state(place, outcome, lock_id)
        swept = sweep(place, read.state, findings)
        applied = apply_changes(place, desired, read, swept, actor, findings)
        observations = state_observations(place, applied.read, lock_id, findings)
    outcome.data = {} if actor is None else {"actor": actor}
    outcome.data |= {
        "desired_revision": {"config_digest": desired.config_digest},
        "state_observations": observations,
        "changes": [change.to_dict() for change in applied.changes],
        "applied_count": applied.applied_count,
        "deferred_count": applied.deferred_count,
        "converged": applied.converged,
        "state_written": applied.state_written,
        "resource_statuses": dict(sorted(applied.read.state.statuses.items())),
    }


@_command
def import_(outcome: Outcome) -> None:
    """Make the first state from the existing graphs."""
    desired, place = _declared(outcome)
    with held_lock(place, "import", is_locking=desired.config.is_locking, findings=outcome.findings) as lock_id:
        read = read_state(place, outcome.findings)
        _tell(outcome, place, read, lock_id)
        if read.found:
            outcome.findings.error("state_already_exists", STATE, "there is a state already; use refresh")
            raise Stop
        _observe(outcome, "import", desired, place, read, lock_id)


@_command
def refresh(outcome: Outcome) -> None:
    """Compare the state with the storage, and record the differences."""
    desired, place = _declared(outcome)
    with held_lock(place, "refresh", is_locking=desired.config.is_locking, findings=outcome.findings) as lock_id:
        read = _required_state(place, outcome, lock_id)
        _observe(outcome, "refresh", desired, place, read, lock_id)


@_command
def status(outcome: Outcome) -> None:
    """Show the state; nothing is locked or written."""
    place = place_at(read_config(outcome.source, outcome.findings).root)
    read = read_state(place, outcome.findings)
    _tell(outcome, place, read, None)
    if not read.found:
        outcome.findings.warn("state_missing", STATE, "nothing was applied yet; run `omnigraph cluster import`")
    warn_of_pending(place, outcome.findings)
    outcome.data |= _shown(read.state)


@_command
def approve(outcome: Outcome, resource: str, actor: str) -> None:
    """Approve the change of a resource that waits for an approval."""
    desired, place = _declared(outcome)
    findings = outcome.findings
    with held_lock(place, "approve", is_locking=desired.config.is_locking, findings=findings) as lock_id:
        read = _required_state(place, outcome, lock_id)
        # A stale approval is replaced by this one, so it is not reported.
        gates = gates_of(place, desired, changes_between(desired, read.state), Findings())
        gate = next((gate for gate in gates.listed if gate.resource == resource), None)
        if gate is None:
            findings.error("approval_not_required", resource, "no change of this resource waits for an approval")
            raise Stop
        approval = new_approval(gate, actor)
        try:
            write_approval(place, approval)
        except StorageError as error:
            findings.error("approval_write_error", resource, error.message)
            raise Stop from None
    outcome.data = {
        "approval_id": approval.approval_id,
        "resource": resource,
        "operation": gate.operation,
        "approved_by": actor,
    }


@_command
def force_unlock(outcome: Outcome, lock_id: str) -> None:
    """Remove the lock of a dead command."""
    place = place_at(read_config(outcome.source, outcome.findings).root)
    removed = remove_lock(place, lock_id, outcome.findings)
    # Errors of the state or of another lock do not concern this command.
    unasked = Findings()
    try:
        read = read_state(place, unasked)
    except Stop:
        read = Read(State())
    outcome.data = {"state_observations": state_observations(place, read, None, unasked), "lock_removed": removed}


# --- shared -----------------------------------------------------------------------------------------------------------


def _declared(outcome: Outcome) -> tuple[Desired, Place]:
    desired = read_desired(outcome.source, outcome.findings)
    return desired, place_at(desired.config.root)


def _required_state(place: Place, outcome: Outcome, lock_id: str | None) -> Read:
    read = read_state(place, outcome.findings)
    _tell(outcome, place, read, lock_id)
    if not read.found:
        outcome.findings.error("state_missing", STATE, "there is no state; run `omnigraph cluster import` first")
        raise Stop
    return read


def _tell(outcome: Outcome, place: Place, read: Read, lock_id: str | None) -> None:
    outcome.data["state_observations"] = state_observations(place, read, lock_id, outcome.findings)


def _observe(outcome: Outcome, operation: str, desired: Desired, place: Place, read: Read, lock_id: str | None) -> None:
    findings = outcome.findings
    try:
        swept = sweep(place, read.state, findings)
        seen = observed(place, desired, swept, findings)
    except OmnigraphError as error:
        findings.error("graph_observation_error", STATE, error.message)
        raise Stop from None
    written = write_state(place, read, replace(seen, revision=read.state.revision + 1), findings)
    remove_records(place, list(swept.settled), findings)
    _tell(outcome, place, written, lock_id)
    outcome.data = {"operation": operation, **outcome.data, **_shown(written.state)}


def _shown(state: State) -> dict[str, Any]:
    return {
        "resource_digests": state.digests(),
        "resource_statuses": dict(sorted(state.statuses.items())),
        "observations": dict(sorted(state.observations.items())),
    }


def _dependencies(desired: Desired) -> list[dict[str, str]]:
    return [{"from": dependent, "to": needed} for dependent, needed in desired.dependencies]
