"""Recovery: every row of behaviours section 20 that this layer can show, and the rules behind them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from omnigraph import failpoints
from omnigraph.commit import audit
from omnigraph.commit.audit import Recovery
from omnigraph.commit.branches import branch_names, create_branch, delete_branch
from omnigraph.commit.context import CommitContext
from omnigraph.commit.model import MAIN, RECOVERY_ACTOR, TableEntry
from omnigraph.commit.protocol import Write, execute
from omnigraph.commit.publisher import publish
from omnigraph.commit.recovery import heal
from omnigraph.commit.sidecar import Kind, UnreadableSidecar, discard_sidecar, list_sidecars
from omnigraph.commit.updates import SetTable
from omnigraph.errors import DriftNeedsRepair, ExpectedVersionMismatch, OmnigraphError, RecoveryRequired, StorageError
from omnigraph.graph.lifecycle import connect, open_for_reading, open_for_writing
from omnigraph.ids import new_ulid
from omnigraph.storage.faults import FaultyStore, error_before, stale_list
from omnigraph.storage.objects import open_store
from omnigraph.storage.tables.location import Location
from tests.commit.handmade import Json, drift, leave, move, planned, record
from tests.commit.healthy import assert_healthy, assert_open_is_idle, picture, tree
from tests.commit.org import STAFF, TEAM, again, ids, insert, lineage, staff, team, write
from tests.commit.scenarios import FEATURE, SCENARIOS


class Crash(BaseException):
    """The end of a writer: nothing of ours catches it, so the store is left as a dead process leaves it."""


def crash(context: CommitContext, prepared: Write, failpoint: str) -> None:
    """Carry out a write that dies at a failpoint."""

    def die() -> None:
        raise Crash

    with failpoints.armed(failpoint, die), pytest.raises(Crash):
        execute(context, prepared)


def reopen(context: CommitContext) -> CommitContext:
    """What a new process finds after a read-write open."""
    fresh = again(context)
    open_for_writing(fresh)
    return fresh


def insert_restarting(context: CommitContext, name: str, branch: str = MAIN) -> None:
    """An insert as writers do it: what was staged before a recovery moved the table is staged anew."""
    try:
        insert(context, {STAFF: staff([name])}, branch=branch)
    except ExpectedVersionMismatch:
        insert(context, {STAFF: staff([name])}, branch=branch)


def entry_of(context: CommitContext, key: str = STAFF, branch: str = MAIN) -> TableEntry:
    return context.manifest.load(branch).by_key[key]


def head_of(context: CommitContext, key: str = STAFF, branch: str = MAIN) -> int | None:
    return context.tables.head_version(entry_of(context, key, branch).location)


def only_recovery(context: CommitContext) -> Recovery:
    (row,) = audit.recoveries(context)
    return row


@pytest.fixture
def graph(graph: CommitContext) -> CommitContext:
    """A graph with one row in each of two tables."""
    insert(graph, {STAFF: staff(["ada"]), TEAM: team(["core"])})
    return graph


# --- nothing to do ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("opened", [pytest.param(None, id="REC-11")])
def test_a_clean_graph_gets_no_recovery_folder(graph: CommitContext, opened: None) -> None:
    fresh = reopen(graph)
    assert not fresh.store.exists("__recovery")
    assert not fresh.store.exists(audit.AUDIT_PATH)


# --- forward ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("actor", ["act-dead", None], ids=["REC-12-actor", "REC-12-no-actor"])
@pytest.mark.parametrize("tagged", [True, False], ids=["ours", "unsaid"])
def test_a_completed_effect_is_rolled_forward(shared_graph: CommitContext, actor: str | None, tagged: bool) -> None:
    graph = shared_graph
    entry, transaction_id = entry_of(graph), new_ulid()
    head = move(graph, entry, staff(["ben"]), transaction_id)
    left = record(planned(entry, transaction_id=transaction_id if tagged else None), actor_id=actor)
    operation_id = leave(graph, left)
    fresh = reopen(graph)
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
    pytest.param({"kind": "EnsureIndices"}, 1, {}, id="REC-06-indices"),
    pytest.param({"kind": "Optimize"}, 3, {}, id="REC-06-optimize-many-steps"),
    pytest.param({"kind": "Optimize"}, 2, {"transaction_id": "01J0FOREIGN"}, id="REC-06-optimize-not-tagged"),
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
    pytest.param({"kind": "BranchMerge"}, 2, {"confirmed_version": 1}, "UnexpectedMultistep", id="REC-07-confirmed-other"),
    pytest.param({"kind": "Optimize"}, 1, {"expected_version": 0}, "UnexpectedMultistep", id="REC-06-other-expected"),
]


def left_by_steps(graph: CommitContext, changes: Json, steps: int, table: Json) -> tuple[TableEntry, str]:
    """A table that is some steps past its pin, and a record of it. Confirmed versions count from the pin."""
    entry = entry_of(graph)
    if "confirmed_version" in table:
        table = {**table, "confirmed_version": entry.version + table["confirmed_version"]}
    for step in range(steps):
        drift(graph, entry.location, staff([f"step{step}"]))
    return entry, leave(graph, record(planned(entry, **table), **changes))


@pytest.mark.parametrize(("changes", "steps", "table"), FORWARD)
def test_forward_by_hand(graph: CommitContext, changes: Json, steps: int, table: Json) -> None:
    entry, operation_id = left_by_steps(graph, changes, steps, table)
    fresh = reopen(graph)
    assert ids(fresh, STAFF) == ["ada", *(f"step{step}" for step in range(steps))]
    row = only_recovery(fresh)
    assert (row.operation_id, row.recovery_kind) == (operation_id, "RolledForward")
    assert (row.tables[0].from_version, row.tables[0].to_version) == (entry.version, entry.version + steps)
    assert_healthy(fresh)
    assert_open_is_idle(fresh)


@pytest.mark.parametrize(("changes", "steps", "table", "cls"), BACK)
def test_back_by_hand(graph: CommitContext, changes: Json, steps: int, table: Json, cls: str) -> None:
    entry, operation_id = left_by_steps(graph, changes, steps, table)
    before = picture(graph)
    fresh = reopen(graph)
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


@pytest.mark.parametrize("shared_graph", ["local", "s3"], indirect=True, ids=["REC-13-local", "REC-13-s3"])
def test_back_on_every_store(shared_graph: CommitContext) -> None:
    insert(shared_graph, {STAFF: staff(["ada"])})
    left_by_steps(shared_graph, {}, 2, {})
    fresh = reopen(shared_graph)
    assert ids(fresh, STAFF) == ["ada"]
    assert entry_of(fresh).version == head_of(fresh)
    insert(fresh, {STAFF: staff(["ben"])})
    assert ids(fresh, STAFF) == ["ada", "ben"]


@pytest.mark.parametrize("changes", [pytest.param({"expected_version": 0}, id="REC-13")])
def test_a_schema_change_succeeds_after_a_roll_back(graph: CommitContext, changes: Json) -> None:
    left_by_steps(graph, {}, 1, changes)
    fresh = reopen(graph)
    execute(fresh, SCENARIOS["schema_apply"].plan(fresh, MAIN))
    open_for_writing(again(fresh))
    assert "desk" in fresh.tables.open(entry_of(fresh).location, entry_of(fresh).version).schema.names


@pytest.mark.parametrize("moved", [STAFF, TEAM])
def test_one_table_that_did_not_move_takes_the_other_back(graph: CommitContext, moved: str) -> None:
    """REC-10: all tables share one decision, whichever comes first."""
    entries = [entry_of(graph, STAFF), entry_of(graph, TEAM)]
    before = picture(graph)
    drift(graph, entry_of(graph, moved).location, staff(["ben"]) if moved == STAFF else team(["labs"]))
    leave(graph, record(*map(planned, entries)))
    fresh = reopen(graph)
    assert picture(fresh) == before
    assert {table.table_key: table.cls for table in only_recovery(fresh).tables} == {
        moved: "RolledPastExpected",
        ({STAFF, TEAM} - {moved}).pop(): "NoMovement",
    }
    assert_healthy(fresh)


def test_nothing_moved_is_recorded_without_a_commit(graph: CommitContext) -> None:
    head = graph.manifest.load().head
    leave(graph, record(planned(entry_of(graph))))
    fresh = reopen(graph)
    assert fresh.manifest.load().head == head
    row = only_recovery(fresh)
    assert (row.recovery_kind, row.graph_commit_id) == ("RolledBack", None)
    assert_healthy(fresh)


# --- already published ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("known", [True, False], ids=["REC-14-by-commit-id", "REC-14-by-version"])
def test_a_record_of_a_published_write(graph: CommitContext, known: bool) -> None:
    before = entry_of(graph)
    state = insert(graph, {STAFF: staff(["ben"])})
    left = record(planned(before))
    if known:
        left["commit"]["id"] = state.head
    leave(graph, left)
    fresh = reopen(graph)
    row = only_recovery(fresh)
    assert row.recovery_kind == "RolledForward"
    assert row.graph_commit_id == (state.head if known else None)
    assert [(t.from_version, t.to_version) for t in row.tables] == [(before.version, before.version + 1)]
    assert fresh.manifest.load().version == state.version
    assert_healthy(fresh)


# --- several records --------------------------------------------------------------------------------------------------


def test_two_records_on_two_tables(graph: CommitContext) -> None:
    """REC-15, one forward and one back."""
    first, second = entry_of(graph, STAFF), entry_of(graph, TEAM)
    drift(graph, first.location, staff(["ben"]))
    drift(graph, second.location, team(["labs"]))
    # Written in the other order than their ids say.
    records = [record(planned(first)), record(planned(second, post_commit_pin=9))]
    operations = [leave(graph, left) for left in reversed(records)][::-1]
    done = heal(again(graph))
    assert [(row.operation_id, row.recovery_kind) for row in done] == [
        (operations[0], "RolledForward"),
        (operations[1], "RolledBack"),
    ]
    fresh = reopen(graph)
    assert [row.operation_id for row in audit.recoveries(fresh)] == operations
    assert ids(fresh, STAFF) == ["ada", "ben"]
    assert ids(fresh, TEAM) == ["core"]
    assert_healthy(fresh)


@pytest.mark.parametrize("kind", ["Optimize", "EnsureIndices"], ids=["REC-16-optimize", "REC-16-indices"])
def test_two_loose_records_on_one_table(graph: CommitContext, kind: str) -> None:
    entry = entry_of(graph)
    drift(graph, entry.location, staff(["ben"]))
    head = drift(graph, entry.location, staff(["cleo"]))
    leave(graph, record(planned(entry), kind=kind))
    leave(graph, record(planned(entry, expected_version=entry.version + 1, post_commit_pin=head), kind=kind))
    fresh = reopen(graph)
    assert head_of(fresh) == head == entry_of(fresh).version
    assert ids(fresh, STAFF) == ["ada", "ben", "cleo"]
    assert [row.recovery_kind for row in audit.recoveries(fresh)] == ["RolledForward", "RolledForward"]
    assert_healthy(fresh)


def test_two_strict_records_on_one_table(graph: CommitContext) -> None:
    """Neither can be finished on its own; both are undone and nothing of them stays."""
    entry, transactions = entry_of(graph), [new_ulid(), new_ulid()]
    move(graph, entry, staff(["ben"]), transactions[0])
    move(graph, replace(entry, version=entry.version + 1), staff(["cleo"]), transactions[1])
    leave(graph, record(planned(entry, transaction_id=transactions[0])))
    leave(
        graph,
        record(
            planned(
                entry,
                expected_version=entry.version + 1,
                post_commit_pin=entry.version + 2,
                transaction_id=transactions[1],
            )
        ),
    )
    fresh = reopen(graph)
    assert ids(fresh, STAFF) == ["ada"]
    assert [row.recovery_kind for row in audit.recoveries(fresh)] == ["RolledBack", "RolledBack"]
    assert_healthy(fresh)


# --- branches ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("forward", [True, False], ids=["REC-17-forward", "REC-17-back"])
def test_a_record_of_a_branch_is_judged_on_that_branch(graph: CommitContext, forward: bool) -> None:
    create_branch(graph, FEATURE, MAIN)
    insert(graph, {STAFF: staff(["eve"])}, branch=FEATURE)
    main = graph.manifest.load()
    entry = entry_of(graph, STAFF, FEATURE)
    head = drift(graph, entry.location, staff(["fay"]))
    leave(graph, record(planned(entry, **({} if forward else {"post_commit_pin": 9})), branch=FEATURE))
    fresh = reopen(graph)
    assert ids(fresh, STAFF, FEATURE) == ["ada", "eve", *(["fay"] if forward else [])]
    assert entry_of(fresh, STAFF, FEATURE).version == head_of(fresh, STAFF, FEATURE) == head + (not forward)
    assert fresh.manifest.load() == main
    assert ids(fresh, STAFF) == ["ada"]
    row = only_recovery(fresh)
    assert (row.branch, row.recovery_kind) == (FEATURE, "RolledForward" if forward else "RolledBack")
    assert_healthy(fresh)


@pytest.mark.parametrize("nested", [False, True], ids=["of-main", "of-a-branch"])
def test_a_record_of_a_branch_never_undoes_a_table_it_shares(graph: CommitContext, nested: bool) -> None:
    """A branch forks a table before it writes it, so what moved on a shared line is not this write's."""
    base = MAIN
    if nested:
        base = "base"
        create_branch(graph, base, MAIN)
        insert(graph, {STAFF: staff(["bob"])}, branch=base)
    create_branch(graph, FEATURE, base)
    entry = entry_of(graph, STAFF, FEATURE)
    insert(graph, {STAFF: staff(["ben"])}, branch=base)
    insert(graph, {STAFF: staff(["cleo"])}, branch=base)
    before = picture(graph)
    leave(graph, record(planned(entry, expected_version=999, post_commit_pin=1000), branch=FEATURE))
    fresh = reopen(graph)
    assert picture(fresh) == before
    assert only_recovery(fresh).tables[0].cls == "NoMovement"
    assert_healthy(fresh)


