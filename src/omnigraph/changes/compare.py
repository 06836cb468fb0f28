"""Compares two aligned sets of rows by typed value: null is not "", ["a, b"] is not ["a", "b"].

Every value equals itself, so NaN written again is no change; −0 equals 0, as everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from lance.blob import BlobType

from omnigraph.storage.tables.blobs import EXTERNAL, blob_columns
from omnigraph.storage.tables.table import Table
from omnigraph.values.columns import PROPERTY_ID
from omnigraph.values.widening import converted, fits

_FIXED = ("id", "src", "dst")


@dataclass(frozen=True, slots=True)
class Column:
    """One column under its newest name, and its stored name on either side; None: that side does not have it."""

    name: str
    before: str | None
    after: str | None


@dataclass(frozen=True)
class Columns:
    """The columns of both sides together. Both images of a change use the same names."""

    all: tuple[Column, ...]

    @property
    def one_sided(self) -> tuple[Column, ...]:
        return tuple(column for column in self.all if column.before is None or column.after is None)

    @property
    def shared(self) -> tuple[Column, ...]:
        return tuple(column for column in self.all if column.before is not None and column.after is not None)

    def stored_before(self, names: frozenset[str] | None = None) -> dict[str, str]:
        """The columns stored on the earlier side: the names they are shown under, by stored name."""
        return {column.before: column.name for column in self.all if column.before and _among(column, names)}

    def stored_after(self, names: frozenset[str] | None = None) -> dict[str, str]:
        """The columns stored on the later side: the names they are shown under, by stored name."""
        return {column.after: column.name for column in self.all if column.after and _among(column, names)}


def match_columns(before: Table | None, after: Table | None) -> Columns:
    """Match the columns of two sides, one of which may not exist; the columns of the later side come first."""
    old = {} if before is None else _by_identity(before.schema)
    new = {} if after is None else _by_identity(after.schema)
    matched = [Column(name, old.get(identity), name) for identity, name in new.items()]
    # A name may now belong to another property; then the column of the old property shows its property id too.
    taken = {column.name for column in matched if column.before is not None}
    for identity, name in old.items():
        if identity not in new:
            matched.append(Column(f"{name}#{identity.decode()}" if name in taken else name, name, None))
    return Columns(tuple(matched))


def has_values(table: Table, name: str) -> bool:
    """Whether any row has a value in a column; always True for blobs, for which Lance can not test that."""
    return name in blob_columns(table.schema) or table.count_rows(f"`{name}` is not null") > 0


def _among(column: Column, names: frozenset[str] | None) -> bool:
    return names is None or column.name in names


def _by_identity(schema: pa.Schema) -> dict[bytes, str]:
    return {_identity(field): field.name for field in schema}


def _identity(field: pa.Field) -> bytes:
    own: bytes = field.name.encode()
    if field.name in _FIXED:
        return own
    identity: bytes = (field.metadata or {}).get(PROPERTY_ID, own)
    return identity


Mask = npt.NDArray[np.bool_]
#: Reads the bytes of one blob column in some rows (by position), on the earlier and on the later side.
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
            # Columns of unrelated types: only two nulls are equal.
            return _mask(pc.or_(old.is_valid(), new.is_valid()))
        # A widened value is the same value.
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
    # The remaining lists have the same length on both sides, so their elements are aligned.
    alike = np.flatnonzero(_mask(pc.and_(old.is_valid(), new.is_valid())) & ~mask)
    if len(alike):
        some_old, some_new = old.take(pa.array(alike)), new.take(pa.array(alike))
        elements = _differ(some_old.flatten(), some_new.flatten())
        lengths = pc.list_value_length(some_old).to_numpy(zero_copy_only=False)
        owners = np.repeat(alike, lengths)
        mask[owners[elements]] = True
    return mask


def _blobs_differ(name: str, old: pa.Array, new: pa.Array, known: Mask, read_blobs: BlobReader) -> Mask:
    """Compare blobs: external values by their reference, others by size and then by bytes."""
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
