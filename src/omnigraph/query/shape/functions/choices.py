"""Kernels that choose one of their arguments, and conversions from one type to another."""

from __future__ import annotations

import math
import re
from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.language.temporal import render_date, render_datetime
from omnigraph.language.types import FLOATS, Scalar
from omnigraph.query.shape.compare import as_mask, compare_columns
from omnigraph.query.shape.functions.arguments import Arguments, Kernel, as_integers, as_type, mapped
from omnigraph.query.shape.functions.dates import to_date, to_datetime
from omnigraph.values.columns import arrow_type


def _coalesce(given: Arguments) -> pa.Array:
    result, *others = (as_type(column, given.result) for column in given.columns)
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
        columns = [as_type(column, given.result) for column in given.columns]
        # Arrow's function takes neither Bools nor timestamps with a zone, but it takes the integers that represent them.
        held = {Scalar.BOOL: pa.uint8(), Scalar.DATETIME: pa.int64()}.get(given.result.scalar)
        if held is None:
            return compute(*columns, skip_nulls=True)
        return compute(*(column.cast(held) for column in columns), skip_nulls=True).cast(arrow_type(given.result))

    return kernel


def _to_text(given: Arguments) -> pa.Array:
    column, kind = given[0], given.types[0]
    match kind.scalar:
        case Scalar.STRING:
            return column
        case Scalar.DATE:
            return mapped(column.cast(pa.int32()), pa.string(), render_date)
        case Scalar.DATETIME:
            return mapped(column.cast(pa.int64()), pa.string(), render_datetime)
        case Scalar.F32:
            # The shortest text at the stored width.
            return mapped(column.cast(pa.string()).cast(pa.float64()), pa.string(), _float_text)
        case Scalar.F64:
            return mapped(column, pa.string(), _float_text)
        case _:
            return column.cast(pa.string())


def _float_text(number: float) -> str:
    if math.isfinite(number):
        return repr(number)
    return "NaN" if math.isnan(number) else "Infinity" if number > 0 else "-Infinity"


def _to_int(given: Arguments) -> pa.Array:
    column, kind = given[0], given.types[0]
    if kind.is_text:
        return mapped(column, pa.int64(), _integer_of)
    if kind.scalar in FLOATS:
        numbers = pc.trunc(column.cast(pa.float64()))
        inside = pc.and_(pc.greater_equal(numbers, -(2.0**63)), pc.less(numbers, 2.0**63))
        if not as_mask(pc.fill_null(inside, True)).all():
            raise ValueError("a number is outside the range of I64")
        return numbers.cast(pa.int64())
    return as_integers(column)


#: With so many digits that no value is missed, and not so many that reading them takes long.
_WHOLE = re.compile(r"[+-]?[0-9]{1,40}")


def _integer_of(text: str) -> int:
    digits = text.strip()
    if _WHOLE.fullmatch(digits) is None:
        raise ValueError(f"'{text[:40]}' is not a whole number")
    number = int(digits)
    if not -(2**63) <= number < 2**63:
        raise ValueError(f"'{digits}' is outside the range of I64")
    return number


def _to_float(given: Arguments) -> pa.Array:
    if given.types[0].is_text:
        return mapped(given[0], pa.float64(), _float_of)
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
    """A conversion with null where it fails: all rows at once, or, when that fails, each distinct value separately."""

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
    "to_date": to_date,
    "to_datetime": to_datetime,
}


CHOICES: dict[str, Kernel] = {
    "least": _extreme(pc.min_element_wise),
    "greatest": _extreme(pc.max_element_wise),
    "coalesce": _coalesce,
    "nullif": _nullif,
    **_CONVERSIONS,
    **{f"try_{name}": _tried(kernel) for name, kernel in _CONVERSIONS.items()},
}
