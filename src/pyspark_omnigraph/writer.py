"""The writers of `format("omnigraph")`: tasks put their rows into the graph's `__staging`, and one commit loads them.

Spark makes a writer in one process, sends it to the tasks and calls `commit` in yet another one. What a job or a batch put there
and did not load is removed by `abort`, or runs out with the lease of its record.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage

from omnigraph.commit.staging_jobs import remove_job, staging_job, take_back_when_over
from omnigraph.errors import OmnigraphError, SparkFailed
from omnigraph.ids import derived_ulid, new_ulid
from omnigraph.load.frames import Part, write_part
from omnigraph.storage.objects import open_store
from pyspark_omnigraph.rejects import load_without_rejects
from pyspark_omnigraph.target import Target

if TYPE_CHECKING:
    import pyarrow as pa

#: Where Spark tells tasks to which query and batch they belong.
_QUERY, _BATCH = "sql.streaming.queryId", "streaming.sql.batchId"


@dataclass
class Written(WriterCommitMessage):
    """What one task has written: its file, None when it had no rows, and the streaming query it belongs to."""

    part: Part | None
    query: str = ""


class BatchWriter(DataSourceArrowWriter):
    """`df.write.format("omnigraph")`: the rows of all tasks are one commit, or none is made."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._job_id = new_ulid()
        # The record is there before the first file, so that a task that finds none knows that all is over.
        with staging_job(open_store(target.root), self._job_id, "load", target.branch, (), ends=False):
            pass

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        return Written(_written(self._target, self._job_id, iterator))

    def commit(self, messages: Sequence[Any]) -> None:
        parts = _parts(messages)
        with staging_job(open_store(self._target.root), self._job_id, "load", self._target.branch, ()):
            self._target.load(self._job_id, parts, self._target.idempotency_key)

    def abort(self, messages: Sequence[Any]) -> None:
        _forget(self._target, self._job_id)


class StreamWriter(DataSourceStreamArrowWriter):
    """`stream.writeStream.format("omnigraph")`: each micro-batch is one commit, known by its query and its number.

    A batch that Spark repeats has the same number, so what was committed once is not committed again.
    """

    def __init__(self, target: Target) -> None:
        self._target = target

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        task = TaskContext.get()
        assert task is not None, "a task of Spark knows which one it is"
        query, batch = task.getLocalProperty(_QUERY) or "", task.getLocalProperty(_BATCH) or ""
        job_id = derived_ulid(query, batch)
        with staging_job(open_store(self._target.root), job_id, "load", self._target.branch, (), ends=False):
            return Written(_written(self._target, job_id, iterator), query)

    def commit(self, messages: Sequence[Any], batchId: int) -> None:
        parts = _parts(messages)
        query = next((message.query for message in messages if message is not None), "")
        if not query:
            return
        job_id, key = derived_ulid(query, str(batchId)), f"{query}:{batchId}"
        with staging_job(open_store(self._target.root), job_id, "load", self._target.branch, ()):
            if not parts:
                return
            if self._target.rejects is None:
                self._target.load(job_id, parts, key, by_key=True)
            else:
                load_without_rejects(self._target, job_id, parts, key, self._target.rejects)

    def abort(self, messages: Sequence[Any], batchId: int) -> None:
        query = next((message.query for message in messages if message is not None), "")
        if query:
            _forget(self._target, derived_ulid(query, str(batchId)))


def _written(target: Target, job_id: str, batches: Iterator[pa.RecordBatch]) -> Part | None:
    task = TaskContext.get()
    partition = 0 if task is None else task.partitionId()
    part = write_part(target.folder(job_id), partition, batches)
    if part is not None:
        take_back_when_over(open_store(target.root), job_id)
    return part


def _parts(messages: Sequence[Any]) -> list[Part]:
    """The files of all tasks; a task that has told nothing has written nothing that is known."""
    if any(message is None for message in messages):
        raise SparkFailed("a task of the data frame told nothing; nothing was published, try again", kind="results")
    return [message.part for message in messages if message.part is not None]


def _forget(target: Target, job_id: str) -> None:
    with suppress(OmnigraphError):  # what stays runs out with its lease
        remove_job(open_store(target.root), job_id)
