"""Rows in id order: the same rows, sorted, whatever fits into memory; and nothing left on disk."""

from __future__ import annotations

import errno
import tempfile
from collections.abc import Generator
from pathlib import Path
from typing import IO, cast

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omnigraph.errors import StorageError
from omnigraph.values.ordered import in_id_order

IDS = st.lists(st.lists(st.text("aé😀z\x00", max_size=3), max_size=6), max_size=8)


def batch(ids: list[str], start: int) -> pa.RecordBatch:
    return pa.record_batch(
        {"id": pa.array(ids, pa.string()), "n": pa.array(range(start, start + len(ids)), pa.int64())}
    )


def batches(parts: list[list[str]]) -> list[pa.RecordBatch]:
    made, start = [], 0
    for ids in parts:
        made.append(batch(ids, start))
        start += len(ids)
    return made


@given(IDS, st.sampled_from([1, 40, 10**9]), st.sampled_from([1, 40, 10**6]))
@settings(max_examples=200, deadline=None)
def test_the_same_rows_in_order(parts: list[list[str]], run_bytes: int, block_bytes: int) -> None:
    given_rows = [(row["id"], row["n"]) for part in batches(parts) for row in part.to_pylist()]
    blocks = list(in_id_order(batches(parts), run_bytes=run_bytes, block_bytes=block_bytes))
    rows = [(row["id"], row["n"]) for block in blocks for row in block.to_pylist()]
    assert [id_ for id_, _ in rows] == sorted((id_ for id_, _ in given_rows), key=str.encode)
    assert sorted(rows) == sorted(given_rows)


def test_all_kinds_of_columns_pass_through_runs() -> None:
    rows = [{"id": f"{n % 7}{n}", "v": [float(n), 1.0], "l": [n] * (n % 3), "s": {"k": n}} for n in range(50)]
    schema = pa.schema(
        {
            "id": pa.string(),
            "v": pa.list_(pa.float32(), 2),
            "l": pa.list_(pa.int64()),
            "s": pa.struct({"k": pa.int32()}),
        }
    )
    parts = pa.Table.from_pylist(rows, schema).to_batches(max_chunksize=9)
    found = [row for block in in_id_order(parts, run_bytes=500, block_bytes=100) for row in block.to_pylist()]
    assert found == sorted(rows, key=lambda row: str(row["id"]))


def test_runs_leave_no_file_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    stream = in_id_order(batches([["b"], ["a"], ["c"]]), run_bytes=1, block_bytes=1)
    next(stream)
    assert list(tmp_path.iterdir()) == []
    assert isinstance(stream, Generator)
    stream.close()
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_a_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    class Full:
        closed = False

        def write(self, _: bytes) -> int:
            raise OSError(errno.ENOSPC, "No space left on device")

        def flush(self) -> None: ...
        def close(self) -> None: ...
        def tell(self) -> int:
            return 0

    def full() -> IO[bytes]:
        return cast("IO[bytes]", Full())

    monkeypatch.setattr(tempfile, "TemporaryFile", full)
    with pytest.raises(StorageError, match="the disk is full"):
        list(in_id_order(batches([["b"], ["a"]]), run_bytes=1))
