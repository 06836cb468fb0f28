"""Every query is bounded: memory, time, cancelling. The process goes on whatever a query asks for."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import omnigraph as og
from omnigraph.errors import BadRequest, Cancelled, DeadlineExceeded, ResourceLimit
from omnigraph.query.limits import Budget, Limits, parse_size
from omnigraph.query.traverse import loops
from omnigraph.storage.tables.lance_errors import translated
from tests.query.loading import commit_tables

SCHEMA = """
node N { k: String @key age: I32 note: String }
node M { k: String @key }
edge To: N -> N
"""
NODES, OTHERS, EDGES = 12_000, 1000, 60_000
MIB = 2**20
#: What a process takes besides its rows: Arrow's and the allocator's own, buffers of Lance, one batch on its way.
OVERHEAD = 150 * MIB


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> og.Graph:
    made = og.init(tmp_path_factory.mktemp("limits") / "g", SCHEMA)
    random = Random(3)
    keys = pa.array([f"n{number:05}" for number in range(NODES)])
    ages = pa.array([random.randint(0, 90) for _ in range(NODES)], pa.int32())
    notes = pa.array([f"a note of some forty characters, number {number}" for number in range(NODES)])
    others = pa.array([f"m{number:04}" for number in range(OTHERS)])
    ends = [pa.array([f"n{random.randrange(NODES):05}" for _ in range(EDGES)]) for _ in range(2)]
    commit_tables(
        made,
        {
            "node:N": _table(made, "node:N", id=keys, k=keys, age=ages, note=notes),
            "node:M": _table(made, "node:M", id=others, k=others),
            "edge:To": _table(
                made, "edge:To", id=pa.array([f"e{number}" for number in range(EDGES)]), src=ends[0], dst=ends[1]
            ),
        },
    )
    made.ensure_indices()
    return made


def _table(graph: og.Graph, key: str, **columns: pa.Array) -> pa.Table:
    schema = graph.snapshot().open(key).schema
    return pa.Table.from_arrays([columns[name] for name in schema.names], schema=schema)


def in_child(graph: og.Graph, text: str, limit: str, address_space: int = 0) -> dict[str, Any]:
    """What a query did to a process of its own."""
    command = [sys.executable, "-m", "tests.query.limits_child", graph.uri, text, limit, str(address_space)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    assert found["alive"] == NODES
    return found


def query(match: str, returned: str, tail: str = "") -> str:
    return f"query q() {{ match {{ {match} }} return {{ {returned} }} {tail} }}"


THREE = query("$a: M $b: M $c: M", "$a.k, $b.k, $c.k", "limit 5")
HOPS = query("$a: N $a to{1,5} $b", "$a.k, $b.k")
LONGER = f"with {{ {' + '.join(['$s'] * 10)} as s }} "


# --- memory -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # A billion rows, of which five are wanted: took 4.7 GB.
        pytest.param(THREE, 5, id="a product with a limit"),
        pytest.param(query("$a: N $a to{1,5} $b", "$a.k, $b.k", "limit 5"), 5, id="five hops with a limit"),
        # Twenty million rows at the least: took 5.5 GB.
        pytest.param(query("$a: N $a to{1,5} $b", "count($b.age) as n, max($b.age) as m"), 1, id="five hops counted"),
        pytest.param(
            query("$a: M $b: N", "$a.k, $b.k, $b.note", "order { $b.age desc, $a.k desc } limit 3"), 3, id="an order"
        ),
        pytest.param(
            query("$a: M $b: M $b.k >= $a.k", "$a.k, count($b) as n, min($b.k) as m"), OTHERS, id="groups of a product"
        ),
    ],
)
def test_memory_stays_within_the_limit(graph: og.Graph, text: str, expected: int) -> None:
    found = in_child(graph, text, "64MiB")
    assert found["rows"] == expected, found
    assert found["grown"] < 64 * MIB + OVERHEAD, f"{found['grown'] / MIB:.0f} MiB"


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(HOPS, id="five hops"),
        pytest.param(query("$a: N $b: N", "$a.k, $b.note"), id="a product"),
        pytest.param(query("$a: M $b: N", "$a.k, $b.note", "order { $b.note desc }"), id="an order without a limit"),
        pytest.param(query("$a: M $b: N", "$a.k, $b.note, count($a) as n"), id="too many groups"),
        # Functions that make much of little: `range` alone took 22 GB, and then the system took the process.
        pytest.param(query("$a: N", "size(range(0, 1000000)) as n"), id="ranges"),
        pytest.param(query("$a: N size(range($a.age, 1000000)) > 5", "count(*) as n"), id="ranges in a condition"),
        pytest.param(
            query("$a: M", f"length({'replace(' * 18}$a.k{', substring($a.k, 0, 1), concat($a.k, $a.k))' * 18}) as n"),
            id="replaced",
        ),
        pytest.param(f"match {{ $a: M }} with {{ $a.k as s }} {LONGER * 9} return {{ length($s) as n }}", id="joined"),
        pytest.param(f'match {{ $a: N }} return {{ $a.k, "{"x" * 100_000}" as x }}', id="a long constant"),
        pytest.param(
            query("$a: N", ", ".join(f'concat($a.note, "{"x" * 200}", $a.k) as c{n}' for n in range(300))),
            id="columns beside each other",
        ),
    ],
)
def test_what_needs_more_is_refused(graph: og.Graph, text: str) -> None:
    found = in_child(graph, text, "64MiB")
    error = found["error"]
    assert error["resource"] == "query memory bytes"
    assert error["limit"] == 64 * MIB < error["actual"]
    assert "memory_limit" in error["message"]
    assert "OMNIGRAPH_QUERY_MEMORY" in error["message"]
    assert found["grown"] < 64 * MIB + OVERHEAD, f"{found['grown'] / MIB:.0f} MiB"


def test_products_are_multiplied(graph: og.Graph) -> None:
    """Counts of products too large to enumerate in any time."""
    assert graph.query(query("$a: N $b: N $c: M $d: M", "count($c) as n")).rows == [{"n": NODES**2 * OTHERS**2}]
    counted = graph.query(query("$a: M $b: N $b to $x $c: N", "$a.k as k, count($x) as n", "order { k asc } limit 2"))
    pairs = graph.query(query("$b: N $b to $x", "count($x) as n")).rows[0]["n"]
    assert counted.rows == [{"k": "m0000", "n": pairs * NODES}, {"k": "m0001", "n": pairs * NODES}]
    nothing = query('$a: N $b: N $c: N $d: M { k: "none" }', "count($a) as n")
    assert graph.query(nothing).rows == [{"n": 0}]
    with pytest.raises(ResourceLimit, match="I64"):
        graph.query(query(" ".join(f"${name}: N" for name in "abcde"), "count($a) as n"))


def test_a_negation_needs_one_row(graph: og.Graph) -> None:
    """A block that only has to match somewhere is not enumerated."""
    there = query('$a: M not { $a.k != "x" $b: N $c: N $d: N }', "count($a) as n")
    assert graph.query(there).rows == [{"n": 0}]
    compared = query('$a: M not { $b: N $c: N $b.age > $c.age $a.k != "m0007" }', "$a.k as k")
    assert graph.query(compared, memory_limit="32MiB").rows == [{"k": "m0007"}]


def test_the_environment_sets_the_limit(graph: og.Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMNIGRAPH_QUERY_MEMORY", "3MiB")
    small = og.open(graph.uri, mode="ro")
    with pytest.raises(ResourceLimit, match="3 MiB"):
        small.query(query("$a: M $b: M", "$a.k, $b.k"))
    assert len(small.query(query("$a: M $b: M", "$a.k, $b.k", "limit 7"))) == 7
    assert len(small.query(query("$a: M $b: M", "$a.k, $b.k", "limit 90000"), memory_limit="1GiB")) == 90000


@pytest.mark.parametrize(
    ("given", "expected"), [(5, 5), ("5", 5), ("2k", 2048), ("1.5 KiB", 1536), ("3MB", 3 * MIB), ("1g", 2**30)]
)
def test_sizes(given: int | str, expected: int) -> None:
    assert parse_size(given, "memory_limit") == expected


@pytest.mark.parametrize("given", [0, -1, True, "", "much", "1.5.2k", "-3M", "5 apples"])
def test_what_is_no_size(graph: og.Graph, given: Any) -> None:
    with pytest.raises(BadRequest, match="memory_limit is a number of bytes"):
        graph.query(THREE, memory_limit=given)


def test_a_failed_allocation_is_a_resource_limit(graph: og.Graph) -> None:
    """What numpy and Arrow raise when the machine has less memory than the query may take."""
    found = in_child(graph, query("$a: N $b: N", "$a.k, $b.k"), "64GiB", address_space=512 * MIB)
    assert "out of memory" in found["error"]["message"]


# --- time and cancelling ----------------------------------------------------------------------------------------------

#: Each would take minutes: a product in batches, a search from every node, a sort.
ENDLESS = [
    pytest.param(query("$a: N $b: N $c: N $a.age > $b.age", "count($c.age) as n, max($a.age) as m"), id="product"),
    pytest.param(query("$a: N $b: N $b to{1,30} $c", "max($c.age) as m"), id="search"),
    pytest.param(query("$a: N $b: N not { $a to{2,9} $c $c.age > $b.age }", "max($b.age) as m"), id="negation"),
]


@pytest.mark.parametrize("text", ENDLESS)
def test_a_deadline(graph: og.Graph, text: str) -> None:
    started = time.perf_counter()
    with pytest.raises(DeadlineExceeded, match="within 0.3 s") as caught:
        graph.query(text, timeout=0.3)
    print(f"{time.perf_counter() - started - 0.3:.3f} s late")
    assert caught.value.seconds == 0.3
    assert len(graph.query(THREE)) == 5


@pytest.mark.parametrize("text", ENDLESS)
def test_cancelling_from_another_thread(graph: og.Graph, text: str) -> None:
    cancel = og.Cancel()
    moment: list[float] = []

    def stop() -> None:
        moment.append(time.perf_counter())
        cancel.cancel()

    timer = threading.Timer(0.3, stop)
    timer.start()
    with pytest.raises(Cancelled):
        graph.query(text, cancel=cancel)
    print(f"{time.perf_counter() - moment[0]:.3f} s late")
    assert cancel.cancelled
    with pytest.raises(Cancelled):
        graph.query(THREE, cancel=cancel)
    assert len(graph.query(THREE, cancel=og.Cancel())) == 5


def test_one_cancel_stops_several_queries_and_no_other(graph: og.Graph) -> None:
    cancel, endings = og.Cancel(), []
    text = query("$a: N $b: N $c: N $a.age > $b.age", "max($c.age) as m")

    def ask() -> None:
        try:
            graph.query(text, cancel=cancel)
        except Cancelled as error:
            endings.append(error)

    threads = [threading.Thread(target=ask) for _ in range(3)]
    for thread in threads:
        thread.start()
    with pytest.raises(DeadlineExceeded):
        graph.query(text, timeout=0.2)
    assert not endings
    cancel.cancel()
    for thread in threads:
        thread.join()
    assert len(endings) == 3


@pytest.fixture
def interrupted() -> Iterator[Callable[[float], None]]:
    """Sends Ctrl-C to this process after so many seconds."""
    # A process that was started in the background may ignore the signal.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    timers: list[threading.Timer] = []

    def after(seconds: float) -> None:
        timers.append(threading.Timer(seconds, lambda: os.kill(os.getpid(), signal.SIGINT)))
        timers[-1].start()

    yield after
    for timer in timers:
        timer.join()
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("text", ENDLESS)
def test_control_c(graph: og.Graph, text: str, interrupted: Callable[[float], None]) -> None:
    interrupted(0.3)
    started = time.perf_counter()
    with pytest.raises(KeyboardInterrupt):
        graph.query(text)
    print(f"{time.perf_counter() - started - 0.3:.3f} s late")
    assert len(graph.query(THREE)) == 5


@pytest.mark.parametrize("timeout", [0, -1, True, "soon"])
def test_what_is_no_timeout(graph: og.Graph, timeout: Any) -> None:
    with pytest.raises(BadRequest, match="timeout is a number of seconds"):
        graph.query(THREE, timeout=timeout)


def test_long_work_is_left_behind() -> None:
    """A call that looks at nothing is not waited for; its error is raised where it is waited for."""
    budget = Budget(Limits(timeout=0.05, long_work=1))
    ended = threading.Event()
    with pytest.raises(DeadlineExceeded):
        budget.patiently(ended.wait, 1)
    ended.set()
    patient = Budget(Limits(long_work=1))
    assert patient.patiently(lambda: 7, 1) == 7
    with pytest.raises(ZeroDivisionError):
        patient.patiently(lambda: 1 // 0, 1)


def test_a_deadline_does_not_wait_for_the_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first long search of a fresh installation compiles its loop, however few steps it takes itself."""
    ended = threading.Event()
    monkeypatch.setattr(loops, "is_ready", lambda loop: False)
    monkeypatch.setattr(loops, "compiled", lambda loop: ended.wait(60))
    with pytest.raises(DeadlineExceeded):
        loops.compiled_patiently("search_each", Budget(Limits(timeout=0.05)), 1)
    assert not ended.is_set()
    ended.set()


