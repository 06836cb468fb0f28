"""The functions and operators of expressions over Arrow columns: one kernel for each name of the registry.

A kernel gets the arguments as columns and, where an argument is the same for every row, its plain value. It raises ValueError
with what is wrong; the caller names the expression. Unless the registry says otherwise, a null argument gives null.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.language.literals import PlainValue
from omnigraph.language.temporal import (
    DATE_DAYS,
    DATETIME_MILLISECONDS,
    parse_date,
    parse_datetime,
    render_date,
    render_datetime,
)
from omnigraph.language.types import FLOATS, PropType, Scalar
from omnigraph.query.compare import as_mask, compare_columns
from omnigraph.values.columns import arrow_type

MS_PER_DAY = 86_400_000
#: How many items `range` may make for one row.
MOST_ITEMS = 1_000_000


@dataclass(frozen=True, slots=True)
class Arguments:
    """The arguments of one call for some rows: their columns and types; `constants` by place, for those that are one."""

    columns: Sequence[pa.Array]
    types: Sequence[PropType]
    constants: dict[int, PlainValue]
    result: PropType
    count: int
    now: int

    def __getitem__(self, place: int) -> pa.Array:
        return self.columns[place]

    def __len__(self) -> int:
        return len(self.columns)

    def text(self, place: int) -> str | None:
        """The text of an argument that is the same for every row, else None."""
        value = self.constants.get(place)
        return value if isinstance(value, str) else None


Kernel = Callable[[Arguments], pa.Array]

# --- numbers ----------------------------------------------------------------------------------------------------------


def _numbers(given: Arguments) -> list[pa.Array]:
    """The arguments in the numeric type of the result."""
    return [_as(column, given.result) for column in given.columns]


def _as(column: pa.Array, kind: PropType) -> pa.Array:
    wanted = arrow_type(kind)
    if column.type == wanted:
        return column
    # An integer may be rounded on its way to a float; one that does not fit an integer type is an error.
    return column.cast(wanted, safe=kind.scalar not in FLOATS)


def _finite(result: pa.Array, *operands: pa.Array) -> pa.Array:
    """A float result that did not overflow: it may be infinite only where an operand is."""
    if pa.types.is_floating(result.type):
        infinite = as_mask(pc.is_inf(result))
        for operand in operands:
            if infinite.any() and pa.types.is_floating(operand.type):
                infinite &= ~as_mask(pc.is_inf(operand))
        if infinite.any():
            raise ValueError("the result is too large")
    return result


def _checked(compute: Callable[..., pa.Array], *operands: pa.Array) -> pa.Array:
    try:
        return _finite(compute(*operands), *operands)
    except pa.ArrowInvalid:
        raise ValueError("the result is outside the range of I64") from None


def _add(given: Arguments) -> pa.Array:
    scalars = [kind.scalar for kind in given.types]
    if given.result.scalar is Scalar.STRING:
        return pc.binary_join_element_wise(*given.columns, "")
    if given.result.scalar is Scalar.DATE:
        return _days(_checked(pc.add_checked, *(_whole(column) for column in given.columns)))
    if scalars[0] is Scalar.DATETIME:
        return _moments(_checked(pc.add_checked, *(_whole(column) for column in given.columns)))
    return _checked(pc.add_checked, *_numbers(given))


def _subtract(given: Arguments) -> pa.Array:
    if given.types[0].scalar in (Scalar.DATE, Scalar.DATETIME):
        result = _checked(pc.subtract_checked, *(_whole(column) for column in given.columns))
        return {Scalar.DATE: _days, Scalar.DATETIME: _moments}.get(given.result.scalar, _same)(result)
    return _checked(pc.subtract_checked, *_numbers(given))


def _same(column: pa.Array) -> pa.Array:
    return column


def _whole(column: pa.Array) -> pa.Array:
    """Integers, days or milliseconds as I64."""
    if pa.types.is_date32(column.type):
        column = column.cast(pa.int32())
    return column.cast(pa.int64())


def _days(days: pa.Array) -> pa.Array:
    _within(days, DATE_DAYS)
    return days.cast(pa.int32()).cast(pa.date32())


def _moments(milliseconds: pa.Array) -> pa.Array:
    _within(milliseconds, DATETIME_MILLISECONDS)
    return milliseconds.cast(arrow_type(PropType(Scalar.DATETIME)))


def _within(numbers: pa.Array, allowed: range) -> None:
    extremes = pc.min_max(numbers).as_py()
    if extremes["min"] is not None and (extremes["min"] < allowed.start or extremes["max"] >= allowed.stop):
        raise ValueError("the result lies outside the years 0001 to 9999")


def _multiply(given: Arguments) -> pa.Array:
    return _checked(pc.multiply_checked, *_numbers(given))


def _refuse_zero(divisor: pa.Array, dividend: pa.Array) -> None:
    """Division by zero is an error where both sides are known."""
    zero = pc.and_(pc.equal(divisor, pa.scalar(0, divisor.type)), pc.is_valid(dividend))
    if as_mask(zero).any():
        raise ValueError("division by zero; `nullif(x, 0)` gives null instead")


def _divide(given: Arguments) -> pa.Array:
    dividend, divisor = (column.cast(pa.float64(), safe=False) for column in given.columns)
    _refuse_zero(divisor, dividend)
    return _finite(pc.divide(dividend, divisor), dividend, divisor)


def _by_numpy(
    compute: Callable[..., npt.NDArray[Any]], kind: pa.DataType, *columns: pa.Array, neutral: int = 1
) -> pa.Array:
    """What numpy computes where all columns are known; `neutral` stands in the place of nulls."""
    known = np.ones(len(columns[0]), np.bool_)
    values = []
    for column in columns:
        if column.null_count:
            known &= as_mask(column.is_valid())
            column = pc.fill_null(column, pa.scalar(neutral, column.type))
        values.append(column.to_numpy(zero_copy_only=False))
    with np.errstate(all="ignore"):
        made = compute(*values)
    return pa.array(made, kind, mask=None if known.all() else ~known)


def _remainder(given: Arguments) -> pa.Array:
    dividend, divisor = _numbers(given)
    _refuse_zero(divisor, dividend)
    return _by_numpy(np.fmod, dividend.type, dividend, divisor)


def _div(given: Arguments) -> pa.Array:
    dividend, divisor = (column.cast(pa.int64()) for column in given.columns)
    _refuse_zero(divisor, dividend)
    return _checked(pc.divide_checked, dividend, divisor)


def _negative(given: Arguments) -> pa.Array:
    return _checked(pc.negate_checked, *_numbers(given))


def _absolute(given: Arguments) -> pa.Array:
    return _checked(pc.abs_checked, *_numbers(given))


def _round(given: Arguments) -> pa.Array:
    numbers = _as(given[0], given.result)
    digits = given[1].cast(pa.int64()) if len(given) > 1 else pa.array(np.zeros(given.count, np.int64))
    places = pc.unique(digits.drop_null()).to_pylist()
    whole = given.result.scalar not in FLOATS
    if not places or (whole and min(places) >= 0):
        return pc.if_else(pc.is_valid(digits), numbers, pa.scalar(None, numbers.type))
    result = pa.nulls(len(numbers), numbers.type)
    for place in places:
        try:
            rounded = pc.round(numbers, ndigits=max(min(place, 308), -308), round_mode="half_towards_infinity")
        except pa.ArrowInvalid:
            raise ValueError("the result is outside the range of I64") from None
        result = pc.if_else(pc.fill_null(pc.equal(digits, place), False), rounded, result)
    return result


def _floor(given: Arguments) -> pa.Array:
    return _as(pc.floor(given[0]), given.result)


def _ceil(given: Arguments) -> pa.Array:
    return _as(pc.ceil(given[0]), given.result)


def _float_function(
    compute: Callable[[npt.NDArray[Any]], npt.NDArray[Any]], allowed: Callable[[Any], Any] | None, wanted: str
) -> Kernel:
    def kernel(given: Arguments) -> pa.Array:
        number = given[0].cast(pa.float64(), safe=False)
        if allowed is not None and not as_mask(pc.fill_null(allowed(number), True)).all():
            raise ValueError(wanted)
        return _finite(_by_numpy(compute, pa.float64(), number), number)

    return kernel


def _power(given: Arguments) -> pa.Array:
    base, exponent = (column.cast(pa.float64(), safe=False) for column in given.columns)
    result = _by_numpy(np.power, pa.float64(), base, exponent)
    undefined = as_mask(pc.is_nan(result))
    for operand in (base, exponent):
        undefined &= ~as_mask(pc.is_nan(operand))
    if undefined.any():
        raise ValueError("a negative number has no fractional power")
    return _finite(result, base, exponent)


def _sign(given: Arguments) -> pa.Array:
    return pc.sign(given[0]).cast(pa.int64(), safe=False)


# --- text -------------------------------------------------------------------------------------------------------------


def _mapped(column: pa.Array, kind: pa.DataType, change: Callable[[Any], object]) -> pa.Array:
    """Each distinct value changed once; null stays null."""
    encoded = pc.dictionary_encode(column)
    changed = pa.array([change(value) for value in encoded.dictionary.to_pylist()], kind)
    return changed.take(encoded.indices)


def _each(given: Arguments, change: Callable[..., object]) -> pa.Array:
    """Row by row, for arguments that differ from row to row; null where one of them is null."""
    rows = zip(*(column.to_pylist() for column in given.columns), strict=True)
    made = [None if any(value is None for value in row) else change(*row) for row in rows]
    return pa.array(made, arrow_type(given.result))


def _substring(given: Arguments) -> pa.Array:
    start, length = given.constants.get(0 + 1), given.constants.get(2)
    if isinstance(start, int) and start >= 0 and (len(given) == 2 or (isinstance(length, int) and length >= 0)):
        stop = None if len(given) == 2 or not isinstance(length, int) else start + length
        return pc.utf8_slice_codeunits(given[0], start, stop)
    return _each(given, _cut)


def _cut(text: str, start: int, length: int | None = None) -> str:
    first = max(len(text) + start, 0) if start < 0 else start
    return text[first:] if length is None else text[first : first + max(length, 0)]


def _replace(given: Arguments) -> pa.Array:
    part, other = given.text(1), given.text(2)
    if part and other is not None:
        return pc.replace_substring(given[0], part, other)
    return _each(given, lambda text, part, other: text.replace(part, other) if part else text)


def _split(given: Arguments) -> pa.Array:
    def split(text: str, separator: str) -> list[str]:
        if not separator:
            raise ValueError("the separator of `split` is empty")
        return text.split(separator)

    separator = given.text(1)
    if separator:
        return pc.split_pattern(given[0], separator).cast(arrow_type(given.result))
    return _each(given, split)


def _join(given: Arguments) -> pa.Array:
    return _each(given, lambda texts, separator: separator.join(text for text in texts if text is not None))


def _matches(given: Arguments) -> pa.Array:
    """Arrow's regular expressions are RE2's: linear in the length of the text."""
    result = pa.nulls(given.count, pa.bool_())
    patterns = given[1]
    for pattern in pc.unique(patterns.drop_null()).to_pylist():
        try:
            found = pc.match_substring_regex(given[0], pattern)
        except pa.ArrowInvalid as problem:
            raise ValueError(
                f"the regular expression is not valid RE2: {str(problem).removeprefix('Invalid regular expression: ')}"
            ) from None
        if given.text(1) is not None:
            return found
        result = pc.if_else(pc.fill_null(pc.equal(patterns, pattern), False), found, result)
    return result


def _concat(given: Arguments) -> pa.Array:
    # With `skip` Arrow leaves out the rows in which all texts are null.
    return pc.binary_join_element_wise(*given.columns, "", null_handling="replace", null_replacement="")


# --- dates ------------------------------------------------------------------------------------------------------------


def _part(compute: Callable[..., pa.Array], **options: object) -> Kernel:
    def kernel(given: Arguments) -> pa.Array:
        return compute(_local(given[0]), **options).cast(pa.int64())

    return kernel


def _local(column: pa.Array) -> pa.Array:
    """A moment as its fields in UTC."""
    return column.cast(pa.timestamp("ms")) if pa.types.is_timestamp(column.type) else column


def _to_date(given: Arguments) -> pa.Array:
    if given.types[0].is_text:
        return _mapped(given[0], pa.int32(), parse_date).cast(pa.date32())
    if given.types[0].scalar is Scalar.DATE:
        return given[0]
    return _local(given[0]).cast(pa.date32(), safe=False)


def _to_datetime(given: Arguments) -> pa.Array:
    kind = arrow_type(PropType(Scalar.DATETIME))
    if given.types[0].is_text:
        return _mapped(given[0], pa.int64(), parse_datetime).cast(kind)
    return given[0].cast(pa.timestamp("ms")).cast(pa.int64()).cast(kind)


_UNITS = ("year", "quarter", "month", "week", "day", "hour", "minute", "second")


def _truncate(given: Arguments) -> pa.Array:
    moments = given[1].cast(pa.timestamp("ms")) if given.types[1].scalar is Scalar.DATE else _local(given[1])
    result = pa.nulls(given.count, pa.timestamp("ms"))
    for unit in pc.unique(given[0].drop_null()).to_pylist():
        if unit not in _UNITS:
            raise ValueError(f"`truncate` knows no unit '{unit}'; the units are {', '.join(_UNITS)}")
        floored = pc.floor_temporal(moments, unit=unit, week_starts_monday=True)
        result = pc.if_else(pc.fill_null(pc.equal(given[0], unit), False), floored, result)
    if given.types[1].scalar is Scalar.DATE:
        return result.cast(pa.date32())
    return result.cast(pa.int64()).cast(arrow_type(PropType(Scalar.DATETIME)))


def _add_months(given: Arguments) -> pa.Array:
    is_date = given.types[0].scalar is Scalar.DATE
    moments = _whole(given[0])
    months = given[1].cast(pa.int64())
    _within_months(months)

    def add(moments: npt.NDArray[np.int64], months: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
        days, rest = (moments, 0) if is_date else np.divmod(moments, MS_PER_DAY)
        day = days.astype("datetime64[D]")
        month = day.astype("datetime64[M]")
        target = month + months.astype("timedelta64[M]")
        length = (target + 1).astype("datetime64[D]") - target.astype("datetime64[D]")
        kept = np.minimum(day - month.astype("datetime64[D]"), length - 1)
        made = (target.astype("datetime64[D]") + kept).astype(np.int64)
        return np.asarray(made if is_date else made * MS_PER_DAY + rest)

    made = _by_numpy(add, pa.int64(), moments, months, neutral=0)
    return _days(made) if is_date else _moments(made)


def _within_months(months: pa.Array) -> None:
    extremes = pc.min_max(months).as_py()
    if extremes["min"] is not None and max(abs(extremes["min"]), abs(extremes["max"])) > 12 * 9999:
        raise ValueError("the result lies outside the years 0001 to 9999")


def _days_between(given: Arguments) -> pa.Array:
    return pc.subtract(_whole(given[1]), _whole(given[0]))


def _epoch_ms(given: Arguments) -> pa.Array:
    return given[0].cast(pa.int64())


def _today(given: Arguments) -> pa.Array:
    return (
        pa.array([given.now // MS_PER_DAY], pa.int32())
        .cast(pa.date32())
        .take(pa.array(np.zeros(given.count, np.int64)))
    )


# --- lists ------------------------------------------------------------------------------------------------------------


def _size(given: Arguments) -> pa.Array:
    return pc.list_value_length(given[0]).cast(pa.int64())


def _bounds(lists: pa.Array) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Where each list begins among the flattened items, and how long it is; a null list is empty."""
    lengths = pc.fill_null(pc.list_value_length(lists), 0).to_numpy(zero_copy_only=False).astype(np.int64)
    return np.concatenate([[0], np.cumsum(lengths)[:-1]]).astype(np.int64), lengths