@pytest.mark.parametrize("next_step", ["write", "open"])
def test_the_record_of_a_deleted_branch_is_discarded(graph: CommitContext, next_step: str) -> None:
    """REC-23: a roll-back class record, far above reality."""
    create_branch(graph, FEATURE, MAIN)
    leave(graph, record(planned(entry_of(graph), expected_version=999, post_commit_pin=1000), branch=FEATURE))
    delete_branch(graph, FEATURE)
    if next_step == "write":
        insert(graph, {STAFF: staff(["ben"])})
    fresh = reopen(graph)
    assert list_sidecars(fresh.store) == []
    assert only_recovery(fresh).recovery_kind == "RolledBack"
    assert_healthy(fresh)


def test_a_record_outlives_its_branch(graph: CommitContext) -> None:
    """The branch went while its record could not be settled; its fork goes, the tables of others stay."""
    create_branch(graph, FEATURE, MAIN)
    crash(graph, write(graph, {STAFF: staff(["eve"])}, branch=FEATURE), "mutation.post_phase_b_pre_manifest_commit")
    faulty = FaultyStore(graph.store, [error_before("list", "__recovery", nth=None)])
    delete_branch(connect(graph.root.uri, store=faulty), FEATURE)
    assert len(list_sidecars(graph.store)) == 1
    fresh = reopen(graph)
    assert_healthy(fresh)
    assert only_recovery(fresh).recovery_kind == "RolledBack"


