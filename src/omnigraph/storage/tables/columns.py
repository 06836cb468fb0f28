"""Other columns for a table, staged as one transaction. What is kept is never written again.

Adding columns of nulls, dropping, renaming and allowing null only change the schema. A column that is new and filled is
written beside the others. Lance takes no filled column in one transaction with a newly allowed null, or with a rename to
a name that another column has now; then, and only then, the table is rewritten, and loses its indexes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
from lance import LanceOperation, Transaction
from lance.schema import LanceSchema

from omnigraph.storage.tables.lance_errors import translated
from omnigraph.storage.tables.staged import Staged, stage_overwrite
from omnigraph.storage.tables.table import Table

if TYPE_CHECKING:
    from lance.lance.schema import LanceField


_NAME, _ID, _PARENT, _NULLABLE = b"\x12", b"\x18", b"\x20", b"\x30"
_NO_PARENT = -1


@dataclass(frozen=True)
class StoredField:
    """One top-level field of a table: its messages, its own before those of its children."""

    messages: tuple[bytes, ...]

    def renamed(self, name: str) -> StoredField:
        """The same column under another name."""
        encoded = name.encode()
        return self._with(_NAME + _varint(len(encoded)) + encoded)

    def made_nullable(self) -> StoredField:
        """The same column, which may hold null from now on."""
        return self._with(_NULLABLE + _varint(1))

    def _with(self, change: bytes) -> StoredField:
        return StoredField((self.messages[0] + change, *self.messages[1:]))


def stored_fields(schema: LanceSchema) -> dict[str, StoredField]:
    """The top-level fields of a table by name."""
    messages = iter(_pickled(schema)[1])
    return {
        field.name(): StoredField(tuple(next(messages) for _ in _with_children(field, _NO_PARENT)))
        for field in schema.fields()
    }


def new_field(field: pa.Field, first_id: int) -> StoredField:
    """A field the table does not have yet; it takes ids from `first_id` on, one for itself and one for each child."""
    schema = LanceSchema.from_pyarrow(pa.schema([field]))
    places = list(_with_children(schema.fields()[0], _NO_PARENT))
    ids = {old: first_id + position for position, (old, _) in enumerate(places)} | {_NO_PARENT: _NO_PARENT}
    return StoredField(
        tuple(
            message + _ID + _varint(ids[old]) + _PARENT + _varint(ids[parent])
            for message, (old, parent) in zip(_pickled(schema)[1], places, strict=True)
        )
    )


def schema_of(fields: Sequence[StoredField], like: LanceSchema) -> LanceSchema:
    """A schema of these fields, in this order, with the metadata of another one."""
    metadata, _ = _pickled(like)
    return LanceSchema._from_protos(metadata, *(message for field in fields for message in field.messages))


def largest_id(schema: LanceSchema) -> int:
    """The largest field id in a schema, children counted."""
    return max(own for field in schema.fields() for own, _ in _with_children(field, _NO_PARENT))


def _pickled(schema: LanceSchema) -> tuple[str, list[bytes]]:
    """The metadata and the messages of a schema."""
    reduced = schema.__reduce__()
    assert isinstance(reduced, tuple), "a schema is pickled as a function and its arguments"
    metadata, *messages = reduced[1]
    return metadata, messages


def _with_children(field: LanceField, parent: int) -> Iterator[tuple[int, int]]:
    """The id and the parent's id of a field and of all below it, in the order of their messages."""
    yield field.id(), parent
    for child in field.children():
        yield from _with_children(child, field.id())


def _varint(number: int) -> bytes:
    # Protobuf writes a negative number as if it had 64 bits.
    rest, encoded = number & (1 << 64) - 1, bytearray()
    while rest > 127:
        encoded.append(rest & 127 | 128)
        rest >>= 7
    return bytes([*encoded, rest])


@dataclass(frozen=True)
class Column:
    """A column as it is to be. `stored`: what it is called now, None for a new one, whose rows get `fill` or null."""

    field: pa.Field
    stored: str | None = None
    fill: pa.Scalar | None = None


