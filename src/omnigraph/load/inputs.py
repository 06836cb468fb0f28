"""Turns the input a caller gives into chunks: files, folders, globs, S3, standard input, Python objects, tables."""

from __future__ import annotations

import os
import pickle
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any, cast

import orjson
import pyarrow as pa

from omnigraph.errors import BadRequest
from omnigraph.ids import new_ulid
from omnigraph.language.schema.catalog import Catalog, EdgeType
from omnigraph.load.chunks import Chunk, Documents, LenientFile, LenientText, SpooledDocuments, ranges
from omnigraph.load.foreign import (
    arrow_parts,
    csv_names,
    found_delimiter,
    large_batches,
    parquet_groups,
    require_sound,
    table_of,
)
from omnigraph.load.frames import FrameFiles, frame_files
from omnigraph.load.parsed import Entity
from omnigraph.load.scratch import Scratch
from omnigraph.load.tabular import (
    ArrowRows,
    Columns,
    CsvRows,
    ParquetRows,
    TableInMemory,
    entity_of,
    shape_of,
)
from omnigraph.load.text import COMPRESSED_SPAN, CompressedText, TextInMemory, compression_of
from omnigraph.spark.runner import Runner
from omnigraph.storage.files import InputFile, find_files
from omnigraph.storage.scratch import in_scratch

JSONL, PARQUET, CSV, ARROW = "jsonl", "parquet", "csv", "arrow"
FORMATS = (JSONL, PARQUET, CSV, ARROW)
DOCUMENTS_AT_ONCE = 10_000
RANGE_BYTES = 32 << 20
SMALLEST_RANGE = 1 << 20
#: The endings of file names by format.
ENDINGS = {
    JSONL: tuple(f".{name}{end}" for name in ("jsonl", "ndjson", "json") for end in ("", ".gz", ".zst")),
    PARQUET: (".parquet",),
    CSV: (".csv", ".tsv", ".tab"),
    ARROW: (".arrow", ".feather", ".ipc"),
}
#: The largest JSON array in bytes, as it is read as a whole; a larger array must be converted to lines.
LONGEST_ARRAY = 256 << 20
#: The most characters of an input's name in a commit message.
LONGEST_TITLE = 200
#: The most bytes of one part of a path that file systems allow.
LONGEST_NAME = 255
#: How the rows of large tables wait for their tasks.
_SPOOLED = pa.ipc.IpcWriteOptions(compression="lz4")
#: How rows begin that were given as a text.
_ROWS = re.compile(r'\s*\{\s*"')
_READ_AT_ONCE = 1 << 22
_BYTES_OF_A_DOCUMENT = 256


@dataclass(frozen=True)
class Given:
    """The input as the caller gave it."""

    data: Any
    format: str | None = None
    type: str | None = None
    edge: str | None = None
    columns: Columns = field(default_factory=Columns)
    lenient: bool = False
    storage_options: Mapping[str, str] | None = None
    #: The delimiter of CSV files; None: it is detected.
    delimiter: str | None = None
    #: Whether this package is sent to the workers that compute a Spark data frame.
    ship_package: bool = False

    @property
    def names_columns(self) -> bool:
        """Whether any option is given that only tables use."""
        said = self.type, self.edge, self.columns.mapping, self.columns.ignore_extra, self.delimiter
        return any(said)


class Unnamed(os.PathLike[str]):
    """A file whose name is not known to the caller, such as the spooled body of a request.

    `title`: the caller's name for the rows; None when they have no name.
    """

    def __init__(self, path: Path, title: str | None = None) -> None:
        self._path = path
        self.called = _printable(title)

    def __fspath__(self) -> str:
        return str(self._path)


class Body(bytes):
    """Rows in memory that came with a request; `called` is the caller's name for them, as in `Unnamed`.

    `by_record`: messages of a lenient load count values instead of lines.
    """

    called: str | None = None
    by_record: bool = False

    @classmethod
    def of(cls, data: bytes, title: str | None = None, *, by_record: bool = False) -> Body:
        """A body of these bytes, with the caller's name for them."""
        body = cls(data)
        body.called = _printable(title)
        body.by_record = by_record
        return body


def title_of(data: Any) -> str | None:
    """The name of an input in the message of its commit; None for an input without a name."""
    if isinstance(data, Unnamed | Body):
        return data.called
    named = [data] if isinstance(data, str | os.PathLike) else data
    if not isinstance(named, list | tuple) or not named or not all(isinstance(one, str | Path) for one in named):
        return None
    if len(named) > 1:
        return f"{len(named)} files"
    text = os.fspath(named[0])
    if text == "-":
        return "standard input"
    return _printable(text.rstrip("/").rpartition("/")[2])


