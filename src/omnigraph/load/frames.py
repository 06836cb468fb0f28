"""A Spark data frame becomes files that a load reads: each task writes its partition as Parquet and reports its row count.

A task that is repeated, or runs twice at once, writes another file; only the files that the job returns are read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from omnigraph.commit.staging_jobs import take_back_when_over
from omnigraph.errors import SparkFailed
from omnigraph.export.sink import ByteSink
from omnigraph.ids import new_ulid
from omnigraph.load.scratch import Scratch, written_file
from omnigraph.spark.connect import ConnectSession
from omnigraph.spark.failures import spark_errors
from omnigraph.spark.jobs import awaited
from omnigraph.spark.options import SparkOptions
from omnigraph.spark.over_connect import tagged_job
from omnigraph.spark.pyspark_private import arrow_batches
from omnigraph.spark.runner import Caller, runner_on
from omnigraph.spark.session import AnySession, spark_session
from omnigraph.spark.visibility import require_seen
from omnigraph.storage.files import InputFile
from omnigraph.storage.objects import open_store
from omnigraph.storage.outputs import Output
from omnigraph.storage.root import Root

_GROUP_BYTES = 32 << 20
#: A `Part` as a row of Spark.
_PARTS = pa.schema([("name", pa.string()), ("rows", pa.int64()), ("size", pa.int64())])
_PART_DDL = "name string, rows bigint, size bigint"


@dataclass(frozen=True)
class FrameFiles:
    """The rows of a data frame in files, in the order of its partitions, and the number of rows."""

    columns: list[str]
    files: list[InputFile]
    rows: int


def frame_files(frame: Any, scratch: Scratch, *, ship_package: bool = False) -> FrameFiles:
    """Let Spark's tasks write a data frame to a place that the tasks of the load can read."""
    session = spark_session(options=SparkOptions(given=frame.sparkSession, ship_package=ship_package))
    runner = runner_on(session)
    job_of_graph: tuple[Root, str] | None = None
    if runner.shares_disk:
        folder = Output(str(scratch.folder()), Root(str(scratch.folder()))).child("frame")
    else:
        require_seen(
            runner,
            scratch.graph,
            scratch.shared_path(),
            f"the graph at {scratch.graph.uri}",
            "the tasks of a data frame write its rows there: put the graph on storage that all workers share, or load "
            "frame.toArrow()",
        )
        folder = scratch.shared().child("frame")
        job_of_graph = scratch.graph, scratch.shared_job()
    parts = sorted(_written(session, frame, folder, job_of_graph), key=lambda part: part.name)
    files = [written_file(folder.child(part.name), "<table>", part.size) for part in parts]
    for file, part in zip(files, parts, strict=True):
        _require_whole(file, part.rows)
    return FrameFiles(list(frame.columns), files, sum(part.rows for part in parts))


def _written(session: AnySession, frame: Any, folder: Output, job_of_graph: tuple[Root, str] | None) -> list[Part]:
    """Write the partitions of a data frame, one task each; returns the files."""
    what, shown = "the tasks of the data frame", "load a data frame: write its rows"
    if isinstance(session, ConnectSession):
        mapped = frame.mapInArrow(ArrowWriter(folder, job_of_graph), _PART_DDL)
        return tagged_job(session, what, shown, lambda _: [Part(**row) for row in mapped.toArrow().to_pylist()])
    tag, context = new_ulid(), session.context
    with spark_errors(session, what):
        caller = Caller.here(context)

    def job() -> list[Part]:
        with spark_errors(session, what, tag):
            caller.lend(tag, shown)
            writer = PartWriter(folder, _schema(frame), job_of_graph)
            return list(arrow_batches(frame).mapPartitionsWithIndex(writer).collect())

    return awaited(tag, job, lambda: context.cancelJobsWithTag(tag))


def _schema(frame: Any) -> pa.Schema:
    """The Arrow schema of the frame's batches, which the serialised batches do not contain."""
    from pyspark.sql.pandas.types import to_arrow_schema

    large = frame.sparkSession.conf.get("spark.sql.execution.arrow.useLargeVarTypes") == "true"
    return to_arrow_schema(frame.schema, timezone="UTC", prefers_large_types=large)


