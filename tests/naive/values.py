"""What operators, functions and aggregates give for plain Python values.

None is null; a Date is a `date`, a DateTime a `datetime` in UTC without a zone, a list a tuple. Nothing of the engine is used.
"""

from __future__ import annotations

import math
import re
import statistics
from calendar import monthrange
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction
from typing import Any

EPOCH = datetime(1970, 1, 1)
I64 = range(-(2**63), 2**63)


class Failure(Exception):
    """A value that can not be computed: the engine raises a typed error."""


# --- texts that are dates ---------------------------------------------------------------------------------------------


def to_date(text: str) -> date:
    """The day that a text such as `2026-03-01` names."""
    try:
        return datetime.strptime(text, "%Y-%m-%d").date()
    except ValueError:
        raise Failure(text) from None


def to_datetime(text: str) -> datetime:
    """The moment that a text names, in UTC."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise Failure(text) from None
    return moment if moment.tzinfo is None else moment.astimezone(UTC).replace(tzinfo=None)


def duration(text: str) -> timedelta:
    """What `PT1H30M` and alike say."""
    found = re.fullmatch(r"(-?)P(?:(\d+)W)?(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:([\d.]+)S)?)?", text)
    if found is None:
        raise Failure(text)
    sign, weeks, days, hours, minutes, seconds = found.groups()
    length = timedelta(
        weeks=int(weeks or 0),
        days=int(days or 0),
        hours=int(hours or 0),
        minutes=int(minutes or 0),
        seconds=float(seconds or 0),
    )
    return -length if sign else length


def alike(left: Any, right: Any) -> tuple[Any, Any]:
    """Two values of one kind: a text beside a Date or a DateTime is read as one."""
    return _read_as(left, right), _read_as(right, left)


def _read_as(value: Any, other: Any) -> Any:
    if isinstance(value, str) and isinstance(other, datetime):
        return to_datetime(value)
    if isinstance(value, str) and isinstance(other, date):
        return to_date(value)
    return value


# --- conditions -------------------------------------------------------------------------------------------------------

_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "=": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "starts_with": lambda a, b: a.startswith(b),
    "ends_with": lambda a, b: a.endswith(b),
}


def compare(left: Any, operator: str, right: Any) -> bool | None:
    """A comparison; null where a side is."""
    if operator == "contains":
        return member(right, left) if isinstance(left, tuple | None) else _contains(left, right)
    if operator == "in":
        return member(left, right)
    if operator == "not in":
        return negate(member(left, right))
    if left is None or right is None:
        return None
    return _COMPARE[operator](*alike(left, right))


def _contains(text: str, part: str | None) -> bool | None:
    return None if part is None else part in text


def member(item: Any, items: tuple[Any, ...] | None) -> bool | None:
    """`item in items`: the `or` of the equalities; null where one of the two is null."""
    if item is None or items is None:
        return None
    return any_of([compare(item, "=", other) for other in items])


def negate(truth: bool | None) -> bool | None:
    """Not: null stays null."""
    return None if truth is None else not truth


def all_of(truths: Sequence[bool | None]) -> bool | None:
    """And: one false is enough, else one null."""
    if any(truth is False for truth in truths):
        return False
    return None if None in truths else True


def any_of(truths: Sequence[bool | None]) -> bool | None:
    """Or: one true is enough, else one null."""
    if any(truth is True for truth in truths):
        return True
    return None if None in truths else False


# --- arithmetic -------------------------------------------------------------------------------------------------------


def arithmetic(left: Any, operator: str, right: Any) -> Any:
    """`left operator right`; null where a side is."""
    if left is None or right is None:
        return None
    if isinstance(left, date) or isinstance(right, date):
        return _moments(left, operator, right)
    if operator in "/%" and right == 0:
        raise Failure("division by zero")
    if operator == "+":
        return bounded(left + right)
    if operator == "-":
        return bounded(left - right)
    if operator == "*":
        return bounded(left * right)
    if operator == "/":
        return left / right
    if isinstance(left, float) or isinstance(right, float):
        return math.fmod(left, right)
    return left - right * whole_part(left, right)


def whole_part(left: int, right: int) -> int:
    """The quotient, rounded towards zero."""
    if right == 0:
        raise Failure("division by zero")
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


def bounded(value: Any) -> Any:
    """A whole number that fits I64."""
    if isinstance(value, int) and value not in I64:
        raise Failure("outside the range of I64")
    return value


def _moments(left: Any, operator: str, right: Any) -> Any:
    if isinstance(left, datetime):
        if isinstance(right, datetime):
            return (left - right) // timedelta(milliseconds=1)
        return left + right if operator == "+" else left - right
    if isinstance(right, date):
        return (left - right).days if isinstance(left, date) else right + timedelta(days=left)
    return left + timedelta(days=right if operator == "+" else -right)


# --- functions --------------------------------------------------------------------------------------------------------


def _round(number: Any, digits: int = 0) -> Any:
    shifted = Decimal(repr(number)).quantize(Decimal(1).scaleb(-digits), rounding=ROUND_HALF_UP)
    return type(number)(shifted)


def _substring(text: str, start: int, length: int | None = None) -> str:
    start = max(len(text) + start, 0) if start < 0 else start
    return text[start:] if length is None else text[start : start + max(length, 0)]


def _split(text: str, separator: str) -> tuple[str, ...]:
    if not separator:
        raise Failure("an empty separator")
    return tuple(text.split(separator))


def _positive(function: Callable[[float], float], least: float) -> Callable[[float], float]:
    def checked(number: float) -> float:
        if number < least:
            raise Failure(number)
        return function(number)

    return checked


def _logarithm(function: Callable[[float], float]) -> Callable[[float], float]:
    return _positive(function, math.ulp(0.0))


def _truncate(unit: str, moment: date) -> date:
    if unit == "week":
        moment -= timedelta(days=moment.weekday())
        unit = "day"
    if unit == "quarter":
        moment = moment.replace(day=1, month=(moment.month - 1) // 3 * 3 + 1)
        unit = "day"
    fields = ["year", "month", "day", "hour", "minute", "second"]
    first = {"month": 1, "day": 1}
    dropped = fields[fields.index(unit) + 1 :]
    if isinstance(moment, datetime):
        starts: dict[str, Any] = {name: first.get(name, 0) for name in dropped}
        return moment.replace(microsecond=0, **starts)
    return moment.replace(**{name: 1 for name in dropped if name in first})


def _add_months(moment: date, months: int) -> date:
    total = moment.year * 12 + moment.month - 1 + months
    year, month = divmod(total, 12)
    last = monthrange(year, month + 1)[1]
    return moment.replace(year=year, month=month + 1, day=min(moment.day, last))


def _item(items: tuple[Any, ...], place: int) -> Any:
    return items[place] if -len(items) <= place < len(items) else None


def _sorted(items: tuple[Any, ...]) -> tuple[Any, ...]:
    known = sorted(item for item in items if item is not None)
    return (*known, *(item for item in items if item is None))


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return shown(value) if isinstance(value, date) else str(value)


def _int(value: Any) -> int:
    if isinstance(value, str):
        if re.fullmatch(r"[+-]?\d+", value.strip()) is None:
            raise Failure(value)
        value = bounded(int(value))
    return int(value)


def _float(value: Any) -> float:
    try:
        return float(value)
    except ValueError:
        raise Failure(value) from None


def _day(value: Any) -> date:
    if isinstance(value, str):
        return to_date(value)
    return value.date() if isinstance(value, datetime) else value


def _moment(value: Any) -> datetime:
    if isinstance(value, str):
        return to_datetime(value)
    return value if isinstance(value, datetime) else datetime(value.year, value.month, value.day)


CONVERSIONS: dict[str, Callable[[Any], Any]] = {
    "to_text": _text,
    "to_int": _int,
    "to_float": _float,
    "to_date": _day,
    "to_datetime": _moment,
}

#: Functions whose result is null as soon as an argument is.
STRICT: dict[str, Callable[..., Any]] = {
    "lower": str.lower,
    "upper": str.upper,
    "trim": str.strip,
    "length": len,
    "substring": _substring,
    "replace": str.replace,
    "split": _split,
    "join": lambda texts, separator: separator.join(text for text in texts if text is not None),
    "reverse_text": lambda text: text[::-1],
    "matches": lambda text, regex: re.search(regex, text) is not None,
    "abs": abs,
    "round": _round,
    "floor": lambda number: number if isinstance(number, int) else float(math.floor(number)),
    "ceil": lambda number: number if isinstance(number, int) else float(math.ceil(number)),
    "sqrt": _positive(math.sqrt, 0),
    "power": lambda number, exponent: float(number) ** exponent,
    "exp": math.exp,
    "ln": _logarithm(math.log),
    "log10": _logarithm(math.log10),
    "sign": lambda number: (number > 0) - (number < 0),
    "div": whole_part,
    "year": lambda moment: moment.year,
    "month": lambda moment: moment.month,
    "day": lambda moment: moment.day,
    "weekday": lambda moment: moment.isoweekday(),
    "week": lambda moment: moment.isocalendar().week,
    "hour": lambda moment: moment.hour,
    "minute": lambda moment: moment.minute,
    "second": lambda moment: moment.second,
    "date": _day,
    "datetime": _moment,
    "truncate": _truncate,
    "add_months": _add_months,
    "days_between": lambda first, second: (second - first).days,
    "epoch_ms": lambda moment: (moment - EPOCH) // timedelta(milliseconds=1),
    "size": len,
    "slice": lambda items, start, end=None: items[start:end],
    "distinct_list": lambda items: tuple(dict.fromkeys(items)),
    "sort_list": _sorted,
    "range": lambda start, end, step=1: tuple(range(start, end, step)),
    "item": _item,
    **CONVERSIONS,
}


def _least(best: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *values: best((value for value in values if value is not None), default=None)


def _nullif(value: Any, other: Any) -> Any:
    return None if compare(value, "=", other) else value


#: Functions that treat nulls by their own rule.
OWN: dict[str, Callable[..., Any]] = {
    "concat": lambda *texts: "".join(text for text in texts if text is not None),
    "least": _least(min),
    "greatest": _least(max),
    "coalesce": lambda *values: next((value for value in values if value is not None), None),
    "nullif": _nullif,
    "list": lambda *values: values,
}


def call(function: str, arguments: Sequence[Any]) -> Any:
    """The value of a function."""
    if function in OWN:
        return OWN[function](*arguments)
    if None in arguments:
        return None
    if function.startswith("try_"):
        try:
            return STRICT[function.removeprefix("try_")](*arguments)
        except Failure:
            return None
    return STRICT[function](*arguments)


# --- aggregates -------------------------------------------------------------------------------------------------------


def percentile(values: Sequence[Any], fraction: float) -> float:
    """The value at a fraction of the way through the sorted values, interpolated between two of them."""
    ordered = sorted(values)
    place = fraction * (len(ordered) - 1)
    low, high = math.floor(place), math.ceil(place)
    return float(ordered[low] + (ordered[high] - ordered[low]) * (place - low))


def _sum(values: Sequence[Any]) -> Any:
    return math.fsum(values) if any(isinstance(value, float) for value in values) else bounded(sum(values))


def _mean(values: Sequence[Any]) -> float:
    return float(sum(map(Fraction, values)) / len(values))


_AGGREGATES: dict[str, Callable[[list[Any]], Any]] = {
    "sum": _sum,
    "avg": _mean,
    "min": min,
    "max": max,
    "stddev": lambda values: statistics.stdev(map(Fraction, values)) if len(values) > 1 else None,
    "median": lambda values: percentile(values, 0.5),
    "any_value": lambda values: values[0],
}


def aggregate(function: str, values: Sequence[Any], *, distinct: bool = False, fraction: Any = None) -> Any:
    """An aggregate of the values of a group; nulls do not count."""
    known = [value for value in values if value is not None]
    if distinct:
        known = list(dict.fromkeys(known))
    if function == "count":
        return len(known)
    if function == "collect":
        return tuple(known)
    if not known:
        return None
    if function == "percentile":
        return percentile(known, fraction)
    return _AGGREGATES[function](known)


# --- results ----------------------------------------------------------------------------------------------------------


def shown(value: Any) -> Any:
    """A value as a result shows it in JSON."""
    if isinstance(value, datetime):
        return value.strftime("%Y-%m-%dT%H:%M:%S.") + f"{value.microsecond // 1000:03d}Z"
    if isinstance(value, date):
        return value.isoformat()
    return [shown(item) for item in value] if isinstance(value, tuple) else value
