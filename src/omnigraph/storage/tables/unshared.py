"""Which rows two versions of a table do not physically share: only these can differ. Found without reading values.

A data file is never rewritten, so a fragment that both versions have, with the same deletion marks, holds the same rows. If
only the marks differ, the rows that both versions show are shared. Compaction moves unchanged rows to new files; there the
stable row id and the version that last wrote the row decide, if both versions have a common history.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import lance
import numpy as np
import numpy.typing as npt
import pyarrow as pa
from lance import LanceFragment

from omnigraph.storage.root import Root
from omnigraph.storage.tables.deletions import ReadFile, marked_offsets
from omnigraph.storage.tables.lance_errors import translated
from omnigraph.storage.tables.lance_private import data_file_name
from omnigraph.storage.tables.table import BATCH_ROWS, ROW_ADDRESS, Blobs, Table

ROW_ID = "_rowid"
_LAST_UPDATED = "_row_last_updated_at_version"
#: The most rewritten rows whose ids and versions are held in memory for matching (16 bytes each).
MATCHED_ROWS = 16_000_000

_Numbers = npt.NDArray[np.uint64]
_NO_ROWS: _Numbers = np.zeros(0, np.uint64)


@dataclass(frozen=True)
class Rows:
    """Some rows of a table: all live rows of some fragments, and single rows by row id."""

    table: Table
    fragments: tuple[LanceFragment, ...] = ()
    row_ids: _Numbers = field(default_factory=lambda: _NO_ROWS)

    def __len__(self) -> int:
        return sum(fragment.count_rows() for fragment in self.fragments) + len(self.row_ids)

    def scan(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """These columns of the rows, and their row ids, in no particular order."""
        if self.fragments:
            yield from _scan(self.table, self.fragments, [*columns, ROW_ID])
        for start in range(0, len(self.row_ids), BATCH_ROWS):
            found = take_rows(self.table, pa.array(self.row_ids[start : start + BATCH_ROWS]), columns)
            yield from found.to_batches()


def all_rows(table: Table) -> Rows:
    """Every row of a table."""
    return Rows(table, tuple(table.dataset.get_fragments()))


def take_rows(
    table: Table,
    row_ids: pa.Array | pa.ChunkedArray,
    columns: Sequence[str] | None = None,
    *,
    blobs: Blobs = "descriptors",
) -> pa.Table:
    """The rows with these row ids, in no particular order; the result includes the row ids."""
    # Lance executes a list of row ids as a direct take; given as SQL text, because expressions have no unsigned integers.
    if not len(row_ids):
        return table.empty(columns, with_row_id=True, blobs=blobs)
    among = f"{ROW_ID} in ({', '.join(map(str, row_ids.to_pylist()))})"
    return table.read(columns, among, with_row_id=True, blobs=blobs)


def unshared(
    before: Table,
    after: Table,
    shared_until: int | None,
    root: Root,
    read: ReadFile,
    touched: frozenset[int] | None = None,
) -> tuple[Rows, Rows]:
    """The rows of each version that the other version does not have unchanged.

    `shared_until`: the last version that both have in common in their history; None when there is none. `read`: reads a
    file below the graph root. `touched`: the ids of the fragments that can differ, if known; None: compare all.
    """
    old, new = _by_files(before, touched), _by_files(after, touched)
    single_before: list[_Numbers] = []
    single_after: list[_Numbers] = []
    for files in old.keys() & new.keys():
        if _marks(old[files]) != _marks(new[files]):
            only_before, only_after = _marked_on_one_side(before, old[files], after, new[files], root, read)
            single_before.append(only_before)
            single_after.append(only_after)
    gone = tuple(fragment for files, fragment in old.items() if files not in new)
    come = tuple(fragment for files, fragment in new.items() if files not in old)
    if shared_until is not None and gone and come and _can_match(gone) and _can_match(come):
        rewritten_before, rewritten_after = _rewritten(before, gone, after, come, shared_until)
        single_before.append(rewritten_before)
        single_after.append(rewritten_after)
        gone = come = ()
    return (
        Rows(before, gone, np.concatenate([_NO_ROWS, *single_before])),
        Rows(after, come, np.concatenate([_NO_ROWS, *single_after])),
    )


_Files = tuple[tuple[str, tuple[int, ...]], ...]


def _by_files(table: Table, only: frozenset[int] | None) -> dict[_Files, LanceFragment]:
    """The fragments by their data files; file names are unique across all lines."""
    if only is None:
        fragments = table.dataset.get_fragments()
    else:
        found = (table.dataset.get_fragment(number) for number in sorted(only))
        fragments = [fragment for fragment in found if fragment is not None]
    return {
        tuple((data_file_name(file), tuple(file.fields)) for file in fragment.metadata.files): fragment
        for fragment in fragments
    }


def touched_by(before: Table, after: Table, operation: object) -> frozenset[int] | None:
    """The ids of the fragments that differ between a version and the next, from its transaction; None if unknown."""
    if isinstance(operation, lance.LanceOperation.Update | lance.LanceOperation.Delete):
        marked = {fragment.id for fragment in operation.updated_fragments}
    elif isinstance(operation, lance.LanceOperation.Append):
        marked = set()
    else:
        return None
    # New fragments get their ids at the commit of the transaction.
    here, there = ({fragment.fragment_id for fragment in side.dataset.get_fragments()} for side in (before, after))
    return frozenset(marked | (here ^ there))


def _marks(fragment: LanceFragment) -> tuple[object, ...] | None:
    """What identifies the deletion marks of a fragment, without the line their file lies on; None when it has no marks."""
    marks = fragment.metadata.deletion_file
    return None if marks is None else (fragment.fragment_id, marks.read_version, marks.id, marks.num_deleted_rows)


def _marked_on_one_side(
    before: Table, old: LanceFragment, after: Table, new: LanceFragment, root: Root, read: ReadFile
) -> tuple[_Numbers, _Numbers]:
    """The row ids of rows that only one side of the same files shows: from the marks, else from the shown rows."""
    gone_before, gone_after = marked_offsets(before, old, root, read), marked_offsets(after, new, root, read)
    if gone_before is not None and gone_after is not None:
        return (
            _row_ids_at(before, old, np.setdiff1d(gone_after, gone_before)),
            _row_ids_at(after, new, np.setdiff1d(gone_before, gone_after)),
        )
    old_ids, old_places = _ids_and_places(before, old)
    new_ids, new_places = _ids_and_places(after, new)
    shown_before, shown_after = (np.zeros(old.physical_rows, np.bool_) for _ in range(2))
    shown_before[old_places] = True
    shown_after[new_places] = True
    return old_ids[~shown_after[old_places]], new_ids[~shown_before[new_places]]


def _row_ids_at(table: Table, fragment: LanceFragment, offsets: _Numbers) -> _Numbers:
    """The row ids of the shown rows at these offsets of a fragment."""
    if not len(offsets):
        return _NO_ROWS
    addresses = (offsets + np.uint64(fragment.fragment_id << 32)).tolist()
    found = table.read([], f"{ROW_ADDRESS} in ({', '.join(map(str, addresses))})", with_row_id=True)
    row_ids: _Numbers = found[ROW_ID].to_numpy()
    return row_ids


def _ids_and_places(table: Table, fragment: LanceFragment) -> tuple[_Numbers, _Numbers]:
    read = pa.Table.from_batches(
        _scan(table, [fragment], [ROW_ID, ROW_ADDRESS]), pa.schema([(ROW_ID, pa.uint64()), (ROW_ADDRESS, pa.uint64())])
    )
    return read[ROW_ID].to_numpy(), read[ROW_ADDRESS].to_numpy() & np.uint64(0xFFFFFFFF)


def _can_match(fragments: Sequence[LanceFragment]) -> bool:
    """Whether Lance has row ids and last-updated versions of these rows, and there are not too many of them."""
    if sum(fragment.count_rows() for fragment in fragments) > MATCHED_ROWS:
        return False
    described = (fragment.metadata.to_json() for fragment in fragments)
    return all(known["row_id_meta"] and known["last_updated_at_version_meta"] for known in described)


def _rewritten(
    before: Table, gone: Sequence[LanceFragment], after: Table, come: Sequence[LanceFragment], shared_until: int
) -> tuple[_Numbers, _Numbers]:
    """The row ids of rewritten rows on each side that do not match a row with the same id and last writing version."""
    old_ids, old_versions = _ids_and_versions(before, gone)
    new_ids, new_versions = _ids_and_versions(after, come)
    places = np.searchsorted(old_ids, new_ids)
    places[places == len(old_ids)] = 0
    same = (old_ids[places] == new_ids) & (old_versions[places] == new_versions) & (new_versions <= shared_until)
    kept = np.zeros(len(old_ids), np.bool_)
    kept[places[same]] = True
    return old_ids[~kept], new_ids[~same]


def _ids_and_versions(table: Table, fragments: Sequence[LanceFragment]) -> tuple[_Numbers, _Numbers]:
    """The row ids in ascending order, and the version that last wrote each of these rows."""
    read = pa.Table.from_batches(
        _scan(table, fragments, [ROW_ID, _LAST_UPDATED]),
        pa.schema([(ROW_ID, pa.uint64()), (_LAST_UPDATED, pa.uint64())]),
    )
    ids, versions = read[ROW_ID].to_numpy(), read[_LAST_UPDATED].to_numpy()
    order = np.argsort(ids, kind="stable")
    return ids[order], versions[order]


def _scan(table: Table, fragments: Sequence[LanceFragment], columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    with translated(str(table.location), "read"):
        yield from table.dataset.scanner(columns=list(columns), fragments=list(fragments)).to_batches()