def _printable(title: str | None) -> str | None:
    """A title cut to the length that fits into a message; None if it is empty or not printable."""
    cut = (title or "")[:LONGEST_TITLE]
    return cut if cut.isprintable() and cut else None


@dataclass(frozen=True)
class Frames:
    """Tables of several types, by the name of each type."""

    by_type: Mapping[str, Any]


@dataclass(frozen=True)
class Inputs:
    """An input that was looked at but not read: its size in bytes (estimated where it is not known), and its sources."""

    size: int
    sources: tuple[InputFile | Chunk, ...]
    #: How many rows there are; None when nobody has counted them.
    rows: int | None = None
    #: Whether the order of the rows has a meaning.
    ordered: bool = True
    #: The types of the tables, including tables without a row.
    types: frozenset[str] = frozenset()

    def chunks(self, parallelism: int, runner: Runner) -> list[Chunk]:
        """The parts to read independently: enough to keep all tasks busy, none too large for memory.

        `runner`: scans CSV files to find where their records begin.
        """
        even = -(-self.size // max(parallelism * 2, 1))
        step = min(max(even, SMALLEST_RANGE), RANGE_BYTES)
        made: list[Chunk] = []
        base = 0
        for source in self.sources:
            if isinstance(source, CsvRows | LenientFile):
                made += source.ranges(step, runner) if isinstance(source, CsvRows) else source.ranges(step)
                continue
            if not isinstance(source, InputFile):
                made.append(source)
                continue
            compression = compression_of(source)
            if compression is None:
                made += ranges(source, base, step)
                base += max(source.size, 1)
            else:
                made.append(CompressedText(source, compression, base))
                base += COMPRESSED_SPAN
        return made

    def shown_name(self) -> str:
        """A short name of the input: its first file, and how many more there are."""
        names = list(dict.fromkeys(source.name.rpartition("/")[2] for source in self.sources))
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        return f"{names[0]}{more}" if names else "nothing"

    def files(self) -> dict[str, InputFile]:
        """The local files that tasks read, by path."""
        found = [_file_of(source) for source in self.sources]
        return {file.path: file for file in found if file is not None and file.root.is_local}

    def moved(self, files: Mapping[str, InputFile]) -> Inputs:
        """The same input with some of its files replaced. `files`: the new file by the old path."""
        return replace(self, sources=tuple(_moved(source, files) for source in self.sources))


def _file_of(source: InputFile | Chunk) -> InputFile | None:
    """The file that a source is read from; None when the chunk itself holds the data."""
    return source if isinstance(source, InputFile) else getattr(source, "file", None)


def _moved(source: InputFile | Chunk, files: Mapping[str, InputFile]) -> InputFile | Chunk:
    file = _file_of(source)
    if file is None or file.path not in files:
        return source
    moved = files[file.path]
    return moved if isinstance(source, InputFile) else replace(cast("Any", source), file=moved)


def look_at(given: Given, scratch: Scratch, catalog: Catalog) -> Inputs:
    """Find out what an input is, reading no more of it than needed."""
    if given.format is not None and given.format not in FORMATS:
        raise BadRequest(f"unknown format '{given.format}'; the formats are {', '.join(FORMATS)}")
    data = given.data
    if type(data).__module__.partition(".")[0] == "pyspark":
        return _of_spark(data, given, catalog, scratch)
    if isinstance(data, FrameFiles):
        return _of_frame_files(data, given, catalog)
    if isinstance(data, Frames):
        return _of_frames(data, given, catalog, scratch)
    table = table_of(data)
    if table is not None:
        return _of_table(table, given, catalog, scratch)
    if isinstance(data, bytes | bytearray):
        return _of_text("<data>", bytes(data), given, by_record=isinstance(data, Body) and data.by_record)
    if hasattr(data, "read"):
        return _of_text(str(getattr(data, "name", "<stream>")), _all_of(data), given)
    if isinstance(data, str | os.PathLike):
        return _of_paths([os.fspath(data)], given, catalog, scratch)
    if isinstance(data, Mapping):
        raise BadRequest("give the entities as a list of dicts, not a single dict")
    if not isinstance(data, Iterable):
        raise BadRequest(f"can not load a {type(data).__name__}; give a path, dicts, or a table with type= or edge=")
    return _of_items(data, given, catalog, scratch)


def _all_of(stream: Any) -> bytes:
    read = stream.read()
    return read.encode() if isinstance(read, str) else bytes(read)


def _of_text(name: str, data: bytes, given: Given, *, by_record: bool = False) -> Inputs:
    chunk: Chunk = LenientText(name, data, by_record=by_record) if given.lenient else TextInMemory(name, data)
    return Inputs(len(data), (chunk,))


def _of_paths(paths: Sequence[str], given: Given, catalog: Catalog, scratch: Scratch) -> Inputs:
    files: list[InputFile] = []
    for path in paths:
        _refuse_data(path)
    kind = given.format or _format_of(paths)
    for path in paths:
        if path == "-":
            files.append(_spooled_input(scratch))
        else:
            files += find_files(path, ENDINGS[kind], given.storage_options)
    if given.delimiter is not None and kind != CSV:
        raise BadRequest("a delimiter is for CSV files")
    if given.delimiter is not None and (
        len(given.delimiter) != 1 or not given.delimiter.isascii() or given.delimiter in '"\r\n'
    ):
        raise BadRequest(f"a delimiter is one character, such as ';' or '\\t', not {given.delimiter!r}")
    if kind != JSONL and given.type is None and given.edge is None and not given.columns.mapping:
        return _of_type_folders(files, kind, catalog, given)
    if kind != JSONL:
        entity = entity_of(catalog, given.type, given.edge)
        return tables_of_files(files, kind, entity, given.columns, given.delimiter)
    if given.names_columns:
        raise BadRequest(
            "`type`, `edge`, a mapping and ignore_extra are for tables: Parquet, CSV, Arrow, or a table in memory"
        )
    if given.lenient:
        return _lenient(files)
    files = [_lines_of_array(file, scratch) if _is_array(file) else file for file in files]
    # The decompressed size is not known; assume ten times the size of the file, so that it is not taken for small.
    size = sum(file.size if compression_of(file) is None else file.size * 10 for file in files)
    return Inputs(size, tuple(files))


def _refuse_data(path: str) -> None:
    """Raise if a text is rows, or too long for a file name: the error of the file system would not help."""
    if _ROWS.match(path) or "\n" in path:
        raise BadRequest(
            "a text is the path of a file; give rows as a list of dicts, or JSON lines as bytes: text.encode()"
        )
    if "\0" in path or any(len(part.encode(errors="surrogateescape")) > LONGEST_NAME for part in path.split("/")):
        raise BadRequest(f"{path[:40]!r}… is not the path of a file")


def _format_of(paths: Sequence[str]) -> str:
    """The format of files by the ending of the first name, else by the files in its folders of types, else JSON lines."""
    if not paths:
        return JSONL
    name = paths[0].lower()
    for kind in (PARQUET, CSV, ARROW):
        if name.endswith(ENDINGS[kind]):
            return kind
    for kind in (PARQUET, CSV, ARROW):
        if any(any(Path(paths[0]).glob(f"*/*/*{ending}")) for ending in ENDINGS[kind]):
            return kind
    return JSONL


def _is_array(file: InputFile) -> bool:
    """Whether a JSON file is one array instead of lines."""
    if compression_of(file) is not None:
        return False
    return file.read(0, min(file.size, 1024)).removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"[")


