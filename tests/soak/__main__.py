"""`python -m tests.soak --minutes 20 [--place local|s3] [--seed N]`: the soak. The exit code says whether anything was wrong.

Four processes work on one graph, are killed and paused at random and started again; after each round everything is compared with
the model. A few rounds make the life of a graph, then the next one is begun.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import secrets
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

import omnigraph as og
from tests.s3 import running_server
from tests.soak.checker import Checker
from tests.soak.proxy import running_proxy
from tests.soak.worker import GROUPS, ITEMS, Settings

PROCESSES = 4
ROUNDS_OF_A_LIFE = 4
FAULTS_IN_A_THOUSAND = 15
_PROJECT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Place:
    """Where a graph lies: for workers through the proxy, for the checker without it."""

    uri: str
    options: dict[str, str] = field(default_factory=dict)
    direct: dict[str, str] = field(default_factory=dict)

    @property
    def grace(self) -> float:
        """How many seconds after the end of a round the last operation may take: leases of killed owners run out first."""
        return 300.0 if self.options else 120.0

    @property
    def disturbed_every(self) -> tuple[float, float]:
        """Seconds between two kills or pauses: where a killed owner's lease must run out first, less often."""
        return (6.0, 20.0) if self.options else (1.5, 5.0)


@dataclass
class Report:
    """What the soak did, and what was wrong."""

    seed: int
    wrong: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0

    def show(self) -> str:
        lines = [f"{name}: {count}" for name, count in sorted((self.counts + self.faults).items())]
        lines += [f"VIOLATION {what}" for what in self.wrong]
        return "\n".join([*lines, f"seed {self.seed}: {len(self.wrong)} violations in {self.seconds / 60:.1f} minutes"])


def soak(seconds: float, place: str, seed: int, round_seconds: float, *, until: str | None = None) -> Report:
    """Run for some seconds, in whole rounds."""
    report = Report(seed)
    started = time.monotonic()
    life = 0
    with tempfile.TemporaryDirectory(prefix="soak-") as folder, _places(place, seed, report) as places:
        while (left := seconds - (time.monotonic() - started)) > 0:
            life += 1
            home = Path(folder) / str(life)
            home.mkdir()
            uri, options, direct = next(places)
            at = Place(uri or str(home / "graph"), options, direct)
            rounds = min(ROUNDS_OF_A_LIFE, max(1, int(left / round_seconds)))
            _life(f"{seed}.{life}", at, home, rounds, round_seconds, report)
            if until is not None and any(re.search(until, what) for what in report.wrong):
                break
    report.seconds = time.monotonic() - started
    return report


@contextmanager
def _places(place: str, seed: int, report: Report) -> Iterator[Iterator[tuple[str, dict[str, str], dict[str, str]]]]:
    """A fresh place for every graph; "" is a local folder."""
    with ExitStack() as stack:
        if place == "local":
            yield iter(lambda: ("", {}, {}), None)
            return
        server = stack.enter_context(running_server())
        proxy = stack.enter_context(running_proxy(server.endpoint, str(seed), FAULTS_IN_A_THOUSAND, report.faults))
        options = {**server.options, "aws_endpoint": proxy}
        yield iter(lambda: (f"s3://{server.new_bucket()}/graph", options, server.options), None)


def _life(name: str, place: Place, home: Path, rounds: int, seconds: float, report: Report) -> None:
    """One graph: created, worked on in rounds, looked at after each."""
    # Young enough for the checker's feed, old enough that cleanup has something to do.
    os.environ["OMNIGRAPH_FEED_RETENTION"] = f"{int(seconds * 2) + 60}s"
    checker = Checker(place.uri, place.direct, home, name)
    checker.begin(ITEMS, GROUPS)
    for number in range(rounds):
        crew = Crew(f"{name}.{number}", place, home, seconds)
        crew.run()
        try:
            wrong = [*crew.wrong, *checker.check(faulty_store=bool(place.options))]
            _prune(checker, place, number)
        except Exception:
            wrong = [*crew.wrong, f"the check itself failed: {traceback.format_exc()}"]
        report.wrong += [f"[{name} round {number}] {what}" for what in wrong]
        report.counts.update(crew.counts)
        print(f"{name} round {number}: {len(checker.operations)} operations so far, {len(wrong)} wrong", flush=True)
        for what in wrong:
            print(f"  {what}", flush=True)
        if wrong:
            break  # the model and the graph have parted
    report.counts.update(checker.counts)


