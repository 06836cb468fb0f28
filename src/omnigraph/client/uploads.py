"""Rows for a load over HTTP: what `load` takes becomes one stream of JSON lines, and problems find their place again."""

from __future__ import annotations

import os
import re
import sys
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Any

import pyarrow as pa

from omnigraph.client.sending import line_of
from omnigraph.errors import BadRequest, KeyConflict, LoadRejected, OmnigraphError
from omnigraph.load.foreign import table_of
from omnigraph.load.inputs import ENDINGS, JSONL
from omnigraph.load.parsed import rejection
from omnigraph.load.tabular import require_one_type
from omnigraph.load.text import COMPRESSIONS
from omnigraph.storage.files import InputFile, find_files

_PIECE = 1 << 20
_PLACE = re.compile(r"^(?:line|record) ([0-9]+): ")

#: Rows of one origin: what it is called, and its lines.
Source = tuple[str, Iterable[bytes]]


@dataclass
class Upload:
    """Lines of several sources, one after the other. `repeatable`: whether they can be sent a second time."""

    sources: list[Source]
    repeatable: bool
    #: How many rows there are, where that is known before they are sent.
    rows: int | None = None
    #: The number of the line before each source, and the source's name.
    _begins: list[int] = field(default_factory=list)
    _names: list[str] = field(default_factory=list)

    def content(self) -> Iterator[bytes]:
        """The stream; a source that does not end with a line end gets one."""
        self._begins, self._names = [], []
        lines = 0
        for name, pieces in self.sources:
            self._begins.append(lines)
            self._names.append(name)
            last = b"\n"
            for piece in pieces:
                if piece:
                    lines += piece.count(b"\n")
                    last = piece[-1:]
                    yield piece
            if last != b"\n":
                lines += 1
                yield b"\n"

    def placed(self, error: OmnigraphError) -> OmnigraphError:
        """The error of a load with the names and lines of the caller's own sources."""
        if isinstance(error, LoadRejected):
            return rejection([(*self._place(line), message) for _, line, message in error.errors], error.total)
        if isinstance(error, KeyConflict) and (found := _PLACE.match(error.message)) is not None:
            name, line = self._place(int(found[1]))
            message = f"{name}:{line}: {error.message[found.end() :]}"
            places = [(*self._place(line), reason) for _, line, reason in error.places]
            return KeyConflict(message, type_key=error.type_key, entity_id=error.entity_id, places=places)
        return error

    def _place(self, line: int) -> tuple[str, int]:
        if not line or not self._begins:
            return (self._names or ["<data>"])[0], line
        number = bisect_right(self._begins, line - 1) - 1
        return self._names[number], line - self._begins[number]


def upload_of(
    data: Any, format: str | None, type_name: str | None, edge: str | None, mapping: Mapping[str, str] | None
) -> Upload:
    """What a caller gives to `load`, as lines."""
    if format not in (None, "jsonl"):
        raise _only_lines(format)
    table = table_of(data)
    if table is not None:
        require_one_type(type_name, edge)
        unknown = [name for name in mapping or {} if name not in table.column_names]
        if unknown:
            raise BadRequest(f"the table has no column '{unknown[0]}', which the mapping names")
        lines = _table_lines(table, type_name, edge, mapping or {})
        return Upload([("<table>", lines)], repeatable=False, rows=table.num_rows)
    if isinstance(data, bytes | bytearray):
        return _plain(Upload([("<data>", [bytes(data)])], repeatable=True), type_name, edge, mapping)
    if hasattr(data, "read"):
        stream = Upload([(str(getattr(data, "name", "<stream>")), _read(data))], repeatable=False)
        return _plain(stream, type_name, edge, mapping)
    if isinstance(data, str | os.PathLike):
        return _plain(_of_paths([os.fspath(data)]), type_name, edge, mapping)
    if isinstance(data, Mapping):
        raise BadRequest("give the entities as a list of dicts, not a single dict")
    if not isinstance(data, Iterable):
        raise BadRequest(f"can not load a {type(data).__name__}; give a path, dicts, or a table with type= or edge=")
    items = iter(data)
    first = list(islice(items, 1))
    if first and isinstance(first[0], str | os.PathLike):
        return _plain(_of_paths([*map(os.fspath, first), *map(os.fspath, items)]), type_name, edge, mapping)
    return _plain(Upload([("<rows>", map(line_of, chain(first, items)))], repeatable=False), type_name, edge, mapping)


def _plain(upload: Upload, type_name: str | None, edge: str | None, mapping: Mapping[str, str] | None) -> Upload:
    """Lines say themselves what they are; what is for the columns of tables is refused."""
    if type_name is not None or edge is not None or mapping:
        raise BadRequest("`type`, `edge` and a mapping are for tables: Parquet, CSV, or a table in memory")
    return upload


def _of_paths(paths: list[str]) -> Upload:
    sources: list[Source] = []
    for path in paths:
        if path == "-":
            sources.append(("<stdin>", _read(sys.stdin.buffer)))
        else:
            sources += [(file.name, _Pieces(_lines_file(file))) for file in find_files(path, ENDINGS[JSONL])]
    return Upload(sources, repeatable="-" not in paths)


def _lines_file(file: InputFile) -> InputFile:
    """A file of lines; one of a table is refused before anything is sent."""
    for format, endings in ENDINGS.items():
        if format != JSONL and file.path.lower().endswith(endings):
            raise _only_lines(format)
    return file


def _only_lines(format: str | None) -> BadRequest:
    return BadRequest(
        f"a served load takes JSON lines, and no {format} files; give them as a table in memory, or load them on the storage "
        "(og.open, --store)"
    )


@dataclass(frozen=True)
class _Pieces:
    """The bytes of a file, read again on each call; a compressed file is decompressed."""

    file: InputFile

    def __iter__(self) -> Iterator[bytes]:
        compression = COMPRESSIONS.get((self.file.suffixes or [""])[-1])
        if compression is not None:
            with self.file.opened() as raw, pa.CompressedInputStream(pa.PythonFile(raw, "r"), compression) as stream:
                yield from _read(stream)
            return
        for start in range(0, self.file.size, _PIECE):
            yield self.file.read(start, start + _PIECE)


def _read(stream: Any) -> Iterator[bytes]:
    while piece := stream.read(_PIECE):
        yield piece.encode() if isinstance(piece, str) else piece


def _table_lines(
    table: pa.Table, type_name: str | None, edge: str | None, mapping: Mapping[str, str]
) -> Iterator[bytes]:
    """The rows of a table as lines of one type."""
    renamed = table.rename_columns([mapping.get(name, name) for name in table.column_names])
    for batch in renamed.to_batches(max_chunksize=10_000):
        for row in batch.to_pylist():
            if type_name is not None:
                yield line_of({"type": type_name, "data": row})
            else:
                ends = {"from": row.pop("from", None), "to": row.pop("to", None)}
                yield line_of({"edge": edge, **ends, "data": row})