def _item(given: Arguments) -> pa.Array:
    lists, places = given[0], given[1].cast(pa.int64())
    starts, lengths = _bounds(lists)
    place = pc.fill_null(places, 0).to_numpy(zero_copy_only=False)
    place = np.where(place < 0, place + lengths, place)
    inside = (place >= 0) & (place < lengths)
    known = inside & as_mask(places.is_valid())
    indices = pa.array(np.where(known, starts + place, 0), mask=~known)
    items = pc.list_flatten(lists)
    return items.take(indices) if len(items) else pa.nulls(len(lists), items.type)


def _gathered(lists: pa.Array, rows: pa.Array, items: pa.Array, lengths: npt.NDArray[np.int64]) -> pa.Array:
    """Lists of these lengths over these items; null where `rows` is false."""
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), items, type=lists.type, mask=pc.invert(rows))


def _slice(given: Arguments) -> pa.Array:
    lists = given[0]
    starts, lengths = _bounds(lists)
    known = lists.is_valid()
    ends = []
    for place, fallback in ((1, None), (2, lengths)):
        if place >= len(given):
            assert fallback is not None
            ends.append(fallback)
            continue
        column = given[place].cast(pa.int64())
        known = pc.and_(known, column.is_valid())
        asked = pc.fill_null(column, 0).to_numpy(zero_copy_only=False)
        ends.append(np.clip(np.where(asked < 0, asked + lengths, asked), 0, lengths))
    first, last = ends
    kept = np.where(as_mask(known), np.maximum(last - first, 0), 0)
    within = np.arange(kept.sum()) - np.repeat(np.cumsum(kept) - kept, kept)
    indices = np.repeat(starts + first, kept) + within
    return _gathered(lists, known, pc.list_flatten(lists).take(pa.array(indices)), kept)


