"""Computed values in the type of the property that they are for: one coercion for mutations and backfills.

What a single value can be is `literals.fit_to`; whole columns are cast, and one value is asked about only for the reason.
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
    """A value that its property can not hold. `row`: the place of the first one; None where all rows have the same."""

    def __init__(self, reason: str, row: int | None = None) -> None:
        super().__init__(reason)
        self.row = row


def fitted_value(value: TypedValue, kind: PropType) -> PlainValue:
    """A value as one of exactly this type; what the type can not hold is `Unfit`."""
    try:
        # Whether a text is one of an enum's values is the evaluator's to say, with the words it has for every writer.
        return fit_to(value, replace(kind, enum=None)).value
    except ValueError as problem:
        raise Unfit(str(problem)) from None


def fitted_column(values: pa.Array, found: PropType, kind: PropType) -> pa.Array:
    """Values of the type `found` as a column of this type; the first that the type can not hold is `Unfit`."""
    made = _cast(values, kind)
    if made is None and kind.is_list:
        # Arrow has cast what null lists hide, too.
        values = _piece(values, 0, len(values))
        made = _cast(values, kind)
    if made is not None:
        return made
    # Everything before the first one that does not fit does: halved until it is found.
    low, high = 0, len(values)
    while high - low > 1:
        middle = (low + high) // 2
        if _cast(_piece(values, low, middle - low), kind) is None:
            high = middle
        else:
            low = middle
    raise Unfit(_reason(values[low].as_py(), found, kind), low)


def _piece(values: pa.Array, start: int, count: int) -> pa.Array:
    """Some values, without the elements of other lists, which a slice would share and Arrow would cast."""
    return values.take(pa.array(np.arange(start, start + count)))


def _reason(value: object, found: PropType, kind: PropType) -> str:
    """Why a type can not hold a value: numbers are all that is ever cast."""
    plain = tuple(value) if isinstance(value, list) else value
    try:
        fitted_value(TypedValue(plain, found), kind)  # type: ignore[arg-type]
    except Unfit as problem:
        return str(problem)
    return f"{value} is outside the range of {kind.scalar}"


def _cast(values: pa.Array, kind: PropType) -> pa.Array | None:
    """The column, or None when one of its values does not fit."""
    narrows = kind.scalar is Scalar.F32
    try:
        # A number is rounded to the width of a column of floats, as a literal is.
        made = values.cast(arrow_type(kind), safe=kind.scalar not in FLOATS)
    except pa.ArrowInvalid:
        return None
    return None if narrows and _overflows(values, made) else made


def _overflows(wide: pa.Array, narrow: pa.Array) -> bool:
    """Whether rounding has made an infinity of a number."""
    if pa.types.is_list(narrow.type):
        wide, narrow = wide.flatten(), narrow.flatten()
    became = pc.is_inf(narrow)
    if pa.types.is_floating(wide.type):
        became = pc.and_not(became, pc.is_inf(wide))
    return bool(pc.any(became, min_count=0).as_py())
