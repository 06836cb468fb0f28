"""Collects the changes of one mutation's statements. Nothing is durable; later statements see earlier ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.ids import new_ulid
from omnigraph.language.schema.catalog import Catalog, EdgeType, NodeType
from omnigraph.storage.tables.table import ROW_ADDRESS
from omnigraph.validation.sets import TableChange
from omnigraph.values.columns import Row, table_of, table_schema
from omnigraph.values.identity import derive_ids

Entity = NodeType | EdgeType


class Pending:
    """The pending rows and removals of one type. Of several rows with one id, the last counts."""

    def __init__(self, entity: Entity, new_id: Callable[[], str]) -> None:
        self.entity = entity
        self._new_id = new_id
        self._rows: list[Row] = []
        self._tables: list[pa.Table] = []
        self._image: pa.Table | None = None
        self._replaced: list[pa.Table] = []
        self._removed: list[pa.Table] = []
        #: By `@embed` property: the ids of inserted rows that left the vector out.
        self._left_out: dict[str, set[str]] = {
            name: set() for name, declared in entity.properties.items() if declared.embed is not None
        }

    # --- rows that are put ------------------------------------------------------------------------------------------

    def put(self, row: Row) -> None:
        """Add one row without an id, which is derived from its key or generated. It may leave `@embed` vectors out."""
        self._rows.append(row)
        self._image = None

    def put_changed(self, rows: pa.Table, replaced: pa.Table) -> None:
        """Add rows that replace others. `replaced`: the ids and addresses of the replaced committed rows."""
        self._flush()
        self._tables.append(rows)
        self._replaced.append(replaced)
        self._image = None

    def image(self) -> pa.Table:
        """The pending rows, one per id."""
        self._flush()
        if self._image is None:
            self._image = _last_of_each(self._tables, table_schema(self.entity))
            self._tables = [self._image] if self._image.num_rows else []
        return self._image

    def replaced(self) -> pa.Table:
        """The ids and row addresses of the committed rows that pending rows are known to replace."""
        return _together(self._replaced)

    def _flush(self) -> None:
        if self._rows:
            table = _with_ids(self.entity, self._rows, self._new_id)
            self._tables.append(table)
            for name, ids in self._left_out.items():
                for row, entity_id in zip(self._rows, table["id"].to_pylist(), strict=True):
                    # The later of two rows with one id replaces the whole earlier row.
                    (ids.discard if name in row else ids.add)(entity_id)
            self._rows = []

    # --- vectors that are made from texts ---------------------------------------------------------------------------

    def left_out(self, name: str) -> pa.Array:
        """The ids of the inserted rows that left this `@embed` vector out."""
        self._flush()
        return pa.array(self._left_out[name], pa.string())

    def fill(self, name: str, rows: pa.Array, values: pa.Array) -> None:
        """Set a column's values in these rows of the image, given by position."""
        image = self.image()
        column = image[name].combine_chunks()
        places = np.arange(len(column))
        places[rows.to_numpy()] = len(column) + np.arange(len(rows))
        filled = pa.concat_arrays([column, values]).take(pa.array(places))
        place = image.schema.get_field_index(name)
        self._image = image.set_column(place, image.schema.field(place), filled)
        self._tables = [self._image]

    # --- rows that go -----------------------------------------------------------------------------------------------

    def remove(self, found: pa.Table) -> pa.Array:
        """Mark committed rows, given by id and address, as removed; returns the ids that were not marked before."""
        fresh = found.filter(pc.invert(pc.is_in(found["id"], value_set=self.removed()["id"].combine_chunks())))
        self._removed.append(fresh.select(["id", ROW_ADDRESS]))
        return fresh["id"].combine_chunks()

    def removed(self) -> pa.Table:
        """The ids and row addresses of the committed rows that are removed."""
        return _together(self._removed)

    @property
    def is_empty(self) -> bool:
        return not (self._rows or any(table.num_rows for table in (*self._tables, *self._removed)))


class Staging:
    """The pending changes of all types. `new_id` generates the ids of rows without a key."""

    def __init__(self, catalog: Catalog, new_id: Callable[[], str] = new_ulid) -> None:
        self.catalog = catalog
        self._new_id = new_id
        self._pending: dict[str, Pending] = {}

    def of(self, entity: Entity) -> Pending:
        """The pending changes of a type."""
        if entity.type_key not in self._pending:
            self._pending[entity.type_key] = Pending(entity, self._new_id)
        return self._pending[entity.type_key]

    def __iter__(self) -> Iterator[Pending]:
        return (pending for pending in self._pending.values() if not pending.is_empty)

    def changes(self) -> dict[str, TableChange]:
        """The changes in the form that the rule checks take."""
        return {
            pending.entity.type_key: TableChange(
                pending.entity, pending.image(), pending.removed()["id"].combine_chunks()
            )
            for pending in self
        }


_FOUND = pa.schema([("id", pa.string()), (ROW_ADDRESS, pa.uint64())])


def _together(tables: list[pa.Table]) -> pa.Table:
    plain = [pa.Table.from_arrays([table["id"], table[ROW_ADDRESS]], schema=_FOUND) for table in tables]
    return pa.concat_tables(plain) if plain else _FOUND.empty_table()


def _with_ids(entity: Entity, rows: list[Row], new_id: Callable[[], str]) -> pa.Table:
    if entity.key is None:
        return table_of(entity, [{**row, "id": new_id()} for row in rows])
    table = table_of(entity, [{**row, "id": ""} for row in rows])
    return table.set_column(0, table.schema.field(0), derive_ids(entity, table))


def _last_of_each(tables: list[pa.Table], schema: pa.Schema) -> pa.Table:
    if not tables:
        return schema.empty_table()
    # Not cast: a required value may be missing here, until it is embedded or the rule checks refuse it.
    whole = pa.concat_tables(tables)
    if pc.count_distinct(whole["id"]).as_py() == whole.num_rows:
        return whole
    places = pa.table({"id": whole["id"], "place": pa.array(range(whole.num_rows), pa.int64())})
    last = places.group_by("id").aggregate([("place", "max")])["place_max"].combine_chunks()
    return whole.take(last.take(pc.array_sort_indices(last)))
