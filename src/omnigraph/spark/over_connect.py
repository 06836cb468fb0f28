"""Tasks through Spark Connect: `mapInArrow` over a frame of task descriptions, one row for each.

A Connect client has no RDDs and no accumulators. Descriptions and results are pickled bytes in a column, and each slice is one
partition. Results are shown as they arrive, in the order of the slices.
"""

from __future__ import annotations

import pickle
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Generic, TypeVar
from weakref import WeakKeyDictionary

import pyarrow as pa

from omnigraph.ids import new_ulid
from omnigraph.spark.connect import ConnectSession
from omnigraph.spark.failures import spark_errors
from omnigraph.spark.jobs import Dealt, Display, Outcome, SparkRunner, Task, awaited, tell
from omnigraph.spark.settings import is_local

S = TypeVar("S")
R = TypeVar("R")

_SPECS = pa.schema([("slice", pa.int32()), ("place", pa.int32()), ("spec", pa.binary())])
_RESULTS = pa.schema([("outcome", pa.binary())])
_RESULTS_DDL = "outcome binary"
#: Whether the tasks of a session see the files of this machine.
_same_disk: WeakKeyDictionary[Any, bool] = WeakKeyDictionary()


@dataclass(frozen=True)
class OverConnect(SparkRunner):
    """Runs tasks through a session of Spark Connect, as one job."""

    session: ConnectSession
    at_once: int | None = None
    label: str = ""

    @property
    def most(self) -> int:
        with spark_errors(self.session, "a look at how many tasks run at once"):
            return self.session.parallelism

    @property
    def shares_disk(self) -> bool:
        """Whether the server runs tasks in its own process and sees a file that was just written here."""
        known = _same_disk.get(self.session.sql)
        if known is None:
            with spark_errors(self.session, "a look at where tasks run"):
                local = is_local(str(self.session.sql.conf.get("spark.master", "")))
            known = _same_disk[self.session.sql] = local and self._sees_this_disk()
        return known

    def labelled(self, label: str) -> OverConnect:
        return replace(self, label=label)

    def outcomes(
        self, task: Task[S, R], dealt: Dealt[S], display: Display[R, Any] | None, what: str, shown: str
    ) -> list[Outcome[R]]:
        def job(tag: str) -> list[Outcome[R]]:
            found = []
            for row in self._frame(task, dealt).toLocalIterator():
                outcome: Outcome[R] = pickle.loads(row.outcome)
                found.append(outcome)
                if display is not None and outcome.error is None:
                    tell(tag, display.measure(outcome.result))
            return found

        return tagged_job(self.session, what, shown, job, display)

    def _frame(self, task: Task[S, R], dealt: Dealt[S]) -> Any:
        rows = [(number, place) for number, places in enumerate(dealt.places()) for place in places]
        table = pa.table(
            [
                pa.array([number for number, _ in rows], pa.int32()),
                pa.array([place for _, place in rows], pa.int32()),
                pa.array([pickle.dumps(dealt.specs[place]) for _, place in rows], pa.binary()),
            ],
            schema=_SPECS,
        )
        frame: Any = self.session.sql.createDataFrame(table)
        return frame.repartitionById(dealt.slices, "slice").mapInArrow(_Mapped(task), _RESULTS_DDL)

    def _sees_this_disk(self) -> bool:
        token = new_ulid()
        with tempfile.TemporaryDirectory(prefix="omnigraph-probe-") as folder:
            path = Path(folder, "token")
            path.write_text(token)
            [found] = self.outcomes(Task(_read_text), Dealt([str(path)], 1), None, "a look at where tasks run", "look")
        return found.result == token


def _read_text(path: str) -> str | None:
    """The text of a local file; None when it can not be read."""
    try:
        return Path(path).read_text()
    except OSError:
        return None


def tagged_job(
    session: ConnectSession,
    what: str,
    shown: str,
    job: Callable[[str], R],
    display: Display[Any, Any] | None = None,
) -> R:
    """Carry out a job under a new tag, which is passed to it and by which it is cancelled on an interrupt.
    A client can not give jobs a description, so `shown` is added as a tag too. The tags of the calling thread apply to the job.
    """
    tag, sql = new_ulid(), session.sql
    with spark_errors(session, what):
        tags = {*sql.getTags(), tag, shown.replace(",", ";")}

    def work() -> R:
        with spark_errors(session, what, tag), _tagged(sql, tags):
            return job(tag)

    return awaited(tag, work, lambda: _interrupt(sql, tag), display)


@contextmanager
def _tagged(sql: Any, tags: set[str]) -> Iterator[None]:
    """Set tags of this thread for the session's jobs in the block."""
    for tag in sorted(tags):
        sql.addTag(tag)
    try:
        yield
    finally:
        for tag in tags:
            sql.removeTag(tag)


def _interrupt(sql: Any, tag: str) -> None:
    with suppress(
        Exception
    ):  # a server that does not answer has no job to end, and the reason for cancelling must be raised
        sql.interruptTag(tag)


@dataclass(frozen=True)
class _Mapped(Generic[S, R]):
    """The work of one Spark task: it runs the specs of its rows in turn and yields a row for each outcome."""

    task: Task[S, R]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for place, spec in zip(batch.column("place").to_pylist(), batch.column("spec").to_pylist(), strict=True):
                outcome = pickle.dumps(self.task(place, pickle.loads(spec)))
                yield pa.record_batch([pa.array([outcome], pa.binary())], schema=_RESULTS)
