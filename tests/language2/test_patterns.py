"""The rows about patterns, blocks, paths, `with`, `union` and results, on the engine and on the naive interpreter."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.language.schema.build import compile_schema
from tests.language2.graphs import SCHEMA, documents
from tests.naive.graph import World, make_world
from tests.naive.reads import answers
from tests.query.loading import append

TABLES = ("optional.md", "blocks.md", "several.md", "paths.md", "with.md", "union.md", "results.md")
_ROW = re.compile(r"\| (?P<id>L2-\d+) \| `(?P<query>[^`]*)`(?: with `(?P<params>[^`]*)`)? \| `(?P<expected>.*)` \|")


def rows(table: str) -> Iterator[Any]:
    """The rows of a table, as parameters of a test: a query, its parameters, its answer."""
    for line in (Path(__file__).parent / table).read_text().splitlines():
        if line.startswith("| L2-"):
            found = _ROW.fullmatch(line)
            assert found is not None, line
            body = found["query"].replace("\\|", "|")
            declared, _, rest = body.partition(") ") if body.startswith("(") else ("(", "", body)
            text = f"query q{declared}) {{ {rest} }}"
            yield pytest.param(text, json.loads(found["params"] or "{}"), json.loads(found["expected"]), id=found["id"])


ROWS = [row for table in TABLES for row in rows(table)]


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> og.Graph:
    """The graph of the tables."""
    graph = og.init(tmp_path_factory.mktemp("language2") / "graph", SCHEMA)
    append(graph, documents())
    return graph


@pytest.fixture(scope="module")
def world() -> World:
    """The same graph in the memory of the naive interpreter."""
    return make_world(compile_schema(SCHEMA), documents())


def agree(query: str, found: list[list[Any]], expected: list[list[Any]]) -> None:
    """Both are the same rows, in the same order when the query orders its result."""
    if " order {" not in query.rpartition("return")[2]:
        found, expected = sorted(found, key=json.dumps), sorted(expected, key=json.dumps)
    assert found == expected


@pytest.mark.parametrize("mode", ["csr", "indexed"])
@pytest.mark.parametrize(("query", "params", "expected"), ROWS)
def test_the_engine(
    graph: og.Graph,
    mode: str,
    query: str,
    params: dict[str, Any],
    expected: list[list[Any]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OMNIGRAPH_TRAVERSAL_MODE", mode)
    agree(query, [list(row.values()) for row in graph.query(query, params=params).to_dicts(json=True)], expected)


def naive_answers(query: str, world: World, params: dict[str, Any]) -> list[list[Any]]:
    typed = {name: tuple(value) if isinstance(value, list) else value for name, value in params.items()}
    return [list(row) for row in answers(query, world, typed)]


@pytest.mark.parametrize(("query", "params", "expected"), ROWS)
def test_the_naive_interpreter(world: World, query: str, params: dict[str, Any], expected: list[list[Any]]) -> None:
    agree(query, naive_answers(query, world, params), expected)


@pytest.mark.parametrize("mode", ["csr", "indexed"])
def test_a_graph_without_edges(tmp_path: Path, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every query of the tables, where there are nodes and nothing to follow."""
    monkeypatch.setenv("OMNIGRAPH_TRAVERSAL_MODE", mode)
    nodes = [document for document in documents() if "type" in document]
    graph = og.init(tmp_path / "graph", SCHEMA)
    append(graph, nodes)
    world = make_world(compile_schema(SCHEMA), nodes)
    for query, params, _ in (row.values for row in ROWS):
        found = [list(row.values()) for row in graph.query(query, params=params).to_dicts(json=True)]
        agree(query, found, naive_answers(query, world, params))


def test_no_id_is_used_twice() -> None:
    """Over all tables of the language, those of others included."""
    tables = sorted(Path(__file__).parent.glob("*.md"))
    ids = [found for table in tables for found in re.findall(r"^\| (L2-\d+) ", table.read_text(), re.MULTILINE)]
    assert len(ids) == len(set(ids))
    assert len(ids) >= 300
