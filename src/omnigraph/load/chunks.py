"""Chunks: the parts of an input that are read independently, by one task each. They are small descriptions, not data."""

from __future__ import annotations

import pickle
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Protocol

import numpy as np

from omnigraph.load.exact import ExactReader, Rules
from omnigraph.load.lenient import read_stream
from omnigraph.load.parsed import Orders
from omnigraph.load.text import CompressedText, Piece, TextRange, compression_of
from omnigraph.storage.files import InputFile


class Chunk(Protocol):
    """A part of the input. The places of its rows count from `base`, in their order."""

    @property
    def name(self) -> str:
        """The name of the file, as the caller gave it."""

    @property
    def base(self) -> int: ...

    @property
    def size(self) -> int:
        """The size in bytes, to report the progress of a load."""

    def pieces(self, rules: Rules) -> Iterator[Piece]:
        """The contents of the chunk, one piece of bounded size at a time."""


@dataclass(frozen=True)
class LenientText:
    """A whole text as a stream of JSON values. `by_record`: messages count values instead of lines."""

    name: str
    data: bytes
    base: int = 0
    by_record: bool = False

    @property
    def size(self) -> int:
        return len(self.data)

    def pieces(self, rules: Rules) -> Iterator[Piece]:
        stream = read_stream(self.data, rules, self.base)
        places = np.arange(1, len(stream.lines) + 1) if self.by_record else stream.lines
        yield Piece(stream.reading, stream.line_count, len(self.data), places, text=self.data)


#: Between two top-level objects of a stream: inside an array or an object a comma would stand here.
_BETWEEN_OBJECTS = re.compile(rb"\}[ \t\r]*\n\s*(?=\{)")
_LOOKED_THROUGH = 1 << 16


@dataclass(frozen=True)
class LenientFile:
    """A file that is a stream of JSON values, or a byte range of such a file that holds whole values."""

    file: InputFile
    base: int
    #: The byte range, start and end; None: the whole file.
    within: tuple[int, int] | None = None

    @property
    def name(self) -> str:
        return self.file.name

    @property
    def size(self) -> int:
        if self.within is not None:
            return self.within[1] - self.within[0]
        # The size of the decompressed text is not known; assume ten times the size of the file.
        return self.file.size if compression_of(self.file) is None else self.file.size * 10

    @property
    def begins(self) -> bool:
        return self.within is None or self.within[0] == 0

    def ranges(self, step: int) -> list[LenientFile]:
        """This file as byte ranges of about `step` bytes; a small or compressed file is a single range."""
        if self.size <= step or compression_of(self.file) is not None:
            return [self]
        bounds = [0]
        while bounds[-1] < self.file.size:
            bounds.append(self._next_value(max(bounds[-1] + step, bounds[-1] + 1)))
        return [replace(self, base=self.base + start, within=(start, end)) for start, end in pairwise(bounds)]

    def _next_value(self, start: int) -> int:
        """Where the first object begins that is certainly not part of another object."""
        while start < self.file.size:
            window = self.file.read(start, start + _LOOKED_THROUGH)
            found = _BETWEEN_OBJECTS.search(window)
            if found is not None:
                return start + found.end()
            # The text between two objects may reach past the end of a window, so windows overlap by half.
            start += max(len(window) // 2, 1)
        return self.file.size

    def pieces(self, rules: Rules) -> Iterator[Piece]:
        data = self._data()
        stream = read_stream(data, rules, self.base, 0 if self.within is None else self.within[0])
        # The line in which the range ends is counted by the next range.
        ends_within = self.within is not None and self.within[1] < self.file.size
        lines = stream.line_count - 1 if ends_within else stream.line_count
        yield Piece(stream.reading, lines, len(data), stream.lines, text=data)

    def _data(self) -> bytes:
        compression = compression_of(self.file)
        if compression is not None:
            return b"".join(CompressedText(self.file, compression, 0).windows())
        return self.file.read(*(self.within or (0, self.file.size)))


@dataclass(frozen=True)
class Documents:
    """Entities as Python objects with the fields of a JSON line."""

    name: str
    rows: Sequence[object]
    base: int = 0

    @property
    def size(self) -> int:
        return len(self.rows)

    def pieces(self, rules: Rules) -> Iterator[Piece]:
        reader = ExactReader(rules)
        for place, row in enumerate(self.rows):
            reader.document(row, self.base + place)
        yield Piece(reader.reading(), len(self.rows), len(self.rows), documents=self.rows, first=self.base)


@dataclass(frozen=True)
class SpooledDocuments:
    """Entities as Python objects that are pickled in a file of the job's scratch folder."""

    name: str
    file: InputFile
    count: int
    base: int
    begins: bool = False

    @property
    def size(self) -> int:
        return self.count

    def pieces(self, rules: Rules) -> Iterator[Piece]:
        with self.file.opened() as file:
            yield from Documents(self.name, pickle.load(file), self.base).pieces(rules)


def ranges(file: InputFile, base: int, step: int) -> list[TextRange]:
    """A file as byte ranges of about `step` bytes; an empty file has one range, so that its name is known."""
    starts = range(0, max(file.size, 1), step)
    return [TextRange(file, start, min(start + step, file.size), base + start) for start in starts]


def _begins_file(chunk: Chunk) -> bool:
    """Whether the chunk is at the start of its file, so that lines count from 1 again."""
    if isinstance(chunk, TextRange):
        return chunk.start == 0
    return bool(getattr(chunk, "begins", True))


@dataclass(frozen=True)
class Placed:
    """Where the rows of a chunk stand in their file; known once the lines of all chunks before it are counted."""

    name: str
    base: int
    first_line: int
    lines: Orders | None = None

    def place(self, order: int) -> tuple[str, int]:
        if self.lines is not None:
            return self.name, int(self.lines[order - self.base]) + self.first_line - 1
        return self.name, self.first_line + order - self.base


@dataclass(frozen=True)
class Places:
    """Turns a place in the input into a file and a line."""

    chunks: Sequence[Placed] = field(default_factory=list)

    @classmethod
    def of(cls, chunks: Sequence[Chunk], counts: Mapping[int, tuple[int, Orders | None]]) -> Places:
        """`counts`: by the number of each chunk, how many lines it has, and on which line each of its values begins."""
        placed = []
        first: dict[str, int] = {}
        for number, chunk in enumerate(chunks):
            count, lines = counts.get(number, (0, None))
            if _begins_file(chunk):
                first[chunk.name] = 1
            placed.append(Placed(chunk.name, chunk.base, first[chunk.name], lines))
            first[chunk.name] += count
        return cls(placed)

    def find(self, order: int | None) -> tuple[str, int]:
        """The file and line of a place; line 0 for a problem that belongs to no line."""
        if order is None or order < 0 or not self.chunks:
            return (self.chunks[0].name if self.chunks else "", 0)
        last = max((chunk for chunk in self.chunks if chunk.base <= order), key=lambda chunk: chunk.base)
        return last.place(order)
