"""Section 4: filters, literals and null."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from tests.query.fixtures import ORG, ORG_QUERIES, ORG_ROWS
from tests.query.loading import graph_with


def readings(condition: str, pattern: str = "") -> str:
    return f"query q() {{ match {{ $r: Reading {pattern} {condition} }} return {{ $r.slug }} }}"


def staff(condition: str, order: str = "") -> str:
    return f"query q() {{ match {{ $s: Staff {condition} }} return {{ $s.handle }} {order} }}"


def first_column(graph: og.Graph, source: str, name: str | None = None, params: Any = None) -> list[Any]:
    return [next(iter(row.values())) for row in graph.query(source, name, params).rows]


@pytest.mark.row("QF-01")
def test_a_key_finds_one_row(org: og.Graph) -> None:
    result = org.query(ORG_QUERIES, "one", {"h": "ada"})
    assert result.rows == [{"s.handle": "ada", "s.level": 30}]
    assert str(result.table.schema.field("s.level").type) == "int32"


ORG_CASES = [
    ("QF-03", "query q($n: I32) { match { $s: Staff $s.level < $n } return { $s.handle } }", {"n": 28}, ["ben"]),
    ("QF-06", staff('$s.handle != "ada"'), None, ["ben", "cleo", "dov"]),
    ("QF-04 sorted", staff("$s.level >= 30"), None, ["ada", "cleo"]),
]


@pytest.mark.parametrize(
    ("source", "params", "expected"), [case[1:] for case in ORG_CASES], ids=[c[0] for c in ORG_CASES]
)
def test_comparisons(org: og.Graph, source: str, params: Any, expected: list[str]) -> None:
    assert sorted(first_column(org, source, params=params)) == expected


@pytest.mark.parametrize(
    ("handle", "rows"), [("nobody", 0), ("x' OR '1'='1", 0), ("ada", 1)], ids=["QF-02", "QF-26", "QF-01"]
)
def test_values_are_bound(org: og.Graph, handle: str, rows: int) -> None:
    assert len(org.query(ORG_QUERIES, "one", {"h": handle})) == rows


@pytest.mark.parametrize(
    ("condition", "expected"),
    [("$s.level >= 30", ["ada", "cleo"]), ("$s.level <= 28", ["ben", "dov"])],
    ids=["QF-04", "QF-05"],
)
def test_ranges_in_order(org: og.Graph, condition: str, expected: list[str]) -> None:
    assert first_column(org, staff(condition, "order { $s.level asc }")) == expected


@pytest.mark.row("QF-07", "QF-08")
def test_null_satisfies_nothing_and_is_returned(tmp_path: Path) -> None:
    graph = graph_with(tmp_path / "g", ORG, ORG_ROWS.replace('"ben","level":25', '"ben"'))
    assert first_column(graph, ORG_QUERIES, "above", {"n": 30}) == ["cleo"]
    assert first_column(graph, staff("$s.level < 31")) == ["ada", "dov"]
    levels = {row["s.handle"]: row["s.level"] for row in graph.query(ORG_QUERIES, "everyone").rows}
    assert levels["ben"] is None


LIT_CASES = [
    ("QF-09", readings("$r.temp > 1.5"), {"r1", "r3"}),
    ("QF-12 pattern", readings("", "{ seq: 2 }"), {"r2"}),
    ("QF-12 range", readings("$r.seq >= 3"), {"r3", "r4"}),
    ("QF-13", readings("", "{ seq: 2.7 }"), set()),
    ("QF-13 not equal", readings("$r.seq != 2.7"), {"r1", "r2", "r3", "r4"}),
    ("QF-13 above", readings("$r.seq > 2.7"), {"r3", "r4"}),
    ("QF-13 beyond", readings("$r.seq < 3000000000"), {"r1", "r2", "r3", "r4"}),
    ("QF-14 equal", readings("$r.live = true"), {"r1", "r3"}),
    ("QF-14 pattern", readings("", "{ live: true }"), {"r1", "r3"}),
    ("QF-14 not equal", readings("$r.live != true"), {"r2", "r4"}),
    ("QF-14 below", readings("$r.live < true"), {"r2", "r4"}),
    ("QF-15 range", readings('$r.day >= date("2024-01-01")'), {"r1", "r3"}),
    ("QF-15 pattern", readings("", '{ day: date("2024-06-01") }'), {"r1"}),
    ("QF-16 range", readings('$r.stamp < datetime("2024-01-01T00:00:00Z")'), {"r2", "r4"}),
    ("QF-16 pattern", readings("", '{ stamp: datetime("2024-06-01T12:00:00Z") }'), {"r1"}),
    ("QF-18 across words", readings('$r.memo contains "ss v"'), {"r3"}),
    ("QF-18 one letter", readings('$r.memo contains "a"'), {"r1", "r2", "r3"}),
    ("QF-19", readings('$r.slug starts_with "r"'), {"r1", "r2", "r3", "r4"}),
    ("QF-19 empty", readings('$r.memo starts_with ""'), {"r1", "r2", "r3"}),
    ("QF-21", readings('"the altus sings" contains $r.memo'), {"r2"}),
    ("QF-22", readings("$r.memo starts_with $r.slug"), set()),
    ("QF-24", readings('not { $r marked $b $b.word contains "bal" }'), {"r2", "r4"}),
    ("F32 is rounded", readings("$r.gain = 0.1"), {"r4"}),
    ("exchanged", readings("1.5 < $r.temp"), {"r1", "r3"}),
    ("two columns", readings("$r.temp > $r.seq"), {"r1"}),
]


@pytest.mark.parametrize(("source", "expected"), [case[1:] for case in LIT_CASES], ids=[case[0] for case in LIT_CASES])
def test_literals(lit: og.Graph, source: str, expected: set[str]) -> None:
    assert set(first_column(lit, source)) == expected


@pytest.mark.row("QF-20")
def test_a_prefix_from_another_row(lit: og.Graph) -> None:
    source = (
        """query q() { match { $a: Reading $b: Reading $b.memo starts_with $a.memo } return { $a.slug, $b.slug } }"""
    )
    found = {tuple(row.values()) for row in lit.query(source).rows}
    assert found == {("r1", "r1"), ("r2", "r2"), ("r3", "r3")}


@pytest.mark.row("QF-27")
def test_names_keep_their_case(tmp_path: Path) -> None:
    schema = "node Doc { slug: String @key repoName: String @index status: String? }"
    rows = """{"type":"Doc","data":{"slug":"d1","repoName":"acme"}}
              {"type":"Doc","data":{"slug":"d2","repoName":"globex"}}"""
    graph = graph_with(tmp_path / "g", schema, rows)
    source = "query q($r: String) { match { $d: Doc { repoName: $r } } return { $d.slug } }"
    assert first_column(graph, source, params={"r": "acme"}) == ["d1"]


@pytest.mark.row("QF-29")
@pytest.mark.parametrize("number", [0, 2, 4])
def test_pattern_and_clause_are_one(lit: og.Graph, number: int) -> None:
    pattern = "query q($n: I32) { match { $r: Reading { seq: $n } } return { $r.slug } }"
    clause = "query q($n: I32) { match { $r: Reading $r.seq = $n } return { $r.slug } }"
    found = [sorted(first_column(lit, source, params={"n": number})) for source in (pattern, clause)]
    assert found[0] == found[1]


@pytest.mark.parametrize(
    ("value", "found"),
    [([0.1, 2.0], ["a"]), ([0.1, 3.0], []), ([0.0, 0.0], ["b"]), (None, [])],
    ids=["equal", "another", "-0 is 0", "null"],
)
@pytest.mark.parametrize("indexed", [False, True])
def test_a_vector_in_a_pattern_is_equality(tmp_path: Path, indexed: bool, value: Any, found: list[str]) -> None:
    graph = og.init(tmp_path / "g", "node N { k: String @key v: Vector(2)? @index } edge E: N -> N")
    rows = [("a", [0.1, 2.0]), ("b", [-0.0, 0.0]), ("c", None)]
    graph.load([{"type": "N", "data": {"k": key, "v": vector}} for key, vector in rows])
    graph.load([{"edge": "E", "from": "c", "to": key} for key, _ in rows])
    if indexed:
        graph.ensure_indices()
    scanned = "query q($v: Vector(2)?) { match { $n: N { v: $v } } return { $n.k } }"
    reached = "query q($v: Vector(2)?) { match { $c: N $c e $n $n: N { v: $v } } return { $n.k } }"
    for source in (scanned, reached):
        assert first_column(graph, source, params={"v": value}) == found
    literal = "query q() { match { $n: N { v: [0.1, 2] } not { $n: N { v: [0, 0] } } } return { $n.k } }"
    assert first_column(graph, literal) == ["a"]