def _prune(checker: Checker, place: Place, number: int) -> None:
    """Every second round begins with main alone, so that the schema can change."""
    if number % 2:
        return
    graph = og.open(place.uri, storage_options=place.direct or None)
    for _ in range(5):
        for branch in graph.branches()[1:]:
            name = f"prune-{branch}-{number}"
            try:
                graph.delete_branch(branch)
            except og.errors.Conflict:
                continue  # another branch was made from it; that one goes first
            checker.forget_branch(name, branch)


class Crew:
    """The processes of one round."""

    def __init__(self, name: str, place: Place, home: Path, seconds: float) -> None:
        self.name, self.place, self.home, self.seconds = name, place, home, seconds
        self.random = random.Random(name)
        self.end = time.monotonic() + seconds
        self.lives: Counter[int] = Counter()
        self.counts: Counter[str] = Counter()
        self.wrong: list[str] = []
        self.processes: dict[int, subprocess.Popen[bytes]] = {}
        #: How long the journal of a process was when it started, and how much longer it must be before the process is disturbed.
        self.written: dict[int, int] = {}

    def run(self) -> None:
        """Start everybody, disturb them until the time is up, and wait for the last operations."""
        for number in range(PROCESSES):
            self._start(number)
        while (left := self.end - time.monotonic()) > 0:
            time.sleep(min(left, self.random.uniform(*self.place.disturbed_every)))
            self._disturb(self.random.randrange(PROCESSES))
            self._revive()
        deadline = time.monotonic() + self.place.grace
        for number, process in self.processes.items():
            try:
                process.wait(max(1.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGUSR1)
                time.sleep(1)
                process.kill()
                process.wait()
                self.wrong.append(f"process {number} did not end: {self._log(number)}")
        self._ended()

    def _start(self, number: int) -> None:
        self.lives[number] += 1
        life = f"{self.name}.{number}.{self.lives[number]}".replace(".", "-")
        left = self.end - time.monotonic()
        settings = Settings(
            uri=self.place.uri,
            options=self.place.options,
            folder=str(self.home),
            number=number,
            life=life,
            seed=life,
            seconds=left,
            alone_seconds=left - self.seconds * 0.8,
            spark=number == 0 and not self.place.options,
        )
        self.written[number] = self._journal_size(number) + self.random.choice([0, 500, 4000])
        with (self.home / f"log-{number}").open("ab") as log:
            self.processes[number] = subprocess.Popen(
                [sys.executable, "-m", "tests.soak.worker", json.dumps(asdict(settings))],
                cwd=_PROJECT,
                stdout=log,
                stderr=log,
            )

    def _disturb(self, number: int) -> None:
        process = self.processes[number]
        if process.poll() is not None or self._journal_size(number) <= self.written[number]:
            return  # on a busy machine it may not have begun yet
        if self.random.random() < 0.6:
            process.kill()
            process.wait()
            self.counts["killed"] += 1
            return
        process.send_signal(signal.SIGSTOP)
        time.sleep(self.random.choice([0.1, 0.5, 2.0]))
        process.send_signal(signal.SIGCONT)
        self.counts["paused"] += 1

    def _revive(self) -> None:
        self._ended()
        if self.end - time.monotonic() > 3:
            for number, process in self.processes.items():
                if process.poll() is not None:
                    self._start(number)

    def _ended(self) -> None:
        """Who died by itself was killed at a failpoint; any other end is a fault."""
        for number, process in self.processes.items():
            if process.poll() not in (None, 0, -signal.SIGKILL):
                self.wrong.append(f"process {number} ended with {process.returncode}: {self._log(number)}")

    def _journal_size(self, number: int) -> int:
        path = self.home / f"journal-{number}"
        return path.stat().st_size if path.exists() else 0

    def _log(self, number: int) -> str:
        return (self.home / f"log-{number}").read_text()[-3000:]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=20.0)
    parser.add_argument("--place", choices=["local", "s3"], default="local")
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--round", type=float, default=45.0, help="seconds of one round")
    parser.add_argument("--until", default=None, help="end when a violation fits this pattern")
    asked = parser.parse_args()
    seed = secrets.randbelow(1_000_000) if asked.seed is None else asked.seed
    print(f"soak on {asked.place}, seed {seed}", flush=True)
    report = soak(asked.minutes * 60, asked.place, seed, asked.round, until=asked.until)
    print(report.show())
    return 1 if report.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