def test_a_record_never_reaches_the_next_branch_of_its_name(graph: CommitContext) -> None:
    create_branch(graph, FEATURE, MAIN)
    crash(graph, write(graph, {STAFF: staff(["eve"])}, branch=FEATURE), "mutation.post_phase_b_pre_manifest_commit")
    faulty = FaultyStore(graph.store, [error_before("list", "__recovery", nth=None)])
    delete_branch(connect(graph.root.uri, store=faulty), FEATURE)
    create_branch(graph, FEATURE, MAIN)
    fresh = reopen(graph)
    assert ids(fresh, STAFF, FEATURE) == ["ada"]
    assert_healthy(fresh)


def test_a_discarded_record_removes_no_table_of_others(graph: CommitContext) -> None:
    """A record says that it creates a table which main publishes."""
    create_branch(graph, FEATURE, MAIN)
    leave(graph, record(planned(entry_of(graph), expected_version=None, post_commit_pin=1), branch=FEATURE))
    faulty = FaultyStore(graph.store, [error_before("list", "__recovery", nth=None)])
    delete_branch(connect(graph.root.uri, store=faulty), FEATURE)
    fresh = reopen(graph)
    assert ids(fresh, STAFF) == ["ada"]
    assert_healthy(fresh)


def test_pending_work_of_one_branch_does_not_stop_another(graph: CommitContext) -> None:
    """REC-24: the error is about the drift on main, and says `repair`."""
    create_branch(graph, FEATURE, MAIN)
    insert(graph, {STAFF: staff(["eve"])}, branch=FEATURE)
    break_invariant(graph, FEATURE)
    leave(graph, record(planned(entry_of(graph), expected_version=999, post_commit_pin=1000), branch=FEATURE))
    insert(graph, {TEAM: team(["labs"])})
    drift(graph, entry_of(graph).location, staff(["zoe"]))
    with pytest.raises(DriftNeedsRepair, match="omnigraph repair") as caught:
        insert(graph, {STAFF: staff(["ben"])})
    assert "open" not in str(caught.value)
    assert caught.value.table_key == STAFF
    assert len(list_sidecars(graph.store)) == 1