def _lines_of_array(file: InputFile, scratch: Scratch) -> InputFile:
    """The items of a JSON array as a file of lines; line numbers in messages then count items."""
    name = Path(file.name).name
    if file.size > LONGEST_ARRAY:
        raise BadRequest(
            f"{file.name} is one JSON array of more than {LONGEST_ARRAY >> 20} MiB, which is read as a whole; make lines of "
            f"it: jq -c '.[]' {name} > {name}l"
        )
    try:
        items = orjson.loads(file.read(0, file.size).removeprefix(b"\xef\xbb\xbf"))
    except orjson.JSONDecodeError as error:
        raise BadRequest(
            f"{file.name}:{error.lineno}: begins like a JSON array and is none: {error.msg} at column {error.colno}; give an "
            "array of objects, or one object on each line"
        ) from None
    assert isinstance(items, list), "what begins with a bracket is an array"
    path = scratch.folder() / f"array-{new_ulid()}.jsonl"
    with in_scratch(path.parent), path.open("wb") as lines:
        for item in items:
            lines.write(orjson.dumps(item) + b"\n")
    (made,) = find_files(str(path), ())
    return replace(made, name=file.name)


def _of_type_folders(files: Sequence[InputFile], format: str, catalog: Catalog, given: Given) -> Inputs:
    """Tables as an export writes them: the folder of a file, `nodes/T` or `edges/E`, names the type of its rows."""
    chunks: list[Chunk] = []
    types: set[str] = set()
    base = 0
    for file in files:
        kind, name = ["", "", *file.path.split("/")[:-1]][-2:]
        if kind not in ("nodes", "edges"):
            # Raises the usual error about a missing type.
            entity_of(catalog, None, None)
        entity = entity_of(catalog, name, None) if kind == "nodes" else entity_of(catalog, None, name)
        made = tables_of_files([file], format, entity, given.columns, given.delimiter)
        types |= made.types
        for chunk in made.sources:
            assert isinstance(chunk, ParquetRows | ArrowRows | CsvRows)
            chunks.append(replace(chunk, base=base))
            base += chunk.file.size + 2 if isinstance(chunk, CsvRows) else chunk.count
    return Inputs(sum(chunk.size for chunk in chunks), tuple(chunks), types=frozenset(types))


