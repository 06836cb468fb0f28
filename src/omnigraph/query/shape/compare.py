"""Comparing two columns by value, whatever numeric types they have, and conditions on the items of lists."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.language.types import FLOATS, INTEGERS, PropType, Scalar
from omnigraph.query.rows import Mask
from omnigraph.values.columns import whole
from omnigraph.values.compare import Coerced, Comparison, matches

_ARROW = {
    "=": pc.equal,
    "!=": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}
_NUMPY: dict[str, np.ufunc] = {
    "=": np.equal,
    "!=": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}
Numbers = npt.NDArray[Any]


def compare_constant(column: pa.Array, coerced: Coerced) -> Mask:
    """A mask of the rows that satisfy a comparison with a constant; a null satisfies none."""
    if isinstance(coerced, Comparison) and not column.null_count and _is_number(column.type):
        # NumPy compares numbers many times faster than Arrow does.
        numbers = np.from_dlpack(column)
        value = np.array(coerced.value.as_py(), numbers.dtype)
        return np.asarray(_NUMPY[coerced.operator](numbers, value), dtype=np.bool_)
    return as_mask(matches(column, coerced))


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def compare_columns(left: pa.Array, operator: str, right: pa.Array, left_type: PropType, right_type: PropType) -> Mask:
    """A mask of the rows for which `left operator right` is true; a null satisfies no comparison."""
    known = pc.and_(pc.is_valid(left), pc.is_valid(right))
    if left_type.is_numeric and right_type.is_numeric:
        mask = _compare_numbers(_numbers(left), operator, _numbers(right), left_type, right_type)
        return mask & as_mask(known)
    if left_type.scalar is Scalar.BOOL:
        left, right = left.cast(pa.uint8()), right.cast(pa.uint8())
    return as_mask(_ARROW[operator](left, right))


def as_mask(truth: pa.Array | pa.ChunkedArray) -> Mask:
    """A Bool column as a mask; nulls become false."""
    filled = pc.fill_null(truth, False) if truth.null_count else truth
    array = whole(filled)
    if not len(array):
        return np.zeros(0, np.bool_)
    # Arrow stores Bools as bits, and takes twenty times as long to unpack them as NumPy.
    bits = np.frombuffer(array.buffers()[1], np.uint8)
    return np.unpackbits(bits, count=array.offset + len(array), bitorder="little")[array.offset :].view(np.bool_)


def _numbers(column: pa.Array) -> Numbers:
    return np.asarray(pc.fill_null(column, 0).to_numpy(zero_copy_only=False))


def _compare_numbers(left: Numbers, operator: str, right: Numbers, left_type: PropType, right_type: PropType) -> Mask:
    if left_type.scalar in INTEGERS and right_type.scalar in FLOATS:
        return _signs(operator, _order(left, right.astype(np.float64)), np.isnan(right))
    if left_type.scalar in FLOATS and right_type.scalar in INTEGERS:
        return _signs(operator, -_order(right, left.astype(np.float64)), np.isnan(left))
    # NumPy compares signed with unsigned integers, and F32 with F64, by value.
    return np.asarray(_NUMPY[operator](left, right), dtype=np.bool_)


def _signs(operator: str, order: Numbers, unordered: Mask) -> Mask:
    truth = np.asarray(_NUMPY[operator](order, 0), dtype=np.bool_)
    truth[unordered] = operator == "!="
    return truth


def _order(whole: Numbers, wide: Numbers) -> Numbers:
    """-1, 0 or 1 as an integer is less than, equal to or greater than a float, without rounding the integer."""
    low, high = (0.0, 2.0**64) if whole.dtype.kind == "u" else (-(2.0**63), 2.0**63)
    floor = np.floor(wide)
    inside = (floor >= low) & (floor < high)
    nearest = np.where(inside, floor, 0).astype(whole.dtype)
    order = np.where(whole > nearest, 1, np.where(whole < nearest, -1, 0))
    order = np.where((order == 0) & (wide > floor), -1, order)
    return np.where(inside, order, np.where(wide >= high, -1, 1))


def holds_item(lists: pa.Array, fits: Callable[[pa.Array, pa.Array], Mask]) -> Mask:
    """A mask of the lists with an item that fits. `fits` gets all items and, for each, the row of its list."""
    items, owners = pc.list_flatten(lists), pc.list_parent_indices(lists)
    mask = np.zeros(len(lists), np.bool_)
    if len(items):
        mask[owners.to_numpy()[fits(items, owners)]] = True
    return mask
