"""Conversion of JSON and Python values to plain values, for the parameters of queries and the properties of rows.
Each function raises a ValueError that says what is wrong. Besides JSON values these Python values are accepted: tuples, dates
and
datetimes, NumPy scalars and arrays, timestamps and nulls of pandas, UUIDs, enums, and decimals that lose no digit.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, time
from decimal import Decimal
from enum import Enum
from typing import Any, cast
from uuid import UUID

from omnigraph.language.literals import round_to_f32
from omnigraph.language.types import PropType

#: The prefix of a blob that is written as text.
BASE64 = "base64:"

_LONGEST_SHOWN = 40
_EPOCH_ORDINAL = date(1970, 1, 1).toordinal()
_SECONDS_PER_DAY = 86_400
#: Values of these types are used unchanged.
_PLAIN = frozenset({str, int, float, bool, type(None)})
#: No decimal with more digits fits a 64-bit number exactly; the bound matters, since Python refuses to convert thousands of
#: digits.
_MOST_DIGITS = 400


def shown(value: object) -> str:
    """A value as it is shown in a message: its kind, and its text in short."""
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case int() if value.bit_length() > 64:
            return f"an integer of {value.bit_length()} bits"
        case int() | float():
            return str(value)
        case str():
            return f"the text '{value if len(value) <= _LONGEST_SHOWN else value[:_LONGEST_SHOWN] + '…'}'"
        case Mapping():
            return "an object"
        case list() | tuple():
            return "an array"
        case datetime():
            return f"the datetime {value.isoformat()}"
        case date():
            return f"the date {value.isoformat()}"
        case Decimal():
            return f"the decimal {str(value)[:_LONGEST_SHOWN]}"
        case _ if getattr(value, "ndim", 0) or hasattr(value, "to_pylist"):
            return "an array"
        case _:
            return f"a {type(value).__name__}"


def unwrapped(value: object) -> object:
    """A value of a Python library as a plain Python value; None for the nulls of NumPy and pandas.
    A scalar of NumPy (also an array without dimensions) or Arrow becomes its Python value, a member of an enum its value, a
    UUID its
    text. Any other value is returned unchanged.
    """
    if type(value) in _PLAIN:
        return value
    if isinstance(value, Enum):
        return unwrapped(value.value)
    if isinstance(value, UUID):
        return str(value)
    library = type(value).__module__.partition(".")[0]
    if library == "numpy":
        return _of_numpy(value)
    if library == "pandas" and type(value).__name__ in ("NaTType", "NAType"):
        return None
    if library == "pyarrow" and hasattr(value, "as_py"):
        return unwrapped(_of_arrow(value))
    return value


def _of_arrow(value: Any) -> object:
    """An Arrow scalar as a Python value."""
    try:
        found: object = value.as_py()
    except (LookupError, OverflowError) as problem:
        # A zone that does not exist, or a time outside of the range of Python's datetime.
        raise ValueError(f"the Arrow scalar can not be read: {problem}") from None
    return found


def _of_numpy(value: Any) -> object:
    """A NumPy scalar as a Python value; an array with dimensions is returned unchanged."""
    if value.ndim:
        return value
    if value.dtype.kind != "M":
        return value.item()
    # `item()` would give a number for nanoseconds, and a date for days.
    found = value[()] if type(value).__name__ == "ndarray" else value
    if found.astype("datetime64[us]") != found and found == found:
        raise ValueError(f"'{found}' is finer than a microsecond")
    moment: object = found.item() if found.dtype == "datetime64[D]" else found.astype("datetime64[us]").item()
    if moment is not None and not isinstance(moment, date):
        raise ValueError(f"'{found}' lies outside the years 0001 to 9999")
    return moment


def is_array(value: object) -> bool:
    """Whether a value is an array of NumPy, pandas or Arrow (also a chunked array)."""
    return hasattr(value, "tolist") or hasattr(value, "to_pylist")


def items_of(value: object) -> Sequence[object]:
    """The items of a list, a tuple, or an array of NumPy, pandas or Arrow; raises ValueError for any other value."""
    if getattr(getattr(value, "dtype", None), "kind", None) == "M" and getattr(value, "ndim", 0):
        return list(cast("Sequence[object]", value))
    if is_array(value):
        value = cast("Any", value).tolist() if hasattr(value, "tolist") else cast("Any", value).to_pylist()
    if not isinstance(value, list | tuple):
        raise ValueError(f"expected an array, got {shown(value)}")
    return value


def elements_of(value: object) -> Sequence[object]:
    """The elements of a list; raises ValueError when one is null."""
    items = items_of(value)
    # Long lists nearly always hold plain values of one kind.
    kinds = set(map(type, items))
    found = items if kinds <= _PLAIN else [unwrapped(item) for item in items]
    if type(None) in kinds or (found is not items and any(item is None for item in found)):
        raise ValueError("null is not accepted as an element")
    return found


def vector_of(value: object, kind: PropType) -> tuple[float, ...]:
    """A vector of the declared dimension, rounded to F32, in which it is stored."""
    items = items_of(value)
    # Vectors are long, and nearly all of them hold nothing but plain floats.
    plain = set(map(type, items)) == {float}
    if not plain:
        items = [unwrapped(item) for item in items]
        if any(isinstance(item, bool) or not isinstance(item, int | float | Decimal) for item in items):
            raise ValueError("elements must be numeric")
    if len(items) != kind.dimension:
        raise ValueError(f"expects {kind.dimension} dimensions, got {len(items)}")
    return round_to_f32([number_of(item) for item in items] if not plain else cast("Sequence[float]", items))


def text_of(value: object) -> str:
    """The value if it is a text that UTF-8 can encode; raises ValueError otherwise."""
    if not isinstance(value, str):
        raise ValueError(f"expected a text, got {shown(value)}")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ValueError("the text holds half of a surrogate pair") from None
    return value


def texts_of(values: Sequence[object]) -> tuple[str, ...]:
    """The values as texts, each checked as by `text_of`."""
    if set(map(type, values)) == {str}:
        texts = cast("Sequence[str]", values)
        try:
            "".join(texts).encode()
        except UnicodeEncodeError:
            pass
        else:
            return tuple(texts)
    return tuple(map(text_of, values))


def bool_of(value: object) -> bool:
    """The value if it is a Bool; raises ValueError for any other value, such as 0 or 1."""
    if not isinstance(value, bool):
        raise ValueError(f"expected true or false, got {shown(value)}")
    return value


def integer_of(value: object) -> int:
    """The value as an integer. A Decimal without a fraction is accepted; the float 2.0 and `true` are refused."""
    if isinstance(value, Decimal) and value.is_finite() and -_MOST_DIGITS < value.adjusted() < _MOST_DIGITS:
        whole = int(value)
        if whole == value:
            return whole
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(f"expected an integer, got {shown(value)}")
    # A range is asked at once for a plain integer, but walked through in search of one of a class of its own.
    return int(value)


def number_of(value: object) -> float:
    """A number as a float; a Decimal is refused when the shortest text of the float has other digits."""
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        raise ValueError(f"expected a number, got {shown(value)}")
    try:
        number = float(value)
    except OverflowError:
        raise ValueError("an integer is outside the range of F64") from None
    if not isinstance(value, Decimal) or not value.is_finite():
        return number
    if number in (float("inf"), float("-inf")):
        raise ValueError(f"{shown(value)} is outside the range of F64")
    if Decimal(repr(number)) != value:
        raise ValueError(f"{shown(value)} has more digits than F64 holds; round it, or give a float")
    return number


def day_of(value: date) -> int:
    """The days since 1970-01-01 of a date, or of a datetime at midnight in its own zone."""
    if isinstance(value, datetime) and (value.time() != time() or getattr(value, "nanosecond", False)):
        raise ValueError(f"'{value.isoformat()}' is not a whole day")
    return value.toordinal() - _EPOCH_ORDINAL


def instant_of(value: datetime) -> int:
    """The milliseconds since 1970 of a datetime; without a zone it is taken as UTC."""
    # A pandas Timestamp is a datetime with an additional `nanosecond` attribute.
    if value.microsecond % 1000 or getattr(value, "nanosecond", False):
        raise ValueError(f"'{value.isoformat()}' is finer than a millisecond")
    try:
        whole = value.astimezone(UTC) if value.tzinfo is not None else value
    except OverflowError:
        raise ValueError(f"'{value.isoformat()}' lies outside the years 0001 to 9999 in UTC") from None
    days = whole.toordinal() - _EPOCH_ORDINAL
    seconds = (whole.hour * 60 + whole.minute) * 60 + whole.second
    return (days * _SECONDS_PER_DAY + seconds) * 1000 + whole.microsecond // 1000


def blob_text_of(value: object) -> str:
    """A blob as text: bytes as `base64:…`, a text as it is."""
    if isinstance(value, bytes | bytearray | memoryview):
        return f"{BASE64}{b64encode(value).decode()}"
    return text_of(value)
