"""What is stored already, looked up by key: through an index, or in one pass over the column where that is cheaper."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.storage.root import Root
from omnigraph.storage.tables.handles import Tables
from omnigraph.storage.tables.location import Location
from omnigraph.storage.tables.table import Table

#: A look-up of one value through an index costs about as much as reading this many values of the column.
VALUES_PER_LOOKUP = 40
#: Rows read at once: the set of wanted values is hashed once for each batch.
_SCAN_ROWS = 1 << 20


@dataclass(frozen=True, slots=True)
class Pin:
    """A table at the version a load was prepared against."""

    location: Location
    version: int
    row_count: int


@dataclass(frozen=True)
class Stored:
    """The captured tables by type key; small enough to be sent to every task."""

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
        """The stored rows whose column has one of these values."""
        table, names = self.table(type_key), list(columns)
        if not len(values) or not self.pins[type_key].row_count:
            return table.take_by(column, values.slice(0, 0), names, with_row_address=with_row_address)
        if pa.types.is_nested(values.type):
            # A list can not be looked up by value; the caller compares whole rows anyway.
            return table.read(names, with_row_address=with_row_address)
        if self._is_looked_up(type_key, table, column, len(values)):
            return table.take_by(column, values, names, with_row_address=with_row_address)
        wanted = pc.unique(values).cast(table.schema.field(column).type)
        if pa.types.is_floating(wanted.type):
            # Here −0 and 0 are two values; in a comparison they are one.
            wanted = pc.unique(pa.concat_arrays([wanted, pc.negate(wanted.filter(pc.equal(wanted, 0)))]))
        read = list(dict.fromkeys([*names, column]))
        found = [
            pa.Table.from_batches([batch]).filter(pc.is_in(batch.column(column), value_set=wanted))
            for batch in table.scan(read, batch_size=_SCAN_ROWS, with_row_address=with_row_address)
        ]
        kept = [*names, "_rowaddr"] if with_row_address else names
        return pa.concat_tables(found).select(kept)

    def _is_looked_up(self, type_key: str, table: Table, column: str, count: int) -> bool:
        if count * VALUES_PER_LOOKUP > self.pins[type_key].row_count:
            return False
        return any(index.columns == (column,) and index.kind == "BTREE" for index in table.indices())
