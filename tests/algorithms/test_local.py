"""Every algorithm gives what NetworkX gives, on random graphs with loops, parallel edges, several types and no edges at all."""

from __future__ import annotations

import math
from collections import defaultdict
from typing import Any, Final

import networkx as nx
import pytest

import omnigraph as og
from omnigraph.algorithms.selection import Direction
from omnigraph.errors import EntityNotFound
from tests.algorithms.random_graphs import Made, random_graph

GRAPHS = 30
ENGINE: Final = "local"


@pytest.fixture(scope="module", params=range(GRAPHS))
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Made:
    return random_graph(tmp_path_factory.mktemp("algorithms") / "graph", request.param)


def values(result: og.Result, column: str) -> dict[tuple[str, str], Any]:
    assert result.columns == ["type", "id", column]
    rows = result.to_dicts()
    assert rows == sorted(rows, key=lambda row: (row["type"], row["id"]))
    return {(row["type"], row["id"]): row[column] for row in rows}


def groups(found: dict[tuple[str, str], int]) -> list[set[tuple[str, str]]]:
    members: dict[int, set[tuple[str, str]]] = defaultdict(set)
    for node, group in found.items():
        members[group].add(node)
    assert sorted(members) == list(range(len(members)))
    return sorted(members.values(), key=min)


def close(found: dict[tuple[str, str], float], expected: dict[tuple[str, str], float]) -> None:
    assert found.keys() == expected.keys()
    for node, value in expected.items():
        assert math.isclose(found[node], value, rel_tol=1e-9, abs_tol=1e-9), node


@pytest.mark.parametrize("direction", ["out", "in", "both"])
@pytest.mark.parametrize("weight", [None, "cost"])
def test_pagerank(made: Made, direction: Direction, weight: str | None) -> None:
    if direction == "both":
        turned: Any = made.both_ways
    else:
        turned = made.expected.reverse() if direction == "in" else made.expected
    expected = nx.pagerank(turned, weight=weight, max_iter=1000, tol=1e-12)
    found = made.graph.algorithms.pagerank(
        direction=direction, weight=weight, iterations=1000, tolerance=1e-12, engine=ENGINE
    )
    close(values(found, "rank"), expected)


def test_connected_components(made: Made) -> None:
    found = values(made.graph.algorithms.connected_components(engine=ENGINE), "component")
    assert groups(found) == sorted(map(set, nx.weakly_connected_components(made.expected)), key=min)


def test_strongly_connected(made: Made) -> None:
    found = values(made.graph.algorithms.strongly_connected(engine=ENGINE), "component")
    assert groups(found) == sorted(map(set, nx.strongly_connected_components(made.expected)), key=min)


def test_label_propagation(made: Made) -> None:
    # NetworkX numbers labels in the order of its nodes.
    ordered = nx.Graph()
    ordered.add_nodes_from(sorted(made.expected.nodes))
    ordered.add_edges_from(made.undirected.edges)
    found = values(made.graph.algorithms.label_propagation(engine=ENGINE), "community")
    assert groups(found) == sorted(map(set, nx.community.label_propagation_communities(ordered)), key=min)


@pytest.mark.parametrize("weight", [None, "cost"])
def test_louvain(made: Made, weight: str | None) -> None:
    summed = nx.Graph()
    summed.add_nodes_from(made.expected.nodes)
    for tail, head, cost in made.expected.edges(data="cost"):
        before = summed.get_edge_data(tail, head, {"weight": 0.0})["weight"]
        summed.add_edge(tail, head, weight=before + (1.0 if weight is None else cost))
    found = groups(values(made.graph.algorithms.louvain(weight=weight, engine=ENGINE), "community"))
    assert set().union(*found) == set(made.expected.nodes)
    if summed.size(weight="weight"):
        best = max(
            nx.community.modularity(summed, nx.community.louvain_communities(summed, seed=seed)) for seed in range(3)
        )
        assert nx.community.modularity(summed, found) >= best - 0.08


def test_triangle_count(made: Made) -> None:
    found = values(made.graph.algorithms.triangle_count(engine=ENGINE), "triangles")
    assert found == nx.triangles(made.undirected)


def test_k_core(made: Made) -> None:
    assert values(made.graph.algorithms.k_core(engine=ENGINE), "core") == nx.core_number(made.undirected)


@pytest.mark.parametrize("direction", ["out", "in", "both"])
@pytest.mark.parametrize("weight", [None, "cost"])
def test_shortest_paths(made: Made, direction: Direction, weight: str | None) -> None:
    people = sorted(node for node in made.expected.nodes if node[0] == "Person")
    if not people:
        with pytest.raises(EntityNotFound):
            made.graph.algorithms.shortest_paths(("Person", "P00"), engine=ENGINE)
        return
    turned: Any = {"out": made.expected, "in": made.expected.reverse(), "both": made.both_ways}[direction]
    sources = {people[0], people[-1]}
    if weight is None:
        expected: dict[Any, float] = {}
        for source in sources:
            for node, hops in nx.single_source_shortest_path_length(turned, source).items():
                expected[node] = min(hops, expected.get(node, hops))
    else:
        expected = dict(nx.multi_source_dijkstra_path_length(turned, sources, weight=weight))
    found = made.graph.algorithms.shortest_paths(sorted(sources), direction=direction, weight=weight, engine=ENGINE)
    close(values(found, "distance"), expected)


@pytest.mark.parametrize("direction", ["out", "in", "both"])
@pytest.mark.parametrize("weight", [None, "cost"])
def test_degree(made: Made, direction: Direction, weight: str | None) -> None:
    graph = made.expected
    counted = {"out": graph.out_degree, "in": graph.in_degree, "both": graph.degree}[direction]
    found = made.graph.algorithms.degree(direction=direction, weight=weight, engine=ENGINE)
    close(values(found, "degree"), dict(counted(weight=weight)))


@pytest.mark.parametrize("direction", ["out", "both"])
def test_similarity(made: Made, direction: Direction) -> None:
    people = sorted(node for node in made.expected.nodes if node[0] == "Person")
    if not people:
        return
    simple: Any = nx.DiGraph(made.expected) if direction == "out" else nx.Graph(made.both_ways)
    own = set(simple[people[0]])
    expected = {
        other: len(own & set(simple[other])) / len(own | set(simple[other]))
        for other in simple
        if other != people[0] and own & set(simple[other])
    }
    found = made.graph.algorithms.similarity(people[0], direction=direction, engine=ENGINE)
    close(values(found, "similarity"), expected)
