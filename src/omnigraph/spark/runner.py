"""Runners: the same plain task functions over small descriptions, in this process or scheduled by Spark.

A task is a function of an importable module, what it takes and returns is small and can be pickled. It raises
our own errors; data that it rejects is part of its result. Results are what the job returns, one for each spec; what is
shown meanwhile goes another way, which can neither fail the job nor change it.
"""

from __future__ import annotations

import socket
import threading
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar
from weakref import WeakKeyDictionary

from omnigraph.errors import OmnigraphError, SparkFailed
from omnigraph.ids import new_ulid
from omnigraph.spark.executors import host_of_failure
from omnigraph.spark.failures import job_failure
from omnigraph.spark.options import SparkOptions, refuse_unknown_engine
from omnigraph.spark.session import Session, is_running, spark_session
from omnigraph.spark.settings import is_local
from omnigraph.watching import SPARK_JOB, happened

if TYPE_CHECKING:
    from pyspark import SparkContext

S = TypeVar("S")
R = TypeVar("R")
M = TypeVar("M")


class Runner(Protocol):
    """Carries out one task function for each spec; the results are in the order of the specs."""

    @property
    def parallelism(self) -> int: ...

    def run(
        self,
        task: Callable[[S], R],
        specs: Sequence[S],
        *,
        display: Display[R, Any] | None = None,
        unused: Callable[[R], None] | None = None,
        stage: str | None = None,
    ) -> list[R]:
        """The results, one for each spec and in their order. `display` is told of each as it arrives and is not part of them.

        `unused`: gets the results of tasks that succeeded in a job that failed, so that what they left can be removed.
        `stage`: what the tasks do, for the page on which Spark shows its jobs.
        """
        ...


@dataclass(frozen=True)
class Display(Generic[R, M]):
    """What is shown of a running job. It can not change what the job returns.

    `measure`: makes something small of a result; a function of an importable module, it runs where the task ran.
    `show`: gets it, on the thread that waits for the job. An error it raises is raised when the job has ended.
    """

    measure: Callable[[R], M]
    show: Callable[[M], None]


class Inline:
    """Runs tasks in this process, one after the other."""

    parallelism = 1

    def run(
        self,
        task: Callable[[S], R],
        specs: Sequence[S],
        *,
        display: Display[R, Any] | None = None,
        unused: Callable[[R], None] | None = None,
        stage: str | None = None,
    ) -> list[R]:
        results: list[R] = []
        screen = _Screen(display)
        try:
            for spec in specs:
                results.append(task(spec))
                if display is not None:
                    screen.show(display.measure(results[-1]))
            screen.raise_error()
        except BaseException:
            _hand_over(results, unused)
            raise
        return results


def _hand_over(results: Iterable[R], unused: Callable[[R], None] | None) -> None:
    if unused is not None:
        for result in results:
            unused(result)


@dataclass(frozen=True)
class OnSpark:
    """Runs tasks on a Spark session, as one job; at most `at_once` of them at a time when that is given.

    `label`: what the jobs are for, such as `load people.jsonl → main`.
    """

    session: Session
    at_once: int | None = None
    label: str = ""

    @property
    def parallelism(self) -> int:
        most = self.session.parallelism
        return most if self.at_once is None else max(1, min(most, self.at_once))

    @property
    def shares_disk(self) -> bool:
        """Whether all tasks run on this machine and see its files."""
        return is_local(self.session.context.master or "")

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
        outcomes = self._outcomes(_Task(task), list(enumerate(specs)), display, what, shown)
        failed = next((outcome for outcome in outcomes if outcome.error is not None), None)
        if failed is not None:
            _hand_over((outcome.result for outcome in outcomes if outcome.error is None), unused)
            raise _error_of(failed, what, named=not self.shares_disk)
        return [outcome.result for outcome in outcomes]

    def _outcomes(
        self, task: _Task[S, R], specs: list[tuple[int, S]], display: Display[R, Any] | None, what: str, shown: str
    ) -> list[_Outcome[R]]:
        context = self.session.context
        slices = len(specs) if self.at_once is None else self.parallelism
        # Dealt out like cards: a slice runs its specs in turn, and neighbours, often of one size, go to different ones.
        dealt = [spec for start in range(slices) for spec in specs[start::slices]]
        tag = new_ulid()
        count = "1 task" if len(specs) == 1 else f"{len(specs)} tasks"

        def job(arrivals: Any) -> list[_Outcome[R]]:
            with spark_errors(self.session, what, tag):
                told = None if display is None else _Told(tag, display.measure, arrivals)
                caller.lend(tag, f"{shown} ({count})")
                return list(context.parallelize(dealt, slices).mapPartitions(_Slice(task, told)).collect())

        with spark_errors(self.session, what):
            arrivals = None if display is None else _arrivals_of(context)
            caller = Caller.here(context)
        returned = awaited(tag, lambda: job(arrivals), lambda: context.cancelJobsWithTag(tag), display)
        return exactly_once(returned, len(specs), what)


def exactly_once(outcomes: Sequence[_Outcome[R]], count: int, what: str) -> list[_Outcome[R]]:
    """The outcomes in the order of their specs; one too few or too many fails the whole job."""
    ordered = sorted(outcomes, key=lambda outcome: outcome.place)
    if [outcome.place for outcome in ordered] != list(range(count)):
        raise SparkFailed(
            f"Spark returned {len(ordered)} results for {count} tasks of {what}, or one of them twice; "
            "nothing was published, try again",
            kind="results",
        )
    return ordered


