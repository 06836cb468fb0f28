"""The rows about errors: what a wrong query says, and where its caret stands."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.errors import EvaluationError, LanguageError
from omnigraph.language.query.compile import compile_query
from omnigraph.language.query.parser import parse_query_file
from omnigraph.language.schema.build import compile_schema
from tests.language2.graphs import SCHEMA, documents
from tests.query.loading import append

CATALOG = compile_schema(SCHEMA)
_ROW = re.compile(r"\| (?P<id>L2-\d+) \| `(?P<query>[^`]*)` \| error `(?P<error>.*)` at `(?P<at>[^`]*)` \|")


def rows(table: str) -> Iterator[Any]:
    """The rows of a table, as parameters of a test."""
    for line in (Path(__file__).parent / table).read_text().splitlines():
        if line.startswith("| L2-"):
            found = _ROW.fullmatch(line.replace("\\|", "|"))
            assert found is not None, line
            yield pytest.param(found["query"], found["error"].replace("``", "`"), found["at"], id=found["id"])


@pytest.mark.parametrize(("query", "error", "at"), list(rows("errors.md")))
def test_an_error_and_its_place(query: str, error: str, at: str) -> None:
    text = f"query q() {{\n  {query}\n}}"
    with pytest.raises(LanguageError) as caught:
        compile_query(text, None, CATALOG)
    points_at(caught.value, text, error, at)


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> og.Graph:
    """The graph of the tables."""
    graph = og.init(tmp_path_factory.mktemp("language2") / "graph", SCHEMA)
    append(graph, documents())
    return graph


@pytest.mark.parametrize(("query", "error", "at"), list(rows("computing.md")))
def test_an_error_of_a_value_and_its_place(graph: og.Graph, query: str, error: str, at: str) -> None:
    text = f"query q() {{\n  {query}\n}}"
    run = graph.mutate if parse_query_file(text).queries[0].is_mutation else graph.query
    with pytest.raises(EvaluationError) as caught:
        run(text)
    points_at(caught.value, text, error, at)


def test_a_value_of_a_file_is_found_there(graph: og.Graph, tmp_path: Path) -> None:
    (tmp_path / "ages.gq").write_text("query q() {\n  match { $p: Person }\n  return { $p.age / 0 }\n}")
    with pytest.raises(EvaluationError) as caught:
        graph.query(tmp_path / "ages.gq")
    assert str(caught.value).splitlines() == [
        f"{tmp_path / 'ages.gq'}:3:12: division by zero; `nullif(x, 0)` gives null instead in `$p.age / 0`",
        "  3 |   return { $p.age / 0 }",
        "    |            ^",
    ]


def points_at(raised: LanguageError, text: str, error: str, at: str) -> None:
    """The error says this, and its caret stands below the first character of this text."""
    assert error in raised.message
    assert raised.line == 2
    assert raised.start is not None
    assert text.encode()[raised.start : raised.end].decode() == at
    _, shown, caret = raised.rendered().split("\n")
    assert shown[caret.index("^") :].startswith(at)
