"""Section 14 through mutations: an older snapshot shows what was there, whatever was written since."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from tests.mutation.org_graph import call, commit_of, ids, org_graph, pairs, rows


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    return org_graph(tmp_path / "g")


def levels(graph: og.Graph, at: Any) -> dict[str, int | None]:
    return {row["handle"]: row["level"] for row in rows(graph, "node:Staff", at=at)}


def names(graph: og.Graph, at: Any) -> list[Any]:
    """Every way to name the state that a snapshot shows."""
    return [at, at.id, at.commit, at.version, str(at.version)]


@pytest.mark.row("TT-03")
def test_updates_and_inserts(graph: og.Graph, row: list[str]) -> None:
    first = graph.snapshot()
    call(graph, "relevel", "ada", 99)
    second = graph.snapshot()
    call(graph, "put", "fay", 1)
    for name in names(graph, first):
        assert (len(levels(graph, name)), levels(graph, name)["ada"]) == (4, 30)
    for name in names(graph, second):
        assert (len(levels(graph, name)), levels(graph, name)["ada"]) == (4, 99)
    assert len(levels(graph, None)) == 5


@pytest.mark.row("TT-04")
def test_deletes(graph: og.Graph, row: list[str]) -> None:
    before = graph.snapshot()
    call(graph, "drop_staff", "cleo")
    for name in names(graph, before):
        assert ids(graph, "node:Staff", at=name) == ["ada", "ben", "cleo", "dov"]
        assert ("ada", "cleo") in pairs(graph, "Mentors", at=name)
    assert ids(graph, "node:Staff") == ["ada", "ben", "dov"]
    assert ("ada", "cleo") not in pairs(graph, "Mentors")


@pytest.mark.row("TT-05")
def test_deleted_edges(graph: og.Graph, row: list[str]) -> None:
    before = graph.snapshot()
    call(graph, "unlink", "ada")
    assert len([pair for pair in pairs(graph, "Mentors", at=before) if pair[0] == "ada"]) == 2
    assert [pair for pair in pairs(graph, "Mentors") if pair[0] == "ada"] == []


@pytest.mark.row("TT-06", "TT-07")
def test_who_has_no_team(graph: og.Graph, row: list[str]) -> None:
    def teamless(at: Any) -> set[str]:
        return set(ids(graph, "node:Staff", at=at)) - {source for source, _ in pairs(graph, "MemberOf", at=at)}

    before = graph.snapshot()
    call(graph, "hire", "cleo", "core")
    hired = graph.snapshot()
    graph.mutate('query q() { delete MemberOf where from = "ada" }')
    assert [teamless(at) for at in (before, hired, None)] == [{"cleo", "dov"}, {"dov"}, {"ada", "dov"}]


@pytest.mark.row("TT-08")
def test_who_is_above(graph: og.Graph, row: list[str]) -> None:
    before = graph.snapshot()
    call(graph, "relevel", "ben", 40)
    above = [
        {name for name, level in levels(graph, at).items() if level is not None and level > 30} for at in (before, None)
    ]
    assert above == [{"cleo"}, {"ben", "cleo"}]


@pytest.mark.row("TT-13")
def test_a_snapshot_stays_where_it_is(graph: og.Graph, row: list[str]) -> None:
    held = graph.snapshot()
    version, shown = held.version, held.to_dict()
    for number in range(15):
        call(graph, "put", f"p{number}", number)
    assert (held.version, held.to_dict()) == (version, shown)
    assert len(ids(graph, "node:Staff", at=held)) == 4
    assert len(ids(og.open(graph.uri), "node:Staff", at=version)) == 4


def test_every_commit_of_a_branch_can_be_looked_at(graph: og.Graph) -> None:
    """Also those that were made before the branch, and on it."""
    graph.create_branch("feature")
    seen = {graph.head().id: 4}
    for number in range(3):
        seen[commit_of(call(graph, "put", f"f{number}", 1, branch="feature")).id] = 5 + number
    seen[commit_of(call(graph, "drop_staff", "ada")).id] = 3
    assert {commit: len(ids(graph, "node:Staff", at=commit)) for commit in seen} == seen
    entity = graph.entity("node", "Staff", "ada", snapshot=graph.commits("feature")[0].id)
    assert entity == {"id": "ada", "handle": "ada", "level": 30}
    assert graph.entity("node", "Staff", "ada") is None
