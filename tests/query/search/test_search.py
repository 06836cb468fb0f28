"""Section 17: search, with and without indexes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import omnigraph as og
from omnigraph.embedding.embedder import Embedder
from omnigraph.errors import BadRequest, EmbeddingError
from tests.embedding.provider_server import running_service
from tests.query.fixtures import LIT, LIT_ROWS, PAGE, PAGE_ROWS
from tests.query.loading import graph_with

KEYS = (
    "OPENROUTER_API_KEY",
    "OPENAI_API_KEY",
    "GEMINI_API_KEY",
    "OMNIGRAPH_EMBEDDINGS_MOCK",
    "OMNIGRAPH_EMBED_PROVIDER",
)


@pytest.fixture(scope="module", params=["indexed", "unindexed"])
def pages(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> og.Graph:
    """FX-PAGE."""
    graph = graph_with(tmp_path_factory.mktemp("pages") / "g", PAGE, PAGE_ROWS)
    if request.param == "indexed":
        graph.ensure_indices()
    return graph


def slugs(graph: og.Graph, source: str, **params: Any) -> list[str]:
    return [next(iter(row.values())) for row in graph.query(source, params=params).rows]


def matching(call: str) -> str:
    return f"query q($x: String) {{ match {{ $p: Page {call} }} return {{ $p.slug }} }}"


@pytest.mark.parametrize(
    ("call", "text", "expected"),
    [
        ("search($p.head, $x)", "river", "abc"),
        ("search($p.head, $x)", "zzz", ""),
        ("search($p.head, $x)", "RIVERS mountains", "abcd"),
        ("search($p.head, $x)", "the", ""),
        ("match_text($p.body, $x)", "muddy", "b"),
        ("match_text($p.body, $x)", "basin muddy", "b"),
        ("match_text($p.body, $x)", "basin calm", ""),
        ("match_text($p.body, $x)", "", ""),
        ("fuzzy($p.head, $x, 2)", "rivr", "abc"),
        ("fuzzy($p.head, $x)", "rivr", "abc"),
        ("fuzzy($p.head, $x, 0)", "rivr", ""),
        ("fuzzy($p.head, $x)", "montain", "d"),
    ],
    ids=[
        "SEA-01",
        "SEA-01 none",
        "any token, stemmed",
        "a stop word",
        "SEA-02",
        "SEA-03",
        "all tokens",
        "no token",
        "SEA-04",
        "SEA-04 default",
        "no edits",
        "two edits by default",
    ],
)
def test_which_texts_match(pages: og.Graph, call: str, text: str, expected: str) -> None:
    assert sorted(slugs(pages, matching(call), x=text)) == list(expected)


def test_a_match_is_a_value(pages: og.Graph) -> None:
    source = 'query q() { match { $p: Page } return { search($p.head, "delta") as hit } order { $p.slug asc } }'
    assert [row["hit"] for row in pages.query(source).rows] == [False, True, True, False]


@pytest.mark.row("SEA-05")
def test_nearest(pages: og.Graph) -> None:
    source = """query q($v: Vector(2)) { match { $p: Page } return { $p.slug, nearest($p.emb, $v) as d }
                order { nearest($p.emb, $v) } limit 3 }"""
    rows = pages.query(source, params={"v": [0.0, 0.0]}).rows
    assert [(row["p.slug"], row["d"]) for row in rows] == [("a", 0.0), ("b", 1.0), ("c", 3.0)]
    assert slugs(pages, source, v=[3.1, 4.0]) == ["c", "b", "a"]


@pytest.mark.row("SEA-06")
@pytest.mark.parametrize("indexed", [False, True], ids=["unindexed", "indexed"])
def test_filters_come_before_the_nearest(tmp_path: Path, indexed: bool) -> None:
    near = {"miss": [[1.0, 0.0], [1.0, 0.1], [0.9, 0.0]], "hit": [[-1.0, 0.0], [-1.0, 0.1], [-0.9, 0.0]]}
    rows = "\n".join(
        f'{{"type":"D","data":{{"s":"{kind}{number}","st":"{kind}","emb":{vector}}}}}'
        for kind, vectors in near.items()
        for number, vector in enumerate(vectors)
    )
    graph = graph_with(tmp_path / "g", "node D { s: String @key st: String emb: Vector(2) @index }", rows)
    if indexed:
        graph.ensure_indices()
    source = "query q($v: Vector(2)) { match { $d: D %s } return { $d.s } order { nearest($d.emb, $v) } limit 3 }"
    for condition in ('{ st: "hit" }', '$d.st = "hit"', '$d.st <= "hit"'):
        assert slugs(graph, source % condition, v=[1.0, 0.0]) == ["hit2", "hit0", "hit1"]


@pytest.mark.row("SEA-08")
def test_ranks_are_fused(pages: og.Graph) -> None:
    source = """query q($v: Vector(2), $w: Vector(2)) { match { $p: Page }
      return { $p.slug, rrf(nearest($p.emb, $v), nearest($p.emb, $w)) as score }
      order { rrf(nearest($p.emb, $v), nearest($p.emb, $w)) } limit 3 }"""
    rows = pages.query(source, params={"v": [0.0, 0.0], "w": [1.9, 0.0]}).rows
    assert [row["p.slug"] for row in rows] == ["b", "a", "c"]
    assert rows[0]["score"] == pytest.approx(1 / 62 + 1 / 61)


@pytest.mark.row("SEA-09")
def test_texts_are_ranked(pages: og.Graph) -> None:
    fused = """query q($x: String, $v: Vector(2)) { match { $p: Page } return { $p.slug }
      order { rrf(%s, bm25($p.body, $x)) } limit 2 }"""
    assert slugs(pages, fused % "bm25($p.head, $x)", x="river water", v=[0, 0])[0] == "a"
    assert slugs(pages, fused % "nearest($p.emb, $v)", x="water", v=[0.0, 0.0])[0] == "a"
    best = """query q($x: String) { match { $p: Page } return { $p.slug, bm25($p.head, $x) as s }
      order { bm25($p.head, $x) } limit 3 }"""
    rows = pages.query(best, params={"x": "delta"}).rows
    assert [row["p.slug"] for row in rows] == ["b", "c", "a"]
    assert rows[0]["s"] > rows[1]["s"] > rows[2]["s"] == 0


@pytest.mark.row("SEA-10")
def test_edges_follow_the_rank_of_their_source(tmp_path: Path, mode: str) -> None:
    schema = "node N { k: String @key emb: Vector(2) } edge To: N -> N"
    nodes = [f'{{"type":"N","data":{{"k":"n{number}","emb":[{number}.0,0.0]}}}}' for number in range(4)]
    edges = [f'{{"edge":"To","id":"e{place}","from":"n{tail}","to":"n0"}}' for place, tail in enumerate([3, 2, 1, 1])]
    graph = graph_with(tmp_path / "g", schema, "\n".join(nodes + edges))
    source = """query q($v: Vector(2)) { match { $n: N $n $e:to $m } return { $n.k }
      order { %s } limit 9 }"""
    for ranking in ("nearest($n.emb, $v)", "rrf(nearest($n.emb, $v), nearest($n.emb, $v))"):
        assert slugs(graph, source % ranking, v=[0.0, 0.0]) == ["n1", "n1", "n2", "n3"]


@pytest.mark.row("SEA-13")
def test_rows_newer_than_the_index_are_found(tmp_path: Path) -> None:
    graph = graph_with(tmp_path / "g", PAGE, PAGE_ROWS)
    graph.ensure_indices()
    graph.mutate(
        'query q($v: Vector(2)) { insert Page { slug: "e", head: "quasar river", body: "x", emb: $v } }',
        params={"v": [0.5, 0.0]},
    )
    assert slugs(graph, matching("search($p.head, $x)"), x="quasars") == ["e"]
    assert sorted(slugs(graph, matching("search($p.head, $x)"), x="river")) == ["a", "b", "c", "e"]
    near = "query q($v: Vector(2)) { match { $p: Page } return { $p.slug } order { nearest($p.emb, $v) } limit 2 }"
    assert slugs(graph, near, v=[0.0, 0.0]) == ["a", "e"]


@pytest.mark.row("SEA-15")
def test_a_text_needs_a_provider(pages: og.Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in KEYS:
        monkeypatch.delenv(name, raising=False)
    text = "query q($x: String) { match { $p: Page } return { $p.slug } order { nearest($p.emb, $x) } limit 1 }"
    with pytest.raises(EmbeddingError, match="OPENROUTER_API_KEY or OPENAI_API_KEY"):
        pages.query(text, params={"x": "river"})
    monkeypatch.setenv("OMNIGRAPH_EMBEDDINGS_MOCK", "1")
    points = {"a": (0.0, 0.0), "b": (1.0, 0.0), "c": (3.0, 0.0), "d": (7.0, 0.0)}
    wanted = np.array(Embedder("mock").embed_query("river", 2))
    closest = min(points, key=lambda slug: float(np.linalg.norm(np.array(points[slug]) - wanted)))
    assert slugs(pages, text, x="river") == [closest]


@pytest.mark.parametrize(
    "tail", ["order { rrf(nearest($p.emb, $x), bm25($p.head, $x)) }", "order { nearest($p.emb, $x) }"]
)
def test_a_provider_is_asked_once_for_a_query(tmp_path: Path, tail: str) -> None:
    """However often its vector is looked at: rows are ordered, dropped, asked for again, and shown with their distance."""
    edge = '{"edge":"To","from":"d","to":"a","data":{}}'
    graph = graph_with(tmp_path / "g", PAGE + " edge To: Page -> Page", f"{PAGE_ROWS.strip()}\n{edge}")
    graph.ensure_indices()
    source = f"""query q($x: String) {{ match {{ $p: Page $p to $q }} return {{ $p.slug, nearest($p.emb, $x) as d }}
      {tail} limit 1 }}"""
    with running_service() as service:
        given = {"kind": "openai", "model": "m", "base_url": service.url, "api_key": "sk-0123456789"}
        assert slugs(og.open(tmp_path / "g", embedding=given), source, x="river") == ["d"]
        assert len(service.asked) == 1


@pytest.mark.row("SEA-17")
def test_both_conditions_hold(tmp_path: Path) -> None:
    graph = graph_with(tmp_path / "g", LIT, LIT_ROWS)
    graph.ensure_indices()
    source = 'query q() { match { $r: Reading search($r.memo, "altus") $r.memo starts_with "al" } return { $r.slug } }'
    assert slugs(graph, source) == ["r2"]


def test_search_on_a_variable_reached_by_traversal(tmp_path: Path, mode: str) -> None:
    graph = graph_with(tmp_path / "g", LIT, LIT_ROWS)
    source = 'query q() { match { $r: Reading $r marked $b search($b.word, "cobalt") } return { $r.slug } }'
    assert sorted(slugs(graph, source)) == ["r1", "r3"]
    ranked = """query q() { match { $r: Reading $r marked $b } return { $r.slug, bm25($b.word, "altimeter") as s }
      order { s desc, $r.slug asc } limit 1 }"""
    assert slugs(graph, ranked) == ["r1"]


@pytest.mark.parametrize(
    ("metric", "expected"),
    [("cosine", [("c", 0.0), ("a", 0.0), ("b", 1.0)]), ("dot", [("c", -4.0), ("a", -1.0), ("b", 0.0)])],
)
def test_metrics(tmp_path: Path, metric: str, expected: list[tuple[str, float]]) -> None:
    schema = f'node D {{ s: String @key emb: Vector(2)? @metric("{metric}") }}'
    rows = "\n".join(
        f'{{"type":"D","data":{{"s":"{key}","emb":{vector}}}}}'
        for key, vector in [("a", [1.0, 0.0]), ("b", [0.0, 1.0]), ("c", [4.0, 0.0]), ("n", "null")]
    )
    graph = graph_with(tmp_path / "g", schema, rows)
    source = """query q($v: Vector(2)) { match { $d: D } return { $d.s, nearest($d.emb, $v) as d }
      order { nearest($d.emb, $v) } limit 3 }"""
    rows_found = [(row["d.s"], row["d"]) for row in graph.query(source, params={"v": [1.0, 0.0]}).rows]
    assert sorted(rows_found) == sorted(expected)


def test_too_many_edits_are_refused(pages: og.Graph) -> None:
    with pytest.raises(BadRequest, match="0 to 2 edits"):
        pages.query(matching("fuzzy($p.head, $x, 3)"), params={"x": "river"})


@pytest.mark.parametrize("limit", [10**6, 10**12, 2**63, 2**64 - 1])
@pytest.mark.parametrize("rank", ["nearest($p.emb, [0, 0])", 'bm25($p.head, "river")'])
def test_a_limit_beyond_the_table_asks_for_all_of_it(pages: og.Graph, limit: int, rank: str) -> None:
    source = f"query q() {{ match {{ $p: Page }} return {{ $p.slug }} order {{ {rank} }} limit {limit} }}"
    assert slugs(pages, source) == ["a", "b", "c", "d"]