def test_a_loop_is_ready_when_it_is_compiled() -> None:
    assert not loops.is_ready("no such loop")
    starts, indices = np.array([0, 1, 1]), np.array([1], np.int32)
    search = (starts, indices, np.array([0]), 1, 1, True, 2**62)
    counts, found, _ = loops.compiled_patiently("search_each", Budget(Limits()), 1, *search, np.zeros(1, np.uint8))
    assert (list(counts), list(found)) == ([1], [1])
    assert loops.is_ready("search_each")


#: Steps that take the longer the more rows there are, and look neither at signals nor at the clock.
LONG_STEPS = [
    pytest.param(query("$a: N", "$a.note, max($a.age) as m", "order { $a.note asc }"), id="groups"),
    pytest.param(query("$a: N", "$a.age, median($a.age) as m", "order { $a.age asc }"), id="all values of groups"),
    pytest.param(query("$a: N", "$a.note, $a.age", "order { $a.note desc }"), id="order"),
    pytest.param(query("$a: N $a to $b upper($a.note) != lower($b.k)", "count($b.k) as n"), id="computed condition"),
    pytest.param(query("$a: N", "upper($a.note) as note"), id="computed column"),
    pytest.param(query("$a: N", "max(upper($a.note)) as note"), id="computed argument"),
]


