"""The rows of values.md: parameters as Python programs hold them, queries without a name, errors that help."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import pytest

import omnigraph as og
from omnigraph.errors import BadRequest, LanguageError
from tests.language2.test_rows import graph

__all__ = ["graph"]


class Level(IntEnum):
    LOW = 20


class Name(StrEnum):
    ADA = "ada"


class Colour(Enum):
    BLUE = "blue"


NAMES = {
    kind.__name__: kind for kind in (date, datetime, timedelta, timezone, Decimal, UUID, Level, Name, Colour, float)
} | {"UTC": UTC, "np": np}
_ROW = re.compile(
    r"\| (?P<id>V-\d+) \| `(?P<source>.*)` \| (?:–|`(?P<params>.*)`) \| (?P<error>error )?`(?P<expected>.*)` \|"
)
_PLACE = re.compile(r"(?P<line>\d+):(?P<column>\d+) ")


def rows() -> Iterator[Any]:
    """The rows of the table, as parameters of a test."""
    for line in (Path(__file__).parent / "values.md").read_text().splitlines():
        if line.startswith("| V-"):
            found = _ROW.fullmatch(line)
            assert found is not None, line
            source, expected = (found[part].replace("``", "`") for part in ("source", "expected"))
            yield pytest.param(source, found["params"], expected, found["error"] is not None, id=found["id"])


@pytest.mark.parametrize(("source", "params", "expected", "fails"), list(rows()))
def test_values(graph: og.Graph, source: str, params: str | None, expected: str, fails: bool) -> None:
    given = None if params is None else eval(f"dict({params})", dict(NAMES))
    if fails:
        with pytest.raises(BadRequest) as caught:
            graph.query(source, params=given)
        _same_error(caught.value, expected)
        return
    found = [list(row.values()) for row in graph.query(source, params=given).to_dicts(json=True)]
    if " order {" not in source:
        found.sort(key=json.dumps)
        assert found == sorted(json.loads(expected), key=json.dumps)
    else:
        assert found == json.loads(expected)


def _same_error(error: BadRequest, expected: str) -> None:
    """The parts of the message, and the line, the column and the caret where they are given."""
    place = _PLACE.match(expected)
    parts = expected[place.end() :] if place else expected
    assert all(part in error.message for part in re.split(r"\s*…\s*", parts)), error.message
    if place is None:
        return
    assert isinstance(error, LanguageError)
    assert (error.line, error.column) == (int(place["line"]), int(place["column"]))
    _, line, caret = str(error).split("\n")
    assert line[: caret.index("^")].endswith((error.source_line or "")[: int(place["column"]) - 1])
