"""One table of a merge: its three versions, and what theirs changed since the base, in batches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.changes.delta import Delta, DeltaBatch, Side, table_delta, within
from omnigraph.commit.context import CommitContext
from omnigraph.commit.model import TableEntry
from omnigraph.language.schema.catalog import EdgeType, NodeType
from omnigraph.merge.classify import Op, Strategy
from omnigraph.merge.combine import align
from omnigraph.merge.kept import KeptEnd
from omnigraph.merge.states import same_table
from omnigraph.merge.view import Image, Places, View, alike, view_of
from omnigraph.storage.tables.blobs import blob_columns
from omnigraph.storage.tables.table import Blobs, Table
from omnigraph.storage.tables.unshared import ROW_ID, all_rows

#: How many changed entities are processed at once; with blobs only a few, because blobs are read and compared.
BATCH_ROWS = 4096
BATCH_ROWS_WITH_BLOBS = 64

#: A delta of up to this many rows, without blobs, is cached while its table is merged, so that it is read once.
KEPT_ROWS = 20_000

Version = Literal["base", "ours", "theirs"]


@dataclass(frozen=True)
class Change:
    """Changes of theirs of one kind. `before`: the rows in the base (no inserts); `after`: in theirs (no deletes)."""

    op: Op
    before: pa.Table | None
    after: pa.Table | None
    #: The version that the rows `before` come from.
    base: View


@dataclass(frozen=True)
class TableSpec:
    """One table of a merge, or a range of its ids; small enough to be sent to another process."""

    #: The type in the merged schema, and its table in each version; None: that version has no such table.
    entity: NodeType | EdgeType
    base: TableEntry | None
    ours: TableEntry | None
    theirs: TableEntry | None
    #: The names of properties in the merged schema, by the type's number in a version, then by the property's number.
    names: Mapping[int, Mapping[int, str]]
    strategy: Strategy | None = None
    property_level: bool = False
    #: The id of the commit that is reverted or picked, for messages.
    commit: str = ""
    #: Ids of entities that the caller has decided about.
    decided: tuple[str, ...] = ()
    #: Of an edge type: nodes that theirs deleted but that stay, together with their edges.
    kept_ends: tuple[KeptEnd, ...] = ()
    #: After criss-cross merges: the table at each other base, and at the common ancestor of that base and the base.
    crossed: tuple[tuple[TableEntry, TableEntry], ...] = ()
    #: A range of ids: greater than `after_id`, up to and including `until_id`; None: no limit.
    after_id: str | None = None
    until_id: str | None = None
    #: Only rows of theirs in these fragments, if theirs has only added files to the table. None: all rows.
    fragments: tuple[int, ...] | None = None

    @property
    def unopposed(self) -> bool:
        """Whether ours equals the base, so that no change of theirs can conflict."""
        return same_table(self.base, self.ours) and not self.crossed


@dataclass(frozen=True)
class Difference:
    """The opened versions of a table, and the changes of theirs. All rows have the column names of the merged schema."""

    spec: TableSpec
    base: View
    ours: View
    theirs: View
    #: Where theirs can differ from the base and, after criss-cross merges, from each other base.
    deltas: tuple[Delta, ...]
    #: After criss-cross merges: each other base, with the common ancestor of it and the base.
    crossed: tuple[tuple[View, View], ...] = ()

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The names of all columns."""
        return tuple(self.ours.columns)

    @cached_property
    def lacking(self) -> tuple[str, ...]:
        """The columns that theirs does not have, so that it can not have changed them."""
        return tuple(name for name, column in self.theirs.columns.items() if column.stored is None)

    @cached_property
    def _by_image(self) -> bool:
        """Whether rows must be converted to the merged schema to be compared, because columns differ between versions."""
        views = [self.base, self.theirs, *(view for pair in self.crossed for view in pair)]
        plain = all((view.is_plain or view.table is None) and not view.extra for view in views)
        other_type = (
            self.spec.base is not None
            and self.spec.theirs is not None
            and (self.spec.base.identity[0] != self.spec.theirs.identity[0])
        )
        return bool(self.crossed) or not plain or other_type

    @cached_property
    def candidates(self) -> int:
        """How many rows may differ; 0 means that theirs changed nothing."""
        return sum(delta.candidates for delta in self.deltas)

    def candidate_ids(self) -> pa.Array:
        """The distinct ids of all rows that may differ."""
        return pc.unique(pa.chunked_array(list(self.candidate_batches()), pa.string()))

    def candidate_batches(self) -> Iterator[pa.Array]:
        """The ids of all rows that may differ, in batches; an id can occur once per side."""
        low, high = self.spec.after_id, self.spec.until_id
        for delta in self.deltas:
            for ids in delta.candidate_ids():
                yield within(pa.record_batch({"id": ids}), low, high)["id"]

    @cached_property
    def only_new(self) -> bool:
        """Whether theirs only added rows in files of its own: then these are streamed without matching them."""
        delta, ranged = self.deltas[0], self.spec.after_id is not None or self.spec.until_id is not None
        if ranged or self._by_image or delta.after is None or (delta.before is not None and len(delta.before)):
            return False
        return not len(delta.after.row_ids) and not self._has_blobs

    @cached_property
    def _kept(self) -> list[Change] | None:
        """All changes, if they are few and without blobs; else None."""
        if self.candidates > KEPT_ROWS or self._has_blobs:
            return None
        return list(self._read("descriptors"))

    @cached_property
    def _has_blobs(self) -> bool:
        return self.theirs.table is not None and bool(blob_columns(self.theirs.table.schema))

    def changes(self, *, blobs: Blobs = "descriptors") -> Iterator[Change]:
        """The changes of theirs, in batches; rows with blob values come a few at a time."""
        yield from self._kept if self._kept is not None else self._read(blobs)

    def _read(self, blobs: Blobs) -> Iterator[Change]:
        (delta, *_) = self.deltas
        if self.only_new:
            assert delta.after is not None
            assert self.theirs.table is not None
            for batch in delta.after.scan(self.theirs.table.schema.names):
                yield Change("insert", None, self.theirs.named(pa.table(batch.drop_columns([ROW_ID]))), self.base)
            return
        heavy = blobs != "descriptors" and self._has_blobs
        rows = BATCH_ROWS_WITH_BLOBS if heavy else BATCH_ROWS
        if self._by_image:
            yield from self._against_all_bases(rows, blobs)
            return
        low, high = self.spec.after_id, self.spec.until_id
        for batch in delta.batches(batch_rows=rows, blobs=blobs, after_id=low, until_id=high, few=False):
            yield from self._of_batch(batch)

    def _of_batch(self, batch: DeltaBatch) -> Iterator[Change]:
        if batch.inserted.num_rows:
            yield Change("insert", None, self.theirs.named(batch.inserted), self.base)
        if batch.updated_after.num_rows:
            before, after = self._named_before(batch.updated_before), self.theirs.named(batch.updated_after)
            yield Change("update", before, after, self.base)
        if batch.deleted.num_rows:
            yield Change("delete", self._named_before(batch.deleted), None, self.base)

    def _named_before(self, rows: pa.Table) -> pa.Table:
        """Rows of the base; a delta names their columns as theirs does, if theirs has the table."""
        return (self.base if self.theirs.table is None else self.theirs).named(rows)

    def _against_all_bases(self, batch_rows: int, blobs: Blobs) -> Iterator[Change]:
        """The changes of theirs against the base, or against all bases after criss-cross merges, in the merged schema."""
        ids = self.candidate_ids()
        for start in range(0, len(ids), batch_rows):
            some = ids.slice(start, batch_rows)
            theirs = self.theirs.image(some, self.columns)
            for base in merged_bases(self.base, self.crossed, some, self.columns):
                for op, places in changed(base, theirs.at(base.ids), self.columns):
                    yield Change(
                        op,
                        None if op == "insert" else base.take(places).rows,
                        None if op == "delete" else self._rows_of_theirs(base.ids.take(pa.array(places)), blobs),
                        base.view,
                    )

    def _rows_of_theirs(self, ids: pa.Array, blobs: Blobs) -> pa.Table:
        return align(self.theirs.rows(ids, self.columns, blobs=blobs), ids)[0]


