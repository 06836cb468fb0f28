"""Query texts and parameters over HTTP. A text is never treated as the path of a file."""

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

#: How many parsed texts are cached.
_REMEMBERED = 512


@dataclass(frozen=True)
class Asked:
    """One query of a text, with its parameters."""

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
        # The library would treat such a text as the name of a file.
        raise BadRequest("a query is sent as its text, not as the name of a file")
    return parsed


def asked_read(call: Call, source: str, name: str | None, params: Mapping[str, Any] | None) -> Asked:
    """The read query of a text; a mutation is refused with the route to use."""
    query = find_query(_parsed(source), name)
    if query.is_mutation and not call.whole:
        raise BadRequest(f"{query.title} contains mutations; send it to POST /mutate")
    return Asked(source, query, declared(call, query, params))


def asked_mutation(call: Call, source: str, name: str | None, params: Mapping[str, Any] | None) -> Asked:
    """The mutation of a text; a read query is refused with the route to use."""
    query = find_query(_parsed(source), name)
    if not query.is_mutation and not call.whole:
        raise BadRequest(f"{query.title} is a read; send it to POST /query")
    return Asked(source, query, declared(call, query, params))


def schema_text(source: str) -> str:
    """A sent schema, compiled as a check. A text that the library would treat as the name of a file is refused."""
    compile_schema(source)
    if "{" not in source and source.strip().endswith(".pg"):
        raise BadRequest("a schema is sent as its text, not as the name of a file")
    return source


def declared(call: Call, query: Query, params: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """The declared parameters of a query. Others are ignored, unless the client requests the library's rules."""
    # The given values declare the parameters of a query without a head.
    if params is None or call.whole or not query.name:
        return params
    names = {param.name for param in query.params}
    if params.keys() <= names:
        return params
    # Values of an impossible kind are refused even for ignored parameters.
    bind_params([], {name: value for name, value in params.items() if name not in names}, undeclared="ignore")
    return {name: value for name, value in params.items() if name in names}


def one_of(what: str, **given: str | None) -> str | None:
    """The value given under one of several names, or None; raises BadRequest when two are given."""
    found = {name: value for name, value in given.items() if value is not None}
    if len(found) > 1:
        raise BadRequest(f"give the {what} once: {' and '.join(found)} exclude each other")
    return next(iter(found.values()), None)


def named(branch: str | None) -> str:
    """The given branch, or main for None. An empty text is no branch and will not be found."""
    return MAIN if branch is None else branch


def refuse_both(branch: str | None, snapshot: str | None) -> None:
    """Raise BadRequest when both a branch and a snapshot are given."""
    if branch is not None and snapshot is not None:
        raise BadRequest("branch and snapshot exclude each other; give one of them")
