"""Which rows match never depends on an index: random texts, covered, uncovered and half covered."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

import omnigraph as og
from tests.query.loading import append

SCHEMA = "node T { k: String @key text: String @index emb: Vector(4) @index }"
WORDS = [
    "river",
    "Rivers",
    "RIVER'S",
    "running",
    "ran",
    "runs",
    "the",
    "The",
    "and",
    "below",
    "did",
    "café",
    "cafe",
    "naïve",
    "Straße",
    "ÜBER",
    "über",
    "generously",
    "generate",
    "x1",
    "42",
    "1,000",
    "snake_case",
    "half-done",
    "e-mail",
    "don't",
    "東京",
    "быстро",
    "быстрая",
    "supercalifragilisticexpialidociousandthensome",
    "ok",
]
QUERIES = (
    "river",
    "runs",
    "cafe",
    "Strasse",
    "über",
    "generous",
    "the",
    "below",
    "did",
    "snake",
    "case_half",
    "don",
    "42",
)


@pytest.fixture(scope="module")
def graphs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, og.Graph]:
    random = Random(11)
    documents = [
        {
            "type": "T",
            "data": {
                "k": f"k{number}",
                "text": " ".join(random.choices(WORDS, k=random.randint(0, 5))),
                "emb": [random.random() for _ in range(4)],
            },
        }
        for number in range(300)
    ]
    found = {}
    for name, covered in (("none", 0), ("half", 150), ("all", 300)):
        graph = og.init(Path(tmp_path_factory.mktemp(name)) / "g", SCHEMA)
        if covered:
            append(graph, documents[:covered])
            graph.ensure_indices()
        if documents[covered:]:
            append(graph, documents[covered:])
        found[name] = graph
    return found


@pytest.mark.parametrize("call", ["search", "match_text", "fuzzy"])
@pytest.mark.parametrize("text", [*QUERIES, "river cafe", "ran the 42"])
def test_the_same_rows_match(graphs: dict[str, og.Graph], call: str, text: str) -> None:
    source = f"query q($x: String) {{ match {{ $t: T {call}($t.text, $x) }} return {{ $t.k }} }}"
    answers = [{row["t.k"] for row in graph.query(source, params={"x": text}).rows} for graph in graphs.values()]
    assert answers[0] == answers[1] == answers[2]


def test_the_same_rows_have_a_score(graphs: dict[str, og.Graph]) -> None:
    source = """query q() { match { $t: T } return { $t.k, bm25($t.text, "river cafe") as s }
      order { bm25($t.text, "river cafe") } limit 300 }"""
    scored = [{row["t.k"] for row in graph.query(source).rows if row["s"] > 0} for graph in graphs.values()]
    assert scored[0] == scored[1] == scored[2]
    assert scored[0]


def test_the_same_rows_are_nearest(graphs: dict[str, og.Graph]) -> None:
    source = """query q($v: Vector(4)) { match { $t: T } return { $t.k, nearest($t.emb, $v) as d }
      order { nearest($t.emb, $v) } limit 10 }"""
    answers = [graph.query(source, params={"v": [0.5, 0.1, 0.9, 0.4]}).rows for graph in graphs.values()]
    assert answers[0] == answers[1] == answers[2]


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        ('query q() { match { $t: T search($t.text, "river") } return { $t.k } }', "INVERTED"),
        ('query q() { match { $t: T } return { $t.k } order { bm25($t.text, "river") } limit 3 }', "INVERTED"),
        (
            "query q() { match { $t: T } return { $t.k } order { nearest($t.emb, [1.0, 0.0, 0.0, 0.0]) } limit 3 }",
            "IVF",
        ),
    ],
    ids=["search", "bm25", "nearest"],
)
def test_an_index_is_used_where_there_is_one(graphs: dict[str, og.Graph], source: str, kind: str) -> None:
    assert f"({kind}" in graphs["half"].explain(source).steps
    assert "index:" not in graphs["none"].explain(source).steps


@pytest.mark.parametrize("state", ["none", "half", "all"])
@pytest.mark.parametrize("text", ["river", "cafe 42", "the", "nothing such", "below"])
@pytest.mark.parametrize("pattern", ["$t: T", '$t: T $t.k > "k2"', '$t: T $t.text != "river"', '$t: T { k: "k7" }'])
@pytest.mark.parametrize("limit", [1, 3, 25, 299])
def test_the_best_are_the_first_of_all(
    graphs: dict[str, og.Graph], state: str, text: str, pattern: str, limit: int
) -> None:
    """A limit lets the index choose; what it chooses is what ordering everything would have put first."""
    source = f"""query q($x: String) {{ match {{ {pattern} }} return {{ $t.k, bm25($t.text, $x) as s }}
      order {{ bm25($t.text, $x) }} %s }}"""
    everything = graphs[state].query(source % "", params={"x": text}).rows
    assert graphs[state].query(source % f"limit {limit}", params={"x": text}).rows == everything[:limit]


HOPS = """
node P { k: String @key emb: Vector(2) @index }
node Q { k: String @key }
edge To: P -> Q
"""


@pytest.fixture(scope="module", params=["indexed", "scanned"])
def sparse(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> og.Graph:
    """Only few nodes have edges, and they are far from the origin."""
    graph = og.init(Path(tmp_path_factory.mktemp("sparse")) / "g", HOPS)
    nodes = [{"type": "P", "data": {"k": f"p{n}", "emb": [float(n), 0.0]}} for n in range(400)]
    ends = [{"type": "Q", "data": {"k": f"q{n}"}} for n in range(3)]
    edges = [
        {"edge": "To", "from": f"p{n}", "to": f"q{n % 3}", "data": {}} for n in (*range(300, 310), 305, 305, 20, 399)
    ]
    append(graph, [*nodes, *ends, *edges])
    if request.param == "indexed":
        graph.ensure_indices()
    return graph


@pytest.mark.parametrize("limit", [1, 2, 5, 12, 40])
@pytest.mark.parametrize(
    "pattern", ["$p to $q", "$p $e:to $q", '$p to $q $q.k != "q0"', "not { $p to $x }", '$p to $q $q: Q { k: "q1" }']
)
def test_the_nearest_that_lead_somewhere(sparse: og.Graph, pattern: str, limit: int) -> None:
    """Steps drop most of the nearest; the scan is asked for more until there are enough."""
    source = f"""query q($v: Vector(2)) {{ match {{ $p: P {pattern} }} return {{ $p.k, nearest($p.emb, $v) as d }}
      order {{ nearest($p.emb, $v) }} %s }}"""
    everything = sparse.query(source % "limit 1000", params={"v": [0.0, 0.0]}).rows
    assert [row["d"] for row in everything] == sorted(row["d"] for row in everything)
    assert len(everything) >= 3
    assert sparse.query(source % f"limit {limit}", params={"v": [0.0, 0.0]}).rows == everything[:limit]


def test_a_fused_rank_does_not_depend_on_the_order_asked_for(graphs: dict[str, og.Graph]) -> None:
    """A limit by distance must not change a score or rank that compares all rows."""
    source = """query q($v: Vector(4)) { match { $t: T }
      return { $t.k, bm25($t.text, "river") as s, rrf(nearest($t.emb, $v), bm25($t.text, "river")) as r }
      order { nearest($t.emb, $v) } %s }"""
    for graph in graphs.values():
        everything = graph.query(source % "limit 300", params={"v": [0.5, 0.1, 0.9, 0.4]}).rows
        assert graph.query(source % "limit 7", params={"v": [0.5, 0.1, 0.9, 0.4]}).rows == everything[:7]


@pytest.mark.parametrize("order", ["nearest($t.emb, $v)", 'bm25($t.text, "river")'])
def test_other_distances_come_along(graphs: dict[str, og.Graph], order: str) -> None:
    """The rows are chosen by one rank and show the distance from another vector."""
    source = f"""query q($v: Vector(4), $w: Vector(4)) {{ match {{ $t: T }} return {{ $t.k, nearest($t.emb, $w) as d }}
      order {{ {order} }} %s }}"""
    vectors = {"v": [0.5, 0.1, 0.9, 0.4], "w": [0.1, 0.2, 0.3, 0.4]}
    for graph in graphs.values():
        everything = graph.query(source % "limit 300", params=vectors).rows
        assert len({row["d"] for row in everything}) > 200
        assert graph.query(source % "limit 6", params=vectors).rows == everything[:6]
