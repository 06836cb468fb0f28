"""The changes in one table between two of its versions: `table_delta` finds the candidates, `Delta.batches` compares them.

Rows are paired by id. Candidates are found physically first (`storage.tables.unshared`), so the cost follows the change; if
nothing is known to be shared, every row is compared, in id order and in bounded memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from urllib.parse import quote

import numpy as np
import numpy.typing as npt
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.changes.compare import Columns, Mask, differing, has_values, match_columns
from omnigraph.commit.context import CommitContext
from omnigraph.commit.model import TableEntry
from omnigraph.errors import HistoricalVersionReclaimed
from omnigraph.storage.objects import ObjectStore
from omnigraph.storage.tables.blobs import blob_columns
from omnigraph.storage.tables.lance_errors import Missing
from omnigraph.storage.tables.location import Location, Part
from omnigraph.storage.tables.table import Blobs, Table
from omnigraph.storage.tables.unshared import ROW_ID, Rows, all_rows, take_rows, touched_by, unshared
from omnigraph.values.ordered import ID, id_ranges, in_id_order

#: A line of a table (None: the main line) and a version on it.
_Point = tuple[str | None, int]


def shared_until(store: ObjectStore, one: tuple[Location, int], other: tuple[Location, int]) -> int | None:
    """The last version that both versions of a table have in their history; None when there is none, or it is unknown."""
    (here, version), (there, other_version) = one, other
    if here.path != there.path:
        return None
    if here.branch == there.branch:
        return min(version, other_version)
    known = dict(_origins(store, here, version))
    return next((min(at, known[line]) for line, at in _origins(store, there, other_version) if line in known), None)


def _origins(store: ObjectStore, location: Location, version: int) -> Iterator[_Point]:
    """The line of a version, the line it was forked from, and so on, each with its last version in the history."""
    line, at = location.branch, version
    yield line, at
    while line is not None:
        fork = _fork(store, location.path, line)
        if fork is None:
            return
        line, at = fork
        yield line, at


def _fork(store: ObjectStore, path: str, line: str) -> _Point | None:
    """The line and version at which a line starts; None if its ref is missing or unreadable: nothing is assumed then."""
    data = store.get_or_none(f"{path}/_refs/branches/{quote(line, safe='')}.json")
    if data is None:
        return None
    try:
        ref = orjson.loads(data)
        return ref["parentBranch"], int(ref["parentVersion"])
    except (orjson.JSONDecodeError, KeyError, TypeError, ValueError):
        return None


#: For sets with more than `MANY_BLOCKS` blocks, the first `FEW_BLOCKS` are found without sorting all ids.
FEW_BLOCKS = 3
MANY_BLOCKS = 16
#: The fewest rows that are held before the smallest ids are selected.
_HELD_ROWS = 8192

NO_CANDIDATES = pa.table({ID: pa.array([], pa.string()), ROW_ID: pa.array([], pa.uint64())})


def candidate_ids(
    side: Rows | None, block_rows: int, after_id: str | None, until_id: str | None = None, *, few: bool
) -> Iterator[pa.Table]:
    """Ids and row ids, after `after_id` and up to `until_id`, in id order, in blocks.

    `few`: the reader probably needs only the first blocks.
    """
    if side is None:
        return
    behind = after_id
    if few and len(side) > MANY_BLOCKS * block_rows:
        for _ in range(FEW_BLOCKS):
            block = smallest_ids(_between(side, behind, until_id), block_rows)
            yield block
            if block.num_rows < block_rows:
                return
            behind = block[ID][-1].as_py()
    yield from in_id_order(_between(side, behind, until_id), block_rows=block_rows)


def smallest_ids(batches: Iterable[pa.RecordBatch], count: int) -> pa.Table:
    """The `count` rows with the smallest ids, in order; holds only a multiple of `count` rows at a time."""
    held: list[pa.RecordBatch] = []
    for batch in batches:
        held.append(batch)
        if sum(kept.num_rows for kept in held) > max(8 * count, _HELD_ROWS):
            held = _smallest(held, count).to_batches()
    return _smallest(held, count) if held else NO_CANDIDATES


def _smallest(batches: list[pa.RecordBatch], count: int) -> pa.Table:
    rows = pa.Table.from_batches(batches)
    return rows.take(pc.select_k_unstable(rows, count, [(ID, "ascending")]))


def _between(side: Rows, after_id: str | None, until_id: str | None) -> Iterator[pa.RecordBatch]:
    for batch in side.scan([ID]):
        yield within(batch.select([ID, ROW_ID]), after_id, until_id)


def within(rows: pa.RecordBatch, after_id: str | None, until_id: str | None) -> pa.RecordBatch:
    """The rows with ids after `after_id`, up to and including `until_id`; None: no bound."""
    if after_id is not None:
        rows = rows.filter(pc.greater(rows[ID], after_id))
    return rows if until_id is None else rows.filter(pc.less_equal(rows[ID], until_id))


#: How many ids are compared at once; fewer if rows have blobs.
BATCH_ROWS = 4096
BATCH_ROWS_WITH_BLOBS = 64


@dataclass(frozen=True, slots=True)
class Side:
    """One side of a comparison: a table as a snapshot publishes it."""

    entry: TableEntry


@dataclass(frozen=True)
class DeltaBatch:
    """The changes in one range of ids; batches follow in id order, and each table here is in id order.

    An image has the columns that its side stores, under the names of the later side. `updated_before` and `updated_after`
    are aligned.
    """

    inserted: pa.Table
    updated_before: pa.Table
    updated_after: pa.Table
    deleted: pa.Table

    def __len__(self) -> int:
        return int(self.inserted.num_rows + self.updated_after.num_rows + self.deleted.num_rows)


@dataclass(frozen=True)
class Delta:
    """The changes of one table. Making it opens at most the two versions, and reads no values."""

    columns: Columns
    before: Rows | None
    after: Rows | None

    @cached_property
    def candidates(self) -> int:
        """How many rows may differ, on both sides together; 0 means that nothing changed."""
        return sum(len(rows) for rows in (self.before, self.after) if rows is not None)

    def candidate_ids(self) -> Iterator[pa.Array]:
        """The ids of all candidates, in no particular order; an id on both sides occurs twice."""
        for side in (self.before, self.after):
            for batch in side.scan([ID]) if side is not None else ():
                yield batch[ID]

    def batches(
        self,
        columns: Sequence[str] | None = None,
        *,
        batch_rows: int | None = None,
        blobs: Blobs = "descriptors",
        after_id: str | None = None,
        until_id: str | None = None,
        few: bool | None = None,
    ) -> Iterator[DeltaBatch]:
        """The changes in id order. `columns`: the columns of the images, by their newest names; the id is always included.
        `after_id`, `until_id`: only ids after the first, up to and including the second. `batch_rows`: how many ids are
        compared at once. `few`: only a few batches will be read, so avoid sorting all ids; None: True if `batch_rows` is given.
        """
        wanted = None if columns is None else frozenset((ID, *columns))
        rows = batch_rows or (BATCH_ROWS_WITH_BLOBS if self._has_blobs(wanted) else BATCH_ROWS)
        some = batch_rows is not None if few is None else few
        streams = [candidate_ids(side, rows, after_id, until_id, few=some) for side in (self.before, self.after)]
        for old, new in id_ranges(streams, NO_CANDIDATES):
            batch = self._compare(old, new, wanted, blobs)
            if len(batch):
                yield batch

    def _has_blobs(self, wanted: frozenset[str] | None) -> bool:
        sides = (self.before, self.after)
        names = {name for side in sides if side is not None for name in blob_columns(side.table.schema)}
        return bool(names if wanted is None else names & wanted)

    def _compare(self, old: pa.Table, new: pa.Table, wanted: frozenset[str] | None, blobs: Blobs) -> DeltaBatch:
        """Compare all candidates of one range of ids. `old`, `new`: their ids and row ids."""
        in_old, in_new = (pc.is_in(one[ID], value_set=_array(other[ID])) for one, other in ((new, old), (old, new)))
        paired = new.filter(in_old)
        pairs = old.take(pc.index_in(paired[ID], value_set=_array(old[ID]))), paired
        before, after = self._updates(*pairs, wanted, blobs)
        return DeltaBatch(
            inserted=self._images(self.after, new.filter(pc.invert(in_old)), wanted, blobs),
            updated_before=before,
            updated_after=after,
            deleted=self._images(self.before, old.filter(pc.invert(in_new)), wanted, blobs),
        )

    def _updates(
        self, old: pa.Table, new: pa.Table, wanted: frozenset[str] | None, blobs: Blobs
    ) -> tuple[pa.Table, pa.Table]:
        """The images, before and after, of the aligned rows that differ in value."""
        if not new.num_rows:
            return self._images(self.before, old, wanted, blobs), self._images(self.after, new, wanted, blobs)
        before = self._images(self.before, old, None, "descriptors")
        after = self._images(self.after, new, None, "descriptors")
        compared = [column.name for column in self.columns.shared if column.name != ID]
        mask = differing(before, after, compared, partial(self._blob_values, old, new))
        for column in self.columns.one_sided:
            mask |= _present((after if column.before is None else before)[column.name])
        changed = pa.array(mask)
        if blobs != "descriptors" and self._has_blobs(wanted):
            # Blobs were compared by descriptor, but their values are wanted.
            return (
                self._images(self.before, old.filter(changed), wanted, blobs),
                self._images(self.after, new.filter(changed), wanted, blobs),
            )
        return _only(before.filter(changed), wanted), _only(after.filter(changed), wanted)

    def _blob_values(
        self, old: pa.Table, new: pa.Table, name: str, places: npt.NDArray[np.int64]
    ) -> tuple[pa.Array, pa.Array]:
        """The bytes of one blob column in some of these aligned rows."""
        wanted, chosen = frozenset((ID, name)), pa.array(places)
        old_values = self._images(self.before, old.take(chosen), wanted, "bytes")
        new_values = self._images(self.after, new.take(chosen), wanted, "bytes")
        return _array(old_values[name]), _array(new_values[name])

    def _images(self, side: Rows | None, rows: pa.Table, wanted: frozenset[str] | None, blobs: Blobs) -> pa.Table:
        """The images of some rows of a side, in the order of `rows`."""
        if side is None:
            return pa.table({ID: pa.array([], pa.string())})
        stored = self.columns.stored_before(wanted) if side is self.before else self.columns.stored_after(wanted)
        if list(stored) == [ID]:
            return rows.select([ID])
        if not rows.num_rows:
            return self._no_images(side, stored, blobs)
        found = take_rows(side.table, rows[ROW_ID], list(stored), blobs=blobs).drop_columns([ROW_ID])
        order = pc.index_in(rows[ID], value_set=_array(found[ID]))
        return found.rename_columns([stored[name] for name in found.column_names]).take(order)

    def _no_images(self, side: Rows, stored: dict[str, str], blobs: Blobs) -> pa.Table:
        """Images without rows, cached: comparisons of few rows need them often."""
        key = (side is self.before, tuple(stored), blobs)
        if key not in self._empty:
            named = side.table.empty(list(stored), blobs=blobs)
            self._empty[key] = named.rename_columns([stored[name] for name in named.column_names])
        return self._empty[key]

    @cached_property
    def _empty(self) -> dict[tuple[bool, tuple[str, ...], Blobs], pa.Table]:
        return {}


def table_delta(
    context: CommitContext, before: Side | None, after: Side | None, operation: object | None = None
) -> Delta:
    """The changes in a table between two sides; None: the table does not exist on that side.

    `operation`: the operation of the single Lance transaction between the two sides, if known.
    """
    if before is not None and after is not None:
        if _same(before.entry, after.entry):
            return Delta(Columns(()), None, None)
        within = _within_group(context, before.entry, after.entry)
        if within is not None:
            return within
    old, new = (None if side is None else open_version(context, side.entry) for side in (before, after))
    columns = match_columns(old, new)
    if old is None or new is None or before is None or after is None:
        return Delta(columns, None if old is None else all_rows(old), None if new is None else all_rows(new))
    # A table that was built for a state within a group shares no meaningful files with others.
    whole = before.entry.part is None and after.entry.part is None
    if whole and _comparable(old, new, columns):
        points = [(side.entry.location, side.entry.version) for side in (before, after)]
        until = shared_until(context.store, points[0], points[1])
        touched = None if operation is None else touched_by(old, new, operation)
        left, right = unshared(old, new, until, context.root, context.store.get_or_none, touched)
        if touched is not None and len(right) - len(left) != after.entry.row_count - before.entry.row_count:
            # The transaction does not explain the difference, so compare all fragments.
            left, right = unshared(old, new, until, context.root, context.store.get_or_none)
    else:
        left, right = all_rows(old), all_rows(new)
    return Delta(columns, left, right)


@dataclass(frozen=True)
class OfSome(Delta):
    """The changes to some ids only, out of all changes of one group of commits."""

    of: Delta = field(default_factory=lambda: Delta(Columns(()), None, None))
    ids: pa.Array = field(default_factory=lambda: pa.array([], pa.string()))

    @cached_property
    def candidates(self) -> int:
        return len(self.ids)

    def candidate_ids(self) -> Iterator[pa.Array]:
        yield self.ids

    def batches(
        self,
        columns: Sequence[str] | None = None,
        *,
        batch_rows: int | None = None,
        blobs: Blobs = "descriptors",
        after_id: str | None = None,
        until_id: str | None = None,
        few: bool | None = None,
    ) -> Iterator[DeltaBatch]:
        """The changes in id order, as in `Delta.batches`."""
        for batch in self.of.batches(
            columns, batch_rows=batch_rows, blobs=blobs, after_id=after_id, until_id=until_id, few=few
        ):
            inserted, updated_before, updated_after, deleted = (
                table.filter(pc.is_in(table[ID], value_set=self.ids))
                for table in (batch.inserted, batch.updated_before, batch.updated_after, batch.deleted)
            )
            chosen = DeltaBatch(inserted, updated_before, updated_after, deleted)
            if len(chosen):
                yield chosen


def _within_group(context: CommitContext, before: TableEntry, after: TableEntry) -> Delta | None:
    """The changes between two states within one group of commits, in either direction; None if they are not of one group."""
    inner = after if before.part is None else before
    if inner.part is None:
        return None
    first, last = _around(inner, inner.part)
    old, new = (_shown(entry, first, last, inner.part) for entry in (before, after))
    if old is None or new is None:
        return None
    ends = (first, last) if old <= new else (last, first)
    of = table_delta(context, Side(ends[0]), Side(ends[1]))
    # The sides belong to the whole group, so they are left out.
    return OfSome(of.columns, None, None, of, pa.array(sorted(old ^ new), pa.string()))


def _around(inner: TableEntry, part: Part) -> tuple[TableEntry, TableEntry]:
    """The table entries before and after a group. Their row counts are wrong, but without an operation unused."""
    first = replace(inner, path=part.base.path, branch=part.base.branch, version=part.base_version, part=None)
    return first, replace(inner, part=None)


def _shown(entry: TableEntry, first: TableEntry, last: TableEntry, part: Part) -> frozenset[str] | None:
    """The ids whose changes by the group are part of a state; None for a state that does not belong to the group."""
    if entry.part is not None:
        same = (entry.part.base, entry.part.base_version) == (part.base, part.base_version)
        return entry.part.shown if same and _same(replace(entry, part=None), last) else None
    if _same(entry, first):
        return frozenset()
    return part.shown | part.hidden if _same(entry, last) else None


def _same(one: TableEntry, other: TableEntry) -> bool:
    return one.location == other.location and one.version == other.version


def open_version(context: CommitContext, entry: TableEntry) -> Table:
    """A table as a state publishes it; HistoricalVersionReclaimed if the version is gone."""
    try:
        return context.tables.open(entry.location, entry.version)
    except Missing as error:
        raise HistoricalVersionReclaimed(
            f"version {entry.version} of {entry.key} ({entry.location}) is gone: it was cleaned up, or its branch was "
            "deleted",
            version=f"{entry.location} v{entry.version}",
        ) from error


def _comparable(old: Table, new: Table, columns: Columns) -> bool:
    """Whether equal files mean equal rows: not if a column with values is on one side only, or has another type."""
    for column in columns.one_sided:
        table, name = (old, column.before) if column.after is None else (new, column.after)
        if name is not None and has_values(table, name):
            return False
    return all(
        column.before is None
        or column.after is None
        or old.schema.field(column.before).type == new.schema.field(column.after).type
        for column in columns.shared
    )


def _only(images: pa.Table, wanted: frozenset[str] | None) -> pa.Table:
    return images if wanted is None else images.select([name for name in images.column_names if name in wanted])


def _present(column: pa.ChunkedArray) -> Mask:
    found: Mask = _array(column).is_valid().to_numpy(zero_copy_only=False)
    return found


def _array(column: pa.ChunkedArray) -> pa.Array:
    combined = column.combine_chunks()
    return combined if isinstance(combined, pa.Array) else pa.concat_arrays(combined.chunks)
