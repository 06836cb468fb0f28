"""Settled changes as effects on tables: one staged Lance transaction for each type that a write touches."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.commit.context import CommitContext
from omnigraph.commit.protocol import Step, TableEffect
from omnigraph.mutation.base import Base
from omnigraph.mutation.settled import SettledRows
from omnigraph.storage.tables.staged import Staged, stage_append, stage_delete, stage_replace
from omnigraph.storage.tables.table import ROW_ADDRESS, Table
from omnigraph.values.columns import whole


def stage(context: CommitContext, settled: SettledRows, base: Base) -> TableEffect | None:
    """The effect on one table; None when nothing of it is left. A table that the branch still shares must be forked
    first, so its transaction is staged only then.
    """
    change = change_of(settled, base)
    if change is None:
        return None
    entry = base.entry(settled.entity.type_key)
    if context.forks.is_shared(base.state, entry):
        return TableEffect(entry, (Step(change),), forks=True)
    return TableEffect(entry, (Step(change(base.table(entry.key))),))


def change_of(settled: SettledRows, base: Base) -> Callable[[Table], Staged] | None:
    """What settled changes do to their table, which may be a copy of the captured one; None when they do nothing."""
    image, outdated = settled.image(), outdated_rows(settled, base)

    def staged(table: Table) -> Staged:
        if not image.num_rows:
            return stage_delete(table, row_addresses=outdated)
        if not len(outdated):
            return stage_append(table, image)
        return stage_replace(table, image, outdated)

    return staged if image.num_rows or len(outdated) else None


def outdated_rows(settled: SettledRows, base: Base) -> pa.ChunkedArray:
    """The addresses of the committed rows that settled rows take the place of, or that are removed."""
    known = settled.known_addresses()
    addresses = known[ROW_ADDRESS]
    if settled.version > 1:
        # Several queries may have met one row.
        addresses = pc.unique(addresses)
        addresses = pa.chunked_array([addresses])
    if settled.entity.key is None:
        # Generated ids are new: only rows that a query has met are committed.
        return addresses
    ids = pa.concat_arrays([whole(settled.image()["id"]), settled.gone()])
    unknown = ids.filter(pc.invert(pc.is_in(ids, value_set=whole(known["id"]))))
    if not len(unknown):
        return addresses
    found = base.table(settled.entity.type_key).take_by("id", unknown, ["id"], with_row_address=True)
    return pa.chunked_array([*addresses.chunks, *found[ROW_ADDRESS].chunks], pa.uint64())
