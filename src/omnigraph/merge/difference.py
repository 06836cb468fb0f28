"""One table of a merge: its three versions, and what theirs changed since the base, in batches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.changes.delta import Delta, DeltaBatch, Side, table_delta
from omnigraph.commit.context import CommitContext
from omnigraph.commit.model import TableEntry
from omnigraph.errors import ChangeSchemaBoundary
from omnigraph.language.schema.catalog import EdgeType, NodeType
from omnigraph.merge.classify import Op, Strategy
from omnigraph.merge.states import same_table
from omnigraph.merge.target import find
from omnigraph.storage.tables.blobs import blob_columns
from omnigraph.storage.tables.table import Blobs, Table
from omnigraph.storage.tables.unshared import ROW_ID
from omnigraph.values.columns import PROPERTY_ID

#: How many changed entities are looked at together; blobs are compared and written a few at a time.
BATCH_ROWS = 4096
BATCH_ROWS_WITH_BLOBS = 64

#: A delta of at most this many rows, without blobs, is kept while its table is merged, so that it is read once.
KEPT_ROWS = 20_000

Version = Literal["base", "ours", "theirs"]
#: What theirs did to some entities: the rows as base has them (not of an insert) and as theirs has them (not of a delete).
Change = tuple[Op, pa.Table | None, pa.Table | None]


@dataclass(frozen=True)
class TableSpec:
    """One table of a merge, or a range of its ids; small, so that it can be sent to where the work is done."""

    entity: NodeType | EdgeType
    base: TableEntry
    ours: TableEntry
    theirs: TableEntry
    strategy: Strategy | None = None
    property_level: bool = False
    #: Ids that the caller has decided about.
    decided: tuple[str, ...] = ()
    #: Only ids after the first and up to the second.
    after_id: str | None = None
    until_id: str | None = None

    @property
    def unopposed(self) -> bool:
        """Whether the target's table is the base: then nothing that theirs did can conflict with it."""
        return same_table(self.base, self.ours)


@dataclass(frozen=True)
class Difference:
    """The three versions of a table, opened, and the changes of theirs. All rows have the names ours uses."""

    spec: TableSpec
    base: Table
    ours: Table
    theirs: Table
    delta: Delta
    #: By version, the columns that ours calls otherwise.
    renamed: Mapping[Version, Mapping[str, str]]

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The names of all columns."""
        return tuple(self.ours.schema.names)

    @cached_property
    def _only_new(self) -> bool:
        """Whether theirs has only rows in files of their own: then they are streamed, without looking for pairs."""
        delta, ranged = self.delta, self.spec.after_id is not None or self.spec.until_id is not None
        if ranged or delta.after is None or (delta.before is not None and len(delta.before)):
            return False
        return not len(delta.after.row_ids) and not blob_columns(self.theirs.schema)

    @cached_property
    def _kept(self) -> list[Change] | None:
        """All changes, where they are few and without blobs."""
        if self.delta.candidates > KEPT_ROWS or blob_columns(self.theirs.schema):
            return None
        return list(self._read("descriptors"))

    def changes(self, *, blobs: Blobs = "descriptors") -> Iterator[Change]:
        """What theirs changed, in batches; rows with blob values come a few at a time."""
        yield from self._kept if self._kept is not None else self._read(blobs)

    def _read(self, blobs: Blobs) -> Iterator[Change]:
        if self._only_new:
            assert self.delta.after is not None
            for batch in self.delta.after.scan(self.theirs.schema.names):
                yield "insert", None, self._named(pa.table(batch.drop_columns([ROW_ID])))
            return
        heavy = blobs != "descriptors" and blob_columns(self.theirs.schema)
        rows = BATCH_ROWS_WITH_BLOBS if heavy else BATCH_ROWS
        for batch in self.delta.batches(batch_rows=rows, blobs=blobs, after_id=self.spec.after_id):
            found = list(self._within(batch))
            yield from found
            if not found:
                return

    def _within(self, batch: DeltaBatch) -> Iterator[Change]:
        """The changes of a batch as far as they are within the range of ids."""
        inserted, deleted = self._cut(batch.inserted), self._cut(batch.deleted)
        before, after = self._cut(batch.updated_before), self._cut(batch.updated_after)
        if inserted.num_rows:
            yield "insert", None, self._named(inserted)
        if after.num_rows:
            yield "update", self._named(before), self._named(after)
        if deleted.num_rows:
            yield "delete", self._named(deleted), None

    def _cut(self, rows: pa.Table) -> pa.Table:
        until = self.spec.until_id
        return rows if until is None else rows.filter(pc.less_equal(rows["id"], until))

    def _named(self, rows: pa.Table, version: Version = "theirs") -> pa.Table:
        """Rows under the names of ours. A delta has the names of theirs on both sides."""
        names = self.renamed[version]
        return rows.rename_columns([names.get(name, name) for name in rows.column_names]) if names else rows

    def rows(
        self,
        version: Version,
        ids: pa.Array,
        columns: Sequence[str] | None = None,
        *,
        with_row_address: bool = False,
        blobs: Blobs = "descriptors",
    ) -> pa.Table:
        """The rows that a version has with these ids, in no particular order."""
        table = {"base": self.base, "ours": self.ours, "theirs": self.theirs}[version]
        stored = {name: old for old, name in self.renamed[version].items()}
        wanted = [stored.get(name, name) for name in columns or self.columns]
        found = find(table, "id", ids, wanted, with_row_address=with_row_address, blobs=blobs)
        return self._named(found, version)


def open_difference(context: CommitContext, spec: TableSpec) -> Difference:
    """Open the three versions of a table and find where theirs can differ from the base."""
    base, ours, theirs = (
        context.tables.open(entry.location, entry.version) for entry in (spec.base, spec.ours, spec.theirs)
    )
    of_base, of_theirs = _renamed(base, ours), _renamed(theirs, ours)
    if of_base is None or of_theirs is None:
        raise ChangeSchemaBoundary(
            f"{spec.entity.type_key} had other properties then; a change across a schema change can not be applied",
            commit="",
            type_name=spec.entity.name,
        )
    delta = table_delta(context, Side(spec.base), Side(spec.theirs))
    return Difference(spec, base, ours, theirs, delta, {"base": of_base, "ours": {}, "theirs": of_theirs})


def _renamed(table: Table, ours: Table) -> dict[str, str] | None:
    """Which columns ours calls otherwise; None when the columns are not the same properties of the same types."""
    mine, other = _properties(ours.schema), _properties(table.schema)
    if {key: field.type for key, field in mine.items()} != {key: field.type for key, field in other.items()}:
        return None
    return {other[key].name: mine[key].name for key in other if other[key].name != mine[key].name}


def _properties(schema: pa.Schema) -> dict[bytes, pa.Field]:
    return {(field.metadata or {}).get(PROPERTY_ID, field.name.encode()): field for field in schema}
