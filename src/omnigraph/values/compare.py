"""Compares a column with a constant: the common rules of scans, in-memory filters and mutation predicates.

The constant is converted to the column's exact Arrow type, so that an index on the column can be used, without changing the
meaning of the comparison. Integer columns compare by value: 2.7 equals no integer, and `> 2.7` is `>= 3`; a constant beyond
the column's range gives the same result for every non-null row. Float columns compare at their own width; −0 equals 0, and
NaN differs from every value and is neither above nor below any. Null matches nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.language.types import FLOATS, INTEGERS, PropType, Scalar
from omnigraph.values.columns import arrow_type

#: The operator with the same meaning after the operands are swapped.
EXCHANGED = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}

_RANGES = {
    Scalar.I32: (-(2**31), 2**31 - 1),
    Scalar.I64: (-(2**63), 2**63 - 1),
    Scalar.U32: (0, 2**32 - 1),
    Scalar.U64: (0, 2**64 - 1),
}


@dataclass(frozen=True, slots=True)
class Nothing:
    """No row satisfies the comparison."""


@dataclass(frozen=True, slots=True)
class Everything:
    """Every row whose column is not null satisfies the comparison."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """`column operator value`, with the value in the column's own type."""

    operator: str
    value: pa.Scalar


Coerced = Nothing | Everything | Comparison

NOTHING = Nothing()
EVERYTHING = Everything()


def coerce(column: PropType, operator: str, value: str | int | float | bool | None) -> Coerced:
    """The coerced form of `column operator value` for a column of this (non-list) type."""
    if value is None:
        return NOTHING
    if column.scalar in INTEGERS and not isinstance(value, (bool, str)):
        return _integer(column, operator, value)
    if column.scalar in FLOATS and not isinstance(value, (bool, str)):
        return _float(column, operator, value)
    return Comparison(operator, pa.scalar(value, arrow_type(column)))


def coerce_items(column: PropType, values: Sequence[str | int | float | bool | None]) -> pa.Array:
    """The values that a column of this type can equal, in its Arrow type; other values are left out.

    Each is converted as `coerce` does for `column = value`; −0 becomes 0.
    """
    if _are_of_column(column, values):
        return pa.array(values, arrow_type(column))
    coerced = (coerce(column, "=", value) for value in values)
    array = pa.array([found.value.as_py() for found in coerced if isinstance(found, Comparison)], arrow_type(column))
    return pc.add(array, pa.scalar(0, array.type)) if pa.types.is_floating(array.type) else array


def _are_of_column(column: PropType, values: Sequence[str | int | float | bool | None]) -> bool:
    """Whether all values, possibly many thousands, already have the column's type, so that none needs conversion."""
    kinds = set(map(type, values))
    if kinds == {str}:
        return True
    if kinds != {int} or column.scalar in FLOATS:
        return False
    low, high = _RANGES.get(column.scalar, (-math.inf, math.inf))
    numbers = [value for value in values if isinstance(value, int)]
    return low <= min(numbers) and max(numbers) <= high


def _integer(column: PropType, operator: str, value: int | float) -> Coerced:
    if isinstance(value, float):
        if math.isnan(value):
            return _unordered(operator)
        if math.isinf(value):
            return _beyond(operator, above=value > 0)
        if not value.is_integer():
            return _between_integers(column, operator, value)
        value = int(value)
    low, high = _RANGES[column.scalar]
    if value < low or value > high:
        return _beyond(operator, above=value > high)
    return Comparison(operator, pa.scalar(value, arrow_type(column)))


def _between_integers(column: PropType, operator: str, value: float) -> Coerced:
    """Compare with a fraction, which lies between two integers: `> 2.7` is `>= 3`, `<= 2.7` is `<= 2`."""
    match operator:
        case "=":
            return NOTHING
        case "!=":
            return EVERYTHING
        case ">" | ">=":
            return _integer(column, ">=", math.ceil(value))
        case _:
            return _integer(column, "<=", math.floor(value))


def _unordered(operator: str) -> Coerced:
    """Compare with NaN, which differs from every value and is neither above nor below any."""
    return EVERYTHING if operator == "!=" else NOTHING


def _beyond(operator: str, *, above: bool) -> Coerced:
    """Compare with a constant above (or below) every value that the column can hold."""
    holds = operator == "!=" or operator in (("<", "<=") if above else (">", ">="))
    return EVERYTHING if holds else NOTHING


def _float(column: PropType, operator: str, value: int | float) -> Coerced:
    wide = float(value)
    if math.isnan(wide):
        return _unordered(operator)
    # Arrow rounds to the stored width; an overflow becomes infinite and still compares correctly.
    return Comparison(operator, pa.scalar(wide, pa.float64()).cast(arrow_type(column), safe=False))


# --- asking a column --------------------------------------------------------------------------------------------------

_FUNCTIONS = {
    "=": pc.equal,
    "!=": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}


def matches(column: pa.Array | pa.ChunkedArray, coerced: Coerced) -> pa.Array | pa.ChunkedArray:
    """Which values of a column in memory satisfy a coerced comparison; never null."""
    match coerced:
        case Nothing():
            return pc.and_(pc.is_valid(column), False)
        case Everything():
            return pc.is_valid(column)
        case Comparison(operator, value):
            return pc.fill_null(_FUNCTIONS[operator](column, value), False)


def condition(name: str, coerced: Coerced) -> pc.Expression:
    """A coerced comparison as an expression that a scan pushes down; Lance uses an index if there is one.

    Not for unsigned columns, which Lance does not support in expressions: see `scan_filter`.
    """
    field = pc.field(name)
    match coerced:
        case Nothing():
            return pc.scalar(False)
        case Everything():
            return field.is_valid()
        case Comparison(operator, value) if pa.types.is_floating(value.type):
            return _float_condition(field, operator, value)
        case Comparison(operator, value):
            return _FUNCTIONS[operator](field, value)


def _float_condition(field: pc.Expression, operator: str, value: pa.Scalar) -> pc.Expression:
    """Compare floats by value, although Lance orders NaN above infinity and an index distinguishes −0 from 0."""
    zero, minus_zero, infinity = (pa.scalar(number, value.type) for number in (0.0, -0.0, math.inf))
    compare = _FUNCTIONS[operator]
    if value.as_py() != 0:
        asked = compare(field, value)
    elif operator in ("=", "!="):
        asked = field.isin(pa.array([0.0, -0.0], value.type))
        asked = asked if operator == "=" else ~asked
    else:
        asked = compare(field, minus_zero if operator in ("<", ">=") else zero)
    return asked & (field <= infinity) if operator in (">", ">=") else asked


UNSIGNED = (Scalar.U32, Scalar.U64)


def scan_filter(name: str, kind: PropType, coerced: Coerced) -> str | pc.Expression:
    """The filter for a scan that finds the rows whose column satisfies a coerced comparison."""
    if kind.scalar not in UNSIGNED or isinstance(coerced, Nothing):
        return condition(name, coerced)
    # Lance reads expressions as Substrait, which has no unsigned integers. In SQL text, digits need no quoting.
    if isinstance(coerced, Everything):
        return f"`{name}` is not null"
    return f"`{name}` {coerced.operator} {coerced.value.as_py()}"