@pytest.mark.parametrize("text", LONG_STEPS)
def test_long_steps_can_be_left_behind(graph: og.Graph, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are done in a thread when there are many rows, with the same result."""
    expected = graph.query(text).rows
    left: list[int] = []

    class Spying(Budget):
        def patiently(self, work: Callable[[], Any], steps: int) -> Any:
            left.extend([steps] if steps >= self.limits.long_work else [])
            return super().patiently(work, steps)

    monkeypatch.setattr("omnigraph.query.execute.Budget", Spying)
    handle = graph.at("main")
    handle._limits = Limits(long_work=100 * NODES)
    assert handle.query(text).rows == expected
    assert left


def test_a_scan_in_a_thread() -> None:
    """Items come in order, an error comes after the items before it, and a deadline does not wait for the next."""
    budget = Budget(Limits(timeout=60, long_work=1))
    assert list(budget.pulled(iter(range(100)), 1)) == list(range(100))

    def failing() -> Iterator[int]:
        yield 1
        raise BadRequest("no more")

    pulled = budget.pulled(failing(), 1)
    assert next(pulled) == 1
    with pytest.raises(BadRequest, match="no more"):
        next(pulled)
    ended = threading.Event()
    with pytest.raises(DeadlineExceeded):
        list(Budget(Limits(timeout=0.05, long_work=1)).pulled(iter(ended.wait, None), 1))
    ended.set()


def test_scans_of_large_tables_use_threads_when_they_may_be_stopped(graph: og.Graph) -> None:
    """The same rows as without."""
    text = query('$a: N $a.note contains "7"', "$a.k as k, $a.age as age", "order { k asc }")
    threaded = og.open(graph.uri, mode="ro")
    threaded._limits = Limits(long_work=1, batch_rows=500)
    assert threaded.query(text, timeout=600).rows == graph.query(text).rows
    counted = query('$a: N $a.note contains "7"', "count($a) as n")
    assert threaded.query(counted, cancel=og.Cancel()).rows == graph.query(counted).rows


def test_what_is_charged_is_given_back(graph: og.Graph, tmp_path: Path) -> None:
    """Long streams charge what is held at a time: a budget of a few batches serves any number of them."""
    small = og.open(graph.uri, mode="ro")
    small._limits = Limits(memory=8 * MIB, batch_rows=1000)
    text = query("$a: M $b: N", "max($b.age) as m, count($a.k) as n, avg($b.age) as a")
    expected = graph.query(query("$b: N", "max($b.age) as m, avg($b.age) as a")).rows[0]
    found = small.query(text).rows[0]
    assert found["n"] == NODES * OTHERS
    assert found["m"] == expected["m"]
    assert found["a"] == pytest.approx(expected["a"])


@pytest.mark.parametrize(
    ("condition", "order"),
    [
        pytest.param("", 'order { bm25($d.t, "w1 w2") }', id="bm25"),
        pytest.param('search($d.t, "w1")', "", id="search"),
        pytest.param('fuzzy($d.t, "word1")', "", id="fuzzy"),
    ],
)
def test_long_texts_are_analysed_within_the_limits(
    tmp_path: Path, condition: str, order: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A few rows may be much work: no index covers these texts, and the analysis of one takes long."""
    long = og.init(tmp_path / "g", "node D { k: String @key t: String }")
    count, words = 6, 40_000
    texts = [" ".join(f"w{number}x{word}" for word in range(words)) for number in range(count)]
    keys = pa.array([f"d{number}" for number in range(count)])
    commit_tables(long, {"node:D": _table(long, "node:D", id=keys, k=keys, t=pa.array(texts))})
    checks: list[float] = []

    class Spying(Budget):
        def check(self) -> None:
            checks.append(time.perf_counter())
            super().check()

    monkeypatch.setattr("omnigraph.query.execute.Budget", Spying)
    text = query(f"$d: D {condition}", "$d.k", f"{order} limit 3")
    long.query(text)
    assert len(checks) > count * len(texts[0]) // 70_000

    cancel = og.Cancel()

    def stop(budget: Budget) -> None:
        cancel.cancel()
        Budget.check(budget)

    monkeypatch.setattr(Spying, "check", stop)
    with pytest.raises(Cancelled):
        long.query(text, cancel=cancel)


def test_scores_of_long_texts_need_little_memory(tmp_path: Path) -> None:
    """Of the tokens of a text only those that the query asks for are counted."""
    long = og.init(tmp_path / "g", "node D { k: String @key t: String }")
    words = " ".join(f"w{word}" for word in range(5000))
    texts = [f"{words} d{number}" for number in range(100)]
    keys = pa.array([f"d{number}" for number in range(len(texts))])
    commit_tables(long, {"node:D": _table(long, "node:D", id=keys, k=keys, t=pa.array(texts))})
    text = query("$d: D", "$d.k", 'order { bm25($d.t, "d1") } limit 1')
    tracemalloc.start()
    assert long.query(text).rows == [{"d.k": "d1"}]
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 2 * sum(map(len, texts)) + 8 * MIB


def test_control_c_during_a_call_of_lance() -> None:
    """Lance looks at signals while it works, and Arrow hands on what it finds as an error of its own."""
    with pytest.raises(KeyboardInterrupt), translated("table", "read"):
        raise pa.ArrowInvalid("External error: KeyboardInterrupt: ")


def test_wide_rows_are_read_in_small_batches(tmp_path: Path) -> None:
    """A thousand texts of 20 kB go through a budget of 4 MiB."""
    wide = og.init(tmp_path / "g", "node D { k: String @key t: String }")
    keys = pa.array([f"d{number:03}" for number in range(1000)])
    texts = pa.array([f"{number:03}" + "x" * 20_000 for number in range(1000)])
    commit_tables(wide, {"node:D": _table(wide, "node:D", id=keys, k=keys, t=texts)})
    last = query("$d: D", "max($d.t) as t")
    assert wide.query(last, memory_limit="4MiB").rows[0]["t"].startswith("999x")
    with pytest.raises(ResourceLimit):
        wide.query(query("$d: D $e: D", "$d.t"), memory_limit="4MiB")