def stage_columns(table: Table, columns: Sequence[Column]) -> Staged:
    """The table with exactly these columns, in this order."""
    filled = [column for column in columns if column.fill is not None]
    if not filled or not table.fragment_count:
        return _project(table, columns)
    if any(_newly_nullable(table, column) or _takes_a_name(table, column) for column in columns):
        return _rewrite(table, columns)
    return _write_beside(table, columns, filled)


def _newly_nullable(table: Table, column: Column) -> bool:
    return column.stored is not None and column.field.nullable and not table.schema.field(column.stored).nullable


def _takes_a_name(table: Table, column: Column) -> bool:
    return column.stored not in (None, column.field.name) and column.field.name in table.schema.names


def _project(table: Table, columns: Sequence[Column]) -> Staged:
    """Only the schema changes."""
    dataset = table.dataset
    stored, free = stored_fields(dataset.lance_schema), dataset.max_field_id + 1
    fields: list[StoredField] = []
    for column in columns:
        if column.stored is None:
            fields.append(new_field(column.field, free))
            free += len(fields[-1].messages)
        else:
            fields.append(_kept(table, stored[column.stored], column))
    operation = LanceOperation.Project(schema_of(fields, dataset.lance_schema))
    return Staged("columns", table.location, table.version, Transaction(table.version, operation))


def _kept(table: Table, field: StoredField, column: Column) -> StoredField:
    if column.field.name != column.stored:
        field = field.renamed(column.field.name)
    return field.made_nullable() if _newly_nullable(table, column) else field


def _write_beside(table: Table, columns: Sequence[Column], filled: Sequence[Column]) -> Staged:
    """New data files for the filled columns, one per fragment, under names that clash with none."""
    interim = {id(column): f"__column_{number}" for number, column in enumerate(filled)}
    schema = pa.schema([column.field.with_name(interim[id(column)]) for column in filled])

    def values(batch: pa.RecordBatch) -> pa.RecordBatch:
        repeated = [pa.repeat(column.fill, batch.num_rows) for column in filled]
        return pa.RecordBatch.from_arrays(repeated, schema=schema)

    fragments = []
    with translated(str(table.location), "write new columns of"):
        for fragment in table.dataset.get_fragments():
            metadata, widened = fragment.merge_columns(values, columns=["id"])
            fragments.append(metadata)
    stored, free = stored_fields(widened), largest_id(widened) + 1
    fields: list[StoredField] = []
    for column in columns:
        if column.stored is not None:
            fields.append(_kept(table, stored[column.stored], column))
        elif id(column) in interim:
            fields.append(stored[interim[id(column)]].renamed(column.field.name))
        else:
            fields.append(new_field(column.field, free))
            free += len(fields[-1].messages)
    operation = LanceOperation.Merge(fragments, schema_of(fields, widened))
    return Staged("columns", table.location, table.version, Transaction(table.version, operation))


def _rewrite(table: Table, columns: Sequence[Column]) -> Staged:
    schema = pa.schema([column.field for column in columns])

    def rows() -> Iterator[pa.RecordBatch]:
        kept = [column.stored for column in columns if column.stored is not None]
        for batch in table.scan(kept, blobs="values"):
            arrays = [_values(column, batch) for column in columns]
            yield pa.RecordBatch.from_arrays(arrays, names=schema.names)

    return stage_overwrite(table, rows(), schema)


def _values(column: Column, batch: pa.RecordBatch) -> pa.Array:
    if column.stored is not None:
        return batch.column(column.stored)
    if column.fill is not None:
        return pa.repeat(column.fill, batch.num_rows)
    # Arrow makes no nulls of an extension type; what is written takes plain ones for blobs.
    kind = column.field.type
    return pa.nulls(batch.num_rows) if isinstance(kind, pa.BaseExtensionType) else pa.nulls(batch.num_rows, kind)
