"""Carries an export out: one ordered stream, or files in folders, here or on Spark."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import pyarrow as pa

from omnigraph.errors import BadRequest, SparkFailed
from omnigraph.export.lines import LINES, lines_with_ids, table_lines, text_bytes
from omnigraph.export.plan import ExportTable
from omnigraph.export.sink import ByteSink
from omnigraph.export.tasks import (
    STREAMS,
    Format,
    finish_folder,
    fragment_groups,
    plan_files,
    prepare_folders,
    write_file,
    written_rows,
)
from omnigraph.spark.jobs import SparkRunner
from omnigraph.spark.options import SparkOptions, refuse_unknown_engine
from omnigraph.spark.runner import Display, Inline, Runner, choose_runner, runner_on
from omnigraph.spark.session import is_running, spark_session
from omnigraph.spark.visibility import require_seen
from omnigraph.storage.outputs import Output
from omnigraph.storage.tables.table import Table
from omnigraph.values.ordered import merge_sorted


@dataclass(frozen=True)
class LineRun:
    """Some rows of a table as lines in id order, in a file that the driver can read."""

    planned: ExportTable
    output: Output


def write_run(run: LineRun) -> int:
    """Write one run; returns its number of lines."""
    run.output.write(_stream(run.planned, run.planned.open()), parents=True)
    return run.planned.rows


def merged_lines(tables: Sequence[ExportTable], runner: Runner, folder: Output) -> Iterator[bytes]:
    """All lines of an export in order: tasks write sorted runs, which are merged table by table."""
    runs = [
        [
            LineRun(part, folder.child(str(number), f"{place}.arrow"))
            for place, part in enumerate(fragment_groups(table) if table.rows else ())
        ]
        for number, table in enumerate(tables)
    ]
    runner.run(write_run, [run for group in runs for run in group], stage="export: sort")
    for group in runs:
        for block in merge_sorted([_read(run) for run in group]):
            for chunk in block["line"].chunks:
                yield text_bytes(chunk)


def _stream(planned: ExportTable, table: Table) -> Iterator[bytes]:
    sink = ByteSink()
    options = pa.ipc.IpcWriteOptions(compression="lz4")
    with pa.ipc.new_stream(pa.PythonFile(sink, "w"), LINES, options=options) as writer:
        for batch in lines_with_ids(planned, table):
            writer.write_batch(batch)
            yield sink.taken()
    yield sink.taken()


def _read(run: LineRun) -> Iterator[pa.Table]:
    with run.output.path.open("rb") as file:
        for batch in pa.ipc.open_stream(pa.PythonFile(file, "r")):
            yield pa.Table.from_batches([batch])


Files = Literal["one", "many"]
#: Called with how many entities are written, and how many there are.
ExportProgress: TypeAlias = Callable[[int, int], None]

#: From this number of rows on, an export of many files is worth starting Spark.
SPARK_ROWS = 5_000_000

_log = logging.getLogger(__name__)


def export_stream(tables: Sequence[ExportTable]) -> Iterator[bytes]:
    """All lines: nodes before edges, by type name, by id; each piece ends with a complete line."""
    for planned in tables:
        yield from table_lines(planned, planned.open())


def refuse_export(format: str, files: str, engine: str) -> None:
    """Raise for invalid options, before anything is read."""
    if format not in STREAMS:
        raise BadRequest(f"format is {', '.join(list(STREAMS)[:-1])} or {list(STREAMS)[-1]}, not {format!r}")
    if files not in ("one", "many"):
        raise BadRequest(f"files is one or many, not {files!r}")
    refuse_unknown_engine(engine)


def export_file(
    tables: Sequence[ExportTable],
    output: Output,
    engine: str,
    options: SparkOptions,
    progress: ExportProgress | None = None,
) -> int:
    """Write one file of JSON lines; returns how many entities it has."""
    counter = _Counter(tables, progress)
    if not output.root.is_local or not (engine == "spark" or (engine == "auto" and _pays_off(tables, options))):
        return counter.written(export_stream(tables), output)
    runner = runner_on(spark_session(options=options))
    if not runner.shares_disk:
        # Tasks pass runs to this process as files, which other machines may not share.
        return counter.written(export_stream(tables), output)
    with output.scratch() as folder:
        return counter.written(merged_lines(tables, runner, folder), output)


def _pays_off(tables: Sequence[ExportTable], options: SparkOptions) -> bool:
    """Whether Spark, if a session is there already, writes one file faster than this process alone."""
    return (options.given is not None or is_running()) and sum(table.rows for table in tables) >= SPARK_ROWS


def export_folder(
    tables: Sequence[ExportTable],
    output: Output,
    format: Format,
    files: Files,
    engine: str,
    options: SparkOptions,
    progress: ExportProgress | None = None,
) -> int:
    """Write a folder of files, completely or not at all; returns how many entities they have."""
    runner = choose_runner(
        engine, options, is_large=lambda: files == "many" and sum(table.rows for table in tables) >= SPARK_ROWS
    )
    with output.folder() as folder:
        runner = _seeing(runner, folder, asked=engine == "spark")
        planned = plan_files(tables, format, folder, many=files == "many")
        prepare_folders(planned)
        display = Display(written_rows, _Counter(tables, progress).add)
        rows = runner.run(write_file, planned, display=display, stage="export: write files")
        finish_folder(folder, planned)
        return sum(rows)


def _seeing(runner: Runner, folder: Output, *, asked: bool) -> Runner:
    """The runner if all its tasks can reach the folder; else this process, unless the caller asked for Spark."""
    if not isinstance(runner, SparkRunner):
        return runner
    try:
        require_seen(
            runner,
            folder.root,
            "",
            f"the folder {folder.path.parent if folder.root.is_local else folder.uri}",
            "export to storage that all workers share, or with engine='local'",
        )
    except SparkFailed as refusal:
        if asked or refusal.kind != "unseen":
            raise
        _log.warning("%s; this process writes the files", refusal)
        return Inline()
    return runner


class _Counter:
    """Counts the written entities of an export, and reports progress to the caller."""

    def __init__(self, tables: Sequence[ExportTable], progress: ExportProgress | None) -> None:
        self._total = sum(table.rows for table in tables)
        self._progress = progress
        self._done = 0

    def add(self, rows: int) -> None:
        self._done += rows
        if self._progress is not None:
            self._progress(self._done, self._total)

    def written(self, lines: Iterator[bytes], output: Output) -> int:
        """Write lines to a file and return their number; a line has no newline except at its end."""
        output.write(self._passing(lines))
        return self._done

    def _passing(self, lines: Iterator[bytes]) -> Iterator[bytes]:
        for piece in lines:
            yield piece
            self.add(piece.count(b"\n"))
