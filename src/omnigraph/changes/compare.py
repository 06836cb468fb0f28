"""Which of two aligned sets of rows differ, by typed value: null is not "", ["a, b"] is not ["a", "b"].

A value equals itself, so NaN written again is no change; −0 is 0 as everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from lance.blob import BlobType

from omnigraph.storage.tables.blobs import EXTERNAL
from omnigraph.values.widening import converted, fits

Mask = npt.NDArray[np.bool_]
#: Fetches the bytes of some rows (by position) of one blob column, of the earlier and the later side.
BlobReader = Callable[[str, npt.NDArray[np.int64]], tuple[pa.Array, pa.Array]]


def differing(before: pa.Table, after: pa.Table, names: Sequence[str], read_blobs: BlobReader) -> Mask:
    """For each position, whether the rows differ in one of these columns. Blob columns hold Lance's descriptors."""
    mask = np.zeros(before.num_rows, np.bool_)
    blobs = []
    for name in names:
        old, new = _one_array(before[name]), _one_array(after[name])
        if _is_descriptor(old.type) and _is_descriptor(new.type):
            blobs.append((name, old, new))
        else:
            mask |= _differ(old, new)
    for name, old, new in blobs:
        mask |= _blobs_differ(name, old, new, mask, read_blobs)
    return mask


def _differ(old: pa.Array, new: pa.Array) -> Mask:
    if old.type != new.type:
        if fits(new.type, old.type):
            old, new = new, old
        if not fits(old.type, new.type):
            # A column of another kind: only two nulls are alike.
            return _mask(pc.or_(old.is_valid(), new.is_valid()))
        # A value that was widened is the same value.
        old = _one_array(pa.chunked_array([converted(old, new.type)]))
    if pa.types.is_list(old.type) or pa.types.is_large_list(old.type) or pa.types.is_fixed_size_list(old.type):
        return _lists_differ(old, new)
    one_null = _mask(pc.xor(old.is_null(), new.is_null()))
    unequal = pc.not_equal(old, new)
    if pa.types.is_floating(old.type):
        unequal = pc.and_not(unequal, pc.and_(pc.is_nan(old), pc.is_nan(new)))
    return one_null | _mask(unequal)


def _lists_differ(old: pa.Array, new: pa.Array) -> Mask:
    mask = _mask(pc.xor(old.is_null(), new.is_null()))
    mask |= _mask(pc.not_equal(pc.list_value_length(old), pc.list_value_length(new)))
    # What is left has the same length on both sides, so that the elements lie side by side.
    alike = np.flatnonzero(_mask(pc.and_(old.is_valid(), new.is_valid())) & ~mask)
    if len(alike):
        some_old, some_new = old.take(pa.array(alike)), new.take(pa.array(alike))
        elements = _differ(some_old.flatten(), some_new.flatten())
        lengths = pc.list_value_length(some_old).to_numpy(zero_copy_only=False)
        owners = np.repeat(alike, lengths)
        mask[owners[elements]] = True
    return mask


def _blobs_differ(name: str, old: pa.Array, new: pa.Array, known: Mask, read_blobs: BlobReader) -> Mask:
    """By where an external value lies, else by size and then by bytes."""
    external = _mask(pc.equal(old.field("kind"), EXTERNAL)), _mask(pc.equal(new.field("kind"), EXTERNAL))
    present = _mask(old.is_valid()), _mask(new.is_valid())
    mask: Mask = (present[0] != present[1]) | (present[0] & present[1] & (external[0] != external[1]))
    both = present[0] & present[1] & ~mask
    for part in ("size", "blob_uri", "position"):
        counts = both if part == "size" else both & external[0]
        mask |= counts & _differ(old.field(part), new.field(part))
    undecided = np.flatnonzero(both & ~external[0] & ~mask & ~known)
    if len(undecided):
        mask[undecided[_differ(*read_blobs(name, undecided))]] = True
    return mask


def _is_descriptor(kind: pa.DataType) -> bool:
    return isinstance(kind, BlobType) or (pa.types.is_struct(kind) and kind.get_field_index("blob_uri") >= 0)


def _one_array(column: pa.ChunkedArray) -> pa.Array:
    combined = column.combine_chunks()
    return combined if isinstance(combined, pa.Array) else pa.concat_arrays(combined.chunks)


def _mask(values: pa.Array) -> Mask:
    found: Mask = pc.fill_null(values, False).to_numpy(zero_copy_only=False)
    return found
