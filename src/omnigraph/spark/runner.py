"""Runners carry out plain task functions over small descriptions (specs), in this process or scheduled by Spark.
A task is a function of an importable module; its argument and result are small and can be pickled. It raises our own errors;
rejected data is part of its result. A job returns one result per spec. The display of a running job is separate: it can
neither fail the job nor change its result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar
from weakref import WeakKeyDictionary

from omnigraph.ids import new_ulid
from omnigraph.spark.connect import ConnectSession
from omnigraph.spark.failures import spark_errors
from omnigraph.spark.jobs import Dealt, Display, Outcome, Screen, SparkRunner, Task, awaited, hand_over, tell
from omnigraph.spark.options import SparkOptions, refuse_unknown_engine
from omnigraph.spark.over_connect import OverConnect
from omnigraph.spark.pyspark_private import local_properties, set_local_properties
from omnigraph.spark.session import Session, is_running, spark_session
from omnigraph.spark.settings import is_local

if TYPE_CHECKING:
    from pyspark import SparkContext

S = TypeVar("S")
R = TypeVar("R")
M = TypeVar("M")

__all__ = ["Display", "Inline", "OnSpark", "Runner", "choose_runner", "runner_on"]


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
        """The results, one for each spec, in the order of the specs. `display` sees each result as it arrives.
        `unused`: called with the results of succeeded tasks when the job failed, so that their files can be removed.
        `stage`: a description of the tasks for Spark's web UI.
        """
        ...


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
        screen = Screen(display)
        try:
            for spec in specs:
                results.append(task(spec))
                if display is not None:
                    screen.show(display.measure(results[-1]))
            screen.raise_error()
        except BaseException:
            hand_over(results, unused)
            raise
        return results


@dataclass(frozen=True)
class OnSpark(SparkRunner):
    """Runs tasks on a classic Spark session, as one job over an RDD of descriptions."""

    session: Session
    at_once: int | None = None
    label: str = ""

    @property
    def most(self) -> int:
        return self.session.parallelism

    @property
    def shares_disk(self) -> bool:
        return is_local(self.session.context.master or "")

    def labelled(self, label: str) -> OnSpark:
        return replace(self, label=label)

    def outcomes(
        self, task: Task[S, R], dealt: Dealt[S], display: Display[R, Any] | None, what: str, shown: str
    ) -> list[Outcome[R]]:
        context = self.session.context
        specs = [(place, dealt.specs[place]) for places in dealt.places() for place in places]
        tag = new_ulid()

        def job(arrivals: Any) -> list[Outcome[R]]:
            with spark_errors(self.session, what, tag):
                told = None if display is None else _Told(tag, display.measure, arrivals)
                caller.lend(tag, shown)
                return list(context.parallelize(specs, dealt.slices).mapPartitions(_Slice(task, told)).collect())

        with spark_errors(self.session, what):
            arrivals = None if display is None else _arrivals_of(context)
            caller = Caller.here(context)
        return awaited(tag, lambda: job(arrivals), lambda: context.cancelJobsWithTag(tag), display)


@dataclass(frozen=True)
class Caller:
    """The local properties of the thread that requests a job: its job group, tags, pool and others."""

    context: SparkContext
    properties: Any

    @classmethod
    def here(cls, context: SparkContext) -> Caller:
        """The caller on this thread."""
        return cls(context, local_properties(context))

    def lend(self, tag: str, description: str) -> None:
        """Set these properties for the jobs of this thread, and a tag by which the jobs are found and cancelled."""
        set_local_properties(self.context, self.properties)
        self.context.addJobTag(tag)
        self.context.setJobDescription(description)


#: The accumulator of each context. It stays registered: an update without it would end PySpark's server for all jobs.
_accumulators: WeakKeyDictionary[SparkContext, Any] = WeakKeyDictionary()


def _arrivals_of(context: SparkContext) -> Any:
    """The accumulator through which tasks of this context send their measures."""
    found = _accumulators.get(context)
    if found is None:
        param: Any = _Arrivals()
        found = _accumulators[context] = context.accumulator([], param)
    return found


def choose_runner(
    engine: str, options: SparkOptions, *, is_large: Callable[[], bool], at_once: int | None = None
) -> Runner:
    """The runner for some work: Spark when it is requested, given or running, or when the work is large; else this process."""
    refuse_unknown_engine(engine)
    wanted = engine == "spark" or (engine == "auto" and (options.given is not None or is_running() or is_large()))
    return runner_on(spark_session(options=options), at_once) if wanted else Inline()


def runner_on(session: Session | ConnectSession, at_once: int | None = None) -> SparkRunner:
    """The runner for a session: RDD jobs for a classic session, which are faster, or jobs over Spark Connect."""
    return OverConnect(session, at_once) if isinstance(session, ConnectSession) else OnSpark(session, at_once)


@dataclass(frozen=True)
class _Told(Generic[R, M]):
    """How a task reports a result for display: the job, and the function `measure`."""

    group: str
    measure: Callable[[R], M]
    arrivals: Any

    def tell(self, result: R) -> None:
        self.arrivals.add([(self.group, self.measure(result))])


@dataclass(frozen=True)
class _Slice(Generic[S, R]):
    """The work of one Spark task: it runs its specs in turn and, if wanted, reports each result to the driver."""

    task: Task[S, R]
    told: _Told[R, Any] | None

    def __call__(self, specs: Iterable[tuple[int, S]]) -> Iterator[Outcome[R]]:
        for place, spec in specs:
            outcome = self.task(place, spec)
            if self.told is not None and outcome.error is None:
                self.told.tell(outcome.result)
            yield outcome


class _Arrivals:
    """An accumulator for display; on the driver it only passes measures on and can not fail."""

    def zero(self, value: list[Any]) -> list[Any]:
        return []

    def addInPlace(self, value: list[Any], arrived: list[Any]) -> list[Any]:
        from pyspark import TaskContext

        if TaskContext.get() is not None:
            return value + arrived
        for group, measure in arrived:
            tell(group, measure)
        return value
