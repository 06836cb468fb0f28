"""Recovery: finish or undo, as a whole, a write that was left half done.

Runs at read-write open, at the start of every write and maintenance call, and on refresh. With nothing to do it costs one
LIST. A sidecar is judged under the lock of its own branch, on fresh state; if a live writer holds the branch, the sidecar
is left alone.
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from dataclasses import dataclass

from omnigraph import failpoints
from omnigraph.commit import audit, schema_files
from omnigraph.commit.audit import AuditedTable, Recovery
from omnigraph.commit.branch_refs import MANIFEST_PATH, read_ref
from omnigraph.commit.classify import Class, Decision, decide
from omnigraph.commit.context import CommitContext
from omnigraph.commit.judge import Judged, judge
from omnigraph.commit.manifest import manifest_location
from omnigraph.commit.model import MAIN, Commit, ManifestState
from omnigraph.commit.rollback import drop_leftovers, roll_back
from omnigraph.commit.rollforward import can_roll_forward, purge, roll_forward
from omnigraph.commit.sidecar import Sidecar, delete_sidecar, list_sidecars, read_sidecar
from omnigraph.errors import ExpectedVersionMismatch, OmnigraphError, RecoveryRequired, StorageError
from omnigraph.ids import now_micros
from omnigraph.storage.tables.torn import set_torn_versions_aside
from omnigraph.watching import RECOVERY, happened

#: How often a recovery is judged again because a head moved meanwhile.
RECLASSIFY_BUDGET = 5

failpoints.declare("recovery.before_audit", "recovery.after_audit")

_log = logging.getLogger(__name__)


def heal(context: CommitContext, holding: Collection[str] = ()) -> list[Recovery]:
    """Settle every pending sidecar whose branch no live writer holds. `holding`: branches whose lock the caller has.

    A sidecar of a branch in `holding` must be settled, or its error is raised. If `holding` is not empty, a sidecar of another
    branch that can not be settled now is skipped. An unreadable sidecar always raises.
    """
    done = []
    for operation_id in list_sidecars(context.store):
        sidecar = read_sidecar(context.store, operation_id)
        if sidecar is None:
            continue
        if sidecar.branch in holding:
            done.append(recover(context, sidecar))
            continue
        with context.locks.try_hold(sidecar.branch) as lock:
            # A live writer holds the lock, or has finished between the listing and the lock.
            still_there = read_sidecar(context.store, operation_id) if lock is not None else None
            if still_there is None:
                continue
            try:
                done.append(recover(context, still_there))
            except OmnigraphError as error:
                if not holding:
                    raise
                _log.warning("operation %s on branch '%s' stays pending: %s", operation_id, sidecar.branch, error)
    return done


def fresh_state(context: CommitContext, branch: str) -> ManifestState:
    """The state of a branch, read again; if that fails, damaged manifest versions are set aside and it is read once more."""
    context.manifest.forget(branch)
    try:
        return context.manifest.load(branch)
    except StorageError as error:
        torn = error.kind == "permanent" and set_torn_versions_aside(
            context.tables, context.store, manifest_location(branch), above=None
        )
        if not torn:
            raise
        return context.manifest.load(branch)


def pending(context: CommitContext) -> list[Sidecar]:
    """The pending sidecars, oldest first."""
    found = (read_sidecar(context.store, operation_id) for operation_id in list_sidecars(context.store))
    return [sidecar for sidecar in found if sidecar is not None]


def recover(context: CommitContext, sidecar: Sidecar, *, live: Attempt | None = None) -> Recovery:
    """Settle one sidecar under its branch's lock and record it. `live`: set when the failed writer itself calls this."""
    if sidecar.branch != MAIN and read_ref(context.store, sidecar.branch) is None:
        return _discard(context, sidecar)
    for _ in range(RECLASSIFY_BUDGET):
        state = fresh_state(context, sidecar.branch)
        try:
            recovery = _settle(context, sidecar, state, live)
        except ExpectedVersionMismatch as moved:
            _log.info("judging operation %s anew: %s", sidecar.operation_id, moved)
            continue
        happened(RECOVERY)
        return _finish(context, sidecar, recovery)
    raise RecoveryRequired(
        f"operation {sidecar.operation_id} could not be settled: its tables keep moving; try again when writers are idle",
        operation_id=sidecar.operation_id,
    )


@dataclass(frozen=True, slots=True)
class Attempt:
    """What a live writer knows of its failed write: the tables it moved (by path), and whether it must be undone."""

    moved: frozenset[str]
    must_undo: bool


