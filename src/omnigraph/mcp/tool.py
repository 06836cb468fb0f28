"""A tool as data: its name, arguments, needed permissions and work. Both transports use the same list of tools."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from omnigraph.errors import BadRequest
from omnigraph.language.source import did_you_mean, nearest_name
from omnigraph.mcp.session import Session
from omnigraph.policy.actions import Need

_CAPITAL = re.compile(r"(?<=[a-z])(?=[A-Z])")


@dataclass(frozen=True)
class Reply:
    """The answer of a tool. `items`: the name of the list in `shape` that is cut when the answer is too large.
    `rest`: returns the arguments that request the cut items, given the number of kept items; None when there is no way to get
    them.
    """

    shape: dict[str, Any]
    items: str | None = None
    rest: Callable[[int], dict[str, Any]] | None = None
    #: The number of all items, when the shape does not contain all of them.
    total: int | None = None


Needs = Callable[[Session, Any], Iterable[Need]]
Work = Callable[[Session, Any], Reply]


@dataclass(frozen=True)
class Tool:
    """One tool. `needs` and `work` get the arguments as decoded by `read`."""

    name: str
    title: str
    description: str
    #: The JSON Schema of the arguments.
    schema: Mapping[str, Any]
    read: Callable[[Mapping[str, Any]], Any]
    needs: Needs
    work: Work
    writes: bool = False
    #: Whether it is a write that may remove or overwrite data.
    destroys: bool = False


class Arguments(msgspec.Struct, forbid_unknown_fields=True):
    """What a tool is called with; a name that it does not know is refused."""


def tool(
    name: str,
    title: str,
    description: str,
    arguments: type[Arguments],
    needs: Needs,
    work: Work,
    *,
    writes: bool = False,
    destroys: bool = False,
) -> Tool:
    """A tool whose arguments are a type."""
    return Tool(name, title, description, schema_of(arguments), _reader(name, arguments), needs, work, writes, destroys)


def no_needs(session: Session, asked: Any) -> Iterable[Need]:
    """No permissions are needed: the answer is the same for everybody."""
    return ()


def known_arguments(tool_name: str, given: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """The arguments by the names of a tool: null means not given, and `pageToken` is accepted as `page_token`."""
    found: dict[str, Any] = {}
    for name, value in given.items():
        if value is None:
            continue
        known = name if name in names else _CAPITAL.sub("_", name).lower()
        if known not in names:
            takes = f"it takes {', '.join(names)}" if names else "it takes no arguments"
            raise BadRequest(
                f"{tool_name} has no argument '{name[:80]}'{did_you_mean(nearest_name(known, names)) or f'; {takes}'}"
            )
        if known in found:
            raise BadRequest(f"{tool_name}: '{known}' is given twice")
        found[known] = value
    return found


def _reader(tool_name: str, arguments: type[Arguments]) -> Callable[[Mapping[str, Any]], Any]:
    names = [field.encode_name for field in msgspec.structs.fields(arguments)]

    def read(given: Mapping[str, Any]) -> Any:
        try:
            return msgspec.convert(known_arguments(tool_name, given, names), arguments)
        except msgspec.ValidationError as error:
            text = str(error)
            raise BadRequest(f"{tool_name}: {text[:1].lower()}{text[1:]}") from None

    return read


def schema_of(arguments: type[Arguments]) -> dict[str, Any]:
    """The JSON Schema of an arguments type, without references; optional arguments are omitted rather than null."""
    _, components = msgspec.json.schema_components([arguments])
    whole: dict[str, Any] = components[arguments.__name__]
    properties = {name: _without_null(about) for name, about in whole.get("properties", {}).items()}
    schema: dict[str, Any] = {"type": "object", "properties": properties, "additionalProperties": False}
    return schema | ({"required": whole["required"]} if whole.get("required") else {})


def _without_null(schema: dict[str, Any]) -> dict[str, Any]:
    choices = [choice for choice in schema.get("anyOf", ()) if choice.get("type") != "null"]
    kept = {name: value for name, value in schema.items() if name != "anyOf"}
    if kept.get("default", ...) is None:
        del kept["default"]
    return {**(choices[0] if len(choices) == 1 else {"anyOf": choices} if choices else {}), **kept}