# --- forks, new tables, new branches ----------------------------------------------------------------------------------


def test_a_fork_whose_table_was_published_meanwhile_is_dropped(graph: CommitContext) -> None:
    create_branch(graph, FEATURE, MAIN)
    left_behind = write(graph, {STAFF: staff(["eve"])}, branch=FEATURE)
    crash(graph, left_behind, "mutation.post_phase_b_pre_manifest_commit")
    hidden = graph.store.get(f"__recovery/{left_behind.operation_id}.json")
    graph.store.delete(f"__recovery/{left_behind.operation_id}.json")
    insert(graph, {STAFF: staff(["fay"])}, branch=FEATURE)
    graph.store.put(f"__recovery/{left_behind.operation_id}.json", hidden)
    fresh = reopen(graph)
    assert ids(fresh, STAFF, FEATURE) == ["ada", "fay"]
    assert only_recovery(fresh).recovery_kind == "RolledBack"
    assert_healthy(fresh)


@pytest.mark.parametrize("said", ["ours", "unsaid", "foreign"])
@pytest.mark.parametrize("complete", [True, False], ids=["all-moved", "not-all-moved"])
def test_created_tables(graph: CommitContext, said: str, complete: bool) -> None:
    """A table this write made goes forward with it or is removed with it; one that it did not make is left alone."""
    change = SCENARIOS["schema_apply"].plan(graph, MAIN)
    crash(graph, change, "schema_apply.post_phase_b_pre_manifest_commit")
    path = f"__recovery/{change.operation_id}.json"
    left = _json(graph, path)
    if said != "ours":
        left["tables"][1]["transaction_id"] = None if said == "unsaid" else new_ulid()
    if not complete:
        left["tables"][0]["post_commit_pin"] = 9
    leave(graph, left)
    fresh = reopen(graph)
    new_table = left["tables"][1]["table_path"]
    if complete and said != "foreign":
        assert "node:Office" in fresh.manifest.load().by_key
        assert only_recovery(fresh).recovery_kind == "RolledForward"
    else:
        assert "node:Office" not in fresh.manifest.load().by_key
        assert fresh.tables.exists(new_table) == (said == "foreign")
        assert only_recovery(fresh).recovery_kind == "RolledBack"
    assert list_sidecars(fresh.store) == []