def _distinct_list(given: Arguments) -> pa.Array:
    return _per_list(given[0], lambda owners, items: _first_of_each(owners, items))


def _first_of_each(owners: pa.Array, items: pa.Array) -> npt.NDArray[np.int64]:
    places = pa.table({"owner": owners, "item": _grouped(items), "place": pa.array(np.arange(len(items)))})
    first = places.group_by(["owner", "item"]).aggregate([("place", "min")])["place_min"]
    return np.sort(first.to_numpy())


def _grouped(items: pa.Array) -> pa.Array:
    """Items that can be grouped by value: 0 and -0 are equal."""
    return pc.add(items, pa.scalar(0, items.type)) if pa.types.is_floating(items.type) else items


def _sort_list(given: Arguments) -> pa.Array:
    def sort(owners: pa.Array, items: pa.Array) -> npt.NDArray[np.int64]:
        keys = items.cast(pa.uint8()) if pa.types.is_boolean(items.type) else items
        table = pa.table({"owner": owners, "item": keys})
        return np.asarray(pc.sort_indices(table, sort_keys=[("owner", "ascending"), ("item", "ascending")]).to_numpy())

    return _per_list(given[0], sort)


def _per_list(lists: pa.Array, choose: Callable[[pa.Array, pa.Array], npt.NDArray[Any]]) -> pa.Array:
    """Each list with the items that `choose` leaves, as places among the flattened items, in their order."""
    items, owners = pc.list_flatten(lists), pc.list_parent_indices(lists)
    if not len(items):
        return lists
    chosen = choose(owners, items)
    lengths = np.bincount(owners.to_numpy()[chosen].astype(np.int64), minlength=len(lists)).astype(np.int64)
    return _gathered(lists, lists.is_valid(), items.take(pa.array(chosen)), lengths)


