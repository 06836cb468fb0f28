"""What a handle bears: queries from several threads at once, and a large scan with a limit."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pyarrow as pa

import omnigraph
from bench.measure import Floor, Measure, Row, benchmark, scratch_folder, seconds, summary
from tests.query.loading import commit_tables

SCHEMA = "node P { key: String @key n: I32 note: String }"
ROWS = 5_000_000
THREADS, QUERIES = 8, 32
#: Goal: threads together are not slower than one after the other, and a limit keeps the memory of a scan small.
MOST_MEMORY = 512

_SCAN = "query q() { match { $p: P $p.n >= 0 } return { $p.n, $p.note } limit 100 }"
_WORK = "query q($n: I32) { match { $p: P $p.n = $n } return { count($p) as k } }"


@benchmark("query.threads")
def threads() -> Iterator[Row]:
    """The same queries one after the other and from several threads."""
    with scratch_folder() as folder:
        graph = _graph(folder / "graph", ROWS // 5)

        def ask(number: int) -> None:
            graph.query(_WORK, params={"n": number})

        ask(0)
        alone, together = [], []
        with ThreadPoolExecutor(THREADS) as pool:
            for _ in range(5):
                alone.append(seconds(lambda: [ask(number) for number in range(QUERIES)]))
                together.append(seconds(lambda: list(pool.map(ask, range(QUERIES)))))
        floor = Floor("one after the other", summary(alone))
        yield Row(f"{QUERIES} scans from {THREADS} threads", summary(together), floor, goal=summary(alone).median)


@benchmark("query.memory")
def memory() -> Iterator[Row]:
    """How much memory a process needs for a limited scan of a large table, beyond that of an empty one."""
    with scratch_folder() as folder:
        _graph(folder / "graph", ROWS)
        _graph(folder / "small", 10)
        large, small = _peak(folder / "graph"), _peak(folder / "small")
        yield Row(
            f"memory of a scan of {ROWS:,} rows with a limit",
            Measure(large, large, large, "MiB"),
            Floor("10 rows", Measure(small, small, small, "MiB")),
            goal=MOST_MEMORY,
        )


_CHILD = """
import re, sys, omnigraph
graph = omnigraph.open(sys.argv[1], mode="ro")
assert len(graph.query(sys.argv[2]).rows) == int(sys.argv[3])
print(int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1]) / 1024)
"""


def _peak(path: Path) -> float:
    expected = "10" if path.name == "small" else "100"
    command = [sys.executable, "-c", _CHILD, str(path), _SCAN, expected]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def _graph(path: Path, rows: int) -> omnigraph.Graph:
    graph = omnigraph.init(path, SCHEMA)
    keys = pa.array(np.char.add("k", np.arange(rows).astype(str)).tolist(), pa.string())
    schema = graph.snapshot().open("node:P").schema
    numbers = pa.array(np.arange(rows, dtype=np.int32) % 1000)
    notes = pa.array(["a note of some forty characters, as texts go"] * rows, pa.string())
    columns = {"id": keys, "key": keys, "n": numbers, "note": notes}
    commit_tables(graph, {"node:P": pa.Table.from_arrays([columns[name] for name in schema.names], schema=schema)})
    return graph