@pytest.mark.parametrize("used", ["unused", "written", "branched-from"])
def test_a_branch_made_for_a_write_goes_with_it(graph: CommitContext, used: str) -> None:
    """Unless it is somebody else's by now."""
    create_branch(graph, FEATURE, MAIN)
    prepared = write(graph, {STAFF: staff(["eve"]), TEAM: team(["labs"])}, branch=FEATURE)
    doomed = replace(prepared, branch_created_from=MAIN)
    crash(graph, doomed, "mutation.mid_phase_b")
    hidden = _json(graph, f"__recovery/{doomed.operation_id}.json")
    graph.store.delete(f"__recovery/{doomed.operation_id}.json")
    if used == "written":
        insert(graph, {TEAM: team(["ops"])}, branch=FEATURE)
    if used == "branched-from":
        create_branch(graph, "leaf", FEATURE)
    leave(graph, hidden)
    fresh = reopen(graph)
    assert (FEATURE in branch_names(fresh)) == (used != "unused")
    assert_healthy(fresh)


def test_a_branch_made_for_a_write_stays_when_it_goes_forward(graph: CommitContext) -> None:
    create_branch(graph, FEATURE, MAIN)
    prepared = replace(write(graph, {STAFF: staff(["eve"])}, branch=FEATURE), branch_created_from=MAIN)
    crash(graph, prepared, "mutation.post_phase_b_pre_manifest_commit")
    fresh = reopen(graph)
    assert ids(fresh, STAFF, FEATURE) == ["ada", "eve"]
    assert_healthy(fresh)


def _json(context: CommitContext, path: str) -> Json:
    import orjson

    return dict(orjson.loads(context.store.get(path)))


# --- schema changes ---------------------------------------------------------------------------------------------------


def test_a_schema_change_without_its_staged_files_is_rolled_back(graph: CommitContext) -> None:
    before = picture(graph)
    crash(graph, SCENARIOS["schema_apply"].plan(graph, MAIN), "schema_apply.post_phase_b_pre_manifest_commit")
    graph.store.delete("_schema.ir.json.staged")
    fresh = reopen(graph)
    assert picture(fresh) == before
    assert only_recovery(fresh).recovery_kind == "RolledBack"
    assert_healthy(fresh)


def test_a_schema_change_with_other_staged_files_is_rolled_back(graph: CommitContext) -> None:
    before = picture(graph)
    crash(graph, SCENARIOS["schema_apply"].plan(graph, MAIN), "schema_apply.post_phase_b_pre_manifest_commit")
    graph.store.put("_schema.ir.json.staged", graph.store.get("_schema.ir.json"))
    fresh = reopen(graph)
    assert picture(fresh) == before
    assert_healthy(fresh)


def test_a_schema_change_before_confirmation_existed_is_judged_loosely(graph: CommitContext) -> None:
    """REC-08: a version 1 record, and the table is two versions on."""
    change = SCENARIOS["schema_apply"].plan(graph, MAIN)
    crash(graph, change, "schema_apply.post_phase_b_pre_manifest_commit")
    drift(graph, entry_of(graph).location, graph.tables.open_head(entry_of(graph).location).read())  # type: ignore[union-attr]
    left = _json(graph, f"__recovery/{change.operation_id}.json")
    leave(graph, {**left, "schema_version": 1})
    fresh = reopen(graph)
    assert only_recovery(fresh).recovery_kind == "RolledForward"
    assert "node:Squad" in fresh.manifest.load().by_key


READ_ONLY = [
    pytest.param("schema_apply.after_promote", True, id="REC-22-published-and-live"),
    pytest.param("schema_apply.post_phase_c", False, id="REC-22-published-not-live"),
    pytest.param("schema_apply.before_promote", False, id="REC-22-flagged-not-live"),
    pytest.param("schema_apply.post_phase_b_pre_manifest_commit", False, id="REC-22-not-published"),
    pytest.param("schema_apply.post_phase_a", False, id="REC-22-nothing-moved"),
]


@pytest.mark.parametrize(("failpoint", "accepted"), READ_ONLY)
def test_a_read_only_open_of_a_pending_schema_change(graph: CommitContext, failpoint: str, accepted: bool) -> None:
    crash(graph, SCENARIOS["schema_apply"].plan(graph, MAIN), failpoint)
    before = tree(graph)
    if accepted:
        assert "desk" in open_for_reading(again(graph)).source
    else:
        with pytest.raises(RecoveryRequired, match="read-write"):
            open_for_reading(again(graph))
    assert tree(graph) == before, "a read-only open changed something"
    reopen(graph)
    open_for_reading(again(graph))


