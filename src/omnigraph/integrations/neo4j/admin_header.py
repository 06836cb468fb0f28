"""The header of a file for `neo4j-admin database import`: what each column holds, and how its texts are read."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any

from omnigraph.errors import BadRequest
from omnigraph.language.source import did_you_mean, nearest_name
from omnigraph.language.temporal import parse_datetime

ID, LABEL, START, END, TYPE, IGNORE = ":ID", ":LABEL", ":START_ID", ":END_ID", ":TYPE", ":IGNORE"
ROLES = (ID, LABEL, START, END, TYPE, IGNORE)
_FIELD = re.compile(
    r"(?P<name>.*?)(?::(?P<kind>[A-Za-z_]+)(?P<space>\([^)]*\))?(?P<list>\[\])?(?P<options>\{[^}]*\})?)?", re.DOTALL
)
_POINT_PART = re.compile(r"\s*\"?(\w+)\"?\s*:\s*\"?([^,\"]+?)\"?\s*(?:,|$)")


def _whole(text: str) -> int:
    number = int(text)
    if not -(2**63) <= number < 2**63:
        raise ValueError("has more than 64 bits")
    return number


def _truth(text: str) -> bool:
    found = {"true": True, "false": False}.get(text.lower())
    if found is None:
        raise ValueError("is neither true nor false")
    return found


def _day(text: str) -> date | str:
    # Neo4j also knows weeks, quarters and ordinal days; these stay texts.
    try:
        return date.fromisoformat(text) if len(text) == 10 else text
    except ValueError:
        return text


def _moment(text: str) -> datetime | str:
    # Named zones and times finer than a millisecond stay texts.
    try:
        milliseconds = parse_datetime(text)
    except ValueError:
        return text
    try:
        return datetime.fromtimestamp(milliseconds / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return text


def _point(text: str) -> dict[str, Any]:
    inner = text.strip().removeprefix("{").removesuffix("}")
    parts: dict[str, Any] = {}
    for name, value in _POINT_PART.findall(inner):
        parts[name.lower()] = value if name.lower() == "crs" else float(value)
    if not ({"latitude", "longitude"} <= set(parts) or {"x", "y"} <= set(parts)):
        raise ValueError("is no point; one is written {latitude:55.6, longitude:12.9} or {x:1.0, y:2.0}")
    return parts


_PARSERS: dict[str, Callable[[str], Any]] = {
    **dict.fromkeys(("int", "long", "short", "byte", "integer"), _whole),
    **dict.fromkeys(("float", "double"), float),
    **dict.fromkeys(("string", "char", "time", "localtime", "duration"), str),
    "boolean": _truth,
    "date": _day,
    "datetime": _moment,
    "localdatetime": _moment,
    "point": _point,
}
#: Types of Neo4j that are stored in another form, and in which.
CHANGED = {
    "time": "times of day are kept as texts",
    "localtime": "times of day are kept as texts",
    "duration": "durations are kept as texts",
    "datetime": "datetimes are stored in UTC: their offsets are not kept",
    "localdatetime": "datetimes without a zone are read as UTC",
    "point": "points are kept as one property for each coordinate",
}


@dataclass(frozen=True)
class Column:
    """One column: its role, or the property it holds and how a text becomes its value."""

    role: str | None
    name: str
    space: str = ""
    kind: str = "string"
    is_list: bool = False
    parse: Callable[[str], Any] = str

    def value(self, text: str, array_delimiter: str) -> Any:
        """The value of a field; ValueError when its text is no value of the declared type."""
        if not self.is_list:
            return self._one(text)
        return [self._one(one.strip()) for one in text.split(array_delimiter)]

    def _one(self, text: str) -> Any:
        try:
            return self.parse(text)
        except ValueError as error:
            reason = str(error) if str(error).startswith(("has", "is")) else f"is no {self.kind}"
            raise ValueError(f"column {self.name!r}: {text[:60]!r} {reason}") from None


def parse_header(fields: Sequence[str], file: str) -> tuple[Column, ...]:
    """The columns that a header declares; BadRequest for what is no type of neo4j-admin."""
    columns = tuple(_column(field.strip(), file) for field in fields)
    names = [column.name for column in columns if column.role is None]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise BadRequest(f"{file}: the header has the property {twice!r} twice")
    return columns


def is_header(fields: Sequence[str]) -> bool:
    """Whether the first line of a file is a header: it has a column for ids, or for both ends of relationships."""
    roles = {_role(field) for field in fields}
    return ID in roles or {START, END} <= roles


def _role(field: str) -> str | None:
    match = _FIELD.fullmatch(field.strip())
    kind = f":{match['kind'].upper()}" if match and match["kind"] else None
    return kind if kind in ROLES else None


def _column(field: str, file: str) -> Column:
    match = _FIELD.fullmatch(field)
    if match is None or not field:
        raise BadRequest(
            f"{file}: {field!r} is no column of a header; it is written name:type, such as born:int or :ID(Person)"
        )
    kind, name = (match["kind"] or "string").lower(), match["name"]
    space = (match["space"] or "").strip("()")
    role = f":{kind.upper()}"
    if role in ROLES:
        return Column(role, name, space, kind)
    if not name:
        raise BadRequest(f"{file}: the column {field!r} has no name")
    parse = _PARSERS.get(kind)
    if parse is None:
        hint = did_you_mean(nearest_name(kind, _PARSERS))
        raise BadRequest(f"{file}: column {name!r} has the type {kind!r}, which neo4j-admin does not know{hint}")
    return Column(None, name, space, kind, match["list"] is not None, parse)
