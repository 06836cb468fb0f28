"""The export itself: one ordered stream, or files in folders, here or on Spark."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from omnigraph.errors import BadRequest
from omnigraph.export.lines import table_lines
from omnigraph.export.plan import ExportTable
from omnigraph.export.runs import merged_lines
from omnigraph.export.tasks import Format, plan_files, write_file
from omnigraph.spark.options import SparkOptions, refuse_unknown_engine
from omnigraph.spark.runner import OnSpark, choose_runner
from omnigraph.spark.session import is_running, spark_session
from omnigraph.spark.settings import is_local
from omnigraph.storage.outputs import Output

Files = Literal["one", "many"]

#: From so many rows on, an export of many files is worth starting Spark for.
SPARK_ROWS = 5_000_000


def export_stream(tables: Sequence[ExportTable]) -> Iterator[bytes]:
    """All lines: nodes before edges, by type name, by id; each piece ends with a line."""
    for planned in tables:
        yield from table_lines(planned, planned.open())


def refuse_export(format: str, files: str, engine: str) -> None:
    """Check what a caller asks for before anything is read."""
    if format not in ("jsonl", "parquet"):
        raise BadRequest(f"format is jsonl or parquet, not {format!r}")
    if files not in ("one", "many"):
        raise BadRequest(f"files is one or many, not {files!r}")
    refuse_unknown_engine(engine)


def export_file(tables: Sequence[ExportTable], output: Output, engine: str, options: SparkOptions) -> int:
    """Write one file of JSON lines; returns how many entities it has."""
    if not output.root.is_local or not (engine == "spark" or (engine == "auto" and _pays_off(tables, options))):
        return _written(export_stream(tables), output)
    session = spark_session(options=options)
    if not is_local(session.context.master or ""):
        # Runs pass from the tasks to this process as files, which other machines may not share.
        return _written(export_stream(tables), output)
    with output.scratch() as folder:
        return _written(merged_lines(tables, OnSpark(session), folder), output)


def _pays_off(tables: Sequence[ExportTable], options: SparkOptions) -> bool:
    """Whether Spark, which is there already, makes one file faster than this process alone does."""
    return (options.given is not None or is_running()) and sum(table.rows for table in tables) >= SPARK_ROWS


def _written(lines: Iterator[bytes], output: Output) -> int:
    counted = _Counted(lines)
    output.write(counted)
    return counted.lines


def export_folder(
    tables: Sequence[ExportTable], output: Output, format: Format, files: Files, engine: str, options: SparkOptions
) -> int:
    """Write a folder of files, there as a whole or not at all; returns how many entities they have."""
    runner = choose_runner(
        engine, options, is_large=lambda: files == "many" and sum(table.rows for table in tables) >= SPARK_ROWS
    )
    with output.folder() as folder:
        planned = plan_files(tables, format, folder, many=files == "many")
        return sum(runner.run(write_file, planned))


class _Counted:
    """A stream of lines that counts them on their way; a line holds no other newline than its end."""

    def __init__(self, stream: Iterator[bytes]) -> None:
        self._stream = stream
        self.lines = 0

    def __iter__(self) -> Iterator[bytes]:
        for piece in self._stream:
            self.lines += piece.count(b"\n")
            yield piece
