"""No input makes the languages raise anything but their typed errors, and every error can be shown.

The inputs are the same at every run. They are cut into parts so that they run in parallel.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from omnigraph.errors import BadRequest, LanguageError
from omnigraph.language.query.compile import compile_query
from omnigraph.language.query.lint import lint_queries
from omnigraph.language.query.parser import parse_query_file
from omnigraph.language.query.printer import print_query_file
from omnigraph.language.schema.accept import accept_schema
from omnigraph.language.schema.build import compile_schema
from tests.language.fuzzing import QUERIES, SCHEMAS, damaged_sources, random_texts

PARTS = 8
PER_PART = 20_000 // PARTS

CATALOG = compile_schema("\n".join(SCHEMAS))


def run_schema(text: str) -> None:
    """Everything that can be done with a schema without a graph."""
    accept_schema(compile_schema(text)).to_json()


def run_queries(text: str) -> None:
    """Everything that can be done with queries without a graph."""
    lint_queries(text, CATALOG)
    file = parse_query_file(text)
    assert parse_query_file(print_query_file(file)) == file
    for query in file.queries:
        compile_query(text, query.name, CATALOG)


def error_of(action: Callable[[str], None], text: str) -> BadRequest | None:
    """The typed error that an input ends in; anything else is raised, with the input as a note."""
    try:
        action(text)
    except BadRequest as error:
        return error
    except Exception as error:
        error.add_note(f"input: {text!r}")
        raise
    return None


def assert_can_be_shown(error: BadRequest) -> None:
    assert "\n" not in error.message
    if isinstance(error, LanguageError):
        assert error.start is not None
        assert error.end is not None
        assert error.start < error.end
        first, _, caret = str(error).split("\n")
        assert first.endswith(error.message)
        assert caret.endswith("^")


@pytest.mark.parametrize("action", [run_schema, run_queries], ids=["schema", "queries"])
@pytest.mark.parametrize("inputs", [random_texts, damaged_sources], ids=["random", "damaged"])
@pytest.mark.parametrize("part", range(PARTS))
def test_only_typed_errors(
    part: int, inputs: Callable[[int, int], Iterator[str]], action: Callable[[str], None]
) -> None:
    for text in inputs(part, PER_PART):
        error = error_of(action, text)
        if error is not None:
            assert_can_be_shown(error)


@pytest.mark.parametrize("text", SCHEMAS, ids=["schema-1", "schema-2"])
def test_the_undamaged_schemas_are_valid(text: str) -> None:
    run_schema(text)


@pytest.mark.parametrize("text", QUERIES, ids=["queries-1", "queries-2", "queries-3"])
def test_the_undamaged_queries_are_valid(text: str) -> None:
    run_queries(text)