def _range(given: Arguments) -> pa.Array:
    def numbers(start: int, end: int, step: int = 1) -> list[int]:
        if step == 0:
            raise ValueError("the step of `range` is zero")
        made = range(start, end, step)
        if len(made) > MOST_ITEMS:
            raise ValueError(f"`range` makes at most {MOST_ITEMS} items, not {len(made)}")
        return list(made)

    return _each(given, numbers)


def _list(given: Arguments) -> pa.Array:
    element = arrow_type(given.result.element())
    columns = [column.cast(element, safe=False) for column in given.columns]
    together = pa.concat_arrays(columns)
    places = np.arange(given.count * len(columns)).reshape(len(columns), given.count).T.ravel()
    offsets = np.arange(given.count + 1, dtype=np.int32) * len(columns)
    return pa.ListArray.from_arrays(
        pa.array(offsets, pa.int32()), together.take(pa.array(places)), arrow_type(given.result)
    )


# --- choices ----------------------------------------------------------------------------------------------------------


def _coalesce(given: Arguments) -> pa.Array:
    result, *others = (_as(column, given.result) for column in given.columns)
    for other in others:
        if not result.null_count:
            break
        result = pc.if_else(result.is_valid(), result, other)
    return result


def _nullif(given: Arguments) -> pa.Array:
    equal = compare_columns(given[0], "=", given[1], given.types[0], given.types[1])
    return pc.if_else(pa.array(equal), pa.scalar(None, given[0].type), given[0])