@pytest.mark.parametrize(
    ("changes", "accepted"),
    [
        pytest.param({"published": True, "schema_target": "live"}, True, id="REC-22-published-target-live"),
        pytest.param({"published": False, "schema_target": "live"}, False, id="REC-22-not-published-target-live"),
        pytest.param({"published": True, "schema_target": "0" * 64}, False, id="REC-22-published-target-other"),
    ],
)
def test_a_read_only_open_by_hand(graph: CommitContext, changes: Json, accepted: bool) -> None:
    if changes["schema_target"] == "live":
        changes = {**changes, "schema_target": _json(graph, "__schema_state.json")["ir_hash"]}
    leave(graph, record(planned(entry_of(graph)), kind="SchemaApply", **changes))
    if accepted:
        open_for_reading(again(graph))
    else:
        with pytest.raises(RecoveryRequired):
            open_for_reading(again(graph))


@pytest.mark.parametrize("failpoint", ["mutation.post_phase_a", "mutation.mid_phase_b", "mutation.post_phase_c"])
def test_a_read_only_open_leaves_other_records_alone(graph: CommitContext, failpoint: str) -> None:
    crash(graph, write(graph, {STAFF: staff(["ben"]), TEAM: team(["labs"])}), failpoint)
    before = tree(graph)
    fresh = again(graph)
    open_for_reading(fresh)
    assert ids(fresh, STAFF) == (["ada", "ben"] if failpoint == "mutation.post_phase_c" else ["ada"])
    assert tree(graph) == before


# --- what is promised besides the tables ------------------------------------------------------------------------------


def test_a_conditional_write_goes_forward_only_on_its_head(graph: CommitContext) -> None:
    head = graph.manifest.load().head
    prepared = write(graph, {STAFF: staff(["ben"])}, if_commit=head)
    crash(graph, prepared, "mutation.post_phase_b_pre_manifest_commit")
    # A process that does not respect the lock publishes something else meanwhile.
    publish(graph, MAIN, [], [], lineage())
    fresh = reopen(graph)
    assert ids(fresh, STAFF) == ["ada"]
    assert only_recovery(fresh).recovery_kind == "RolledBack"
    assert_healthy(fresh)


def test_an_idempotency_key_that_is_taken_meanwhile_takes_the_write_back(graph: CommitContext) -> None:
    """Rolling forward could never succeed, so it may not be tried for ever."""
    crash(graph, SCENARIOS["mutation"].plan(graph, MAIN), "mutation.post_phase_b_pre_manifest_commit")
    other = next(iter(SCENARIOS["mutation"].plan(graph, MAIN).updates))
    publish(graph, MAIN, [other], [], lineage())
    before = picture(graph)
    fresh = reopen(graph)
    assert picture(fresh) == before
    assert only_recovery(fresh).recovery_kind == "RolledBack"
    assert_healthy(fresh)


def test_the_kind_and_receipt_of_a_bare_record(graph: CommitContext) -> None:
    """Without our additions a record still says its key; the commit's kind follows from the writer's."""
    entry = entry_of(graph)
    drift(graph, entry.location, staff(["ben"]))
    left = record(planned(entry), kind="Load")
    left["commit"]["idempotency_key"] = "once"
    leave(graph, left)
    fresh = reopen(graph)
    commit = fresh.manifest.find_commit(MAIN, left["commit"]["id"])
    receipt = fresh.manifest.receipt(MAIN, "once")
    assert commit is not None
    assert receipt is not None
    assert (commit.kind, receipt.commit_id) == ("load", commit.id)


# --- what can not be settled ------------------------------------------------------------------------------------------


def break_invariant(context: CommitContext, branch: str = MAIN) -> None:
    """Publish a version that storage does not have."""
    entry = entry_of(context, STAFF, branch)
    publish(context, branch, [SetTable(replace(entry, version=entry.version + 50))], [], lineage())


def test_a_broken_invariant_aborts_loudly(graph: CommitContext) -> None:
    """REC-01 at open: nothing is changed, the record stays until an operator sets it aside."""
    entry = entry_of(graph)
    operation_id = leave(graph, record(planned(entry)))
    break_invariant(graph)
    before = tree(graph)
    for attempt in (lambda: reopen(graph), lambda: insert(graph, {TEAM: team(["labs"])}), lambda: heal(graph)):
        with pytest.raises(RecoveryRequired, match=f"omnigraph recovery discard {operation_id} --confirm") as caught:
            attempt()
        assert caught.value.operation_id == operation_id
    # The refused write has staged a file that nobody references.
    assert before.items() <= tree(graph).items()
    assert list_sidecars(graph.store) == [operation_id]
    aside = discard_sidecar(graph.store, operation_id)
    assert graph.store.exists(aside)
    reopen(graph)
    insert(graph, {TEAM: team(["labs"])})


UNREADABLE = [
    pytest.param(b"{ not json", "is not valid JSON", id="REC-20"),
    pytest.param(b'{"schema_version": 3}', "upgrade omnigraph", id="REC-21-newer-version"),
    pytest.param(b"{}", "incomplete", id="REC-18-incomplete"),
]


