"""Converts computed values to the type of their property: the same rules for mutations and backfills.

Single values follow `literals.fit_to`; whole columns are cast, and a single value is only examined for the reason of an error.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.language.literals import PlainValue, TypedValue, fit_to
from omnigraph.language.types import FLOATS, PropType, Scalar
from omnigraph.values.columns import arrow_type


class Unfit(ValueError):
    """A value that its property can not hold. `row`: the position of the first such value; None if all rows share it."""

    def __init__(self, reason: str, row: int | None = None) -> None:
        super().__init__(reason)
        self.row = row


def fitted_value(value: TypedValue, kind: PropType) -> PlainValue:
    """A value converted to exactly this type; `Unfit` if the type can not hold it."""
    try:
        # Enum values are checked by the rule checks, with the same message for every writer.
        return fit_to(value, replace(kind, enum=None)).value
    except ValueError as problem:
        raise Unfit(str(problem)) from None


def fitted_column(values: pa.Array, found: PropType, kind: PropType) -> pa.Array:
    """Values of the type `found` as a column of the type `kind`; `Unfit` for the first value that it can not hold."""
    made = _cast(values, kind)
    if made is None and kind.is_list:
        # Arrow has also cast elements hidden below null lists.
        values = _piece(values, 0, len(values))
        made = _cast(values, kind)
    if made is not None:
        return made
    # Find the first value that does not fit, by halving.
    low, high = 0, len(values)
    while high - low > 1:
        middle = (low + high) // 2
        if _cast(_piece(values, low, middle - low), kind) is None:
            high = middle
        else:
            low = middle
    raise Unfit(_reason(values[low].as_py(), found, kind), low)


def _piece(values: pa.Array, start: int, count: int) -> pa.Array:
    """A copy of some values, without elements of other lists, which a slice would share and Arrow would cast."""
    return values.take(pa.array(np.arange(start, start + count)))


def _reason(value: object, found: PropType, kind: PropType) -> str:
    """Why a type can not hold a value; only numbers are ever cast."""
    plain = tuple(value) if isinstance(value, list) else value
    try:
        fitted_value(TypedValue(plain, found), kind)  # type: ignore[arg-type]
    except Unfit as problem:
        return str(problem)
    return f"{value} is outside the range of {kind.scalar}"


def _cast(values: pa.Array, kind: PropType) -> pa.Array | None:
    """The cast column; None when a value does not fit."""
    narrows = kind.scalar is Scalar.F32
    try:
        # Numbers are rounded to the width of a float column, like literals.
        made = values.cast(arrow_type(kind), safe=kind.scalar not in FLOATS)
    except pa.ArrowInvalid:
        return None
    return None if narrows and _overflows(values, made) else made


def _overflows(wide: pa.Array, narrow: pa.Array) -> bool:
    """Whether rounding has turned a finite number into infinity."""
    if pa.types.is_list(narrow.type):
        wide, narrow = wide.flatten(), narrow.flatten()
    became = pc.is_inf(narrow)
    if pa.types.is_floating(wide.type):
        became = pc.and_not(became, pc.is_inf(wide))
    return bool(pc.any(became, min_count=0).as_py())
