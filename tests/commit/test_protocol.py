"""The commit protocol: the order of its phases, what is on disk between them, and what a caller is told."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from omnigraph import failpoints
from omnigraph.commit import audit
from omnigraph.commit.branches import create_branch
from omnigraph.commit.context import CommitContext
from omnigraph.commit.model import MAIN
from omnigraph.commit.protocol import Step, TableEffect, Write, execute
from omnigraph.commit.publisher import publish
from omnigraph.commit.recovery import pending
from omnigraph.commit.sidecar import Kind, Sidecar, list_sidecars
from omnigraph.commit.updates import DropTable, RecordReceipt, SetTable
from omnigraph.errors import (
    BadRequest,
    BranchNotFound,
    CommitStateUnknown,
    ExpectedVersionMismatch,
    ManifestContention,
    PreconditionFailed,
    ReadSetChanged,
    RecoveryRequired,
)
from omnigraph.graph.lifecycle import connect
from omnigraph.storage.faults import Fault, FaultyStore, error_after, error_before
from omnigraph.storage.objects import open_store
from omnigraph.storage.tables.staged import Staged
from omnigraph.storage.tables.table import Table
from tests.commit.aftermath import at
from tests.commit.handmade import drift
from tests.commit.healthy import assert_healthy, picture
from tests.commit.org import (
    MEMBER_OF,
    STAFF,
    TEAM,
    again,
    ids,
    insert,
    lineage,
    member_of,
    new_graph,
    staff,
    team,
    write,
)
from tests.commit.scenarios import ACTOR, FEATURE, FIRST_WRITE, MAIN_LINE, SCENARIOS, branch_of, fill, prepare


@pytest.fixture
def graph(tmp_path: Path) -> CommitContext:
    """A filled graph with a branch that shares its tables and one that can be merged."""
    context = new_graph(str(tmp_path / "graph"))
    fill(context)
    prepare(context, FIRST_WRITE)
    return context


# --- the order of things ----------------------------------------------------------------------------------------------

ORDERS = {
    "mutation": [
        "mutation.pre_phase_a",
        "recovery.sidecar_write",
        "mutation.post_phase_a",
        "table_commit.before_commit",
        "mutation.mid_phase_b",
        "table_commit.before_commit",
        "mutation.post_phase_b_pre_manifest_commit",
        "publisher.before_commit",
        "publisher.after_commit",
        "mutation.post_phase_c",
        "recovery.sidecar_delete",
    ],
    "branch_merge": [
        "branch_merge.pre_phase_a",
        "recovery.sidecar_write",
        "branch_merge.post_phase_a",
        "table_commit.before_commit",
        "branch_merge.after_append",
        "table_commit.before_commit",
        "branch_merge.after_upsert",
        "table_commit.before_commit",
        "branch_merge.after_delete",
        "branch_merge.mid_phase_b",
        "table_commit.before_commit",
        "recovery.sidecar_write",
        "branch_merge.post_confirm",
        "branch_merge.post_phase_b_pre_manifest_commit",
        "publisher.before_commit",
        "publisher.after_commit",
        "branch_merge.post_phase_c",
        "recovery.sidecar_delete",
    ],
    "schema_apply": [
        "schema_apply.pre_phase_a",
        "recovery.sidecar_write",
        "schema_apply.post_phase_a",
        "table_commit.before_commit",
        "schema_apply.mid_phase_b",
        "schema_apply.post_phase_b_pre_manifest_commit",
        "publisher.before_commit",
        "publisher.after_commit",
        "schema_apply.post_phase_c",
        "recovery.sidecar_write",
        "schema_apply.before_promote",
        "schema_apply.after_promote",
        "recovery.sidecar_delete",
    ],
}


@pytest.mark.parametrize("writer", ORDERS)
def test_phases_come_in_order(graph: CommitContext, writer: str) -> None:
    passed: list[str] = []
    with ExitStack() as stack:
        for name in set(ORDERS[writer]):
            stack.enter_context(failpoints.armed(name, partial(passed.append, name)))
        execute(graph, SCENARIOS[writer].plan(graph, MAIN))
    assert passed == ORDERS[writer]


def head_moved(graph: CommitContext) -> bool:
    entry = graph.manifest.load().by_key[STAFF]
    return graph.tables.head_version(entry.location) != entry.version


def test_what_is_on_disk_between_the_phases(graph: CommitContext) -> None:
    prepared = SCENARIOS["mutation"].plan(graph, MAIN)
    seen: dict[str, tuple[int, bool, bool]] = {}

    def look(name: str) -> None:
        fresh = again(graph)
        published = fresh.manifest.find_commit(MAIN, prepared.lineage.id) is not None
        seen[name] = (len(list_sidecars(fresh.store)), head_moved(fresh), published)

    names = ["pre_phase_a", "post_phase_a", "post_phase_b_pre_manifest_commit", "post_phase_c"]
    with ExitStack() as stack:
        for name in names:
            stack.enter_context(failpoints.armed(f"mutation.{name}", partial(look, name)))
        execute(graph, prepared)
    look("end")
    assert seen == {
        "pre_phase_a": (0, False, False),
        "post_phase_a": (1, False, False),
        "post_phase_b_pre_manifest_commit": (1, True, False),
        "post_phase_c": (1, False, True),
        "end": (0, False, True),
    }


def record_at(graph: CommitContext, prepared: Write, failpoint: str) -> Sidecar:
    """The recovery record as it is on disk when a failpoint is passed."""
    found: list[Sidecar] = []
    with at(failpoint, lambda: found.extend(pending(again(graph)))):
        execute(graph, prepared)
    (record,) = found
    return record


@pytest.mark.parametrize("branch", [MAIN, FEATURE])
@pytest.mark.parametrize("writer", sorted(set(SCENARIOS) - {"schema_apply"}))
def test_the_record_says_what_is_going_to_happen(graph: CommitContext, writer: str, branch: str) -> None:
    prepared = SCENARIOS[writer].plan(graph, branch)
    record = record_at(graph, prepared, f"{writer}.post_phase_a")
    assert (record.operation_id, record.kind, record.branch) == (prepared.operation_id, prepared.kind, branch)
    assert (record.actor_id, record.commit.id) == (ACTOR, prepared.lineage.id)
    assert (record.commit.created_at, record.commit.merged_parent) == (
        prepared.lineage.created_at,
        prepared.lineage.merged_parent,
    )
    for effect, planned in zip(prepared.effects, record.tables, strict=True):
        entry = effect.entry
        assert (planned.table_key, planned.table_path) == (entry.key, entry.path)
        assert (planned.expected_version, planned.post_commit_pin) == (entry.version, entry.version + len(effect.steps))
        assert planned.confirmed_version is None
        if branch == MAIN:
            assert (planned.table_branch, planned.forked_from) == (None, None)
        else:
            assert planned.table_branch == record.operation_id, "a fork is named by the operation"
            assert planned.forked_from is not None
            assert (planned.forked_from.branch, planned.forked_from.version) == (entry.branch, entry.version)
    after = graph.manifest.load(branch)
    for planned in record.tables:
        entry = after.by_key[planned.table_key]
        assert entry.branch == planned.table_branch
        assert prepared.kind is Kind.OPTIMIZE or entry.version == planned.post_commit_pin


def test_the_record_of_a_schema_change(graph: CommitContext) -> None:
    prepared = SCENARIOS["schema_apply"].plan(graph, MAIN)
    renamed, dropped = prepared.updates
    assert isinstance(renamed, SetTable)
    assert isinstance(dropped, DropTable)
    team_path, dropped_path = renamed.entry.path, dropped.entry.path
    record = record_at(graph, prepared, "schema_apply.post_phase_a")
    assert record.tables[1].expected_version is None
    assert record.renamed == ((team_path, "node:Squad"),)
    assert record.dropped == (dropped_path,)
    assert not record.published
    assert record.schema_target is not None
    assert graph.store.exists(f"_schemas/{record.schema_target}.ir.json")


def test_a_schema_change_says_when_it_is_published(graph: CommitContext) -> None:
    record = record_at(graph, SCENARIOS["schema_apply"].plan(graph, MAIN), "schema_apply.before_promote")
    assert record.published


def test_a_merge_confirms_the_version_every_table_reached(graph: CommitContext) -> None:
    record = record_at(graph, SCENARIOS["branch_merge"].plan(graph, MAIN), "branch_merge.post_confirm")
    reached = {entry.path: entry.version for entry in graph.manifest.load().tables.values()}
    assert [table.confirmed_version for table in record.tables] == [
        reached[table.table_path] for table in record.tables
    ]


def test_every_table_commit_carries_its_transaction_id(graph: CommitContext) -> None:
    record = record_at(graph, SCENARIOS["mutation"].plan(graph, MAIN), "mutation.post_phase_a")
    for planned in record.tables:
        entry = graph.manifest.load().by_key[planned.table_key]
        assert graph.tables.created_by(entry.location, entry.version) == planned.transaction_id


# --- before the first effect ------------------------------------------------------------------------------------------


def assert_refused(graph: CommitContext, prepared: Write, error: type[Exception]) -> None:
    """It is refused before anything is written: no record, no movement, no audit row."""
    before, version = picture(graph), graph.manifest.load().version
    records: list[str] = []
    with failpoints.armed("recovery.sidecar_write", lambda: records.append("written")), pytest.raises(error):
        execute(graph, prepared)
    assert records == []
    assert (picture(graph), graph.manifest.load().version) == (before, version)
    assert audit.recoveries(graph) == []
    assert_healthy(graph)


def test_a_written_table_that_moved(graph: CommitContext) -> None:
    prepared = write(graph, {STAFF: staff(["kim"])})
    insert(again(graph), {STAFF: staff(["lee"])})
    assert_refused(graph, prepared, ExpectedVersionMismatch)


def test_a_read_table_that_moved(graph: CommitContext) -> None:
    prepared = write(graph, {STAFF: staff(["kim"])}, reads=[TEAM])
    insert(again(graph), {TEAM: team(["late"])})
    assert_refused(graph, prepared, ReadSetChanged)


def test_another_table_that_moved_does_not_matter(graph: CommitContext) -> None:
    prepared = write(graph, {STAFF: staff(["kim"])})
    insert(again(graph), {TEAM: team(["late"])})
    execute(graph, prepared)
    assert "kim" in ids(graph, STAFF)


def test_a_head_that_moved(graph: CommitContext) -> None:
    prepared = write(graph, {STAFF: staff(["kim"])}, if_commit=graph.manifest.load().head)
    insert(again(graph), {TEAM: team(["late"])})
    assert_refused(graph, prepared, PreconditionFailed)


def test_an_idempotency_key_that_is_taken(graph: CommitContext) -> None:
    publish(graph, MAIN, [RecordReceipt("once", "another request", {})], [], lineage())
    assert_refused(graph, SCENARIOS["mutation"].plan(graph, MAIN), BadRequest)


def test_a_branch_that_is_gone(graph: CommitContext) -> None:
    prepared = replace(write(graph, {STAFF: staff(["kim"])}), branch="nowhere")
    assert_refused(graph, prepared, BranchNotFound)


def test_a_lock_that_was_lost(graph: CommitContext) -> None:
    """Nothing is written by one who is no longer the only one."""
    prepared = write(graph, {STAFF: staff(["kim"])})
    lock_file = Path(graph.root.uri) / "__locks" / MAIN
    with at("mutation.pre_phase_a", lock_file.unlink):
        assert_refused(graph, prepared, ManifestContention)


@pytest.mark.parametrize("fault", [error_before, error_after], ids=["refused", "answer-lost"])
@pytest.mark.parametrize("writer", ["mutation", "schema_apply"])
def test_a_record_that_can_not_be_written(tmp_path: Path, writer: str, fault: Callable[..., Fault]) -> None:
    """A failed put aborts the write before any effect, also when it had happened."""
    context = new_graph(str(tmp_path / "graph"))
    fill(context)
    before = picture(context)
    store = FaultyStore(open_store(context.root), [fault("put", "__recovery/*")])
    faulty = connect(context.root.uri, store=store)
    with pytest.raises(Exception, match="injected"):
        execute(faulty, SCENARIOS[writer].plan(faulty, MAIN))
    assert picture(context) == before
    assert audit.recoveries(context) == []
    assert_healthy(context)


# --- in B and after ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", [MAIN_LINE, FIRST_WRITE])
def test_a_table_that_somebody_moves_in_phase_b(graph: CommitContext, place: str) -> None:
    """One who ignores the lock comes in between: it keeps its commit, this write is undone and says which table."""
    branch = branch_of(place)
    if place == FIRST_WRITE:
        insert(graph, {TEAM: team(["own"])}, branch=branch)
    prepared = write(graph, {STAFF: staff(["kim"]), TEAM: team(["late"])}, branch=branch)
    before = picture(graph)
    entry = graph.manifest.load(branch).by_key[TEAM]
    with (
        at("mutation.mid_phase_b", lambda: drift(graph, entry.location, team(["foreign"]))),
        pytest.raises(ExpectedVersionMismatch) as caught,
    ):
        execute(graph, prepared)
    assert (caught.value.table_key, caught.value.expected) == (TEAM, entry.version)
    assert picture(graph) == before
    stored = graph.tables.open_head(entry.location)
    assert stored is not None
    assert {"foreign", "late"} & set(stored.read(["id"])["id"].to_pylist()) == {"foreign"}
    assert list_sidecars(graph.store) == []
    (row,) = audit.recoveries(graph)
    assert (row.operation_id, row.recovery_kind) == (prepared.operation_id, "RolledBack")
    insert(graph, {STAFF: staff(["kim"])}, branch=branch)


def test_a_failure_after_phase_b_is_settled_by_the_writer(graph: CommitContext) -> None:
    """Everything has moved, so the write is finished; the record says for whom."""
    prepared = write(graph, {STAFF: staff(["kim"]), TEAM: team(["late"])})
    with failpoints.armed("mutation.post_phase_b_pre_manifest_commit"):
        state = execute(graph, prepared)
    assert state.head == prepared.lineage.id
    assert "kim" in ids(graph, STAFF)
    (row,) = audit.recoveries(graph)
    assert (row.recovery_kind, row.recovery_for_actor) == ("RolledForward", "act-test")
    assert_healthy(graph)


def test_a_requirement_that_breaks_after_phase_b_is_never_rolled_forward(graph: CommitContext) -> None:
    """One who ignores the lock changes what this write has read: its check no longer holds."""
    prepared = write(graph, {STAFF: staff(["kim"])}, reads=[TEAM])
    entry = graph.manifest.load().by_key[TEAM]

    def intrude() -> None:
        head = drift(graph, entry.location, team(["late"]))
        moved = replace(entry, version=head, row_count=entry.row_count + 1)
        publish(again(graph), MAIN, [SetTable(moved)], [], lineage())

    with at("mutation.post_phase_b_pre_manifest_commit", intrude), pytest.raises(ReadSetChanged):
        execute(graph, prepared)
    assert "kim" not in ids(graph, STAFF)
    assert "late" in ids(graph, TEAM)
    assert_healthy(graph)


def test_an_idempotency_key_that_is_taken_in_phase_b(graph: CommitContext) -> None:
    """One who ignores the lock was faster with the same key: this write is undone, and not tried for ever."""
    taken = RecordReceipt("once", "another request", {})
    prepared = SCENARIOS["mutation"].plan(graph, MAIN)
    before = picture(graph)
    intrude = partial(publish, again(graph), MAIN, [taken], [], lineage())
    with at("mutation.post_phase_b_pre_manifest_commit", intrude), pytest.raises(BadRequest, match="once"):
        execute(graph, prepared)
    assert picture(graph) == before
    assert_healthy(graph)
    insert(graph, {STAFF: staff(["kim"])})


@pytest.mark.parametrize(
    ("failpoint", "error"),
    [
        ("recovery.before_undo", RecoveryRequired),
        ("publisher.before_commit", RecoveryRequired),
        ("recovery.record_audit", RecoveryRequired),
    ],
)
def test_what_can_not_be_settled_says_how_to_look_it_up(
    graph: CommitContext, failpoint: str, error: type[RecoveryRequired]
) -> None:
    prepared = write(graph, {STAFF: staff(["kim"]), TEAM: team(["late"])})
    with failpoints.armed(failpoint), failpoints.armed("mutation.mid_phase_b"), pytest.raises(error) as caught:
        execute(graph, prepared)
    assert caught.value.operation_id == prepared.operation_id
    assert prepared.lineage.id in str(caught.value)
    assert "recovery list" in str(caught.value)
    assert list_sidecars(graph.store) == [prepared.operation_id]


def test_a_publish_that_nobody_can_tell_about(graph: CommitContext, monkeypatch: pytest.MonkeyPatch) -> None:
    """The manifest can not be read after the put: the caller learns the commit id, never a plain failure."""
    prepared = write(graph, {STAFF: staff(["kim"])})

    def unreadable(branch: str, commit_id: str) -> None:
        raise failpoints.FailpointError("the store does not answer", name="publisher.after_commit")

    with (
        monkeypatch.context() as patched,
        failpoints.armed("publisher.after_commit"),
        pytest.raises(CommitStateUnknown) as caught,
    ):
        patched.setattr(graph.manifest, "find_commit", unreadable)
        execute(graph, prepared)
    assert caught.value.commit_id == prepared.lineage.id
    insert(graph, {TEAM: team(["late"])})
    assert "kim" in ids(graph, STAFF)
    assert_healthy(graph)


def test_a_record_that_can_not_be_deleted_is_only_a_warning(graph: CommitContext) -> None:
    with failpoints.armed("recovery.sidecar_delete"):
        insert(graph, {STAFF: staff(["kim"])})
    assert "kim" in ids(graph, STAFF)
    assert len(list_sidecars(graph.store)) == 1
    insert(graph, {TEAM: team(["late"])})
    (row,) = audit.recoveries(graph)
    assert row.recovery_kind == "RolledForward"
    assert_healthy(graph)


def test_an_error_of_a_writer_itself_leaves_nothing(graph: CommitContext) -> None:
    """What is staged in phase B may raise anything; the next write takes back what had moved."""
    state = graph.manifest.load()
    before = picture(graph)

    def broken(table: Table) -> Staged:
        raise ZeroDivisionError

    sound = write(graph, {STAFF: staff(["kim"])})
    effects = (*sound.effects, TableEffect(state.by_key[TEAM], (Step(broken),)))
    with pytest.raises(ZeroDivisionError):
        execute(graph, replace(sound, effects=effects))
    assert picture(graph) == before
    insert(graph, {MEMBER_OF: member_of([("ada", "ops")])})
    assert ids(graph, STAFF) == [row["id"] for row in before.branches[MAIN][STAFF]]
    assert_healthy(graph)


# --- one at a time ----------------------------------------------------------------------------------------------------


def test_writers_of_one_branch_take_turns(graph: CommitContext) -> None:
    """While one is between A and D another one waits, and then finds the branch as the first one left it."""
    inside, together = threading.Semaphore(1), []

    def alone() -> None:
        together.append(inside.acquire(blocking=False))
        time.sleep(0.01)
        inside.release()

    def one(number: int) -> None:
        context = again(graph)
        while True:
            try:
                insert(context, {STAFF: staff([f"t{number}"])})
                return
            except ExpectedVersionMismatch:
                continue

    with failpoints.armed("mutation.post_phase_b_pre_manifest_commit", alone), ThreadPoolExecutor(4) as threads:
        list(threads.map(one, range(8)))
    assert together == [True] * 8
    assert {f"t{number}" for number in range(8)} <= set(ids(graph, STAFF))
    assert_healthy(graph)


def test_writers_of_two_branches_do_not_wait_for_each_other(graph: CommitContext) -> None:
    create_branch(graph, "other", MAIN)

    def write_other() -> None:
        with ThreadPoolExecutor(1) as thread:
            thread.submit(insert, again(graph), {STAFF: staff(["kim"])}, branch="other").result()

    with at("mutation.post_phase_b_pre_manifest_commit", write_other):
        insert(graph, {STAFF: staff(["lee"])})
    assert "kim" in ids(graph, STAFF, "other")
    assert "lee" in ids(graph, STAFF)
    assert_healthy(graph)