def _of_spark(frame: Any, given: Given, catalog: Catalog, scratch: Scratch) -> Inputs:
    """A Spark data frame: Spark's tasks write its rows to files that the tasks of the load can read."""
    entity = entity_of(catalog, given.type, given.edge)
    # Report a wrong column before the frame is computed.
    shape_of(entity, list(frame.columns), given.columns, "the table")
    return _of_frame_files(frame_files(frame, scratch, ship_package=given.ship_package), given, catalog)


def _of_frame_files(written: FrameFiles, given: Given, catalog: Catalog) -> Inputs:
    """A data frame whose rows Spark's tasks have written to files already."""
    entity = entity_of(catalog, given.type, given.edge)
    inputs = tables_of_files(written.files, PARQUET, entity, given.columns)
    return replace(inputs, rows=written.rows, ordered=False)


def _of_frames(frames: Frames, given: Given, catalog: Catalog, scratch: Scratch) -> Inputs:
    """Frames of several types, one after the other. All names and columns are checked before the first frame is computed."""
    named = {word: _type_of(word, catalog) for word in frames.by_type}
    for word, frame in frames.by_type.items():
        columns = getattr(frame, "columns", None)
        if type(frame).__module__.partition(".")[0] == "pyspark" and columns is not None:
            shape_of(named[word], list(columns), given.columns, word)
    chunks: list[Chunk] = []
    base, size, rows, ordered = 0, 0, 0, True
    for word, frame in frames.by_type.items():
        entity = named[word]
        is_edge = isinstance(entity, EdgeType)
        one = replace(given, data=frame, type=None if is_edge else entity.name, edge=entity.name if is_edge else None)
        found = look_at(one, scratch, catalog)
        for chunk in found.sources:
            if not isinstance(chunk, ArrowRows | ParquetRows | TableInMemory):
                raise BadRequest(
                    f"{word} is no table but a {type(frame).__name__}; give frames or Arrow tables by type"
                )
            count = chunk.table.num_rows if isinstance(chunk, TableInMemory) else chunk.count
            if isinstance(chunk, TableInMemory):
                chunks.append(replace(chunk, name=word, base=base))
            else:
                chunks.append(replace(chunk, file=replace(chunk.file, name=word), base=base))
            base += max(count, 1)
            rows += count
        size += found.size
        ordered = ordered and found.ordered
    types = frozenset(entity.type_key for entity in named.values())
    return Inputs(size, tuple(chunks), rows, ordered, types)


def _type_of(word: str, catalog: Catalog) -> Entity:
    """The type that a caller names: `Person`, `node:Person` or `edge:Knows`."""
    kind, colon, name = word.partition(":")
    if colon and kind in ("node", "edge"):
        return entity_of(catalog, name if kind == "node" else None, name if kind == "edge" else None)
    is_edge = word not in catalog.nodes and catalog.edge(word) is not None
    return entity_of(catalog, None if is_edge else word, word if is_edge else None)


