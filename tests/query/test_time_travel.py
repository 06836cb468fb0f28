"""Section 14: queries at older snapshots."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from tests.mutation.org_graph import WRITES
from tests.query.fixtures import ORG, ORG_QUERIES, ORG_ROWS
from tests.query.loading import graph_with


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    return graph_with(tmp_path / "g", ORG, ORG_ROWS)


def found(graph: og.Graph, name: str, params: Any = None, at: Any = None) -> set[str]:
    return {next(iter(row.values())) for row in graph.query(ORG_QUERIES, name, params, snapshot=at).rows}


@pytest.mark.row("TT-03")
def test_each_version_has_its_rows(graph: og.Graph) -> None:
    first = graph.snapshot().version
    graph.mutate(WRITES, "relevel", {"h": "ada", "n": 99})
    second = graph.snapshot().version
    graph.mutate(WRITES, "put", {"h": "fay", "n": 1})
    rows = [graph.query(ORG_QUERIES, "everyone", snapshot=at).rows for at in (first, second, None)]
    assert [len(found) for found in rows] == [4, 4, 5]
    assert [found[0]["s.level"] for found in rows] == [30, 99, 99]


@pytest.mark.parametrize(
    ("write", "params", "read", "asked", "then", "now"),
    [
        ("drop_staff", {"h": "cleo"}, "everyone", None, {"ada", "ben", "cleo", "dov"}, {"ada", "ben", "dov"}),
        ("unlink", {"a": "ada"}, "mentees", {"h": "ada"}, {"ben", "cleo"}, set()),
        ("hire", {"a": "cleo", "t": "core"}, "teamless", None, {"cleo", "dov"}, {"dov"}),
        ("relevel", {"h": "ben", "n": 40}, "above", {"n": 30}, {"cleo"}, {"ben", "cleo"}),
    ],
    ids=["TT-04", "TT-05", "TT-06", "TT-08"],
)
def test_before_and_after(
    graph: og.Graph, mode: str, write: str, params: Any, read: str, asked: Any, then: set[str], now: set[str]
) -> None:
    before = graph.snapshot()
    graph.mutate(WRITES, write, params)
    assert found(graph, read, asked, before) == then
    assert found(graph, read, asked, before.version) == then
    assert found(graph, read, asked, before.commit) == then
    assert found(graph, read, asked) == now


@pytest.mark.row("TT-07")
def test_a_membership_that_went(graph: og.Graph) -> None:
    before = graph.snapshot()
    graph.mutate('query leave() { delete MemberOf where from = "ada" }')
    assert found(graph, "teamless", at=before) == {"cleo", "dov"}
    assert found(graph, "teamless") == {"ada", "cleo", "dov"}


@pytest.mark.row("TT-11")
def test_a_version_that_never_was(graph: og.Graph) -> None:
    with pytest.raises(og.OmnigraphError):
        graph.query(ORG_QUERIES, "everyone", snapshot=99999)


@pytest.mark.row("TT-13")
def test_a_snapshot_stays_where_it_is(graph: og.Graph) -> None:
    snapshot = graph.snapshot()
    version = snapshot.version
    graph.mutate(WRITES, "put", {"h": "fay", "n": 1})
    assert len(found(graph, "everyone", at=snapshot)) == 4
    assert snapshot.version == version
    assert graph.query(ORG_QUERIES, "everyone", snapshot=snapshot).commit == snapshot.commit


def test_a_branch_has_its_own_rows(graph: og.Graph, mode: str) -> None:
    graph.create_branch("work")
    graph.mutate(WRITES, "link", {"a": "dov", "b": "ada"}, branch="work")
    assert found(graph, "mentees", {"h": "dov"}) == set()
    assert found(graph.at("work"), "mentees", {"h": "dov"}) == {"ada"}
