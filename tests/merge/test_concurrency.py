"""Merges while others write: the target moves, the source moves or goes, two processes merge the same."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pytest

import omnigraph as og
from omnigraph import failpoints
from omnigraph.graph.lifecycle import connect
from omnigraph.merge import difference
from tests import warm
from tests.commit.healthy import assert_healthy
from tests.commit.limited import limit
from tests.merge.graphs import do, everything, ids, named, shown

CHILD = Path(__file__).with_name("crash_child.py")


@contextmanager
def meanwhile(action: Callable[[], object], times: int = 1) -> Iterator[list[int]]:
    """Do something when a merge is prepared, the first few times; says how often it was prepared."""
    passed = [0]

    def once() -> None:
        passed[0] += 1
        if passed[0] <= times:
            action()

    with failpoints.armed("branch_merge.prepared", once):
        yield passed


def test_a_target_that_moved_is_compared_again(graph: og.Graph) -> None:
    do(graph, "feature", "put", "eli", 22)
    with meanwhile(lambda: do(graph, "main", "relevel", "ada", 31)) as passed:
        result = graph.merge("feature")
    # It is no fast-forward any more.
    assert (result.outcome, passed, shown(graph)) == ("merged", [2], "5/1/31/yes")
    assert graph.head().parent == graph.commits()[1].id


def test_a_conflict_that_came_in_between(graph: og.Graph) -> None:
    do(graph, "feature", "relevel", "ada", 31)
    with meanwhile(lambda: do(graph, "main", "relevel", "ada", 32)), pytest.raises(og.errors.MergeConflicts) as raised:
        graph.merge("feature")
    assert named(raised.value.conflicts) == [("DivergentUpdate", "node:Staff", "ada")]
    assert shown(graph) == "4/1/32/no"


def test_an_orphan_that_came_in_between(graph: og.Graph) -> None:
    do(graph, "feature", "drop", "ada")
    with meanwhile(lambda: do(graph, "main", "link", "ada", "cleo")), pytest.raises(og.errors.MergeConflicts) as raised:
        graph.merge("feature")
    assert [conflict.kind for conflict in raised.value.conflicts] == ["OrphanEdge"]


def test_somebody_else_merged_the_same(graph: og.Graph) -> None:
    do(graph, "feature", "put", "eli", 22)
    with meanwhile(lambda: og.open(graph.uri).merge("feature")) as passed:
        result = graph.merge("feature")
    assert (result.outcome, result.commit, passed) == ("already_up_to_date", None, [2])
    assert shown(graph) == "5/1/30/yes"


def test_an_earlier_sending_of_the_same_request(graph: og.Graph) -> None:
    do(graph, "feature", "put", "eli", 22)
    earlier: list[og.MergeResult] = []
    with meanwhile(lambda: earlier.append(og.open(graph.uri).merge("feature", idempotency_key="k"))):
        result = graph.merge("feature", idempotency_key="k")
    assert (result.outcome, result.commit) == ("fast_forward", earlier[0].commit)
    assert len([commit for commit in graph.commits() if commit.kind == "merge"]) == 1


def test_a_source_that_moves_on_is_merged_as_it_was(graph: og.Graph) -> None:
    do(graph, "feature", "put", "eli", 22)
    head = graph.head("feature").id
    with meanwhile(lambda: do(graph, "feature", "put", "fay", 1)) as passed:
        result = graph.merge("feature")
    assert passed == [1]
    assert result.commit is not None
    assert result.commit.merged_parent == head
    assert shown(graph) == "5/1/30/yes"
    assert graph.merge("feature").outcome == "merged"
    assert "fay" in ids(graph, "node:Staff")


def test_a_source_that_is_deleted_meanwhile(graph: og.Graph) -> None:
    """What was staged is whole; a target that still has to fork its tables reads the source again, and it is gone."""
    graph.create_branch("other")
    do(graph, "feature", "put", "eli", 22)
    with meanwhile(lambda: og.open(graph.uri).delete_branch("feature")):
        assert graph.merge("feature").outcome == "fast_forward"
    assert shown(graph) == "5/1/30/yes"
    with pytest.raises(og.errors.BranchNotFound):
        graph.merge("feature", into="other")
    assert shown(graph, "other") == "4/1/30/no"


def test_a_source_that_is_deleted_while_it_is_copied(graph: og.Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    """A target that shares its tables forks them first and copies then; what was begun is undone."""
    monkeypatch.setattr(difference, "KEPT_ROWS", 0)
    graph.create_branch("other")
    # More than Lance has in memory once it has looked at the files.
    handles = [hashlib.sha256(str(number).encode()).hexdigest() for number in range(20_000)]
    graph.load(pa.table({"handle": handles}), type="Staff", branch="feature", engine="local")
    before = everything(graph, "other")

    def delete() -> None:
        # In a thread, because this one holds the lock of the target.
        deleting = threading.Thread(target=lambda: og.open(graph.uri).delete_branch("feature"))
        deleting.start()
        deleting.join()

    with failpoints.armed("branch_merge.post_phase_a", delete), pytest.raises(og.errors.BranchNotFound):
        graph.merge("feature", into="other")
    assert everything(graph, "other") == before
    do(graph, "other", "put", "zoe", 1)
    assert_healthy(connect(graph.uri))


def test_no_merge_loses_for_ever(graph: og.Graph) -> None:
    """After one lost attempt the next is prepared inside the effect window, where nobody overtakes it."""
    do(graph, "feature", "put", "eli", 22)
    with meanwhile(lambda: do(graph, "main", "relevel", "ben", 1)) as passed:
        graph.merge("feature")
    assert passed == [2]


def test_without_restarts_it_is_a_typed_conflict(graph: og.Graph) -> None:
    limit(graph, restarts=0)
    do(graph, "feature", "put", "eli", 22)
    before = everything(graph, "feature")
    with meanwhile(lambda: do(graph, "main", "relevel", "ada", 31)), pytest.raises(og.errors.ReadSetChanged):
        graph.merge("feature")
    assert (shown(graph), everything(graph, "feature")) == ("4/1/31/no", before)


def test_several_processes_merge_into_one_branch(graph: og.Graph) -> None:
    """Every branch is merged once and nothing is lost; history is one chain."""
    names = [f"b{number}" for number in range(3)]
    for number, name in enumerate(names):
        graph.create_branch(name)
        do(graph, name, "put", f"p{number}", number)
    children = [
        warm.Popen([sys.executable, str(CHILD), graph.uri, name, "main"], stderr=subprocess.PIPE) for name in names
    ]
    failed = [child.communicate()[1].decode() for child in children if child.wait()]
    # They share one idempotency key, so two of them are refused as another request.
    assert all("was used for another request" in text for text in failed)
    for name in names:
        graph.merge(name)
    assert {"p0", "p1", "p2"} <= set(ids(graph, "node:Staff"))
    merges = [commit for commit in graph.commits() if commit.kind == "merge"]
    assert sorted(commit.merged_parent or "" for commit in merges) == sorted(graph.head(name).id for name in names)
