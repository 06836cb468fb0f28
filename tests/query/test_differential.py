"""The engine against a naive interpreter of the IR, on random queries over random graphs."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest

from omnigraph.language.query import ir
from omnigraph.language.query.check import CheckedMutation
from omnigraph.language.query.compile import compile_query
from omnigraph.query.limits import Limits
from tests.language.query.interpreter import Row, run_plan
from tests.language.query.test_meaning import PARAMS, make_query
from tests.query.naive import BATCHES, World, make_world

QUERIES_PER_WORLD = 50


def comparable(rows: list[dict[str, Any]], in_order: bool) -> object:
    """Rows as they are when the query orders them, else as a multiset."""
    values = [tuple((name, _rounded(value)) for name, value in row.items()) for row in rows]
    return values if in_order else Counter(values)


def _rounded(value: Any) -> Any:
    return round(value, 9) if isinstance(value, float) else value


def check(world: World, text: str, mode: str, monkeypatch: pytest.MonkeyPatch) -> int:
    """Both answers of one query, on main and on the branch; gives the number of rows."""
    monkeypatch.setenv("OMNIGRAPH_TRAVERSAL_MODE", mode)
    compiled = compile_query(text, None, world.graph.contract().catalog)
    read, plan = compiled.checked.body, compiled.plan
    assert not isinstance(read, CheckedMutation)
    assert not isinstance(plan, ir.MutationPlan)
    found = 0
    for branch, memory in world.branches.items():
        expected: list[Row] = run_plan(plan, memory, PARAMS)
        actual = world.graph.query(text, params=PARAMS, branch=branch).table.to_pylist()
        ordered = bool(read.order)
        assert comparable(actual, ordered) == comparable(expected, ordered), (text, mode, branch, world.graph.schema())
        found += len(expected)
    return found


def run(seed: int, path: Path, monkeypatch: pytest.MonkeyPatch, limits: Limits) -> None:
    random = Random(seed)
    world = make_world(random, path / "graph", limits)
    sizes = [
        check(world, make_query(random), random.choice(world.modes), monkeypatch) for _ in range(QUERIES_PER_WORLD)
    ]
    assert sum(size > 0 for size in sizes) > len(sizes) / 4, "most queries should find something"


@pytest.mark.parametrize("seed", range(10))
def test_a_thousand_queries(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten graphs, fifty queries each, on main and on a branch; every other graph in batches of three rows."""
    run(seed, tmp_path, monkeypatch, BATCHES[seed % 2])


@pytest.mark.long
@pytest.mark.parametrize("seed", range(1000, 1500))
def test_fifty_thousand_queries(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(seed, tmp_path, monkeypatch, BATCHES[seed % 2])
