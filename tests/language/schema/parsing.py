"""What the tests of the schema language share: parse, and look at a refusal."""

from __future__ import annotations

import pytest

from omnigraph.errors import CatalogError, LanguageError, ParseError
from omnigraph.language.schema.build import compile_schema


def refusal(source: str, kind: type[LanguageError] = LanguageError) -> LanguageError:
    """The error that a schema meets on its way to a catalog."""
    with pytest.raises(kind) as caught:
        compile_schema(source)
    return caught.value


def semantic_refusal(source: str) -> str:
    """The message for a text that fits the grammar but breaks a rule."""
    error = refusal(source, ParseError)
    assert isinstance(error, ParseError)
    assert error.semantic, error.message
    return error.message


def grammar_refusal(source: str) -> str:
    """The message for a text that does not fit the grammar."""
    error = refusal(source, ParseError)
    assert isinstance(error, ParseError)
    assert not error.semantic, error.message
    return error.message


def catalog_refusal(source: str) -> str:
    """The message for declarations that do not fit together."""
    return refusal(source, CatalogError).message


def pointed_at(source: str) -> str:
    """The text that an error points at."""
    error = refusal(source)
    return source.encode()[error.start : error.end].decode()
