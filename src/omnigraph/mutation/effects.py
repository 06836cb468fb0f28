"""Turns settled changes into effects on tables: one staged Lance transaction per type that a write touches."""

from __future__ import annotations

from dataclasses import dataclass

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
    """The effect on one table; None when the changes cancel out. A table that the branch still shares must be forked
    first, so its transaction is staged only then.
    """
    change = change_of(settled, base)
    return None if change is None else effect_of(context, change, base)


@dataclass(frozen=True)
class Change:
    """The effect of settled changes on their table: rows to add, and ids and addresses of committed rows to remove."""

    type_key: str
    image: pa.Table
    outdated: pa.Table

    def __call__(self, table: Table) -> Staged:
        """Stage the change on the captured table or on a copy of it."""
        addresses = self.outdated[ROW_ADDRESS]
        if not self.image.num_rows:
            return stage_delete(table, row_addresses=addresses)
        if not len(addresses):
            return stage_append(table, self.image)
        return stage_replace(table, self.image, addresses)


def effect_of(context: CommitContext, change: Change, base: Base) -> TableEffect:
    """A change as the effect of a write."""
    entry = base.entry(change.type_key)
    if context.forks.is_shared(base.state, entry):
        return TableEffect(entry, (Step(change),), forks=True)
    return TableEffect(entry, (Step(change(base.table(entry.key))),))


def change_of(settled: SettledRows, base: Base) -> Change | None:
    """The effect of settled changes on their table, or on a copy of it; None when they change nothing."""
    image, outdated = settled.image(), _outdated_rows(settled, base)
    return Change(settled.entity.type_key, image, outdated) if image.num_rows or outdated.num_rows else None


def _outdated_rows(settled: SettledRows, base: Base) -> pa.Table:
    """The ids and addresses of the committed rows that settled rows replace or remove."""
    known = settled.known_addresses()
    if settled.version > 1:
        # Several queries may have touched the same row.
        known = known.group_by(["id", ROW_ADDRESS]).aggregate([]).select(["id", ROW_ADDRESS])
    if settled.entity.key is None:
        # Generated ids are new, so only rows that a query has touched are committed.
        return known
    ids = pa.concat_arrays([whole(settled.image()["id"]), settled.gone()])
    unknown = ids.filter(pc.invert(pc.is_in(ids, value_set=whole(known["id"]))))
    if not len(unknown):
        return known
    found = base.table(settled.entity.type_key).take_by("id", unknown, ["id"], with_row_address=True)
    return pa.concat_tables([known, pa.table([found["id"], found[ROW_ADDRESS]], schema=known.schema)])
