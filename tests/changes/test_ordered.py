"""Rows in id order: the same whether they fit into memory or not."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pyarrow as pa
import pytest

from omnigraph.changes import ordered
from omnigraph.changes.ordered import id_ranges, in_id_order, smallest_ids

IDS = [*(f"k{number}" for number in range(500)), "", "é", "𝄞", "￿", "k1\x00"]


def batches(ids: list[str]) -> Iterator[pa.RecordBatch]:
    for start in range(0, len(ids), 40):
        some = ids[start : start + 40]
        yield pa.record_batch({"id": some, "_rowid": pa.array(range(start, start + len(some)), pa.uint64())})


@pytest.mark.parametrize("run_bytes", [1, 2000, 10**9], ids=["many runs", "some runs", "in memory"])
@pytest.mark.parametrize("block_rows", [1, 7, 1000])
def test_any_number_of_rows_is_sorted(run_bytes: int, block_rows: int) -> None:
    shuffled = random.Random(7).sample(IDS, len(IDS))
    blocks = list(in_id_order(batches(shuffled), block_rows=block_rows, run_bytes=run_bytes))
    rows = pa.concat_tables(blocks).to_pylist()
    assert [row["id"] for row in rows] == sorted(IDS, key=str.encode)
    assert {row["id"]: row["_rowid"] for row in rows} == {id_: place for place, id_ in enumerate(shuffled)}


def test_runs_leave_nothing_behind(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(ordered.tempfile, "tempdir", str(tmp_path))
    stream = in_id_order(batches(IDS), run_bytes=1)
    next(stream)
    assert list(tmp_path.iterdir()), "nothing was spilled"
    stream.close()
    assert not list(tmp_path.iterdir())


def test_ranges_of_several_streams_are_cut_at_the_same_ids() -> None:
    left, right = IDS[::2], IDS[::3]
    streams = [in_id_order(batches(ids), block_rows=10) for ids in (left, right)]
    seen: list[list[str]] = [[], []]
    highest = ""
    for parts in id_ranges(streams):
        texts = [part["id"].to_pylist() for part in parts]
        together = sorted(texts[0] + texts[1], key=str.encode)
        assert not seen[0] + seen[1] or together[0].encode() > highest.encode()
        highest = together[-1]
        for all_of_it, some in zip(seen, texts, strict=True):
            all_of_it += some
    assert seen == [sorted(left, key=str.encode), sorted(right, key=str.encode)]


@pytest.mark.parametrize("count", [1, 7, 505, 1000])
def test_the_smallest_ids(count: int) -> None:
    shuffled = random.Random(7).sample(IDS, len(IDS))
    found = smallest_ids(batches(shuffled), count)
    assert found["id"].to_pylist() == sorted(IDS, key=str.encode)[:count]
