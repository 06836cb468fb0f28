"""Sections 5 and 6: projection, aggregation, order, limit, parameters and rendering."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import omnigraph as og
from omnigraph.errors import BadRequest
from tests.query.fixtures import ORG, ORG_QUERIES, ORG_ROWS
from tests.query.loading import graph_with, load

COUNTED = "query q() { match { $s: Staff $s mentors $m } return { $s.handle, count($m) as n } order { n desc } %s }"
BY_LEVEL = "query q() { match { $s: Staff } return { $s.handle, $s.level } order { $s.level desc } %s }"
DATED = """
{"edge":"Mentors","from":"ada","to":"ben","data":{"began":"2020-05-01"}}
{"edge":"Mentors","from":"ada","to":"dov","data":{"began":"2024-11-30"}}
"""


def values(result: Any) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in result.to_dicts(json=True)]


CASES = [
    ("QA-03", COUNTED % "", [("ada", 2), ("ben", 1)]),
    ("QA-04", "query q() { match { $s: Staff } return { count($s) as total } }", [(4,)]),
    ("QA-06", COUNTED % "limit 1", [("ada", 2)]),
    (
        "QA-07",
        "query q() { match { $s: Staff } return { min($s.handle) as lo max($s.handle) as hi } }",
        [("ada", "dov")],
    ),
    ("QA-18", BY_LEVEL % "limit 2", [("cleo", 35), ("ada", 30)]),
    ("QA-19", BY_LEVEL % "limit 0", []),
    ("QA-13", BY_LEVEL % "", [("cleo", 35), ("ada", 30), ("dov", 28), ("ben", 25)]),
]


@pytest.mark.parametrize(("source", "expected"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_answers(org: og.Graph, source: str, expected: list[tuple[Any, ...]]) -> None:
    assert values(org.query(source)) == expected


@pytest.mark.row("QA-01", "QA-02", "QA-21")
def test_column_names(org: og.Graph) -> None:
    assert org.query(ORG_QUERIES, "one", {"h": "ada"}).columns == ["s.handle", "s.level"]
    assert org.query("query q() { match { $s: Staff } return { $s.handle as who } }").columns == ["who"]
    whole = org.query("query q() { match { $s: Staff } return { $s } order { $s.handle asc } }")
    assert whole.columns == ["s"]
    assert values(whole) == [("ada",), ("ben",), ("cleo",), ("dov",)]


@pytest.mark.row("QA-03")
def test_counts_are_i64(org: og.Graph) -> None:
    result = org.query(COUNTED % "")
    assert result.table.schema.field("n").type == pa.int64()


def test_unaliased_aggregates_have_names(org: og.Graph) -> None:
    result = org.query("query q() { match { $s: Staff } return { count($s), sum($s.level), avg($s.level) } }")
    assert result.rows == [{"count(s)": 4, "sum(s.level)": 118.0, "avg(s.level)": 29.5}]


@pytest.mark.row("QA-08")
def test_two_hops_are_counted(org: og.Graph, mode: str) -> None:
    source = """query q($h: String) {
      match { $s: Staff { handle: $h } $s mentors $x $x mentors $y } return { $s.handle, count($y) as n } }"""
    assert values(org.query(source, params={"h": "ada"})) == [("ada", 1)]


@pytest.fixture(scope="module")
def dated(tmp_path_factory: pytest.TempPathFactory) -> og.Graph:
    graph = graph_with(tmp_path_factory.mktemp("dated") / "g", ORG, ORG_ROWS)
    load(graph, DATED)
    return graph


@pytest.mark.row("QA-09")
def test_count_skips_nulls(dated: og.Graph, mode: str) -> None:
    source = """query q($h: String) {
      match { $s: Staff { handle: $h } $s $e:mentors $m } return { $m.handle, count($e.began) as n } }"""
    assert sorted(values(dated.query(source, params={"h": "ada"}))) == [("ben", 1), ("cleo", 0), ("dov", 1)]


@pytest.mark.row("QA-10", "QA-11", "QA-12")
def test_aggregates_over_nothing(empty_org: og.Graph) -> None:
    assert values(empty_org.query(ORG_QUERIES, "headcount")) == [(0,)]
    assert values(empty_org.query("query q() { match { $s: Staff } return { sum($s.level) as su } }")) == [(None,)]
    assert values(empty_org.query(COUNTED % "")) == []


def test_nulls_come_first_ascending_and_last_descending(tmp_path: Path) -> None:
    graph = graph_with(tmp_path / "g", ORG, ORG_ROWS.replace('"ben","level":25', '"ben"'))
    source = "query q() { match { $s: Staff } return { $s.handle } order { $s.level %s } }"
    assert [row[0] for row in values(graph.query(source % "asc"))] == ["ben", "dov", "ada", "cleo"]
    assert [row[0] for row in values(graph.query(source % "desc"))] == ["cleo", "ada", "dov", "ben"]


def test_nan_comes_after_all_numbers(tmp_path: Path) -> None:
    rows = "\n".join(
        f'{{"type":"N","data":{{"k":"{key}","x":{value}}}}}'
        for key, value in [("a", "NaN"), ("b", "1.5"), ("c", "Infinity"), ("d", "null"), ("e", "-2"), ("f", "1.5")]
    )
    graph = graph_with(tmp_path / "g", "node N { k: String @key x: F64? }", rows)
    source = "query q() { match { $n: N } return { $n.k, $n.x } order { $n.x %s } }"
    assert [row[0] for row in values(graph.query(source % "asc"))] == ["d", "e", "b", "f", "c", "a"]
    assert [row[0] for row in values(graph.query(source % "desc"))] == ["c", "b", "f", "e", "a", "d"]
    assert [row[1] for row in values(graph.query(source % "asc"))] == [None, -2.0, 1.5, 1.5, "Infinity", "NaN"]
    above = graph.query("query q() { match { $n: N $n.x > 1 } return { $n.k } order { $n.k asc } }")
    assert [row[0] for row in values(above)] == ["b", "c", "f"]


@pytest.mark.parametrize("limit", [5, 2**32, 2**63 - 1, 2**63, 2**64 - 1])
@pytest.mark.parametrize("order", ["", "order { $s.level desc }"])
def test_a_limit_may_be_as_large_as_the_language_allows(org: og.Graph, limit: int, order: str) -> None:
    source = f"query q() {{ match {{ $s: Staff }} return {{ $s.handle }} {order} limit {limit} }}"
    assert len(org.query(source)) == 4


# --- section 6 --------------------------------------------------------------------------------------------------------

OPTIONAL = "query q($a: String, $b: String?) { match { $s: Staff } return { $s.handle } }"
LISTS = "query q($t: [String], $d: [Date]?, $w: DateTime) { match { $s: Staff } return { $s.handle } }"
VECTOR = "query q($v: Vector(3)) { match { $s: Staff } return { $s.handle } }"
LARGE = "query q($u: U64) { match { $s: Staff } return { $s.handle } }"


@pytest.mark.parametrize(
    ("source", "params"),
    [
        (OPTIONAL, {"a": "x"}),
        (OPTIONAL, {"a": "x", "b": None}),
        ("query q($b: String?) { match { $s: Staff } return { $s.handle } }", None),
        (LISTS, {"t": ["x", "y"], "d": ["2024-01-01"], "w": "2024-01-01T00:00:00Z"}),
    ],
    ids=["PRM-01", "PRM-01 null", "PRM-01 none", "PRM-05"],
)
def test_parameters_that_fit(org: og.Graph, source: str, params: Any) -> None:
    assert len(org.query(source, params=params)) == 4


@pytest.mark.parametrize(
    ("source", "params", "message"),
    [
        (OPTIONAL, ["x"], "params must be a JSON object"),
        (OPTIONAL, {}, "parameter 'a' not provided"),
        (VECTOR, {"v": [1.0, 2.0]}, "expected 3 values"),
        (OPTIONAL, {"a": "x", "unknown": {}}, "JSON object"),
        (OPTIONAL, {"a": "x", "unknown": 7}, "declares no parameter 'unknown'; its parameters are a, b"),
        (OPTIONAL, {"a": "x", "bb": 7}, "declares no parameter 'bb'; did you mean `b`"),
        (LARGE, {"u": 2**63}, "outside the range of U64"),
    ],
    ids=["PRM-03", "missing", "PRM-06", "PRM-07 object", "PRM-07", "PRM-07 misspelt", "PRM-08"],
)
def test_parameters_that_do_not(org: og.Graph, source: str, params: Any, message: str) -> None:
    with pytest.raises(BadRequest, match=message):
        org.query(source, params=params)


@pytest.mark.row("PRM-09")
def test_an_unknown_query(org: og.Graph) -> None:
    with pytest.raises(og.OmnigraphError, match="query 'x' not found"):
        org.query(ORG_QUERIES, "x")


@pytest.mark.row("PRM-11")
def test_dates_are_iso(lit: og.Graph) -> None:
    source = """query q() { match { $r: Reading { slug: "r1" } } return { $r.day, $r.stamp, $r.live, $r.temp } }"""
    assert lit.query(source).to_dicts(json=True) == [
        {"r.day": "2024-06-01", "r.stamp": "2024-06-01T12:00:00.000Z", "r.live": True, "r.temp": 2.5}
    ]


def test_a_result_speaks_arrow_text_and_html(org: og.Graph) -> None:
    result = org.query(ORG_QUERIES, "everyone")
    assert pa.table(result).equals(result.to_arrow())
    assert str(result).splitlines()[:3] == ["s.handle | s.level", "---------+--------", "ada      | 30"]
    assert '<td>ada</td><td class="n">30</td>' in result._repr_html_()
    assert result.commit == org.head().id
    assert result.to_dict()["types"] == ["String", "I32?"]


@pytest.mark.parametrize(
    ("source", "options", "message"),
    [
        ("query q() { match { $s: Staff } return { $s.handle } order { nope } }", {}, "nope"),
        ('query q() { insert Staff { handle: "x" } }', {}, "mutat"),
        ("query q() { match { $s: Staff } return { $s.handle } }", {"engine": "sparks"}, "sparks"),
        ("query q() { match { $s: Staff } return { $s.handle } }", {"branch": "nope"}, "nope"),
    ],
    ids=["unknown alias", "mutation", "engine", "branch"],
)
def test_what_is_refused(org: og.Graph, source: str, options: Any, message: str) -> None:
    with pytest.raises(og.OmnigraphError, match=message):
        org.query(source, **options)