def _settle(context: CommitContext, sidecar: Sidecar, state: ManifestState, live: Attempt | None) -> Recovery:
    published = context.manifest.find_commit(sidecar.branch, sidecar.commit.id)
    judged = judge(context, sidecar, state)
    if published is not None:
        return _already_published(context, sidecar, judged, published)
    undone = _undone_before(context, sidecar)
    if undone is not None and live is not None and any(table.moved and table.seen.ours for table in judged):
        # Another process took this writer for dead and rolled back its effects so far; the writer has made more since.
        return _outcome(sidecar, "RolledBack", roll_back(context, sidecar, state, judged, only=live.moved), judged)
    if undone is not None:
        # Judge against the state before that commit, so that the record names the version that was restored.
        judged = judge(context, sidecar, context.manifest.load_at(sidecar.branch, undone.manifest_version - 1))
        drop_leftovers(context, sidecar, judged)
        return _outcome(sidecar, "RolledBack", undone.id, judged)
    decision = decide([table.cls for table in judged])
    if decision is Decision.ABORT:
        broken = next(table for table in judged if table.cls is Class.INVARIANT_VIOLATION)
        raise RecoveryRequired(
            f"operation {sidecar.operation_id} can not be settled: {broken.planned.table_key} is at version "
            f"{broken.seen.head} in storage but the manifest says {broken.seen.pin}; nothing was changed. Look at "
            f"{sidecar.path}, then `omnigraph recovery discard {sidecar.operation_id} --confirm`",
            operation_id=sidecar.operation_id,
        )
    if decision is Decision.ALREADY_PUBLISHED and live is None:
        return _already_published(context, sidecar, judged, None)
    must_undo = live is not None and live.must_undo
    # A schema change that moves no table has no effects except its staged files.
    complete = decision is Decision.ROLL_FORWARD or (sidecar.changes_schema and not sidecar.tables)
    if complete and not must_undo and can_roll_forward(context, sidecar, state):
        return _outcome(sidecar, "RolledForward", roll_forward(context, sidecar, state, judged), judged)
    commit_id = roll_back(context, sidecar, state, judged, only=live.moved if live else None)
    return _outcome(sidecar, "RolledBack", commit_id, judged)


def _already_published(
    context: CommitContext, sidecar: Sidecar, judged: list[Judged], published: Commit | None
) -> Recovery:
    # The writer may have died before flushing the publish, and the sidecar that could restore it is about to be deleted.
    context.make_durable(MANIFEST_PATH)
    if sidecar.changes_schema:
        finish_promotion(context, sidecar)
    return _outcome(sidecar, "RolledForward", published.id if published else None, judged)


def finish_promotion(context: CommitContext, sidecar: Sidecar) -> None:
    """Put the schema files in place that the manifest names, after a crash anywhere in their promotion."""
    if not sidecar.moves_schema_files:
        purge(context, sidecar)
        return
    if schema_files.staged_target(context.store) == sidecar.schema_target:
        schema_files.promote(context.store, context.root)
    else:
        # The live files are the target already (part of the staged files was removed), or nothing was staged.
        schema_files.drop_staged(context.store)
    purge(context, sidecar)


def _undone_before(context: CommitContext, sidecar: Sidecar) -> Commit | None:
    """The commit of an earlier roll-back of this operation that died before it was recorded; None when there is none."""
    commits = context.manifest.commits(sidecar.branch).values()
    return next((commit for commit in commits if commit.recovers == sidecar.operation_id), None)


def _outcome(sidecar: Sidecar, kind: str, commit_id: str | None, judged: list[Judged]) -> Recovery:
    return Recovery(
        operation_id=sidecar.operation_id,
        recovery_kind=kind,
        recovery_for_actor=sidecar.actor_id,
        writer_kind=sidecar.kind.value,
        graph_commit_id=commit_id,
        branch=sidecar.branch,
        created_at=now_micros(),
        tables=tuple(_audited(table, kind) for table in judged),
    )


def _audited(table: Judged, kind: str) -> AuditedTable:
    head, pin, expected = table.seen.head, table.seen.pin, table.planned.expected_version
    from_version, to_version = (expected, head) if kind == "RolledForward" else (head, pin)
    return AuditedTable(table.planned.table_key, from_version, to_version, table.cls.value)


def _discard(context: CommitContext, sidecar: Sidecar) -> Recovery:
    """Settle a sidecar whose branch was deleted: its effects can not become visible any more."""
    drop_leftovers(context, sidecar, [])
    outcome = _outcome(sidecar, "RolledBack", None, [])
    return _finish(context, sidecar, outcome)


def _finish(context: CommitContext, sidecar: Sidecar, recovery: Recovery) -> Recovery:
    failpoints.hit("recovery.before_audit")
    audit.record(context, recovery)
    failpoints.hit("recovery.after_audit")
    delete_sidecar(context.store, sidecar.operation_id)
    _log.info("operation %s: %s", recovery.operation_id, recovery.recovery_kind)
    return recovery
