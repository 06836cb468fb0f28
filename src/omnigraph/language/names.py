"""The places of names in texts of both languages, and editor positions (line and UTF-16 column)."""

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
    """A line and an offset in UTF-16 units in the line, both counted from 0."""

    line: int
    character: int


class Positions:
    """The conversion of positions and offsets in one text. Only `\\n`, `\\r\\n` and `\\r` end a line."""

    def __init__(self, text: str) -> None:
        self.text = text
        ends = list(_LINE_END.finditer(text))
        self._starts = [0, *(end.end() for end in ends)]
        self._ends = [*(end.start() for end in ends), len(text)]

    def offset(self, position: Position) -> int:
        """The character offset of a position; a position outside of the text is moved to the nearest place inside."""
        if position.line >= len(self._starts):
            return len(self.text)
        at, end = self._starts[max(position.line, 0)], self._ends[max(position.line, 0)]
        units = max(position.character, 0) if position.line >= 0 else 0
        while at < end and units > 0:
            units -= _units(self.text[at])
            at += units >= 0  # the middle of an astral character is its beginning
        return at

    def position(self, offset: int) -> Position:
        """The position of a character offset; an offset after the end gives the end of the text."""
        offset = min(max(offset, 0), len(self.text))
        line = bisect_right(self._starts, offset) - 1
        end = min(offset, self._ends[line])
        return Position(line, sum(map(_units, self.text[self._starts[line] : end])))

    def range(self, span: Span) -> tuple[Position, Position]:
        """The positions of the start and the end of a span."""
        return self.position(span.start), self.position(span.end)

    def byte_span(self, start: int, end: int) -> Span:
        """The span in characters of two UTF-8 byte offsets, as errors report them."""
        data = self.text.encode(errors="surrogatepass")
        first = len(data[:start].decode(errors="replace"))
        return Span(first, first + len(data[start:end].decode(errors="replace")))


def _units(character: str) -> int:
    return 2 if ord(character) > 0xFFFF else 1


#: An interface counts as a node. An alias is a name given by `as`, or a use of such a name.
Kind = Literal["variable", "alias", "query", "node", "edge", "property", "function"]

#: The keywords after which a name may follow without a blank.
_KEYWORDS = ("query", "node", "edge", "interface", "implements", "insert", "upsert", "update", "delete")


@dataclass(frozen=True, slots=True)
class Occurrence:
    """One name in a text; the span of a variable includes its `$`.
    For a type, `name` is its declared name, however the text spells it. `owners` are the types to which a property belongs
    (`node:Staff`), as far as they are known. `scope` is the span of the query to which a variable or an alias belongs.
    """

    kind: Kind
    name: str
    span: Span
    declares: bool = False
    owners: tuple[str, ...] = ()
    scope: Span = NOWHERE


def named(tokens: Iterable[Token], name: str) -> Span | None:
    """The span of a name among tokens, or None; a keyword may stand before it without a blank (`nodeStaff`)."""
    for token in tokens:
        if token.text == name or (token.text.endswith(name) and token.text[: -len(name)] in _KEYWORDS):
            return Span(token.span.end - len(name), token.span.end)
    return None


def at_offset(occurrences: Iterable[Occurrence], offset: int) -> Occurrence | None:
    """The name at an offset, or else the name that ends there; None when there is no name."""
    touching = [found for found in occurrences if found.span.start <= offset <= found.span.end]
    return min(touching, key=lambda found: (found.span.end == offset, found.span.end - found.span.start), default=None)
