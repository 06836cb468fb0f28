"""A folder of CSV files for `neo4j-admin database import`: headers in the files or beside them, nodes and relationships."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePosixPath
from typing import IO

import pyarrow as pa

from omnigraph.errors import BadRequest
from omnigraph.integrations.neo4j.admin_header import (
    CHANGED,
    END,
    ID,
    IGNORE,
    LABEL,
    START,
    TYPE,
    Column,
    is_header,
    parse_header,
)
from omnigraph.integrations.neo4j.model import (
    End,
    Foreign,
    ForeignEdge,
    ForeignFile,
    ForeignNode,
    Problems,
    without_points,
)
from omnigraph.integrations.proposal import Note
from omnigraph.load.parsed import LONGEST_VALUE
from omnigraph.load.text import compression_of
from omnigraph.storage.files import InputFile, find_files

ENDINGS = tuple(f".{name}{end}" for name in ("csv", "tsv") for end in ("", ".gz", ".zst"))
_DELIMITERS = ("\t", ";", "|", ",")
_HEADER_NAME = re.compile(r"[-_.]?header$", re.IGNORECASE)


@dataclass(frozen=True)
class Reading:
    """How fields are told apart; the delimiter is found out per header when it is None."""

    delimiter: str | None = None
    array_delimiter: str = ";"


@dataclass(frozen=True)
class AdminFile:
    """A file of nodes or relationships with the header that applies to it."""

    file: InputFile
    columns: tuple[Column, ...]
    delimiter: str
    array_delimiter: str
    #: Whether the first line is the header.
    has_header: bool

    @property
    def name(self) -> str:
        return self.file.name

    @property
    def is_nodes(self) -> bool:
        return any(column.role == ID for column in self.columns)

    @property
    def label(self) -> str:
        """The label or type of a file that has no column for it: the name of the file."""
        stem = _HEADER_NAME.sub("", _stem(self.file))
        return re.sub(r"[-_.](?:nodes|relationships|rels|edges|part[-_]?\d+|\d+)$", "", stem) or stem

    def lacks(self, role: str) -> bool:
        return all(column.role != role for column in self.columns)

    def entities(self, problems: Problems) -> Iterator[Foreign]:
        with _text(self.file) as text:
            rows = csv.reader(text, delimiter=self.delimiter, strict=True)
            begins = 1
            try:
                for row in rows:
                    line, begins = begins, rows.line_num + 1
                    if not row or (line == 1 and self.has_header):
                        continue
                    try:
                        yield self._entity(line, row)
                    except ValueError as error:
                        problems.add(self.name, line, str(error))
            except (csv.Error, UnicodeDecodeError, pa.ArrowInvalid, OSError) as error:
                problems.add(self.name, begins, f"can not be read on: {error}")

    def _entity(self, line: int, row: list[str]) -> Foreign:
        if len(row) > len(self.columns):
            raise ValueError(f"{len(row)} fields for the {len(self.columns)} columns of the header")
        fields: dict[str, str] = {}
        labels: list[str] = []
        properties: dict[str, object] = {}
        for column, text in zip(self.columns, row, strict=False):
            if column.role == LABEL:
                labels += [label.strip() for label in text.split(self.array_delimiter) if label.strip()]
            elif column.role == IGNORE:
                continue
            elif column.role == ID:
                # Several id columns are one composite id.
                fields[ID] = f"{fields[ID]}/{text}" if ID in fields else text
            elif column.role is not None:
                fields[column.role] = text
            elif text:
                properties[column.name] = column.value(text, self.array_delimiter)
        made = without_points(properties)
        if self.is_nodes:
            if not fields.get(ID):
                raise ValueError("a node without an id")
            found = labels if not self.lacks(LABEL) else [self.label]
            return ForeignNode(line, fields[ID], tuple(sorted(set(found))), made, self._space(ID))
        kind = fields.get(TYPE) or (self.label if self.lacks(TYPE) else "")
        if not kind or not fields.get(START) or not fields.get(END):
            raise ValueError("a relationship without a type, a start or an end")
        start, end = End(fields[START], self._space(START)), End(fields[END], self._space(END))
        return ForeignEdge(line, kind, start, end, made)

    def _space(self, role: str) -> str:
        return next(column.space for column in self.columns if column.role == role)


@dataclass(frozen=True)
class AdminFolder:
    """All files of an import folder; files of nodes come first."""

    admin_files: tuple[AdminFile, ...]
    key: str = "neo4j_id"

    @property
    def files(self) -> Sequence[ForeignFile]:
        return self.admin_files

    def key_of(self, space: str) -> str:
        return self._keys.get(space) or self.key

    @cached_property
    def _keys(self) -> Mapping[str, str]:
        """The names of id columns that have one; of several in one id space none counts."""
        found: dict[str, set[str]] = {}
        for file in self.admin_files:
            named = [column for column in file.columns if column.role == ID]
            if len(named) == 1:
                found.setdefault(named[0].space, set()).add(named[0].name)
            elif named:
                found.setdefault(named[0].space, set()).add("")
        return {space: next(iter(names)) for space, names in found.items() if len(names) == 1 and "" not in names}

    def notes(self) -> list[Note]:
        notes: list[Note] = []
        for file in self.admin_files:
            role, word = (LABEL, "label") if file.is_nodes else (TYPE, "type")
            if file.lacks(role):
                notes.append(Note(file.name, f"has no {role} column: the {word} is {file.label!r}, from its name"))
            for column in file.columns:
                if column.role == IGNORE:
                    notes.append(Note(file.name, f"column {column.name or ':IGNORE'!r} is marked :IGNORE: left out"))
                elif column.role is None and column.kind in CHANGED:
                    notes.append(Note(file.name, f"column {column.name!r}: {CHANGED[column.kind]}"))
                elif column.role in (START, END) and column.name:
                    notes.append(
                        Note(file.name, f"column {column.name!r} is an end of the relationship, not a property")
                    )
        return notes


def find_admin_files(folder: str, reading: Reading, storage_options: Mapping[str, str] | None = None) -> AdminFolder:
    """The files of a folder with their headers; BadRequest for a file that no header applies to."""
    found = find_files(folder, ENDINGS, storage_options)
    headers: list[tuple[str, AdminFile]] = []
    plain: list[InputFile] = []
    made: list[AdminFile] = []
    for file in found:
        fields, delimiter, alone = _first_line(file, reading.delimiter)
        if not is_header(fields):
            plain.append(file)
            continue
        columns = parse_header(fields, file.name)
        read = AdminFile(file, columns, delimiter, reading.array_delimiter, True)
        if alone and _HEADER_NAME.search(_stem(file)):
            headers.append((_HEADER_NAME.sub("", _stem(file)), read))
        else:
            made.append(read)
    used: set[str] = set()
    for file in plain:
        fitting = [pair for pair in headers if _stem(file).startswith(pair[0])]
        if not fitting:
            raise BadRequest(
                f"{file.name} has no header and none lies beside it; name the header {_stem(file)}_header.csv, or make it "
                "the first line (a column :ID for nodes, :START_ID and :END_ID for relationships)"
            )
        stem, header = max(fitting, key=lambda pair: len(pair[0]))
        used.add(stem)
        made.append(AdminFile(file, header.columns, header.delimiter, reading.array_delimiter, False))
    made += [header for stem, header in headers if stem not in used]
    return AdminFolder(tuple(sorted(made, key=lambda file: (not file.is_nodes, file.name))))


def _stem(file: InputFile) -> str:
    return PurePosixPath(file.path).name.split(".")[0] if "." in PurePosixPath(file.path).name else file.path


def _first_line(file: InputFile, delimiter: str | None) -> tuple[list[str], str, bool]:
    """The fields of the first line, what stands between them, and whether it is the only line."""
    try:
        with _text(file) as text:
            first = text.readline()
            alone = not text.read(2).strip()
    except (UnicodeDecodeError, pa.ArrowInvalid, OSError) as error:
        raise BadRequest(f"{file.name} can not be read: {error}") from None
    mark = delimiter or max(_DELIMITERS, key=first.count)
    return next(csv.reader([first.rstrip("\r\n")], delimiter=mark), []), mark, alone


@contextmanager
def _text(file: InputFile) -> Iterator[IO[str]]:
    csv.field_size_limit(LONGEST_VALUE)
    compression = compression_of(file)
    with file.opened() as opened:
        stream = pa.PythonFile(opened, "r")
        if compression is not None:
            stream = pa.CompressedInputStream(stream, compression)
        yield io.TextIOWrapper(io.BufferedReader(_Raw(stream)), encoding="utf-8-sig", newline="")


class _Raw(io.RawIOBase):
    """A stream of Arrow as one of Python."""

    def __init__(self, stream: pa.NativeFile) -> None:
        self._stream = stream

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        data = self._stream.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)
