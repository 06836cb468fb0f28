"""Deletion marks read from their files: which rows of a fragment are gone, without scanning the rows that are not."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from lance import LanceFragment

from omnigraph.storage.root import Root
from omnigraph.storage.tables.table import Table

#: Reads a file below the graph root; None when it is not there.
ReadFile = Callable[[str], bytes | None]


def marked_offsets(table: Table, fragment: LanceFragment, root: Root, read: ReadFile) -> npt.NDArray[np.uint64] | None:
    """The places of the marked rows within a fragment; None where they are not kept as a plain list, or not known where."""
    marks = fragment.metadata.deletion_file
    if marks is None:
        return np.zeros(0, np.uint64)
    if marks.file_type != "array":
        # Many marks are kept as a compressed bitmap, which is Lance's own.
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
    """The dataset a file belongs to, below the graph root: this line, or one that it was forked from."""
    if base_id is None:
        return table.location.dataset_path
    base = table.dataset.base_paths().get(base_id)
    own = root.lance_uri(table.location.path)
    if base is None or not base.path.startswith(own):
        return None
    return table.location.path + base.path.removeprefix(own).rstrip("/")
