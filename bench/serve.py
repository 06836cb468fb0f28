"""The server on loopback, asked by a second process: look-ups, many readers, many writers, and both together."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import count
from typing import Any

import omnigraph
from bench.measure import Floor, Measure, Row, benchmark, scratch_folder, seconds, summary
from bench.s3_requests import recorded
from tests.s3 import running_server

PERSONS = 100_000
SCHEMA = "node Person { name: String @key age: I32? }"
LOOKUP = 'query q() { match { $p: Person { name: "p4711" } } return { $p.age } }'
PUT = "query put($n: String) { insert Person { name: $n, age: 1 } }"
TOKEN = "ogt_bench"
KINDS = {
    "read": {"path": "/graphs/people/query", "body": json.dumps({"query": LOOKUP})},
    "insert": {"path": "/graphs/people/mutate", "body": json.dumps({"query": PUT, "params": {"n": "@@"}})},
}
READERS = 64
WRITERS = 8
#: Seconds that a served look-up may take longer than the engine itself.
SERVED = 0.003
#: Seconds that are added to each request to S3.
S3_SECONDS = 0.03

_marks = count()


@dataclass(frozen=True)
class Running:
    """A server that runs."""

    host: str
    port: int
    pid: int

    def ask(self, loop: str, kinds: Sequence[str], connections: int, seconds: float, **more: Any) -> Answers:
        """What so many clients are told in so many seconds; a first second is not counted."""
        task = {
            "host": self.host,
            "port": self.port,
            "token": TOKEN,
            "kinds": {kind: KINDS[kind] for kind in kinds},
            "connections": connections,
            "seconds": seconds,
            "loop": loop,
            "mark": f"m{next(_marks)}",
            **more,
        }
        done = subprocess.run(
            [sys.executable, "-m", "bench.serve_clients"], input=json.dumps(task), capture_output=True, text=True
        )
        if done.returncode != 0:
            raise SystemExit(f"the clients have failed: {done.stderr[-2000:]}")
        answer = json.loads(done.stdout)
        if answer["errors"]:
            raise SystemExit(f"errors instead of answers: {answer['errors']}")
        return Answers(answer["seconds"], answer["latencies"], answer["answered"])

    def memory(self) -> int:
        """Bytes of all processes of the server."""
        listed = subprocess.run(
            ["ps", "-o", "rss=", "-p", str(self.pid), "--ppid", str(self.pid)], capture_output=True, text=True
        )
        return sum(int(line) << 10 for line in listed.stdout.split())


@dataclass(frozen=True)
class Answers:
    """What the clients of one run saw; latencies in seconds."""

    seconds: float
    latencies: dict[str, list[float]]
    #: How many requests of each connection were answered.
    answered: list[int]

    def percentile(self, kind: str, share: float) -> float:
        ordered = sorted(self.latencies[kind])
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))]

    @property
    def per_answer(self) -> float:
        """Seconds from one answer to the next, of all clients together."""
        return self.seconds / sum(self.answered)


@contextmanager
def served(uri: str, workers: int, **environment: str) -> Iterator[Running]:
    """`omnigraph serve` in a process of its own."""
    command = [sys.executable, "-m", "omnigraph", "serve", f"people={uri}", "--bind", "127.0.0.1:0", "--full-access"]
    process = subprocess.Popen(
        [*command, "--workers", str(workers)],
        env={**os.environ, "OMNIGRAPH_SERVER_BEARER_TOKEN": TOKEN, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout is not None
    host, _, port = process.stdout.readline().strip().partition("=")[2].rpartition(":")
    try:
        running = Running(host, int(port), process.pid)
        running.ask("closed", ["read"], 2 * workers, 1.0)
        yield running
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()


def make_people(uri: str, persons: int, options: dict[str, str] | None = None) -> None:
    """A graph of some persons."""
    lines = "".join(f'{{"type":"Person","data":{{"name":"p{n}","age":{n % 90}}}}}\n' for n in range(persons))
    with omnigraph.init(uri, SCHEMA, storage_options=options) as graph:
        graph.load(lines.encode(), engine="local")
        graph.ensure_indices()


@benchmark("serve.lookup")
def lookups() -> Iterator[Row]:
    """A look-up by key over HTTP and with the library, in turn."""
    with scratch_folder() as folder:
        make_people(str(folder / "g"), PERSONS)
        with served(str(folder / "g"), 1) as server, omnigraph.open(folder / "g") as graph:
            alone, over = [], []
            for _ in range(5):
                alone += [seconds(lambda: graph.query(LOOKUP)) for _ in range(500)]
                over += server.ask("closed", ["read"], 1, 2.0).latencies["read"]
        engine = summary(alone)
        yield Row("look-up by key over HTTP", summary(over), Floor("library", engine), goal=engine.median + SERVED)


@benchmark("serve.readers")
def readers() -> Iterator[Row]:
    """Many clients that read, with one and with two workers."""
    with scratch_folder() as folder:
        make_people(str(folder / "g"), PERSONS)
        taken: dict[int, list[float]] = {1: [], 2: []}
        with ExitStack() as stack:
            servers = {workers: stack.enter_context(served(str(folder / "g"), workers)) for workers in taken}
            for _ in range(5):
                for workers, server in servers.items():
                    taken[workers].append(server.ask("closed", ["read"], READERS, 4.0).per_answer)
        one, two = summary(taken[1]), summary(taken[2])
        floor = Floor("one worker", one)
        yield Row(f"a read, {READERS} clients, two workers", two, floor, goal=one.median / 1.6)


@benchmark("serve.writers")
def writers() -> Iterator[Row]:
    """One and eight clients that insert single rows on one branch, on local disk."""
    with scratch_folder() as folder:
        make_people(str(folder / "g"), PERSONS)
        with served(str(folder / "g"), 1) as server:
            yield from _writers(server, "local disk")


@benchmark("serve.writers_s3")
def writers_s3() -> Iterator[Row]:
    """The same on S3, where each request takes 30 ms longer."""
    with running_server() as s3, recorded(s3, S3_SECONDS) as (slow, _):
        uri = f"s3://{s3.new_bucket()}/people"
        make_people(uri, PERSONS, s3.options)
        with served(uri, 1, **_environment(slow.options)) as server:
            yield from _writers(server, f"S3 with {S3_SECONDS * 1000:.0f} ms")


def _writers(server: Running, place: str) -> Iterator[Row]:
    alone, together = [], []
    for _ in range(5):
        alone.append(server.ask("closed", ["insert"], 1, 4.0))
        together.append(server.ask("closed", ["insert"], WRITERS, 4.0))
    one, many = (summary(run.per_answer for run in runs) for runs in (alone, together))
    yield Row(f"an insert, {WRITERS} clients, {place}", many, Floor("one client", one), goal=one.median / 5)
    shares = summary((max(run.answered) / max(1, min(run.answered)) for run in together), "×")
    yield Row(f"most to fewest inserts of {WRITERS} clients, {place}", shares, goal=2.0)


@benchmark("serve.mixed")
def mixed() -> Iterator[Row]:
    """Nine reads and one insert in ten, at fixed moments for a minute, two workers."""
    with scratch_folder() as folder:
        make_people(str(folder / "g"), PERSONS)
        with served(str(folder / "g"), 2) as server:
            server.ask("open", ["read", "insert"], READERS, 10.0, rate=100)
            before = server.memory()
            told = server.ask("open", ["read", "insert"], READERS, 60.0, rate=100)
            after = server.memory()
    usual, rare = told.percentile("read", 0.5), told.percentile("read", 0.99)
    yield Row("read at 100 requests/s, p99", _of(rare), Floor("p50", _of(usual)), goal=10 * usual)
    inserts = told.percentile("insert", 0.5), told.percentile("insert", 0.99)
    yield Row("insert at 100 requests/s, p99", _of(inserts[1]), Floor("p50", _of(inserts[0])))
    floor = Floor("before", _of(float(before), "B"))
    yield Row("memory of the server after the minute", _of(float(after), "B"), floor, goal=1.1 * before)


def _of(value: float, unit: str = "s") -> Measure:
    return Measure(value, value, value, unit)


def _environment(options: dict[str, str]) -> dict[str, str]:
    """Storage options as the environment of a process says them."""
    return {(name if name.startswith("aws") else f"aws_{name}").upper(): value for name, value in options.items()}
