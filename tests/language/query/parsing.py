"""Short ways to parse one query in a test."""

from __future__ import annotations

import pytest

from omnigraph.errors import ParseError
from omnigraph.language.query.ast import (
    Query,
    Read,
)
from omnigraph.language.query.parser import parse_query_file


def one(text: str) -> Query:
    (query,) = parse_query_file(text).queries
    return query


def read(text: str) -> Read:
    body = one(text).body
    assert isinstance(body, Read)
    return body


def refused(text: str) -> ParseError:
    with pytest.raises(ParseError) as caught:
        parse_query_file(text)
    return caught.value
