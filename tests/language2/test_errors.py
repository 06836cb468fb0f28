"""The rows about errors: what a wrong query says, and where its caret stands."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from omnigraph.errors import LanguageError
from omnigraph.language.query.compile import compile_query
from omnigraph.language.schema.build import compile_schema
from tests.language2.graphs import SCHEMA

CATALOG = compile_schema(SCHEMA)
_ROW = re.compile(r"\| (?P<id>L2-\d+) \| `(?P<query>[^`]*)` \| error `(?P<error>.*)` at `(?P<at>[^`]*)` \|")


def rows() -> Iterator[Any]:
    """The rows of the table, as parameters of a test."""
    for line in (Path(__file__).parent / "errors.md").read_text().splitlines():
        if line.startswith("| L2-"):
            found = _ROW.fullmatch(line.replace("\\|", "|"))
            assert found is not None, line
            yield pytest.param(found["query"], found["error"].replace("``", "`"), found["at"], id=found["id"])


@pytest.mark.parametrize(("query", "error", "at"), list(rows()))
def test_an_error_and_its_place(query: str, error: str, at: str) -> None:
    text = f"query q() {{\n  {query}\n}}"
    with pytest.raises(LanguageError) as caught:
        compile_query(text, None, CATALOG)
    assert error in caught.value.message
    assert caught.value.line == 2
    assert caught.value.start is not None
    assert text.encode()[caught.value.start : caught.value.end].decode() == at
    _, shown, caret = caught.value.rendered().split("\n")
    assert shown[caret.index("^") :].startswith(at)
