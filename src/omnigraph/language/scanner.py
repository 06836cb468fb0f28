"""The character scanner of both parsers.
Neither language has word boundaries (`nodeN{a:String}` parses), so there is no token stream: a parser asks for the text that it
expects at the current position. To choose between alternatives, it tries one and goes back if it fails. The message of a
grammar
error names the furthest position that was reached, and the texts that were expected there.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal, NoReturn

from omnigraph.language.source import Source, Span, did_you_mean, nearest_name

# Possessive repeats, so that the regular expression does not store backtracking positions for many megabytes of text.
#: A pattern for the blanks and comments between two tokens.
BLANKS = r"(?:[ \t\r\n]++|//[^\n]*+|/\*(?s:.*?)\*/)*+"
_BLANK = re.compile(BLANKS)
_TYPE_NAME = re.compile(r"[A-Z][A-Za-z0-9_]*")
_IDENT = re.compile(r"[a-z_][A-Za-z0-9_]*")
_DIGITS = re.compile(r"[0-9]+")
_STRING = re.compile(r'"((?:[^"\\]++|\\.)*+)"', re.DOTALL)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_FOUND = re.compile(r"@?\w{1,40}|.", re.DOTALL)
_KEYWORD = re.compile(r"`([A-Za-z_@]{2,})`")
_ESCAPED = {'"': '"', "\\": "\\", "n": "\n", "r": "\r", "t": "\t"}


class Mismatch(Exception):
    """The expected text is not at this position. Caught to try an alternative, or turned into a ParseError."""


class Scanner:
    """A position in a source text. Every `take_…` skips blanks and comments first and raises Mismatch on failure."""

    __slots__ = ("_taken_to", "_text", "at", "furthest", "source", "wanted")

    def __init__(self, source: Source) -> None:
        self.source = source
        self._text = source.text
        self.at = 0
        self._taken_to = 0
        self.furthest = 0
        self.wanted: dict[str, None] = {}
        self._refuse_half_characters()
        self._skip_blanks()

    def _refuse_half_characters(self) -> None:
        """Refuse half a surrogate pair: it could be parsed, but never be written to a file or a table."""
        try:
            self._text.encode()
        except UnicodeEncodeError as error:
            self.source.grammar_error("the text is not valid Unicode", Span(error.start, error.end))

    def _skip_blanks(self) -> None:
        match = _BLANK.match(self._text, self.at)
        assert match is not None, "the pattern matches the empty string"
        self.at = match.end()
        if self._text.startswith("/*", self.at):
            self.source.grammar_error("unterminated block comment", Span(self.at, self.at + 2))

    def fail(self, wanted: str) -> NoReturn:
        """Note the text that was expected here, and raise Mismatch."""
        if self.at > self.furthest:
            self.furthest = self.at
            self.wanted = {}
        if self.at == self.furthest:
            self.wanted[wanted] = None
        raise Mismatch

    def at_end(self) -> bool:
        return self.at == len(self._text)

    def looking_at(self, text: str) -> bool:
        """Whether this text comes next; takes nothing."""
        return self._text.startswith(text, self.at)

    def touches(self, text: str) -> bool:
        """Whether this text comes next without a blank or a comment before it."""
        return self._taken_to == self.at and self._text.startswith(text, self.at)

    def peek(self, pattern: re.Pattern[str]) -> str | None:
        """The text that matches a pattern here, or None; takes nothing."""
        match = pattern.match(self._text, self.at)
        return match.group() if match else None

    def accept(self, text: str) -> bool:
        """Take this exact text if it comes next."""
        if not self._text.startswith(text, self.at):
            return self.missed(text)
        self._advance(self.at + len(text))
        return True

    def _advance(self, end: int) -> None:
        self._taken_to = self.at = end
        self._skip_blanks()

    def missed(self, text: str) -> Literal[False]:
        """Note that this text was possible here, for the message of an error; returns False."""
        if self.at > self.furthest:
            self.furthest = self.at
            self.wanted = {}
        if self.at == self.furthest:
            self.wanted[f"`{text}`"] = None
        return False

    def expect(self, text: str) -> None:
        """Take this exact text."""
        if not self.accept(text):
            raise Mismatch

    def expect_one_of(self, *texts: str) -> str:
        """Take the first of these texts that comes next."""
        for text in texts:
            if self.accept(text):
                return text
        raise Mismatch

    def _take(self, pattern: re.Pattern[str], wanted: str) -> str:
        match = pattern.match(self._text, self.at)
        if match is None:
            self.fail(wanted)
        self._advance(match.end())
        return match.group()

    def take_pattern(self, pattern: re.Pattern[str], wanted: str) -> str:
        """Take the text that matches a pattern here; `wanted` names it in messages."""
        return self._take(pattern, wanted)

    def take_type_name(self) -> str:
        return self._take(_TYPE_NAME, "a type name")

    def take_ident(self) -> str:
        return self._take(_IDENT, "a name")

    def take_digits(self) -> str:
        return self._take(_DIGITS, "an integer")

    def take_string(self) -> str:
        """A double-quoted string, decoded; an unknown escape is a semantic error at once."""
        start = self.at
        match = _STRING.match(self._text, start)
        if match is None:
            if self.looking_at('"'):
                self.source.grammar_error("unterminated string", Span(start, start + 1))
            self.fail("a string")
        self._advance(match.end())

        def decode(escape: re.Match[str]) -> str:
            char = escape.group(1)
            if char not in _ESCAPED:
                place = start + 1 + escape.start()
                self.source.semantic_error(f"unsupported escape sequence `\\{char}`", Span(place, place + 2))
            return _ESCAPED[char]

        body = match.group(1)
        return _ESCAPE.sub(decode, body) if "\\" in body else body

    def grammar_error(self, hint: str = "", suggestion: str | None = None) -> NoReturn:
        """Raise the ParseError for the furthest failure; `hint` is a tail for the message that says what to do."""
        wanted = tuple(self.wanted)
        match = _FOUND.match(self._text, self.furthest)
        found = match.group() if match else ""
        keywords = [keyword.group(1) for name in wanted if (keyword := _KEYWORD.fullmatch(name))]
        if suggestion is None and not hint and len(found) > 1:
            suggestion = nearest_name(found, keywords)
        self.source.grammar_error(
            f"expected {_one_of(wanted)}, found {_shown(found)}{hint or did_you_mean(suggestion)}",
            Span(self.furthest, self.furthest + len(found)),
            expected=wanted,
            suggestion=suggestion,
        )

    def span_from(self, start: int) -> Span:
        """The span from `start` to the end of the last taken text, without the blanks and comments after it."""
        if start <= self._taken_to <= self.at:
            return Span(start, self._taken_to)
        # The parser has gone back before the last taken text; then only trailing blanks are left out.
        return Span(start, start + len(self._text[start : self.at].rstrip(" \t\r\n")))


def _shown(found: str) -> str:
    """The found text for a message; in words when it is empty or not printable."""
    if not found:
        return "the end of the text"
    return f"`{found}`" if found.isprintable() else f"the character U+{ord(found[0]):04X}"


def _one_of(wanted: Sequence[str]) -> str:
    """`a`, `b` or `c`."""
    if len(wanted) < 2:
        return wanted[0] if wanted else "something else"
    return f"{', '.join(wanted[:-1])} or {wanted[-1]}"
