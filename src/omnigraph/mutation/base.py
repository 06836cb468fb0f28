"""The base of one attempt at a write: a branch as it was captured once, and which of its tables were looked at."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from omnigraph.commit.context import CommitContext
from omnigraph.commit.model import ManifestState, TableEntry
from omnigraph.storage.tables.table import Table


class Base:
    """Reads the captured versions; every table touched becomes a requirement of the write. Thrown away after a commit."""

    def __init__(self, context: CommitContext, state: ManifestState) -> None:
        self.context = context
        self.state = state
        self._touched: dict[str, TableEntry] = {}

    def entry(self, type_key: str) -> TableEntry:
        """The captured table of a type."""
        entry = self.state.by_key[type_key]
        self._touched[type_key] = entry
        return entry

    def table(self, type_key: str) -> Table:
        """The captured version of a type's table, opened."""
        entry = self.entry(type_key)
        return self.context.tables.open(entry.location, entry.version)

    # --- what a query reads from: the base is a view ----------------------------------------------------------------

    @property
    def commit(self) -> str:
        """The head of the branch when it was captured."""
        return self.state.head

    def open(self, type_key: str) -> Table:
        """The captured version of a type's table, opened."""
        return self.table(type_key)

    def read_only(self, written: set[str]) -> tuple[TableEntry, ...]:
        """The tables that were looked at and are not written."""
        return tuple(entry for key, entry in self._touched.items() if key not in written)

    # --- the look-ups of the set rules ------------------------------------------------------------------------------

    def by_id(self, type_key: str, ids: pa.Array, columns: Sequence[str]) -> pa.Table:
        """The committed rows with these ids."""
        return self.by_value(type_key, "id", ids, columns)

    def by_value(
        self,
        type_key: str,
        column: str,
        values: pa.Array,
        columns: Sequence[str],
        *,
        with_row_address: bool = False,
    ) -> pa.Table:
        """The committed rows whose column has one of these values."""
        return self.table(type_key).take_by(column, values, columns, with_row_address=with_row_address)