def _extreme(compute: Callable[..., pa.Array]) -> Kernel:
    def kernel(given: Arguments) -> pa.Array:
        columns = [_as(column, given.result) for column in given.columns]
        if given.result.scalar is Scalar.BOOL:
            return compute(*(column.cast(pa.uint8()) for column in columns), skip_nulls=True).cast(pa.bool_())
        return compute(*columns, skip_nulls=True)

    return kernel


# --- conversions ------------------------------------------------------------------------------------------------------


def _to_text(given: Arguments) -> pa.Array:
    column, kind = given[0], given.types[0]
    match kind.scalar:
        case Scalar.STRING:
            return column
        case Scalar.DATE:
            return _mapped(column.cast(pa.int32()), pa.string(), render_date)
        case Scalar.DATETIME:
            return _mapped(column.cast(pa.int64()), pa.string(), render_datetime)
        case Scalar.F32:
            # The shortest text at the stored width.
            return _mapped(column.cast(pa.string()).cast(pa.float64()), pa.string(), _float_text)
        case Scalar.F64:
            return _mapped(column, pa.string(), _float_text)
        case _:
            return column.cast(pa.string())


def _float_text(number: float) -> str:
    if math.isfinite(number):
        return repr(number)
    return "NaN" if math.isnan(number) else "Infinity" if number > 0 else "-Infinity"


