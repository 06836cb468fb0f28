"""What algorithms refuse, what they write back, and what they run over."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.errors import BadRequest, Cancelled, EntityNotFound, NotFound, ResourceLimit
from omnigraph.query.limits import Cancel

SCHEMA = """
node Person { name: String @key
  rank: F64?  component: I64?  distance: F64?  label: String?  strict: F64 @default(0.0) }
node Place { name: String @key }
edge Knows: Person -> Person { cost: F64?  note: String? }
edge Visits: Person -> Place
"""
ROWS = [
    *({"type": "Person", "data": {"name": name}} for name in "abcd"),
    {"type": "Place", "data": {"name": "x"}},
    {"edge": "Knows", "from": "a", "to": "b", "data": {"cost": 1.0}},
    {"edge": "Knows", "from": "b", "to": "c", "data": {"cost": -2.0}},
    {"edge": "Visits", "from": "a", "to": "x"},
]


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    graph = og.init(tmp_path / "graph", SCHEMA)
    graph.load(ROWS, engine="local")
    return graph


def values(result: og.Result) -> dict[str, Any]:
    return {row["id"]: list(row.values())[-1] for row in result.to_dicts()}


def test_types_are_chosen(graph: og.Graph) -> None:
    run = graph.algorithms
    assert values(run.degree()) == {"a": 2, "b": 2, "c": 1, "d": 0, "x": 1}
    assert values(run.degree(nodes=["Person"])) == {"a": 1, "b": 2, "c": 1, "d": 0}
    assert values(run.degree(edges=["Visits"])) == {"a": 1, "b": 0, "c": 0, "d": 0, "x": 1}
    assert values(run.degree(nodes=["Place"])) == {"x": 0}
    assert values(run.shortest_paths("a", nodes=["Person"])) == {"a": 0, "b": 1, "c": 2}


def test_a_branch_or_a_snapshot_is_read(graph: og.Graph) -> None:
    before = graph.head().id
    graph.create_branch("more")
    graph.mutate('query q() { insert Knows { from: "d" to: "a" } }', branch="more")
    assert values(graph.algorithms.degree(nodes=["Person"]))["d"] == 0
    assert values(graph.algorithms.degree(nodes=["Person"], branch="more"))["d"] == 1
    assert values(graph.at("more").algorithms.degree(nodes=["Person"]))["d"] == 1
    assert values(graph.algorithms.degree(nodes=["Person"], snapshot=before))["d"] == 0


def test_values_are_written_back_as_one_commit(graph: og.Graph) -> None:
    report = graph.algorithms.connected_components(write_to="Person.component")
    assert (report.commit.id, graph.head().kind) == (graph.head().id, "load")
    rows = graph.query("query q() { match { $p: Person } return { $p.name, $p.component } order { $p.name asc } }")
    assert [row["p.component"] for row in rows] == [0, 0, 0, 1]
    graph.algorithms.shortest_paths("b", nodes=["Person"], write_to="Person.distance")
    rows = graph.query("query q() { match { $p: Person } return { $p.name, $p.distance } order { $p.name asc } }")
    assert [row["p.distance"] for row in rows] == [None, 0, 1, None]


REFUSED: dict[str, tuple[type[Exception], str, Any]] = {
    "node type": (NotFound, "no node type 'Persn'", lambda run: run.degree(nodes=["Persn"])),
    "edge type": (NotFound, "no edge type 'Know'", lambda run: run.degree(edges=["Know"])),
    "no types": (BadRequest, "at least one", lambda run: run.degree(nodes=[])),
    "edge leads out": (BadRequest, "leads to 'Place'", lambda run: run.degree(nodes=["Person"], edges=["Visits"])),
    "direction": (BadRequest, "direction is", lambda run: run.degree(direction="up")),
    "only both": (BadRequest, "either way", lambda run: run.k_core(direction="out")),
    "weight of one type": (NotFound, "'Visits' has no property 'cost'", lambda run: run.degree(weight="cost")),
    "weight is a text": (BadRequest, "a weight is a number", lambda run: run.degree(edges=["Knows"], weight="note")),
    "negative weight": (
        BadRequest,
        "weights of 0 or more",
        lambda run: run.shortest_paths("a", edges=["Knows"], weight="cost"),
    ),
    "which type": (BadRequest, "may be of several types", lambda run: run.shortest_paths("a")),
    "no such node": (EntityNotFound, "no Person with the id 'z'", lambda run: run.similarity(("Person", "z"))),
    "no source": (BadRequest, "at least one node", lambda run: run.shortest_paths([])),
    "engine": (BadRequest, "engine is", lambda run: run.degree(engine="gpu")),
    "damping": (BadRequest, "from 0 to 1", lambda run: run.pagerank(damping=2)),
    "iterations": (BadRequest, "whole number", lambda run: run.pagerank(iterations=0)),
    "resolution": (BadRequest, "above 0", lambda run: run.louvain(resolution=0)),
    "measure": (BadRequest, "measure is", lambda run: run.similarity(("Person", "a"), measure="l2")),
    "branch and snapshot": (BadRequest, "exclude each other", lambda run: run.degree(branch="main", snapshot=1)),
    "target": (BadRequest, "a type and a property", lambda run: run.degree(write_to="Person")),
    "target type": (NotFound, "not among the node types", lambda run: run.degree(write_to="Persn.rank")),
    "target property": (NotFound, "no property 'rnk'", lambda run: run.degree(write_to="Person.rnk")),
    "target kind": (BadRequest, "is a String", lambda run: run.degree(write_to="Person.label")),
    "target is whole": (BadRequest, "rank is a F64", lambda run: run.pagerank(write_to="Person.component")),
    "target is required": (
        BadRequest,
        "make it nullable",
        lambda run: run.similarity(("Person", "a"), write_to="Person.strict"),
    ),
    "target of a snapshot": (BadRequest, "to a branch", lambda run: run.degree(write_to="Person.rank", snapshot=1)),
    "memory": (ResourceLimit, 'engine="spark"', lambda run: run.degree(memory_limit=10, engine="local")),
    "frame here": (BadRequest, "answer of Spark", lambda run: run.degree(frame=True, engine="local")),
}


@pytest.mark.parametrize("case", REFUSED)
def test_it_is_refused_in_one_line_and_nothing_is_written(graph: og.Graph, case: str) -> None:
    kind, message, call = REFUSED[case]
    head = graph.head()
    with pytest.raises(kind, match=message) as raised:
        call(graph.algorithms)
    assert "\n" not in str(raised.value)
    assert graph.head() == head


def test_a_missing_weight_is_told(graph: og.Graph) -> None:
    graph.mutate('query q() { insert Knows { from: "d" to: "a" } }')
    with pytest.raises(BadRequest, match="1 of the 3 Knows edges have no 'cost'"):
        graph.algorithms.degree(edges=["Knows"], weight="cost")


def test_it_can_be_cancelled(graph: og.Graph) -> None:
    cancel = Cancel()
    cancel.cancel()
    with pytest.raises(Cancelled):
        graph.algorithms.pagerank(cancel=cancel)


def test_a_reader_may_not_write_back(graph: og.Graph) -> None:
    reading = og.open(graph.uri, mode="ro")
    assert len(reading.algorithms.degree()) == 5
    with pytest.raises(BadRequest, match="read-only"):
        reading.algorithms.pagerank(write_to="Person.rank")
