"""The only entry for Arrow data made elsewhere: tables of callers, frames, Parquet, Arrow and CSV files.

Arrow trusts the buffers it is given. Wrong offsets crash the process; text that is not UTF-8 can be stored but never read
again. So every batch is validated in full here before any function of Arrow touches it, and no other module of this package
reads foreign batches: `tabular` takes a `CheckedBatch`, which only this module makes.
"""

from __future__ import annotations

import re
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from omnigraph.errors import BadRequest
from omnigraph.load.encodings import LARGEST_DECODED, decoded, decoded_bytes, holds_bytes, is_encoded, unreadable
from omnigraph.load.parsed import (
    LARGEST_EXPANSION,
    LISTED_PROBLEMS,
    LONGEST_VALUE,
    expands_too_much,
    rejection,
    too_long,
)
from omnigraph.storage.files import InputFile

ROWS_AT_ONCE = 64 << 10
_CSV_BLOCK = 8 << 20
#: The possible delimiters of a CSV file; of equally frequent ones the first is taken.
DELIMITERS = ("\t", ";", "|", ",")
#: The line of column names is looked for in this many bytes.
_CSV_HEAD = 1 << 16
_QUOTED = re.compile(r'"(?:[^"]|"")*"')
#: From this number on, a float can not hold every integer.
_EXACT = 2.0**53


@dataclass(frozen=True, slots=True)
class Flaw:
    """A value that can not be read: its row in the batch, its column, and the problem."""

    row: int
    column: str
    message: str


@dataclass(frozen=True)
class FlawedRow:
    """A row with flaws: its number in the batch, the flaws, and its valid columns, one value each."""

    row: int
    flaws: tuple[Flaw, ...]
    remains: dict[str, pa.Array]


@dataclass(frozen=True)
class CheckedBatch:
    """A batch of foreign data after validation.

    `runs`: its valid rows, as pairs of the first row's number in the batch and the columns by name. The columns are plain:
    dictionaries, views, run-end encodings and extension types are decoded. Rows in no run are flawed, or lie in a column
    whose flaw can not be told from them.
    """

    runs: tuple[tuple[int, dict[str, pa.Array]], ...]
    flawed: tuple[FlawedRow, ...]
    rows: int
    nbytes: int


class Damaged(Exception):
    """The rest of a file can not be read; the message says why."""


def checked_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[CheckedBatch]:
    """Foreign batches after validation, in order; empty batches are left out."""
    for batch in batches:
        if batch.num_rows:
            yield _checked(batch)


def require_sound(table: pa.Table, name: str) -> None:
    """Raise if a table has flaws, before it is written to a file or sent to another process."""
    errors: list[tuple[str, int, str]] = []
    total = 0
    place = 1
    for batch in table.to_batches(ROWS_AT_ONCE):
        flaws = _flaws(batch)
        total += len(flaws)
        listed = flaws[: LISTED_PROBLEMS - len(errors)]
        errors += [(name, place + flaw.row, f"column '{flaw.column}': {flaw.message}") for flaw in listed]
        place += batch.num_rows
    if total:
        raise rejection(errors, total)


# --- validation -------------------------------------------------------------------------------------------------------


def _checked(batch: pa.RecordBatch) -> CheckedBatch:
    flaws = _flaws(batch)
    if not flaws:
        return CheckedBatch(((0, _plain(batch)),), (), batch.num_rows, batch.nbytes)
    runs: list[tuple[int, dict[str, pa.Array]]] = []
    flaws_of: dict[int, list[Flaw]] = {}
    for flaw in flaws:
        flaws_of.setdefault(flaw.row, []).append(flaw)
    flawed = sorted(flaws_of)
    for first, end in zip([-1, *flawed], [*flawed, batch.num_rows], strict=True):
        part = batch.slice(first + 1, end - first - 1)
        # Rows between flaws are used only if they are valid as a slice: nested columns share their elements.
        if part.num_rows and not _flaws(part):
            runs.append((first + 1, _plain(part)))
    rows = tuple(FlawedRow(row, tuple(flaws_of[row]), _remains(batch.slice(row, 1))) for row in flawed)
    return CheckedBatch(tuple(runs), rows, batch.num_rows, batch.get_total_buffer_size())


def _remains(row: pa.RecordBatch) -> dict[str, pa.Array]:
    sound = [
        (name, column) for name, column in zip(row.schema.names, row.columns, strict=True) if not _flaws_of(column)
    ]
    return {name: decoded(column) for name, column in sound}


def _flaws(batch: pa.RecordBatch) -> list[Flaw]:
    """All flaws of a batch, by column and row; at least one when the batch is invalid."""
    found = []
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        found += [Flaw(row, name, message) for row, message in _flaws_of(column)]
    return found