def _to_int(given: Arguments) -> pa.Array:
    column, kind = given[0], given.types[0]
    if kind.is_text:
        return _mapped(column, pa.int64(), _integer_of)
    if kind.scalar in FLOATS:
        numbers = pc.trunc(column.cast(pa.float64()))
        inside = pc.and_(pc.greater_equal(numbers, -(2.0**63)), pc.less(numbers, 2.0**63))
        if not as_mask(pc.fill_null(inside, True)).all():
            raise ValueError("a number is outside the range of I64")
        return numbers.cast(pa.int64())
    return column.cast(pa.int64())


def _integer_of(text: str) -> int:
    digits = text.strip()
    if not digits.lstrip("+-").isascii() or not digits.lstrip("+-").isdigit() or len(digits) > 21:
        raise ValueError(f"'{text[:40]}' is not a whole number")
    number = int(digits)
    if not -(2**63) <= number < 2**63:
        raise ValueError(f"'{text}' is outside the range of I64")
    return number


def _to_float(given: Arguments) -> pa.Array:
    if given.types[0].is_text:
        return _mapped(given[0], pa.float64(), _float_of)
    if given.types[0].scalar is Scalar.BOOL:
        return given[0].cast(pa.int64()).cast(pa.float64())
    return given[0].cast(pa.float64(), safe=False)


