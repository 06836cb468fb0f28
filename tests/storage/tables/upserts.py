"""Rows that replace the row with the same id or are new, by Lance's merge-insert.

No writer of ours stages that way: they know the addresses of the rows they replace (`stage_replace`). It is one more
transaction of Lance, and commit, undo, recovery and diff have to take any.
"""

from __future__ import annotations

import pyarrow as pa

from omnigraph.storage.tables.blobs import blob_columns
from omnigraph.storage.tables.incoming import Data, Incoming
from omnigraph.storage.tables.staged import Staged, Stats, stage_fragments, write_rows
from omnigraph.storage.tables.table import ROW_ADDRESS, Table


def stage_upsert(table: Table, data: Data) -> Staged:
    if blob_columns(table.schema):
        # Merge-insert refuses external blob references that lie outside the table, so the rows are replaced instead.
        rows = data if isinstance(data, pa.Table) else pa.Table.from_batches(list(data))
        replaced = table.take_by("id", rows["id"], ["id"], with_row_address=True)
        return stage_fragments(table, write_rows(table, rows), removed=replaced.column(ROW_ADDRESS))
    merge = table.dataset.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
    transaction, counts = merge.execute_uncommitted(Incoming(data, table.schema, str(table.location)).reader)
    stats = Stats(inserted=counts["num_inserted_rows"], updated=counts["num_updated_rows"])
    return Staged("replace", table.location, table.version, transaction, stats)
