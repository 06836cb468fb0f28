"""Arrow's encodings of valid columns: dictionaries, runs, views and extensions, also within lists, structs and maps.

A few bytes of an encoded column may stand for any number of values, so the size of each row is known before it is decoded.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Counts = npt.NDArray[np.int64]
Sizes = npt.NDArray[np.float64]

_TEXTS = (pa.types.is_string, pa.types.is_large_string)
_BYTES = (pa.types.is_binary, pa.types.is_large_binary)
_VIEWS = (pa.types.is_string_view, pa.types.is_binary_view)
_LISTS = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
_LIST_VIEWS = (pa.types.is_list_view, pa.types.is_large_list_view)
#: The most bytes that an encoded column of one batch may expand to.
LARGEST_DECODED = 1 << 30
#: The bytes of a view of a text; its first four are the length of the text.
_VIEW = 16


def is_encoded(kind: pa.DataType) -> bool:
    """Whether values of this type, or values within them, are encoded."""
    if isinstance(kind, pa.BaseExtensionType) or _is(kind, *_VIEWS, *_LIST_VIEWS):
        return True
    if pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind):
        return True
    return any(map(is_encoded, _inner(kind)))


def unreadable(kind: pa.DataType) -> str | None:
    """Why a column of this type can not even be validated; None when it can."""
    if _stacks_extensions(kind):
        return "an extension type of an extension type within other values can not be read; load its storage"
    if _encodes_union(kind):
        return "a union of encoded values can not be read; decode them first"
    return None


def holds_bytes(kind: pa.DataType) -> bool:
    """Whether values of this type are texts or bytes, whatever their encoding."""
    return _is(kind, *_TEXTS, *_BYTES, *_VIEWS)


def decoded(column: pa.Array) -> pa.Array:
    """A valid column without encodings, in whatever order they stand around each other."""
    kind = column.type
    if not is_encoded(kind):
        return column
    if isinstance(column, pa.ExtensionArray):
        return decoded(column.storage)
    if pa.types.is_dictionary(kind):
        return decoded(column.dictionary).take(column.indices)
    if pa.types.is_run_end_encoded(kind):
        values, places = _runs(column)
        return decoded(values).take(places)
    if _is(kind, *_VIEWS):
        return column.cast(pa.large_string() if pa.types.is_string_view(kind) else pa.large_binary())
    mask = pc.is_null(column)
    if pa.types.is_struct(kind):
        return pa.StructArray.from_arrays(list(map(decoded, column.flatten())), kind.names, mask=mask)
    starts, ends, elements = _spans(column)
    return pa.LargeListArray.from_arrays(_sums(ends - starts), decoded(elements).take(_ranges(starts, ends)), mask=mask)


def decoded_bytes(column: pa.Array) -> Sizes:
    """How many bytes each row of a valid column takes when it is decoded, found without decoding it.

    Nested views multiply: the numbers are floats because they may exceed every integer.
    """
    kind = column.type
    if isinstance(column, pa.ExtensionArray):
        return decoded_bytes(column.storage)
    if pa.types.is_dictionary(kind):
        entries = _inner_bytes(column.dictionary)
        if entries is None:
            return np.full(len(column), np.inf)
        return np.append(entries, 0.0)[_numbers(column.indices, len(entries))]
    if pa.types.is_run_end_encoded(kind):
        values, places = _runs(column)
        return decoded_bytes(values)[_numbers(places, 0)]
    if _is(kind, *_VIEWS):
        views = np.frombuffer(column.buffers()[1], np.int32, len(column) * 4, column.offset * _VIEW)
        return _without_nulls(column, views[::4].astype(np.int64)).astype(np.float64)
    if holds_bytes(kind):
        return _numbers(pc.binary_length(column), 0).astype(np.float64)
    if pa.types.is_struct(kind):
        sizes = np.ones(len(column))
        for field in column.flatten():
            sizes += decoded_bytes(field)
        return sizes
    if _is(kind, *_LISTS, *_LIST_VIEWS, pa.types.is_map):
        starts, ends, elements = _spans(column)
        inner = _inner_bytes(elements)
        if inner is None:
            return np.asarray(np.where(ends > starts, np.inf, 0.0))
        sums: Sizes = np.concatenate([np.zeros(1), np.cumsum(inner)])
        return np.asarray(sums[ends] - sums[starts])
    return np.full(len(column), float(_width(kind)))


def _inner_bytes(column: pa.Array) -> Sizes | None:
    """The sizes of the rows of a column within another; None when it is too large to be decoded, whatever is used of it."""
    if not is_encoded(column.type):
        return decoded_bytes(column)
    if len(column) > LARGEST_DECODED // 8:
        return None
    sizes = decoded_bytes(column)
    return sizes if sizes.sum() <= LARGEST_DECODED else None


def _runs(column: pa.RunEndEncodedArray) -> tuple[pa.Array, pa.Array]:
    """The values of a run-end encoded column, and for each row the place of its value; Arrow decodes plain values only."""
    first, count = column.find_physical_offset(), column.find_physical_length()
    places = pa.array(np.arange(len(column.values), dtype=np.int64) - first)
    kind = pa.run_end_encoded(column.type.run_end_type, places.type)
    children = [column.run_ends, places]
    runs = pa.RunEndEncodedArray.from_buffers(kind, len(column), [None], 0, column.offset, children)
    return column.values.slice(first, count), pc.run_end_decode(runs)


def _spans(column: Any) -> tuple[Counts, Counts, pa.Array]:
    """For each row of a column of lists where its elements start and end, empty for a null; and the elements."""
    kind = column.type
    if pa.types.is_fixed_size_list(kind):
        starts = (np.arange(len(column), dtype=np.int64) + column.offset) * kind.list_size
        lengths = np.full(len(column), kind.list_size, np.int64)
    elif _is(kind, *_LIST_VIEWS):
        starts, lengths = _numbers(column.offsets, 0), _numbers(column.sizes, 0)
    else:
        offsets = _numbers(column.offsets, 0)
        starts, lengths = offsets[:-1], np.diff(offsets)
    lengths = _without_nulls(column, lengths)
    used = lengths > 0
    first = int(starts[used].min()) if used.any() else 0
    last = int((starts + lengths)[used].max()) if used.any() else 0
    starts = np.where(used, starts - first, 0)
    if pa.types.is_map(kind):
        parts = [column.keys.slice(first, last - first), column.items.slice(first, last - first)]
        return starts, starts + lengths, pa.StructArray.from_arrays(parts, ["key", "value"])
    return starts, starts + lengths, column.values.slice(first, last - first)


def _stacks_extensions(kind: pa.DataType) -> bool:
    """Whether values of this type, or values within them, are an extension of an extension: Arrow's validation crashes."""
    if isinstance(kind, pa.BaseExtensionType):
        return isinstance(kind.storage_type, pa.BaseExtensionType) or _stacks_extensions(kind.storage_type)
    return any(map(_stacks_extensions, _inner(kind)))


