"""The rows of the second edition of the language on Spark: each has the answer that the local engine gives.

A query takes about half a second on Spark, so every fourth row is asked each time and all of them in the long run.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

import omnigraph as og
from omnigraph.errors import BadRequest
from tests.language2 import test_patterns, test_rows
from tests.language2.graphs import SCHEMA, documents
from tests.query.loading import append


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> og.Graph:
    """The graph of the tables of expressions."""
    graph = og.init(tmp_path_factory.mktemp("expressions") / "graph", test_rows.SCHEMA)
    graph.mutate(test_rows.DATA)
    return graph


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> og.Graph:
    """The graph of the tables of patterns."""
    graph = og.init(tmp_path_factory.mktemp("patterns") / "graph", SCHEMA)
    append(graph, documents())
    return graph


def some(rows: list[Any]) -> list[Any]:
    """The rows as parameters of a test, three of four for the long run only."""
    return [
        row if number % 4 == 0 else pytest.param(*row.values, id=row.id, marks=pytest.mark.long)
        for number, row in enumerate(rows)
    ]


@pytest.mark.parametrize(("query", "params", "expected"), some(test_patterns.ROWS))
def test_patterns_on_spark(graph: og.Graph, query: str, params: dict[str, Any], expected: list[list[Any]]) -> None:
    found = graph.query(query, params=params, engine="spark").to_dicts(json=True)
    test_patterns.agree(query, [list(row.values()) for row in found], expected)


@pytest.mark.parametrize(("query", "expected", "fails"), some(list(test_rows.rows("expressions.md"))))
def test_expressions_on_spark(people: og.Graph, query: str, expected: str, fails: bool) -> None:
    text = f"query q() {{ {query} }}"
    if fails:
        with pytest.raises(BadRequest) as caught:
            people.query(text, engine="spark")
        assert expected in str(caught.value)
        return
    found = [list(row.values()) for row in people.query(text, engine="spark").to_dicts(json=True)]
    if " order {" in query:
        assert found == json.loads(expected)
    else:
        assert sorted(found, key=json.dumps) == sorted(json.loads(expected), key=json.dumps)
