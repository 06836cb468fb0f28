"""Runners: the same plain task functions over small descriptions, in this process or scheduled by Spark.

A task is a function of an importable module, what it takes and returns is small and can be pickled. It raises
our own errors; data that it rejects is part of its result.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from omnigraph.errors import OmnigraphError, SparkFailed
from omnigraph.spark.failures import job_failure
from omnigraph.spark.session import Session

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
        from py4j.protocol import Py4JError
        from pyspark.errors import PySparkException

        context = self.session.context
        slices = len(specs) if self.at_once is None else self.parallelism
        # Dealt out like cards: a slice runs its specs in turn, and neighbours, often of one size, go to different ones.
        dealt = [spec for start in range(slices) for spec in specs[start::slices]]
        arrivals: Any = None
        if on_result is not None:
            param: Any = _Arrivals(on_result)
            arrivals = context.accumulator([], param)
        try:
            return list(context.parallelize(dealt, slices).mapPartitions(_Slice(task, arrivals)).collect())
        except (Py4JError, PySparkException, OSError, AttributeError) as error:
            # An AttributeError is what a context gives that was stopped under way: its Java half is None.
            raise job_failure(error, what) from error
        finally:
            if arrivals is not None:
                _forget_accumulator(arrivals.aid)


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


def _forget_accumulator(number: int) -> None:
    from pyspark.accumulators import _accumulatorRegistry

    _accumulatorRegistry.pop(number, None)


def _error_of(outcome: _Outcome[Any], what: str) -> BaseException:
    """The error of a task as the driver raises it: ours as it was, any other as one line that names the task."""
    error = outcome.error
    if isinstance(error, SparkFailed) and error.kind == "task" and error.detail is None:
        return SparkFailed(f"{what} failed: {error.message}", kind="task", detail=outcome.trace)
    assert error is not None
    return error
