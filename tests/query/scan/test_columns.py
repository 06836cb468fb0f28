"""Columns of node tables in memory: the same answers as the table gives, for as long as it is that table."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

import omnigraph as og
from omnigraph.query.cache import Bounded
from omnigraph.query.scan import columns, table_columns
from tests.language.query.test_meaning import make_query
from tests.query.loading import append
from tests.query.naive import BATCHES, make_world
from tests.query.test_differential import check

SCHEMA = """
node N {
  k: String @key
  age: I32? @index
  weight: F32?
  born: Date?
  live: Bool?
  kind: enum(a, b)?
  seen: DateTime?
  tags: [String]?
}
edge To: N -> N
"""
NODES = 300

QUERIES = [
    "match { $a: N $a.age > 20 } return { $a.k, $a.weight }",
    "match { $a: N $a.age >= 20.5 $a.age != 33 } return { $a.k }",
    "match { $a: N $a.weight < 0.25 } return { $a.k, $a.live, $a.seen }",
    'match { $a: N $a.born >= date("2001-01-05") $a.live = true } return { $a.k, $a.born }',
    'match { $a: N $a.kind = "b" $a.k starts_with "n1" } return { count($a) as n, avg($a.age) as m }',
    'match { $a: N $a.k contains "7" $a to $b $b.age < 40 } return { $a.k, $b.k, $b.kind }',
    "match { $a: N $a to $b $b to $c $b.age < 50 $c.weight > 0.3 } return { count($c) as n }",
    "match { $a: N not { $a to $b $b.live = true } } return { $a.k, $a.tags }",
    "match { $a: N $a to $b } return { $b.kind, count($a) as n, max($a.age) as m }",
    "match { $a: N $a.age < $a.weight } return { $a.k }",
    "match { $a: N $b: N $a.age = $b.age $a.k != $b.k $a.live = true } return { $a.k, $b.k }",
    "match { $a: N $a.age != 30 and 1 / ($a.age - 30) > 0.05 } return { $a.k }",
    "match { $a: N $a.age in [31, 32, 33] 1 / ($a.age - 30) > 0.4 $a to $b } return { $a.k, $b.k }",
    "match { $a: N now() <= now() } return { $a.k }",
    "match { $a: N $a.age > 20 now() > now() } return { $a.k }",
    "match { $a: N } return { count($a) as n, min($a.weight) as least }",
    "match { $a: N } return { $a.k, count($a.age) as n, sum($a.age) as s, avg($a.weight) as m, min($a.age) as b }",
    "match { $a: N $a to $b } return { $a.k, count($b) as n, sum($b.age) as s, avg($b.weight) as m, max($b.age) as l }",
    "match { $a: N $a to $b } return { $b.k, $a.kind, count($a) as n, sum($a.weight) as s, min($a.age) as b }",
    "match { $a: N $a to $b } return { $b.k, $a.k, $b.tags, count($a) as n }",
    "match { $a: N $a to $b $b to $c } return { $c.k, count($a) as n } order { n desc, $c.k asc } limit 3",
]


def answers(graph: og.Graph, text: str) -> list[tuple[object, ...]]:
    """The rows of a query, in an order of their own."""
    rows = graph.query(f"query q() {{ {text} }}").rows
    return sorted((tuple(row.values()) for row in rows), key=repr)


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Columns are kept as soon as they are asked for."""
    monkeypatch.setattr(columns, "_MANY", 0)
    monkeypatch.setattr(columns, "_PER_VALUE", 0)


@pytest.fixture
def filled(tmp_path: Path) -> og.Graph:
    random = Random(11)
    graph = og.init(tmp_path / "g", SCHEMA)
    maybe: Callable[[object], object] = lambda value: None if random.random() < 0.1 else value  # noqa: E731
    documents: list[dict[str, object]] = [
        {
            "type": "N",
            "data": {
                "k": f"n{number}",
                "age": maybe(random.randint(0, 60)),
                "weight": maybe(random.random()),
                "born": maybe(f"2001-01-{random.randint(1, 28):02}"),
                "live": maybe(random.random() < 0.5),
                "kind": maybe(random.choice("ab")),
                "seen": maybe(f"2024-06-{random.randint(1, 28):02}T12:00:00Z"),
                "tags": maybe(["x"]),
            },
        }
        for number in range(NODES)
    ]
    documents += [
        {"edge": "To", "from": f"n{random.randrange(NODES)}", "to": f"n{random.randrange(NODES)}"} for _ in range(900)
    ]
    append(graph, documents)
    graph.mutate('query q() { delete N where k = "n7" delete N where k = "n200" }')
    return graph


