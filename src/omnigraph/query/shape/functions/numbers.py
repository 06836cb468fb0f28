"""Kernels of operators and of functions on numbers; `+` and `-` also move dates and join texts."""

from __future__ import annotations

from collections.abc import Callable
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.language.types import FLOATS, Scalar
from omnigraph.query.rows import Mask
from omnigraph.query.shape.compare import as_mask
from omnigraph.query.shape.functions.arguments import (
    Arguments,
    Kernel,
    as_dates,
    as_datetimes,
    as_integers,
    as_type,
    by_numpy,
)


def _numbers(given: Arguments) -> list[pa.Array]:
    """The arguments in the numeric type of the result."""
    return [as_type(column, given.result) for column in given.columns]


def _finite(result: pa.Array, *operands: pa.Array) -> pa.Array:
    """The result; raises ValueError when a float overflowed: it is infinite where no operand is."""
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
        return as_dates(_checked(pc.add_checked, *(as_integers(column) for column in given.columns)))
    if scalars[0] is Scalar.DATETIME:
        return as_datetimes(_checked(pc.add_checked, *(as_integers(column) for column in given.columns)))
    return _checked(pc.add_checked, *_numbers(given))


def _subtract(given: Arguments) -> pa.Array:
    if given.types[0].scalar in (Scalar.DATE, Scalar.DATETIME):
        result = _checked(pc.subtract_checked, *(as_integers(column) for column in given.columns))
        return {Scalar.DATE: as_dates, Scalar.DATETIME: as_datetimes}.get(given.result.scalar, _same)(result)
    return _checked(pc.subtract_checked, *_numbers(given))


def _same(column: pa.Array) -> pa.Array:
    return column


def _multiply(given: Arguments) -> pa.Array:
    return _checked(pc.multiply_checked, *_numbers(given))


def _refuse_zero(divisor: pa.Array, dividend: pa.Array) -> None:
    """Raise ValueError for a division by zero, unless the dividend is null."""
    zero = pc.and_(pc.equal(divisor, pa.scalar(0, divisor.type)), pc.is_valid(dividend))
    if as_mask(zero).any():
        raise ValueError("division by zero; `nullif(x, 0)` gives null instead")


def _divide(given: Arguments) -> pa.Array:
    dividend, divisor = (column.cast(pa.float64(), safe=False) for column in given.columns)
    _refuse_zero(divisor, dividend)
    return _finite(pc.divide(dividend, divisor), dividend, divisor)


def _remainder(given: Arguments) -> pa.Array:
    dividend, divisor = _numbers(given)
    _refuse_zero(divisor, dividend)
    return by_numpy(np.fmod, dividend.type, dividend, divisor)


def _div(given: Arguments) -> pa.Array:
    dividend, divisor = map(as_integers, given.columns)
    _refuse_zero(divisor, dividend)
    return _checked(pc.divide_checked, dividend, divisor)


def _negative(given: Arguments) -> pa.Array:
    return _checked(pc.negate_checked, *_numbers(given))


def _absolute(given: Arguments) -> pa.Array:
    return _checked(pc.abs_checked, *_numbers(given))


