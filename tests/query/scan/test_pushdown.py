"""Many conditions on one variable: what a scan is given stays small, and no condition is lost."""

from __future__ import annotations

from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.query.scan.pushdown import MOST_PUSHED
from tests.query.loading import append

SCHEMA = """
node N { k: String @key @index a: I32 @index b: I64? c: U32 d: F64 t: String }
edge To: N -> N { w: I32? }
"""
ROWS = 40


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> og.Graph:
    made = og.init(tmp_path_factory.mktemp("many") / "g", SCHEMA)
    append(
        made,
        [
            {
                "type": "N",
                "data": {
                    "k": f"n{number:02}",
                    "a": number,
                    "b": number if number % 3 else None,
                    "c": number,
                    "d": number / 2,
                    "t": f"t{number}",
                },
            }
            for number in range(ROWS)
        ],
    )
    append(
        made, [{"edge": "To", "from": "n01", "to": f"n{number:02}", "data": {"w": number}} for number in range(ROWS)]
    )
    made.ensure_indices()
    return made


def keys(graph: og.Graph, clauses: str) -> list[str]:
    text = f"query q() {{ match {{ {clauses} }} return {{ $n.k as k }} order {{ k asc }} }}"
    return [row["k"] for row in graph.query(text).rows]


@pytest.mark.parametrize("count", [1, MOST_PUSHED, MOST_PUSHED + 1, 200])
def test_each_of_many_conditions_counts(graph: og.Graph, count: int) -> None:
    """Two hundred took 2^200 steps as nested conditions; one of each kind drops rows, wherever it stands."""
    conditions = [
        (f"$n.a != {number}", f"$n.d >= {number}.0", f'$n.t != "t{number}"', f"$n.c != {number}")[number % 4]
        for number in range(ROWS, ROWS + count)
        if number % 4 != 1
    ]
    expected = [f"n{number:02}" for number in range(ROWS)]
    assert keys(graph, " ".join(["$n: N", *conditions])) == expected
    for dropped, condition in ((7, "$n.a != 7"), (8, '$n.t != "t8"'), (9, "$n.c != 9"), (10, "$n.d != 5.0")):
        left = [key for key in expected if key != f"n{dropped:02}"]
        assert keys(graph, " ".join(["$n: N", *conditions, condition])) == left
        assert keys(graph, " ".join(["$n: N", condition, *conditions])) == left


def test_the_index_still_answers(graph: og.Graph) -> None:
    """Conditions an index answers are pushed before others, however late they are written."""
    others = " ".join(f'$n.t != "x{number}"' for number in range(100))
    text = f"query q() {{ match {{ $n: N {others} $n.a = 5 }} return {{ $n.k as k }} }}"
    assert [row["k"] for row in graph.query(text).rows] == ["n05"]
    steps = graph.explain(text).steps
    assert "$n.a = 5" in steps
    assert "index: " in steps


def test_many_conditions_on_targets_and_edges(graph: og.Graph) -> None:
    conditions = " ".join(f"$n.a != {number} $e.w != {number}" for number in range(5, 205))
    assert keys(graph, f'$m: N {{ k: "n01" }} $m $e:to $n {conditions}') == [f"n{number:02}" for number in range(5)]


def test_many_conditions_on_an_unsigned_property(graph: og.Graph) -> None:
    conditions = " ".join(f"$n.c != {number}" for number in range(3, 503))
    assert keys(graph, f"$n: N {conditions}") == ["n00", "n01", "n02"]


@pytest.mark.parametrize("kind", ["U32", "U64", "[U32]", "I64", "[String]"])
def test_is_null_of_any_type(tmp_path: Path, kind: str) -> None:
    """Also of unsigned integers, which Lance's expressions do not have."""
    graph = og.init(tmp_path / "g", f"node A {{ k: String @key x: {kind}? y: I32? }}")
    value = {"[": '["a"]' if "String" in kind else "[1]"}.get(kind[0], "1")
    graph.mutate(f'query q() {{ insert A {{ k: "a", x: {value} }} insert A {{ k: "b", y: 2 }} }}')

    def found(condition: str) -> list[str]:
        text = f"query q() {{ match {{ $a: A {condition} }} return {{ $a.k as k }} order {{ $a.k asc }} }}"
        return [row["k"] for row in graph.query(text).rows]

    assert (found("$a.x is null"), found("$a.x is not null")) == (["b"], ["a"])
    assert found("$a.x is null $a.y = 2") == ["b"]
    assert found("$a.x is null or $a.y = 2") == ["b"]
    assert graph.mutate("query q() { update A set { y: 3 } where x is null }").affected_nodes == 1


NULL_VECTORS = [
    ("$t.v is null", "", ["a0", "a3"]),
    ("$t.v is not null", "", ["a1", "a2"]),
    ("$t.v is null or $t.n = 1", "", ["a0", "a1", "a3"]),
    ("not ($t.v is null and $t.n = 3)", "", ["a0", "a1", "a2"]),
    ("$t.v is not null", "order { nearest($t.v, $q) } limit 1", ["a2"]),
    ("$t.v is null", "order { nearest($t.v, $q), $t.name asc } limit 2", ["a0", "a3"]),
]


@pytest.mark.parametrize(("condition", "order", "names"), NULL_VECTORS)
def test_whether_a_vector_is_missing(tmp_path: Path, condition: str, order: str, names: list[str]) -> None:
    """Lance can not answer it, also not beside a search for that vector."""
    graph = og.init(tmp_path / "graph", "node T { name: String @key  v: Vector(2)?  n: I32 }")
    rows = [{"name": f"a{n}", "n": n} | ({"v": [float(n), 1.0]} if n in (1, 2) else {}) for n in range(4)]
    graph.load([{"type": "T", "data": row} for row in rows], engine="local")
    declared = "$q: Vector(2)" if order else ""
    text = f"query q({declared}) {{ match {{ $t: T  {condition} }} return {{ $t.name }} {order} }}"
    found = graph.query(text, params={"q": [2.0, 1.0]} if order else None)
    assert sorted(row["t.name"] for row in found) == names
