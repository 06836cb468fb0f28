"""The rows about mutations: what the graph holds afterwards, on the engine and on the naive interpreter."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.language.schema.build import compile_schema
from tests.language2.graphs import SCHEMA, documents
from tests.naive.graph import make_world
from tests.naive.reads import answers
from tests.naive.writes import changed
from tests.query.loading import append

_ROW = re.compile(
    r"\| (?P<id>L2-\d+) \| `(?P<mutation>[^`]*)` \| `(?P<query>[^`]*)` \| `(?P<expected>[^`]*)` \|",
)


def rows() -> Iterator[Any]:
    """The rows of the table, as parameters of a test."""
    for line in (Path(__file__).parent / "mutations.md").read_text().splitlines():
        if line.startswith("| L2-"):
            found = _ROW.fullmatch(line.replace("\\|", "|"))
            assert found is not None, line
            texts = (f"query q() {{ {found[part]} }}" for part in ("mutation", "query"))
            yield pytest.param(*texts, json.loads(found["expected"]), id=found["id"])


ROWS = list(rows())
_BRANCHES = count()


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> og.Graph:
    """The graph of the tables; every row changes a branch of its own."""
    graph = og.init(tmp_path_factory.mktemp("language2") / "graph", SCHEMA)
    append(graph, documents())
    return graph


@pytest.mark.parametrize(("mutation", "query", "expected"), ROWS)
def test_the_engine(graph: og.Graph, mutation: str, query: str, expected: list[list[Any]]) -> None:
    branch = f"row-{next(_BRANCHES)}"
    graph.create_branch(branch)
    graph.mutate(mutation, branch=branch)
    found = [list(row.values()) for row in graph.query(query, branch=branch).to_dicts(json=True)]
    assert sorted(found, key=json.dumps) == sorted(expected, key=json.dumps)


@pytest.mark.parametrize(("mutation", "query", "expected"), ROWS)
def test_the_naive_interpreter(mutation: str, query: str, expected: list[list[Any]]) -> None:
    world = make_world(compile_schema(SCHEMA), documents())
    found = [list(row) for row in answers(query, changed(mutation, world))]
    assert sorted(found, key=json.dumps) == sorted(expected, key=json.dumps)
