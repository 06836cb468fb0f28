"""Many conditions on one variable: what a scan is given stays small, and no condition is lost."""

from __future__ import annotations

import pytest

import omnigraph as og
from omnigraph.query.pushdown import MOST_PUSHED
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
