"""Pending changes as effects on tables: one staged Lance transaction for each type that a mutation touches."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.commit.context import CommitContext
from omnigraph.commit.protocol import Step, TableEffect
from omnigraph.mutation.base import Base
from omnigraph.mutation.staging import Pending
from omnigraph.storage.tables.staged import Staged, stage_append, stage_delete, stage_replace
from omnigraph.storage.tables.table import ROW_ADDRESS, Table


def stage(context: CommitContext, pending: Pending, base: Base) -> TableEffect:
    """The effect on one table. One that the branch still shares must be forked first, so it is staged only then."""
    entry = base.entry(pending.entity.type_key)
    removed, image = pending.removed(), pending.image()
    replaced = None if removed.num_rows else _replaced(pending, base)

    def transaction(table: Table) -> Staged:
        if replaced is None:
            return stage_delete(table, row_addresses=removed[ROW_ADDRESS])
        if not len(replaced):
            return stage_append(table, image)
        return stage_replace(table, image, replaced)

    if context.forks.is_shared(base.state, entry):
        return TableEffect(entry, (Step(transaction),), forks=True)
    return TableEffect(entry, (Step(transaction(base.table(entry.key))),))


def _replaced(pending: Pending, base: Base) -> pa.ChunkedArray:
    """The addresses of the committed rows that pending rows take the place of."""
    known = pending.replaced()
    if pending.entity.key is None:
        # Generated ids are new: only updated rows have a predecessor.
        return known[ROW_ADDRESS]
    ids = pending.image()["id"].combine_chunks()
    unknown = ids.filter(pc.invert(pc.is_in(ids, value_set=known["id"].combine_chunks())))
    if not len(unknown):
        return known[ROW_ADDRESS]
    found = base.by_value(pending.entity.type_key, "id", unknown, ["id"], with_row_address=True)
    return pa.chunked_array([*known[ROW_ADDRESS].chunks, *found[ROW_ADDRESS].chunks], pa.uint64())
