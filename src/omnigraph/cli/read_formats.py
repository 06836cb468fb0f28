"""How answers are printed: the rows of a query as json, jsonl, csv, kv, table or arrow, and what a mutation did."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from omnigraph.cli import output
from omnigraph.errors import BadRequest
from omnigraph.query.result import TableStyle, cell, table_lines
from omnigraph.wire.shapes import change_output, read_output

if TYPE_CHECKING:
    from omnigraph.cli.settings import Settings
    from omnigraph.mutation.execute import MutationResult
    from omnigraph.query.result import Result


@dataclass(frozen=True)
class ReadOutput:
    """An answer and what was asked: the query, and the branch or the snapshot it was asked of."""

    query_name: str
    branch: str | None
    snapshot: str | None
    result: Result

    @property
    def target(self) -> dict[str, str | None]:
        return {"branch": self.branch, "snapshot": self.snapshot}

    @property
    def header(self) -> str:
        """The line above a table."""
        place = f"branch {self.branch}" if self.snapshot is None else f"snapshot {self.snapshot}"
        via = f" via {self.query_name}" if self.query_name else ""
        count = len(self.result)
        return f"{count} {'row' if count == 1 else 'rows'} from {place}{via}"

    def cells(self) -> Iterator[list[str]]:
        """The rows as texts, in the order of the columns."""
        for row in self.result.to_dicts(json=True):
            yield [cell(value) for value in row.values()]


def table_style(settings: Settings) -> TableStyle:
    """How the configuration wants tables to look."""
    defaults = settings.config.defaults
    return TableStyle(defaults.table_max_column_width, defaults.table_cell_layout)


def print_change(branch: str, query_name: str, actor: str | None, result: MutationResult, *, as_json: bool) -> None:
    """Print what a mutation did."""
    if as_json:
        output.json(change_output(branch, query_name, actor, result))
        return
    via = f" via {query_name}" if query_name else ""
    output.line(f"changed {branch}{via}: {result.affected_nodes} nodes, {result.affected_edges} edges")
    output.fields({"actor_id": actor})


def print_read(read: ReadOutput, format: str, style: TableStyle) -> None:
    """Print an answer in one of the formats."""
    if format == "table":
        _print_lines([read.header, *table_lines(read.result.columns, list(read.cells()), style)])
    else:
        _FORMATS[format](read)


def _print_lines(lines: Iterable[str]) -> None:
    for line in lines:
        output.line(line)


def _print_json(read: ReadOutput) -> None:
    output.json(read_output(read.query_name, read.branch, read.snapshot, read.result))


def _print_jsonl(read: ReadOutput) -> None:
    about = {
        "kind": "metadata",
        "query_name": read.query_name,
        "target": read.target,
        "row_count": len(read.result),
    }
    output.json_lines([about, *read.result.to_dicts(json=True)])


def _print_csv(read: ReadOutput) -> None:
    for record in (read.result.columns, *read.cells()):
        output.line(",".join(map(_csv_field, record)))


def _csv_field(text: str) -> str:
    return '"' + text.replace('"', '""') + '"' if any(mark in text for mark in ',"\r\n') else text


def _print_kv(read: ReadOutput) -> None:
    _print_lines(_kv_lines(read))


def _kv_lines(read: ReadOutput) -> Iterator[str]:
    yield read.header
    number = 0
    for number, record in enumerate(read.cells(), start=1):
        if number > 1:
            yield ""
        yield f"row {number}"
        for column, text in zip(read.result.columns, record, strict=True):
            yield f"{column}: {text}"
    if not number:
        yield "(no rows)"


def _print_arrow(read: ReadOutput) -> None:
    """An Arrow IPC stream, for programs; a terminal could not show it."""
    import pyarrow as pa

    if output.is_terminal(sys.stdout):
        raise BadRequest("the format arrow is binary; send stdout to a file or a program")
    table = read.result.to_arrow()
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    output.data(sink.getvalue().to_pybytes())


_FORMATS: Mapping[str, Callable[[ReadOutput], None]] = {
    "json": _print_json,
    "jsonl": _print_jsonl,
    "csv": _print_csv,
    "kv": _print_kv,
    "arrow": _print_arrow,
}