def _flaws_of(column: pa.Array) -> list[tuple[int, str]]:
    """The rows of a column that can not be read, with the problem of each."""
    # Arrow follows one extension only: the validation of another within it takes the process down.
    while isinstance(column, pa.ExtensionArray):
        column = column.storage
    problem = _problem_of(column)
    if problem is None:
        return list(_too_long_rows(column))
    # Parts of a column of such a type are no better.
    return [(0, problem)] if unreadable(column.type) else list(_flawed_rows(column, 0)) or [(0, problem)]


def _too_long_rows(column: pa.Array) -> Iterator[tuple[int, str]]:
    """The rows of a valid column that exceed the size limit, or the row from which on decoding takes too many bytes."""
    encoded = is_encoded(column.type)
    if not (encoded or (holds_bytes(column.type) and column.nbytes > LONGEST_VALUE)):
        return
    sizes = decoded_bytes(column)
    for row in np.flatnonzero(sizes > LONGEST_VALUE).tolist():
        yield row, too_long("the value")
    beyond = np.flatnonzero(np.cumsum(sizes) > LARGEST_DECODED)
    if encoded and len(beyond):
        yield int(beyond[0]), f"the column expands to more than {LARGEST_DECODED} bytes up to here; decode it first"


def _problem_of(column: pa.Array) -> str | None:
    """Why Arrow refuses a column after looking at all of it; None when it is valid."""
    problem = unreadable(column.type)
    if problem is not None:
        return problem
    try:
        column.validate(full=True)
    except pa.ArrowException as error:
        text = str(error).partition("\n")[0]
        if "UTF8" in text:
            return "the text is not valid UTF-8"
        if "Dictionary indices" in text:
            return "the index into the column's dictionary is out of range"
        return f"the Arrow data is damaged ({text})"
    return None


def _flawed_rows(column: pa.Array, start: int) -> Iterator[tuple[int, str]]:
    """The rows that make a column invalid, found by halving, with the problem of each; row numbers count from `start`."""
    problem = _problem_of(column)
    if problem is None:
        return
    if len(column) == 1:
        yield start, problem
    elif pa.types.is_dictionary(column.type) and _problem_of(column.dictionary) is not None:
        yield from _rows_of_flawed_entries(column, start)
    elif pa.types.is_nested(column.type):
        for row in range(len(column)):
            problem = _problem_of_nested(column.slice(row, 1))
            if problem is not None:
                yield start + row, problem
    else:
        middle = len(column) // 2
        yield from _flawed_rows(column.slice(0, middle), start)
        yield from _flawed_rows(column.slice(middle), start + middle)


def _rows_of_flawed_entries(column: pa.DictionaryArray, start: int) -> Iterator[tuple[int, str]]:
    """The rows whose entry is flawed. Only entries in use are looked at: a dictionary may be of any length when that lies."""
    indices = column.indices.to_pylist() if _problem_of(column.indices) is None else []
    problems: dict[int, str | None] = {}
    for row, index in enumerate(indices):
        if index is None:
            continue
        if not 0 <= index < len(column.dictionary):
            yield start + row, "the index into the column's dictionary is out of range"
            continue
        if index not in problems:
            problems[index] = next((problem for _, problem in _flawed_rows(column.dictionary.slice(index, 1), 0)), None)
        problem = problems[index]
        if problem is not None:
            yield start + row, problem


def _problem_of_nested(row: pa.Array) -> str | None:
    """The problem of one row of a nested column, else None; of a list only the elements of this row are checked."""
    kind = row.type
    if not (pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)):
        return _problem_of(row)
    try:
        # This checks the two offsets of the row without looking at the elements.
        row.validate()
    except pa.ArrowException:
        return _problem_of(row)
    return _problem_of(row.flatten())


# --- plain columns ----------------------------------------------------------------------------------------------------


def _plain(batch: pa.RecordBatch) -> dict[str, pa.Array]:
    """The columns of a valid batch by name, decoded."""
    return {name: decoded(column) for name, column in zip(batch.schema.names, batch.columns, strict=True)}


# --- tables in memory -------------------------------------------------------------------------------------------------


def table_of(data: Any) -> pa.Table | None:
    """Data of pyarrow, pandas or polars as an Arrow table; None for any other data. The table is not validated yet."""
    if isinstance(data, pa.Table):
        return data
    if isinstance(data, pa.RecordBatch):
        return pa.Table.from_batches([data])
    if isinstance(data, pa.RecordBatchReader):
        return data.read_all()
    library = type(data).__module__.partition(".")[0]
    if library not in ("pandas", "polars"):
        return None
    if type(data).__name__ == "Series":
        raise BadRequest("a series is one column; load a frame, such as `series.to_frame()`")
    try:
        return _of_frame(data, library)
    except UnicodeError:
        raise BadRequest(f"the {library} frame has a text that holds half of a surrogate pair") from None
    except (pa.ArrowException, ValueError, TypeError) as error:
        problem = ": ".join(map(str, reversed(error.args)))
        raise BadRequest(f"can not take the {library} frame as a table: {problem}") from None


