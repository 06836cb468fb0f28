"""The arguments of a kernel, and helpers that several families of kernels share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.language.literals import PlainValue
from omnigraph.language.temporal import DATE_DAYS, DATETIME_MILLISECONDS
from omnigraph.language.types import FLOATS, PropType, Scalar
from omnigraph.query.rows import Values
from omnigraph.query.shape.compare import as_mask
from omnigraph.values.columns import arrow_type

MS_PER_DAY = 86_400_000


@dataclass(frozen=True, slots=True)
class Arguments:
    """The arguments of one call for some rows: columns and types; `constants`: the values of constant arguments by place."""

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
        """The text of an argument that is the same for every row; None when it is not constant or not a text."""
        value = self.constants.get(place)
        return value if isinstance(value, str) else None


Kernel = Callable[[Arguments], pa.Array]


def as_type(column: Values, kind: PropType) -> Values:
    """The column converted to another type; raises ValueError for an integer that does not fit an integer type."""
    wanted = arrow_type(kind)
    if column.type == wanted:
        return column
    try:
        # An integer may be rounded on its way to a float.
        return column.cast(wanted, safe=kind.scalar not in FLOATS)
    except pa.ArrowInvalid:
        raise ValueError(f"a number is outside the range of {kind.scalar}") from None


def as_integers(column: pa.Array) -> pa.Array:
    """Integers, days or milliseconds as I64; raises ValueError for an integer that does not fit."""
    if pa.types.is_date32(column.type):
        column = column.cast(pa.int32())
    try:
        return column.cast(pa.int64())
    except pa.ArrowInvalid:
        raise ValueError("a number is outside the range of I64") from None


def as_dates(days: pa.Array) -> pa.Array:
    _within(days, DATE_DAYS)
    return days.cast(pa.int32()).cast(pa.date32())


def as_datetimes(milliseconds: pa.Array) -> pa.Array:
    _within(milliseconds, DATETIME_MILLISECONDS)
    return milliseconds.cast(arrow_type(PropType(Scalar.DATETIME)))


def _within(numbers: pa.Array, allowed: range) -> None:
    extremes = pc.min_max(numbers).as_py()
    if extremes["min"] is not None and (extremes["min"] < allowed.start or extremes["max"] >= allowed.stop):
        raise ValueError("the result lies outside the years 0001 to 9999")


def by_numpy(
    compute: Callable[..., npt.NDArray[Any]], kind: pa.DataType, *columns: pa.Array, neutral: int = 1
) -> pa.Array:
    """`compute` over NumPy arrays; null where a column is null. `neutral` replaces nulls during the computation."""
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


def mapped(column: pa.Array, kind: pa.DataType, change: Callable[[Any], object]) -> pa.Array:
    """The column with `change` applied to each value, once per distinct value; null stays null."""
    encoded = pc.dictionary_encode(column)
    changed = pa.array([change(value) for value in encoded.dictionary.to_pylist()], kind)
    return changed.take(encoded.indices)


def each(given: Arguments, change: Callable[..., object]) -> pa.Array:
    """`change` applied row by row to all arguments; null where an argument is null."""
    rows = zip(*(column.to_pylist() for column in given.columns), strict=True)
    made = [None if any(value is None for value in row) else change(*row) for row in rows]
    return pa.array(made, arrow_type(given.result))
