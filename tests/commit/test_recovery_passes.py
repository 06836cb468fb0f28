"""Who heals and when, what stops a recovery, and what it must not destroy."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from omnigraph import failpoints
from omnigraph.commit import audit
from omnigraph.commit.branches import create_branch
from omnigraph.commit.context import CommitContext
from omnigraph.commit.model import MAIN
from omnigraph.commit.publisher import publish
from omnigraph.commit.recovery import heal
from omnigraph.commit.sidecar import Kind, UnreadableSidecar, discard_sidecar, list_sidecars
from omnigraph.commit.updates import SetTable
from omnigraph.errors import DriftNeedsRepair, OmnigraphError, RecoveryRequired, StorageError
from omnigraph.graph.lifecycle import connect, open_for_reading, open_for_writing
from omnigraph.ids import new_ulid
from omnigraph.storage.faults import FaultyStore, error_before, stale_list
from omnigraph.storage.objects import open_store
from omnigraph.storage.tables.location import Location
from tests.commit.aftermath import (
    at,
    break_invariant,
    crash,
    entry_of,
    insert_restarting,
    left_by_steps,
    left_record,
    only_recovery,
    reopen,
)
from tests.commit.handmade import drift, leave, move, planned, record
from tests.commit.healthy import assert_healthy, tree
from tests.commit.org import STAFF, TEAM, again, ids, insert, lineage, staff, team, write
from tests.commit.scenarios import FEATURE, SCENARIOS

# --- what can not be settled ------------------------------------------------------------------------------------------


def test_a_broken_invariant_aborts_loudly(small: CommitContext) -> None:
    """Nothing is changed, the record stays until an operator sets it aside."""
    entry = entry_of(small)
    operation_id = leave(small, record(planned(entry)))
    break_invariant(small)
    before = tree(small)
    for attempt in (lambda: reopen(small), lambda: insert(small, {TEAM: team(["labs"])}), lambda: heal(small)):
        with pytest.raises(RecoveryRequired, match=f"omnigraph recovery discard {operation_id} --confirm") as caught:
            attempt()
        assert caught.value.operation_id == operation_id
    # The refused write has staged a file that nobody references.
    assert before.items() <= tree(small).items()
    assert list_sidecars(small.store) == [operation_id]
    aside = discard_sidecar(small.store, operation_id)
    assert small.store.exists(aside)
    reopen(small)
    insert(small, {TEAM: team(["labs"])})


UNREADABLE = [
    pytest.param(b"{ not json", "is not valid JSON", id="REC-20"),
    pytest.param(b'{"schema_version": 5}', "upgrade omnigraph", id="newer-version"),
    pytest.param(b"{}", "incomplete", id="incomplete"),
]


@pytest.mark.parametrize(("data", "reason"), UNREADABLE)
def test_an_unreadable_record_is_refused_and_kept(small: CommitContext, data: bytes, reason: str) -> None:
    operation_id = new_ulid()
    path = f"__recovery/{operation_id}.json"
    small.store.put(path, data)
    for attempt in (lambda: insert(small, {STAFF: staff(["ben"])}), lambda: reopen(small), lambda: heal(small)):
        with pytest.raises(UnreadableSidecar, match=reason) as caught:
            attempt()
        assert path in str(caught.value)
    open_for_reading(again(small))
    assert small.store.get(path) == data
    assert ids(small, STAFF) == ["ada"]
    discard_sidecar(small.store, operation_id)
    insert(small, {STAFF: staff(["ben"])})
    assert ids(reopen(small), STAFF) == ["ada", "ben"]


@pytest.mark.parametrize("what", ["write", "open"])
def test_a_failed_listing_is_never_skipped(small: CommitContext, what: str) -> None:
    crash(small, write(small, {STAFF: staff(["ben"]), TEAM: team(["labs"])}), "mutation.mid_phase_b")
    faulty = connect(small.root.uri, store=FaultyStore(open_store(small.root), [error_before("list", "__recovery")]))
    with pytest.raises(StorageError):
        open_for_writing(faulty) if what == "open" else insert(faulty, {STAFF: staff(["cleo"])})
    assert len(list_sidecars(small.store)) == 1
    insert_restarting(faulty, {STAFF: staff(["cleo"])})
    assert ids(faulty, STAFF) == ["ada", "cleo"]
    assert_healthy(faulty)


@pytest.mark.parametrize("failpoint", ["mutation.mid_phase_b", "mutation.post_phase_b_pre_manifest_commit"])
@pytest.mark.parametrize(
    "moment", ["recovery.record_audit", "table_commit.lost_acknowledgement", "recovery.after_audit"]
)
def test_an_audit_that_fails_keeps_the_record(small: CommitContext, failpoint: str, moment: str) -> None:
    """The next pass records exactly one row, and it says what was done."""
    prepared = write(small, {STAFF: staff(["ben"]), TEAM: team(["labs"])})
    crash(small, prepared, failpoint)
    before = entry_of(small)
    action = _fail_on_audit(small) if moment == "table_commit.lost_acknowledgement" else "error"
    with failpoints.armed(moment, action), pytest.raises(OmnigraphError):
        open_for_writing(again(small))
    assert len(list_sidecars(small.store)) == 1
    fresh = reopen(small)
    row = only_recovery(fresh)
    assert row.operation_id == prepared.operation_id
    audited = {table.table_key: table for table in row.tables}[STAFF]
    if failpoint == "mutation.mid_phase_b":
        assert row.recovery_kind == "RolledBack"
        assert audited.to_version == before.version, "the logical version is not the one that came back"
        assert row.graph_commit_id == fresh.manifest.load().head
    else:
        assert (row.recovery_kind, row.graph_commit_id) == ("RolledForward", prepared.lineage.id)
        assert (audited.from_version, audited.to_version) == (before.version, before.version + 1)
    assert_healthy(fresh)


def _fail_on_audit(context: CommitContext) -> Any:
    """Fail once the audit dataset is there: its row was written, and nobody was told."""

    def fail() -> None:
        if context.store.exists(audit.AUDIT_PATH):
            raise failpoints.FailpointError("lost", name="table_commit.lost_acknowledgement")

    return fail


# --- drift ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("branch", [MAIN, FEATURE], ids=["REC-27-main", "REC-27-branch"])
def test_drift_without_a_record_is_refused(small: CommitContext, branch: str) -> None:
    if branch != MAIN:
        create_branch(small, branch, MAIN)
        insert(small, {STAFF: staff(["eve"])}, branch=branch)
    entry = entry_of(small, STAFF, branch)
    drift(small, entry.location, staff(["zoe"]))
    before = tree(small)
    with pytest.raises(DriftNeedsRepair, match="omnigraph repair"):
        insert(small, {STAFF: staff(["ben"])}, branch=branch)
    assert list_sidecars(small.store) == []
    assert before.items() <= tree(small).items()
    insert(small, {TEAM: team(["labs"])}, branch=branch)
    assert "zoe" not in ids(reopen(small), STAFF, branch)


def test_drift_with_a_pending_record_names_the_record(small: CommitContext) -> None:
    """Another writer of this branch is in its phase B, or recovery has not seen it yet."""
    entry = entry_of(small)
    drift(small, entry.location, staff(["zoe"]))
    operation_id = leave(small, record(planned(entry)))
    faulty = FaultyStore(open_store(small.root), [stale_list("__recovery")])
    with pytest.raises(RecoveryRequired, match=operation_id) as caught:
        insert(connect(small.root.uri, store=faulty), {STAFF: staff(["ben"])})
    assert "repair" not in str(caught.value)
    assert caught.value.operation_id == operation_id


# --- who heals, and when ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("failpoint", ["mutation.mid_phase_b", "mutation.post_phase_b_pre_manifest_commit"])
@pytest.mark.parametrize("healer", ["same-handle", "older-handle", "other-branch"])
def test_the_next_write_heals(small: CommitContext, failpoint: str, healer: str) -> None:
    """A server needs no restart: any handle settles what a dead writer left, before its own write."""
    create_branch(small, FEATURE, MAIN)
    older = again(small)
    ids(older, STAFF)
    crash(small, write(small, {STAFF: staff(["ben"]), TEAM: team(["labs"])}), failpoint)
    handle = small if healer == "same-handle" else older
    branch = FEATURE if healer == "other-branch" else MAIN
    insert_restarting(handle, {STAFF: staff(["cleo"])}, branch)
    settled = ["ada", "ben"] if "post" in failpoint else ["ada"]
    assert ids(handle, STAFF) == sorted(settled + (["cleo"] if branch == MAIN else []))
    assert only_recovery(handle).recovery_kind == ("RolledForward" if "post" in failpoint else "RolledBack")
    assert_healthy(handle)


def test_a_live_writer_is_left_alone(small: CommitContext) -> None:
    """While the branch is held, a pass goes by; afterwards it heals."""
    crash(small, write(small, {STAFF: staff(["ben"]), TEAM: team(["labs"])}), "mutation.mid_phase_b")
    before = tree(small)
    with another_process_holds(small, MAIN):
        assert heal(small) == []
        open_for_writing(again(small))
        assert tree(small) == before
    assert len(heal(small)) == 1
    assert_healthy(small)


@contextmanager
def another_process_holds(context: CommitContext, branch: str) -> Iterator[None]:
    """The lock of a branch in the hands of another thread, which is all that this process can tell."""
    taken, give = threading.Event(), threading.Event()

    def hold() -> None:
        with context.locks.hold(branch):
            taken.set()
            give.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    taken.wait()
    try:
        yield
    finally:
        give.set()
        thread.join()


def test_a_record_that_went_while_a_pass_waited_is_not_judged(
    small: CommitContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the listing and the lock its writer has finished: nothing is recorded and nothing is undone."""
    entry = entry_of(small)
    operation_id = leave(small, record(planned(entry, expected_version=999)))
    fresh = again(small)
    true_hold = fresh.locks.try_hold

    def finish_first(branch: str) -> Any:
        small.store.delete(f"__recovery/{operation_id}.json")
        return true_hold(branch)

    monkeypatch.setattr(fresh.locks, "try_hold", finish_first)
    assert heal(fresh) == []
    assert audit.recoveries(fresh) == []