def _of_frame(data: Any, library: str) -> pa.Table:
    if library == "pandas":
        return _integers_again(pa.Table.from_pandas(data, preserve_index=False))
    collected = data.collect() if hasattr(data, "collect") else data
    return collected.to_arrow()


def _integers_again(table: pa.Table) -> pa.Table:
    """Turn float columns with nulls back into integers where all values are whole; pandas stores such integers as floats."""
    for place, name in enumerate(table.column_names):
        column = table.column(place)
        if not pa.types.is_float64(column.type) or not column.null_count:
            continue
        column.validate(full=True)
        whole = pc.and_(pc.equal(pc.floor(column), column), pc.less(pc.abs(column), _EXACT))
        if pc.all(whole).as_py():
            table = table.set_column(place, name, column.cast(pa.int64()))
    return table


def table_batches(table: pa.Table) -> Iterator[CheckedBatch]:
    """The rows of a table in memory, validated."""
    return checked_batches(iter(table.to_batches(ROWS_AT_ONCE)))


def large_batches(table: pa.Table, rows: int) -> Iterator[pa.RecordBatch]:
    """A sound table in batches of so many rows, whatever its chunks are, to be written to files that are checked again."""
    for start in range(0, table.num_rows, rows):
        yield from table.slice(start, rows).combine_chunks().to_batches()


# --- Parquet ----------------------------------------------------------------------------------------------------------


@contextmanager
def _decoding() -> Iterator[None]:
    """Turn Arrow's errors about the contents of a file into `Damaged`; errors of the storage pass."""
    try:
        yield
    except OSError as error:
        # Arrow raises OSError also for invalid bytes. Errors of the operating system have a number.
        if error.errno is not None:
            raise
        raise Damaged(_first_line(error)) from None
    except (pa.ArrowException, ValueError, OverflowError, MemoryError, RuntimeError) as error:
        raise Damaged(_first_line(error)) from None


def _first_line(error: BaseException) -> str:
    if "straddling object" in str(error):
        return f"a row is longer than {_CSV_BLOCK} bytes; give such rows as Parquet or as JSON lines"
    return str(error).partition("\n")[0] or type(error).__name__


def parquet_groups(file: InputFile) -> tuple[list[str], list[tuple[int, int]]]:
    """The columns of a Parquet file, and the number of rows and bytes of each row group."""
    with file.opened() as opened:
        try:
            with _decoding():
                found = pq.ParquetFile(opened)
                meta = found.metadata
                groups = [meta.row_group(place) for place in range(meta.num_row_groups)]
                if any(expands_too_much(file.size, group.total_byte_size) for group in groups):
                    raise Damaged(f"a row group expands to more than {LARGEST_EXPANSION} times the size of the file")
                return found.schema_arrow.names, [(group.num_rows, group.total_byte_size) for group in groups]
        except Damaged as error:
            raise BadRequest(f"{file.name} is no Parquet file that can be read: {error}") from None


def parquet_batches(opened: Any, groups: Sequence[int], names: list[str]) -> Iterator[CheckedBatch]:
    """The rows of some row groups of an open Parquet file; raises `Damaged` if unreadable. Page checksums are verified."""
    with _decoding():
        file = pq.ParquetFile(opened, page_checksum_verification=True)
        promised = sum(file.metadata.row_group(group).num_rows for group in groups)
        batches = file.iter_batches(ROWS_AT_ONCE, row_groups=list(groups), columns=names)
    read = 0
    while True:
        with _decoding():
            batch = next(batches, None)
        if batch is None:
            break
        read += batch.num_rows
        yield from checked_batches(iter((batch,)))
    if read != promised:
        raise Damaged(f"it holds {read} rows of the {promised} it promises")


# --- Arrow files ------------------------------------------------------------------------------------------------------


def arrow_parts(file: InputFile) -> tuple[list[str], list[tuple[int, int]]]:
    """The columns of an Arrow file, and the number of rows and bytes of each record batch."""
    with file.opened() as opened:
        try:
            with _decoding():
                reader = pa.ipc.open_file(pa.PythonFile(opened, "r"))
                # One batch at a time: together they would take as much memory as the file.
                batches = map(reader.get_batch, range(reader.num_record_batches))
                # The size in use, `nbytes`, follows offsets, which nothing has validated yet.
                return reader.schema.names, [(batch.num_rows, int(batch.get_total_buffer_size())) for batch in batches]
        except Damaged as error:
            raise BadRequest(f"{file.name} is no Arrow file that can be read: {error}") from None


