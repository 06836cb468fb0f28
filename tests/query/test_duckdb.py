"""The engine against DuckDB and against the naive interpreter: questions made at random in both languages at once."""

from __future__ import annotations

import math
from collections import Counter
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from omnigraph.errors import TypecheckError
from tests.naive.reads import answers
from tests.naive.values import shown
from tests.query.generated import Generator, Question
from tests.query.naive import BATCHES, BRANCH, World, make_world

duckdb = pytest.importorskip("duckdb")

QUERIES_PER_WORLD = 100
_DISTANCES = """
create table distances as
with recursive walked(src, dst, d) as (
  select id, id, 0 from Staff
  union select w.src, m.dst, w.d + 1 from walked w join Mentors m on m.src = w.dst where w.d < 8
) select src, dst, min(d) as d from walked group by src, dst
"""


def connection(world: World, branch: str) -> Any:
    """The tables of a branch as DuckDB sees them, and how far apart the staff are along Mentors."""
    connected = duckdb.connect(config={"threads": 1})
    connected.execute("set TimeZone = 'UTC'")
    # It fails with internal errors on one in three hundred of these questions.
    connected.execute("pragma disable_optimizer")
    snapshot = world.graph.snapshot(branch)
    for key in ("node:Staff", "node:Team", "edge:Mentors", "edge:Likes", "edge:MemberOf"):
        connected.register("stored", snapshot.open(key).read())
        connected.execute(f"create table {key.split(':')[1]} as select * from stored")
    connected.execute(_DISTANCES)
    return connected


def comparable(value: Any) -> Any:
    """A value such that equal ones are equal, whoever computed it."""
    if isinstance(value, list | tuple):
        return tuple(map(comparable, value))
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, int | float | Decimal):
        found = float(value)
        return found if math.isinf(found) else round(found, 6) + 0.0
    return shown(value) if isinstance(value, date | datetime) else value


def same(question: Question, found: list[tuple[Any, ...]], expected: list[tuple[Any, ...]]) -> bool:
    """Whether two answers are the same, in order when the question orders them."""
    left, right = ([comparable(row) for row in rows] for rows in (found, expected))
    return left == right if question.ordered else Counter(left) == Counter(right)


#: What a generator does not avoid: a group of constants, an aggregate of an id, a block behind `where`.
_EXPECTED = ("T8", "T9", "T31")


def make_question(generator: Generator, world: World) -> Question:
    """A question that fits the schema; the graph keeps it compiled."""
    contract, queries = world.graph.contract(), world.graph._door.connection().queries
    while True:
        question = generator.question()
        try:
            queries.get(question.gq, None, contract)
        except TypecheckError as error:
            if error.code not in _EXPECTED:
                raise
            continue
        return question


def run(seed: int, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    random = Random(seed)
    world = make_world(random, path / "graph", BATCHES[seed % 2])
    connections = {branch: connection(world, branch) for branch in ("main", BRANCH)}
    generator = Generator(random, world.types)
    found = 0
    for number in range(QUERIES_PER_WORLD):
        question = make_question(generator, world)
        monkeypatch.setenv("OMNIGRAPH_TRAVERSAL_MODE", random.choice(world.modes))
        branch = ("main", BRANCH)[number % 2]
        expected = answers(question.gq, world.branches[branch])
        result = world.graph.query(question.gq, branch=branch)
        assert not any(pa.types.is_null(column.type) for column in result.to_arrow().schema), question.gq
        actual = [tuple(row.values()) for row in result.to_dicts(json=True)]
        assert same(question, actual, expected), (question.gq, branch, actual, expected)
        if question.sql is not None:
            other = connections[branch].execute(question.sql).fetchall()
            assert same(question, actual, other), (question.gq, question.sql, branch, actual, other)
        found += bool(expected)
    assert found > QUERIES_PER_WORLD / 3


@pytest.mark.parametrize("seed", range(20))
def test_two_thousand_questions(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(seed, tmp_path, monkeypatch)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(1000, 3000))
def test_two_hundred_thousand_questions(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(seed, tmp_path, monkeypatch)
