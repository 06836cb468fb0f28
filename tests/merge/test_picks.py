"""Taking a commit back, and applying one elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from tests.merge.graphs import do, everything, named, rows, shown, write


def level(graph: og.Graph, name: str, branch: str = "main") -> int | None:
    return {row["id"]: row["level"] for row in rows(graph, "node:Staff", branch)}.get(name)


# --- revert -----------------------------------------------------------------------------------------------------------


def test_revert_publishes_the_inverse(graph: og.Graph) -> None:
    before = everything(graph)
    result = do(graph, "main", "relevel", "ada", 31)
    assert result.commit is not None
    do(graph, "main", "put", "eli", 22)
    reverted = graph.revert(result.commit.id, actor="act-me")
    assert (reverted.outcome, shown(graph)) == ("merged", "5/1/30/yes")
    commit = graph.head()
    assert reverted.commit == commit
    assert (commit.kind, commit.merged_parent, commit.actor) == ("revert", None, "act-me")
    graph.revert(graph.commits()[1].id)
    assert everything(graph) == before


def test_revert_of_a_deletion_brings_everything_back(graph: og.Graph) -> None:
    before = everything(graph)
    deleted = do(graph, "main", "drop", "ben")
    assert deleted.commit is not None
    result = graph.revert(deleted.commit.id)
    assert (result.stats["inserted"], everything(graph)) == (2, before)


def test_revert_of_a_merge_takes_back_what_it_brought(graph: og.Graph) -> None:
    do(graph, "feature", "put", "eli", 22)
    do(graph, "main", "relevel", "ada", 31)
    before = everything(graph)
    merged = graph.merge("feature")
    assert merged.commit is not None
    graph.revert(merged.commit.id)
    assert everything(graph) == before
    # The history still has the merge.
    assert graph.merge("feature").outcome == "already_up_to_date"


def test_a_revert_can_be_reverted(graph: og.Graph) -> None:
    change = do(graph, "main", "relevel", "ada", 31)
    assert change.commit is not None
    reverted = graph.revert(change.commit.id)
    assert reverted.commit is not None
    graph.revert(reverted.commit.id)
    assert level(graph, "ada") == 31


def test_nothing_to_revert(graph: og.Graph) -> None:
    change = do(graph, "main", "relevel", "ada", 31)
    assert change.commit is not None
    graph.revert(change.commit.id)
    head = graph.head()
    again = graph.revert(change.commit.id)
    assert (again.outcome, again.commit, graph.head()) == ("already_up_to_date", None, head)


@pytest.mark.parametrize(
    ("change", "later", "conflict"),
    [
        pytest.param(("relevel", "ada", 31), ("relevel", "ada", 32), ("DivergentUpdate", "node:Staff"), id="updated"),
        pytest.param(("put", "eli", 22), ("relevel", "eli", 23), ("DeleteVsUpdate", "node:Staff"), id="insert-updated"),
        pytest.param(("put", "eli", 22), ("link", "eli", "ada"), ("OrphanEdge", "edge:Mentors"), id="insert-linked"),
        pytest.param(("drop", "ada"), ("put", "ada", 7), ("DivergentInsert", "node:Staff"), id="deleted-put-again"),
        pytest.param(("unlink", "ben"), ("drop", "ben"), ("OrphanEdge", "edge:Mentors"), id="edge-of-a-deleted-node"),
    ],
)
def test_a_revert_conflicts_like_a_merge(
    graph: og.Graph, change: tuple[Any, ...], later: tuple[Any, ...], conflict: tuple[str, str]
) -> None:
    done = do(graph, "main", *change)
    assert done.commit is not None
    do(graph, "main", *later)
    before, head = everything(graph), graph.head()
    with pytest.raises(og.errors.MergeConflicts) as raised:
        graph.revert(done.commit.id)
    assert [found[:2] for found in named(raised.value.conflicts)] == [conflict]
    foreseen = graph.revert(done.commit.id, dry_run=True)
    assert (foreseen.outcome, foreseen.conflicts) == ("conflicts", tuple(raised.value.conflicts))
    assert (everything(graph), graph.head()) == (before, head)


def test_a_strategy_decides_a_revert(graph: og.Graph) -> None:
    change = do(graph, "main", "relevel", "ada", 31)
    assert change.commit is not None
    do(graph, "main", "relevel", "ada", 32)
    assert graph.revert(change.commit.id, strategy="theirs").outcome == "merged"
    assert level(graph, "ada") == 30


def test_revert_on_another_branch(graph: og.Graph) -> None:
    change = do(graph, "feature", "relevel", "ada", 31)
    assert change.commit is not None
    graph.revert(change.commit.id, "feature")
    assert (level(graph, "ada", "feature"), level(graph, "ada")) == (30, 30)
    assert graph.head("feature").kind == "revert"
    assert graph.head("main").kind == "mutation"


# --- cherry-pick ------------------------------------------------------------------------------------------------------


def test_cherry_pick_applies_one_commit(graph: og.Graph) -> None:
    do(graph, "feature", "put", "eli", 22)
    picked = do(graph, "feature", "relevel", "ada", 31)
    do(graph, "feature", "put", "fay", 1)
    assert picked.commit is not None
    result = graph.cherry_pick(picked.commit.id, onto="main", actor="act-me")
    assert (result.outcome, shown(graph)) == ("merged", "4/1/31/no")
    assert (graph.head().kind, graph.head().merged_parent, graph.head().actor) == ("cherry_pick", None, "act-me")
    # The branch as a whole still merges, and what was picked is there on both sides.
    merged = graph.merge("feature")
    assert (merged.outcome, merged.stats["identical"]) == ("merged", 1)
    assert shown(graph) == "6/1/31/yes"


def test_a_commit_that_is_there_already(graph: og.Graph) -> None:
    change = do(graph, "main", "relevel", "ada", 31)
    assert change.commit is not None
    head = graph.head()
    assert graph.cherry_pick(change.commit.id).outcome == "already_up_to_date"
    assert graph.head() == head


def test_a_pick_that_needs_what_is_not_there(graph: og.Graph) -> None:
    do(graph, "feature", "put", "eli", 22)
    linked = do(graph, "feature", "link", "eli", "ada")
    changed = do(graph, "feature", "relevel", "eli", 23)
    assert linked.commit is not None
    assert changed.commit is not None
    for commit, expected in (
        (linked.commit.id, ("OrphanEdge", "edge:Mentors")),
        (changed.commit.id, ("DeleteVsUpdate", "node:Staff")),
    ):
        with pytest.raises(og.errors.MergeConflicts) as raised:
            graph.cherry_pick(commit, "main")
        assert [found[:2] for found in named(raised.value.conflicts)] == [expected]


def test_exactly_once(graph: og.Graph) -> None:
    picked = do(graph, "feature", "relevel", "ada", 31)
    assert picked.commit is not None
    first = graph.cherry_pick(picked.commit.id, "main", idempotency_key="k")
    again = graph.cherry_pick(picked.commit.id, "main", idempotency_key="k")
    assert (again.commit, again.outcome) == (first.commit, "merged")
    with pytest.raises(og.errors.BadRequest, match="another request"):
        graph.revert(picked.commit.id, "main", idempotency_key="k")


# --- commits that can not be taken ------------------------------------------------------------------------------------


@pytest.mark.parametrize("verb", ["revert", "cherry_pick"])
def test_the_first_commit_has_no_parent(graph: og.Graph, verb: str) -> None:
    first = graph.commits()[-1].id
    with pytest.raises(og.errors.CommitHasNoParent) as raised:
        getattr(graph, verb)(first)
    assert raised.value.commit == first


@pytest.mark.parametrize("verb", ["revert", "cherry_pick"])
@pytest.mark.parametrize("commit", ["01ARZ3NDEKTSV4RRFFQ69G5FAV", "", "nope", "main"])
def test_an_unknown_commit(graph: og.Graph, verb: str, commit: str) -> None:
    with pytest.raises(og.errors.CommitNotFound):
        getattr(graph, verb)(commit)


@pytest.mark.parametrize("verb", ["revert", "cherry_pick"])
def test_an_unknown_branch(graph: og.Graph, verb: str) -> None:
    with pytest.raises(og.errors.BranchNotFound):
        getattr(graph, verb)(graph.head().id, "nope")


def test_a_commit_whose_branch_is_gone(graph: og.Graph) -> None:
    """The states of its commits stay, so that each can be taken back: the last one, and an earlier one against the last."""
    earlier = do(graph, "feature", "relevel", "ada", 31)
    last = do(graph, "feature", "relevel", "ada", 32)
    graph.merge("feature", delete_branch=True)
    assert earlier.commit is not None
    assert last.commit is not None
    with pytest.raises(og.errors.MergeConflicts, match="DivergentUpdate"):
        graph.revert(earlier.commit.id)
    assert graph.revert(last.commit.id).outcome == "merged"
    assert shown(graph).split("/")[2] == "31"


def test_a_maintenance_commit_has_nothing_to_take_back(graph: og.Graph) -> None:
    graph.ensure_indices()
    built = graph.head()
    assert built.kind == "maintenance"
    assert graph.revert(built.id).outcome == "already_up_to_date"


def test_blobs_come_back(tmp_path: Path) -> None:
    graph = og.init(tmp_path / "g", "node Doc { title: String @key content: Blob? }")
    put = 'query q($c: Blob?) { insert Doc { title: "x", content: $c } }'
    graph.mutate(put, None, {"c": "base64:AQID"})
    deleted = write(graph, "main", 'delete Doc where title = "x"')
    assert deleted.commit is not None
    graph.revert(deleted.commit.id)
    assert rows(graph, "node:Doc") == [{"id": "x", "title": "x", "content": b"\1\2\3"}]


@pytest.mark.parametrize("verb", ["revert", "cherry_pick"])
def test_a_property_that_is_renamed_while_a_pick_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    """The schema was looked at, then another process renamed a property: the pick starts over under the new names."""
    graph = og.init(tmp_path / "graph", "node N { k: String @key rank: I64? @range(rank, 0..9) }")
    graph.mutate('query q() { insert N { k: "a", rank: 1 } }')
    changed = graph.mutate('query q() { update N set { rank: 2 } where k = "a" }').commit
    assert changed is not None
    undone = graph.revert(changed.id) if verb == "cherry_pick" else None
    stale = graph._watch.captured()
    renamed = 'node N { k: String @key level: I64? @rename_from("rank") @range(level, 0..9) }'
    og.open(tmp_path / "graph").apply_schema(renamed)
    captured = graph._watch.captured
    looks = iter([stale])
    monkeypatch.setattr(graph._watch, "captured", lambda *_: next(looks, None) or captured())
    getattr(graph, verb)(changed.id)
    assert [row["rank"] for row in graph.query("query q() { match { $n: N } return { $n.level as rank } }").rows] == [
        1 if undone is None else 2
    ]
