"""The rows of a table in id order, under current names and types, with the values of their blobs."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.export.plan import ExportTable
from omnigraph.language.types import PropType
from omnigraph.storage.tables.blobs import EXTERNAL, carry_blobs
from omnigraph.storage.tables.table import BATCH_ROWS, Table
from omnigraph.values.columns import arrow_type
from omnigraph.values.ordered import in_id_order
from omnigraph.values.widening import converted, convertible

#: The most bytes of blobs that are rendered together; a single larger blob is rendered alone.
BLOB_BYTES = 8 * 1024 * 1024
#: The most bytes of vectors in one batch.
_VECTOR_BYTES = 8 * 1024 * 1024


def ordered_rows(planned: ExportTable, table: Table) -> Iterator[pa.RecordBatch]:
    """Batches with `id` (edges: `id`, `src`, `dst`) and one column per property; blobs are values, not descriptors."""
    fixed = ("id", "src", "dst") if planned.kind == "edge" else ("id",)
    stored = [column.stored for column in planned.columns if column.stored is not None]
    blobs = tuple(column.stored for column in planned.columns if column.kind.is_blob and column.stored is not None)
    scanned = table.scan(
        [*fixed, *stored],
        batch_size=_batch_rows(planned),
        with_row_address=bool(blobs),
        fragments=planned.fragments,
        watched=True,
    )
    # While rows are sorted, blobs are descriptors; their bytes are read when a row is written.
    for block in in_id_order(scanned):
        for batch in block.to_batches():
            for part in _bounded(batch, blobs):
                yield _named(carry_blobs(table.dataset, part, blobs) if blobs else part, planned, fixed)


def _batch_rows(planned: ExportTable) -> int:
    width = 4 * sum(column.kind.dimension or 0 for column in planned.columns)
    return BATCH_ROWS if not width else max(1, min(BATCH_ROWS, _VECTOR_BYTES // width))


def _bounded(batch: pa.RecordBatch, blobs: tuple[str, ...]) -> Iterator[pa.RecordBatch]:
    """Slices of a batch whose stored blobs fit into memory together."""
    if not blobs:
        yield batch
        return
    sizes = np.zeros(batch.num_rows, np.int64)
    for name in blobs:
        descriptors = batch.column(name)
        inside = pc.not_equal(descriptors.field("kind"), EXTERNAL)
        size = pc.if_else(inside, descriptors.field("size"), pa.scalar(0, pa.uint64()))
        sizes += pc.fill_null(size, 0).to_numpy(zero_copy_only=False).astype(np.int64)
    group = np.cumsum(sizes) // BLOB_BYTES
    cuts = [0, *(np.flatnonzero(np.diff(group)) + 1).tolist(), batch.num_rows]
    for start, end in pairwise(cuts):
        if end > start:
            yield batch.slice(start, end - start)


def _named(batch: pa.RecordBatch, planned: ExportTable, fixed: tuple[str, ...]) -> pa.RecordBatch:
    columns = [batch.column(name) for name in fixed]
    for column in planned.columns:
        if column.stored is not None:
            found = batch.column(column.stored)
            columns.append(found if column.kind.is_blob or column.kind.is_vector else _as_today(found, column.kind))
        else:
            kind = pa.string() if column.kind.is_blob else arrow_type(column.kind)
            columns.append(pa.nulls(batch.num_rows, kind))
    return pa.RecordBatch.from_arrays(columns, [*fixed, *(column.name for column in planned.columns)])


def _as_today(found: pa.Array, kind: PropType) -> pa.Array:
    """Values in the current type of the property; an older snapshot may have a narrower type."""
    wanted = arrow_type(kind)
    return found if str(found.type) == str(wanted) or not convertible(found.type, wanted) else converted(found, wanted)
