"""Where a type ends: sums beyond the integers, prefixes beyond the last character before the surrogates."""

from __future__ import annotations

from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.errors import BadRequest
from omnigraph.query.pushdown import after_prefix
from tests.load.loading import node

LAST = 2**63 - 1


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    graph = og.init(tmp_path / "g", "node N { name: String @key @index group: String? n: I64? u: U64? small: I32? }")
    values = [("a", LAST, 2**64 - 1), ("a", LAST, 2**64 - 1), ("b", -LAST, 1), ("b", -LAST, None), ("c", 2**53 + 1, 2)]
    graph.load(
        [
            node("N", name=str(number), group=group, n=n, u=u, small=2**31 - 1)
            for number, (group, n, u) in enumerate(values)
        ],
        engine="local",
    )
    return graph


def answer(graph: og.Graph, text: str, **params: object) -> list[list[object]]:
    return [list(row.values()) for row in graph.query(text, params=params).to_arrow().to_pylist()]


def test_sums_of_integers_do_not_wrap_round(graph: og.Graph) -> None:
    """A sum of integers is an integer: exact where it fits, an error where it does not."""
    asked = "query q($g: String) { match { $n: N { group: $g } } return { $n.group as g, sum($n.n) as s } }"
    for group in ("a", "b"):
        with pytest.raises(BadRequest, match="outside the range of I64"):
            answer(graph, asked, g=group)
    assert answer(graph, asked, g="c") == [["c", 2**53 + 1]]
    with pytest.raises(BadRequest, match="outside the range of I64"):
        answer(graph, "query q() { match { $n: N } return { sum($n.u) as s } }")
    floats = 'query q() { match { $n: N { group: "a" } } return { sum(to_float($n.n)) as s } }'
    assert answer(graph, floats) == [[pytest.approx(2.0 * LAST)]]
    both = 'query q() { match { $n: N $n.group in ["a", "b"] } return { sum($n.n) as s } }'
    assert answer(graph, both) == [[0]]
    (small,) = answer(graph, "query q() { match { $n: N } return { sum($n.small) as s } }")
    assert small == [5 * (2**31 - 1)]
    (mean,) = answer(graph, 'query q() { match { $n: N { group: "a" } } return { avg($n.n) as s } }')
    assert mean == [pytest.approx(float(LAST))]


def test_a_prefix_may_end_before_the_surrogates(graph: og.Graph) -> None:
    """The character after U+D7FF is U+E000: what lies between is no text, and no file or table takes it."""
    names = ["\ud7ff", "\ud7ffa", "\ud7ff\U0010ffff", "\ue000", "\ud7fe", "x\U0010ffff", "x\U0010ffffy", "y"]
    graph.load([node("N", name=name) for name in names], engine="local")
    text = "query q($p: String) { match { $n: N $n.name starts_with $p } return { $n.name as name } order { name } }"
    for prefix in ("\ud7ff", "\ud7ff\U0010ffff", "x\U0010ffff", "\U0010ffff", "\ud7fe"):
        expected = sorted(name for name in names if name.startswith(prefix))
        assert [row[0] for row in answer(graph, text, p=prefix)] == expected
    assert [after_prefix(prefix) for prefix in ("\ud7ff", "a\ud7ff\U0010ffff", "\U0010ffff")] == [
        "\ue000",
        "a\ue000",
        None,
    ]
