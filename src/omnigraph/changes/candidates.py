"""The rows of one side that can differ, by id and in id order, however many."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.storage.tables.unshared import ROW_ID, Rows
from omnigraph.values.ordered import ID, in_id_order

#: A reader of few blocks out of many gets so many without a sort of all ids.
FEW_BLOCKS = 3
MANY_BLOCKS = 16
#: What is held at least before the smallest ids are picked out.
_HELD_ROWS = 8192

NO_CANDIDATES = pa.table({ID: pa.array([], pa.string()), ROW_ID: pa.array([], pa.uint64())})


def candidate_ids(
    side: Rows | None, block_rows: int, after_id: str | None, until_id: str | None = None, *, few: bool
) -> Iterator[pa.Table]:
    """Ids and row ids after one id and up to another, in id order, in blocks.

    `few`: the reader is likely to need only the first of them.
    """
    if side is None:
        return
    behind = after_id
    if few and len(side) > MANY_BLOCKS * block_rows:
        for _ in range(FEW_BLOCKS):
            block = smallest_ids(_between(side, behind, until_id), block_rows)
            yield block
            if block.num_rows < block_rows:
                return
            behind = block[ID][-1].as_py()
    yield from in_id_order(_between(side, behind, until_id), block_rows=block_rows)


def smallest_ids(batches: Iterable[pa.RecordBatch], count: int) -> pa.Table:
    """The rows with the smallest ids, in order; no more than some times as many are held."""
    held: list[pa.RecordBatch] = []
    for batch in batches:
        held.append(batch)
        if sum(kept.num_rows for kept in held) > max(8 * count, _HELD_ROWS):
            held = _smallest(held, count).to_batches()
    return _smallest(held, count) if held else NO_CANDIDATES


def _smallest(batches: list[pa.RecordBatch], count: int) -> pa.Table:
    rows = pa.Table.from_batches(batches)
    return rows.take(pc.select_k_unstable(rows, count, [(ID, "ascending")]))


def _between(side: Rows, after_id: str | None, until_id: str | None) -> Iterator[pa.RecordBatch]:
    for batch in side.scan([ID]):
        yield within(batch.select([ID, ROW_ID]), after_id, until_id)


def within(rows: pa.RecordBatch, after_id: str | None, until_id: str | None) -> pa.RecordBatch:
    """The rows whose ids come after the first id and not after the second; None: there is no such bound."""
    if after_id is not None:
        rows = rows.filter(pc.greater(rows[ID], after_id))
    return rows if until_id is None else rows.filter(pc.less_equal(rows[ID], until_id))
