"""A load far larger than memory allows for: one commit, and no more memory than a small one takes."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from bench.memory import run_watched

NODES = 1_000_000
#: Fewer for a trial: OMNIGRAPH_TEST_EDGES=5000000
EDGES = int(os.environ.get("OMNIGRAPH_TEST_EDGES", "50000000"))
MOST_MIB = 3 * 1024
_AT_ONCE = 200_000


def write_lines(path: Path) -> None:
    """Every node, then edges that begin everywhere in turn and lead anywhere."""
    with path.open("wb") as file:
        for numbers in _batches(NODES):
            file.write(_text('{"type":"P","data":{"key":"', _keys(numbers), '"}}\n'))
        for numbers in _batches(EDGES):
            ends = _keys(numbers % NODES), _keys((numbers * 7919 + numbers // NODES) % NODES)
            file.write(_text('{"edge":"K","from":"', ends[0], '","to":"', ends[1], '"}\n'))


def _batches(count: int) -> list[np.ndarray[tuple[int], np.dtype[np.int64]]]:
    return [np.arange(start, min(start + _AT_ONCE, count), dtype=np.int64) for start in range(0, count, _AT_ONCE)]


def _keys(numbers: np.ndarray[tuple[int], np.dtype[np.int64]]) -> pa.Array:
    return pc.binary_join_element_wise("p", pc.utf8_lpad(pa.array(numbers).cast(pa.string()), 7, "0"), "")


def _text(*pieces: str | pa.Array) -> memoryview:
    joined = pc.binary_join_element_wise(*pieces, "")
    return memoryview(joined.buffers()[2])[: pc.sum(pc.binary_length(joined)).as_py()]


@pytest.mark.long
@pytest.mark.timeout(3 * 3600)
def test_fifty_million_edges(tmp_path: Path) -> None:
    try:
        write_lines(tmp_path / "in.jsonl")
        printed, peaks = run_watched(
            ["-m", "tests.load.large_child", str(tmp_path / "in.jsonl"), str(tmp_path / "graph")]
        )
        found = json.loads(printed)
        assert found["counts"] == {"node:P": NODES, "edge:K": EDGES}
        assert found["edges"] == EDGES
        assert found["commits"] == 1
        assert peaks.together < MOST_MIB, f"memory by role, in MiB: {peaks.by_role}"
    finally:
        # Several gigabytes that nobody wants to keep with the results of the last runs.
        shutil.rmtree(tmp_path, ignore_errors=True)
