"""The commit DAG: order, merges, and the commits that another branch lacks."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.commit.branches import create_branch, delete_branch
from omnigraph.commit.context import CommitContext
from omnigraph.commit.history import history, missing_commits, newest_first, parents, reachable
from omnigraph.commit.model import MAIN, Commit
from omnigraph.commit.publisher import publish
from omnigraph.commit.sidecar import Kind
from omnigraph.commit.updates import ImportCommits
from tests.commit.org import STAFF, again, insert, lineage, staff


def merge(context: CommitContext, source: str, into: str = MAIN) -> str:
    """What a merge publishes, as far as history is concerned."""
    tip = context.manifest.load(source).head
    imported = ImportCommits(tuple(missing_commits(context.manifest, into, tip)))
    return publish(context, into, [imported], [], lineage(Kind.BRANCH_MERGE, merged_parent=tip)).head


def test_history_is_newest_first_and_ends_at_the_genesis_commit(shared_graph: CommitContext) -> None:
    heads = [shared_graph.manifest.load().head]
    heads += [insert(shared_graph, {STAFF: staff([name])}, actor=name).head for name in ("ada", "ben")]

    listed = history(again(shared_graph).manifest)

    assert [commit.id for commit in listed] == heads[::-1]
    assert [commit.kind for commit in listed] == ["mutation", "mutation", "init"]
    assert [commit.actor for commit in listed] == ["ben", "ada", None]
    assert [commit.parent for commit in listed] == [heads[1], heads[0], None]


def test_a_branch_lists_its_own_and_inherited_commits_and_no_later_ones(shared_graph: CommitContext) -> None:
    create_branch(shared_graph, "feature", MAIN)
    insert(shared_graph, {STAFF: staff(["ada"])})
    own = insert(shared_graph, {STAFF: staff(["eve"])}, branch="feature").head

    listed = history(shared_graph.manifest, "feature")
    assert [(commit.id == own, commit.branch) for commit in listed] == [(True, "feature"), (False, MAIN)]


def test_merged_history_survives_the_deletion_of_the_source(shared_graph: CommitContext) -> None:
    create_branch(shared_graph, "feature", MAIN)
    create_branch(shared_graph, "deeper", "feature")
    own = [insert(shared_graph, {STAFF: staff([name])}, branch="deeper").head for name in ("eve", "fay")]
    insert(shared_graph, {STAFF: staff(["ada"])})
    merged = merge(shared_graph, "deeper")
    before = history(shared_graph.manifest)
    delete_branch(shared_graph, "deeper")
    delete_branch(shared_graph, "feature")

    listed = history(again(shared_graph).manifest)
    assert listed == before
    assert listed[0].id == merged
    assert {commit.id for commit in listed} >= set(own)
    copied = {commit.id: (commit.branch, commit.manifest_version) for commit in listed}
    assert [copied[id_] for id_ in own] == [("deeper", 2), ("deeper", 3)], "a copied commit keeps where it was made"


def test_missing_commits_are_those_the_branch_does_not_have_oldest_first(shared_graph: CommitContext) -> None:
    create_branch(shared_graph, "feature", MAIN)
    own = [insert(shared_graph, {STAFF: staff([name])}, branch="feature").head for name in ("eve", "fay")]

    assert [commit.id for commit in missing_commits(shared_graph.manifest, MAIN, own[-1])] == own
    assert [commit.id for commit in missing_commits(shared_graph.manifest, MAIN, own[0])] == own[:1]
    assert missing_commits(shared_graph.manifest, "feature", own[-1]) == []
    merge(shared_graph, "feature")
    assert missing_commits(shared_graph.manifest, MAIN, own[-1]) == []


# --- laws -------------------------------------------------------------------------------------------------------------


@st.composite
def graphs(draw: st.DrawFn) -> dict[str, Commit]:
    """A DAG of commits whose ids are numbered in the order they were made."""
    commits: dict[str, Commit] = {}
    for number in range(draw(st.integers(1, 12))):
        known = list(commits)
        parent = draw(st.sampled_from(known)) if known else None
        merged = draw(st.none() | st.sampled_from(known)) if known else None
        created = draw(st.integers(0, 3))  # clocks of different machines disagree
        commits[f"c{number:02}"] = Commit(f"c{number:02}", MAIN, parent, merged, None, created, number, "mutation")
    return commits


def ancestors(commits: dict[str, Commit], head: str) -> set[str]:
    found: set[str] = set()
    waiting: Iterable[str] = {head}
    while waiting := {id_ for id_ in waiting if id_ not in found}:
        found |= set(waiting)
        waiting = {parent for id_ in waiting for parent in parents(commits[id_])}
    return found


@given(graphs(), st.data())
def test_history_has_every_ancestor_once_and_children_before_parents(
    commits: dict[str, Commit], data: st.DataObject
) -> None:
    head = data.draw(st.sampled_from(sorted(commits)))
    listed = newest_first(commits, head)

    place = {commit.id: at for at, commit in enumerate(listed)}
    assert len(place) == len(listed)
    assert set(place) == ancestors(commits, head) == {commit.id for commit in reachable(commits, head)}
    assert all(place[commit.id] < place[parent] for commit in listed for parent in parents(commit))


def test_equal_times_are_ordered_by_id() -> None:
    commits = {
        "a": Commit("a", MAIN, None, None, None, 1, 1, "init"),
        "b": Commit("b", MAIN, "a", None, None, 5, 2, "mutation"),
        "c": Commit("c", "feature", "a", None, None, 5, 2, "mutation"),
        "d": Commit("d", MAIN, "b", "c", None, 9, 3, "merge"),
    }
    listed = [commit.id for commit in newest_first(commits, "d")]
    assert listed == ["d", "c", "b", "a"]


@pytest.mark.parametrize("head", ["zz", ""])
def test_an_unknown_head_reaches_nothing(head: str) -> None:
    assert list(reachable({}, head)) == []


def test_versions_grow_along_a_branch(graph: CommitContext) -> None:
    for number in range(25):
        insert(graph, {STAFF: staff([f"p{number}"])})
    versions = [commit.manifest_version for commit in history(again(graph).manifest)]
    assert all(newer > older for newer, older in pairwise(versions))
