"""Numbers at the ends of their types, NaN, nulls and empty lists: an answer or an error with its place, never another number."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import omnigraph as og
from omnigraph.errors import EvaluationError, LanguageError

SCHEMA = """
node P {
  k: String @key
  u: U64?  i: I64?  n: I32?  f: F32?  d: F64?  t: DateTime?  day: Date?  l: [I32]?  b: Bool?  v: Vector(2)?
}
node Q { c: String @key }
edge K: P -> P { w: I64? x: F64? }
"""
WIDE = 2**53 + 1
ROWS = [
    {"type": "P", "data": {"k": "a", "u": 2**64 - 1, "i": WIDE, "d": 1e308, "t": "2024-01-01T00:00:00Z", "b": True}},
    {"type": "P", "data": {"k": "b", "d": "NaN"}},
    {"type": "P", "data": {"k": "c", "d": "Infinity"}},
    {"edge": "K", "from": "a", "to": "b", "data": {"w": WIDE, "x": 1.0}},
    {"edge": "K", "from": "b", "to": "c", "data": {"w": 1, "x": "Infinity"}},
]
A = 'match { $p: P { k: "a" } } return { '


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> og.Graph:
    graph = og.init(tmp_path_factory.mktemp("wide") / "graph", SCHEMA)
    graph.load(ROWS, "append")
    return graph


ANSWERS: list[tuple[str, Any]] = [
    (f"{A} floor($p.i) as a, ceil($p.i) as b }}", [[WIDE, WIDE]]),
    (f"{A} if($p.b, $p.day, null) as a, if(null, 1, 2) as b, case when null then 1 else 3 end as c }}", [[None, 2, 3]]),
    (f"{A} abs(null) as a, round(1.5, null) as b, year(null) as c, size(null) as d, join([\"x\"], null) as e }}", [[None] * 5]),
    ('match { $p: P } return { $p.k, round($p.d, 1) as a, round($p.d, -400) as b } order { $p.k }',
     [["a", 1e308, 0.0], ["b", "NaN", "NaN"], ["c", "Infinity", "Infinity"]]),
    (f"{A} round(12.5, 308) as a, round(1.5, 9000000000) as b, round(5, -20) as c, round($p.i, -19) as d }}",
     [[12.5, 1.5, 0, 0]]),
    ('match { $p: P } return { round(if($p.k = "a", 0.05, 1e200), if($p.k = "a", 1, -200)) as a } order { $p.k } limit 2',
     [[0.1], [1e200]]),
    ("match { $p: P $q: P $p.d > 1 $p.k = $q.k } return { median($p.d) as a, percentile(-$p.d, 0.25) as b }",
     [["Infinity", "-Infinity"]]),
    ('match { $p: P $p.k in ["a", "c"] $q: P { k: "a" } } '
     'return { median(if($p.k = "a", $q.d, -1.5e308)) as a, percentile(if($p.k = "a", 0, $p.d), 0.5) as b }',
     [[-2.5e307, "Infinity"]]),
    (f"{A} null + $p.day as a, -null as b, substring(\"abc\", null) as c, add_months(null, 1) as d }}", [[None] * 4]),
    (f"{A} coalesce($p.l, []) as a }}", [[[]]]),
    (f"{A} greatest($p.t, datetime(\"2025-01-01T00:00:00Z\")) as a, least($p.t, null) as b }}",
     [["2025-01-01T00:00:00.000Z", "2024-01-01T00:00:00.000Z"]]),
    ('match { $p: P { k: "b" } } return { sqrt($p.d) as a, ln($p.d) as b }', [["NaN", "NaN"]]),
    ("match { $p: P } return { max($p.d) as a, min($p.d) as b }", [["Infinity", 1e308]]),
    ("match { $p: P } return { max($p.d) as a, min($p.d) as b, count(distinct $p.k) as n }", [["Infinity", 1e308, 3]]),
    ('match { $p: P { k: "b" } } return { max($p.d) as a, count(distinct $p.k) as n }', [["NaN", 1]]),
    ('match { $a: P { k: "a" } $b: P { k: "b" } $p = shortest($a $e: k{1,3} $b by $e.w) } return { nodes($p) }', [[["a", "b"]]]),
    ('match { $a: P { k: "a" } $b: P { k: "b" } $p = // the way\n shortest /* of */ ($a k{1,3} $b) } '
     "return { length($p) as n }", [[1]]),
    ("match { $p: P } return { $p.i as x } union { match { $p: P } return { $p.d as x } } order { x } limit 1", [[None]]),
]  # fmt: skip


@pytest.mark.parametrize(("query", "expected"), ANSWERS)
def test_an_answer(graph: og.Graph, query: str, expected: Any) -> None:
    found = [list(row.values()) for row in graph.query(query).to_dicts(json=True)]
    assert found == json.loads(json.dumps(expected))


ERRORS: list[tuple[str, str]] = [
    (f"{A} if($p.b, $p.u, 1) as x }}", "a number is outside the range of I64 in `if($p.b, $p.u, 1)`"),
    (f"{A} div($p.u, 2) as x }}", "a number is outside the range of I64 in `div($p.u, 2)`"),
    (f"{A} to_int($p.u) as x }}", "a number is outside the range of I64 in `to_int($p.u)`"),
    (f"{A} [1, 2][$p.u] as x }}", "a number is outside the range of I64 in `[1, 2][$p.u]`"),
    (f"{A} range(0, $p.u) as x }}", "a number is outside the range of I64 in `range(0, $p.u)`"),
    (f"{A} today() + $p.u as x }}", "a number is outside the range of I64 in `today() + $p.u`"),
    (f"{A} [$p.u, 1] as x }}", "a number is outside the range of I64 in `[$p.u, 1]`"),
    (f"{A} $p.u in [$p.u, $p.i] as x }}", "a number is outside the range of I64"),
    ("match { $p: P if($p.b, $p.u, 0) > 100 } return { $p.k }", "a number is outside the range of I64"),
    ('match { $p: P { k: "b" } } return { sign($p.d) as x }', "NaN has no sign in `sign($p.d)`"),
    (
        "match { $p: P } return { $p.u as x } union { match { $p: P } return { $p.i as x } }",
        "a number is outside the range of I64 in the column `x` of `union`",
    ),
]


@pytest.mark.parametrize(("query", "problem"), ERRORS)
def test_an_error(graph: og.Graph, query: str, problem: str) -> None:
    with pytest.raises(EvaluationError) as caught:
        graph.query(query)
    assert problem in str(caught.value)


def test_a_weight_is_finite(graph: og.Graph) -> None:
    query = "match { $a: P $b: P $p = shortest($a $e: k{1,3} $b by $e.x) } return { nodes($p) }"
    with pytest.raises(EvaluationError, match="needs finite weights of at least 0; K has an edge with inf") as caught:
        graph.query(query)
    assert str(caught.value).splitlines()[-1].index("^") == str(caught.value).splitlines()[-2].index("$e.x")


@pytest.mark.parametrize(
    "aggregate", ["sum($p.d)", "avg($p.d)", "sum(distinct $p.d)", "avg($p.n)", "min($p.d)", "median($p.n)"]
)
@pytest.mark.parametrize("beside", ["", ", count(distinct $p.k) as n"])
def test_an_aggregate_over_nothing_has_its_type(graph: og.Graph, aggregate: str, beside: str) -> None:
    for group in ("", "$p.b as g, "):
        query = f"match {{ $p: P {{ k: $k }} }} return {{ {group}{aggregate} as x{beside} }}"
        found = graph.query(query, params={"k": "none"}).to_arrow()
        assert found.schema.field("x").type == pa.float64()


@pytest.mark.parametrize("text", ["with { $x } ", "union { match { $x: P } return { $x } } "])
def test_a_chain_has_a_bound(graph: og.Graph, text: str) -> None:
    def asked(count: int) -> str:
        end = "return { $x }"
        return f"match {{ $x: P }} {text * count}{end}" if "with" in text else f"match {{ $x: P }} {end} {text * count}"

    assert len(graph.query(asked(60)).rows) == 3
    with pytest.raises(LanguageError, match="nested too deeply"):
        graph.query(asked(500))


@pytest.mark.parametrize("statement", ['update P set { l: [] } where k = "a"', 'upsert P { k: "a", l: [] }'])
def test_a_list_can_be_emptied(tmp_path: Path, statement: str) -> None:
    graph = og.init(tmp_path / "g", SCHEMA)
    graph.mutate('insert P { k: "a", l: [1, 2] }')
    graph.mutate(statement)
    assert graph.query("match { $p: P } return { $p.l }").rows == [{"p.l": []}]


@pytest.mark.parametrize(
    "place", ["{ v: [1, null] } } return { $p.k }", "} return { $p.k } order { nearest($p.v, [1, null]) } limit 1"]
)
def test_a_vector_holds_numbers(graph: og.Graph, place: str) -> None:
    with pytest.raises(LanguageError, match="elements must be numeric"):
        graph.query(f"match {{ $p: P {place}")


def test_what_a_row_holds_can_be_written_to_another(tmp_path: Path) -> None:
    """Whether a property may be null makes no difference, and integers are rounded to floats as literals are."""
    graph = og.init(tmp_path / "g", "node P { k: String @key  u: U64  o: U64?  i: I64?  d: F64? }")
    row = {"k": "a", "u": 2**64 - 1, "o": 2**64 - 1, "i": WIDE}
    graph.load([{"type": "P", "data": row}], "append")
    graph.mutate('match { $p: P } insert P { k: $p.k + "2", u: $p.o, o: $p.u, d: $p.i }')
    graph.mutate('update P set { d: i } where k = "a"')
    found = graph.query("match { $p: P } return { $p.u, $p.o, $p.d } order { $p.k }").rows
    assert [list(each.values()) for each in found] == [[2**64 - 1, 2**64 - 1, float(2**53)]] * 2
