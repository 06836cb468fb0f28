"""Spark gives what this process gives: one graph in the default run, all of them in the long one."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.errors import EntityNotFound
from tests.algorithms.random_graphs import Made, random_graph

SOURCE = ("Person", "P00")
CASES: dict[str, Callable[[Any, str], og.Result]] = {
    "degree": lambda run, engine: run.degree(engine=engine),
    "weighted degree": lambda run, engine: run.degree(weight="cost", direction="in", engine=engine),
    "pagerank": lambda run, engine: run.pagerank(iterations=8, tolerance=0, weight="cost", engine=engine),
    "components": lambda run, engine: run.connected_components(engine=engine),
    "strong components": lambda run, engine: run.strongly_connected(engine=engine),
    "triangles": lambda run, engine: run.triangle_count(engine=engine),
    "cores": lambda run, engine: run.k_core(engine=engine),
    "labels": lambda run, engine: run.label_propagation(engine=engine),
    "louvain": lambda run, engine: run.louvain(engine=engine),
    "paths": lambda run, engine: run.shortest_paths(SOURCE, weight="cost", engine=engine),
    "hops": lambda run, engine: run.shortest_paths([SOURCE], direction="both", engine=engine),
    "similarity": lambda run, engine: run.similarity(SOURCE, measure="cosine", engine=engine),
}


@pytest.fixture(
    scope="module",
    params=[7, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(30) if seed != 7)],
)
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Made:
    return random_graph(tmp_path_factory.mktemp("algorithms") / "graph", request.param)


#: Louvain's passes are many small jobs.
LONG = {"louvain"}


@pytest.mark.parametrize(
    "case", [pytest.param(case, marks=pytest.mark.long) if case in LONG else case for case in CASES]
)
def test_both_engines_agree(made: Made, case: str) -> None:
    run = CASES[case]
    try:
        here = run(made.graph.algorithms, "local").to_dicts()
    except EntityNotFound:
        with pytest.raises(EntityNotFound):
            run(made.graph.algorithms, "spark")
        return
    there = run(made.graph.algorithms, "spark").to_dicts()
    assert [(row["type"], row["id"]) for row in there] == [(row["type"], row["id"]) for row in here]
    for one, other in zip(here, there, strict=True):
        *_, value = one.values()
        *_, found = other.values()
        assert math.isclose(value, found, rel_tol=1e-9, abs_tol=1e-9), (one, other)


def test_a_frame_is_not_collected_and_values_are_written_from_it(tmp_path: Path) -> None:
    graph = random_graph(tmp_path / "graph", 7).graph
    frame = graph.algorithms.degree(frame=True)
    assert frame.columns == ["type", "id", "degree"]
    report = graph.algorithms.pagerank(write_to="Person.rank", iterations=2, engine="spark")
    assert report.commit.id == graph.head().id
    here = graph.algorithms.pagerank(iterations=2).to_dicts()
    ranks = {row["id"]: row["rank"] for row in here if row["type"] == "Person"}
    stored = graph.query("query q() { match { $p: Person } return { $p.name, $p.rank } }").to_dicts()
    assert all(math.isclose(row["p.rank"], ranks[row["p.name"]], rel_tol=1e-9) for row in stored)
