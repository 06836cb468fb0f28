"""One ordered stream made by many tasks: each writes its lines in order, and the driver merges what they wrote."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from omnigraph.export.lines import LINES, lines_with_ids, text_bytes
from omnigraph.export.plan import ExportTable
from omnigraph.export.sink import ByteSink
from omnigraph.export.tasks import fragment_groups
from omnigraph.spark.runner import Runner
from omnigraph.storage.outputs import Output
from omnigraph.storage.tables.table import Table
from omnigraph.values.ordered import merge_sorted


@dataclass(frozen=True)
class LineRun:
    """Some rows of a table as lines in the order of their ids, in a file that the driver can read."""

    planned: ExportTable
    output: Output


def write_run(run: LineRun) -> int:
    """Write one run; returns how many lines it has."""
    run.output.write(_stream(run.planned, run.planned.open()), parents=True)
    return run.planned.rows


def merged_lines(tables: Sequence[ExportTable], runner: Runner, folder: Output) -> Iterator[bytes]:
    """All lines of an export in their order: runs are written by tasks, and merged table by table."""
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
