"""The observed values of a property, and the property type that can hold all of them."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import Any, Final

import orjson

from omnigraph.language.temporal import parse_date, parse_datetime
from omnigraph.language.types import PropType, Scalar

#: Above this, floats can not represent every integer.
_EXACT = 2**53
_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_UTC_MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d{1,3})?)?Z")

# The kinds of values. A text in the form of an ISO date or datetime is a separate kind, since it may be a date or a text.
BOOL, INT, FLOAT, TEXT, DAY, MOMENT, BYTES, MAP, NULL = (
    "bool",
    "int",
    "float",
    "text",
    "day",
    "moment",
    "bytes",
    "map",
    "null",
)
DAY_TEXT, MOMENT_TEXT = "text of a day", "text of a moment"
EMPTY: Final = "[]"

_CALLED = {
    BOOL: "truth values",
    INT: "whole numbers",
    FLOAT: "floats",
    TEXT: "texts",
    DAY_TEXT: "texts",
    MOMENT_TEXT: "texts",
    DAY: "dates",
    MOMENT: "datetimes",
    BYTES: "bytes",
    MAP: "maps",
    NULL: "nulls",
}
_SCALARS = {
    BOOL: Scalar.BOOL,
    INT: Scalar.I64,
    FLOAT: Scalar.F64,
    TEXT: Scalar.STRING,
    DAY: Scalar.DATE,
    DAY_TEXT: Scalar.DATE,
    MOMENT: Scalar.DATETIME,
    MOMENT_TEXT: Scalar.DATETIME,
    BYTES: Scalar.BLOB,
}
_TEXT = PropType(Scalar.STRING)


def kind_of(value: object) -> str:
    """The kind of a value that is not a list; raises TypeError for a value that no property can hold."""
    if value is None:
        return NULL
    if isinstance(value, bool):
        return BOOL
    if isinstance(value, str):
        return _kind_of_text(value)
    if isinstance(value, int):
        return INT
    if isinstance(value, float):
        return FLOAT
    if isinstance(value, datetime):
        return MOMENT
    if isinstance(value, date):
        return DAY
    if isinstance(value, bytes | bytearray):
        return BYTES
    if isinstance(value, Mapping):
        return MAP
    raise TypeError(f"a {type(value).__name__} is no value of a property")


def _kind_of_text(text: str) -> str:
    if not 10 <= len(text) <= 24 or text[4] != "-":
        return TEXT
    if _DAY.fullmatch(text) and _parses(parse_date, text):
        return DAY_TEXT
    if _UTC_MOMENT.fullmatch(text) and _parses(parse_datetime, text):
        return MOMENT_TEXT
    return TEXT


def _parses(parse: Callable[[str], int], text: str) -> bool:
    try:
        parse(text)
    except ValueError:
        return False
    return True


@dataclass(slots=True)
class Observed:
    """The values of one property so far: counts by kind, counts of list elements by kind, and the range of integers."""

    kinds: Counter[str] = field(default_factory=Counter)
    elements: Counter[str] = field(default_factory=Counter)
    lowest: int = 0
    highest: int = 0

    def add(self, value: object) -> None:
        """Count one value; raises TypeError for a value that no property can hold."""
        if isinstance(value, list | tuple):
            self.kinds["list"] += 1
            for element in value:
                self._count(self.elements, MAP if isinstance(element, list | tuple) else kind_of(element), element)
        else:
            self._count(self.kinds, kind_of(value), value)

    def _count(self, where: Counter[str], kind: str, value: Any) -> None:
        where[kind] += 1
        if kind is INT:
            self.lowest, self.highest = min(self.lowest, value), max(self.highest, value)

    def include(self, other: Observed) -> None:
        """Add the counts of another observation."""
        self.kinds.update(other.kinds)
        self.elements.update(other.elements)
        self.lowest, self.highest = min(self.lowest, other.lowest), max(self.highest, other.highest)

    def settle(self, *, dates: bool) -> tuple[PropType, str | None]:
        """The nullable type for all values, and a remark when values change their form. `dates`: texts may become dates."""
        kinds = Counter({kind: count for kind, count in self.kinds.items() if kind is not NULL})
        if not kinds:
            return _TEXT.as_nullable(), "only null was seen: declared as an optional String"
        if set(kinds) == {"list"}:
            found, remark = self._settle_lists(dates)
        elif "list" in kinds:
            found, remark = _TEXT, "lists beside single values: kept as texts, lists in JSON"
        else:
            found, remark = self._settle_scalars(kinds, dates)
        return found.as_nullable(), remark

    def _settle_lists(self, dates: bool) -> tuple[PropType, str | None]:
        if not self.elements:
            return PropType(Scalar.STRING, is_list=True), "only empty lists were seen: declared as [String]"
        if self.elements.keys() & {NULL, MAP, BYTES}:
            told = _listed(self.elements)
            return _TEXT, f"lists of {told} can not be stored as lists: kept as texts in JSON"
        found, remark = self._settle_scalars(self.elements, dates)
        return PropType(found.scalar, is_list=True), remark and f"in lists: {remark}"

    def _settle_scalars(self, kinds: Counter[str], dates: bool) -> tuple[PropType, str | None]:
        names = set(kinds)
        if names <= {TEXT, DAY_TEXT, MOMENT_TEXT} and (len(names) > 1 or not dates):
            return _TEXT, None
        if names == {INT}:
            return self._integer()
        if names == {INT, FLOAT}:
            if self.lowest >= -_EXACT and self.highest <= _EXACT:
                return PropType(Scalar.F64), "whole numbers beside floats: stored as floats"
            return _TEXT, "whole numbers that no float holds exactly, beside floats: kept as texts"
        if names == {MAP}:
            return _TEXT, "maps can not be stored: kept as texts in JSON"
        if len(names) > 1:
            return _TEXT, f"values of several kinds ({_listed(kinds)}): kept as texts"
        (name,) = names
        remark = {
            DAY_TEXT: "every text is a date in ISO form: declared as Date",
            MOMENT_TEXT: "every text is a UTC datetime in ISO form: declared as DateTime",
        }.get(name)
        return PropType(_SCALARS[name]), remark

    def _integer(self) -> tuple[PropType, str | None]:
        if self.lowest >= -(2**63) and self.highest < 2**63:
            return PropType(Scalar.I64), None
        if self.lowest >= 0 and self.highest < 2**64:
            return PropType(Scalar.U64), None
        return _TEXT, "whole numbers of more than 64 bits: kept as texts"


def _listed(kinds: Counter[str]) -> str:
    told: Counter[str] = Counter()
    for kind, count in kinds.items():
        told[_CALLED.get(kind, kind)] += count
    return ", ".join(
        f"{count} {kind.removesuffix('s') if count == 1 else kind}" for kind, count in sorted(told.items())
    )


def fitted(value: Any, kind: PropType) -> Any:
    """A value in the JSON form of a type; a value that does not fit is left for the load to refuse."""
    if value is None:
        return None
    if kind.is_list or kind.is_vector:
        element = kind.element() if kind.is_list else PropType(Scalar.F64)
        return [fitted(one, element) for one in value] if isinstance(value, list | tuple) else value
    if kind.scalar is Scalar.STRING:
        return as_text(value)
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, datetime | date | bytes | bytearray):
        return as_text(value)
    return value


def as_text(value: Any) -> str:
    """A value as a text: texts as they are, dates in ISO form, bytes as base64, everything else as JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, datetime):
        moment = value if value.tzinfo is not None else value.replace(tzinfo=UTC)
        return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, bytes | bytearray):
        from base64 import b64encode

        return f"base64:{b64encode(bytes(value)).decode()}"
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return orjson.dumps(value, default=as_text, option=orjson.OPT_NON_STR_KEYS).decode()
