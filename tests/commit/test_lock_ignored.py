"""Writers that ignore the locks, step by step: they can lose a race, and what they leave is put right by the next write."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import lance
import pytest

from omnigraph import failpoints
from omnigraph.commit.branches import create_branch
from omnigraph.commit.context import CommitContext
from omnigraph.commit.model import MAIN
from omnigraph.commit.protocol import execute
from omnigraph.commit.publisher import publish
from omnigraph.commit.recovery import heal
from omnigraph.commit.sidecar import read_sidecar
from omnigraph.commit.updates import SetTable, written
from omnigraph.errors import Conflict, DriftNeedsRepair, ExpectedVersionMismatch
from omnigraph.ids import new_ulid
from omnigraph.storage.tables.commit import commit_staged, undo
from omnigraph.storage.tables.handles import UNDO
from omnigraph.storage.tables.staged import stage_append
from omnigraph.storage.tables.table import Table
from tests.commit.healthy import assert_healthy
from tests.commit.lawless import lawless
from tests.commit.org import STAFF, TEAM, again, ids, insert, staff, table_of, team, write


class Stopped(BaseException):
    """A process that stops for a while, or for good."""


def once(action: Callable[[], object]) -> Callable[[], None]:
    waiting = [action]

    def run() -> None:
        if waiting:
            waiting.pop()()

    return run


def written_again(context: CommitContext, name: str) -> None:
    """A write that finds something to put right, and its repetition."""
    with pytest.raises(ExpectedVersionMismatch, match="put right"):
        insert(context, {STAFF: staff([name])})
    insert(context, {STAFF: staff([name])})
    assert_healthy(again(context))


def test_a_writer_that_was_taken_for_dead_takes_back_what_it_did_since(shared_graph: CommitContext) -> None:
    slow = lawless(again(shared_graph))
    prepared = write(slow, {STAFF: staff(["slow"]), TEAM: team(["slow"])})

    with failpoints.armed("mutation.mid_phase_b", once(lambda: heal(again(shared_graph)))), pytest.raises(Conflict):
        execute(slow, prepared)

    assert ids(shared_graph, STAFF) == ids(shared_graph, TEAM) == []
    assert_healthy(again(shared_graph))
    insert(shared_graph, {STAFF: staff(["next"]), TEAM: team(["next"])})


def test_a_writer_that_was_rolled_forward_by_others_has_succeeded(shared_graph: CommitContext) -> None:
    slow = lawless(again(shared_graph))
    prepared = write(slow, {STAFF: staff(["slow"])})

    def overtake() -> None:
        other = again(shared_graph)
        heal(other)
        insert(other, {STAFF: staff(["fast"])})

    with failpoints.armed("mutation.post_phase_b_pre_manifest_commit", once(overtake)):
        execute(slow, prepared)
    assert ids(shared_graph, STAFF) == ["fast", "slow"]
    assert_healthy(again(shared_graph))


def test_a_publish_between_the_undo_and_its_publish_is_put_right(graph: CommitContext) -> None:
    """Somebody undoes a half-done write; its writer is alive after all and publishes first."""
    prepared = write(graph, {STAFF: staff(["alive"]), TEAM: team(["alive"])})

    def stop() -> None:
        raise Stopped

    with failpoints.armed("mutation.mid_phase_b", stop), pytest.raises(Stopped):
        execute(graph, prepared)
    sidecar = read_sidecar(graph.store, prepared.operation_id)
    assert sidecar is not None
    state = graph.manifest.load()
    moved = [SetTable(replace(state.by_key[STAFF], version=2, row_count=1))]

    def wake_up() -> None:
        publish(again(graph), MAIN, moved, [written(state.by_key[STAFF])], prepared.lineage)

    with failpoints.armed("recovery.after_undo", once(wake_up)):
        assert [recovery.recovery_kind for recovery in heal(graph)] == ["RolledForward"]

    entry = again(graph).manifest.load().by_key[STAFF]
    assert (entry.version, graph.tables.head_version(entry.location)) == (2, 3), "the undo is above what is published"
    written_again(again(graph), "next")
    assert ids(graph, STAFF) == ["alive", "next"]


@pytest.mark.parametrize("branch", [MAIN, "feature"])
def test_a_rebased_commit_that_was_taken_back_is_put_right(graph: CommitContext, branch: str) -> None:
    """Lance puts a foreign commit on top of one that is about to be published; its undo stays above the pin."""
    create_branch(graph, "feature", MAIN)
    insert(graph, {STAFF: staff(["base"])}, branch=branch)
    entry = graph.manifest.load(branch).by_key[STAFF]
    staged = stage_append(table_of(graph, entry), staff(["rebased"]))

    def rebase() -> None:
        with pytest.raises(ExpectedVersionMismatch):
            commit_staged(
                again(graph).tables,
                staged,
                expected_version=entry.version,
                transaction_id=new_ulid(),
                seen_at_pin=True,
            )

    with failpoints.armed("mutation.post_phase_b_pre_manifest_commit", once(rebase)):
        insert(graph, {STAFF: staff(["mine"])}, branch=branch)

    with pytest.raises(ExpectedVersionMismatch, match="put right"):
        insert(again(graph), {STAFF: staff(["next"])}, branch=branch)
    insert(again(graph), {STAFF: staff(["next"])}, branch=branch)
    assert ids(again(graph), STAFF, branch) == ["base", "mine", "next"]
    assert_healthy(again(graph))
    newest = [commit.kind for commit in graph.manifest.commits(branch).values()]
    assert newest.count("recovery") == 1, "what was put right is in the history"


def test_drift_that_nobody_can_explain_is_not_put_right(graph: CommitContext) -> None:
    entry = graph.manifest.load().by_key[STAFF]
    staged = stage_append(table_of(graph, entry), staff(["foreign"]))
    commit_staged(graph.tables, staged, expected_version=1, transaction_id=new_ulid())
    for _ in range(2):
        with pytest.raises(DriftNeedsRepair, match="omnigraph repair"):
            insert(graph, {STAFF: staff(["next"])})
    assert graph.tables.head_version(entry.location) == 2


def test_drift_is_not_put_right_above_foreign_writes(graph: CommitContext) -> None:
    """An undo of ours is the head, but below it lies what a program that only knows Lance has written."""
    entry = graph.manifest.load().by_key[STAFF]
    uri = graph.root.lance_uri(entry.path)
    foreign = lance.write_dataset(staff(["foreign"]), uri, mode="append")
    ours = stage_append(Table(entry.location, foreign), staff(["ours"]))
    effect = commit_staged(graph.tables, ours, expected_version=foreign.version, transaction_id=new_ulid())
    undone = undo(graph.tables, entry.location, pin=foreign.version, effect=effect)
    assert graph.tables.created_by(entry.location, undone) == UNDO
    for _ in range(2):
        with pytest.raises(DriftNeedsRepair, match="omnigraph repair"):
            insert(again(graph), {STAFF: staff(["next"])})
    assert graph.tables.head_version(entry.location) == undone
    assert graph.tables.open(entry.location, undone).read(["id"])["id"].to_pylist() == ["foreign"]
    assert again(graph).manifest.load().by_key[STAFF] == entry