@pytest.mark.parametrize(("data", "reason"), UNREADABLE)
def test_an_unreadable_record_is_refused_and_kept(graph: CommitContext, data: bytes, reason: str) -> None:
    operation_id = new_ulid()
    path = f"__recovery/{operation_id}.json"
    graph.store.put(path, data)
    for attempt in (lambda: insert(graph, {STAFF: staff(["ben"])}), lambda: reopen(graph), lambda: heal(graph)):
        with pytest.raises(UnreadableSidecar, match=reason) as caught:
            attempt()
        assert path in str(caught.value)
    open_for_reading(again(graph))
    assert graph.store.get(path) == data
    assert ids(graph, STAFF) == ["ada"]
    discard_sidecar(graph.store, operation_id)
    insert(graph, {STAFF: staff(["ben"])})
    assert ids(reopen(graph), STAFF) == ["ada", "ben"]


@pytest.mark.parametrize("what", ["write", "open"])
def test_a_failed_listing_is_never_skipped(graph: CommitContext, what: str) -> None:
    crash(graph, write(graph, {STAFF: staff(["ben"]), TEAM: team(["labs"])}), "mutation.mid_phase_b")
    faulty = connect(graph.root.uri, store=FaultyStore(open_store(graph.root), [error_before("list", "__recovery")]))
    with pytest.raises(StorageError):
        open_for_writing(faulty) if what == "open" else insert(faulty, {STAFF: staff(["cleo"])})
    assert len(list_sidecars(graph.store)) == 1
    insert_restarting(faulty, "cleo")
    assert ids(faulty, STAFF) == ["ada", "cleo"]
    assert_healthy(faulty)


@pytest.mark.parametrize("failpoint", ["mutation.mid_phase_b", "mutation.post_phase_b_pre_manifest_commit"])
@pytest.mark.parametrize("moment", ["recovery.record_audit", "table_commit.lost_acknowledgement", "recovery.after_audit"])
def test_an_audit_that_fails_keeps_the_record(graph: CommitContext, failpoint: str, moment: str) -> None:
    """REC-19: the next pass records exactly one row, and it says what was done."""
    prepared = write(graph, {STAFF: staff(["ben"]), TEAM: team(["labs"])})
    crash(graph, prepared, failpoint)
    before = entry_of(graph)
    action = _fail_on_audit(graph) if moment == "table_commit.lost_acknowledgement" else "error"
    with failpoints.armed(moment, action), pytest.raises(OmnigraphError):
        open_for_writing(again(graph))
    assert len(list_sidecars(graph.store)) == 1
    fresh = reopen(graph)
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
def test_drift_without_a_record_is_refused(graph: CommitContext, branch: str) -> None:
    if branch != MAIN:
        create_branch(graph, branch, MAIN)
        insert(graph, {STAFF: staff(["eve"])}, branch=branch)
    entry = entry_of(graph, STAFF, branch)
    drift(graph, entry.location, staff(["zoe"]))
    before = tree(graph)
    with pytest.raises(DriftNeedsRepair, match="omnigraph repair"):
        insert(graph, {STAFF: staff(["ben"])}, branch=branch)
    assert list_sidecars(graph.store) == []
    assert before.items() <= tree(graph).items()
    insert(graph, {TEAM: team(["labs"])}, branch=branch)
    assert "zoe" not in ids(reopen(graph), STAFF, branch)


def test_drift_with_a_pending_record_names_the_record(graph: CommitContext) -> None:
    """REC-25: another writer of this branch is in its phase B, or recovery has not seen it yet."""
    entry = entry_of(graph)
    drift(graph, entry.location, staff(["zoe"]))
    operation_id = leave(graph, record(planned(entry)))
    faulty = FaultyStore(open_store(graph.root), [stale_list("__recovery")])
    with pytest.raises(RecoveryRequired, match=operation_id) as caught:
        insert(connect(graph.root.uri, store=faulty), {STAFF: staff(["ben"])})
    assert "repair" not in str(caught.value)
    assert caught.value.operation_id == operation_id


# --- who heals, and when ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("failpoint", ["mutation.mid_phase_b", "mutation.post_phase_b_pre_manifest_commit"])
@pytest.mark.parametrize("healer", ["same-handle", "older-handle", "other-branch"])
def test_the_next_write_heals(graph: CommitContext, failpoint: str, healer: str) -> None:
    """A server needs no restart: any handle settles what a dead writer left, before its own write."""
    create_branch(graph, FEATURE, MAIN)
    older = again(graph)
    ids(older, STAFF)
    crash(graph, write(graph, {STAFF: staff(["ben"]), TEAM: team(["labs"])}), failpoint)
    handle = graph if healer == "same-handle" else older
    branch = FEATURE if healer == "other-branch" else MAIN
    insert_restarting(handle, "cleo", branch)
    settled = ["ada", "ben"] if "post" in failpoint else ["ada"]
    assert ids(handle, STAFF) == sorted(settled + (["cleo"] if branch == MAIN else []))
    assert only_recovery(handle).recovery_kind == ("RolledForward" if "post" in failpoint else "RolledBack")
    assert_healthy(handle)


