"""Deletion marks: which fragments change, and which vanish, when rows of a table are deleted."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from lance import LanceFragment
from lance.fragment import FragmentMetadata

from omnigraph.errors import BadRequest
from omnigraph.storage.objects import ONE_BY_ONE
from omnigraph.storage.root import Root
from omnigraph.storage.tables.lance_errors import translated
from omnigraph.storage.tables.row_places import Offsets, RowPlaces
from omnigraph.storage.tables.table import Table


@dataclass(frozen=True)
class Marks:
    """The result of marking rows: fragments with new deletion files, ids of emptied fragments, the number of marked rows."""

    changed: tuple[FragmentMetadata, ...]
    vanished: tuple[int, ...]
    rows: int


def mark_deleted(table: Table, rows: RowPlaces | pa.Array | pa.ChunkedArray, requests: Executor = ONE_BY_ONE) -> Marks:
    """Write deletion files for these rows, given as places or addresses, without committing them."""
    places = rows if isinstance(rows, RowPlaces) else RowPlaces.of(rows)
    touched = list(places.fragments)
    marked = requests.map(lambda id_: _mark(table, id_, places.fragments[id_].offsets()), touched)
    changed: list[FragmentMetadata] = []
    vanished: list[int] = []
    count = 0
    for fragment_id, (before, after) in zip(touched, marked, strict=True):
        if after is None:
            vanished.append(fragment_id)
            count += before.num_rows
        elif after.num_deletions > before.num_deletions:
            changed.append(after)
            count += before.num_rows - after.num_rows
    return Marks(tuple(changed), tuple(vanished), count)


def _mark(table: Table, fragment_id: int, offsets: Offsets) -> tuple[FragmentMetadata, FragmentMetadata | None]:
    """A fragment before and after the rows at these offsets are marked; the second is None when no row is left."""
    fragment = table.dataset.get_fragment(fragment_id)
    if fragment is None:
        raise BadRequest(f"{table.location} has no fragment {fragment_id} at version {table.version}")
    before = fragment.metadata
    with translated(str(table.location), "mark deleted rows in"):
        after = fragment.delete_rows(offsets.tolist())
    return before, after


#: Reads a file by its path below the graph root; None when it does not exist.
ReadFile = Callable[[str], bytes | None]


def marked_offsets(table: Table, fragment: LanceFragment, root: Root, read: ReadFile) -> npt.NDArray[np.uint64] | None:
    """The offsets of the marked rows within a fragment; None if they are stored as a bitmap, or can not be read."""
    marks = fragment.metadata.deletion_file
    if marks is None:
        return np.zeros(0, np.uint64)
    if marks.file_type != "array":
        # Many marks are stored as a compressed bitmap in Lance's own format.
        return None
    folder = _folder(table, marks.base_id, root)
    data = None if folder is None else read(f"{folder}/{marks.path(fragment.fragment_id)}")
    if data is None:
        return None
    try:
        (column,) = pa.ipc.open_file(data).read_all().columns
        offsets: npt.NDArray[np.uint64] = column.to_numpy().astype(np.uint64)
        return offsets
    except (pa.ArrowException, ValueError):
        return None


def _folder(table: Table, base_id: int | None, root: Root) -> str | None:
    """The path of the dataset that a file belongs to: this line, or a line it was forked from; else None."""
    if base_id is None:
        return table.location.dataset_path
    base = table.dataset.base_paths().get(base_id)
    own = root.lance_uri(table.location.path)
    if base is None or not base.path.startswith(own):
        return None
    return table.location.path + base.path.removeprefix(own).rstrip("/")