def open_difference(context: CommitContext, spec: TableSpec) -> Difference:
    """Open the versions of a table, and find the rows in which theirs can differ from the base."""

    def opened(entry: TableEntry) -> Table:
        return context.tables.open(entry.location, entry.version)

    def view(entry: TableEntry | None) -> View:
        names = {} if entry is None else spec.names.get(entry.identity[0], {})
        return view_of(None if entry is None else opened(entry), spec.entity, names)

    base, ours, theirs = view(spec.base), view(spec.ours), view(spec.theirs)
    bases = [spec.base, *(other for other, _ in spec.crossed)]
    deltas = tuple(_delta(context, entry, spec.theirs) for entry in bases)
    kept = kept_columns(base, ours, theirs)
    if kept and base.table is not None and theirs.table is not None:
        # The merged schema keeps columns that one side dropped: all their values are new to that side, so compare all rows.
        deltas = (Delta(deltas[0].columns, all_rows(base.table), all_rows(theirs.table)), *deltas[1:])
        base = base.without(kept)
    crossed = tuple((view(other), view(root)) for other, root in spec.crossed)
    if spec.fragments is not None:
        deltas = (_some_files(deltas[0], frozenset(spec.fragments)),)
    return Difference(spec, base, ours, theirs, deltas, crossed)