def _require_whole(file: InputFile, rows: int) -> None:
    with file.opened() as opened:
        found = pq.ParquetFile(opened).metadata.num_rows
    if found != rows:
        raise SparkFailed(
            f"a task of the data frame wrote {rows} rows and {found} are there; nothing was published, try again",
            kind="results",
        )


@dataclass(frozen=True)
class Part:
    """A file that one task has written: its name, its number of rows and its size in bytes."""

    name: str
    rows: int
    size: int


@dataclass(frozen=True)
class PartWriter:
    """Writes the rows of one partition as one Parquet file in a folder; an empty partition has no file.

    `job_of_graph`: the graph and the staging job in whose scratch the folder lies; None for a folder of this machine.
    """

    folder: Output
    schema: pa.Schema
    job_of_graph: tuple[Root, str] | None = None

    def __call__(self, partition: int, messages: Iterator[bytes]) -> Iterator[Part]:
        batches = (pa.ipc.read_record_batch(pa.py_buffer(message), self.schema) for message in messages)
        yield from _part_of(self.folder, partition, batches, self.job_of_graph)


@dataclass(frozen=True)
class ArrowWriter:
    """Does the work of `PartWriter` in `mapInArrow`, the only way of Spark Connect: returns one row per written file."""

    folder: Output
    job_of_graph: tuple[Root, str] | None = None

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        task = TaskContext.get()
        assert task is not None, "a task of Spark knows which one it is"
        for part in _part_of(self.folder, task.partitionId(), batches, self.job_of_graph):
            yield pa.RecordBatch.from_pylist([asdict(part)], schema=_PARTS)


def _part_of(
    folder: Output, partition: int, batches: Iterator[pa.RecordBatch], job_of_graph: tuple[Root, str] | None
) -> Iterator[Part]:
    """Write one partition; yields its file, or nothing when it is empty. If the job is over, the file is removed again."""
    part = write_part(folder, partition, batches)
    if part is None:
        return
    if job_of_graph is not None:
        graph, job_id = job_of_graph
        take_back_when_over(open_store(graph), job_id)
    yield part


def write_part(folder: Output, partition: int, batches: Iterator[pa.RecordBatch]) -> Part | None:
    """Write the rows of one partition as one Parquet file in a folder; None when there are no rows."""
    first = next((batch for batch in batches if batch.num_rows), None)
    if first is None:
        return None
    name = f"{partition:08d}-{new_ulid()}.parquet"
    counted = _Counted()
    folder.child(name).write(counted.stream(first, batches), parents=True)
    return Part(name, counted.rows, counted.bytes)


def written_frame(folder: Output, columns: list[str], parts: Sequence[Part]) -> FrameFiles:
    """The rows of a data frame whose partitions were written to a folder; raises if a file lacks rows.

    Each file is named like its part, so that a problem names the file and the row.
    """
    ordered = sorted(parts, key=lambda part: part.name)
    files = [written_file(folder.child(part.name), part.name, part.size) for part in ordered]
    for file, part in zip(files, ordered, strict=True):
        _require_whole(file, part.rows)
    return FrameFiles(columns, files, sum(part.rows for part in ordered))


class _Counted:
    """Writes batches as the bytes of a Parquet file; `rows` and `bytes` are final once the stream has ended."""

    def __init__(self) -> None:
        self.rows = self.bytes = 0

    def stream(self, first: pa.RecordBatch, batches: Iterator[pa.RecordBatch]) -> Iterator[bytes]:
        sink = ByteSink()
        with pq.ParquetWriter(pa.PythonFile(sink, "w"), first.schema, compression="zstd") as writer:
            held, size = [first], first.nbytes
            for batch in batches:
                if size >= _GROUP_BYTES:
                    self._write(writer, held)
                    held, size = [], 0
                    yield self._taken(sink)
                held.append(batch)
                size += batch.nbytes
            self._write(writer, held)
        yield self._taken(sink)

    def _write(self, writer: pq.ParquetWriter, held: list[pa.RecordBatch]) -> None:
        table = pa.Table.from_batches(held)
        writer.write_table(table, row_group_size=max(table.num_rows, 1))
        self.rows += table.num_rows

    def _taken(self, sink: ByteSink) -> bytes:
        taken = sink.taken()
        self.bytes += len(taken)
        return taken
