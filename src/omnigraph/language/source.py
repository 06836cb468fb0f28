"""A source text, places in it, and how a place is shown to a person."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn

from omnigraph.errors import CatalogError, LanguageError, ParseError, TypecheckError


@dataclass(frozen=True, slots=True)
class Span:
    """A half-open range of character offsets in a source text."""

    start: int
    end: int

    def to(self, other: Span) -> Span:
        """The span from the start of this one to the end of the other."""
        return Span(self.start, other.end)


NOWHERE = Span(0, 0)


@dataclass(frozen=True, slots=True)
class Source:
    """One `.pg` or `.gq` text; `file` is only a name for messages."""

    text: str
    file: str | None = None

    def line_column(self, offset: int) -> tuple[int, int]:
        """Line and column of a character offset, both counted from 1."""
        line = self.text.count("\n", 0, offset) + 1
        return line, offset - (self.text.rfind("\n", 0, offset) + 1) + 1

    def place(self, span: Span) -> dict[str, Any]:
        """A span as the attributes of a LanguageError; a zero-width span is widened by one."""
        offset = min(span.start, len(self.text))
        end = max(span.end, offset + 1)
        line, column = self.line_column(offset)
        line_start = offset - (column - 1)
        line_end = self.text.find("\n", line_start)
        start_byte = _byte_length(self.text[:offset])
        return {
            "file": self.file,
            "line": line,
            "column": column,
            "start": start_byte,
            "end": start_byte + max(1, _byte_length(self.text[offset:end])),
            "source_line": self.text[line_start : line_end if line_end >= 0 else len(self.text)].rstrip("\r"),
        }

    def grammar_error(self, message: str, span: Span, **data: Any) -> NoReturn:
        """Raise a ParseError for text that does not fit the grammar."""
        # The parser's own way of going back is no cause that a reader of the error could use.
        raise ParseError(_one_line(f"parse error: {message}"), **self.place(span), **data) from None

    def semantic_error(self, message: str, span: Span, **data: Any) -> NoReturn:
        """Raise a ParseError for text that fits the grammar but breaks a rule of the language."""
        raise ParseError(_one_line(f"parse error: {message}"), semantic=True, **self.place(span), **data)

    def catalog_error(self, message: str, span: Span, **data: Any) -> NoReturn:
        """Raise a CatalogError for declarations that do not fit together."""
        raise CatalogError(_one_line(f"catalog error: {message}"), **self.place(span), **data)

    def type_error(self, code: str | None, message: str, span: Span, **data: Any) -> NoReturn:
        """Raise a TypecheckError, with its code in front where it has one."""
        text = f"type error: {code}: {message}" if code else f"type error: {message}"
        raise TypecheckError(_one_line(text), code=code, **self.place(span), **data)


def _byte_length(text: str) -> int:
    """The length in UTF-8; half a surrogate pair counts too, so that no text is too broken to be pointed at."""
    return len(text.encode(errors="surrogatepass"))


def _one_line(message: str) -> str:
    """A message that quotes a source text stays one line that a terminal can show and a person can read."""
    shown = message if len(message) <= LONGEST_MESSAGE else f"{message[:LONGEST_MESSAGE]}…"
    return _CONTROL.sub(lambda match: repr(match.group())[1:-1], shown)


LONGEST_MESSAGE = 1000
LONGEST_SHOWN_LINE = 160
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f-\x9f]")


def render_error(error: LanguageError, highlight: Callable[[str], str] = str) -> str:
    """The message with its place, the source line and a caret below the spot; `highlight` colours the line."""
    lines = [error.message]
    if error.line is not None and error.column is not None:
        where = f"{error.file or '<text>'}:{error.line}:{error.column}"
        lines[0] = f"{where}: {error.message}"
        if error.source_line is not None:
            shown, padding = _excerpt(error.source_line, error.column)
            gutter = f"  {error.line} | "
            lines += [f"{gutter}{highlight(shown)}", f"{'| ':>{len(gutter)}}{padding}^"]
    return "\n".join(lines)


def _excerpt(source_line: str, column: int) -> tuple[str, str]:
    """The source line, cut around the column when it is very long, and what pads the caret below it."""
    first = max(0, column - 1 - LONGEST_SHOWN_LINE // 2)
    # A control character in a source must not reach the terminal.
    shown = _CONTROL.sub("\N{REPLACEMENT CHARACTER}", source_line[first : first + LONGEST_SHOWN_LINE])
    caret_at = column - 1 - first
    # Tabs stay tabs below the line, so that the caret stands under its character.
    padding = "".join("\t" if char == "\t" else " " for char in shown[:caret_at]).ljust(caret_at)
    return shown, padding
