"""Shortest paths between all nodes of random graphs, against walking all of them."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from random import Random

import pytest

import omnigraph as og
from tests.query.loading import append

SCHEMA = "node N { k: String @key } edge To: N -> N"
#: Nodes and edges: chains and islands, something between, and a crowd with many equally short ways.
SHAPES = [(24, 26), (24, 60), (16, 110)]
Steps = dict[str, list[str]]
ARROWS = {"to": "$x to{%s} $y", "<to>": "$x <to>{%s} $y"}


def make(path: Path, nodes: int, edges: int, seed: int) -> tuple[og.Graph, dict[str, Steps]]:
    """A graph, and where one step leads from each node, along the edges and in both directions."""
    random = Random(seed)
    names = [f"n{number}" for number in range(nodes)]
    pairs = [(random.choice(names), random.choice(names)) for _ in range(edges)]
    along = {name: sorted({head for tail, head in pairs if tail == name}) for name in names}
    both = {name: sorted({b for pair in pairs for a, b in (pair, pair[::-1]) if a == name}) for name in names}
    graph = og.init(path / "g", SCHEMA)
    rows: list[dict[str, object]] = [{"type": "N", "data": {"k": name}} for name in names]
    append(graph, [*rows, *({"edge": "To", "from": tail, "to": head} for tail, head in pairs)])
    return graph, {"to": along, "<to>": both}


def walked(steps: Steps, source: str, target: str, least: int, most: int) -> list[list[str]]:
    """All shortest paths of at most `most` edges, the smallest first; none when they are shorter than `least`."""
    if source == target:
        return [[source, source]] if least == 1 and source in steps[source] else []
    paths = [[source]]
    seen = {source}
    for length in range(1, most + 1):
        paths = [[*path, end] for path in paths for end in steps[path[-1]] if end not in seen]
        found = [path for path in paths if path[-1] == target]
        if found:
            return sorted(found) if length >= least else []
        seen |= {path[-1] for path in paths}
    return []


@pytest.mark.parametrize(("nodes", "edges"), SHAPES, ids=str)
@pytest.mark.parametrize(("least", "most"), [(1, 2), (1, 6), (2, 4)])
def test_every_pair_of_a_graph(tmp_path: Path, nodes: int, edges: int, least: int, most: int) -> None:
    graph, ways = make(tmp_path, nodes, edges, seed=nodes + edges)
    for step, steps in ways.items():
        arrow = ARROWS[step] % f"{least},{most}"
        for function in ("shortest", "all_shortest"):
            text = (
                f"match {{ $x: N $y: N $w = {function}({arrow}) }} return {{ $x.k as x, $y.k as y, nodes($w) as way }}"
            )
            found = [(row["x"], row["y"], row["way"]) for row in graph.query(text).rows]
            expected = [
                (x, y, way)
                for x, y in product(steps, steps)
                for way in walked(steps, x, y, least, most)[: 1 if function == "shortest" else None]
            ]
            assert sorted(found) == sorted(expected), text
            assert expected


WEIGHTED = "node N { k: String @key } edge To: N -> N { cost: F64? }"
Weights = dict[tuple[str, str], float]


def weighted(path: Path, weights: Weights) -> og.Graph:
    """A graph of edges with their weights."""
    graph = og.init(path / "g", WEIGHTED)
    rows: list[dict[str, object]] = [{"type": "N", "data": {"k": name}} for name in sorted({*sum(weights, ())})]
    edges = ({"edge": "To", "from": tail, "to": head, "data": {"cost": cost}} for (tail, head), cost in weights.items())
    append(graph, [*rows, *edges])
    return graph


def lightest(weights: Weights, source: str, target: str, least: int, most: int) -> list[str] | None:
    """The smallest of the lightest paths of at most `most` edges that pass no node twice; None when it has fewer than `least`."""
    found: list[tuple[float, list[str]]] = []
    paths = [(0.0, [source])]
    while paths:
        weight, path = paths.pop()
        if path[-1] == target:
            found.append((weight, path))
        elif len(path) <= most:
            ends = ((head, cost) for (tail, head), cost in weights.items() if tail == path[-1] and head not in path)
            paths += [(weight + cost, [*path, head]) for head, cost in ends]
    best = min(found, default=None)
    return best[1] if best is not None and len(best[1]) > least else None


@pytest.mark.parametrize(("least", "most"), [(1, 2), (1, 4), (1, 9), (3, 5)])
@pytest.mark.parametrize("seed", range(3))
def test_weights_of_zero(tmp_path: Path, least: int, most: int, seed: int) -> None:
    """Edges without a weight may lead back to where the path was."""
    random = Random(seed)
    names = [f"n{number}" for number in range(8)]
    weights = {
        (a, b): float(random.choice([0, 0, 0, 1])) for a in names for b in names if a != b and random.random() < 0.35
    }
    graph = weighted(tmp_path, weights)
    text = (
        f"match {{ $x: N $y: N $w = shortest($x $e: to{{{least},{most}}} $y by $e.cost) $x != $y }} "
        "return { $x.k as x, $y.k as y, nodes($w) as way }"
    )
    found = {(row["x"], row["y"]): row["way"] for row in graph.query(text).rows}
    pairs = [(x, y) for x, y in product(names, names) if x != y]
    expected = {(x, y): way for x, y in pairs if (way := lightest(weights, x, y, least, most)) is not None}
    assert found == expected
    assert expected


def test_a_crowd_of_weight_zero_that_leads_nowhere(tmp_path: Path) -> None:
    """From the start all ways cost nothing, and only one leads to the end: the others are not walked one by one."""
    crowd = [f"c{number:02}" for number in range(40)]
    pairs = [(a, b) for a in ("a", *crowd) for b in ("a", *crowd) if a != b]
    graph = weighted(tmp_path, {**dict.fromkeys(pairs, 0.0), ("a", "z"): 0.0})
    text = 'match { $x: N { k: "a" } $y: N { k: "z" } $w = shortest($x $e: to{1,} $y by $e.cost) } return { nodes($w) as way }'
    assert graph.query(text, timeout=20).rows == [{"way": ["a", "z"]}]