def arrow_batches(opened: Any, parts: Sequence[int], names: list[str]) -> Iterator[CheckedBatch]:
    """The rows of some record batches of an open Arrow file; raises `Damaged` if they are unreadable."""
    with _decoding():
        reader = pa.ipc.open_file(pa.PythonFile(opened, "r"))
    for part in parts:
        with _decoding():
            batch = reader.get_batch(part).select(names)
        for start in range(0, batch.num_rows, ROWS_AT_ONCE):
            yield from checked_batches(iter((batch.slice(start, ROWS_AT_ONCE),)))


# --- CSV --------------------------------------------------------------------------------------------------------------


def csv_names(file: InputFile, delimiter: str) -> list[str]:
    """The column names of a CSV file."""
    with file.opened() as opened:
        try:
            with _decoding(), closing(_read_csv(opened, None, delimiter)) as pieces:
                return list(next(pieces).schema.names)
        except Damaged as error:
            raise BadRequest(f"{file.name} is not readable as CSV: {error}") from None


def found_delimiter(file: InputFile) -> str:
    """The delimiter of a CSV file: whichever of tab, semicolon, bar and comma is most frequent in its line of names."""
    head = file.read(0, min(file.size, _CSV_HEAD)).decode("utf-8-sig", errors="replace")
    names = _QUOTED.sub("", head.lstrip("\r\n")).partition("\n")[0]
    counts = {mark: names.count(mark) for mark in DELIMITERS}
    best = max(counts, key=counts.__getitem__)
    return best if counts[best] else ","


def csv_batches(
    opened: Any, names: list[str], delimiter: str, columns: Sequence[str] | None = None
) -> Generator[CheckedBatch, None, None]:
    """The rows of an open CSV file, with the columns `names` as texts; raises `Damaged` if the file is unreadable.

    `columns`: the names of all its columns, for a part of the file without the line of names.
    """
    with closing(_read_csv(opened, names, delimiter, columns)) as pieces:
        while True:
            with _decoding():
                batch = next(pieces, None)
            if batch is None:
                return
            if batch.num_rows:
                texts = [column.view(pa.string()) for column in batch.columns]
                yield from checked_batches(iter((pa.RecordBatch.from_arrays(texts, names=batch.schema.names),)))


def _read_csv(
    file: Any, names: list[str] | None, delimiter: str, columns: Sequence[str] | None = None
) -> Generator[pa.RecordBatch, None, None]:
    """The rows of a CSV file as columns of bytes: UTF-8 is checked later, as for all foreign data. The first batch is empty."""
    types = dict.fromkeys(names, pa.binary()) if names is not None else None
    source = _Source(file)
    lent = source.lent
    try:
        reader = pacsv.open_csv(
            pa.PythonFile(source, "r"),
            pacsv.ReadOptions(
                block_size=_CSV_BLOCK, use_threads=False, column_names=None if columns is None else list(columns)
            ),
            pacsv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
            pacsv.ConvertOptions(
                column_types=types,
                include_columns=names,
                null_values=[""],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
                check_utf8=False,
            ),
        )
        try:
            yield pa.RecordBatch.from_pylist([], reader.schema)
            yield from reader
        finally:
            source.ended = True
            del reader
    finally:
        source.ended = True
        del source
        _until_returned(lent)


class _Source:
    """A file as Arrow's reader of CSV takes it, which reads ahead in a thread of its own.

    That thread must not hold anything of Python when the interpreter ends, or the process is aborted. So a reader that is given
    up comes to an end at once (`ended`), and `lent` knows this object and every block as long as some thread holds them.
    """

    closed = False

    def __init__(self, file: Any) -> None:
        self._file = file
        self.ended = False
        self.blocks = 0
        self.lent: WeakValueDictionary[int, Any] = WeakValueDictionary({0: self})

    def read(self, size: int = -1) -> memoryview:
        block = memoryview(b"" if self.ended else self._file.read(size))
        self.blocks += 1
        self.lent[self.blocks] = block
        return block

    def close(self) -> None:
        """Does nothing: the caller that opened the file closes it."""


#: Seconds to wait at most until a reader's thread has returned what it was lent; it takes less than a millisecond.
_RETURNED_WITHIN = 5.0


def _until_returned(lent: WeakValueDictionary[int, Any]) -> None:
    """Wait until no thread holds anything of a file that was read."""
    end = time.monotonic() + _RETURNED_WITHIN
    while len(lent) and time.monotonic() < end:
        time.sleep(0.0002)
