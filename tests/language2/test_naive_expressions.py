"""The naive interpreter gives what the rows about expressions say."""

from __future__ import annotations

import json
from typing import Any

import pytest

from omnigraph.language.schema.build import compile_schema
from tests.language2.test_rows import DATA, SCHEMA, rows
from tests.naive.graph import World, make_world
from tests.naive.reads import answers
from tests.naive.values import Failure
from tests.naive.writes import changed

ROWS = list(rows("expressions.md"))
#: Errors of values; the others are found before a query runs.
COMPUTED = ("division by zero", "outside the range", "no square root", "logarithm", "is not a whole number")


@pytest.fixture(scope="module")
def world() -> World:
    """The graph of the rows, made by the mutation that the engine is given."""
    return changed(DATA, make_world(compile_schema(SCHEMA), []))


@pytest.mark.parametrize(("query", "expected", "fails"), [row for row in ROWS if not row.values[2]])
def test_rows(world: World, query: str, expected: str, fails: bool) -> None:
    found = [list(row) for row in answers(f"query q() {{ {query} }}", world)]
    wanted: list[Any] = json.loads(expected)
    if " order {" not in query:
        found.sort(key=json.dumps)
        wanted.sort(key=json.dumps)
    assert found == wanted


@pytest.mark.parametrize(
    ("query", "expected", "fails"), [row for row in ROWS if row.values[2] and row.values[1].startswith(COMPUTED)]
)
def test_values_that_can_not_be_computed(world: World, query: str, expected: str, fails: bool) -> None:
    with pytest.raises(Failure):
        answers(f"query q() {{ {query} }}", world)
