"""The settled changes of earlier queries in one transaction. A later query reads the base with these on top.

Each query leaves one `Pending` per type: rows that are put, or rows that are removed, kept in order. Look-ups by id or by value
use dictionaries that index each row once, so many small queries cost as much as one query with the same rows. A transaction
of one query never builds them.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.mutation.staging import Entity, Pending, Staging
from omnigraph.storage.tables.table import ROW_ADDRESS
from omnigraph.validation.sets import TableChange
from omnigraph.values.columns import table_schema, whole

#: Up to this many ids are looked up one by one; more of them as an Arrow set.
_FEW_IDS = 1000
_NOWHERE = pa.schema([(ROW_ADDRESS, pa.uint64())])


class SettledRows:
    """The settled changes to the rows of one type: the last row that was put for each id, and the removed ids."""

    def __init__(self, entity: Entity, layers: Sequence[Pending] = ()) -> None:
        self.entity = entity
        #: The pending changes of each query, in order.
        self.layers: list[Pending] = list(layers)
        self._image: pa.Table | None = None
        # The index of the first `_indexed` layers; a row is identified by its number across all tables.
        self._indexed = 0
        self._tables: list[pa.Table] = []
        self._starts: list[int] = []
        self._count = 0
        self._row_of: dict[str, int] = {}
        self._gone: dict[str, None] = {}
        #: By column: how many tables are indexed, and the row numbers by value.
        self._by_value: dict[str, tuple[int, dict[object, list[int]]]] = {}

    def add(self, pending: Pending) -> None:
        """Add the changes of one more query."""
        self.layers.append(pending)
        self._image = None

    @property
    def version(self) -> int:
        """How many queries have changed the type; tells whether something derived from these rows is current."""
        return len(self.layers)

    # --- the whole --------------------------------------------------------------------------------------------------

    def image(self) -> pa.Table:
        """The rows that are put, one per id."""
        if self._image is None:
            self._image = self.layers[0].image() if len(self.layers) == 1 else self._last_rows()
        return self._image

    def gone(self) -> pa.Array:
        """The removed ids. Some of them may never have been committed."""
        if len(self.layers) == 1:
            return whole(self.layers[0].removed()["id"])
        self._index()
        return pa.array(self._gone, pa.string())

    def known_addresses(self) -> pa.Table:
        """The ids and row addresses of the committed rows that queries have replaced or removed."""
        met = [table for layer in self.layers for table in (layer.replaced(), layer.removed())]
        together = pa.concat_tables(met)
        return together.filter(pc.is_valid(together[ROW_ADDRESS]))

    def change(self) -> TableChange:
        """The changes in the form that the rule checks take."""
        return TableChange(self.entity, self.image(), self.gone())

    # --- look-ups ---------------------------------------------------------------------------------------------------

    def touches(self, id_: str) -> bool:
        """Whether a row with this id was put or removed."""
        self._index()
        return id_ in self._row_of or id_ in self._gone

    def has(self, id_: str) -> bool:
        """Whether a row is put for this id."""
        self._index()
        return id_ in self._row_of

    def untouched(self, committed: pa.Table) -> pa.Table:
        """The committed rows whose ids no earlier query has put or removed."""
        ids = committed["id"]
        if len(ids) <= _FEW_IDS:
            kept = [not self.touches(id_) for id_ in ids.to_pylist()]
            return committed if all(kept) else committed.filter(pa.array(kept, pa.bool_()))
        touched = pa.concat_arrays([whole(self.image()["id"]), self.gone()])
        return committed.filter(pc.invert(pc.is_in(ids, value_set=touched)))

    def with_ids(self, ids: pa.Array) -> pa.Table:
        """The rows that are put for these ids."""
        self._index()
        found = (self._row_of.get(id_) for id_ in ids.to_pylist())
        return self._take([row for row in found if row is not None])

    def with_values(self, column: str, values: pa.Array) -> pa.Table:
        """The rows that have one of these values in a column; for a column of floats or lists, all rows."""
        if column == "id":
            return self.with_ids(values)
        kind = table_schema(self.entity).field(column).type
        if pa.types.is_floating(kind) or pa.types.is_nested(kind):
            return self.image()
        rows = self._rows_by_value(column)
        current = set(self._row_of.values()) if len(values) > _FEW_IDS else None
        found: list[int] = []
        for value in pc.unique(values).cast(kind).to_pylist():
            if value is not None:
                found += [row for row in rows.get(value, ()) if self._is_current(row, current)]
        return self._take(sorted(found))

    def with_addresses(self, rows: pa.Table) -> pa.Table:
        """The rows with a null row address, because they are not stored anywhere."""
        return rows.append_column(_NOWHERE.field(0), pa.nulls(rows.num_rows, pa.uint64()))

    # --- the dictionaries -------------------------------------------------------------------------------------------

    def _index(self) -> None:
        for layer in self.layers[self._indexed :]:
            for id_ in layer.removed()["id"].to_pylist():
                self._row_of.pop(id_, None)
                self._gone[id_] = None
            image = layer.image()
            if image.num_rows:
                self._tables.append(image)
                self._starts.append(self._count)
                for row, id_ in enumerate(image["id"].to_pylist(), start=self._count):
                    self._row_of[id_] = row
                    self._gone.pop(id_, None)
                self._count += image.num_rows
        self._indexed = len(self.layers)

    def _rows_by_value(self, column: str) -> dict[object, list[int]]:
        self._index()
        read, rows = self._by_value.get(column, (0, {}))
        for start, table in zip(self._starts[read:], self._tables[read:], strict=True):
            for row, value in enumerate(table[column].to_pylist(), start=start):
                rows.setdefault(value, []).append(row)
        self._by_value[column] = (len(self._tables), rows)
        return rows

    def _is_current(self, row: int, current: set[int] | None) -> bool:
        if current is not None:
            return row in current
        place = bisect_right(self._starts, row) - 1
        return self._row_of.get(self._tables[place]["id"][row - self._starts[place]].as_py()) == row

    def _last_rows(self) -> pa.Table:
        self._index()
        return self._take(sorted(self._row_of.values()))

    def _take(self, rows: list[int]) -> pa.Table:
        """The rows with these numbers, which are in ascending order or few."""
        if not rows:
            return table_schema(self.entity).empty_table()
        if len(rows) == self._count:
            return pa.concat_tables(self._tables)
        parts: list[pa.Table] = []
        at = 0
        while at < len(rows):
            place = bisect_right(self._starts, rows[at]) - 1
            start, table = self._starts[place], self._tables[place]
            end = at
            while end < len(rows) and start <= rows[end] < start + table.num_rows:
                end += 1
            numbers = [row - start for row in rows[at:end]]
            parts.append(table if len(numbers) == table.num_rows else table.take(pa.array(numbers, pa.int64())))
            at = end
        return pa.concat_tables(parts)


class Settled:
    """The settled changes of all types of a graph."""

    def __init__(self) -> None:
        self._types: dict[str, SettledRows] = {}

    def of(self, type_key: str) -> SettledRows | None:
        """The changes of a type; None when it has none."""
        return self._types.get(type_key)

    def __iter__(self) -> Iterator[SettledRows]:
        return iter(self._types.values())

    def with_staged(self, staging: Staging) -> Settled:
        """These changes and those that a query has staged so far, as a new object."""
        staged = list(staging)
        if not staged:
            return self
        both = Settled()
        both._types = {**self._types}
        for pending in staged:
            key = pending.entity.type_key
            both._types[key] = SettledRows(pending.entity, [*self._layers_of(key), pending])
        return both

    def _layers_of(self, type_key: str) -> list[Pending]:
        known = self._types.get(type_key)
        return [] if known is None else known.layers

    def add(self, pending: Pending) -> None:
        """Add the changes of one more query to a type."""
        self._types.setdefault(pending.entity.type_key, SettledRows(pending.entity)).add(pending)

    def copy(self) -> Settled:
        """A copy to which changes can be added without affecting this object."""
        made = Settled()
        made._types = {key: SettledRows(rows.entity, rows.layers) for key, rows in self._types.items()}
        return made
