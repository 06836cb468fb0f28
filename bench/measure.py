"""Measurements as values: repeated runs with their spread, rows of a table, and the register of benchmarks."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Measure:
    """The median of repeated runs, with the smallest and the largest."""

    median: float
    low: float
    high: float
    unit: str = "s"


@dataclass(frozen=True)
class Floor:
    """What ours is compared with: the least that could do the work, or another system that does it."""

    name: str
    measure: Measure


@dataclass(frozen=True)
class Row:
    """One line of the table; `goal` is the largest median, in the unit of `ours`, that is good enough."""

    what: str
    ours: Measure
    floor: Floor | None = None
    goal: float | None = None
    #: The median ratio of ours to the floor where each run of ours has one of the floor beside it; the goal is judged by it.
    paired: float | None = None

    @property
    def ratio(self) -> float | None:
        """How many times the floor ours takes."""
        if self.paired is not None:
            return self.paired
        return self.ours.median / self.floor.measure.median if self.floor else None

    @property
    def met(self) -> bool | None:
        """Whether the goal is met; None without a goal."""
        if self.goal is None:
            return None
        if self.paired is not None and self.floor is not None:
            return self.paired * self.floor.measure.median <= self.goal
        return self.ours.median <= self.goal


def timed(action: Callable[[], object], *, repeat: int = 30, warm_up: int = 3) -> Measure:
    """The seconds one call takes, over repeated runs after some that are not counted."""
    for _ in range(warm_up):
        action()
    return summary(seconds(action) for _ in range(repeat))


def summary(values: Iterable[float], unit: str = "s") -> Measure:
    """Values of repeated runs as one measure."""
    runs = sorted(values)
    return Measure(statistics.median(runs), runs[0], runs[-1], unit)


def seconds(action: Callable[[], object]) -> float:
    """How long one call takes."""
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def in_turn(
    actions: Sequence[Callable[[], object]],
    rounds: int,
    upkeep: Callable[[int], object] = lambda _: None,
    *,
    warm_up: int = 3,
    in_a_row: int = 1,
) -> list[Measure]:
    """Time actions one after the other, again and again, so that all meet the same load; some rounds warm up first.

    `in_a_row`: each runs so often before it is the turn of the next. The first in a row is not timed when there are more:
    it finds what the others have left in the caches of the machine.
    """
    times: list[list[float]] = [[] for _ in actions]
    for number in range(-warm_up, rounds):
        for action, taken in zip(actions, times, strict=True):
            row = [seconds(action) for _ in range(in_a_row)]
            if number >= 0:
                taken.extend(row[1:] or row)
        upkeep(number)
    return [summary(taken) for taken in times]


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """A folder for the data of a benchmark."""
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        yield Path(name)


Benchmark = Callable[[], Iterable[Row]]
BENCHMARKS: dict[str, Benchmark] = {}


def benchmark(name: str) -> Callable[[Benchmark], Benchmark]:
    """Register a benchmark; `python -m bench NAME` runs it alone, a part before the dot runs its family."""

    def register(function: Benchmark) -> Benchmark:
        if name in BENCHMARKS:
            raise ValueError(f"two benchmarks are called {name}")
        BENCHMARKS[name] = function
        return function

    return register


def family_of(name: str) -> str:
    """The family of a benchmark: the part of its name before the dot."""
    return name.partition(".")[0]
