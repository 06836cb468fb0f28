"""Section 12 through mutations: what a write on a branch shows there, and nowhere else."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph import failpoints
from omnigraph.commit.sidecar import FOLDER
from omnigraph.graph.lifecycle import connect
from tests.commit.healthy import assert_healthy, assert_linear
from tests.mutation.org_graph import call, commit_of, ids, level, org_graph, pairs

STAFF = ["ada", "ben", "cleo", "dov"]


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    graph = org_graph(tmp_path / "g")
    graph.create_branch("feature")
    return graph


def lines(graph: og.Graph, branch: str) -> dict[str, str | None]:
    """Which Lance branch of each table a branch of the graph publishes."""
    return {entry.key: entry.branch for entry in graph.snapshot(branch).entries()}


def interrupted(action: Callable[[], object], failpoint: str) -> None:
    """Do something that is cancelled where it passes a failpoint."""

    def cancel() -> None:
        raise KeyboardInterrupt

    with failpoints.armed(failpoint, cancel), pytest.raises(KeyboardInterrupt):
        action()


@pytest.mark.row("BR-02", "BR-03", "BR-04")
def test_a_write_is_seen_on_its_branch_only(graph: og.Graph, row: list[str]) -> None:
    assert ids(graph, "node:Staff", "feature") == STAFF
    call(graph, "put", "eve", 22, branch="feature")
    assert ids(graph, "node:Staff", "feature") == [*STAFF, "eve"]
    assert ids(graph, "node:Staff") == STAFF
    call(graph, "put", "fay", 23)
    assert ids(graph, "node:Staff") == [*STAFF, "fay"]
    assert ids(graph, "node:Staff", "feature") == [*STAFF, "eve"]


@pytest.mark.row("BR-05", "BR-23")
def test_a_branch_of_a_branch(graph: og.Graph, row: list[str]) -> None:
    call(graph, "put", "eve", 22, branch="feature")
    graph.create_branch("experiment", base="feature")
    call(graph, "relevel", "eve", 23, branch="experiment")
    reopened = og.open(graph.uri)
    assert reopened.branches() == ["main", "experiment", "feature"]
    assert (level(reopened, "eve", "experiment"), level(reopened, "eve", "feature")) == (23, 22)
    assert ids(reopened, "node:Staff") == STAFF


@pytest.mark.row("BR-06")
def test_only_what_is_written_is_forked(graph: og.Graph, row: list[str]) -> None:
    call(graph, "link", "dov", "ada", branch="feature")
    forked = {key for key, line in lines(graph, "feature").items() if line is not None}
    assert forked == {"edge:Mentors"}
    assert ids(graph, "node:Staff", "feature") == ids(graph, "node:Staff")
    assert ("dov", "ada") in pairs(graph, "Mentors", "feature")
    assert ("dov", "ada") not in pairs(graph, "Mentors")
    call(graph, "put", "eve", 1, branch="feature")
    call(graph, "unlink", "dov", branch="feature")
    assert pairs(graph, "Mentors", "feature") == pairs(graph, "Mentors")


@pytest.mark.row("BR-07")
def test_another_handle_sees_the_rows_without_a_refresh(graph: og.Graph, row: list[str]) -> None:
    other = og.open(graph.uri)
    assert ids(other, "node:Staff", "feature") == STAFF
    call(graph, "put", "eve", 22, branch="feature")
    assert ids(other, "node:Staff", "feature") == [*STAFF, "eve"]


@pytest.mark.parametrize("recorded", [True, False], ids=["with its record", "without"])
@pytest.mark.row("BR-18")
def test_an_interrupted_first_write_leaves_a_fork_that_is_nobodys(
    graph: og.Graph, recorded: bool, row: list[str]
) -> None:
    interrupted(lambda: call(graph, "put", "eve", 22, branch="feature"), "table_commit.before_commit")
    store = connect(graph.uri).store
    (record,) = store.list(FOLDER)
    if not recorded:
        store.delete(record.path)
    call(graph, "put", "fay", 23, branch="feature")
    assert ids(graph, "node:Staff", "feature") == [*STAFF, "fay"]
    assert ids(graph, "node:Staff") == STAFF
    assert_linear(connect(graph.uri), "feature")
    if recorded:
        assert_healthy(connect(graph.uri))


@pytest.mark.row("BR-19")
def test_the_first_write_may_be_a_cascading_delete(graph: og.Graph, row: list[str]) -> None:
    result = call(graph, "drop_staff", "ada", branch="feature")
    assert (result.affected_nodes, result.affected_edges) == (1, 3)
    assert ids(graph, "node:Staff", "feature") == STAFF[1:]
    assert pairs(graph, "Mentors", "feature") == [("ben", "dov")]
    assert pairs(graph, "MemberOf", "feature") == [("ben", "labs")]
    assert ids(graph, "node:Staff") == STAFF
    assert (len(pairs(graph, "Mentors")), len(pairs(graph, "MemberOf"))) == (3, 2)
    assert_healthy(connect(graph.uri))


@pytest.mark.parametrize("branch", ["main", "feature"])
@pytest.mark.row("BR-20")
def test_handles_in_turn_make_one_line(graph: og.Graph, branch: str, row: list[str]) -> None:
    other = og.open(graph.uri)
    made = []
    for number, handle in enumerate([graph, other, graph, graph, other, other]):
        made.append(commit_of(call(handle, "put", f"p{number}", number, branch=branch)))
    assert [commit.parent for commit in made[1:]] == [commit.id for commit in made[:-1]]
    assert [commit.id for commit in graph.commits(branch)[: len(made)]] == [commit.id for commit in reversed(made)]
    assert_linear(connect(graph.uri), branch)


@pytest.mark.row("BR-22")
def test_writes_make_no_branches(graph: og.Graph, row: list[str]) -> None:
    for number in range(3):
        call(graph, "put", f"p{number}", 1)
        call(graph, "put", f"p{number}", 1, branch="feature")
    call(graph, "relevel", "nobody", 1)
    for failpoint in ("mutation.post_phase_a", "mutation.post_phase_b_pre_manifest_commit"):
        interrupted(lambda: call(graph, "relevel", "ada", 1, branch="feature"), failpoint)
    assert graph.branches() == ["main", "feature"]
    assert og.open(graph.uri).branches() == ["main", "feature"]


def test_a_branch_that_is_made_anew_starts_from_its_new_base(graph: og.Graph) -> None:
    call(graph, "put", "eve", 22, branch="feature")
    graph.delete_branch("feature")
    graph.create_branch("feature")
    assert ids(graph, "node:Staff", "feature") == STAFF
    call(graph, "put", "fay", 23, branch="feature")
    assert ids(graph, "node:Staff", "feature") == [*STAFF, "fay"]
    assert_healthy(connect(graph.uri))