def test_a_live_writer_is_left_alone(graph: CommitContext) -> None:
    """While the branch is held, a pass goes by; afterwards it heals."""
    crash(graph, write(graph, {STAFF: staff(["ben"]), TEAM: team(["labs"])}), "mutation.mid_phase_b")
    before = tree(graph)
    with another_process_holds(graph, MAIN):
        assert heal(graph) == []
        open_for_writing(again(graph))
        assert tree(graph) == before
    assert len(heal(graph)) == 1
    assert_healthy(graph)


@contextmanager
def another_process_holds(context: CommitContext, branch: str) -> Iterator[None]:
    """The lock of a branch in the hands of another thread, which is all that this process can tell."""
    import threading

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


def test_a_record_that_went_while_a_pass_waited_is_not_judged(graph: CommitContext) -> None:
    """Between the listing and the lock its writer has finished: nothing is recorded and nothing is undone."""
    entry = entry_of(graph)
    operation_id = leave(graph, record(planned(entry, expected_version=999)))
    fresh = again(graph)
    true_hold = fresh.locks.try_hold

    def finish_first(branch: str) -> Any:
        graph.store.delete(f"__recovery/{operation_id}.json")
        return true_hold(branch)

    fresh.locks.try_hold = finish_first  # type: ignore[method-assign]
    assert heal(fresh) == []
    assert audit.recoveries(fresh) == []


# --- a roll-back that meets others ------------------------------------------------------------------------------------


@pytest.mark.parametrize("moment", ["recovery.before_undo", "undo.before_commit"])
def test_a_roll_back_keeps_a_concurrent_commit(graph: CommitContext, moment: str) -> None:
    """A program that does not know our locks appends while recovery undoes: its rows are still in the table."""
    entry, operation_id = left_by_steps(graph, {}, 2, {})
    interrupt = iter([lambda: drift(graph, entry.location, staff(["zoe"]))])

    def once() -> None:
        for intrude in interrupt:
            intrude()

    with failpoints.armed(moment, once):
        fresh = reopen(graph)
    assert ids(fresh, STAFF) == ["ada"], "what nobody published must not be seen"
    stored = fresh.tables.open_head(entry.location)
    assert stored is not None
    assert sorted(stored.read(["id"])["id"].to_pylist()) == ["ada", "zoe"]
    assert only_recovery(fresh).operation_id == operation_id
    with pytest.raises(DriftNeedsRepair):
        insert(fresh, {STAFF: staff(["ben"])})
    insert(fresh, {TEAM: team(["labs"])})
    assert list_sidecars(fresh.store) == []


def test_a_roll_back_keeps_a_concurrent_publish(graph: CommitContext) -> None:
    """A writer without locks publishes another table while recovery undoes; both are in the history."""
    left_by_steps(graph, {}, 2, {})
    other = again(graph)
    entry = entry_of(other, TEAM)
    interrupt = iter([1])

    def once() -> None:
        for _ in interrupt:
            head = drift(other, entry.location, team(["labs"]))
            publish(other, MAIN, [SetTable(replace(entry, version=head, row_count=2))], [], lineage())

    with failpoints.armed("publisher.before_commit", once):
        fresh = reopen(graph)
    assert ids(fresh, STAFF) == ["ada"]
    assert ids(fresh, TEAM) == ["core", "labs"]
    assert_healthy(fresh)


def test_the_effect_of_another_pending_writer_is_not_undone(graph: CommitContext) -> None:
    """A dead writer moved nothing; the head it finds is of a writer that is still to be settled, forward."""
    entry, transaction_id = entry_of(graph), new_ulid()
    leave(graph, record(planned(entry, transaction_id=new_ulid(), post_commit_pin=9)))
    move(graph, entry, staff(["ben"]), transaction_id)
    leave(graph, record(planned(entry, transaction_id=transaction_id)))
    fresh = reopen(graph)
    assert ids(fresh, STAFF) == ["ada", "ben"]
    assert [row.recovery_kind for row in audit.recoveries(fresh)] == ["RolledBack", "RolledForward"]
    assert_healthy(fresh)


def test_a_half_made_fork_is_removed(graph: CommitContext) -> None:
    """Lance makes the files of a fork before its ref; a writer that died in between left files without a ref."""
    create_branch(graph, FEATURE, MAIN)
    prepared = write(graph, {STAFF: staff(["eve"])}, branch=FEATURE)
    crash(graph, prepared, "mutation.post_phase_b_pre_manifest_commit")
    path = entry_of(graph).path
    (ref,) = [info.path for info in graph.store.list(f"{path}/_refs/branches")]
    graph.store.delete(ref)
    left = _json(graph, f"__recovery/{prepared.operation_id}.json")
    left["tables"][0]["post_commit_pin"] = 9
    leave(graph, left)
    fresh = reopen(graph)
    assert not fresh.store.exists(Location(path, prepared.operation_id).dataset_path)
    insert(fresh, {STAFF: staff(["fay"])}, branch=FEATURE)
    assert ids(fresh, STAFF, FEATURE) == ["ada", "fay"]
    assert_healthy(fresh)


def test_kinds_are_all_covered() -> None:
    assert {scenario.kind for scenario in SCENARIOS.values()} == set(Kind)
