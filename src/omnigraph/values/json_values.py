"""Converts a JSON value to the plain value of a property type: exact rules, one value at a time, with error reasons.

Nothing is coerced: a text is not a number, 2.0 is not an integer. Only numbers that JSON lacks are texts, as exports write
them: "NaN", "Infinity", "-Infinity". A Date is `YYYY-MM-DD` (a time of zero may follow) or a number of days, a DateTime is ISO
text or milliseconds. Python values (dates, tuples, NumPy scalars …) are accepted as they are; a datetime at midnight of its own
time zone is accepted as a day.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from datetime import date, datetime
from typing import Any

from omnigraph.language.json_values import (
    bool_of,
    day_of,
    elements_of,
    instant_of,
    integer_of,
    number_of,
    shown,
    text_of,
    unwrapped,
    vector_of,
)
from omnigraph.language.literals import PlainValue, round_to_f32
from omnigraph.language.temporal import DATE_DAYS, DATETIME_MILLISECONDS, parse_date, parse_datetime
from omnigraph.language.types import PropType, Scalar

#: The range of each stored integer type. A U64 has its whole range here, unlike in a query.
STORED_RANGES = {
    Scalar.I32: range(-(2**31), 2**31),
    Scalar.I64: range(-(2**63), 2**63),
    Scalar.U32: range(2**32),
    Scalar.U64: range(2**64),
}
_NON_FINITE = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
_TIMED = re.compile(
    r"(?P<day>[0-9]{4}-[0-9]{2}-[0-9]{2})[T ](?P<time>[0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,9})?)?)(Z|[+-][0-9]{2}:[0-9]{2})?"
)


def from_json(value: object, kind: PropType) -> PlainValue | bytes:
    """The plain value of a property; ValueError says why there is none. Enum values are not checked here."""
    value = unwrapped(value)
    if value is None:
        return None
    if kind.is_vector:
        return vector_of(value, kind)
    if kind.is_list:
        return tuple(_SCALARS[kind.scalar](item, kind.scalar) for item in elements_of(value))
    found: PlainValue | bytes = _SCALARS[kind.scalar](value, kind.scalar)
    return found


def _text(value: object, scalar: Scalar) -> str:
    return text_of(value)


def _blob(value: object, scalar: Scalar) -> str | bytes:
    return bytes(value) if isinstance(value, bytes | bytearray | memoryview) else text_of(value)


def _bool(value: object, scalar: Scalar) -> bool:
    return bool_of(value)


def _integer(value: object, scalar: Scalar) -> int:
    number = integer_of(value)
    if number not in STORED_RANGES[scalar]:
        raise ValueError(f"{shown(value)} is outside the range of {scalar}")
    return number


def _float(value: object, scalar: Scalar) -> float:
    known = _NON_FINITE.get(value) if isinstance(value, str) else None
    number = number_of(value) if known is None else known
    return round_to_f32([number])[0] if scalar is Scalar.F32 and math.isfinite(number) else number


def _date(value: object, scalar: Scalar) -> int:
    if isinstance(value, date):
        return day_of(value)
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise ValueError(f"expected YYYY-MM-DD or days since 1970-01-01, got {shown(value)}")
    days = _day_of(value) if isinstance(value, str) else value
    if days not in DATE_DAYS:
        raise ValueError(f"{shown(value)} days since 1970-01-01 lie outside the years 0001 to 9999")
    return days


def _day_of(text: str) -> int:
    """A text as a day; a date and time is accepted if the time is zero, as programs without a date type write days."""
    timed = _TIMED.fullmatch(text)
    if timed is None:
        return parse_date(text)
    if not set(timed["time"]) <= set("0:."):
        raise ValueError(f"'{text}' is not a whole day")
    return parse_date(timed["day"])


def _datetime(value: object, scalar: Scalar) -> int:
    if isinstance(value, datetime):
        return instant_of(value)
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise ValueError(f"expected an ISO date and time or milliseconds since 1970-01-01, got {shown(value)}")
    instant = parse_datetime(value) if isinstance(value, str) else value
    if instant not in DATETIME_MILLISECONDS:
        raise ValueError(f"{shown(value)} ms since 1970-01-01 lie outside the years 0001 to 9999")
    return instant


_SCALARS: dict[Scalar, Callable[[Any, Scalar], Any]] = {
    Scalar.STRING: _text,
    Scalar.BLOB: _blob,
    Scalar.BOOL: _bool,
    Scalar.I32: _integer,
    Scalar.I64: _integer,
    Scalar.U32: _integer,
    Scalar.U64: _integer,
    Scalar.F32: _float,
    Scalar.F64: _float,
    Scalar.DATE: _date,
    Scalar.DATETIME: _datetime,
}