#: Powers of ten up to this one are exact as floats.
_EXACT_DIGITS = 22
#: No float has more digits behind or before the point.
_MOST_DIGITS = 400
_POWERS = np.array([float(f"1e{exponent}") for exponent in range(_MOST_DIGITS + 1)])
#: To what integers are rounded, by the number of digits, and half of it; no integer is half of the last one.
_UNITS = np.array([*(10**exponent for exponent in range(20)), 2**64 - 1], np.uint64)
_HALVES = np.array([*(10**exponent // 2 for exponent in range(20)), 0], np.uint64)


def _round(given: Arguments) -> pa.Array:
    numbers = as_type(given[0], given.result)
    digits = as_integers(given[1]) if len(given) > 1 else pa.array(np.zeros(given.count, np.int64))
    if given.result.scalar in FLOATS:
        return _finite(by_numpy(_rounded, numbers.type, numbers, digits), numbers)
    return by_numpy(_rounded_integers, numbers.type, numbers, digits)


def _rounded_integers(numbers: npt.NDArray[Any], digits: npt.NDArray[Any]) -> npt.NDArray[Any]:
    places = -np.clip(digits, 1 - len(_UNITS), 0)
    sizes = np.abs(numbers).astype(np.uint64)
    nearest = (sizes + _HALVES[places]) // _UNITS[places] * _UNITS[places]
    negative: Mask = numbers < 0
    if (nearest > negative + np.uint64(2**63 - 1)).any():
        raise ValueError("the result is outside the range of I64")
    result = nearest.astype(np.int64)
    return np.asarray(np.where(negative, -result, result))


def _rounded(numbers: npt.NDArray[Any], digits: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Floats rounded to so many digits behind the point as they are written: 1.005 is a half, though the float lies below it."""
    places = np.clip(digits, -_MOST_DIGITS, _MOST_DIGITS)
    powers = _POWERS[np.abs(places)]
    sizes = np.abs(numbers)
    scaled = np.where(places < 0, sizes / powers, sizes * powers)
    nearest = np.floor(scaled + 0.5)
    made: npt.NDArray[Any] = np.copysign(np.where(places < 0, nearest * powers, nearest / powers), numbers)
    # A written number and its float differ by half of the last bit at most, and so does what is scaled.
    from_half = np.abs(scaled - np.floor(scaled) - 0.5)
    certain = (from_half > scaled * 2.0**-51) & (scaled < 2.0**50) & (np.abs(places) <= _EXACT_DIGITS)
    rest = np.flatnonzero(~certain)
    made[rest] = [
        _rounded_text(number, place)
        for number, place in zip(numbers[rest].tolist(), places[rest].tolist(), strict=True)
    ]
    return made


def _rounded_text(number: float, digits: int) -> float:
    """One float rounded as it is written."""
    written = Decimal(repr(number))
    exponent = written.as_tuple().exponent
    if not isinstance(exponent, int) or exponent >= -digits:
        return number
    return float(written.quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP))


def _whole(compute: Callable[..., pa.Array]) -> Kernel:
    """A kernel that applies `compute` to floats and leaves integers unchanged."""

    def kernel(given: Arguments) -> pa.Array:
        is_float = pa.types.is_floating(given[0].type)
        return as_type(compute(given[0]) if is_float else given[0], given.result)

    return kernel


def _float_function(
    compute: Callable[[npt.NDArray[Any]], npt.NDArray[Any]], allowed: Callable[[Any], Any] | None, wanted: str
) -> Kernel:
    def kernel(given: Arguments) -> pa.Array:
        number = given[0].cast(pa.float64(), safe=False)
        # NaN is allowed: the result is NaN too.
        if allowed is not None and not as_mask(pc.fill_null(pc.or_(allowed(number), pc.is_nan(number)), True)).all():
            raise ValueError(wanted)
        return _finite(by_numpy(compute, pa.float64(), number), number)

    return kernel


def _power(given: Arguments) -> pa.Array:
    base, exponent = (column.cast(pa.float64(), safe=False) for column in given.columns)
    result = by_numpy(np.power, pa.float64(), base, exponent)
    undefined = as_mask(pc.is_nan(result))
    for operand in (base, exponent):
        undefined &= ~as_mask(pc.is_nan(operand))
    if undefined.any():
        raise ValueError("a negative number has no fractional power")
    return _finite(result, base, exponent)


def _sign(given: Arguments) -> pa.Array:
    if pa.types.is_floating(given[0].type) and as_mask(pc.fill_null(pc.is_nan(given[0]), False)).any():
        raise ValueError("NaN has no sign")
    return pc.sign(given[0]).cast(pa.int64(), safe=False)


NUMBERS: dict[str, Kernel] = {
    "+": _add,
    "-": _subtract,
    "*": _multiply,
    "/": _divide,
    "%": _remainder,
    "negative": _negative,
    "div": _div,
    "abs": _absolute,
    "round": _round,
    "floor": _whole(pc.floor),
    "ceil": _whole(pc.ceil),
    "sqrt": _float_function(np.sqrt, lambda x: pc.greater_equal(x, 0.0), "a negative number has no square root"),
    "power": _power,
    "exp": _float_function(np.exp, None, ""),
    "ln": _float_function(np.log, lambda x: pc.greater(x, 0.0), "only a positive number has a logarithm"),
    "log10": _float_function(np.log10, lambda x: pc.greater(x, 0.0), "only a positive number has a logarithm"),
    "sign": _sign,
}
