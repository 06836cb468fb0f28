"""Rows in id order, however many: what does not fit into memory is sorted in runs on disk, which are merged.

Ids are ordered by their UTF-8 bytes, which is the order of their code points.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

ID = "id"
ROW_ID = "_rowid"
_NO_ROWS = pa.table({ID: pa.array([], pa.string()), ROW_ID: pa.array([], pa.uint64())})
#: What is sorted in memory at once.
RUN_BYTES = 256 * 1024 * 1024
#: How many rows of each run are looked at together.
BLOCK_ROWS = 8192


def in_id_order(
    batches: Iterable[pa.RecordBatch], *, block_rows: int = BLOCK_ROWS, run_bytes: int = RUN_BYTES
) -> Iterator[pa.Table]:
    """Rows with the columns `id` and `_rowid` sorted by id, in blocks."""
    with ExitStack() as cleaning:
        folder: Path | None = None
        runs: list[Path] = []
        held: list[pa.RecordBatch] = []
        for batch in batches:
            held.append(batch)
            if sum(kept.nbytes for kept in held) >= run_bytes:
                folder = folder or Path(
                    cleaning.enter_context(tempfile.TemporaryDirectory(prefix="omnigraph-changes-"))
                )
                runs.append(_spill(_sorted(held), folder / f"{len(runs)}.arrow", block_rows))
                held = []
        streams = [_read(run) for run in runs]
        if held:
            streams.append(_blocks(_sorted(held), block_rows))
        if len(streams) == 1:
            yield from streams[0]
            return
        for parts in id_ranges(streams):
            yield pa.concat_tables(parts).sort_by(ID)


def smallest_ids(batches: Iterable[pa.RecordBatch], count: int) -> pa.Table:
    """The rows with the smallest ids, in order; no more than some times as many are held."""
    held: list[pa.RecordBatch] = []
    for batch in batches:
        held.append(batch)
        if sum(kept.num_rows for kept in held) > max(8 * count, BLOCK_ROWS):
            held = _smallest(held, count).to_batches()
    return _smallest(held, count) if held else _NO_ROWS


def _smallest(batches: list[pa.RecordBatch], count: int) -> pa.Table:
    rows = pa.Table.from_batches(batches)
    return rows.take(pc.select_k_unstable(rows, count, [(ID, "ascending")]))


def id_ranges(streams: Sequence[Iterator[pa.Table]]) -> Iterator[list[pa.Table]]:
    """Sorted streams cut at the same ids: each step gives, of every stream, all rows of the next range of ids."""
    cursors = [_Cursor(stream) for stream in streams]
    while waiting := [cursor.last for cursor in cursors if cursor.rows.num_rows]:
        bound = min(waiting, key=lambda text: text.encode())
        yield [cursor.take_until(bound) for cursor in cursors]


class _Cursor:
    """A sorted stream and the rows of it that are waiting."""

    def __init__(self, stream: Iterator[pa.Table]) -> None:
        self._stream = stream
        self.rows = _NO_ROWS
        self._refill()

    @property
    def last(self) -> str:
        text: str = self.rows[ID][-1].as_py()
        return text

    def take_until(self, bound: str) -> pa.Table:
        """The waiting rows up to an id, which is not beyond the last that waits."""
        count = pc.sum(pc.less_equal(self.rows[ID], bound)).as_py() or 0
        taken = self.rows.slice(0, count)
        self.rows = self.rows.slice(count)
        self._refill()
        return taken

    def _refill(self) -> None:
        while not self.rows.num_rows:
            following = next(self._stream, None)
            if following is None:
                return
            self.rows = following


def _sorted(batches: list[pa.RecordBatch]) -> pa.Table:
    return pa.Table.from_batches(batches).sort_by(ID)


def _blocks(rows: pa.Table, block_rows: int) -> Iterator[pa.Table]:
    for start in range(0, rows.num_rows, block_rows):
        yield rows.slice(start, block_rows)


def _spill(rows: pa.Table, path: Path, block_rows: int) -> Path:
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, rows.schema) as writer:
        writer.write_table(rows, max_chunksize=block_rows)
    return path


def _read(path: Path) -> Iterator[pa.Table]:
    with pa.OSFile(str(path), "rb") as source, pa.ipc.open_file(source) as reader:
        for number in range(reader.num_record_batches):
            yield pa.Table.from_batches([reader.get_batch(number)])
