"""Where a type ends: sums beyond the integers, prefixes beyond the last character before the surrogates."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.errors import BadRequest
from omnigraph.query.limits import Limits
from omnigraph.query.scan.pushdown import after_prefix
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


#: Their doubles lose the last bits: the mean of the doubles of `A` is 0, that of the numbers 2/3.
MEANS: dict[str, list[int | None]] = {
    "A": [2**53 + 1, 2**53 + 1, -(2**54)],
    "B": [LAST, LAST, LAST - 2],
    "C": [LAST, -LAST, 1],
    "D": [3, 4, None],
    "E": [None],
}


@pytest.mark.parametrize("batch_rows", [2**20, 2], ids=["one batch", "several batches"])
@pytest.mark.parametrize("shape", ["avg($n.n)", "avg(distinct $n.n)", "avg($n.u)"])
def test_a_mean_of_integers_is_exact_before_its_division(tmp_path: Path, shape: str, batch_rows: int) -> None:
    graph = og.init(tmp_path / "g", "node N { name: String @key group: String n: I64? u: U64? }")
    rows = [(group, value) for group, values in MEANS.items() for value in values]
    graph.load(
        [
            node("N", name=f"{number:02}", group=group, n=value, u=None if value is None else value % 2**64)
            for number, (group, value) in enumerate(rows)
        ],
        engine="local",
    )
    graph._limits = Limits(batch_rows=batch_rows)
    given = {group: [value for value in values if value is not None] for group, values in MEANS.items()}
    if "distinct" in shape:
        given = {group: list(dict.fromkeys(values)) for group, values in given.items()}
    if ".u" in shape:
        given = {group: [value % 2**64 for value in values] for group, values in given.items()}
    expected = [
        [group, float(Fraction(sum(values), len(values))) if values else None] for group, values in given.items()
    ]
    by_group = f"query q() {{ match {{ $n: N }} return {{ $n.group as g, {shape} as m }} order {{ g asc }} }}"
    assert answer(graph, by_group) == expected
    for group, mean in expected:
        alone = f'query q() {{ match {{ $n: N {{ group: "{group}" }} }} return {{ {shape} as m }} }}'
        assert answer(graph, alone) == [[mean]]


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
