"""Best-first searches below steps: with a limit they give the first rows of what they give without one."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random

import pytest

import omnigraph as og
from tests.query.loading import append

SCHEMA = """
node D { k: String @key text: String @index kind: I32 emb: Vector(3)? @index }
node A { k: String @key }
edge By: D -> A
"""
WORDS = ("river", "delta", "mountain", "calm", "muddy", "basin", "forest", "stone", "42")
NODES, COVERED, GONE = 240, 160, 12


@pytest.fixture(scope="module", params=["none", "half", "all"])
def library(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> og.Graph:
    """Texts with many equal scores, vectors with nulls and doubles, some of them deleted; a third has no edge."""
    random = Random(5)
    graph = og.init(Path(tmp_path_factory.mktemp("library")) / "g", SCHEMA)
    nodes = [
        {
            "type": "D",
            "data": {
                "k": f"d{number}",
                "text": " ".join(random.choices(WORDS, k=random.randint(0, 4))),
                "kind": number % 3,
                "emb": random.choice([None, *([[float(random.randint(0, 3)) for _ in range(3)]] * 5)]),
            },
        }
        for number in range(NODES)
    ]
    ends = [{"type": "A", "data": {"k": f"a{number}"}} for number in range(5)]
    edges = [
        {"edge": "By", "from": f"d{number}", "to": f"a{random.randrange(5)}", "data": {}}
        for number in range(NODES)
        for _ in range(number % 3)
    ]
    covered = {"none": 0, "half": COVERED, "all": NODES}[request.param]
    if covered:
        append(graph, nodes[:covered])
        graph.ensure_indices()
    append(graph, [*nodes[covered:], *ends, *edges])
    for number in range(0, NODES, NODES // GONE):
        graph.mutate("query q($k: String) { delete D where k = $k }", params={"k": f"d{number}"})
    return graph


PATTERNS = (
    "$d: D $d by $a",
    "$d: D $d $e:by $a",
    '$d: D $d by $a $a.k != "a0"',
    "$d: D $d.kind = 1 $d by $a",
    "$d: D not { $d by $a }",
    '$d: D $d by $a $a: A { k: "a1" }',
)


@pytest.mark.parametrize("text", ["river", "delta calm 42", "the", "nothing such"])
@pytest.mark.parametrize("pattern", PATTERNS)
def test_the_best_texts_that_lead_somewhere(library: og.Graph, pattern: str, text: str) -> None:
    source = f"""query q($x: String) {{ match {{ {pattern} }} return {{ $d.k, bm25($d.text, $x) as s }}
      order {{ bm25($d.text, $x) }} %s }}"""
    everything = library.query(source % "", params={"x": text}).rows
    assert len(everything) > 10
    for limit in (1, 3, 10, 70, 500):
        assert library.query(source % f"limit {limit}", params={"x": text}).rows == everything[:limit]


def test_a_step_does_not_change_a_score(library: og.Graph) -> None:
    """Where an index gives it, a score is the same for all that ask for it."""
    source = 'query q() { match { $d: D %s } return { $d.k, bm25($d.text, "river delta") as s } }'
    scores = {row["d.k"]: row["s"] for row in library.query(source % "").rows}
    if "INVERTED" not in library.explain(source % "").steps:
        pytest.skip("without an index, texts are compared with those that are left")
    for row in library.query(source % "$d by $a").rows:
        assert row["s"] == scores[row["d.k"]]


@pytest.mark.parametrize("pattern", ["$d: D", *PATTERNS[:4]])
@pytest.mark.parametrize("rank", ['bm25($d.text, "river")', 'rrf(nearest($d.emb, $v), bm25($d.text, "river"))'])
@pytest.mark.parametrize("order", ["", "order { $d.k }", "order { s desc }"])
def test_a_limit_does_not_change_a_score(library: og.Graph, pattern: str, rank: str, order: str) -> None:
    """Scores compare all rows that match, also those a limit drops."""
    source = f"""query q($v: Vector(3)) {{ match {{ {pattern} }} return {{ $d.k, {rank} as s }} {order} limit %d }}"""
    scores = {row["d.k"]: row["s"] for row in library.query(source % 500, params={"v": [1.0, 0.0, 2.0]}).rows}
    for limit in (1, 2, 7, 40):
        for row in library.query(source % limit, params={"v": [1.0, 0.0, 2.0]}).rows:
            assert row["s"] == scores[row["d.k"]]


def test_threads_share_a_handle(library: og.Graph) -> None:
    """Searches of several threads at once give what each gives alone."""
    rankings = ("nearest($d.emb, $v)", "bm25($d.text, $x)", "rrf(nearest($d.emb, $v), bm25($d.text, $x))")
    asked = [
        (
            f"query q($v: Vector(3), $x: String) {{ match {{ {pattern} }} return {{ $d.k }} order {{ {rank} }} limit 5 }}",
            text,
        )
        for rank in rankings
        for pattern in ("$d: D", "$d: D $d by $a")
        for text in ("river", "calm 42")
    ]

    def answer(query: tuple[str, str]) -> list[str]:
        params = {"v": [1.0, 2.0, 0.0], "x": query[1]}
        return [row["d.k"] for row in library.query(query[0], params=params).rows]

    alone = [answer(query) for query in asked]
    with ThreadPoolExecutor(8) as threads:
        together = list(threads.map(answer, asked * 8))
    assert together == alone * 8