def _some_files(delta: Delta, numbers: frozenset[int]) -> Delta:
    assert delta.after is not None, "rows that theirs has added are rows of theirs"
    chosen = tuple(fragment for fragment in delta.after.fragments if fragment.fragment_id in numbers)
    return replace(delta, after=replace(delta.after, fragments=chosen))


def kept_columns(base: View, ours: View, theirs: View) -> frozenset[str]:
    """The columns of the merged schema that one side has dropped since the base."""
    if ours.table is None or theirs.table is None:
        return frozenset()
    return frozenset(
        name
        for name, column in base.columns.items()
        if column.stored is not None and None in (ours.columns[name].stored, theirs.columns[name].stored)
    )


def _delta(context: CommitContext, base: TableEntry | None, theirs: TableEntry | None) -> Delta:
    return table_delta(context, *(None if entry is None else Side(entry) for entry in (base, theirs)))


# --- several bases ----------------------------------------------------------------------------------------------------
# After criss-cross merges two sides have several bases. For one entity, a base that has not touched it since their common
# ancestor is replaced by a base that has. If both have touched it differently, an earlier merge decided; the best base counts.


def merged_bases(
    base: View, crossed: Sequence[tuple[View, View]], ids: pa.Array, columns: Sequence[str]
) -> Iterator[Image]:
    """The base images of some entities, each from the base that counts for it. Yields one image per base used."""
    values = [name for name in columns if name != "id"]
    best = base.image(ids, columns)
    images = [best]
    counts = np.zeros(len(ids), np.int64)
    for number, (other, root) in enumerate(crossed, 1):
        there, before = other.image(ids, columns), root.image(ids, columns)
        images.append(there)
        # Of several other bases, the first that has touched the entity counts.
        counts[(counts == 0) & alike(best, before, values) & ~alike(there, before, values)] = number
    for number, image in enumerate(images):
        places = np.flatnonzero(counts == number)
        if len(places):
            yield image.take(places)


def changed(base: Image, theirs: Image, columns: Sequence[str]) -> Iterator[tuple[Op, Places]]:
    """Which entities theirs inserted, updated and deleted since the base, as positions in the images."""
    values = [name for name in columns if name != "id"]
    differ = ~alike(base, theirs, values)
    cases: tuple[tuple[Op, Places], ...] = (
        ("insert", np.flatnonzero(~base.present & theirs.present)),
        ("update", np.flatnonzero(base.present & theirs.present & differ)),
        ("delete", np.flatnonzero(base.present & ~theirs.present)),
    )
    yield from ((op, places) for op, places in cases if len(places))
