"""JSON values as plain values: what parameters of queries and properties of rows read alike, and how both refuse.

Each function raises ValueError with what is wrong. Values of Python programs are taken for what they are: tuples, dates and
datetimes, NumPy scalars and arrays, the timestamps and nulls of pandas, UUIDs, enums, and decimals that lose no digit.
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
#: Values of these types stand for themselves.
_PLAIN = frozenset({str, int, float, bool, type(None)})
#: More digits than any exact decimal that a 64-bit number holds; Python refuses to convert thousands of them.
_MOST_DIGITS = 400


def shown(value: object) -> str:
    """A value in a message: its JSON kind, and a short text of it."""
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
    """What a Python program holds as the value it stands for; None for the nulls of NumPy and pandas.

    A scalar of NumPy (also an array of no dimension) or Arrow is the Python value it holds, a member of an enum its value, a UUID
    its text.
    Anything else stays as it is.
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
        # A zone that does not exist, a moment that Python has no datetime for.
        raise ValueError(f"the Arrow scalar can not be read: {problem}") from None
    return found


def _of_numpy(value: Any) -> object:
    """A NumPy scalar as a Python value; an array with items stays one."""
    if value.ndim:
        return value
    if value.dtype.kind != "M":
        return value.item()
    # A moment in nanoseconds would come out as a number, and one in days as a date.
    found = value[()] if type(value).__name__ == "ndarray" else value
    if found.astype("datetime64[us]") != found and found == found:
        raise ValueError(f"'{found}' is finer than a microsecond")
    moment: object = found.item() if found.dtype == "datetime64[D]" else found.astype("datetime64[us]").item()
    if moment is not None and not isinstance(moment, date):
        raise ValueError(f"'{found}' lies outside the years 0001 to 9999")
    return moment


def is_array(value: object) -> bool:
    """Whether a value is an array of some library: of NumPy, pandas or Arrow, there also one in chunks."""
    return hasattr(value, "tolist") or hasattr(value, "to_pylist")


def items_of(value: object) -> Sequence[object]:
    """What stands in an array: a list, a tuple, or an array of NumPy, pandas or Arrow."""
    if getattr(getattr(value, "dtype", None), "kind", None) == "M" and getattr(value, "ndim", 0):
        return list(cast("Sequence[object]", value))
    if is_array(value):
        value = cast("Any", value).tolist() if hasattr(value, "tolist") else cast("Any", value).to_pylist()
    if not isinstance(value, list | tuple):
        raise ValueError(f"expected an array, got {shown(value)}")
    return value


def elements_of(value: object) -> Sequence[object]:
    """The elements of a list, of which none may be null."""
    items = items_of(value)
    # Long lists nearly always hold plain values of one kind.
    kinds = set(map(type, items))
    found = items if kinds <= _PLAIN else [unwrapped(item) for item in items]
    if type(None) in kinds or (found is not items and any(item is None for item in found)):
        raise ValueError("null is not accepted as an element")
    return found


def vector_of(value: object, kind: PropType) -> tuple[float, ...]:
    """A vector of its declared dimension, in the precision it is stored with."""
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
    """A text that can be stored."""
    if not isinstance(value, str):
        raise ValueError(f"expected a text, got {shown(value)}")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ValueError("the text holds half of a surrogate pair") from None
    return value


def texts_of(values: Sequence[object]) -> tuple[str, ...]:
    """Texts that can be stored, each as `text_of` gives it."""
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
    """True or false, and nothing that could be taken for one of them."""
    if not isinstance(value, bool):
        raise ValueError(f"expected true or false, got {shown(value)}")
    return value


def integer_of(value: object) -> int:
    """A whole number; 2.0 and true are none, a decimal without a fraction is one."""
    if isinstance(value, Decimal) and value.is_finite() and -_MOST_DIGITS < value.adjusted() < _MOST_DIGITS:
        whole = int(value)
        if whole == value:
            return whole
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(f"expected an integer, got {shown(value)}")
    # A range is asked at once for a plain integer, but walked through in search of one of a class of its own.
    return int(value)


def number_of(value: object) -> float:
    """A number as a float; a decimal is one when the float, written in its shortest form, has the same digits."""
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
    """The days since the epoch of a date, or of a datetime whose own clock shows midnight."""
    if isinstance(value, datetime) and (value.time() != time() or getattr(value, "nanosecond", False)):
        raise ValueError(f"'{value.isoformat()}' is not a whole day")
    return value.toordinal() - _EPOCH_ORDINAL


def instant_of(value: datetime) -> int:
    """The milliseconds since the epoch of a datetime; one without a zone means UTC."""
    # The timestamps of pandas are datetimes with nanoseconds beside.
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
