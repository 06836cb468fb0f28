"""Graphs of NetworkX: there and back, and what can not be stored."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import omnigraph as og
from omnigraph import errors

SCHEMA = """
node Person { name: String @key  age: I32?  born: Date?  seen: DateTime?  tags: [String]?  v: Vector(2)?  photo: Blob? }
node Place { label: String? }
edge Knows: Person -> Person { since: Date? }
edge In: Person -> Place
"""


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> og.Graph:
    made = og.init(tmp_path_factory.mktemp("nx") / "g.omni", SCHEMA)
    made.load(
        [
            {
                "type": "Person",
                "data": {"name": "Ada", "age": 36, "born": "1815-12-10", "seen": "2020-01-01T00:00:00Z"},
            },
            {"type": "Person", "data": {"name": "Ben", "tags": ["a"], "v": [1, 2], "photo": b"x"}},
            {"type": "Place", "data": {"id": "p1", "label": "Paris"}},
            {"edge": "Knows", "from": "Ada", "to": "Ben", "data": {"since": "2020-05-01"}},
            {"edge": "Knows", "from": "Ada", "to": "Ben"},
            {"edge": "In", "from": "Ben", "to": "p1"},
        ]
    )
    return made


def content(graph: nx.MultiDiGraph[Any]) -> tuple[Any, Any]:
    """A graph without the ids of edges."""
    edges = [
        (start, end, key[0], sorted(map(repr, values.items())))
        for start, end, key, values in graph.edges(keys=True, data=True)
    ]
    return dict(graph.nodes(data=True)), sorted(edges, key=repr)


def test_everything_with_typed_values(graph: og.Graph) -> None:
    made = graph.to_networkx()
    assert isinstance(made, nx.MultiDiGraph)
    assert dict(made.nodes(data=True)) == {
        ("Person", "Ada"): {
            "name": "Ada",
            "age": 36,
            "born": date(1815, 12, 10),
            "seen": datetime(2020, 1, 1, tzinfo=UTC),
        },
        ("Person", "Ben"): {"name": "Ben", "tags": ["a"], "v": [1.0, 2.0]},
        ("Place", "p1"): {"label": "Paris"},
    }
    assert made.number_of_edges(("Person", "Ada"), ("Person", "Ben")) == 2
    assert made.graph["omnigraph_commit"] == graph.head().id
    assert nx.number_weakly_connected_components(made) == 1


def test_some_of_it(graph: og.Graph) -> None:
    assert set(graph.to_networkx(types=["Person"])) == {("Person", "Ada"), ("Person", "Ben")}
    assert graph.to_networkx(types=["Person"]).number_of_edges() == 2
    assert graph.to_networkx(edges=["In"]).number_of_edges() == 1
    text = "match { $a: Person { name: $who }  $a $k: knows $b } return { object($a) as a, object($k) as k, object($b) as b }"
    found = graph.to_networkx(query=text, params={"who": "Ada"})
    assert (found.number_of_nodes(), found.number_of_edges()) == (2, 2)
    graph.create_branch("side")
    graph.mutate('insert Person { name: "Cleo" }', branch="side")
    assert ("Person", "Cleo") in graph.to_networkx(branch="side")
    assert ("Person", "Cleo") not in graph.to_networkx(snapshot=graph.head().id)


WRONG: list[tuple[dict[str, Any], type[errors.OmnigraphError], str]] = [
    ({"types": ["Persn"]}, errors.NotFound, "did you mean `Person`"),
    ({"edges": ["Person"]}, errors.NotFound, "no edge type"),
    ({"limit": 3}, errors.ResourceLimit, "6 nodes and edges are more than the 3"),
    ({"query": "match { $a: Person } return { $a.name }"}, errors.BadRequest, "return `object"),
    ({"query": "match { $a: Person } return { $a.name }", "types": ["Person"]}, errors.BadRequest, "or `query`"),
]


@pytest.mark.parametrize(("options", "kind", "message"), WRONG, ids=[row[2] for row in WRONG])
def test_what_is_refused(graph: og.Graph, options: dict[str, Any], kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        graph.to_networkx(**options)


def test_there_and_back(graph: og.Graph, tmp_path: Path) -> None:
    made = graph.to_networkx()
    again = og.from_networkx(made, tmp_path / "again.omni")
    assert again.schema == SCHEMA
    assert content(again.graph.to_networkx()) == content(made)
    assert [commit.kind for commit in again.graph.commits()] == ["load", "init"]


SCALARS = st.one_of(
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=False),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=8),
    st.dates(),
    st.binary(max_size=4),
    st.lists(st.integers(-5, 5), max_size=3),
)
SAFE = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_graph_keeps_its_shape_and_its_values(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    directed, several = data.draw(st.booleans()), data.draw(st.booleans())
    kind = {
        (True, True): nx.MultiDiGraph,
        (True, False): nx.DiGraph,
        (False, True): nx.MultiGraph,
        (False, False): nx.Graph,
    }
    source: Any = kind[(directed, several)]()
    nodes = data.draw(
        st.lists(st.one_of(st.integers(0, 9), SAFE.map(lambda text: f"n{text}")), min_size=1, max_size=5, unique=True)
    )
    for node in nodes:
        values = data.draw(st.dictionaries(SAFE, SCALARS, max_size=3))
        source.add_node(node, **{name: value for name, value in values.items() if name != "type"})
    for _ in range(data.draw(st.integers(0, 5))):
        source.add_edge(
            data.draw(st.sampled_from(nodes)), data.draw(st.sampled_from(nodes)), w=data.draw(st.integers(0, 9))
        )
    made = og.from_networkx(source, tmp_path_factory.mktemp("any") / "g.omni").graph.to_networkx()
    assert made.number_of_nodes() == source.number_of_nodes()
    assert made.number_of_edges() == source.number_of_edges()
    weights = sorted(values["w"] for *_, values in source.edges(data=True))
    assert sorted(values["w"] for *_, values in made.edges(data=True)) == weights
    for node in nodes:
        kept = made.nodes[("Node", node if isinstance(node, str) else str(node))]
        # The id is one more property, and no value is lost; blobs are not part of a graph of NetworkX.
        wanted = [value for value in source.nodes[node].values() if not isinstance(value, bytes)]
        assert len(kept) - 1 >= len(wanted) - sum(value is None for value in wanted)


def test_types_and_names(tmp_path: Path) -> None:
    source: nx.DiGraph[Any] = nx.DiGraph()
    source.add_node(1, type="Person", name="Ada", score=np.float32(0.5), ids=np.array([1, 2]), when=date(2020, 1, 1))
    source.add_node("p", type="Place", **{"my name": "x"})
    source.add_edge(1, "p", type="lives in", years={3, 1})
    done = og.from_networkx(source, tmp_path / "g.omni")
    assert "node Person" in done.schema
    assert "edge LivesIn: Person -> Place" in done.schema
    assert done.graph.entity("node", "Person", "1") == {
        "id": "1",
        "node_id": "1",
        "name": "Ada",
        "score": 0.5,
        "ids": [1, 2],
        "when": "2020-01-01",
    }
    assert "my_name: is called 'my name'" in "\n".join(map(str, done.notes))


HOSTILE: list[tuple[Any, str]] = [
    ({"x": object()}, "node 1: property 'x': a object is no value"),
    ({"x": 1 + 2j}, "no value of a property"),
    ({7: 1}, "no name that is a text"),
    ({"type": 3}, "names no type"),
    ({"x": "\ud800"}, "surrogate"),
]


@pytest.mark.parametrize(("values", "message"), HOSTILE, ids=[row[1] for row in HOSTILE])
def test_hostile_attributes(tmp_path: Path, values: dict[Any, Any], message: str) -> None:
    source: nx.Graph[Any] = nx.Graph()
    source.add_node(1)
    source.nodes[1].update(values)
    with pytest.raises(errors.BadRequest) as refused:
        og.from_networkx(source, tmp_path / "g.omni")
    assert message.replace("node 1", "node '1'") in refused.value.message or message in refused.value.message
    assert list(tmp_path.iterdir()) == []


def test_ids_that_are_the_same_as_texts(tmp_path: Path) -> None:
    with pytest.raises(errors.BadRequest, match="relabel"):
        og.from_networkx(nx.Graph([(1, "1")]), tmp_path / "g.omni")


class Nameless:
    """A class whose objects have no text of their own."""


def test_ids_of_any_kind(tmp_path: Path) -> None:
    """What is no text and no number becomes its Python text; what has none, other than its place in memory, is refused."""
    ids: list[Any] = [(1, None), float("nan"), None, True, b"x", "", "a\0b", 2**70, frozenset({1})]
    source: nx.MultiGraph[Any] = nx.MultiGraph()
    source.add_nodes_from([node for node in ids if node is not None])
    source.add_edges_from([((1, None), ""), ((1, None), ""), ("", (1, None))])
    done = og.from_networkx(source, tmp_path / "g.omni")
    found = done.graph.to_networkx()
    assert {node[1] for node in found} == {node if isinstance(node, str) else repr(node) for node in source}
    assert found.number_of_edges() == 3
    with pytest.raises(errors.BadRequest, match="an object of class Nameless, which has no text"):
        og.from_networkx(nx.Graph([(Nameless(), 1)]), tmp_path / "h.omni")
    assert not (tmp_path / "h.omni").exists()
