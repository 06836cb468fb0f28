"""Stored queries as tools: the parameters of a query are the arguments of its tool."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from omnigraph.errors import BadRequest
from omnigraph.mcp.reading import place_of, refuse_path, rows_reply
from omnigraph.mcp.session import Session
from omnigraph.mcp.tool import Reply, Tool, known_arguments
from omnigraph.mcp.writing import mutated
from omnigraph.policy.actions import INVOKE_QUERY, READ, Need
from omnigraph.query.result import Result
from omnigraph.wire.shapes import change_output

#: The additional arguments of stored reads and stored mutations; a parameter of the same name takes precedence.
_OF_READS: dict[str, dict[str, Any]] = {
    "branch": {
        "type": "string",
        "description": "The branch that is read; main unless given, or the branch of this session.",
    },
    "snapshot": {"type": "string", "description": "A commit id, tag or snapshot id to read instead of a branch."},
    "format": {
        "enum": ["rows", "table"],
        "description": "rows: objects by column name; table: arrays in the order of `columns`.",
    },
    "offset": {
        "type": "integer",
        "minimum": 0,
        "description": "How many rows to leave out, to get the rest of a cut answer.",
    },
}
_OF_MUTATIONS: dict[str, dict[str, Any]] = {
    "branch": {
        "type": "string",
        "description": "The branch that is written to; main unless given, or the branch of this session.",
    },
    "message": {"type": "string", "description": "What this write is about; it is kept with the commit."},
    "idempotency_key": {
        "type": "string",
        "description": "A repeat with the same key answers as the first call did, and writes nothing.",
    },
}
_SCALARS: dict[str, dict[str, Any]] = {
    "string": {"type": "string"},
    "bool": {"type": "boolean"},
    "int": {"type": "integer"},
    "bigint": {
        "type": ["integer", "string"],
        "description": "A whole number of 64 bits; as a text where it is above 2^53.",
    },
    "float": {"type": "number"},
    "date": {"type": "string", "format": "date"},
    "datetime": {"type": "string", "format": "date-time"},
    "blob": {"type": "string", "description": "base64:…"},
    "vector": {"type": "array", "items": {"type": "number"}},
    "object": {"type": "object"},
}


@dataclass(frozen=True)
class Stored:
    """A stored query as listed in the catalogue. `source`: the text that contains it; None when the server has it."""

    name: str
    is_mutation: bool
    params: tuple[Mapping[str, Any], ...]
    description: str | None = None
    instruction: str | None = None
    source: str | None = None


@dataclass(frozen=True)
class Invoked:
    """A call of a stored query: its parameters and additional arguments."""

    params: dict[str, Any]
    branch: str | None = None
    snapshot: str | None = None
    format: str = "rows"
    offset: int = 0
    message: str | None = None
    idempotency_key: str | None = None


def stored_from(told: Mapping[str, Any], source: str | None = None) -> Stored:
    """A stored query from its entry in `GET /queries`."""
    about = (told.get("description"), told.get("instruction"))
    return Stored(told["name"], told["mutation"], tuple(told["params"]), *about, source)


def stored_tools(session: Session, taken: Iterable[str]) -> dict[str, Tool]:
    """The stored queries that the session may call, as tools; a query with the name of another tool becomes `stored_…`."""
    if not session.may(Need(INVOKE_QUERY)):
        return {}
    names = set(taken)
    found = {}
    for stored in session.stored().values():
        if session.read_only and stored.is_mutation:
            continue
        name = f"stored_{stored.name}" if stored.name in names else stored.name
        found[name] = replace(_tool(stored), name=name)
    return found


def _tool(stored: Stored) -> Tool:
    kind = "Stored mutation." if stored.is_mutation else "Stored query."
    text = " ".join(filter(None, (stored.description, stored.instruction))) or f"{kind[:-1]} `{stored.name}`."
    schema = _schema(stored)
    return Tool(
        stored.name,
        stored.name,
        text if text.startswith(kind[:-1]) else f"{text} ({kind[:-1].lower()})",
        schema,
        _reader(stored, schema),
        partial(_needs, stored),
        partial(_work, stored),
        writes=stored.is_mutation,
        destroys=stored.is_mutation,
    )


def _schema(stored: Stored) -> dict[str, Any]:
    params = {param["name"]: _value(param) for param in stored.params}
    besides = _OF_MUTATIONS if stored.is_mutation else _OF_READS
    required = [param["name"] for param in stored.params if not param["nullable"]]
    schema: dict[str, Any] = {"type": "object", "properties": {**besides, **params}, "additionalProperties": False}
    return schema | ({"required": required} if required else {})


def _value(param: Mapping[str, Any]) -> dict[str, Any]:
    if param["kind"] == "list":
        return {"type": "array", "items": _SCALARS.get(param.get("item_kind", ""), {})}
    about = dict(_SCALARS.get(param["kind"], {}))
    if param.get("vector_dim") is not None:
        about |= {"minItems": param["vector_dim"], "maxItems": param["vector_dim"]}
    return about


def _reader(stored: Stored, schema: Mapping[str, Any]) -> Callable[[Mapping[str, Any]], Invoked]:
    names = list(schema["properties"])
    declared = {param["name"] for param in stored.params}

    def read(given: Mapping[str, Any]) -> Invoked:
        known = known_arguments(stored.name, given, names)
        besides = {name: value for name, value in known.items() if name not in declared}
        for name, value in besides.items():
            _check(stored.name, name, value)
        return Invoked({name: value for name, value in known.items() if name in declared}, **besides)

    return read


def _check(tool_name: str, name: str, value: Any) -> None:
    if name == "offset":
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise BadRequest(f"{tool_name}: offset is a whole number from 0 on")
    elif name == "format":
        if value not in ("rows", "table"):
            raise BadRequest(f"{tool_name}: format is rows or table")
    elif not isinstance(value, str):
        raise BadRequest(f"{tool_name}: {name} is a text")


def _needs(stored: Stored, session: Session, asked: Invoked) -> Iterable[Need]:
    needs = [Need(INVOKE_QUERY)]
    if stored.is_mutation:
        return [*needs, *session.needs_of_write(session.write_branch(asked.branch))]
    place = place_of(session, asked)
    if place["snapshot"] is None:
        return [*needs, Need(READ, place["branch"])]
    return [*needs, Need(READ, session.graph.snapshot(at=place["snapshot"]).branch)]


def _work(stored: Stored, session: Session, asked: Invoked) -> Reply:
    if stored.is_mutation:
        return _mutated(stored, session, asked)
    place = place_of(session, asked)
    if stored.source is not None:
        refuse_path(stored.source)
        result: Any = session.graph.query(
            stored.source, stored.name, asked.params, timeout=session.timeout, cancel=session.cancel, **place
        )
    else:
        graph: Any = session.graph
        result = graph.invoke(stored.name, asked.params, expect_mutation=False, timeout=session.timeout, **place)
    assert isinstance(result, Result), "a stored read gives rows"
    return rows_reply(session, stored.name, place, result, asked.format, asked.offset)


def _mutated(stored: Stored, session: Session, asked: Invoked) -> Reply:
    branch = session.write_branch(asked.branch)
    session.make_branch(branch)
    if stored.source is not None:
        return mutated(
            session,
            stored.source,
            stored.name,
            stored.name,
            asked.params,
            branch,
            None,
            asked.message,
            asked.idempotency_key,
        )
    key = session.keyed(asked.idempotency_key)
    graph: Any = session.graph
    result = graph.invoke(
        stored.name,
        asked.params,
        branch=branch,
        expect_mutation=True,
        idempotency_key=key,
        message=asked.message or f"{stored.name} (MCP)",
    )
    session.committed = result.commit is not None
    shape = change_output(branch, stored.name, session.writer, result)
    return Reply(shape | {"idempotency_key": key})
