"""Sorts any number of rows by id: runs that fit into memory are sorted and written to disk, then merged.

Ids are ordered by their UTF-8 bytes, which equals the order of code points.
"""

from __future__ import annotations

import io
import os
import tempfile
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from itertools import pairwise
from typing import IO, Any

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.storage.object_errors import from_os

ID = "id"
#: How many bytes are sorted in memory at once.
RUN_BYTES = 64 * 1024 * 1024
#: How many bytes of each run are held while runs are merged.
BLOCK_BYTES = 512 * 1024


def in_id_order(
    batches: Iterable[pa.RecordBatch],
    *,
    run_bytes: int = RUN_BYTES,
    block_bytes: int = BLOCK_BYTES,
    block_rows: int | None = None,
) -> Iterator[pa.Table]:
    """The rows of a stream, sorted by their column `id`, in blocks of about `block_bytes`, or of `block_rows` rows."""
    held: list[pa.RecordBatch] = []
    size = 0
    with closing(_Spill()) as spill:
        for batch in batches:
            held.append(batch)
            size += batch.nbytes
            if size >= run_bytes:
                spill.add(_blocks(_sorted(held), block_bytes, block_rows))
                held, size = [], 0
        rest = _blocks(_sorted(held), block_bytes, block_rows) if held else iter(())
        held = []
        runs = [*spill.runs(), rest]
        if len(runs) == 1:
            yield from rest
            return
        yield from merge_sorted(runs)


def _sorted(batches: list[pa.RecordBatch]) -> pa.Table:
    table = pa.Table.from_batches(batches).combine_chunks()
    ids = table[ID]
    if len(ids) > 1 and not pc.all(pc.less_equal(ids.slice(0, len(ids) - 1), ids.slice(1))).as_py():
        table = table.take(pc.sort_indices(ids))
    return table


def _blocks(table: pa.Table, block_bytes: int, block_rows: int | None) -> Iterator[pa.Table]:
    rows = block_rows or max(1, table.num_rows * block_bytes // max(table.nbytes, 1))
    for start in range(0, table.num_rows, rows):
        yield table.slice(start, rows)


def id_ranges(streams: Sequence[Iterator[pa.Table]], nothing: pa.Table) -> Iterator[list[pa.Table]]:
    """Cut sorted streams at the same ids: each step yields, for every stream, all rows in the next range of ids.

    A range ends at the lowest last id of the waiting blocks, so each step uses up at least one block. `nothing` is yielded for
    a stream that has ended.
    """
    cursors = [_Cursor(stream) for stream in streams]
    while waiting := [cursor.last for cursor in cursors if cursor.rows is not None]:
        bound = min(waiting)
        yield [nothing if cursor.rows is None else cursor.take_until(bound) for cursor in cursors]


def merge_sorted(runs: Sequence[Iterator[pa.Table]]) -> Iterator[pa.Table]:
    """Merge sorted streams into one."""
    for parts in id_ranges(runs, pa.table({ID: pa.array([], pa.string())})):
        some = [part for part in parts if part.num_rows]
        yield some[0] if len(some) == 1 else _sorted([batch for part in some for batch in part.to_batches()])


class _Cursor:
    """A sorted run and its next rows; `rows` is None when the run is used up."""

    def __init__(self, run: Iterator[pa.Table]) -> None:
        self._run = run
        self.rows: pa.Table | None = None
        self.last = b""
        self._refill()

    def take_until(self, bound: bytes) -> pa.Table:
        """The next rows, up to and including an id."""
        assert self.rows is not None
        count = bisect_right(_Ids(self.rows[ID]), bound)
        taken = self.rows.slice(0, count)
        self.rows = self.rows.slice(count)
        if not self.rows.num_rows:
            self._refill()
        return taken

    def _refill(self) -> None:
        self.rows = next((block for block in self._run if block.num_rows), None)
        if self.rows is not None:
            self.last = _Ids(self.rows[ID])[len(self.rows) - 1]


class _Ids:
    """A column of ids as a sequence of bytes, for binary search."""

    def __init__(self, column: pa.ChunkedArray) -> None:
        self._column = column

    def __len__(self) -> int:
        return len(self._column)

    def __getitem__(self, place: int) -> bytes:
        text: str = self._column[place].as_py()
        return text.encode()


class _Spill:
    """Sorted runs in one nameless file, so that nothing is left of it however this process ends."""

    def __init__(self) -> None:
        self._file: IO[bytes] | None = None
        self._ends = [0]

    def add(self, blocks: Iterator[pa.Table]) -> None:
        """Write one run."""
        try:
            if self._file is None:
                self._file = tempfile.TemporaryFile()  # noqa: SIM115 — closed by `close`
            first = next(blocks)
            options = pa.ipc.IpcWriteOptions(compression="lz4")
            with pa.ipc.new_stream(pa.PythonFile(self._file, "w"), first.schema, options=options) as writer:
                writer.write_table(first)
                for block in blocks:
                    writer.write_table(block)
            self._file.flush()
            self._ends.append(self._file.tell())
        except OSError as error:
            folder = tempfile.gettempdir()
            raise from_os(error, action="sort rows in", location=folder, writes=False) from error

    def runs(self) -> list[Iterator[pa.Table]]:
        """The runs that were written, each as a stream of blocks."""
        if self._file is None:
            return []
        number = self._file.fileno()
        spans = pairwise(self._ends)
        return [_read(_Part(number, start, end)) for start, end in spans]

    def close(self) -> None:
        if self._file is not None:
            self._file.close()


def _read(part: _Part) -> Iterator[pa.Table]:
    for batch in pa.ipc.open_stream(pa.PythonFile(part, "r")):
        yield pa.Table.from_batches([batch])


class _Part(io.RawIOBase):
    """A span of a file as a separate file; the spans of one file can be read concurrently."""

    def __init__(self, number: int, start: int, end: int) -> None:
        super().__init__()
        self._number = number
        self._place = start
        self._end = end

    def readable(self) -> bool:
        return True

    def readinto(self, target: Any) -> int:
        wanted = min(len(target), self._end - self._place)
        data = os.pread(self._number, wanted, self._place)
        target[: len(data)] = data
        self._place += len(data)
        return len(data)
