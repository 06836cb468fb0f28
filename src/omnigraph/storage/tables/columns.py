"""Changes the columns of a table in one staged transaction. Data that stays the same is not rewritten.

Adding null columns, dropping, renaming and changing nullability only change the schema. A column whose values are made
(filled, widened, computed) is written to new files beside the others, and replaces the column it is made from; the indexes
of the replaced column are dropped, all others stay. In such a transaction Lance can not change the nullability of a kept
column, nor give it a name that another column has now: then that column is written to new files too. A blob column can not
be, so the table is rewritten.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc
from lance import LanceDataset, LanceOperation, Transaction
from lance.fragment import FragmentMetadata
from lance.schema import LanceSchema

from omnigraph.storage.tables.lance_errors import translated
from omnigraph.storage.tables.lance_fields import (
    StoredField,
    largest_id,
    new_field,
    schema_of,
    stored_fields,
)
from omnigraph.storage.tables.staged import Staged, stage_overwrite
from omnigraph.storage.tables.table import Table

#: How many rows are in memory at once while a column is made.
BATCH_ROWS = 8192


class Values(Protocol):
    """Makes the values of a column from stored columns, batch by batch. Must be picklable."""

    @property
    def reads(self) -> tuple[str, ...]:
        """The stored columns that it needs."""
        ...

    def __call__(self, batch: pa.RecordBatch) -> pa.Array:
        """One value per row of the batch."""
        ...

    def ahead(self, table: Table, fragment: int) -> Values:
        """The same for one fragment, with the data of other tables read already: Lance can not be asked while it writes."""
        ...


@dataclass(frozen=True)
class Column:
    """The target form of a column. `stored`: its current name, None for a new column. `values`: makes missing values.

    A row without a stored value gets the value of `values`; if that is null too it gets `fill`, or null. `cast` converts
    stored values of another type to the type of `field`.
    """

    field: pa.Field
    stored: str | None = None
    fill: pa.Scalar | None = None
    values: Values | None = None
    cast: Callable[[pa.Array, pa.DataType], pa.Array] | None = None

    @property
    def made(self) -> bool:
        """Whether its values must be made, and are not just the stored values or nulls."""
        return self.fill is not None or self.values is not None or self.cast is not None

    @property
    def reads(self) -> tuple[str, ...]:
        """The stored columns that its values are made from."""
        own = () if self.stored is None else (self.stored,)
        return (*own, *(() if self.values is None else self.values.reads))


def ahead(column: Column, table: Table, fragment: int) -> Column:
    """The column for one fragment, prepared so that making its values does not ask Lance."""
    return column if column.values is None else replace(column, values=column.values.ahead(table, fragment))


def values_of(column: Column, batch: pa.RecordBatch) -> pa.Array:
    """The values of a column for a batch of stored rows; the batch has all columns in `column.reads`."""
    kind = column.field.type
    found: pa.Array | None = None
    if column.stored is not None:
        found = batch.column(column.stored)
        found = found if column.cast is None else column.cast(found, kind)
    if column.values is not None and (found is None or found.null_count):
        made = column.values(batch)
        found = made if found is None else pc.coalesce(found, made)
    if column.fill is not None:
        found = pa.repeat(column.fill, batch.num_rows) if found is None else pc.fill_null(found, column.fill)
    if found is not None:
        return found
    # Arrow makes no nulls of an extension type; for blobs plain nulls can be written.
    return pa.nulls(batch.num_rows) if isinstance(kind, pa.BaseExtensionType) else pa.nulls(batch.num_rows, kind)


def reads_of(columns: Sequence[Column]) -> list[str]:
    """The stored columns that these columns are made from; at least `id`, which gives the number of rows."""
    return list(dict.fromkeys(name for column in columns for name in column.reads)) or ["id"]


#: Writes made columns to new files for every fragment of a table, under the given names.
Beside = Callable[[Table, Sequence[Column], Sequence[str]], tuple[list[FragmentMetadata], LanceSchema]]


def stage_columns(table: Table, columns: Sequence[Column], beside: Beside | None = None) -> Staged:
    """Stage a table with exactly these columns, in this order. `beside`: another way to write columns to new files."""
    columns = [_needed(table, column) for column in columns]
    if not any(column.made for column in columns) or not table.fragment_count:
        return _project(table, columns)
    columns = [_copied(column) if _has_to_move(table, column) else column for column in columns]
    if any(column.made and isinstance(column.field.type, pa.BaseExtensionType) for column in columns):
        return _rewrite(table, columns)
    return _write_beside(table, columns, beside or write_beside)


def _needed(table: Table, column: Column) -> Column:
    """The column, as a plain kept column if no stored value is null, so that nothing must be made."""
    if column.stored is None or column.cast is not None or (column.fill is None and column.values is None):
        return column
    if not table.schema.field(column.stored).nullable or not table.count_rows(f"`{column.stored}` is null"):
        return Column(column.field, column.stored)
    return column


def _has_to_move(table: Table, column: Column) -> bool:
    if column.stored is None or column.made:
        return False
    return _nullability_changes(table, column) or _takes_a_name(table, column)


def _nullability_changes(table: Table, column: Column) -> bool:
    return column.stored is not None and column.field.nullable != table.schema.field(column.stored).nullable


def _takes_a_name(table: Table, column: Column) -> bool:
    return column.stored not in (None, column.field.name) and column.field.name in table.schema.names


def _as_it_is(values: pa.Array, _: pa.DataType) -> pa.Array:
    return values


def _copied(column: Column) -> Column:
    """A kept column that is to be written again unchanged."""
    return replace(column, cast=_as_it_is)


def _project(table: Table, columns: Sequence[Column]) -> Staged:
    """Stage a change of the schema alone."""
    dataset = table.dataset
    stored, free = stored_fields(dataset.lance_schema), dataset.max_field_id + 1
    fields: list[StoredField] = []
    for column in columns:
        if column.stored is None or column.cast is not None:
            fields.append(new_field(column.field, free))
            free += len(fields[-1].messages)
        else:
            fields.append(_kept(table, stored[column.stored], column))
    operation = LanceOperation.Project(schema_of(fields, dataset.lance_schema))
    return Staged("columns", table.location, table.version, Transaction(table.version, operation))


def _kept(table: Table, field: StoredField, column: Column) -> StoredField:
    if column.field.name != column.stored:
        field = field.renamed(column.field.name)
    return field.made_nullable(column.field.nullable) if _nullability_changes(table, column) else field


def _write_beside(table: Table, columns: Sequence[Column], beside: Beside) -> Staged:
    """Write new data files for the made columns, one per fragment, under temporary names that clash with no column."""
    made = [column for column in columns if column.made]
    interim = [f"__column_{number}" for number in range(len(made))]
    fragments, widened = beside(table, made, interim)
    names = {id(column): name for column, name in zip(made, interim, strict=True)}
    stored, free = stored_fields(widened), largest_id(widened) + 1
    fields: list[StoredField] = []
    for column in columns:
        if id(column) in names:
            fields.append(stored[names[id(column)]].renamed(column.field.name))
        elif column.stored is not None:
            fields.append(_kept(table, stored[column.stored], column))
        else:
            fields.append(new_field(column.field, free))
            free += len(fields[-1].messages)
    operation = LanceOperation.Merge(fragments, schema_of(fields, widened))
    return Staged("columns", table.location, table.version, Transaction(table.version, operation))


def write_beside(
    table: Table, columns: Sequence[Column], names: Sequence[str], only: Sequence[int] | None = None
) -> tuple[list[FragmentMetadata], LanceSchema]:
    """Write columns for every fragment, or those in `only`; nothing is visible yet. All fragments get the same field ids."""
    schema = pa.schema([column.field.with_name(name) for column, name in zip(columns, names, strict=True)])

    def values(made: Sequence[Column], batch: pa.RecordBatch) -> pa.RecordBatch:
        arrays = [values_of(column, batch).cast(column.field.type) for column in made]
        return pa.RecordBatch.from_arrays(arrays, schema=schema)

    fragments: list[FragmentMetadata] = []
    dataset: LanceDataset = table.dataset
    for fragment in dataset.get_fragments():
        if only is None or fragment.fragment_id in only:
            made = partial(values, [ahead(column, table, fragment.fragment_id) for column in columns])
            with translated(str(table.location), "write new columns of"):
                metadata, widened = fragment.merge_columns(made, columns=reads_of(columns), batch_size=BATCH_ROWS)
            fragments.append(metadata)
    return fragments, widened


def _rewrite(table: Table, columns: Sequence[Column]) -> Staged:
    schema = pa.schema([column.field for column in columns])

    def rows() -> Iterator[pa.RecordBatch]:
        for batch in table.scan(reads_of(columns), blobs="values"):
            arrays = [values_of(column, batch) for column in columns]
            yield pa.RecordBatch.from_arrays(arrays, names=schema.names)

    return stage_overwrite(table, rows(), schema)
