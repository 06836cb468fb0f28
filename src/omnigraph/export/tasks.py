"""One file of an export of many files: its rows, and the task that writes it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from omnigraph.errors import SparkFailed
from omnigraph.export.lines import table_lines
from omnigraph.export.plan import ExportTable
from omnigraph.export.tables import arrow_stream, csv_stream, parquet_stream
from omnigraph.storage.outputs import Output
from omnigraph.storage.tables.table import Table

Format = Literal["jsonl", "parquet", "arrow", "csv"]

#: A file has as many fragments as needed to reach this number of rows.
ROWS_PER_FILE = 1_048_576

STREAMS: dict[str, Callable[[ExportTable, Table], Iterator[bytes]]] = {
    "jsonl": table_lines,
    "parquet": parquet_stream,
    "arrow": arrow_stream,
    "csv": csv_stream,
}


@dataclass(frozen=True)
class ExportFile:
    """A file to write: some rows of one table, in one format."""

    planned: ExportTable
    format: Format
    output: Output


def write_file(file: ExportFile) -> int:
    """Write one file; returns its number of rows."""
    table = file.planned.open()
    # The folder exists. A task that Spark runs twice and that ends late must not make the temporary folder again.
    file.output.write(STREAMS[file.format](file.planned, table))
    return file.planned.rows


def written_rows(rows: int) -> int:
    """What is reported of a written file: its number of rows."""
    return rows


def prepare_folders(files: Sequence[ExportFile]) -> None:
    """Make the folders of the files."""
    for folder in {file.output.path.parent for file in files if file.output.root.is_local}:
        folder.mkdir(parents=True, exist_ok=True)


def finish_folder(folder: Output, files: Sequence[ExportFile]) -> None:
    """Remove the leftovers of dead tasks, and raise if a file is missing."""
    if not folder.root.is_local:
        return
    for unfinished in folder.path.rglob(".*.part"):
        unfinished.unlink(missing_ok=True)
    missing = [file.output.path for file in files if not file.output.path.is_file()]
    if missing:
        raise SparkFailed(
            f"{len(missing)} of {len(files)} files were written where this machine can not see them, such as "
            f"{missing[0].name} of {missing[0].parent.name}; nothing was exported, export to storage that all workers share",
            kind="unseen",
        )


def plan_files(tables: Sequence[ExportTable], format: Format, folder: Output, *, many: bool) -> list[ExportFile]:
    """The files of an export: per type a folder with one file, or with one file per group of fragments."""
    files = []
    for planned in tables:
        if format == "jsonl" and not planned.rows:
            continue
        for number, part in enumerate(fragment_groups(planned) if many else [planned]):
            place = folder.child(f"{planned.kind}s", planned.name, f"part-{number:05d}.{format}")
            files.append(ExportFile(part, format, place))
    return files


def fragment_groups(planned: ExportTable) -> Iterator[ExportTable]:
    """A table in groups of its fragments; a table without fragments is one part."""
    found = False
    for group in planned.open().fragment_groups(ROWS_PER_FILE):
        found = True
        yield planned.only(group.ids, group.rows)
    if not found:
        yield planned
