"""Lance schemas with chosen field ids. Lance identifies a column by its field id, so a rename or a drop moves no data.

The only way to build such a schema is Lance's pickle format: one protobuf message per field, parents before children.
In a message the last value of a field wins, so changes are appended; nothing is parsed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
from lance.schema import LanceSchema

if TYPE_CHECKING:
    # Lance's native module has no submodules at run time.
    from lance.lance.schema import LanceField

_NAME, _ID, _PARENT, _NULLABLE = b"\x12", b"\x18", b"\x20", b"\x30"
_NO_PARENT = -1


@dataclass(frozen=True)
class StoredField:
    """One top-level field of a table, as protobuf messages: its own first, then those of its children."""

    messages: tuple[bytes, ...]

    def renamed(self, name: str) -> StoredField:
        """The same column under another name."""
        encoded = name.encode()
        return self._with(_NAME + _varint(len(encoded)) + encoded)

    def made_nullable(self, nullable: bool = True) -> StoredField:
        """The same column with another nullability."""
        return self._with(_NULLABLE + _varint(int(nullable)))

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
    """A field that the table does not have yet; it and its children take ids from `first_id` on."""
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
    """A schema of these fields, in this order, with the metadata of `like`."""
    metadata, _ = _pickled(like)
    return LanceSchema._from_protos(metadata, *(message for field in fields for message in field.messages))


def largest_id(schema: LanceSchema) -> int:
    """The largest field id in a schema, including children."""
    return max(own for field in schema.fields() for own, _ in _with_children(field, _NO_PARENT))


def _pickled(schema: LanceSchema) -> tuple[str, list[bytes]]:
    """The metadata and the messages of a schema."""
    reduced = schema.__reduce__()
    assert isinstance(reduced, tuple), "a schema is pickled as a function and its arguments"
    metadata, *messages = reduced[1]
    return metadata, messages


def _with_children(field: LanceField, parent: int) -> Iterator[tuple[int, int]]:
    """The ids of a field and of all its descendants, each with its parent's id, in the order of their messages."""
    yield field.id(), parent
    for child in field.children():
        yield from _with_children(child, field.id())


def _varint(number: int) -> bytes:
    # Protobuf encodes a negative number as 64 bits.
    rest, encoded = number & (1 << 64) - 1, bytearray()
    while rest > 127:
        encoded.append(rest & 127 | 128)
        rest >>= 7
    return bytes([*encoded, rest])
