"""The target of a merge as it was captured: looked up by id and by value, one table at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.commit.context import CommitContext
from omnigraph.commit.model import ManifestState
from omnigraph.storage.tables.table import Blobs, Table

#: More values than this are not looked up through an index: one scan of the column finds them sooner.
MOST_LOOKED_UP = 20_000
#: How many rows of such a scan are compared with the values at once.
SCANNED_AT_ONCE = 1024 * 1024


class Target:
    """Reads the captured versions of the target's tables; the look-ups of the set rules among them.

    `undecided`: ids, by type key, of entities whose own conflict is reported. Whether they stay is open, so no edge is an
    orphan for want of such a node, nor is such an edge. `settled`: types whose table is the same on both sides. What
    theirs leaves or brings was checked against just that table when it was written, so no end of an edge is looked for
    there again.
    """

    def __init__(self, context: CommitContext, state: ManifestState) -> None:
        self.context = context
        self.state = state
        self.undecided: Mapping[str, pa.Array] = {}
        self.settled: frozenset[str] = frozenset()

    def table(self, type_key: str) -> Table:
        """The captured version of a type's table, opened."""
        entry = self.state.by_key[type_key]
        return self.context.tables.open(entry.location, entry.version)

    def by_id(self, type_key: str, ids: pa.Array, columns: Sequence[str]) -> pa.Table:
        """The rows with these ids."""
        if type_key in self.settled and list(columns) == ["id"]:
            return pa.table({"id": ids})
        found = self.by_value(type_key, "id", ids, columns)
        open_ids = self.undecided.get(type_key)
        if open_ids is None or list(columns) != ["id"]:
            return found
        return pa.table({"id": pa.concat_arrays([*found["id"].chunks, ids.filter(pc.is_in(ids, value_set=open_ids))])})

    def by_value(self, type_key: str, column: str, values: pa.Array, columns: Sequence[str]) -> pa.Table:
        """The rows whose column has one of these values."""
        return find(self.table(type_key), column, values, columns)


def find(
    table: Table,
    column: str,
    values: pa.Array,
    columns: Sequence[str],
    *,
    with_row_address: bool = False,
    blobs: Blobs = "descriptors",
) -> pa.Table:
    """The rows of a table whose column has one of these values, in no particular order."""
    names = list(columns)
    if pa.types.is_nested(values.type):
        # A list can not be looked up by value; the caller compares whole rows anyway.
        return table.read(names, with_row_address=with_row_address, blobs=blobs)
    if len(values) <= MOST_LOOKED_UP:
        return table.take_by(column, values, names, with_row_address=with_row_address, blobs=blobs)
    wanted = pc.unique(values).cast(table.schema.field(column).type)
    read = names if column in names else [*names, column]
    scanned = table.scan(read, batch_size=SCANNED_AT_ONCE, with_row_address=with_row_address, blobs=blobs)
    found = [batch.filter(pc.is_in(batch.column(column), value_set=wanted)) for batch in scanned]
    if not found:
        return table.take_by(column, values.slice(0, 0), names, with_row_address=with_row_address, blobs=blobs)
    kept = pa.Table.from_batches(found)
    return kept if column in names else kept.drop_columns([column])