def _of_table(table: pa.Table, given: Given, catalog: Catalog, scratch: Scratch) -> Inputs:
    entity = entity_of(catalog, given.type, given.edge)
    require_sound(table, "<table>")
    shape = shape_of(entity, table.column_names, given.columns, "the table")
    table = table.select([name for name, _ in shape.columns])
    rows = max(1, RANGE_BYTES * table.num_rows // max(table.nbytes, 1))
    if table.num_rows <= rows:
        return Inputs(int(table.nbytes), (TableInMemory("<table>", table, shape),), types=frozenset([entity.type_key]))
    # What is sent to a task is part of its description; the rows of a large table wait in files instead.
    spooled = tables_of_files(_spooled_table(table, rows, scratch), ARROW, entity, given.columns)
    # Its rows are counted through all files.
    chunks = [replace(cast("ArrowRows", chunk), begins=place == 0) for place, chunk in enumerate(spooled.sources)]
    return replace(spooled, sources=tuple(chunks))


def _spooled_table(table: pa.Table, rows: int, scratch: Scratch) -> list[InputFile]:
    """A table in files of so many rows, in Arrow's own format, which holds every type that a table can have.

    Each file is one batch: the batches of one file would have to share their dictionaries.
    """
    folder, files = scratch.folder(), []
    with in_scratch(folder):
        for batch in large_batches(table, rows):
            path = folder / f"table-{new_ulid()}.arrow"
            with pa.ipc.new_file(str(path), batch.schema, options=_SPOOLED) as writer:
                writer.write_batch(batch)
            files += [replace(file, name="<table>") for file in find_files(str(path), ())]
    return files


def tables_of_files(
    files: Sequence[InputFile], kind: str, entity: Entity, columns: Columns, delimiter: str | None = None
) -> Inputs:
    """Files with rows of one type; Parquet files are read by row groups, Arrow files by record batches."""
    chunks: list[Chunk] = []
    base = 0
    for file in files:
        if kind == CSV:
            mark = delimiter or found_delimiter(file)
            names = csv_names(file, mark)
            shape = shape_of(entity, names, columns, file.name)
            chunks.append(CsvRows(file, shape, base, mark, tuple(names)))
            base += file.size + 2
            continue
        names, parts = parquet_groups(file) if kind == PARQUET else arrow_parts(file)
        shape = shape_of(entity, names, columns, file.name)
        rows: type[ParquetRows] | type[ArrowRows] = ParquetRows if kind == PARQUET else ArrowRows
        for place, (count, size) in enumerate(parts):
            chunks.append(rows(file, (place,), shape, base, size, count, begins=place == 0))
            base += count
    return Inputs(sum(chunk.size for chunk in chunks), tuple(chunks), types=frozenset([entity.type_key]))


def _lenient(files: Sequence[InputFile]) -> Inputs:
    chunks: list[Chunk] = []
    base = 0
    for file in files:
        compressed = compression_of(file) is not None
        chunks.append(LenientFile(file, base))
        base += COMPRESSED_SPAN if compressed else file.size + 1
    # `LenientFile.size` estimates the decompressed size of a compressed file.
    return Inputs(sum(chunk.size for chunk in chunks), tuple(chunks))


def _spooled_input(scratch: Scratch) -> InputFile:
    """Copy standard input to a file: it can be read only once, and tasks may read their part again."""
    if sys.stdin is None:
        raise BadRequest("there is no standard input to load; pass a file instead of `-`")
    path = scratch.folder() / "stdin.jsonl"
    with in_scratch(path.parent), path.open("wb") as file:
        while data := sys.stdin.buffer.read(_READ_AT_ONCE):
            file.write(data)
    (found,) = find_files(str(path), ())
    return InputFile("<stdin>", found.root, found.path, found.size)


def _of_items(items: Iterable[Any], given: Given, catalog: Catalog, scratch: Scratch) -> Inputs:
    listed = iter(items)
    first = list(islice(listed, DOCUMENTS_AT_ONCE))
    if first and all(isinstance(item, str | os.PathLike) for item in first):
        return _of_paths([os.fspath(item) for item in [*first, *listed]], given, catalog, scratch)
    chunks: list[Chunk] = [Documents("<rows>", first)]
    base = len(first)
    while some := list(islice(listed, DOCUMENTS_AT_ONCE)):
        path = scratch.folder() / f"rows-{base}"
        _spool(path, some)
        (file,) = find_files(str(path), ())
        chunks.append(SpooledDocuments("<rows>", file, len(some), base))
        base += len(some)
    # Dicts have no size in bytes: one batch of them counts as small, more are estimated like lines.
    return Inputs(0 if len(chunks) == 1 else base * _BYTES_OF_A_DOCUMENT, tuple(chunks))


def _spool(path: Path, rows: Sequence[object]) -> None:
    with in_scratch(path.parent), path.open("wb") as file:
        pickle.dump(rows, file, pickle.HIGHEST_PROTOCOL)
