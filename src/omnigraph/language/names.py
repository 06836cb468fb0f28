"""Where names stand in a text, in both languages, and places as editors count them: what editors jump to, explain and rename."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from omnigraph.language.source import NOWHERE, Span
from omnigraph.language.written import Token

_LINE_END = re.compile(r"\r\n|\n|\r")


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """A line and a number of UTF-16 units in it, both counted from 0."""

    line: int
    character: int


class Positions:
    """One text. A line ends with `\\n`, `\\r\\n` or `\\r`, and with nothing else."""

    def __init__(self, text: str) -> None:
        self.text = text
        ends = list(_LINE_END.finditer(text))
        self._starts = [0, *(end.end() for end in ends)]
        self._ends = [*(end.start() for end in ends), len(text)]

    def offset(self, position: Position) -> int:
        """The character offset of a position; one outside of the text is moved to the nearest place inside."""
        if position.line >= len(self._starts):
            return len(self.text)
        at, end = self._starts[max(position.line, 0)], self._ends[max(position.line, 0)]
        units = max(position.character, 0) if position.line >= 0 else 0
        while at < end and units > 0:
            units -= _units(self.text[at])
            at += units >= 0  # the middle of an astral character is its beginning
        return at

    def position(self, offset: int) -> Position:
        """The position of a character offset; behind the text it is its end."""
        offset = min(max(offset, 0), len(self.text))
        line = bisect_right(self._starts, offset) - 1
        end = min(offset, self._ends[line])
        return Position(line, sum(map(_units, self.text[self._starts[line] : end])))

    def range(self, span: Span) -> tuple[Position, Position]:
        """The positions of the start and the end of a span."""
        return self.position(span.start), self.position(span.end)

    def byte_span(self, start: int, end: int) -> Span:
        """The span of two byte offsets in UTF-8, as errors tell them."""
        data = self.text.encode(errors="surrogatepass")
        first = len(data[:start].decode(errors="replace"))
        return Span(first, first + len(data[start:end].decode(errors="replace")))


def _units(character: str) -> int:
    return 2 if ord(character) > 0xFFFF else 1


#: An interface counts as a node. An alias is a name that `as` gives, or a use of it.
Kind = Literal["variable", "alias", "query", "node", "edge", "property", "function"]

#: What a name may follow without a blank.
_KEYWORDS = ("query", "node", "edge", "interface", "implements", "insert", "upsert", "update", "delete")


@dataclass(frozen=True, slots=True)
class Occurrence:
    """One name in a text; the `$` of a variable belongs to its span.

    `name` of a type is the declared one, however it is spelt. `owners` are the types that a property belongs to
    (`node:Staff`), as far as they are known. `scope` is the query that a variable or an alias belongs to.
    """

    kind: Kind
    name: str
    span: Span
    declares: bool = False
    owners: tuple[str, ...] = ()
    scope: Span = NOWHERE


def named(tokens: Iterable[Token], name: str) -> Span | None:
    """Where a name stands among tokens; a word without blanks may begin with a keyword (`nodeStaff`)."""
    for token in tokens:
        if token.text == name or (token.text.endswith(name) and token.text[: -len(name)] in _KEYWORDS):
            return Span(token.span.end - len(name), token.span.end)
    return None


def at_offset(occurrences: Iterable[Occurrence], offset: int) -> Occurrence | None:
    """The name that stands at an offset, or directly before it."""
    touching = [found for found in occurrences if found.span.start <= offset <= found.span.end]
    return min(touching, key=lambda found: (found.span.end == offset, found.span.end - found.span.start), default=None)