def _encodes_union(kind: pa.DataType) -> bool:
    if isinstance(kind, pa.BaseExtensionType):
        return _encodes_union(kind.storage_type)
    return (pa.types.is_union(kind) and is_encoded(kind)) or any(map(_encodes_union, _inner(kind)))


def _inner(kind: pa.DataType) -> list[pa.DataType]:
    """The types of the values that a type is made of."""
    if pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind):
        return [kind.value_type]
    return [kind.field(place).type for place in range(kind.num_fields)]


def _ranges(starts: Counts, ends: Counts) -> pa.Array:
    """All numbers of the ranges, one range after another."""
    lengths = ends - starts
    return pa.array(np.repeat(starts - _sums(lengths)[:-1], lengths) + np.arange(lengths.sum()))


def _sums(counts: Counts) -> Counts:
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(counts, dtype=np.int64)])


def _numbers(column: pa.Array, instead: int) -> Counts:
    """A column of integers; `instead` stands for nulls."""
    return np.asarray(pc.fill_null(column.cast(pa.int64()), instead).to_numpy(zero_copy_only=False), np.int64)


def _without_nulls(column: pa.Array, counts: Counts) -> Counts:
    return np.where(pc.is_valid(column).to_numpy(zero_copy_only=False), counts, 0) if column.null_count else counts


def _is(kind: pa.DataType, *families: Any) -> bool:
    return any(family(kind) for family in families)


def _width(kind: pa.DataType) -> int:
    try:
        return max(int(kind.bit_width) // 8, 1)
    except ValueError:
        return 1
