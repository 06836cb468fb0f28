"""Which columns of two versions of a table belong together: by the property's stable id, whatever it was called."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from omnigraph.storage.tables.blobs import blob_columns
from omnigraph.storage.tables.table import Table
from omnigraph.values.columns import PROPERTY_ID

_FIXED = ("id", "src", "dst")


@dataclass(frozen=True, slots=True)
class Column:
    """One column under its newest name, and where it lies on either side; None: that side does not have it."""

    name: str
    before: str | None
    after: str | None


@dataclass(frozen=True)
class Columns:
    """The columns of both sides together. Both images of a change use the same names."""

    all: tuple[Column, ...]

    @property
    def one_sided(self) -> tuple[Column, ...]:
        return tuple(column for column in self.all if column.before is None or column.after is None)

    @property
    def shared(self) -> tuple[Column, ...]:
        return tuple(column for column in self.all if column.before is not None and column.after is not None)

    def stored_before(self, names: frozenset[str] | None = None) -> dict[str, str]:
        """The columns the earlier side stores, by their stored name, with the names they are shown under."""
        return {column.before: column.name for column in self.all if column.before and _among(column, names)}

    def stored_after(self, names: frozenset[str] | None = None) -> dict[str, str]:
        """The columns the later side stores, by their stored name, with the names they are shown under."""
        return {column.after: column.name for column in self.all if column.after and _among(column, names)}


def match_columns(before: Table | None, after: Table | None) -> Columns:
    """The columns of two sides, one of which may not exist: those of the later side first."""
    old = {} if before is None else _by_identity(before.schema)
    new = {} if after is None else _by_identity(after.schema)
    matched = [Column(name, old.get(identity), name) for identity, name in new.items()]
    # A name may have passed to a property that had another one before; then the old bearer says which it is.
    taken = {column.name for column in matched if column.before is not None}
    for identity, name in old.items():
        if identity not in new:
            matched.append(Column(f"{name}#{identity.decode()}" if name in taken else name, name, None))
    return Columns(tuple(matched))


def has_values(table: Table, name: str) -> bool:
    """Whether any row has a value in a column. Of blobs it is taken for granted, they can not be asked."""
    return name in blob_columns(table.schema) or table.count_rows(f"`{name}` is not null") > 0


def _among(column: Column, names: frozenset[str] | None) -> bool:
    return names is None or column.name in names


def _by_identity(schema: pa.Schema) -> dict[bytes, str]:
    return {_identity(field): field.name for field in schema}


def _identity(field: pa.Field) -> bytes:
    own: bytes = field.name.encode()
    if field.name in _FIXED:
        return own
    identity: bytes = (field.metadata or {}).get(PROPERTY_ID, own)
    return identity
