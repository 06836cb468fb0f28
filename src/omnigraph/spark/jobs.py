"""A Spark job: one plain task function over many small descriptions (specs), and the outcome of each.
This is the common part of classic sessions and Spark Connect: how a task reports its error, that each spec has exactly one
result, and how this process waits, shows arriving results and cancels.
"""

from __future__ import annotations

import socket
import threading
import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any, Generic, TypeVar

from omnigraph.errors import OmnigraphError, SparkFailed
from omnigraph.watching import SPARK_JOB, happened

S = TypeVar("S")
R = TypeVar("R")
M = TypeVar("M")


@dataclass(frozen=True)
class Display(Generic[R, M]):
    """What to show of a running job; it can not change the result of the job.
    `measure`: makes a small value of a result; a function of an importable module, run where the task ran (over Connect: here).
    `show`: called with this value on the thread that waits for the job. An error of `show` is raised after the job has ended.
    """

    measure: Callable[[R], M]
    show: Callable[[M], None]


def hand_over(results: Iterable[R], unused: Callable[[R], None] | None) -> None:
    if unused is not None:
        for result in results:
            unused(result)


def exactly_once(outcomes: Sequence[Outcome[R]], count: int, what: str) -> list[Outcome[R]]:
    """The outcomes in the order of their specs; raises SparkFailed when one is missing or repeated."""
    ordered = sorted(outcomes, key=lambda outcome: outcome.place)
    if [outcome.place for outcome in ordered] != list(range(count)):
        raise SparkFailed(
            f"Spark returned {len(ordered)} results for {count} tasks of {what}, or one of them twice; "
            "nothing was published, try again",
            kind="results",
        )
    return ordered


class Screen:
    """Shows measures until showing fails; the first error is kept for the end of the job."""

    def __init__(self, display: Display[Any, Any] | None) -> None:
        self._display = display
        self._error: Exception | None = None

    def show(self, measure: Any) -> None:
        if self._display is None or self._error is not None:
            return
        try:
            self._display.show(measure)
        except Exception as error:
            self._error = error

    def raise_error(self) -> None:
        if self._error is not None:
            raise self._error


#: The queues for the measures of running jobs, by job; a measure of a finished job is dropped.
_waiting: dict[str, SimpleQueue[Any]] = {}
_ENDED = object()


def tell(group: str, measure: Any) -> None:
    """Pass a measure to the thread that waits for a job; it is dropped when the job is over."""
    queue = _waiting.get(group)
    if queue is not None:
        queue.put(measure)


def awaited(
    group: str, job: Callable[[], R], cancel: Callable[[], None], display: Display[Any, Any] | None = None
) -> R:
    """Carry out a job on a second thread, and show its measures on this thread meanwhile.
    An interrupt must not break a call to the JVM in the middle, and a slow display must not delay Spark's scheduler.
    """
    outcome: Future[R] = Future()
    queue: SimpleQueue[Any] = SimpleQueue()
    _waiting[group] = queue

    def carry_out() -> None:
        try:
            outcome.set_result(job())
        except BaseException as error:
            outcome.set_exception(error)
        finally:
            queue.put(_ENDED)

    screen = Screen(display)
    threading.Thread(target=carry_out, name="omnigraph-spark-job", daemon=True).start()
    try:
        while (measure := queue.get()) is not _ENDED:
            screen.show(measure)
        returned = outcome.result()
    finally:
        _waiting.pop(group, None)
        if not outcome.done():
            cancel()
    screen.raise_error()
    return returned


@dataclass(frozen=True)
class Outcome(Generic[R]):
    """The outcome of one spec: its result, or the error with its traceback and host."""

    place: int
    result: R | Any = None
    error: OmnigraphError | None = None
    trace: str | None = None
    host: str = ""


@dataclass(frozen=True)
class Task(Generic[S, R]):
    """A task that returns its error instead of raising it, because Spark would wrap it into a page of Java."""

    function: Callable[[S], R]

    def __call__(self, place: int, spec: S) -> Outcome[R]:
        try:
            return Outcome(place, self.function(spec))
        except OmnigraphError as error:
            return Outcome(place, error=error, trace=traceback.format_exc(), host=socket.gethostname())
        except Exception as error:
            told = SparkFailed(f"{type(error).__name__}: {error}", kind="task")
            return Outcome(place, error=told, trace=traceback.format_exc(), host=socket.gethostname())


def error_of(outcome: Outcome[Any], what: str, *, named: bool) -> OmnigraphError:
    """The error of a task as the driver raises it: our errors unchanged, others as one line that names the task.
    `named`: the task may have run on another machine, so the message names the host.
    """
    error = outcome.error
    assert error is not None
    if isinstance(error, SparkFailed) and error.kind == "task" and error.detail is None:
        error = SparkFailed(f"{what} failed: {error.message}", kind="task", detail=outcome.trace)
    if named:
        error.message = f"on the Spark worker {outcome.host}: {error.message}"
    return error


class SparkRunner(ABC):
    """A runner whose tasks are scheduled by Spark, at most `at_once` at a time when it is given.
    `label`: the purpose of the jobs for display, such as `load people.jsonl → main`.
    """

    at_once: int | None
    label: str

    @property
    @abstractmethod
    def most(self) -> int:
        """How many tasks the session runs at once."""

    @property
    @abstractmethod
    def shares_disk(self) -> bool:
        """Whether all tasks run on this machine and see its files."""

    @abstractmethod
    def labelled(self, label: str) -> SparkRunner:
        """The same runner with another label."""

    @abstractmethod
    def outcomes(
        self, task: Task[S, R], dealt: Dealt[S], display: Display[R, Any] | None, what: str, shown: str
    ) -> list[Outcome[R]]:
        """The outcome of each spec, in any order. `what` names the task in errors, `shown` describes the job for display."""

    @property
    def parallelism(self) -> int:
        return self.most if self.at_once is None else max(1, min(self.most, self.at_once))

    def run(
        self,
        task: Callable[[S], R],
        specs: Sequence[S],
        *,
        display: Display[R, Any] | None = None,
        unused: Callable[[R], None] | None = None,
        stage: str | None = None,
    ) -> list[R]:
        if not specs:
            return []
        happened(SPARK_JOB)
        what = f"{task.__module__}.{task.__qualname__}"
        shown = f"{self.label}: {stage or task.__qualname__}" if self.label else stage or what
        count = "1 task" if len(specs) == 1 else f"{len(specs)} tasks"
        dealt = Dealt(list(specs), len(specs) if self.at_once is None else min(len(specs), self.parallelism))
        returned = self.outcomes(Task(task), dealt, display, what, f"{shown} ({count})")
        outcomes = exactly_once(returned, len(specs), what)
        failed = next((outcome for outcome in outcomes if outcome.error is not None), None)
        if failed is not None:
            hand_over((outcome.result for outcome in outcomes if outcome.error is None), unused)
            raise error_of(failed, what, named=not self.shares_disk)
        return [outcome.result for outcome in outcomes]


@dataclass(frozen=True)
class Dealt(Generic[S]):
    """Specs dealt out to `slices` like cards: a slice runs its specs in turn; neighbouring specs, often of similar size, go
    to different slices.
    """

    specs: Sequence[S]
    slices: int

    def places(self) -> list[list[int]]:
        """The indices of the specs of each slice."""
        return [list(range(start, len(self.specs), self.slices)) for start in range(self.slices)]
