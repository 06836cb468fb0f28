"""What a handle bears: queries from several threads at once, and a large scan with a limit."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from threading import Event, Lock, Thread
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
            yield _together(f"searches of {hops} hops", partial(_search, social, _HOPS.replace("HOPS", str(hops))))


def _search(graph: omnigraph.Graph, gq: str, number: int) -> None:
    graph.query(gq, params={"k": f"p{number}"})


def _together(what: str, ask: Callable[[int], object]) -> Row:
    """The seconds of `QUERIES` queries from several threads, against one thread; the goal is to scale with the cores."""
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


#: Long queries by what they spend their time in: on the social graph (`Person`), and on the large table (`P`).
_LONG = {
    "a product": "match { $a: Person $b: Person $a.age > $b.age } return { max($a.age) as m }",
    "a join": "match { $a: Person $a follows $b $b follows $c $c follows $d $a.age > $d.age } return { max($d.age) as m }",
    "a search from every node (compiled)": "match { $a: Person $a follows{1,9} $b } return { max($a.age) as m }",
    "a scan": 'match { $a: P $a.note contains "none of these" } return { count($a) as k }',
    "a scan with a rest in memory": "match { $a: P lower($a.note) = upper($a.key) } return { count($a) as k }",
    "a product with a scan": 'match { $a: P $b: P $a.note contains "none" $b.n > 3 } return { max($a.n) as m }',
    "groups": "match { $a: P } return { $a.note, $a.key, max($a.n) as m } order { m desc } limit 3",
    "a median of groups": "match { $a: P } return { $a.n, median($a.n) as m, count(distinct $a.key) as k } limit 3",
    "an order": "match { $a: P } return { $a.note, $a.key } order { $a.note desc, $a.key desc } limit 300000",
}
_DELAYS = (0.02, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6)


@benchmark("query.cancel")
def cancelling() -> Iterator[Row]:
    """How long a query goes on at most after it is stopped: by another thread, and by Ctrl-C."""
    with scratch_folder() as folder:
        social = load_social(make_social(), folder / "social")
        table = _graph(folder / "graph", ROWS * 2 // 5)
        for what, body in _LONG.items():
            graph = table if ": P " in body else social
            text = f"query q() {{ {body} }}"
            for how, stop in (("cancelled", _cancelled), ("interrupted", _interrupted)):
                late = sorted(stop(graph, text, delay) for delay in _DELAYS)
                yield Row(f"{what}, {how}: the latest end", Measure(late[-1], late[0], late[-1]), goal=PROMPT)


def _cancelled(graph: omnigraph.Graph, text: str, delay: float) -> float:
    """Seconds between `cancel()` in another thread and the end of the query; 0 when it had ended before."""
    cancel = omnigraph.Cancel()
    return _lateness(lambda: graph.query(text, cancel=cancel), delay, cancel.cancel)


def _interrupted(graph: omnigraph.Graph, text: str, delay: float) -> float:
    """The same for Ctrl-C: a signal to this process, whose main thread runs the query."""
    return _lateness(lambda: graph.query(text), delay, lambda: os.kill(os.getpid(), signal.SIGINT))


def _lateness(query: Callable[[], object], delay: float, stop: Callable[[], None]) -> float:
    moments: list[float] = []
    over, ended = Event(), Lock()

    def stopping() -> None:
        if not over.wait(delay):
            with ended:
                if not over.is_set():
                    moments.append(perf_counter())
                    stop()

    thread = Thread(target=stopping)
    thread.start()
    try:
        query()
        with ended:
            over.set()
        return perf_counter() - moments[0] if moments else 0.0
    except (omnigraph.errors.Cancelled, KeyboardInterrupt):
        return perf_counter() - moments[0]
    finally:
        over.set()
        thread.join()


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
