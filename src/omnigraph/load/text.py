"""JSON lines in pieces: byte ranges of files, whole compressed files, and text in memory.

A range owns the lines that begin in it. Files are cut at arbitrary bytes; the reader of a range finds its first line and reads
on to the end of its last line. So files need not be read before they are split into ranges.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from omnigraph.errors import BadRequest, ResourceLimit
from omnigraph.load.exact import Rules
from omnigraph.load.fast import Window, read_window
from omnigraph.load.parsed import (
    LARGEST_EXPANSION,
    LONGEST_LINE,
    Orders,
    Problem,
    Reading,
    expands_too_much,
    too_long,
)
from omnigraph.storage.files import InputFile

WINDOW_BYTES = 32 << 20
#: How many bytes are read at first to find the end of a line.
_LOOK_AHEAD = 1 << 16
_BOM = b"\xef\xbb\xbf"
COMPRESSIONS = {"gz": "gzip", "gzip": "gzip", "zst": "zstd", "zstd": "zstd"}
#: How many places a compressed file reserves: more than it can have lines.
COMPRESSED_SPAN = 1 << 40


@dataclass(frozen=True)
class Piece:
    """The rows of a bounded part of a chunk, with its number of lines and bytes.

    `begins`: the line on which each value begins, where values are not one per line. `text`: the bytes it was read from, where
    the input is text. `documents`: the Python objects that it was read from, and `first`, the place of the first of them.
    """

    reading: Reading
    lines: int
    size: int
    begins: Orders | None = None
    text: bytes | None = None
    documents: Sequence[object] = ()
    first: int = 0


@dataclass(frozen=True)
class TextRange:
    """A byte range of a file; `base` is the place of its first byte in the whole input."""

    file: InputFile
    start: int
    end: int
    base: int

    @property
    def name(self) -> str:
        return self.file.name

    @property
    def size(self) -> int:
        return self.end - self.start

    def pieces(self, rules: Rules) -> Iterator[Piece]:
        """The lines that begin in this range."""
        data, whole = self._own_bytes()
        window = Window.of(data, self.base)
        yield Piece(read_window(window, rules), len(window), len(data), text=data)
        if not whole:
            yield _refused(self.base + len(window), too_long("this line"))

    def _own_bytes(self) -> tuple[bytes, bool]:
        """The text of the lines that begin here, and whether it is complete: a line that is too long cuts it off."""
        # Find both bounds before reading the text: each copy of the text costs as much as splitting it.
        first = 0 if self.start == 0 else self._line_after(self.start, self.end)
        if first is None or first >= self.end:
            return b"", True
        last = self._line_after(self.end, self.file.size)
        data = self.file.read(first, self.end if last is None else last)
        data = data.removeprefix(_BOM) if first == 0 else data
        return (data, True) if last is not None else (data[: data.rfind(b"\n") + 1], False)

    def _line_after(self, place: int, limit: int) -> int | None:
        """Where the first line at or after a place begins; `limit` if none begins before it; None if a line is too long."""
        # Start one byte earlier: if that byte ends a line, a line begins at `place`.
        at, ahead = place - 1, _LOOK_AHEAD
        while at < limit:
            found = self.file.read(at, min(at + ahead, limit)).find(b"\n")
            if found >= 0:
                return at + found + 1
            at, ahead = at + ahead, min(ahead * 2, WINDOW_BYTES)
            if at - place > LONGEST_LINE:
                return None
        return limit


def _refused(order: int, message: str) -> Piece:
    """A piece with one line that can not be read."""
    return Piece(Reading(problems=(Problem(order, message),)), 1, 0)


@dataclass(frozen=True)
class CompressedText:
    """A compressed file, read as a stream, one window at a time."""

    file: InputFile
    compression: str
    base: int

    @property
    def name(self) -> str:
        return self.file.name

    @property
    def size(self) -> int:
        return self.file.size

    def pieces(self, rules: Rules) -> Iterator[Piece]:
        base = self.base
        try:
            for data in self.windows():
                window = Window.of(data, base)
                base += len(window)
                yield Piece(read_window(window, rules), len(window), len(data), text=data)
        except ResourceLimit as error:
            yield _refused(base, error.message)

    def windows(self) -> Iterator[bytes]:
        """The decompressed text in windows of whole lines; raises ResourceLimit if a line or the whole grows too large."""
        if not self.file.size:
            # Even an empty text has a header when it is compressed.
            raise BadRequest(f"{self.name} can not be decompressed: it is empty; it is cut off or damaged")
        with self.file.opened() as file:
            try:
                stream = pa.CompressedInputStream(pa.PythonFile(file, "r"), self.compression)
                rest, first, expanded = b"", True, 0
                while data := stream.read(WINDOW_BYTES):
                    expanded += len(data)
                    self._limit(len(rest), expanded)
                    data = rest + (data.removeprefix(_BOM) if first else data)
                    first = False
                    end = data.rfind(b"\n") + 1
                    rest = data[end:]
                    if end:
                        yield data[:end]
                if rest:
                    yield rest
            except (OSError, pa.ArrowInvalid) as error:
                raise BadRequest(
                    f"{self.name} can not be decompressed: {str(error).partition(chr(10))[0]}; it is cut off or damaged"
                ) from None

    def _limit(self, line: int, expanded: int) -> None:
        if line > LONGEST_LINE:
            raise ResourceLimit(too_long("this line"), resource="line bytes", limit=LONGEST_LINE, actual=line)
        if expands_too_much(self.file.size, expanded):
            raise ResourceLimit(
                f"{self.name} expands to more than {LARGEST_EXPANSION} times its size; decompress it first if that is meant",
                resource="expansion of a compressed file",
                limit=LARGEST_EXPANSION,
                actual=expanded // self.file.size,
            )


@dataclass(frozen=True)
class TextInMemory:
    """Text that the caller gave as bytes."""

    name: str
    data: bytes
    base: int = 0

    @property
    def size(self) -> int:
        return len(self.data)

    def pieces(self, rules: Rules) -> Iterator[Piece]:
        window = Window.of(self.data.removeprefix(_BOM), self.base)
        yield Piece(read_window(window, rules), len(window), len(self.data), text=self.data)


def compression_of(file: InputFile) -> str | None:
    """The compression of a file by the ending of its name; None when it is not compressed."""
    return COMPRESSIONS.get(file.suffixes[-1]) if file.suffixes else None
