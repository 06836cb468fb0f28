"""What a handle bears: queries from several threads at once, and a large scan with a limit."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Timer
from time import perf_counter

import numpy as np
import pyarrow as pa

import omnigraph
from bench.measure import Floor, Measure, Row, benchmark, in_turn, scratch_folder
from bench.query_texts import QUESTIONS
from bench.social import load_social, make_social
from tests.query.loading import commit_tables

SCHEMA = "node P { key: String @key n: I32 note: String }"
ROWS = 5_000_000
THREADS, QUERIES, WARM_UP = 8, 32, 20
#: Goal: threads use this part of the cores. Queries of less than so many seconds are mostly the interpreter's work, and
#: that does one thing at a time.
SCALING, SHORT = 0.7, 0.001
#: Goal: seconds within which a cancelled query ends.
PROMPT = 0.25
#: Goal: a limit keeps the memory of a scan small.
MOST_MEMORY = 512

_SCAN = "query q() { match { $p: P $p.n >= 0 } return { $p.n, $p.note } limit 100 }"
_NUMBERS = "query q($n: I32) { match { $p: P $p.n = $n } return { count($p) as k } }"
_TEXTS = "query q($part: String) { match { $p: P $p.note contains $part } return { count($p) as k } }"
_HOPS = "query q($k: String) { match { $p: Person { key: $k } $p follows{1,HOPS} $x } return { count($x) as n } }"


@benchmark("query.threads")
def threads() -> Iterator[Row]:
    """The same queries one after the other and from several threads of one handle."""
    with scratch_folder() as folder:
        graph = _graph(folder / "graph", ROWS // 5)
        yield _together("scans of numbers", lambda number: graph.query(_NUMBERS, params={"n": number}))
        yield _together("scans of texts", lambda number: graph.query(_TEXTS, params={"part": f"{number} notes"}))
        social = load_social(make_social(), folder / "social")
        yield _together("counts of two-hop paths", lambda _: social.query(QUESTIONS[-1].gq))
        for hops in (3, 4):
            gq = _HOPS.replace("HOPS", str(hops))
            yield _together(
                f"searches of {hops} hops", lambda number, gq=gq: social.query(gq, params={"k": f"p{number}"})
            )


def _together(what: str, ask: Callable[[int], object]) -> Row:
    """So many threads at once, each with its share, against one thread; as fast as the cores are more."""
    for number in range(WARM_UP):
        ask(number)

    def share(first: int, step: int = THREADS) -> None:
        for number in range(first, QUERIES, step):
            ask(number)

    with ThreadPoolExecutor(THREADS) as pool:
        together, alone = in_turn([lambda: list(pool.map(share, range(THREADS))), lambda: share(0, 1)], 7)
    cores = min(THREADS, os.cpu_count() or 1)
    scales = cores > 1 and alone.median > SHORT * QUERIES
    goal = alone.median / (SCALING * cores) if scales else None
    return Row(f"{QUERIES} {what} from {THREADS} threads", together, Floor("one after the other", alone), goal=goal)


@benchmark("query.cancel")
def cancelling() -> Iterator[Row]:
    """How long a query goes on after it is cancelled from another thread, inside products, searches and scans."""
    with scratch_folder() as folder:
        social = load_social(make_social(), folder / "social")
        table = _graph(folder / "graph", ROWS // 5)
        for what, graph, gq in (
            ("a product", social, "$a: Person $b: Person $a.age > $b.age"),
            ("a search from every node", social, "$a: Person $a follows{1,9} $b"),
            ("a product with a scan", table, '$a: P $b: P $a.note contains "none of these" $b.n > 3'),
        ):
            text = f"query q() {{ match {{ {gq} }} return {{ max({'$a.n' if graph is table else '$a.age'}) as m }} }}"
            late = sorted(_lateness(graph, text, delay) for delay in (0.05, 0.2, 0.5, 1.0, 2.0))
            yield Row(f"cancelling {what}", Measure(late[len(late) // 2], late[0], late[-1]), goal=PROMPT)


def _lateness(graph: omnigraph.Graph, text: str, delay: float) -> float:
    """Seconds between `cancel()` and the end of the query; 0 when it had ended before."""
    cancel, moments = omnigraph.Cancel(), []

    def stop() -> None:
        moments.append(perf_counter())
        cancel.cancel()

    timer = Timer(delay, stop)
    timer.start()
    try:
        graph.query(text, cancel=cancel)
        return 0.0
    except omnigraph.errors.Cancelled:
        return perf_counter() - moments[0]
    finally:
        timer.cancel()


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
