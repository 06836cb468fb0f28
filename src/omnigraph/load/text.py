"""JSON lines in pieces: byte ranges of files, whole compressed files, and text that is in memory.

A range owns the lines that begin in it. It is cut blindly; whoever reads it finds the first line that is its own and reads
on to the end of the last one. So nobody has to look at a file before its ranges are handed out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from omnigraph.errors import BadRequest
from omnigraph.load.exact import Rules
from omnigraph.load.fast import Window, read_window
from omnigraph.load.parsed import Orders, Reading
from omnigraph.storage.files import InputFile

WINDOW_BYTES = 32 << 20
#: How much is read at first to find where a line ends.
_LOOK_AHEAD = 1 << 16
_BOM = b"\xef\xbb\xbf"
COMPRESSIONS = {"gz": "gzip", "gzip": "gzip", "zst": "zstd", "zstd": "zstd"}
#: Places that a compressed file may use up: more than it can have bytes.
COMPRESSED_SPAN = 1 << 40


@dataclass(frozen=True)
class Piece:
    """What a bounded stretch of a chunk holds, with the number of its lines and bytes.

    `begins`: on which line each value begins, where that is not one line each.
    """

    reading: Reading
    lines: int
    size: int
    begins: Orders | None = None


@dataclass(frozen=True)
class TextRange:
    """Some bytes of a file; `base` is the place of its first byte in the whole input."""

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
        data = self._own_bytes()
        window = Window.of(data, self.base)
        yield Piece(read_window(window, rules), len(window), len(data))

    def _own_bytes(self) -> bytes:
        # Both bounds are known before the text is read, because every copy of it costs as much as splitting it.
        first = 0 if self.start == 0 else self._line_after(self.start, self.end)
        if first >= self.end:
            return b""
        data = self.file.read(first, self._line_after(self.end, self.file.size))
        return data.removeprefix(_BOM) if first == 0 else data

    def _line_after(self, place: int, limit: int) -> int:
        """Where the first line at or after a place begins; the limit when none does before it."""
        # From the byte before: if that ends a line, one begins right here.
        at, ahead = place - 1, _LOOK_AHEAD
        while at < limit:
            found = self.file.read(at, min(at + ahead, limit)).find(b"\n")
            if found >= 0:
                return at + found + 1
            at, ahead = at + ahead, ahead * 2
        return limit


@dataclass(frozen=True)
class CompressedText:
    """A compressed file, read as a stream, window by window."""

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
        for data in self.windows():
            window = Window.of(data, base)
            base += len(window)
            yield Piece(read_window(window, rules), len(window), len(data))

    def windows(self) -> Iterator[bytes]:
        """The text, some whole lines at a time."""
        if not self.file.size:
            # Even of no text at all there would be a header.
            raise BadRequest(f"{self.name} can not be decompressed: it is empty; it is cut off or damaged")
        with self.file.opened() as file:
            try:
                stream = pa.CompressedInputStream(pa.PythonFile(file, "r"), self.compression)
                rest, first = b"", True
                while data := stream.read(WINDOW_BYTES):
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


@dataclass(frozen=True)
class TextInMemory:
    """Text that the caller has."""

    name: str
    data: bytes
    base: int = 0

    @property
    def size(self) -> int:
        return len(self.data)

    def pieces(self, rules: Rules) -> Iterator[Piece]:
        window = Window.of(self.data.removeprefix(_BOM), self.base)
        yield Piece(read_window(window, rules), len(window), len(self.data))


def compression_of(file: InputFile) -> str | None:
    """How a file is compressed, by the end of its name."""
    return COMPRESSIONS.get(file.suffixes[-1]) if file.suffixes else None
