"""A source text, places in it, and the errors that point at them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NoReturn

from omnigraph.errors import CatalogError, EvaluationError, ParseError, TypecheckError


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
        """The attributes of a LanguageError for a span: line, column, bytes; a zero-width span is widened by one."""
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
        # `from None`: the parser's internal Mismatch would not help a reader of the error.
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


@dataclass(frozen=True, slots=True)
class Place:
    """The place of an expression of a plan in the query text."""

    source: Source
    span: Span

    @property
    def written(self) -> str:
        """The text of the expression, on one line."""
        return " ".join(self.source.text[self.span.start : self.span.end].split())


def evaluation_error(message: str, place: Place | None) -> EvaluationError:
    """The error for an expression that fails for a row; `place` is None for an expression without a place in the text."""
    return EvaluationError(_one_line(message), **({} if place is None else place.source.place(place.span)))


def _byte_length(text: str) -> int:
    """The length in UTF-8 bytes; half a surrogate pair is allowed, so that errors in broken texts have a place."""
    return len(text.encode(errors="surrogatepass"))


def _one_line(message: str) -> str:
    """The message on one line, cut to LONGEST_MESSAGE characters, with control characters escaped."""
    shown = message if len(message) <= LONGEST_MESSAGE else f"{message[:LONGEST_MESSAGE]}…"
    return _CONTROL.sub(lambda match: repr(match.group())[1:-1], shown)


LONGEST_MESSAGE = 1000
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f-\x9f]")


#: Longer names are not compared: the time grows with the product of the lengths.
_LONGEST_NAME = 100


def nearest_name(name: str, known: Iterable[str]) -> str | None:
    """The known name closest to a misspelt one, or None when none is close."""
    if len(name) > _LONGEST_NAME:
        return None
    # Imported only when there is a mistake, because loading it takes time.
    from difflib import get_close_matches

    candidates = sorted(set(known))
    folded = {candidate.lower(): candidate for candidate in reversed(candidates)}
    if name.lower() in folded:
        return folded[name.lower()]
    matches = get_close_matches(name.lower(), folded, n=1, cutoff=0.6)
    return folded[matches[0]] if matches else None


def did_you_mean(suggestion: str | None) -> str:
    """The tail of a message: `; did you mean …?`, or nothing."""
    return f"; did you mean `{suggestion}`?" if suggestion else ""
