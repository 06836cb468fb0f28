"""A name that is no branch is told so by every verb that takes one; an empty name is never the handle's own branch."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.errors import BranchNotFound, CommitNotFound
from tests.mutation.org_graph import WRITES, org_graph

READ = "query q() { match { $s: Staff } return { $s.handle } }"

VERBS: dict[str, Callable[[og.Graph, str], object]] = {
    "at": lambda g, name: g.at(name),
    "create_branch": lambda g, name: g.create_branch("new", name),
    "delete_branch": lambda g, name: g.delete_branch(name),
    "merge": lambda g, name: g.merge(name),
    "merge into": lambda g, name: g.merge("main", name),
    "head": lambda g, name: g.head(name),
    "commits": lambda g, name: g.commits(name),
    "snapshot": lambda g, name: g.snapshot(name),
    "query": lambda g, name: g.query(READ, branch=name),
    "mutate": lambda g, name: g.mutate(WRITES, "put", {"h": "eve", "n": 1}, branch=name),
    "load": lambda g, name: g.load([], branch=name),
    "export": lambda g, name: list(g.export_chunks(branch=name)),
    "changes": lambda g, name: g.changes(name),
    "baseline": lambda g, name: g.baseline(name),
    "revert": lambda g, name: g.revert(g.head().id, name),
    "cherry_pick": lambda g, name: g.cherry_pick(g.head().id, name),
    "ensure_indices": lambda g, name: g.ensure_indices(name),
    "optimize": lambda g, name: g.optimize(name),
    "stats": lambda g, name: g.stats(name),
}


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> og.Graph:
    return org_graph(tmp_path_factory.mktemp("names") / "g")


@pytest.mark.parametrize("name", ["", "nowhere", "\ud800", "x" * 5000, "ü" * 300, "../main", "main/"], ids=ascii)
@pytest.mark.parametrize("verb", VERBS)
def test_a_name_that_is_no_branch(graph: og.Graph, verb: str, name: str) -> None:
    before = graph.head()
    with pytest.raises(BranchNotFound) as caught:
        VERBS[verb](graph, name)
    assert caught.value.branch == name
    assert graph.head() == before
    assert graph.branches() == ["main"]


@pytest.mark.parametrize("commit", ["", "nothing", "\ud800", "\x00", "x" * 5000], ids=ascii)
@pytest.mark.parametrize("verb", ["commit", "commit_changes", "revert", "cherry_pick"])
def test_an_id_that_is_no_commit(graph: og.Graph, verb: str, commit: str) -> None:
    with pytest.raises(CommitNotFound):
        getattr(graph, verb)(commit)


def test_a_handle_that_is_bound_to_a_branch_does_not_write_to_it_under_an_empty_name(tmp_path: Path) -> None:
    graph = org_graph(tmp_path / "g")
    graph.create_branch("feature")
    with pytest.raises(BranchNotFound):
        graph.at("feature").mutate(WRITES, "put", {"h": "eve", "n": 1}, branch="")
    assert graph.head("feature") == graph.head()
