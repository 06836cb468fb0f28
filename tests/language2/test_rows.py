"""The rows of the second edition of the language: each table row is a query and what it answers."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.errors import BadRequest
from omnigraph.query.rows import Values
from omnigraph.query.shape.functions import KERNELS, Arguments

SCHEMA = """
node Person { name: String @key age: I32? tags: [String]? born: Date? score: F64? active: Bool? }
edge Knows: Person -> Person { since: Date? w: I64? }
"""
DATA = """query fill() {
  insert Person { name: "ada", age: 36, tags: ["a", "b"], born: "1990-05-17", score: 1.5, active: true }
  insert Person { name: "ben", age: 20, tags: ["b"], score: -2.5, active: false }
  insert Person { name: "cleo" }
  insert Person { name: "dan", age: 36, born: "2000-02-29", score: 0.0, active: true }
  insert Knows { from: "ada", to: "ben", since: "2020-01-01", w: 3 }
  insert Knows { from: "ada", to: "cleo", w: 5 }
  insert Knows { from: "ben", to: "cleo" }
  insert Knows { from: "dan", to: "ada", w: 7 }
}"""

_ROW = re.compile(r"\| (?P<id>L2-\d+) \| `(?P<query>.*)` \| (?P<error>error )?`(?P<expected>.*)` \|")


def rows(name: str) -> Iterator[Any]:
    """The rows of a table, as parameters of a test."""
    lines = (Path(__file__).parent / name).read_text().splitlines()
    for line in lines:
        if line.startswith("| L2-"):
            found = _ROW.fullmatch(line)
            assert found is not None, line
            expected = found["expected"].replace("``", "`")
            yield pytest.param(found["query"], expected, found["error"] is not None, id=found["id"])


@pytest.fixture(scope="module", params=["plain", "indexed"])
def graph(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> og.Graph:
    """The graph of the tables, without and with indexes."""
    graph = og.init(tmp_path_factory.mktemp("language2") / "graph", SCHEMA)
    graph.mutate(DATA)
    if request.param == "indexed":
        graph.ensure_indices()
    return graph


@pytest.mark.parametrize(("query", "expected", "fails"), list(rows("expressions.md")))
def test_expressions(graph: og.Graph, query: str, expected: str, fails: bool) -> None:
    text = f"query q() {{ {query} }}"
    if fails:
        with pytest.raises(BadRequest) as caught:
            graph.query(text)
        assert expected in str(caught.value)
        return
    found = [list(row.values()) for row in graph.query(text).to_dicts(json=True)]
    if " order {" not in query:
        found.sort(key=json.dumps)
        assert found == sorted(json.loads(expected), key=json.dumps)
    else:
        assert found == json.loads(expected)


@pytest.mark.parametrize(
    "expression",
    [
        pytest.param("abs(-1)" + " + abs(-1)" * 11, id="constants joined"),
        pytest.param("abs(" * 12 + "-1" + ")" * 12, id="constants in calls"),
        pytest.param("(" * 12 + "(abs($p.age) > 0)" + " = true)" * 12, id="comparisons"),
        pytest.param("(" * 12 + "([abs($p.age)] contains 1)" + " in [true])" * 12, id="lists"),
    ],
)
def test_what_is_inside_is_computed_once(graph: og.Graph, expression: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """However deep it lies: twice on each level would be more than any server can compute."""
    asked = 0

    def counted(given: Arguments) -> Values:
        nonlocal asked
        asked += 1
        return computed(given)

    computed = KERNELS["abs"]
    monkeypatch.setitem(KERNELS, "abs", counted)
    graph.query(f'match {{ $p: Person {{ name: "ada" }} }} return {{ {expression} as x }}')
    assert 0 < asked <= 12
