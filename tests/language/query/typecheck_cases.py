"""How the checker is asked in tests: queries that are refused with a code and queries that are accepted."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from omnigraph.errors import TypecheckError
from omnigraph.language.query.compile import compile_query
from omnigraph.language.schema.catalog import Catalog


class Bad(NamedTuple):
    """A refused query: its code, and fragments of the message."""

    id: str
    catalog: Catalog
    text: str
    code: str | None
    fragments: tuple[str, ...] = ()


class Good(NamedTuple):
    """An accepted query."""

    id: str
    catalog: Catalog
    text: str


def book(clauses: str = "", returns: str = "$b.isbn", tail: str = "", params: str = "") -> str:
    """A read over `$b: Book`."""
    return f"query q({params}) {{ match {{ $b: Book {clauses} }} return {{ {returns} }} {tail} }}"


def pattern(conditions: str, params: str = "") -> str:
    """A read over `$b: Book` with conditions in braces."""
    return f"query q({params}) {{ match {{ $b: Book {{ {conditions} }} }} return {{ $b.isbn }} }}"


def kind(assignments: str, params: str = "") -> str:
    """An insert of a Kind."""
    return f'query q({params}) {{ insert Kind {{ k: "x" {assignments} }} }}'


def refused(catalog: Catalog, text: str) -> TypecheckError:
    """The error a query is refused with."""
    with pytest.raises(TypecheckError) as caught:
        compile_query(text, None, catalog)
    return caught.value


def check_case(case: Bad | Good) -> None:
    """A query is accepted, or refused with its code and a message that holds the fragments."""
    if isinstance(case, Good):
        assert compile_query(case.text, None, case.catalog).query.name == "q"
        return
    error = refused(case.catalog, case.text)
    assert error.code == case.code, error.message
    assert error.message.startswith(f"type error: {case.code}: " if case.code else "type error: ")
    for fragment in case.fragments:
        assert fragment in error.message


def all_different(*cases: Bad | Good) -> tuple[Bad | Good, ...]:
    """The cases, once it is sure that none hides another by its id."""
    ids = [case.id for case in cases]
    assert len(ids) == len(set(ids)), sorted(name for name in ids if ids.count(name) > 1)
    return cases
