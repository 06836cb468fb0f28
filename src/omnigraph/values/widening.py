"""Columns whose type has changed: converts values to a wider type exactly, and back where they fit."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.values.columns import whole

#: More digits than any I64 has.
_DIGITS = pa.decimal128(38, 0)
_DECIMAL = r"^-?[0-9]{1,19}$"
#: The integers that become their decimal text: I64, and what may become an I64 before.
_BECOME_TEXTS = frozenset({"int32", "uint32", "int64"})


def fits(stored: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether every value of one type is exactly a value of another: of the same type, or of a wider one.

    A property may have been widened more than once, so a type that comes to another by several steps fits it.
    """
    if stored == wanted or str(stored) == str(wanted):
        return True
    if _is_list(stored) and _is_list(wanted):
        return fits(stored.value_type, wanted.value_type)
    if pa.types.is_integer(stored) and pa.types.is_integer(wanted):
        unsigned = pa.types.is_unsigned_integer(stored), pa.types.is_unsigned_integer(wanted)
        return stored.bit_width < wanted.bit_width and (unsigned[0] or not unsigned[1])
    if pa.types.is_floating(stored) and pa.types.is_floating(wanted):
        return bool(stored.bit_width < wanted.bit_width)
    if pa.types.is_int32(stored) and pa.types.is_float64(wanted):
        return True
    return str(stored) in _BECOME_TEXTS and pa.types.is_string(wanted)


def convertible(stored: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether one of two types is wider: then values can be converted, to the narrower type only where they fit."""
    return fits(stored, wanted) or fits(wanted, stored)


def converted(column: pa.Array | pa.ChunkedArray, wanted: pa.DataType) -> pa.Array | pa.ChunkedArray:
    """The values of a column in a wider type, or in a narrower type, where values that do not fit become null."""
    if column.type == wanted or isinstance(wanted, pa.BaseExtensionType):
        return column
    if fits(column.type, wanted):
        return column.cast(wanted)
    return _narrowed(whole(column), wanted)


def unfit(column: pa.Array | pa.ChunkedArray, wanted: pa.DataType) -> pa.Array:
    """Which values of a column do not fit the type they are converted to."""
    values = whole(column)
    return pc.and_(pc.is_valid(values), pc.is_null(whole(converted(values, wanted))))


def _narrowed(values: pa.Array, wanted: pa.DataType) -> pa.Array:
    if _is_list(wanted):
        return _narrowed_lists(values, wanted)
    if pa.types.is_string(values.type) and not pa.types.is_int64(wanted):
        return _narrowed(_narrowed(values, pa.int64()), wanted)
    narrow = _numbers_of(values) if pa.types.is_string(values.type) else values.cast(wanted, safe=False)
    back = narrow.cast(values.type)
    same = pc.equal(values, back)
    if pa.types.is_floating(values.type):
        nan = pc.is_nan(values)
        same = pc.if_else(nan, pa.scalar(pa.types.is_floating(wanted)), same)
    return pc.if_else(pc.fill_null(same, False), narrow, pa.scalar(None, wanted))


def _narrowed_lists(lists: pa.Array, wanted: pa.DataType) -> pa.Array:
    """Narrow lists; a list with an item that does not fit becomes null as a whole."""
    items = lists.flatten()
    lost = pc.and_(pc.is_valid(items), pc.is_null(_narrowed(items, wanted.value_type)))
    broken = pc.unique(pc.list_parent_indices(lists).filter(lost)).cast(pa.int64())
    places = pa.array(range(len(lists)), pa.int64())
    fine = pc.and_(pc.is_valid(lists), pc.invert(pc.is_in(places, value_set=broken)))
    kept = lists.filter(fine).cast(wanted)
    return kept.take(
        pc.if_else(fine, pc.subtract(pc.cumulative_sum(fine.cast(pa.int64())), 1), pa.scalar(None, pa.int64()))
    )


def _numbers_of(texts: pa.Array) -> pa.Array:
    """The numbers in texts of digits; null for other texts. A text that the number does not give back is no value."""
    digits = pc.if_else(pc.match_substring_regex(texts, _DECIMAL), texts, pa.scalar(None, pa.string()))
    return digits.cast(_DIGITS).cast(pa.int64(), safe=False)


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind))
