"""The changes of one table: right for every history, and as cheap as the change."""

from __future__ import annotations

import math
import tempfile
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omnigraph.changes.delta import Delta
from omnigraph.commit.context import CommitContext
from omnigraph.storage.tables import unshared
from tests.changes.lines import Line, delta_of, expected, found, value
from tests.commit.org import new_graph

START = {name: value(name) for name in ("a", "b", "c", "d", "e")}

HISTORIES: dict[str, Any] = {
    "append": lambda line: line.append({"f": value("f")}),
    "upsert": lambda line: line.upsert({"b": value("changed"), "g": value()}),
    "replace": lambda line: line.replace({"b": value("changed")}),
    "delete": lambda line: line.delete("a", "c"),
    "overwrite": lambda line: line.overwrite({"a": value("a"), "b": value("other"), "z": value()}),
    "the same rows written again": lambda line: line.upsert({"a": value("a"), "b": value("b")}),
    "the same rows replaced": lambda line: line.replace({"a": value("a")}),
    "delete, then insert again": lambda line: (line.delete("a"), line.append({"a": value("a")})),
    "compaction after changes": lambda line: (line.delete("a"), line.upsert({"b": value("x")}), line.compact()),
    "compaction alone": lambda line: (line.append({"f": value()}), line.delete("f"), line.compact()),
    "an index": lambda line: line.index(),
    "restore": lambda line: (line.delete("a"), line.upsert({"b": value("x")}), line.restore()),
    "update undone and compacted": lambda line: (line.upsert({"b": value("x")}), line.restore(), line.compact()),
    "everything deleted": lambda line: line.delete(*START),
}


@pytest.mark.parametrize("name", HISTORIES)
def test_both_directions_of_a_history(context: CommitContext, name: str) -> None:
    line = Line.create(context, START)
    first, before = line.seen[0]
    HISTORIES[name](line)
    assert found(delta_of(line, first, line.side)) == expected(before, line.content)
    assert found(delta_of(line, line.side, first)) == expected(line.content, before)


@pytest.mark.parametrize(("name", "other"), list(product(HISTORIES, ["none", "upsert"])))
def test_a_fork_and_the_line_it_came_from(context: CommitContext, name: str, other: str) -> None:
    line = Line.create(context, START)
    line.upsert({"c": value("before the fork")})
    fork = line.fork()
    HISTORIES[name](fork)
    if other != "none":
        HISTORIES[other](line)
    assert found(delta_of(line, line.side, fork.side)) == expected(line.content, fork.content)
    assert found(delta_of(line, fork.side, line.side)) == expected(fork.content, line.content)


def test_forks_of_forks(context: CommitContext) -> None:
    line = Line.create(context, START)
    one = line.fork()
    one.upsert({"a": value("one")})
    two = one.fork()
    two.upsert({"b": value("two")})
    one.delete("c")
    sister = line.fork()
    sister.upsert({"a": value("one")})
    for left, right in product((line, one, two, sister), repeat=2):
        assert found(delta_of(line, left.side, right.side)) == expected(left.content, right.content)


def test_a_table_that_is_on_one_side_only(context: CommitContext) -> None:
    line = Line.create(context, START)
    assert found(delta_of(line, None, line.side)) == expected(None, START)
    assert found(delta_of(line, line.side, None)) == expected(START, None)
    assert found(delta_of(line, None, None)) == []


VALUES = [
    value(),
    value(None),
    value(""),
    value(words=None),
    value(words=[]),
    value(words=[None]),
    value(words=[""]),
    value(words=["a, b"]),
    value(words=["a", "b"]),
    value(place=None),
    value(place=(0.0, 2.0)),
    value(amount=None),
    value(amount=0.0),
    value(amount=math.inf),
]


@pytest.mark.row("CHG-10")
def test_values_are_told_apart_by_type(context: CommitContext, row: list[str]) -> None:
    pairs = list(product(VALUES, repeat=2))
    line = Line.create(context, {f"{number:03}": old for number, (old, _) in enumerate(pairs)})
    first, before = line.seen[0]
    line.replace({f"{number:03}": new for number, (_, new) in enumerate(pairs)})
    assert found(delta_of(line, first, line.side)) == expected(before, line.content)


def test_not_a_number_written_again_is_no_change(context: CommitContext) -> None:
    line = Line.create(context, {"a": value(amount=math.nan), "b": value(amount=-0.0)})
    first = line.side
    line.replace({"a": value(amount=math.nan), "b": value(amount=0.0)})
    assert found(delta_of(line, first, line.side)) == []


# --- cost -------------------------------------------------------------------------------------------------------------


def candidates(line: Line, delta: Delta) -> int:
    list(delta.batches())
    return delta.candidates


