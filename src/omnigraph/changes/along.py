"""Reads the changes of consecutive commits of a branch, at a cost that does not grow with the size of its tables.

Reading a single commit loads two states and compares two lists of fragments. Reading many commits in order needs neither: the
state after a commit is the state before it plus what its publish wrote, and the Lance transaction of a commit that only
appended names the files it added. Commits that do not fit this are read one by one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import lance
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.changes.compare import Columns
from omnigraph.changes.delta import Delta, DeltaBatch, open_version
from omnigraph.changes.diff import TablePair
from omnigraph.commit.context import CommitContext
from omnigraph.commit.history import state_of, states_along
from omnigraph.commit.model import Commit, Identity, ManifestState
from omnigraph.errors import StorageError
from omnigraph.storage.tables.blobs import blob_columns
from omnigraph.storage.tables.handles import transaction_of
from omnigraph.storage.tables.lance_errors import Missing, translated
from omnigraph.storage.tables.lance_private import data_file_name
from omnigraph.storage.tables.table import ROW_ADDRESS, Blobs, Table
from omnigraph.values.ordered import ID

#: How many commits' states are read together.
COMMITS_AHEAD = 32
#: How many fragments, and about how many rows, are read ahead together.
FRAGMENTS_AHEAD = 64
ROWS_AHEAD = 8192


@dataclass(frozen=True)
class Appended(Delta):
    """The changes of a commit that only added rows to a table: all are inserts."""

    rows: pa.Table = field(default_factory=lambda: pa.table({ID: pa.array([], pa.string())}))

    @cached_property
    def candidates(self) -> int:
        return int(self.rows.num_rows)

    def candidate_ids(self) -> Iterator[pa.Array]:
        yield from self.rows[ID].chunks

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
        """The inserts in id order, as one batch; only ids after `after_id`, up to and including `until_id`."""
        rows = self.rows if columns is None else self.rows.select([ID, *(name for name in columns if name != ID)])
        if after_id is not None:
            rows = rows.filter(pc.greater(rows[ID], after_id))
        if until_id is not None:
            rows = rows.filter(pc.less_equal(rows[ID], until_id))
        if rows.num_rows:
            nothing = rows.slice(0, 0)
            yield DeltaBatch(rows.take(pc.sort_indices(rows[ID])), nothing, nothing, nothing)


class Along:
    """Consecutive commits of a branch, to be read in order.

    `head`: the newest state of the branch, from whose tables rows are read ahead; None when only one commit is read.
    """

    def __init__(self, context: CommitContext, commits: Sequence[Commit], head: ManifestState | None) -> None:
        self._context = context
        self._commits = commits
        self._places = {commit.id: place for place, commit in enumerate(commits)}
        self._head = head
        self._last: ManifestState | None = None
        self._states: dict[str, ManifestState] = {}
        self._ahead: dict[Identity, _Ahead] = {}

    def states(self, commit: Commit) -> tuple[ManifestState, ManifestState]:
        """The states before and after one of the commits, which must have a parent."""
        assert commit.parent is not None
        manifest, before = self._context.manifest, self._last
        if before is None or before.head != commit.parent:
            before = state_of(manifest, manifest.parent_of(commit))
        if commit.id not in self._states:
            place = self._places[commit.id]
            states = states_along(manifest, before, self._commits[place : place + COMMITS_AHEAD])
            self._states = {state.head: state for state in states}
        self._last = self._states[commit.id]
        return before, self._last

    def delta(self, pair: TablePair, before: ManifestState, after: ManifestState) -> Delta:
        """The changes of a commit in one table."""
        head = self._head
        if head is None or not before.schema_hash == after.schema_hash == head.schema_hash:
            return pair.delta(self._context)
        ahead = self._ahead_of(pair, head)
        if ahead is None or pair.before is None or pair.after is None:
            return pair.delta(self._context)
        operation = _operation(ahead.table, pair.after.version)
        if isinstance(operation, lance.LanceOperation.Append):
            files = [data_file_name(file) for fragment in operation.fragments for file in fragment.files]
            rows = ahead.rows_of(files)
            if rows is None and ahead.places:
                # Some of the rows changed later, so read the version in which they are all present.
                rows = _rows_of(open_version(self._context, pair.after), files)
            if rows is not None and rows.num_rows == pair.after.row_count - pair.before.row_count:
                return Appended(Columns(()), None, None, rows)
        return pair.delta(self._context, operation)

    def _ahead_of(self, pair: TablePair, head: ManifestState) -> _Ahead | None:
        """The newest version of a table, if the commit made the next version of the same line; else None."""
        before, after, newest = pair.before, pair.after, head.tables.get(pair.identity)
        if before is None or after is None or newest is None:
            return None
        if not before.location == after.location == newest.location:
            return None
        if after.version != before.version + 1 or newest.version < after.version:
            return None
        if pair.identity not in self._ahead:
            try:
                self._ahead[pair.identity] = _ahead_of(self._context.tables.open(newest.location, newest.version))
            except Missing:
                return None
        return self._ahead[pair.identity]


def _operation(table: Table, version: int) -> object | None:
    """The operation of the transaction that made a version; None when it can not be read."""
    try:
        with translated(str(table.location), f"read the transaction of version {version} of"):
            transaction = transaction_of(table.dataset, version)
    except (StorageError, TypeError):
        # A missing version is reported by whoever opens it; the transaction of some compactions can not be rebuilt.
        return None
    return None if transaction is None else transaction.operation


def _ahead_of(table: Table) -> _Ahead:
    """The small fragments without deletions of a table, by data file; none if the table has blobs."""
    places: dict[str, int] = {}
    sizes: dict[int, int] = {}
    if blob_columns(table.schema):
        return _Ahead(table, places, sizes)
    for fragment in table.dataset.get_fragments():
        described = fragment.metadata
        if described.deletion_file is None and len(described.files) == 1 and described.physical_rows <= ROWS_AHEAD:
            places[described.files[0].path] = fragment.fragment_id
            sizes[fragment.fragment_id] = described.physical_rows
    return _Ahead(table, places, sizes)


def _rows_of(table: Table, files: Sequence[str]) -> pa.Table | None:
    """All rows of the data files, if these make up the newest fragments of the table; None if they do not, or are large."""
    newest = sorted(table.dataset.get_fragments(), key=lambda fragment: int(fragment.fragment_id))[-len(files) :]
    found = [data_file_name(file) for fragment in newest for file in fragment.metadata.files]
    if found != list(files) or sum(fragment.physical_rows for fragment in newest) > ROWS_AHEAD:
        return None
    with translated(str(table.location), "read"):
        return table.dataset.scanner(fragments=newest).to_table()


@dataclass
class _Ahead:
    """The newest version of a table, and rows of it that were read ahead."""

    table: Table
    #: Fragment ids by their only data file, and row counts by fragment; fragments with deleted rows are left out.
    places: dict[str, int]
    sizes: dict[int, int]
    _read: dict[int, pa.Table] = field(default_factory=dict)

    def rows_of(self, files: Sequence[str]) -> pa.Table | None:
        """All rows of these data files; None when this version lacks some of the rows, or there are too many."""
        if not files or any(file not in self.places for file in files):
            return None
        fragments = [self.places[file] for file in files]
        if sum(self.sizes[fragment] for fragment in fragments) > ROWS_AHEAD:
            return None
        for fragment in fragments:
            if fragment not in self._read:
                self._read = {kept: self._read[kept] for kept in fragments if kept in self._read}
                self._read_from(fragment)
        parts = [self._read.get(fragment) for fragment in fragments]
        return None if None in parts else pa.concat_tables(part for part in parts if part is not None)

    def _read_from(self, first: int) -> None:
        """Read a fragment and the fragments that follow it."""
        chosen: list[int] = []
        rows = 0
        for fragment in sorted(known for known in self.sizes if known >= first):
            rows += self.sizes[fragment]
            if chosen and (len(chosen) == FRAGMENTS_AHEAD or rows > ROWS_AHEAD):
                break
            chosen.append(fragment)
        dataset = self.table.dataset
        with translated(str(self.table.location), "read"):
            fragments = [found for number in chosen if (found := dataset.get_fragment(number)) is not None]
            read = dataset.scanner(fragments=fragments, with_row_address=True).to_table()
        owners = read[ROW_ADDRESS].to_numpy() >> np.uint64(32)
        images = read.drop_columns([ROW_ADDRESS])
        # Rows come fragment by fragment, so each fragment is a slice.
        starts = np.flatnonzero(np.r_[True, owners[1:] != owners[:-1]]) if len(owners) else np.zeros(0, np.int64)
        for start, end in zip(starts, [*starts[1:], len(owners)], strict=True):
            self._read[int(owners[start])] = images.slice(int(start), int(end - start))
