"""Builds a table as it was between two commits of a group, from the versions before and after the group.

On local disk it is a clone of the earlier version without its data, with the rows of the counted commits on top. Elsewhere
all rows are copied to local disk, because a clone must lie in the same store as its table. Only this process sees it. The
folder is removed when the process ends, because a reader may keep the table longer than the caller that opened it.
"""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.ids import new_ulid
from omnigraph.storage.scratch import ScratchFolder, make_scratch
from omnigraph.storage.tables.blobs import blob_columns
from omnigraph.storage.tables.commit import private_copy, private_table
from omnigraph.storage.tables.handles import Tables
from omnigraph.storage.tables.lance_errors import Missing
from omnigraph.storage.tables.location import Location, Part
from omnigraph.storage.tables.staged import Staged, stage_append, stage_delete, stage_replace
from omnigraph.storage.tables.table import ROW_ADDRESS, Table

#: The scratch folder of this process, by process id: a forked child has its own.
_folders: dict[int, ScratchFolder] = {}
_making = threading.Lock()


def _folder() -> Path:
    """The scratch folder for such tables of this process."""
    process = os.getpid()
    with _making:
        if process not in _folders:
            _folders[process] = make_scratch("parts")
            atexit.register(_remove, process)
        return _folders[process].path


def _remove(process: int) -> None:
    if os.getpid() == process:
        _folders[process].remove()


def open_part(tables: Tables, location: Location, part: Part, version: int) -> Table:
    """The table with only the rows that count; `Missing` when one of the two versions is gone."""
    before, after = tables.open(part.base, part.base_version), tables.open(location.whole, version)
    ids = pa.array(sorted(part.shown), pa.string())
    outdated = before.take_ids(ids, ["id"], with_row_address=True)[ROW_ADDRESS]
    image = after.take_ids(ids, blobs="values")
    uri = str(_folder() / new_ulid())
    if tables.root.is_local:

        def change(table: Table) -> Staged:
            if not image.num_rows:
                return stage_delete(table, row_addresses=outdated)
            return stage_replace(table, image, outdated) if len(outdated) else stage_append(table, image)

        return private_copy(tables, before, uri, change)
    if blob_columns(before.schema):
        raise Missing(
            f"{location} has blobs, and its state between two commits that were published together can not be put together "
            "outside a local disk; read the last commit of the group",
            path=location.path,
        )

    def rows() -> Iterator[pa.RecordBatch]:
        for batch in before.scan():
            yield batch.filter(pc.invert(pc.is_in(batch["id"], value_set=ids)))
        yield from image.to_batches()

    return private_table(uri, before.schema, rows())
