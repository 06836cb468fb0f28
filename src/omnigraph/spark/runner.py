"""Runners: the same plain task functions over small descriptions, in this process or scheduled by Spark.

A task is a function of an importable module, what it takes and returns is small and can be pickled. It raises
our own errors; data that it rejects is part of its result.
"""

from __future__ import annotations

import threading
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from omnigraph.errors import OmnigraphError, SparkFailed
from omnigraph.ids import new_ulid
from omnigraph.spark.failures import job_failure
from omnigraph.spark.options import SparkOptions, refuse_unknown_engine
from omnigraph.spark.session import Session, is_running, spark_session

if TYPE_CHECKING:
    from pyspark import SparkContext

S = TypeVar("S")
R = TypeVar("R")


class Runner(Protocol):
    """Carries out one task function for each spec; the results are in the order of the specs."""

    @property
    def parallelism(self) -> int: ...

    def run(
        self, task: Callable[[S], R], specs: Sequence[S], *, on_result: Callable[[R], None] | None = None
    ) -> list[R]:
        """The results, in the order of the specs; `on_result` gets each as soon as it is there."""
        ...


class Inline:
    """Runs tasks in this process, one after the other."""

    parallelism = 1

    def run(
        self, task: Callable[[S], R], specs: Sequence[S], *, on_result: Callable[[R], None] | None = None
    ) -> list[R]:
        results = []
        for spec in specs:
            results.append(task(spec))
            if on_result is not None:
                on_result(results[-1])
        return results


@dataclass(frozen=True)
class OnSpark:
    """Runs tasks on a Spark session, as one job; at most `at_once` of them at a time when that is given."""

    session: Session
    at_once: int | None = None

    @property
    def parallelism(self) -> int:
        most = self.session.parallelism
        return most if self.at_once is None else max(1, min(most, self.at_once))

    def run(
        self, task: Callable[[S], R], specs: Sequence[S], *, on_result: Callable[[R], None] | None = None
    ) -> list[R]:
        if not specs:
            return []
        what = f"{task.__module__}.{task.__qualname__}"
        outcomes = self._outcomes(_Task(task), list(enumerate(specs)), on_result, what)
        ordered = sorted(outcomes, key=lambda outcome: outcome.place)
        failed = next((outcome for outcome in ordered if outcome.error is not None), None)
        if failed is not None:
            raise _error_of(failed, what)
        return [outcome.result for outcome in ordered]

    def _outcomes(
        self, task: _Task[S, R], specs: list[tuple[int, S]], on_result: Callable[[R], None] | None, what: str
    ) -> list[_Outcome[R]]:
        context = self.session.context
        slices = len(specs) if self.at_once is None else self.parallelism
        # Dealt out like cards: a slice runs its specs in turn, and neighbours, often of one size, go to different ones.
        dealt = [spec for start in range(slices) for spec in specs[start::slices]]
        group = new_ulid()

        def job() -> list[_Outcome[R]]:
            with _spark_errors(self.session, what), _arriving(context, on_result) as told:
                context.setJobGroup(group, what)
                return list(context.parallelize(dealt, slices).mapPartitions(_Slice(task, told)).collect())

        return _interruptible(job, lambda: context.cancelJobGroup(group))


def _interruptible(job: Callable[[], R], cancel: Callable[[], None]) -> R:
    """Carry out a job on a thread of its own: an interrupt must not cut a conversation with the JVM in half."""
    outcome: Future[R] = Future()

    def carry_out() -> None:
        try:
            outcome.set_result(job())
        except BaseException as error:
            outcome.set_exception(error)

    threading.Thread(target=carry_out, name="omnigraph-spark-job", daemon=True).start()
    try:
        return outcome.result()
    finally:
        if not outcome.done():
            cancel()


@contextmanager
def _spark_errors(session: Session, what: str) -> Iterator[None]:
    """Whatever Spark raises becomes one of ours."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except (Py4JError, PySparkException, OSError) as error:
        raise job_failure(error, what) from error
    except Exception as error:
        # A context that was stopped under way has lost its Java half, and fails in ways of its own.
        if session.is_alive():
            raise
        raise job_failure(ConnectionError(str(error)), what) from error


@contextmanager
def _arriving(context: SparkContext, on_result: Callable[[R], None] | None) -> Iterator[Any]:
    """What tasks tell their results to, each as it is there; None when nobody wants to know."""
    if on_result is None:
        yield None
        return
    from pyspark.accumulators import _accumulatorRegistry

    param: Any = _Arrivals(on_result)
    arrivals: Any = context.accumulator([], param)
    try:
        yield arrivals
    finally:
        _accumulatorRegistry.pop(arrivals.aid, None)


def choose_runner(
    engine: str, options: SparkOptions, *, is_large: Callable[[], bool], at_once: int | None = None
) -> Runner:
    """The runner for a piece of work: in this process, or on Spark when that is asked for, running, or pays off."""
    refuse_unknown_engine(engine)
    wanted = engine == "spark" or (engine == "auto" and (options.given is not None or is_running() or is_large()))
    return OnSpark(spark_session(options=options), at_once) if wanted else Inline()


@dataclass(frozen=True)
class _Outcome(Generic[R]):
    """What became of one spec: its result, or the error and Python's account of it."""

    place: int
    result: R | Any = None
    error: BaseException | None = None
    trace: str | None = None


@dataclass(frozen=True)
class _Task(Generic[S, R]):
    """A task that reports its error instead of raising it: Spark would wrap it into a page of Java."""

    function: Callable[[S], R]

    def __call__(self, place: int, spec: S) -> _Outcome[R]:
        try:
            return _Outcome(place, self.function(spec))
        except OmnigraphError as error:
            return _Outcome(place, error=error, trace=traceback.format_exc())
        except Exception as error:
            told = SparkFailed(f"{type(error).__name__}: {error}", kind="task")
            return _Outcome(place, error=told, trace=traceback.format_exc())


@dataclass(frozen=True)
class _Slice(Generic[S, R]):
    """What one Spark task does: its specs in turn, telling the driver of each result where that is wanted."""

    task: _Task[S, R]
    arrivals: Any

    def __call__(self, specs: Iterable[tuple[int, S]]) -> Iterator[_Outcome[R]]:
        for place, spec in specs:
            outcome = self.task(place, spec)
            if self.arrivals is not None and outcome.error is None:
                self.arrivals.add([outcome.result])
            yield outcome


class _Arrivals(Generic[R]):
    """An accumulator that hands each arriving result on: Spark sends one when its task has succeeded, and only once."""

    def __init__(self, on_result: Callable[[R], None] | None = None) -> None:
        self._on_result = on_result

    def __reduce__(self) -> tuple[Any, ...]:
        return _Arrivals, ()

    def zero(self, value: list[R]) -> list[R]:
        return []

    def addInPlace(self, value: list[R], arrived: list[R]) -> list[R]:
        if self._on_result is None:
            return value + arrived
        for result in arrived:
            self._on_result(result)
        return value


def _error_of(outcome: _Outcome[Any], what: str) -> BaseException:
    """The error of a task as the driver raises it: ours as it was, any other as one line that names the task."""
    error = outcome.error
    if isinstance(error, SparkFailed) and error.kind == "task" and error.detail is None:
        return SparkFailed(f"{what} failed: {error.message}", kind="task", detail=outcome.trace)
    assert error is not None
    return error
