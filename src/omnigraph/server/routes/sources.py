"""Query texts and parameters as they come over HTTP. A text is never taken for the path of a file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from omnigraph.commit.model import MAIN
from omnigraph.errors import BadRequest
from omnigraph.language.query.ast import Query, QueryFile
from omnigraph.language.query.params import bind_params
from omnigraph.language.query.parser import find_query, parse_query_file
from omnigraph.language.schema.build import compile_schema
from omnigraph.server.operation import Call

#: Parsed texts that are kept.
_REMEMBERED = 512


@dataclass(frozen=True)
class Asked:
    """One query of a text and what it is called with."""

    source: str
    query: Query
    params: Mapping[str, Any] | None

    @property
    def name(self) -> str:
        return self.query.name


@lru_cache(maxsize=_REMEMBERED)
def _parsed(source: str) -> QueryFile:
    parsed = parse_query_file(source)
    if "{" not in source and source.strip().endswith(".gq"):
        # The library would take such a text for the name of a file.
        raise BadRequest("a query is sent as its text, not as the name of a file")
    return parsed


def asked_read(call: Call, source: str, name: str | None, params: Mapping[str, Any] | None) -> Asked:
    """The read query of a text; a mutation is refused with where to send it."""
    query = find_query(_parsed(source), name)
    if query.is_mutation and not call.whole:
        raise BadRequest(f"{query.title} contains mutations; send it to POST /mutate")
    return Asked(source, query, declared(call, query, params))


def asked_mutation(call: Call, source: str, name: str | None, params: Mapping[str, Any] | None) -> Asked:
    """The mutation of a text; a read query is refused with where to send it."""
    query = find_query(_parsed(source), name)
    if not query.is_mutation and not call.whole:
        raise BadRequest(f"{query.title} is a read; send it to POST /query")
    return Asked(source, query, declared(call, query, params))


def schema_text(source: str) -> str:
    """A schema that was sent, checked by itself. A text that the library would take for the name of a file is refused."""
    compile_schema(source)
    if "{" not in source and source.strip().endswith(".pg"):
        raise BadRequest("a schema is sent as its text, not as the name of a file")
    return source


def declared(call: Call, query: Query, params: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """The parameters that a query declares. Others are ignored, unless the client asks for the library's rules."""
    # The parameters of a query without a name are declared by what is given.
    if params is None or call.whole or not query.name:
        return params
    names = {param.name for param in query.params}
    if params.keys() <= names:
        return params
    # What can not be meant as a value is refused also where it would be ignored.
    bind_params([], {name: value for name, value in params.items() if name not in names}, undeclared="ignore")
    return {name: value for name, value in params.items() if name in names}


def one_of(what: str, **given: str | None) -> str | None:
    """The one value that was given under several names; BadRequest when there are two."""
    found = {name: value for name, value in given.items() if value is not None}
    if len(found) > 1:
        raise BadRequest(f"give the {what} once: {' and '.join(found)} exclude each other")
    return next(iter(found.values()), None)


def named(branch: str | None) -> str:
    """The branch that is meant; an empty text names no branch, and is not found."""
    return MAIN if branch is None else branch


def refuse_both(branch: str | None, snapshot: str | None) -> None:
    """A query is asked of a branch or of a snapshot."""
    if branch is not None and snapshot is not None:
        raise BadRequest("branch and snapshot exclude each other; give one of them")
