"""rrf through indexes gives the order of the naive definition: ranks of all rows that match, from 1, ties by id."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

import omnigraph as og
from tests.query.loading import append

SCHEMA = """
node D { k: String @key text: String @index kind: I32 @index emb: Vector(3)? @index }
node A { k: String @key }
edge By: D -> A
"""
WORDS = ("river", "delta", "mountain", "calm", "muddy", "basin", "forest", "stone", *(f"w{n}" for n in range(40)))
#: Enough that the best of either ranking are few among them.
NODES, NEWER = 9000, 300

Document = dict[str, Any]


class World:
    """The graph, and what is in it."""

    def __init__(self, graph: og.Graph, documents: list[Document], ends: dict[str, set[str]]) -> None:
        self.graph, self.documents, self.ends = graph, documents, ends

    def naive(self, pattern: str, vector: list[float], text: str, k: int) -> list[str]:
        """The keys of the documents that match, in the order of their fused ranks."""
        kept = [document for document in self.documents if PATTERNS[pattern](self, document)]
        # Texts that no index knows yet are compared with those that the scan finds, whatever steps come after it.
        scan = pattern if "by" not in pattern else "$d: D"
        scored = self.graph.query(
            f"query q($x: String) {{ match {{ {scan} }} return {{ $d.k, bm25($d.text, $x) as s }} }}",
            params={"x": text},
        ).rows
        scores = {row["d.k"]: row["s"] for row in scored}
        near = {
            document["k"]: float(np.linalg.norm(np.array(document["emb"]) - np.array(vector)))
            for document in kept
            if document["emb"] is not None
        }
        by_distance = sorted(near, key=lambda key: (near[key], key))
        by_text = sorted(
            (key for key in (d["k"] for d in kept) if scores[key] > 0), key=lambda key: (-scores[key], key)
        )
        fused = dict.fromkeys((document["k"] for document in kept), 0.0)
        for ranking in (by_distance, by_text):
            for rank, key in enumerate(ranking, 1):
                fused[key] += 1 / (k + rank)
        return sorted(fused, key=lambda key: (-fused[key], key))


@pytest.fixture(scope="module", params=["covered", "newer rows"])
def world(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> World:
    """Vectors of eighths, which are exact in single precision too, and texts with many equal scores."""
    random = Random(7)
    graph = og.init(Path(tmp_path_factory.mktemp("fusion")) / "g", SCHEMA)
    documents: list[Document] = [
        {
            "k": f"d{number}",
            "text": " ".join(random.choices(WORDS, k=random.randint(1, 6))),
            "kind": number % 3,
            "emb": None if number % 11 == 0 else [random.randint(0, 200) / 8 for _ in range(3)],
        }
        for number in range(NODES)
    ]
    # Some share a vector.
    for number in range(0, NODES, 7):
        documents[number]["emb"] = documents[random.randrange(NODES)]["emb"]
    lines = [{"type": "D", "data": document} for document in documents]
    covered = NODES if request.param == "covered" else NODES - NEWER
    append(graph, [*lines[:covered], *({"type": "A", "data": {"k": f"a{n}"}} for n in range(4))])
    graph.ensure_indices()
    if lines[covered:]:
        append(graph, lines[covered:])
    ends: dict[str, set[str]] = {document["k"]: set() for document in documents}
    edges: list[dict[str, Any]] = []
    for document in documents:
        for _ in range(random.randint(0, 2)):
            end = f"a{random.randrange(4)}"
            ends[document["k"]].add(end)
            edges.append({"edge": "By", "from": document["k"], "to": end, "data": {}})
    append(graph, edges)
    for number in range(0, NODES, 450):
        graph.mutate("query q($k: String) { delete D where k = $k }", params={"k": f"d{number}"})
    return World(graph, [d for number, d in enumerate(documents) if number % 450], ends)


PATTERNS: dict[str, Callable[[World, Document], bool]] = {
    "$d: D": lambda world, document: True,
    "$d: D $d.kind = 1": lambda world, document: document["kind"] == 1,
    '$d: D $d.k > "d5"': lambda world, document: document["k"] > "d5",
    "$d: D $d by $a": lambda world, document: bool(world.ends[document["k"]]),
    '$d: D $d by $a $a.k = "a1"': lambda world, document: "a1" in world.ends[document["k"]],
    "$d: D not { $d by $a }": lambda world, document: not world.ends[document["k"]],
}


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("text", ["river delta", "w3", "calm nothing", "zzz"])
@pytest.mark.parametrize("k", [60, 7])
def test_the_naive_order(world: World, pattern: str, text: str, k: int) -> None:
    random = Random(k)
    source = f"""query q($v: Vector(3), $x: String) {{ match {{ {pattern} }} return {{ $d.k }}
      order {{ rrf(nearest($d.emb, $v), bm25($d.text, $x), {k}) }} limit %d }}"""
    for limit in (1, 3):
        vector = [random.randint(0, 200) / 8 for _ in range(3)]
        found = world.graph.query(source % 20 if "by" in pattern else source % limit, params={"v": vector, "x": text})
        keys = list(dict.fromkeys(row["d.k"] for row in found.rows))[:limit]
        assert keys == world.naive(pattern, vector, text, k)[:limit]


@pytest.mark.parametrize("steps", ["", "$d by $a"])
def test_an_order_is_the_same_when_its_score_is_shown(world: World, steps: str) -> None:
    """A score that is shown is computed from all ranks, one that only orders may be bounded."""
    ranking = "rrf(bm25($d.text, $x), nearest($d.emb, $v))"
    source = f"query q($v: Vector(3), $x: String) {{ match {{ $d: D {steps} }} return {{ $d.k %s }} order {{ %s }} limit 3 }}"
    for number in range(6):
        params = {"v": [float(number), 3.5, 12.25], "x": f"river w{number}"}
        bounded = world.graph.query(source % ("", ranking), params=params).rows
        shown = world.graph.query(source % (f", {ranking} as s", "s desc"), params=params).rows
        assert [row["d.k"] for row in bounded] == [row["d.k"] for row in shown]


def test_both_indexes_are_asked(world: World) -> None:
    ranking = 'rrf(nearest($d.emb, [1.0, 2.0, 3.0]), bm25($d.text, "river"))'
    source = f"query q() {{ match {{ $d: D }} return {{ $d.k }} order {{ {ranking} }} limit 3 }}"
    steps = world.graph.explain(source).steps
    assert "(IVF" in steps
    assert "(INVERTED" in steps
    assert "FusedScan" in steps


@pytest.mark.parametrize("steps", ["", "$d by $a"])
def test_a_distance_comes_along(world: World, steps: str) -> None:
    source = f"""query q($v: Vector(3)) {{ match {{ $d: D {steps} }} return {{ $d.k, nearest($d.emb, $v) as d }}
      order {{ rrf(nearest($d.emb, $v), bm25($d.text, "river")) }} limit 3 }}"""
    vector = [1.0, 20.0, 3.0]
    places = {document["k"]: document["emb"] for document in world.documents}
    for row in world.graph.query(source, params={"v": vector}).rows:
        place = places[row["d.k"]]
        assert row["d"] == (None if place is None else np.linalg.norm(np.array(place) - np.array(vector)))
