"""One version of a table in a merge, and images of its entities for comparison."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.changes.compare import differing
from omnigraph.evolution.image import fill_of, null_fill
from omnigraph.language.schema.catalog import EdgeType, NodeType
from omnigraph.merge.combine import Mask, align, flat
from omnigraph.storage.tables.columns import Column
from omnigraph.storage.tables.table import ROW_ADDRESS, Blobs, Table
from omnigraph.values.columns import PROPERTY_ID, table_schema
from omnigraph.values.widening import converted, convertible

Places = npt.NDArray[np.int64]


@dataclass(frozen=True)
class View:
    """A version of a table as seen through the merged schema. `table`: None if this version lacks the table."""

    table: Table | None
    columns: Mapping[str, Column]

    @property
    def is_plain(self) -> bool:
        """Whether the version has every column of the merged schema."""
        return self.table is not None and all(column.stored is not None for column in self.columns.values())

    @property
    def extra(self) -> bool:
        """Whether the version has columns that the merged schema lacks."""
        kept = {column.stored for column in self.columns.values()}
        return self.table is not None and any(name not in kept for name in self.table.schema.names)

    def without(self, names: Collection[str]) -> View:
        """The same version without some columns."""
        columns = {
            name: Column(column.field, None, column.fill) if name in names else column
            for name, column in self.columns.items()
        }
        return View(self.table, columns)

    def named(self, rows: pa.Table) -> pa.Table:
        """Rows with this version's column names, converted to the merged schema."""
        return self._brought(rows, list(self.columns))

    def rows(
        self,
        ids: pa.Array,
        columns: Sequence[str],
        *,
        with_row_address: bool = False,
        blobs: Blobs = "descriptors",
    ) -> pa.Table:
        """The rows with these ids, in no particular order."""
        if self.table is None:
            none = pa.table({"id": pa.array([], pa.string()), ROW_ADDRESS: pa.array([], pa.uint64())})
            return self._brought(none if with_row_address else none.select(["id"]), columns)
        stored = [self.columns[name].stored for name in columns]
        wanted = list(dict.fromkeys(name for name in stored if name is not None))
        taken = self.table.take_ids(ids, wanted, with_row_address=with_row_address, blobs=blobs)
        return self._brought(taken, columns)

    def by_value(self, column: str, values: pa.Array, columns: Sequence[str]) -> pa.Table:
        """The rows whose column has one of these values. A column that this version lacks has the same value in all rows."""
        wanted = self.columns[column]
        if self.table is None or (wanted.stored is None and wanted.fill is None):
            return self.rows(values.slice(0, 0).cast(pa.string()), columns)
        stored = list(dict.fromkeys(found for name in columns if (found := self.columns[name].stored) is not None))
        same = wanted.fill is not None and bool(
            pc.any(pc.is_in(values, value_set=pa.array([wanted.fill.as_py()], values.type))).as_py()
        )
        if wanted.stored is None:
            all_rows = self.table.scan(stored) if same else ()
            return self._brought(pa.Table.from_batches(all_rows, schema=self.table.empty(stored).schema), columns)
        kind = self.table.schema.field(wanted.stored).type
        # A value that the narrower column can not hold occurs in none of its rows.
        asked = values if pa.types.is_nested(values.type) else converted(values, kind)
        rows = self.table.take_by(wanted.stored, asked, stored)
        if same:
            rows = pa.concat_tables([rows, self.table.read(stored, f"`{wanted.stored}` is null")])
        return self._brought(rows, columns)

    def _brought(self, rows: pa.Table, columns: Sequence[str]) -> pa.Table:
        arrays, names = [], []
        for name in columns:
            arrays.append(_values(self.columns[name], rows))
            names.append(name)
        if ROW_ADDRESS in rows.column_names:
            arrays.append(rows[ROW_ADDRESS])
            names.append(ROW_ADDRESS)
        return pa.Table.from_arrays(arrays, names=names)

    def image(self, ids: pa.Array, columns: Sequence[str]) -> Image:
        """The image of these entities in this version."""
        return Image(ids, *align(self.rows(ids, columns), ids), self)


def view_of(table: Table | None, entity: NodeType | EdgeType, names: Mapping[int, str]) -> View:
    """A version of a table seen through the merged type. `names`: the merged names of its properties, by number."""
    stored: dict[str, pa.Field] = {}
    for field in () if table is None else table.schema:
        number = (field.metadata or {}).get(PROPERTY_ID)
        name = field.name if number is None else names.get(int(number))
        if name is not None:
            stored[name] = field
    columns: dict[str, Column] = {}
    for field in table_schema(entity):
        declared, found = entity.properties.get(field.name), stored.get(field.name)
        if found is not None and convertible(found.type, field.type):
            columns[field.name] = Column(field, found.name, null_fill(declared, found.nullable))
        else:
            columns[field.name] = Column(field, None, None if declared is None else fill_of(declared))
    return View(table, columns)


def _values(column: Column, rows: pa.Table) -> pa.ChunkedArray | pa.Array:
    kind = column.field.type
    if column.stored is not None and column.stored in rows.column_names:
        found = rows[column.stored]
        # Lance returns descriptors for blobs, and other item names for lists; both are used unchanged.
        same = isinstance(kind, pa.BaseExtensionType) or str(found.type) == str(kind)
        found = found if same or not convertible(found.type, kind) else converted(found, kind)
        return found if column.fill is None else pc.fill_null(found, column.fill)
    if column.fill is not None:
        return pa.repeat(column.fill, rows.num_rows)
    # Arrow makes no nulls of an extension type; for blobs plain nulls can be compared and written.
    return pa.nulls(rows.num_rows) if isinstance(kind, pa.BaseExtensionType) else pa.nulls(rows.num_rows, kind)


@dataclass(frozen=True)
class Image:
    """Some entities, in a given order, as they are in one version. `present`: which of them the version has."""

    ids: pa.Array
    rows: pa.Table | None
    present: Mask
    view: View

    def take(self, places: Places) -> Image:
        """The image of the entities at these positions."""
        chosen = pa.array(places)
        rows = None if self.rows is None else self.rows.take(chosen)
        return Image(self.ids.take(chosen), rows, self.present[places], self.view)

    def at(self, ids: pa.Array) -> Image:
        """The image of these entities; all ids must be in this image."""
        return self.take(pc.index_in(ids, value_set=self.ids).to_numpy())

    def blobs(self, name: str, places: Places) -> pa.Array:
        """The bytes of one blob column for the entities at these positions."""
        wanted = self.ids.take(pa.array(places))
        return flat(align(self.view.rows(wanted, ["id", name], blobs="bytes"), wanted)[0][name])


def alike(one: Image, other: Image, names: Sequence[str]) -> Mask:
    """Where two images are equal: absent in both, or with equal typed values in these columns."""
    same: Mask = ~one.present & ~other.present
    places = np.flatnonzero(one.present & other.present)
    if len(places):
        first, second = one.take(places), other.take(places)
        same[places] = ~differing(first.rows, second.rows, names, partial(_bytes, first, second))
    return same


def _bytes(one: Image, other: Image, name: str, places: Places) -> tuple[pa.Array, pa.Array]:
    return one.blobs(name, places), other.blobs(name, places)