def test_the_same_answers(filled: og.Graph, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = [answers(filled, text) for text in QUERIES]
    assert sum(map(bool, expected)) > len(QUERIES) - 3
    monkeypatch.setattr(columns, "_MANY", 0)
    monkeypatch.setattr(columns, "_PER_VALUE", 0)
    handle = og.open(filled.uri)
    assert [answers(handle, text) for text in QUERIES] == expected
    assert len(handle._caches.columns) > 4


@pytest.mark.usefixtures("at_once")
def test_explain_says_so(filled: og.Graph) -> None:
    steps = filled.explain("query q() { match { $a: N $a.age > 20 } return { $a.k } }").steps
    assert "columns in memory" in steps
    assert "pushed: $a.age > 20" in steps
    listed = filled.explain("query q() { match { $a: N } return { $a.k, $a.tags } }").steps
    assert "columns in memory" not in listed


@pytest.mark.usefixtures("at_once")
def test_rows_are_counted_without_reading_them(filled: og.Graph) -> None:
    assert filled.query("query q() { match { $a: N } return { count($a) as n } }").rows == [{"n": NODES - 2}]
    assert not len(filled._caches.domains)


@pytest.mark.usefixtures("at_once")
def test_a_write_is_seen(filled: og.Graph) -> None:
    text = "match { $a: N $a.age > 50 } return { $a.k, $a.age }"
    before = answers(filled, text)
    filled.create_branch("side")
    filled.mutate("query q() { update N set { age: 1 } where age > 50 }")
    assert answers(filled, text) == []
    on_side = filled.query(f"query q() {{ {text} }}", branch="side").rows
    assert sorted((tuple(row.values()) for row in on_side), key=repr) == before


@pytest.mark.usefixtures("at_once")
def test_what_is_too_large_is_read_each_time(filled: og.Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = answers(og.open(filled.uri), QUERIES[0])
    monkeypatch.setattr(table_columns, "MOST_BYTES", 100)
    assert answers(filled, QUERIES[0]) == expected
    assert "columns in memory" not in filled.explain(f"query q() {{ {QUERIES[0]} }}").steps


def test_a_cache_is_bounded_in_bytes() -> None:
    kept: Bounded[bytes] = Bounded(10, 100, len)
    for number in range(5):
        kept.put((number,), b"x" * 40)
    assert len(kept) == 2
    assert kept.get((4,)) is not None
    kept.put(("large",), b"x" * 1000)
    assert len(kept) == 1
    assert kept.get(("large",)) is not None


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("seed", range(20, 23))
def test_random_queries(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    random = Random(seed)
    world = make_world(random, tmp_path / "graph", BATCHES[seed % 2])
    found = [check(world, make_query(random), random.choice(world.modes), monkeypatch) for _ in range(40)]
    assert sum(map(bool, found)) > 10


TEXTS = "node D { k: String @key t: String @index n: I32? big: [String]? }\nedge By: D -> D"


def test_rows_that_an_index_found_are_read_from_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_once: None
) -> None:
    graph = og.init(tmp_path / "g", TEXTS)
    documents: list[dict[str, object]] = [
        {"type": "D", "data": {"k": f"d{number}", "t": f"word{number % 7} tail{number % 5}", "n": number, "big": ["x"]}}
        for number in range(120)
    ]
    documents += [{"edge": "By", "from": f"d{number}", "to": f"d{number // 2}"} for number in range(120)]
    append(graph, documents)
    graph.ensure_indices()
    ranking = 'order { bm25($a.t, "word3 tail2") } limit 5'
    for text in (
        f"match {{ $a: D }} return {{ $a.k, $a.n }} {ranking}",
        f"match {{ $a: D $a by $b }} return {{ $a.k, $b.n }} {ranking}",
        f"match {{ $a: D $a.n > 50 }} return {{ $a.k, $a.n, $a.big }} {ranking}",
    ):
        found = graph.query(f"query q() {{ {text} }}").rows
        with monkeypatch.context() as patched:
            patched.setattr(columns, "_MOST", -1)
            assert graph.query(f"query q() {{ {text} }}").rows == found
            assert len(found) == 5
    notes = str(graph.explain(f"query q() {{ match {{ $a: D }} return {{ $a.k, $a.n }} {ranking} }}"))
    assert "columns in memory" in notes