# --- a roll-back that meets others ------------------------------------------------------------------------------------


@pytest.mark.parametrize("moment", ["recovery.before_undo", "undo.before_commit"])
def test_a_roll_back_keeps_a_concurrent_commit(small: CommitContext, moment: str) -> None:
    """A program that does not know our locks appends while recovery undoes: its rows are still in the table."""
    entry, operation_id = left_by_steps(small, {}, 2, {})
    with at(moment, lambda: drift(small, entry.location, staff(["zoe"]))):
        fresh = reopen(small)
    assert ids(fresh, STAFF) == ["ada"], "what nobody published must not be seen"
    stored = fresh.tables.open_head(entry.location)
    assert stored is not None
    assert sorted(stored.read(["id"])["id"].to_pylist()) == ["ada", "zoe"]
    assert only_recovery(fresh).operation_id == operation_id
    with pytest.raises(DriftNeedsRepair):
        insert(fresh, {STAFF: staff(["ben"])})
    insert(fresh, {TEAM: team(["labs"])})
    assert list_sidecars(fresh.store) == []


def test_a_roll_back_keeps_a_concurrent_publish(small: CommitContext) -> None:
    """A writer without locks publishes another table while recovery undoes; both are in the history."""
    left_by_steps(small, {}, 2, {})
    other = again(small)
    entry = entry_of(other, TEAM)

    def intrude() -> None:
        head = drift(other, entry.location, team(["labs"]))
        publish(other, MAIN, [SetTable(replace(entry, version=head, row_count=2))], [], lineage())

    with at("publisher.before_commit", intrude):
        fresh = reopen(small)
    assert ids(fresh, STAFF) == ["ada"]
    assert ids(fresh, TEAM) == ["core", "labs"]
    assert_healthy(fresh)


