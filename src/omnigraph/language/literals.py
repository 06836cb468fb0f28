"""Values with their type: the value of a literal or a parameter, and whether it fits a property.
A Date is held as days and a DateTime as milliseconds since 1970; a list or a vector is a tuple.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass

from omnigraph.language.types import FLOATS, INTEGERS, NUMERIC, PropType, Scalar

PlainValue = bool | int | float | str | tuple["PlainValue", ...] | None

#: The range of each integer type. U64 ends at 2^63−1, because no engine carries larger numbers.
INTEGER_RANGES = {
    Scalar.I32: range(-(2**31), 2**31),
    Scalar.I64: range(-(2**63), 2**63),
    Scalar.U32: range(2**32),
    Scalar.U64: range(2**63),
}


@dataclass(frozen=True, slots=True)
class TypedValue:
    """A value and its declared type, or the type of the literal; the value None is null."""

    value: PlainValue
    type: PropType


def round_to_f32(numbers: Sequence[float]) -> tuple[float, ...]:
    """The nearest F32 of each number; ValueError when one is beyond its range."""
    # Little-endian on purpose: the native layout silently turns an overflow into infinity.
    layout = f"<{len(numbers)}f"
    try:
        return struct.unpack(layout, struct.pack(layout, *numbers))
    except OverflowError:
        raise ValueError("a number is outside the range of F32") from None


def fit_to(literal: TypedValue, target: PropType) -> TypedValue:
    """A compatible literal converted to exactly the target type; raises ValueError when this type has no such value."""
    if target.is_vector:
        return TypedValue(_vector(literal, target), target)
    if target.is_list:
        assert isinstance(literal.value, tuple)
        return TypedValue(tuple(_scalar(item, target) for item in literal.value), target)
    return TypedValue(_scalar(literal.value, target), target)


def is_number_list(literal: TypedValue) -> bool:
    """Whether this is a non-empty list of numbers, which is how a vector is written."""
    return literal.type.is_list and literal.type.scalar in NUMERIC


def _vector(literal: TypedValue, target: PropType) -> tuple[float, ...]:
    items = literal.value
    assert isinstance(items, tuple)
    if None in items:
        raise ValueError("elements must be numeric")
    if len(items) != target.dimension:
        raise ValueError(f"expected {target.dimension} values, got {len(items)}")
    return round_to_f32([_number(item) for item in items])


def _scalar(value: PlainValue, target: PropType) -> PlainValue:
    if value is None:
        # A null element of a list; the evaluator decides whether it is allowed.
        return None
    if target.scalar in INTEGERS:
        return _integer(_number(value), target.scalar)
    if target.scalar in FLOATS:
        number = float(_number(value))
        return round_to_f32([number])[0] if target.scalar is Scalar.F32 else number
    if target.enum is not None and value not in target.enum:
        raise ValueError(f"invalid enum value '{value}'; allowed are {', '.join(target.enum)}")
    return value


def _integer(number: int | float, scalar: Scalar) -> int:
    if not math.isfinite(number) or number != int(number):
        raise ValueError(f"{number} is not a whole number, {scalar} holds only those")
    if int(number) not in INTEGER_RANGES[scalar]:
        raise ValueError(f"{number} is outside the range of {scalar}")
    return int(number)


def _number(value: PlainValue) -> int | float:
    assert isinstance(value, int | float), "the checker has compared the types"
    return value
