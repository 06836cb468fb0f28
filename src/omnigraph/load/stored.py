"""Looks up stored rows by key, in every task of a load."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from omnigraph.storage.root import Root
from omnigraph.storage.tables.handles import Tables
from omnigraph.storage.tables.location import Location
from omnigraph.storage.tables.table import Table


@dataclass(frozen=True, slots=True)
class Pin:
    """A table at the version that a load was prepared against."""

    location: Location
    version: int
    row_count: int


@dataclass(frozen=True)
class Stored:
    """The captured tables by type key. The description is small enough to be sent to every task."""

    root: Root
    pins: Mapping[str, Pin]

    @cached_property
    def _tables(self) -> Tables:
        return Tables(self.root)

    def __getstate__(self) -> dict[str, object]:
        return {"root": self.root, "pins": self.pins}

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state)

    def table(self, type_key: str) -> Table:
        pin = self.pins[type_key]
        return self._tables.open(pin.location, pin.version)

    def rows_with(
        self,
        type_key: str,
        column: str,
        values: pa.Array,
        columns: Sequence[str],
        *,
        with_row_address: bool = False,
    ) -> pa.Table:
        """The stored rows whose `column` has one of these values."""
        wanted = values if self.pins[type_key].row_count else values.slice(0, 0)
        return self.table(type_key).take_by(column, wanted, columns, with_row_address=with_row_address)

    def whole_rows(self, type_key: str, ids: pa.Array, columns: Sequence[str]) -> pa.Table:
        """Columns of the stored rows with these ids, with blob contents, ready to be written again."""
        return self.table(type_key).take_ids(ids, columns, blobs="values")
