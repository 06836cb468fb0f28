"""Aligns rows by id, and mixes the columns of two sides."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Mask = npt.NDArray[np.bool_]
Marks = Mapping[str, Mask]


def flat(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """A column as one contiguous array."""
    if isinstance(column, pa.Array):
        return column
    combined = column.combine_chunks()
    return combined if isinstance(combined, pa.Array) else pa.concat_arrays(combined.chunks)


def align(rows: pa.Table, ids: pa.Array) -> tuple[pa.Table, Mask]:
    """The rows with these ids, in the order of `ids`, and a mask of the ids found; other rows have arbitrary values."""
    places = pc.index_in(ids, value_set=flat(rows["id"]))
    present: Mask = places.is_valid().to_numpy(zero_copy_only=False)
    if not rows.num_rows:
        columns = [pa.nulls(len(ids), field.type) for field in rows.schema]
        return pa.Table.from_arrays(columns, names=rows.column_names), present
    return rows.take(pc.fill_null(places, 0)), present


def mix(ours: pa.Table, theirs: pa.Table, from_theirs: Marks) -> pa.Table:
    """The rows of ours, with values of theirs where `from_theirs` marks them. Both sides have the same columns and order."""
    columns = []
    for field in ours.schema:
        mine, other = flat(ours[field.name]), flat(theirs[field.name])
        marked = from_theirs.get(field.name)
        if marked is not None and marked.any():
            mine = _chosen(mine, other, pa.array(np.arange(len(mine)) + np.where(marked, len(mine), 0)))
        columns.append(mine)
    return pa.Table.from_arrays(columns, names=ours.column_names)


def _chosen(mine: pa.Array, other: pa.Array, places: pa.Array) -> pa.Array:
    mine, other = _of_type(mine, other.type), _of_type(other, mine.type)
    if isinstance(mine, pa.ExtensionArray):
        storage = pa.concat_arrays([mine.storage, other.storage]).take(places)
        return pa.ExtensionArray.from_storage(mine.type, storage)
    return pa.concat_arrays([mine, other]).take(places)


def _of_type(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """Typed nulls for a column of untyped nulls, which stands for a column that a side lacks."""
    if not pa.types.is_null(column.type) or pa.types.is_null(kind):
        return column
    if isinstance(kind, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(kind, pa.nulls(len(column), kind.storage_type))
    return pa.nulls(len(column), kind)
