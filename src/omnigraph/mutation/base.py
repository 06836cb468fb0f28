"""The base of one attempt at a write: a branch as it was captured once, the settled changes of earlier queries, and the
tables that were read.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.commit.context import CommitContext
from omnigraph.commit.model import ManifestState, TableEntry
from omnigraph.mutation.settled import Settled, SettledRows
from omnigraph.storage.tables.table import ROW_ADDRESS, Table
from omnigraph.values.columns import whole

#: Up to this many ids, the results of existence checks are cached.
_FEW_IDS = 1000


class Base:
    """Reads the captured versions; every table touched becomes a requirement of the write. Not reused after a commit."""

    def __init__(self, context: CommitContext, state: ManifestState) -> None:
        self.context = context
        self.state = state
        #: The settled changes of earlier queries; the look-ups below include them.
        self.settled = Settled()
        self._touched: dict[str, TableEntry] = {}
        #: By type: whether a looked-up id exists among the committed nodes.
        self._known_ids: dict[str, dict[str, bool]] = {}

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

    def touched(self) -> list[str]:
        """The keys of the tables that were read or written."""
        return list(self._touched)

    def read_only(self, written: set[str]) -> tuple[TableEntry, ...]:
        """The entries of tables that were read and are not written."""
        return tuple(entry for key, entry in self._touched.items() if key not in written)

    # --- the look-ups of the set rules ------------------------------------------------------------------------------

    def by_id(self, type_key: str, ids: pa.Array, columns: Sequence[str]) -> pa.Table:
        """The rows with these ids, including the changes of earlier queries."""
        if list(columns) == ["id"] and len(ids) <= _FEW_IDS:
            return self._existing(type_key, ids)
        return self.by_value(type_key, "id", ids, columns)

    def _existing(self, type_key: str, ids: pa.Array) -> pa.Table:
        """The ids that exist, of a few. Each is looked up only once: edges of a transaction often share their ends."""
        known = self._known_ids.setdefault(type_key, {})
        wanted, earlier = ids.to_pylist(), self.settled.of(type_key)
        fresh = [id_ for id_ in wanted if id_ not in known and (earlier is None or not earlier.touches(id_))]
        if fresh:
            found = self.table(type_key).take_by("id", pa.array(fresh, pa.string()), ["id"])
            known.update(dict.fromkeys(fresh, False) | dict.fromkeys(found["id"].to_pylist(), True))
        exist = [id_ for id_ in wanted if (earlier.has(id_) if earlier and earlier.touches(id_) else known[id_])]
        return pa.table({"id": pa.array(exist, pa.string())})

    def rows(self, type_key: str, ids: pa.Array) -> pa.Table:
        """The full rows with these ids, including earlier queries' changes, with row addresses and blob values."""
        found = self.table(type_key).take_ids(ids, with_row_address=True, blobs="values")
        earlier = self.settled.of(type_key)
        return found if earlier is None else layered(earlier, found, earlier.with_ids(ids))

    def by_value(
        self,
        type_key: str,
        column: str,
        values: pa.Array,
        columns: Sequence[str],
        *,
        with_row_address: bool = False,
    ) -> pa.Table:
        """The rows whose column has one of these values; rows that are not committed yet have a null row address."""
        earlier = self.settled.of(type_key)
        if earlier is None:
            return self.table(type_key).take_by(column, values, columns, with_row_address=with_row_address)
        if column == "id":
            put = earlier.with_ids(values)
            values = values.filter(pc.invert(pc.is_in(values, value_set=whole(put["id"]))))
        else:
            put = earlier.with_values(column, values)
        asked = list(dict.fromkeys(["id", *columns]))
        found = self.table(type_key).take_by(column, values, asked, with_row_address=with_row_address)
        both = layered(earlier, found, put.select(asked))
        return both if "id" in columns else both.drop_columns(["id"])


def layered(earlier: SettledRows, committed: pa.Table, put: pa.Table) -> pa.Table:
    """The committed rows that earlier queries left alone, and the rows they put, which have a null row address."""
    kept = earlier.untouched(committed)
    if not put.num_rows:
        return kept
    if ROW_ADDRESS in committed.column_names:
        put = earlier.with_addresses(put)
    fields = [put.schema.field(name) for name in committed.column_names]
    plain = pa.schema([pa.field(field.name, field.type) for field in fields])
    parts = [table.select(committed.column_names).replace_schema_metadata(None).cast(plain) for table in (kept, put)]
    return pa.concat_tables(parts)
