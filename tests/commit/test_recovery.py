"""Recovery, judged by hand-made records: forward, back, and already published."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from omnigraph.commit import audit
from omnigraph.commit.context import CommitContext
from omnigraph.commit.model import MAIN, RECOVERY_ACTOR
from omnigraph.commit.protocol import execute
from omnigraph.commit.publisher import publish
from omnigraph.commit.recovery import heal
from omnigraph.commit.sidecar import list_sidecars
from omnigraph.graph.lifecycle import open_for_writing
from omnigraph.ids import new_ulid
from tests.commit.aftermath import (
    crash,
    entry_of,
    head_of,
    left_by_steps,
    only_recovery,
    reopen,
)
from tests.commit.handmade import Json, drift, leave, move, planned, record
from tests.commit.healthy import assert_healthy, assert_open_is_idle, picture
from tests.commit.org import STAFF, TEAM, again, ids, insert, lineage, staff, team, write
from tests.commit.scenarios import SCENARIOS

# --- nothing to do ----------------------------------------------------------------------------------------------------


@pytest.mark.row("REC-11")
def test_a_clean_graph_gets_no_recovery_folder(graph: CommitContext) -> None:
    fresh = reopen(graph)
    assert not Path(fresh.root.uri, "__recovery").exists()
    assert not fresh.store.exists(audit.AUDIT_PATH)


# --- forward ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("actor", ["act-dead", None], ids=["REC-12-actor", "REC-12-no-actor"])
@pytest.mark.parametrize("tagged", [True, False], ids=["ours", "unsaid"])
def test_a_completed_effect_is_rolled_forward(shared_graph: CommitContext, actor: str | None, tagged: bool) -> None:
    entry, transaction_id = entry_of(shared_graph), new_ulid()
    head = move(shared_graph, entry, staff(["ben"]), transaction_id)
    left = record(planned(entry, transaction_id=transaction_id if tagged else None), actor_id=actor)
    operation_id = leave(shared_graph, left)
    fresh = reopen(shared_graph)
    assert entry_of(fresh).version == head == head_of(fresh)
    assert ids(fresh, STAFF) == ["ben"]
    assert list_sidecars(fresh.store) == []
    row = only_recovery(fresh)
    assert (row.recovery_kind, row.operation_id, row.writer_kind) == ("RolledForward", operation_id, "Mutation")
    assert (row.recovery_for_actor, row.branch, row.graph_commit_id) == (actor, MAIN, left["commit"]["id"])
    assert [(t.table_key, t.from_version, t.to_version, t.cls) for t in row.tables] == [
        (STAFF, entry.version, head, "RolledPastExpected")
    ]
    commit = fresh.manifest.find_commit(MAIN, left["commit"]["id"])
    assert commit is not None
    assert (commit.actor, commit.recovery_for_actor, commit.kind) == (RECOVERY_ACTOR, actor, "mutation")
    assert commit.created_at == left["commit"]["created_at"]
    version = fresh.manifest.load().version
    assert reopen(fresh).manifest.load().version == version
    assert audit.recoveries(fresh) == [row]
    insert(fresh, {STAFF: staff(["cleo"])})
    assert ids(fresh, STAFF) == ["ben", "cleo"]


FORWARD = [
    pytest.param({"kind": "Load"}, 1, {}, id="load"),
    pytest.param({"kind": "EnsureIndices"}, 1, {}, id="indices"),
    pytest.param({"kind": "Optimize"}, 3, {}, id="optimize-many-steps"),
    pytest.param({"kind": "Optimize"}, 2, {"transaction_id": "01J0FOREIGN"}, id="optimize-not-tagged"),
    pytest.param({"kind": "BranchMerge"}, 2, {"confirmed_version": 2}, id="REC-07-confirmed"),
    pytest.param({"kind": "BranchMerge", "schema_version": 1}, 3, {}, id="REC-08-merge-before-confirmation"),
]
BACK = [
    pytest.param({}, 1, {"expected_version": 0}, "UnexpectedAtP1", id="REC-13-other-expected-version"),
    pytest.param({}, 1, {"post_commit_pin": 9}, "UnexpectedAtP1", id="REC-13-other-plan"),
    pytest.param({}, 2, {}, "UnexpectedMultistep", id="REC-05-two-steps"),
    pytest.param({"kind": "Load"}, 3, {}, "UnexpectedMultistep", id="REC-05-load"),
    pytest.param({}, 1, {"transaction_id": "01J0FOREIGN"}, "UnexpectedEffectIdentity", id="REC-09"),
    pytest.param({"kind": "BranchMerge"}, 2, {}, "IncompletePhaseB", id="REC-07-not-confirmed"),
    pytest.param(
        {"kind": "BranchMerge"}, 2, {"confirmed_version": 1}, "UnexpectedMultistep", id="REC-07-confirmed-other"
    ),
    pytest.param({"kind": "Optimize"}, 1, {"expected_version": 0}, "UnexpectedMultistep", id="other-expected"),
]


@pytest.mark.parametrize(("changes", "steps", "table"), FORWARD)
def test_forward_by_hand(small: CommitContext, changes: Json, steps: int, table: Json) -> None:
    entry, operation_id = left_by_steps(small, changes, steps, table)
    fresh = reopen(small)
    assert ids(fresh, STAFF) == ["ada", *(f"step{step}" for step in range(steps))]
    row = only_recovery(fresh)
    assert (row.operation_id, row.recovery_kind) == (operation_id, "RolledForward")
    assert (row.tables[0].from_version, row.tables[0].to_version) == (entry.version, entry.version + steps)
    assert_healthy(fresh)
    assert_open_is_idle(fresh)


@pytest.mark.parametrize(("changes", "steps", "table", "cls"), BACK)
def test_back_by_hand(small: CommitContext, changes: Json, steps: int, table: Json, cls: str) -> None:
    entry, operation_id = left_by_steps(small, changes, steps, table)
    before = picture(small)
    fresh = reopen(small)
    assert picture(fresh) == before
    assert entry_of(fresh).version == head_of(fresh) == entry.version + steps + 1, "the pin's content is not published"
    row = only_recovery(fresh)
    assert (row.operation_id, row.recovery_kind) == (operation_id, "RolledBack")
    (audited,) = row.tables
    assert (audited.from_version, audited.to_version, audited.cls) == (entry.version + steps, entry.version, cls)
    commit = fresh.manifest.find_commit(MAIN, fresh.manifest.load().head)
    assert commit is not None
    assert (commit.id, commit.kind, commit.actor) == (row.graph_commit_id, "recovery", RECOVERY_ACTOR)
    assert (commit.recovery_for_actor, commit.recovers) == ("act-dead", operation_id)
    assert_healthy(fresh)
    assert_open_is_idle(fresh)
    insert(fresh, {STAFF: staff(["ben"])})
    assert ids(fresh, STAFF) == ["ada", "ben"]


@pytest.mark.row("REC-13")
def test_back_on_every_store(shared_graph: CommitContext) -> None:
    insert(shared_graph, {STAFF: staff(["ada"])})
    left_by_steps(shared_graph, {}, 2, {})
    fresh = reopen(shared_graph)
    assert ids(fresh, STAFF) == ["ada"]
    assert entry_of(fresh).version == head_of(fresh)
    insert(fresh, {STAFF: staff(["ben"])})
    assert ids(fresh, STAFF) == ["ada", "ben"]


@pytest.mark.row("REC-13")
def test_a_schema_change_succeeds_after_a_roll_back(small: CommitContext) -> None:
    left_by_steps(small, {}, 1, {"expected_version": 0})
    fresh = reopen(small)
    execute(fresh, SCENARIOS["schema_apply"].plan(fresh, MAIN))
    open_for_writing(again(fresh))
    assert "desk" in fresh.tables.open(entry_of(fresh).location, entry_of(fresh).version).schema.names


@pytest.mark.parametrize("moved", [STAFF, TEAM])
def test_one_table_that_did_not_move_takes_the_other_back(small: CommitContext, moved: str) -> None:
    """All tables share one decision, whichever comes first."""
    entries = [entry_of(small, STAFF), entry_of(small, TEAM)]
    before = picture(small)
    drift(small, entry_of(small, moved).location, staff(["ben"]) if moved == STAFF else team(["labs"]))
    leave(small, record(*map(planned, entries)))
    fresh = reopen(small)
    assert picture(fresh) == before
    assert {table.table_key: table.cls for table in only_recovery(fresh).tables} == {
        moved: "RolledPastExpected",
        ({STAFF, TEAM} - {moved}).pop(): "NoMovement",
    }
    assert_healthy(fresh)


def test_nothing_moved_is_recorded_without_a_commit(small: CommitContext) -> None:
    head = small.manifest.load().head
    leave(small, record(planned(entry_of(small))))
    fresh = reopen(small)
    assert fresh.manifest.load().head == head
    row = only_recovery(fresh)
    assert (row.recovery_kind, row.graph_commit_id) == ("RolledBack", None)
    assert_healthy(fresh)


# --- already published ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("known", [True, False], ids=["REC-14-by-commit-id", "REC-14-by-version"])
def test_a_record_of_a_published_write(small: CommitContext, known: bool) -> None:
    before = entry_of(small)
    state = insert(small, {STAFF: staff(["ben"])})
    left = record(planned(before))
    if known:
        left["commit"]["id"] = state.head
    leave(small, left)
    fresh = reopen(small)
    row = only_recovery(fresh)
    assert row.recovery_kind == "RolledForward"
    assert row.graph_commit_id == (state.head if known else None)
    assert [(t.from_version, t.to_version) for t in row.tables] == [(before.version, before.version + 1)]
    assert fresh.manifest.load().version == state.version
    assert_healthy(fresh)


# --- several records --------------------------------------------------------------------------------------------------


@pytest.mark.row("REC-15")
def test_two_records_on_two_tables(small: CommitContext) -> None:
    """One forward and one back, in the order of their ids."""
    first, second = entry_of(small, STAFF), entry_of(small, TEAM)
    drift(small, first.location, staff(["ben"]))
    drift(small, second.location, team(["labs"]))
    # Written in the other order than their ids say.
    records = [record(planned(first)), record(planned(second, post_commit_pin=9))]
    operations = [leave(small, left) for left in reversed(records)][::-1]
    done = heal(again(small))
    assert [(row.operation_id, row.recovery_kind) for row in done] == [
        (operations[0], "RolledForward"),
        (operations[1], "RolledBack"),
    ]
    fresh = reopen(small)
    assert [row.operation_id for row in audit.recoveries(fresh)] == operations
    assert ids(fresh, STAFF) == ["ada", "ben"]
    assert ids(fresh, TEAM) == ["core"]
    assert_healthy(fresh)


@pytest.mark.parametrize("kind", ["Optimize", "EnsureIndices"], ids=["REC-16-optimize", "REC-16-indices"])
def test_two_loose_records_on_one_table(small: CommitContext, kind: str) -> None:
    entry = entry_of(small)
    drift(small, entry.location, staff(["ben"]))
    head = drift(small, entry.location, staff(["cleo"]))
    leave(small, record(planned(entry), kind=kind))
    leave(small, record(planned(entry, expected_version=entry.version + 1, post_commit_pin=head), kind=kind))
    fresh = reopen(small)
    assert head_of(fresh) == head == entry_of(fresh).version
    assert ids(fresh, STAFF) == ["ada", "ben", "cleo"]
    assert [row.recovery_kind for row in audit.recoveries(fresh)] == ["RolledForward", "RolledForward"]
    assert_healthy(fresh)


def test_two_strict_records_on_one_table(small: CommitContext) -> None:
    """Neither can be finished on its own; both are undone and nothing of them stays."""
    entry, transactions = entry_of(small), [new_ulid(), new_ulid()]
    move(small, entry, staff(["ben"]), transactions[0])
    move(small, replace(entry, version=entry.version + 1), staff(["cleo"]), transactions[1])
    leave(small, record(planned(entry, transaction_id=transactions[0])))
    leave(
        small,
        record(
            planned(
                entry,
                expected_version=entry.version + 1,
                post_commit_pin=entry.version + 2,
                transaction_id=transactions[1],
            )
        ),
    )
    fresh = reopen(small)
    assert ids(fresh, STAFF) == ["ada"]
    assert [row.recovery_kind for row in audit.recoveries(fresh)] == ["RolledBack", "RolledBack"]
    assert_healthy(fresh)


# --- what is promised besides the tables ------------------------------------------------------------------------------


def test_a_conditional_write_goes_forward_only_on_its_head(small: CommitContext) -> None:
    head = small.manifest.load().head
    prepared = write(small, {STAFF: staff(["ben"])}, if_commit=head)
    crash(small, prepared, "mutation.post_phase_b_pre_manifest_commit")
    # A process that does not respect the lock publishes something else meanwhile.
    publish(small, MAIN, [], [], lineage())
    fresh = reopen(small)
    assert ids(fresh, STAFF) == ["ada"]
    assert only_recovery(fresh).recovery_kind == "RolledBack"
    assert_healthy(fresh)


def test_an_idempotency_key_that_is_taken_meanwhile_takes_the_write_back(small: CommitContext) -> None:
    """Rolling forward could never succeed, so it may not be tried for ever."""
    crash(small, SCENARIOS["mutation"].plan(small, MAIN), "mutation.post_phase_b_pre_manifest_commit")
    other = next(iter(SCENARIOS["mutation"].plan(small, MAIN).updates))
    publish(small, MAIN, [other], [], lineage())
    before = picture(small)
    fresh = reopen(small)
    assert picture(fresh) == before
    assert only_recovery(fresh).recovery_kind == "RolledBack"
    assert_healthy(fresh)


def test_the_kind_and_receipt_of_a_bare_record(small: CommitContext) -> None:
    """Without our additions a record still says its key; the commit's kind follows from the writer's."""
    entry = entry_of(small)
    drift(small, entry.location, staff(["ben"]))
    left = record(planned(entry), kind="Load")
    left["commit"]["idempotency_key"] = "once"
    leave(small, left)
    fresh = reopen(small)
    commit = fresh.manifest.find_commit(MAIN, left["commit"]["id"])
    receipt = fresh.manifest.receipt(MAIN, "once")
    assert commit is not None
    assert receipt is not None
    assert (commit.kind, receipt.commit_id) == ("load", commit.id)
