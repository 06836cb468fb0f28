"""The smallest ids of a stream, picked out without sorting it."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pyarrow as pa
import pytest

from omnigraph.changes.delta import smallest_ids

IDS = [*(f"k{number}" for number in range(20_000)), "", "é", "𝄞", "￿", "k1\x00"]


def batches(ids: list[str]) -> Iterator[pa.RecordBatch]:
    for start in range(0, len(ids), 700):
        some = ids[start : start + 700]
        yield pa.record_batch({"id": some, "_rowid": pa.array(range(start, start + len(some)), pa.uint64())})


@pytest.mark.parametrize("count", [1, 7, 5000, 30_000])
def test_the_smallest_ids(count: int) -> None:
    shuffled = random.Random(7).sample(IDS, len(IDS))
    found = smallest_ids(batches(shuffled), count)
    assert found["id"].to_pylist() == sorted(IDS, key=str.encode)[:count]
    assert [shuffled[row] for row in found["_rowid"].to_pylist()] == found["id"].to_pylist()


def test_nothing_has_no_smallest() -> None:
    assert smallest_ids(iter(()), 5).num_rows == 0
