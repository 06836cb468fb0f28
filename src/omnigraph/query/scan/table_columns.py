"""Whole columns of a table, read to be kept in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.query.rows import Addresses
from omnigraph.storage.tables.table import ROW_ADDRESS, Table

#: The most bytes of the columns that are read together; larger columns are not kept.
MOST_BYTES = 64 * 1024 * 1024
_BATCH_ROWS = 65536


@dataclass(frozen=True)
class TableColumn:
    """The values of a column in the order of the table's rows; None when they would take too much memory."""

    values: pa.Array | None

    @property
    def nbytes(self) -> int:
        """The bytes of the values; 0 when they are not kept."""
        return 0 if self.values is None else int(self.values.nbytes)


def read_table_columns(table: Table, names: Sequence[str]) -> dict[str, TableColumn]:
    """Read some columns of a table together; all of them are None when together they exceed MOST_BYTES."""
    batches: list[pa.RecordBatch] = []
    held = 0
    for batch in table.scan(names, batch_size=_BATCH_ROWS, with_row_address=True):
        held += sum(batch[name].nbytes for name in names)
        if held > MOST_BYTES:
            return {name: TableColumn(None) for name in names}
        batches.append(batch)
    found = pa.Table.from_batches(batches) if batches else table.empty(names, with_row_address=True)
    order, _ = in_row_order(found[ROW_ADDRESS].to_numpy())
    columns = {name: found[name].combine_chunks() for name in names}
    return {
        name: TableColumn(values if order is None else values.take(pa.array(order))) for name, values in columns.items()
    }


def in_row_order(addresses: Addresses) -> tuple[npt.NDArray[np.intp] | None, Addresses]:
    """The indices that sort scanned rows by address (None when they are sorted already), and the sorted addresses."""
    if bool((addresses[1:] > addresses[:-1]).all()):
        return None, addresses
    order = np.argsort(addresses, kind="stable")
    return order, addresses[order]