def test_only_rows_that_can_differ_are_looked_at(context: CommitContext) -> None:
    many = {f"k{number:05}": value(str(number)) for number in range(20_000)}
    line = Line.create(context, many)
    first = line.side
    line.upsert({"k00007": value("new"), "k19999": value("new")})
    line.delete("k00100")
    line.append({"l": value()})
    assert candidates(line, delta_of(line, first, line.side)) == 3 + 3
    line.compact()
    assert candidates(line, delta_of(line, first, line.side)) == 3 + 3
    fork = line.fork()
    fork.upsert({"k00008": value("fork")})
    assert candidates(line, delta_of(line, line.side, fork.side)) == 2
    fork.compact()
    line.upsert({"k00009": value("main")})
    assert candidates(line, delta_of(line, line.side, fork.side)) == 4


def test_identical_versions_are_not_opened(context: CommitContext, monkeypatch: pytest.MonkeyPatch) -> None:
    line = Line.create(context, START)
    monkeypatch.setattr(context.tables, "open", None)
    assert delta_of(line, line.side, line.side).candidates == 0


def test_many_rewritten_rows_are_compared_by_id(context: CommitContext, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unshared, "MATCHED_ROWS", 2)
    line = Line.create(context, START)
    first, before = line.seen[0]
    line.upsert({"b": value("x")})
    line.compact()
    delta = delta_of(line, first, line.side)
    assert delta.candidates == 10
    assert found(delta) == expected(before, line.content)


@pytest.mark.parametrize("batch_rows", [1, 2, 7])
def test_batches_follow_each_other_in_id_order(context: CommitContext, batch_rows: int) -> None:
    line = Line.create(context, {f"k{number}": value() for number in range(30)})
    first, before = line.seen[0]
    line.delete("k3", "k30")
    line.upsert({"k1": value("x"), "k15": value("y"), "zz": value()})
    delta = delta_of(line, first, line.side)
    assert found(delta, batch_rows=batch_rows) == expected(before, line.content)
    assert max(len(batch) for batch in delta.batches(batch_rows=batch_rows)) <= 2 * batch_rows
    later = [change for change in expected(before, line.content) if change[1] > "k15"]
    assert found(delta, batch_rows=batch_rows, after_id="k15") == later


def test_the_first_of_many_batches_are_found_without_a_sort(
    context: CommitContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = Line.create(context, {f"k{number:04}": value() for number in range(0, 1000, 2)})
    first, before = line.seen[0]
    line.upsert({f"k{number:04}": value("x" if number % 3 else "same") for number in range(1000)})
    delta = delta_of(line, first, line.side)
    assert found(delta, batch_rows=9) == expected(before, line.content)
    monkeypatch.setattr("omnigraph.changes.delta.in_id_order", None)
    for after_id in (None, "k0500"):
        some = next(iter(delta.batches(batch_rows=20, after_id=after_id)))
        assert 0 < len(some) <= 40


def test_ids_alone(context: CommitContext) -> None:
    line = Line.create(context, START)
    first = line.side
    line.upsert({"b": value("x"), "q": value()})
    batches = list(delta_of(line, first, line.side).batches(["id"]))
    assert [row for batch in batches for row in batch.inserted.to_pylist()] == [{"id": "q"}]
    assert [row for batch in batches for row in batch.updated_after.to_pylist()] == [{"id": "b"}]


# --- any history ------------------------------------------------------------------------------------------------------

IDS = st.sampled_from(["a", "b", "c", "d", "é", "𝄞"])
CONTENT = st.dictionaries(IDS, st.sampled_from(VALUES), min_size=1, max_size=3)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["upsert", "replace", "overwrite"]), CONTENT),
        st.tuples(st.just("delete"), st.lists(IDS, min_size=1, max_size=2)),
        st.tuples(st.sampled_from(["compact", "fork", "switch"]), st.none()),
        st.tuples(st.just("restore"), st.integers(0, 3)),
    ),
    max_size=7,
)


@settings(max_examples=40, deadline=None)
@given(start=CONTENT, steps=STEPS, choice=st.data())
def test_any_two_versions_of_any_history(start: Any, steps: Any, choice: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        line = Line.create(new_graph(str(Path(folder) / "graph")), start)
        lines = [line]
        for step, given_ in steps:
            match step:
                case "fork":
                    lines.append(line := line.fork())
                case "switch":
                    line = lines[choice.draw(st.integers(0, len(lines) - 1))]
                case "compact":
                    line.compact()
                case "restore":
                    line.restore(given_)
                case "delete":
                    line.delete(*given_)
                case _:
                    getattr(line, step)(given_)
        sides = lines[0].seen
        for _ in range(4):
            before, after = (sides[choice.draw(st.integers(0, len(sides) - 1))] for _ in range(2))
            assert found(delta_of(line, before[0], after[0])) == expected(before[1], after[1])
