"""A process that loads with OmniGraph and says how long it took: `python -m bench.load_child WHAT FILE FOLDER [MORE…]`."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Literal

import omnigraph
from bench.load_data import SCHEMA
from omnigraph.spark.session import spark_session

_WARM_RUNS = 3
_SMALL_RUNS = 20


def _load_anew(place: Path, file: Path, engine: Literal["local", "spark"]) -> None:
    omnigraph.init(place, SCHEMA).load(file, engine=engine)


def _load_ten(graph: omnigraph.Graph, number: int, engine: Literal["local", "spark"]) -> None:
    graph.load(_ten(number), engine=engine)


def bulk(file: Path, folder: Path) -> dict[str, object]:
    """One load on a Spark that has to be started for it, then some on the running one, each into a new graph."""
    start = time.perf_counter()
    result = omnigraph.init(folder / "cold", SCHEMA).load(file, engine="spark")
    cold = time.perf_counter() - start
    warm = [_seconds(partial(_load_anew, folder / f"warm{run}", file, "spark")) for run in range(_WARM_RUNS)]
    return {"entities": result.nodes_loaded + result.edges_loaded, "cold": cold, "warm": warm}


def once(file: Path, folder: Path) -> dict[str, object]:
    """One load, for its memory."""
    return {"seconds": _seconds(partial(_load_anew, folder / "once", file, "spark"))}


def in_process(file: Path, folder: Path) -> dict[str, object]:
    """One load without Spark."""
    return {"seconds": _seconds(partial(_load_anew, folder / "inline", file, "local"))}


def merging(file: Path, folder: Path, changed: Path, fresh: Path) -> dict[str, object]:
    """Changed and new rows merged into the graph, and as many new rows appended to it, on a running Spark."""
    spark_session()
    omnigraph.init(folder / "merged", SCHEMA).load(file, engine="spark")
    graph = omnigraph.open(folder / "merged")
    graph.create_branch("appended")
    return {
        "append": _seconds(lambda: graph.load(fresh, mode="append", branch="appended", engine="spark")),
        "merge": _seconds(lambda: graph.load(changed, mode="merge", engine="spark")),
    }


def small(file: Path, folder: Path) -> dict[str, object]:
    """Many loads of ten rows: in this process, then on a running Spark."""
    graph = omnigraph.init(folder / "small", SCHEMA)
    graph.load(file, engine="local")
    here = [_seconds(partial(_load_ten, graph, number, "local")) for number in range(_SMALL_RUNS)]
    spark_session()
    graph.load(_ten(_SMALL_RUNS), engine="spark")
    there = [
        _seconds(partial(_load_ten, graph, number, "spark")) for number in range(_SMALL_RUNS + 1, 2 * _SMALL_RUNS + 1)
    ]
    return {"local": here, "spark": there}


def _ten(number: int) -> list[dict[str, object]]:
    data = {"name": "small", "age": 1, "group": "blue", "born": "2000-01-01"}
    return [{"type": "Person", "data": {"key": f"small-{number}-{row}", **data}} for row in range(10)]


def _seconds(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


WAYS: dict[str, Callable[..., dict[str, object]]] = {
    "bulk": bulk,
    "once": once,
    "in_process": in_process,
    "merging": merging,
    "small": small,
}

if __name__ == "__main__":
    print(json.dumps(WAYS[sys.argv[1]](*map(Path, sys.argv[2:]))))
