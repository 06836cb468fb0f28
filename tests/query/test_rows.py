"""Rows of bindings: whatever is done to them, columns, numbers and what hangs on positions stay together."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.query.rows import Attributes, Rows, concatenated, order_by_code
from omnigraph.query.traverse.domain import SortedIds

IDS = SortedIds(("test",), pa.array(["a", "b", "c", "d"]))
#: What is known of the nodes stands in another order than the nodes.
AGES = Attributes(np.array([3, 2, 1, 0]), {"x.age": pa.array([40, 30, 20, 10])})

Row = tuple[str, str, int, int]


def rows(positions: list[int]) -> Rows:
    """A name, a node and a weight for each position."""
    names = pa.chunked_array([[f"n{position}"] for position in positions], pa.string())
    weights = np.array(positions, np.int64) * 2
    found = Rows(len(positions), {"p.name": names}).with_numbers("#weight", weights)
    return found.with_positions("x", IDS, np.array(positions, np.int64), AGES)


def shown(found: Rows) -> list[Row]:
    """The rows as tuples, each made of all they hold."""
    columns = [found.column("p", "name"), found.column("x", "id"), found.column("x", "age")]
    assert all(len(column) == found.count for column in columns)
    return list(zip(*(column.to_pylist() for column in columns), found.numbers["#weight"].tolist(), strict=True))


def expected(positions: list[int]) -> list[Row]:
    return [(f"n{position}", "abcd"[position], 10 * (position + 1), 2 * position) for position in positions]


POSITIONS = st.lists(st.integers(0, 3), max_size=6)


@given(positions=POSITIONS, data=st.data())
def test_taken_filtered_and_cut(positions: list[int], data: st.DataObject) -> None:
    found = rows(positions)
    assert shown(found) == expected(positions)
    mask = data.draw(st.lists(st.booleans(), min_size=len(positions), max_size=len(positions)))
    kept = [position for position, keep in zip(positions, mask, strict=True) if keep]
    assert shown(found.filter(np.array(mask, np.bool_))) == expected(kept)
    if positions:
        places = data.draw(st.lists(st.integers(0, len(positions) - 1), max_size=6))
        assert shown(found.take(np.array(places, np.int64))) == expected([positions[place] for place in places])
    start, count = data.draw(st.tuples(st.integers(0, 7), st.integers(0, 7)))
    assert shown(found.slice(start, count)) == expected(positions[start : start + count])


@given(parts=st.lists(POSITIONS, min_size=1, max_size=3))
def test_one_after_the_other(parts: list[list[int]]) -> None:
    together = concatenated([rows(part) for part in parts])
    assert shown(together) == expected([position for part in parts for position in part])


def test_side_by_side() -> None:
    other = Rows(2, {"q.name": pa.array(["u", "v"])}).with_positions("y", IDS, np.array([3, 0]))
    both = rows([1, 2]).beside(other)
    assert shown(both) == expected([1, 2])
    assert both.column("q", "name").to_pylist() == ["u", "v"]
    assert both.column("y", "id").to_pylist() == ["d", "a"]
    assert both.without(["q.name"]).columns.keys() == {"p.name"}


def test_what_was_read() -> None:
    found = rows([1])
    assert [found.has("x", name) for name in ("id", "age", "name")] == [True, True, False]
    assert [found.has("p", name) for name in ("name", "id")] == [True, False]
    assert found.addresses("x") is None


@given(st.lists(st.sampled_from([0, 1, 2, 2**16 - 1, 2**16, 2**31 + 5, 2**48 + 1, 2**62])))
def test_the_order_by_code_is_the_stable_one(codes: list[int]) -> None:
    given_codes = np.array(codes, np.int64)
    assert order_by_code(given_codes).tolist() == np.argsort(given_codes, kind="stable").tolist()
