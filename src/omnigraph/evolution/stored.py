"""Answers a schema comparison's questions about stored rows, with one pass over one column, in batches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.commit.context import CommitContext
from omnigraph.commit.model import ManifestState
from omnigraph.evolution.image import wanted_columns
from omnigraph.evolution.look import EXAMPLES, Backfilled, Counts, Entity, Found, Outside
from omnigraph.language.schema.catalog import Property
from omnigraph.storage.tables.columns import Column, reads_of, values_of
from omnigraph.storage.tables.table import Table
from omnigraph.values.columns import whole
from omnigraph.values.widening import unfit

#: The most distinct offending values that are counted.
MOST_VALUES = 1000


@dataclass(frozen=True)
class StoredRows(Counts):
    """The rows of a state of a branch."""

    context: CommitContext | None = None
    state: ManifestState | None = None

    def nulls(self, was: Entity, entity: Entity, declared: Property) -> Found | None:
        table, column = self._table(entity), replace(self._column(was, entity, declared), fill=None)
        if column.stored is not None and column.values is None:
            where = f"`{column.stored}` is null"
            return self._found(entity, table.count_rows(where), _first_ids(table, where))
        return self._counted(entity, table, column, pc.is_null)

    def lacking(self, was: Entity, entity: Entity, declared: Property) -> int:
        stored = self._column(was, entity, declared).stored
        return self.count(entity) if stored is None else self._table(entity).count_rows(f"`{stored}` is null")

    def outside(self, was: Entity, entity: Entity, declared: Property) -> Outside:
        assert declared.type.enum is not None
        table, column = self._table(entity), self._column(was, entity, declared)
        allowed, values, rows, more = pa.array(declared.type.enum, pa.string()), Counter[str](), 0, False
        for found in _values(table, column):
            texts = whole(found)
            wrong = pc.and_(pc.is_valid(texts), pc.invert(pc.is_in(texts, value_set=allowed)))
            rows += wrong.true_count
            for counted in pc.value_counts(texts.filter(wrong)).to_pylist():
                if counted["values"] in values or len(values) < MOST_VALUES:
                    values[counted["values"]] += counted["counts"]
                else:
                    more = True
        ordered = sorted(values.items(), key=lambda item: (-item[1], item[0]))
        return Outside(rows, self.count(entity), dict(ordered), more)

    def unfit(self, was: Entity, entity: Entity, declared: Property) -> Found:
        column = self._column(was, entity, declared)
        stored = Column(column.field, column.stored)
        return self._counted(entity, self._table(entity), stored, lambda found: unfit(found, column.field.type))

    def _counted(self, entity: Entity, table: Table, column: Column, is_wrong: Callable[[pa.Array], pa.Array]) -> Found:
        """The rows whose value in a column is wrong, by `is_wrong`."""
        count, ids = 0, list[str]()
        for batch in table.scan(list(dict.fromkeys(("id", *column.reads)))):
            wrong = is_wrong(values_of(column, batch))
            count += wrong.true_count
            if len(ids) < EXAMPLES and wrong.true_count:
                ids += batch.column("id").filter(wrong)[: EXAMPLES - len(ids)].to_pylist()
        return self._found(entity, count, ids)

    def _column(self, was: Entity, entity: Entity, declared: Property) -> Column:
        columns = wanted_columns(was, entity, self.backfilled.values(entity))
        return next(column for column in columns if column.field.name == declared.name)

    def _found(self, entity: Entity, count: int, ids: list[str]) -> Found:
        return Found(count, self.count(entity), tuple(ids))

    def _table(self, entity: Entity) -> Table:
        assert self.context is not None
        assert self.state is not None
        entry = self.state.tables[entity.id, entity.incarnation]
        return self.context.tables.open(entry.location, entry.version)


def stored_rows(context: CommitContext, state: ManifestState, backfilled: Backfilled) -> StoredRows:
    """The answers about the rows of a state. `backfilled`: how rows get values that they lack."""
    return StoredRows(row_counts(state), False, backfilled, context, state)


@dataclass(frozen=True)
class MergingRows(StoredRows):
    """The rows of a merge's target. Rows without a value, or with a changed one, are judged row by row in the merge."""

    def nulls(self, was: Entity, entity: Entity, declared: Property) -> Found | None:
        return None

    def outside(self, was: Entity, entity: Entity, declared: Property) -> Outside:
        return Outside()


def merging_rows(context: CommitContext, state: ManifestState) -> MergingRows:
    """What a merge asks about the rows of its target; it may lead back to a narrower type."""
    return MergingRows(row_counts(state), True, Backfilled(), context, state)


def row_counts(state: ManifestState) -> dict[int, int]:
    """How many rows each type has, by stable id."""
    return {identity[0]: entry.row_count for identity, entry in state.tables.items()}


def _first_ids(table: Table, where: str) -> list[str]:
    first = next(table.scan(["id"], where, batch_size=EXAMPLES), None)
    return [] if first is None else first.column("id")[:EXAMPLES].to_pylist()


def _values(table: Table, column: Column) -> Iterator[pa.Array]:
    for batch in table.scan(reads_of([column])):
        yield values_of(column, batch)