def test_the_effect_of_another_pending_writer_is_not_undone(small: CommitContext) -> None:
    """A dead writer moved nothing; the head it finds is of a writer that is still to be settled, forward."""
    entry, transaction_id = entry_of(small), new_ulid()
    leave(small, record(planned(entry, transaction_id=new_ulid(), post_commit_pin=9)))
    move(small, entry, staff(["ben"]), transaction_id)
    leave(small, record(planned(entry, transaction_id=transaction_id)))
    fresh = reopen(small)
    assert ids(fresh, STAFF) == ["ada", "ben"]
    assert [row.recovery_kind for row in audit.recoveries(fresh)] == ["RolledBack", "RolledForward"]
    assert_healthy(fresh)


def test_a_half_made_fork_is_removed(small: CommitContext) -> None:
    """Lance makes the files of a fork before its ref; a writer that died in between left files without a ref."""
    create_branch(small, FEATURE, MAIN)
    prepared = write(small, {STAFF: staff(["eve"])}, branch=FEATURE)
    crash(small, prepared, "mutation.post_phase_b_pre_manifest_commit")
    path = entry_of(small).path
    (ref,) = [info.path for info in small.store.list(f"{path}/_refs/branches")]
    small.store.delete(ref)
    left = left_record(small, prepared.operation_id)
    left["tables"][0]["post_commit_pin"] = 9
    leave(small, left)
    fresh = reopen(small)
    assert not fresh.store.exists(Location(path, prepared.operation_id).dataset_path)
    insert(fresh, {STAFF: staff(["fay"])}, branch=FEATURE)
    assert ids(fresh, STAFF, FEATURE) == ["ada", "fay"]
    assert_healthy(fresh)


def test_kinds_are_all_covered() -> None:
    assert {scenario.kind for scenario in SCENARIOS.values()} == set(Kind)
