"""Merges: the same small change of both sides in tables of two sizes, next to DoltLite; a large fast-forward."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import omnigraph
from bench.measure import Floor, Measure, Row, benchmark, scratch_folder, seconds, summary
from bench.memory import run_watched
from bench.merge_data import CHANGED, INSERTED, ROUNDS, SCHEMA, changed_names, new_names, rows

SIZES = (60_000, 600_000)
GROWTH = 1.5
SLOWEST = 1.0
VECTORS = 1_000_000
DIMENSION = 384
MOST_MEMORY = 1024.0

_HERE = Path(__file__).parent


@benchmark("merge.both_sides")
def both_sides() -> Iterator[Row]:
    """Updates and inserts on both sides, merged three ways; both systems end with the same number of rows."""
    small, large = (_ours(size) for size in SIZES)
    peers = [_doltlite(size) for size in SIZES]
    for size, ours, peer in zip(SIZES, (small, large), peers, strict=True):
        what = f"merge of {CHANGED:,} updates and {INSERTED:,} inserts per side, {size:,} rows"
        yield Row(what, ours, None if peer is None else Floor("DoltLite", peer), goal=SLOWEST)
    what = f"the same, {SIZES[1]:,} rows after {SIZES[0]:,}"
    yield Row(what, large, Floor(f"at {SIZES[0]:,} rows", small), goal=GROWTH * small.median)


def _ours(size: int) -> Measure:
    with scratch_folder() as folder:
        graph = omnigraph.init(folder / "g", SCHEMA)
        graph.load(rows([f"p{number:07}" for number in range(size)], 0), type="P", engine="local")
        graph.ensure_indices()
        taken = []
        # The first round warms up.
        for turn in range(ROUNDS + 1):
            branch = f"feature{turn}"
            graph.create_branch(branch)
            for side, on in (("f", branch), ("m", "main")):
                graph.load(rows(changed_names(size, side), turn + 1), "merge", type="P", branch=on, engine="local")
                graph.load(rows(new_names(side, turn), turn + 1), type="P", branch=on, engine="local")
            taken.append(seconds(partial(graph.merge, branch)))
            graph.delete_branch(branch)
        stored = graph.snapshot().entry("node:P").row_count
        assert stored == size + 2 * INSERTED * (ROUNDS + 1), stored
        return summary(taken[1:])


def _doltlite(size: int) -> Measure | None:
    """DoltLite takes the place of the process's SQLite, so it runs in a process of its own; None when it is not installed."""
    if find_spec("doltlite") is None:
        return None
    done = subprocess.run(
        [sys.executable, str(_HERE / "doltlite_merge.py"), str(size)], capture_output=True, text=True, check=True
    )
    answer = json.loads(done.stdout)
    assert answer["rows"] == size + 2 * INSERTED * (ROUNDS + 1), answer["rows"]
    return summary(answer["seconds"][1:])


@benchmark("merge.fast_forward")
def fast_forward() -> Iterator[Row]:
    """A branch with many new rows with vectors, merged by a process that does nothing else."""
    child = str(_HERE / "merge_child.py")
    with scratch_folder() as folder:
        uri = str(folder / "g")
        subprocess.run([sys.executable, child, "make", uri, str(VECTORS), str(DIMENSION)], check=True)
        printed, peaks = run_watched([child, "merge", uri])
        answer = json.loads(printed)
        assert (answer["outcome"], answer["rows"]) == ("fast_forward", VECTORS)
        what = f"fast-forward of {VECTORS:,} new rows with {DIMENSION}-dimension vectors"
        yield Row(what, summary([answer["seconds"]]))
        yield Row(f"{what}, memory", summary([peaks.together], "MiB"), goal=MOST_MEMORY)
