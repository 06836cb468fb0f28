"""Bulk loads: one file of 1 million nodes and 3 million edges as one commit, next to a bare program and to Kuzu."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.load_data import EDGES_PER_NODE, write_csv, write_jsonl
from bench.measure import Floor, Measure, Row, benchmark, scratch_folder, summary
from bench.memory import Peaks, run_watched

#: Fewer for a quick look: OMNIGRAPH_BENCH_NODES=100000 make bench-load
NODES = int(os.environ.get("OMNIGRAPH_BENCH_NODES", "1000000"))
CHANGED = NODES * 3 // 10
_LARGER = 3
_BARE_RUNS = 2

COLD_SECONDS = 30.0
MOST_MIB = 3 * 1024
SMALL_SPARK_SECONDS = 0.5
SMALL_LOCAL_SECONDS = 0.06


@benchmark("load.bulk")
def bulk() -> Iterator[Row]:
    """Cold and warm, with the memory of driver, JVM and workers; the peers in processes of their own."""
    with scratch_folder() as folder:
        file = folder / "data.jsonl"
        entities = write_jsonl(file, NODES)
        size = f"{NODES:,} nodes + {NODES * EDGES_PER_NODE:,} edges"
        # The floor before and after, so that a load of the machine that comes or goes meets both.
        before, bare_peaks = _bare(file, folder, "before")
        ours, peaks = _ours("bulk", file, folder)
        after, _ = _bare(file, folder, "after")
        bare = summary([*before, *after])
        assert ours["entities"] == entities
        warm = summary(ours["warm"])
        floor = Floor("pyarrow + Lance, one process", bare)
        yield Row(f"load {size}, Spark running", warm, floor, goal=bare.median)
        yield Row(f"load {size}, with the start of Spark", summary([ours["cold"]]), floor, goal=COLD_SECONDS)
        peer = _kuzu(folder, entities)
        if peer is not None:
            yield Row(f"load {size}, Spark running", warm, Floor("Kuzu COPY", peer))
        inline, inline_peaks = _ours("in_process", file, folder)
        yield Row(f"load {size}, without Spark", summary([inline["seconds"]]), floor)
        yield _rate(f"load {size}, Spark running", entities, warm, bare)
        yield from _memory(f"load {size}", peaks, bare_peaks)
        yield Row(f"load {size}, without Spark: memory", _mib(inline_peaks.together), goal=MOST_MIB)


@benchmark("load.memory")
def memory() -> Iterator[Row]:
    """The same load at three times the size."""
    with scratch_folder() as folder:
        sums = []
        for times in (1, _LARGER):
            file = folder / f"{times}.jsonl"
            write_jsonl(file, NODES * times)
            _, peaks = _ours("once", file, _fresh(folder, f"out{times}"))
            sums.append(peaks.together)
            file.unlink()
            shutil.rmtree(folder / f"out{times}")
        floor = Floor(f"{NODES:,} nodes", _mib(sums[0]))
        yield Row(f"memory of a load of {NODES * _LARGER:,} nodes, all processes", _mib(sums[1]), floor, goal=MOST_MIB)


@benchmark("load.merge")
def merge() -> Iterator[Row]:
    """Changed and new rows merged into a large graph, against an append of as many."""
    with scratch_folder() as folder:
        file, changed, fresh = (folder / name for name in ("data.jsonl", "changed.jsonl", "fresh.jsonl"))
        write_jsonl(file, NODES)
        write_jsonl(changed, 2 * CHANGED, first=NODES - CHANGED, edges=False, shift=1)
        write_jsonl(fresh, 2 * CHANGED, first=2 * NODES, edges=False)
        ours, _ = _ours("merging", file, folder, changed, fresh)
        floor = Floor("append of as many", summary([ours["append"]]))
        what = f"merge {CHANGED:,} changed + {CHANGED:,} new nodes into {NODES:,}"
        yield Row(what, summary([ours["merge"]]), floor, goal=2 * ours["append"])


@benchmark("load.small")
def small() -> Iterator[Row]:
    """Ten rows at a time into a graph that holds 10,000 nodes."""
    with scratch_folder() as folder:
        file = folder / "data.jsonl"
        write_jsonl(file, 10_000)
        ours, _ = _ours("small", file, folder)
        yield Row("load 10 rows, Spark running", summary(ours["spark"]), goal=SMALL_SPARK_SECONDS)
        yield Row("load 10 rows, in process", summary(ours["local"]), goal=SMALL_LOCAL_SECONDS)


def _ours(what: str, file: Path, folder: Path, *more: Path) -> tuple[dict[str, Any], Peaks]:
    printed, peaks = run_watched(["-m", "bench.load_child", what, *map(str, (file, folder, *more))])
    answer: dict[str, Any] = json.loads(printed)
    return answer, peaks


def _bare(file: Path, folder: Path, when: str) -> tuple[list[float], Peaks]:
    times, peaks = [], Peaks()
    for run in range(_BARE_RUNS):
        printed, peaks = run_watched(["-m", "bench.bare_load", str(file), str(_fresh(folder, f"{when}{run}"))])
        times.append(float(printed.split()[1]))
    return times, peaks


def _kuzu(folder: Path, entities: int) -> Measure | None:
    """The peer's time; None when it is not installed."""
    try:
        import kuzu as _kuzu  # noqa: F401
    except ImportError:
        return None
    files = write_csv(folder, NODES)
    printed, _ = run_watched(["-m", "bench.kuzu_load", *map(str, files), str(folder)])
    count, seconds = printed.split()
    assert int(count) == entities
    return summary([float(seconds)])


def _fresh(folder: Path, name: str) -> Path:
    made = folder / name
    made.mkdir()
    return made


def _rate(what: str, entities: int, ours: Measure, bare: Measure) -> Row:
    def rate(taken: Measure) -> Measure:
        return Measure(entities / taken.median, entities / taken.high, entities / taken.low, "entities/s")

    return Row(what, rate(ours), Floor("pyarrow + Lance, one process", rate(bare)))


def _memory(what: str, peaks: Peaks, bare: Peaks) -> Iterator[Row]:
    for role, size in sorted(peaks.by_role.items()):
        yield Row(f"{what}: memory of {role}", _mib(size))
    floor = Floor("pyarrow + Lance, one process", _mib(bare.together))
    yield Row(f"{what}: memory of all at once", _mib(peaks.together), floor, goal=MOST_MIB)


def _mib(size: float) -> Measure:
    return Measure(size, size, size, "MiB")