def _float_of(text: str) -> float:
    try:
        if "_" in text:
            raise ValueError
        return float(text)
    except ValueError:
        raise ValueError(f"'{text[:40]}' is not a number") from None


def _tried(kernel: Kernel) -> Kernel:
    """The same with null for what can not be converted: all rows at once, or one by one where one of them fails."""

    def tried(given: Arguments) -> pa.Array:
        try:
            return kernel(given)
        except (ValueError, pa.ArrowInvalid):
            encoded = pc.dictionary_encode(given[0])
            made = [_one(kernel, given, encoded.dictionary.slice(place, 1)) for place in range(len(encoded.dictionary))]
            kind = arrow_type(given.result)
            return (pa.concat_arrays(made) if made else pa.nulls(0, kind)).take(encoded.indices)

    return tried


def _one(kernel: Kernel, given: Arguments, value: pa.Array) -> pa.Array:
    try:
        return kernel(Arguments((value,), given.types, {}, given.result, 1, given.now))
    except (ValueError, pa.ArrowInvalid):
        return pa.nulls(1, arrow_type(given.result))


_CONVERSIONS: dict[str, Kernel] = {
    "to_text": _to_text,
    "to_int": _to_int,
    "to_float": _to_float,
    "to_date": _to_date,
    "to_datetime": _to_datetime,
}

#: By name: the operators, and every function of the registry but those that are part of the plan (`if`, `id`, `type`).
KERNELS: dict[str, Kernel] = {
    "+": _add,
    "-": _subtract,
    "*": _multiply,
    "/": _divide,
    "%": _remainder,
    "negative": _negative,
    "div": _div,
    "abs": _absolute,
    "round": _round,
    "floor": _floor,
    "ceil": _ceil,
    "sqrt": _float_function(np.sqrt, lambda x: pc.greater_equal(x, 0.0), "a negative number has no square root"),
    "power": _power,
    "exp": _float_function(np.exp, None, ""),
    "ln": _float_function(np.log, lambda x: pc.greater(x, 0.0), "only a positive number has a logarithm"),
    "log10": _float_function(np.log10, lambda x: pc.greater(x, 0.0), "only a positive number has a logarithm"),
    "sign": _sign,
    "least": _extreme(pc.min_element_wise),
    "greatest": _extreme(pc.max_element_wise),
    "lower": lambda given: pc.utf8_lower(given[0]),
    "upper": lambda given: pc.utf8_upper(given[0]),
    "trim": lambda given: pc.utf8_trim_whitespace(given[0]),
    "length": lambda given: pc.utf8_length(given[0]).cast(pa.int64()),
    "substring": _substring,
    "replace": _replace,
    "split": _split,
    "join": _join,
    "reverse_text": lambda given: pc.utf8_reverse(given[0]),
    "matches": _matches,
    "concat": _concat,
    "year": _part(pc.year),
    "month": _part(pc.month),
    "day": _part(pc.day),
    "hour": _part(pc.hour),
    "minute": _part(pc.minute),
    "second": _part(pc.second),
    "weekday": _part(pc.day_of_week, count_from_zero=False, week_start=1),
    "week": _part(pc.iso_week),
    "date": _to_date,
    "datetime": _to_datetime,
    "truncate": _truncate,
    "add_months": _add_months,
    "days_between": _days_between,
    "epoch_ms": _epoch_ms,
    "today": _today,
    "size": _size,
    "item": _item,
    "slice": _slice,
    "distinct_list": _distinct_list,
    "sort_list": _sort_list,
    "range": _range,
    "list": _list,
    "coalesce": _coalesce,
    "nullif": _nullif,
    **_CONVERSIONS,
    **{f"try_{name}": _tried(kernel) for name, kernel in _CONVERSIONS.items()},
}
