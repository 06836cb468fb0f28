"""Section 7: traversal and negation, each row in every traversal mode."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest

import omnigraph as og
from omnigraph.errors import BadRequest
from tests.query.fixtures import ORG, ORG_QUERIES, ORG_ROWS
from tests.query.loading import graph_with, load

DATED = """
{"edge":"Mentors","from":"ada","to":"ben","data":{"began":"2020-05-01"}}
{"edge":"Mentors","from":"ada","to":"dov","data":{"began":"2024-11-30"}}
"""
CHAIN = "node N { k: String @key } edge Next: N -> N"


def values(result: Any) -> list[Any]:
    rows = [tuple(row.values()) for row in result.rows]
    return sorted((row[0] if len(row) == 1 else row for row in rows), key=str)


def from_one(step: str, returned: str = "$m.handle", more: str = "") -> str:
    return (
        f"query q($h: String) {{ match {{ $s: Staff {{ handle: $h }} $s {step} $m {more} }} return {{ {returned} }} }}"
    )


@pytest.fixture(scope="module")
def dated(tmp_path_factory: pytest.TempPathFactory) -> og.Graph:
    graph = graph_with(tmp_path_factory.mktemp("dated") / "g", ORG, ORG_ROWS)
    load(graph, DATED)
    return graph


NAMED = [
    ("TRV-01", "mentees", {"h": "ada"}, [("ben", 25), ("cleo", 35)]),
    ("TRV-02", "members", {"c": "core"}, ["ada"]),
    ("TRV-03", "second", {"h": "ada"}, ["dov"]),
    ("TRV-04", "mentees", {"h": "dov"}, []),
    ("NEG-01", "teamless", None, ["cleo", "dov"]),
]


@pytest.mark.parametrize(("name", "params", "expected"), [case[1:] for case in NAMED], ids=[case[0] for case in NAMED])
def test_named_queries(org: og.Graph, mode: str, name: str, params: Any, expected: list[Any]) -> None:
    assert values(org.query(ORG_QUERIES, name, params)) == expected


WITH_TEAM = "query q() { match { $s: Staff $s memberOf $t $t: Team %s } return { $s.handle, $t.code } }"
CASES = [
    ("TRV-05", WITH_TEAM % '{ code: "core" }', [("ada", "core")]),
    ("TRV-07", WITH_TEAM % '{ code: "nope" }', []),
    ("TRV-08", WITH_TEAM % "", [("ada", "core"), ("ben", "labs")]),
    (
        "TRV-10",
        """query q() { match { $s: Staff { handle: "ada" } $s mentors $x $x: Staff { handle: "ben" } $x mentors $y }
           return { $y.handle } }""",
        ["dov"],
    ),
    (
        "closing a triangle",
        """query q() { match { $a: Staff $a mentors $b $b mentors $c $a mentors $c } return { $a.handle } }""",
        [],
    ),
    (
        "closing two hops",
        """query q() { match { $a: Staff $b: Staff $a mentors{2,2} $b $a mentors{1,2} $b }
           return { $a.handle, $b.handle } }""",
        [("ada", "dov")],
    ),
    (
        "NEG-04 clause",
        'query q() { match { $s: Staff not { $s memberOf $t $t.code = "core" } } return { $s.handle } }',
        ["ben", "cleo", "dov"],
    ),
    (
        "NEG-04 pattern",
        'query q() { match { $s: Staff not { $s memberOf $t $t: Team { code: "core" } } } return { $s.handle } }',
        ["ben", "cleo", "dov"],
    ),
    (
        "NEG-05",
        """query q() { match { $s: Staff not { $s memberOf $t not { $t.code = "core" } } } return { $s.handle } }""",
        ["ada", "cleo", "dov"],
    ),
    (
        "NEG-07",
        'query q() { match { $s: Staff not { $s memberOf $t $t.code != "" } } return { $s.handle } }',
        ["cleo", "dov"],
    ),
    (
        "negated pair",
        """query q() { match { $a: Staff $b: Staff not { $a mentors $b } $a.handle != $b.handle $a.level > 29 }
           return { $a.handle, $b.handle } }""",
        [("ada", "dov"), ("cleo", "ada"), ("cleo", "ben"), ("cleo", "dov")],
    ),
]


@pytest.mark.parametrize(("source", "expected"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_patterns(org: og.Graph, mode: str, source: str, expected: list[Any]) -> None:
    assert values(org.query(source)) == expected


UNDIRECTED = [
    ("TRV-18", "<mentors>", "ben", ["ada", "dov"]),
    ("TRV-18 directed", "mentors", "ben", ["dov"]),
    ("TRV-20", "<mentors>{1,2}", "cleo", ["ada", "ben"]),
]


@pytest.mark.parametrize(("step", "start", "expected"), [c[1:] for c in UNDIRECTED], ids=[c[0] for c in UNDIRECTED])
def test_undirected(org: og.Graph, mode: str, step: str, start: str, expected: list[str]) -> None:
    assert values(org.query(from_one(step), params={"h": start})) == expected


@pytest.mark.row("TRV-19")
def test_a_pair_linked_both_ways_appears_once(tmp_path: Path, mode: str) -> None:
    graph = graph_with(tmp_path / "g", ORG, ORG_ROWS + '{"edge":"Mentors","from":"dov","to":"ben"}')
    assert values(graph.query(from_one("<mentors>"), params={"h": "ben"})) == ["ada", "dov"]


@pytest.mark.row("TRV-14")
def test_an_edge_binding_gives_one_row_per_edge(dated: og.Graph, mode: str) -> None:
    found = values(dated.query(from_one("$e:mentors", "$m.handle, $e.began"), params={"h": "ada"}))
    assert Counter(handle for handle, _ in found) == Counter(ben=2, cleo=1, dov=1)
    assert [began for _, began in found].count(None) == 2


@pytest.mark.row("TRV-15")
def test_an_edge_is_filtered(dated: og.Graph, mode: str) -> None:
    source = from_one("$e:mentors", more='$e.began >= date("2023-01-01")')
    assert values(dated.query(source, params={"h": "ada"})) == ["dov"]
    counted = source.replace("$m.handle", "count($m) as n")
    assert values(dated.query(counted, params={"h": "ada"})) == [1]


def test_parallel_edges_count_once_without_a_binding(dated: og.Graph, mode: str) -> None:
    assert values(dated.query(from_one("mentors", "count($m) as n"), params={"h": "ada"})) == [3]
    assert values(dated.query(from_one("$e:mentors", "count($m) as n"), params={"h": "ada"})) == [4]
    assert values(dated.query(from_one("$e:<mentors>", "$m.handle"), params={"h": "ben"})) == ["ada", "ada", "dov"]


@pytest.fixture(scope="module")
def chain(tmp_path_factory: pytest.TempPathFactory) -> og.Graph:
    rows = "\n".join(f'{{"type":"N","data":{{"k":"{key}"}}}}' for key in "ABCDab")
    edges = "\n".join(
        f'{{"edge":"Next","from":"{tail}","to":"{head}"}}' for tail, head in ("AB", "BC", "CD", "aa", "ab")
    )
    return graph_with(tmp_path_factory.mktemp("chain") / "g", CHAIN, f"{rows}\n{edges}")


@pytest.mark.parametrize(
    ("step", "start", "expected"),
    [
        ("next{1,3}", "A", "BCD"),
        ("next{2,3}", "A", "CD"),
        ("next{2,2}", "A", "C"),
        ("next{1,5}", "a", "ab"),
        ("next{2,5}", "a", ""),
        ("<next>{1,9}", "C", "ABD"),
        ("next{1,1000000}", "A", "BCD"),
    ],
    ids=["TRV-21", "TRV-21 from two", "TRV-21 two", "TRV-23", "TRV-23 from two", "undirected", "huge bound"],
)
def test_hop_bounds(chain: og.Graph, mode: str, step: str, start: str, expected: str) -> None:
    source = f"query q($k: String) {{ match {{ $n: N {{ k: $k }} $n {step} $m }} return {{ $m.k }} }}"
    assert values(chain.query(source, params={"k": start})) == list(expected)
    counted = source.replace("$m.k", "count($m) as n")
    assert values(chain.query(counted, params={"k": start})) == [len(expected)]


@pytest.mark.row("TRV-26")
def test_types_never_mix(tmp_path: Path, mode: str) -> None:
    rows = """
{"type":"Staff","data":{"handle":"x1"}}
{"type":"Staff","data":{"handle":"twin"}}
{"type":"Team","data":{"code":"twin"}}
{"type":"Team","data":{"code":"other"}}
{"edge":"MemberOf","from":"x1","to":"twin"}
{"edge":"MemberOf","from":"twin","to":"other"}
"""
    graph = graph_with(tmp_path / "g", ORG, rows)
    source = "query q($h: String) { match { $s: Staff { handle: $h } $s memberOf{1,2} $t } return { $t.code } }"
    assert values(graph.query(source, params={"h": "x1"})) == ["twin"]


@pytest.mark.row("TRV-28", "TRV-29")
@pytest.mark.parametrize("seed", range(3))
def test_every_mode_finds_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """Over a random graph with loops, parallel edges and twins; what is found is there, and as often in each mode."""
    draw = Random(seed)
    names = [f"n{number}" for number in range(12)]
    rows = [{"type": "Staff", "data": {"handle": name}} for name in names]
    rows += [{"type": "Team", "data": {"code": name}} for name in names[:5]]
    rows += [{"edge": "Mentors", "from": draw.choice(names), "to": draw.choice(names)} for _ in range(30)]
    rows += [{"edge": "MemberOf", "from": draw.choice(names), "to": draw.choice(names[:5])} for _ in range(20)]
    graph = graph_with(tmp_path / "g", ORG, "\n".join(map(json.dumps, rows)))
    for step, code, there in [
        ("mentors", "handle", names),
        ("<mentors>", "handle", names),
        ("mentors{1,3}", "handle", names),
        ("<mentors>{2,3}", "handle", names),
        ("memberOf", "code", names[:5]),
    ]:
        source = f"query q() {{ match {{ $s: Staff $s {step} $m }} return {{ $s.handle, $m.{code} }} }}"
        found = {}
        for way in ("indexed", "csr", "auto"):
            monkeypatch.setenv("OMNIGRAPH_TRAVERSAL_MODE", way)
            found[way] = Counter(values(graph.query(source)))
        assert found["indexed"] == found["csr"] == found["auto"]
        assert {end for _, end in found["auto"]} <= set(there)
        assert found["auto"]


@pytest.mark.row("NEG-03")
def test_a_negation_splits_all(org: og.Graph, mode: str) -> None:
    without = set(values(org.query(ORG_QUERIES, "teamless")))
    having = set(values(org.query("query q() { match { $s: Staff $s memberOf $t } return { $s.handle } }")))
    assert not without & having
    assert without | having == {"ada", "ben", "cleo", "dov"}


def test_an_unknown_mode_is_refused(org: og.Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMNIGRAPH_TRAVERSAL_MODE", "fast")
    with pytest.raises(BadRequest, match="OMNIGRAPH_TRAVERSAL_MODE"):
        org.query(ORG_QUERIES, "mentees", {"h": "ada"})


def test_explain_names_the_mode(org: og.Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    for mode in ("indexed", "csr"):
        monkeypatch.setenv("OMNIGRAPH_TRAVERSAL_MODE", mode)
        assert f"traversal: {mode}" in org.explain(ORG_QUERIES, "mentees", {"h": "ada"}).steps
