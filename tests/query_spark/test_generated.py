"""Random queries over random graphs: Spark gives the rows that the local engine gives, which other tests judge."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from omnigraph.errors import OmnigraphError
from tests.language.query.test_meaning import PARAMS, make_query
from tests.query.generated import Generator, Question
from tests.query.naive import BATCHES, BRANCH, World, make_world
from tests.query.test_duckdb import make_question, same


def answered(world: World, question: Question, params: dict[str, object], branch: str, engine: str) -> object:
    """The rows of an answer, or the error."""
    try:
        found = world.graph.query(question.gq, params=params, branch=branch, engine=engine)
    except OmnigraphError as error:
        return f"{type(error).__name__}: {error.message}"
    return [tuple(row.values()) for row in found.to_dicts(json=True)]


def check(seed: int, path: Path, count: int) -> None:
    """So many questions of two generators, in turn on main and on a branch."""
    random = Random(seed)
    world = make_world(random, path / "graph", BATCHES[seed % 2])
    generator = Generator(random, world.types)
    some = 0
    for number in range(count):
        params: dict[str, object] = {}
        if number % 3:
            question = make_question(generator, world)
        else:
            text = make_query(random)
            question, params = Question(text, None, "order {" in text), dict(PARAMS)
        branch = ("main", BRANCH)[number % 2]
        here, there = (answered(world, question, params, branch, engine) for engine in ("local", "spark"))
        if isinstance(here, str) or isinstance(there, str):
            assert here == there, (question.gq, branch, world.graph.schema())
            continue
        assert isinstance(here, list)
        assert isinstance(there, list)
        assert same(question, there, here), (question.gq, branch, there, here, world.graph.schema())
        some += bool(here)
    assert some > count / 4, "most queries should find something"


@pytest.mark.parametrize("seed", range(2))
def test_some_questions(seed: int, tmp_path: Path) -> None:
    """Few, because a query takes half a second and more on Spark."""
    check(seed, tmp_path, 20)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(1000, 1400))
def test_twenty_thousand_questions(seed: int, tmp_path: Path) -> None:
    check(seed, tmp_path, 50)