class _Screen:
    """Shows measures until one of them fails; the first error is kept for the end of the job."""

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


#: Where the measures of running jobs go, by job; a measure of any other job comes too late and is dropped.
_waiting: dict[str, SimpleQueue[Any]] = {}
_ENDED = object()


def awaited(
    group: str, job: Callable[[], R], cancel: Callable[[], None], display: Display[Any, Any] | None = None
) -> R:
    """Carry out a job on a thread of its own, and show here what it tells meanwhile.

    An interrupt must not cut a conversation with the JVM in half, and a slow display must not hold Spark's scheduler up.
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

    screen = _Screen(display)
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
class Caller:
    """What the thread that asks for a job has told Spark: its job group, tags, pool and other local properties."""

    context: SparkContext
    properties: Any

    @classmethod
    def here(cls, context: SparkContext) -> Caller:
        """The caller on this thread."""
        return cls(context, context._jsc.sc().getLocalProperties().clone())

    def lend(self, tag: str, description: str) -> None:
        """Give all of it to the jobs of this thread, and a tag of their own, by which they are found and cancelled."""
        self.context._jsc.sc().setLocalProperties(self.properties)
        self.context.addJobTag(tag)
        self.context.setJobDescription(description)


@contextmanager
def spark_errors(session: Session, what: str, tag: str | None = None) -> Iterator[None]:
    """Whatever Spark raises becomes one of ours; `tag` is that of the jobs of the block, to find where one failed."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except (Py4JError, PySparkException, OSError) as error:
        host = None if tag is None else host_of_failure(session.context, tag)
        raise job_failure(error, what, host) from error
    except Exception as error:
        # A context that was stopped under way has lost its Java half, and fails in ways of its own.
        if session.is_alive() or isinstance(error, OmnigraphError):
            raise
        raise job_failure(ConnectionError(str(error)), what) from error


#: The one accumulator of each context. It stays registered, because an update without one ends PySpark's server for all jobs.
_accumulators: WeakKeyDictionary[SparkContext, Any] = WeakKeyDictionary()


def _arrivals_of(context: SparkContext) -> Any:
    """The accumulator through which tasks of this context tell their measures."""
    found = _accumulators.get(context)
    if found is None:
        param: Any = _Arrivals()
        found = _accumulators[context] = context.accumulator([], param)
    return found


def choose_runner(
    engine: str, options: SparkOptions, *, is_large: Callable[[], bool], at_once: int | None = None
) -> Runner:
    """The runner for a piece of work: in this process, or on Spark when that is asked for, running, or pays off."""
    refuse_unknown_engine(engine)
    wanted = engine == "spark" or (engine == "auto" and (options.given is not None or is_running() or is_large()))
    return OnSpark(spark_session(options=options), at_once) if wanted else Inline()


@dataclass(frozen=True)
class _Outcome(Generic[R]):
    """What became of one spec: its result, or the error, Python's account of it and the host it happened on."""

    place: int
    result: R | Any = None
    error: OmnigraphError | None = None
    trace: str | None = None
    host: str = ""


@dataclass(frozen=True)
class _Task(Generic[S, R]):
    """A task that reports its error instead of raising it: Spark would wrap it into a page of Java."""

    function: Callable[[S], R]

    def __call__(self, place: int, spec: S) -> _Outcome[R]:
        try:
            return _Outcome(place, self.function(spec))
        except OmnigraphError as error:
            return _Outcome(place, error=error, trace=traceback.format_exc(), host=socket.gethostname())
        except Exception as error:
            told = SparkFailed(f"{type(error).__name__}: {error}", kind="task")
            return _Outcome(place, error=told, trace=traceback.format_exc(), host=socket.gethostname())


@dataclass(frozen=True)
class _Told(Generic[R, M]):
    """What a task tells of a result: to which job it belongs, and what `measure` makes of it."""

    group: str
    measure: Callable[[R], M]
    arrivals: Any

    def tell(self, result: R) -> None:
        self.arrivals.add([(self.group, self.measure(result))])


@dataclass(frozen=True)
class _Slice(Generic[S, R]):
    """What one Spark task does: its specs in turn, telling the driver of each result where that is wanted."""

    task: _Task[S, R]
    told: _Told[R, Any] | None

    def __call__(self, specs: Iterable[tuple[int, S]]) -> Iterator[_Outcome[R]]:
        for place, spec in specs:
            outcome = self.task(place, spec)
            if self.told is not None and outcome.error is None:
                self.told.tell(outcome.result)
            yield outcome


class _Arrivals:
    """An accumulator for display: on the driver it only passes measures on, and can not fail."""

    def zero(self, value: list[Any]) -> list[Any]:
        return []

    def addInPlace(self, value: list[Any], arrived: list[Any]) -> list[Any]:
        from pyspark import TaskContext

        if TaskContext.get() is not None:
            return value + arrived
        for group, measure in arrived:
            queue = _waiting.get(group)
            if queue is not None:
                queue.put(measure)
        return value


def _error_of(outcome: _Outcome[Any], what: str, *, named: bool) -> OmnigraphError:
    """The error of a task as the driver raises it: ours as it was, any other as one line that names the task.

    `named`: the task ran on another machine perhaps, and the error says on which.
    """
    error = outcome.error
    assert error is not None
    if isinstance(error, SparkFailed) and error.kind == "task" and error.detail is None:
        error = SparkFailed(f"{what} failed: {error.message}", kind="task", detail=outcome.trace)
    if named:
        error.message = f"on the Spark worker {outcome.host}: {error.message}"
    return error
