"""The parts of a source text besides its meaning: comments, empty lines, offsets of tokens, multi-line strings."""

from __future__ import annotations

import re
from bisect import bisect_left
from dataclasses import dataclass
from functools import cached_property

from omnigraph.language.source import Source, Span

_TOKEN = re.compile(
    r"""(?P<comment>//[^\n]*+|/\*.*?\*/)|(?P<string>"(?:[^"\\]++|\\.)*+")|[$@]?[A-Za-z0-9_]++|[^ \t\r\n]""", re.DOTALL
)
_LINE_END = re.compile(r"\r*\n")
_WHITESPACE = " \t\r\n"
_BEHIND_ITEMS = (",", ")", ";")


@dataclass(frozen=True, slots=True)
class Comment:
    """A comment, with `\\n` as line ends; `ends_a_line`: other text precedes it on its line."""

    start: int
    text: str
    ends_a_line: bool


@dataclass(frozen=True, slots=True)
class Token:
    """A word, a variable, a string or a single sign; comments and blanks are not tokens."""

    start: int
    text: str

    @property
    def span(self) -> Span:
        return Span(self.start, self.start + len(self.text))


class Written:
    """A source text that can be parsed. It is false when the text is empty, so that nothing is to be kept."""

    def __init__(self, source: Source) -> None:
        self._text = source.text

    def __bool__(self) -> bool:
        return bool(self._text)

    @cached_property
    def line_end(self) -> str:
        """The line end of the text's first line."""
        found = self._text.find("\n")
        return "\r\n" if found > 0 and self._text[found - 1] == "\r" else "\n"

    @cached_property
    def tokens(self) -> list[Token]:
        """All tokens of the text, in order."""
        found = _TOKEN.finditer(self._text)
        return [Token(match.start(), match.group()) for match in found if match.lastgroup != "comment"]

    @cached_property
    def comments(self) -> list[Comment]:
        """All comments of the text, in order."""
        found = _TOKEN.finditer(self._text) if "//" in self._text or "/*" in self._text else ()
        return [self._comment(match) for match in found if match.lastgroup == "comment"]

    def _comment(self, match: re.Match[str]) -> Comment:
        start, text = match.start(), match.group()
        text = text.rstrip(_WHITESPACE) if text.startswith("//") else _LINE_END.sub("\n", text)
        gap = self._gap(start)
        return Comment(start, text, ends_a_line="\n" not in gap and len(gap) < start)

    def _gap(self, offset: int) -> str:
        """The whitespace directly before an offset."""
        start = offset
        while start and self._text[start - 1] in _WHITESPACE:
            start -= 1
        return self._text[start:offset]

    def follows_empty_line(self, offset: int) -> bool:
        """Whether an empty line precedes the token at this offset."""
        return self._gap(offset).count("\n") > 1

    # --- tokens -------------------------------------------------------------------------------------------------------

    @cached_property
    def _starts(self) -> list[int]:
        return [token.start for token in self.tokens]

    def index(self, offset: int) -> int:
        """The index of the first token that begins at this offset or after it."""
        return bisect_left(self._starts, offset)

    def within(self, span: Span) -> list[Token]:
        """The tokens that begin inside of a span."""
        return self.tokens[self.index(span.start) : self.index(span.end)]

    def after(self, offset: int) -> int:
        """The offset of the first token after an item; commas, semicolons and closing parentheses belong to the item."""
        index = self.index(offset)
        while index < len(self.tokens) and self.tokens[index].text in _BEHIND_ITEMS:
            index += 1
        return self.tokens[index].start if index < len(self.tokens) else len(self._text)

    def next(self, offset: int) -> int:
        """The offset of the next token."""
        index = self.index(offset)
        return self.tokens[index].start if index < len(self.tokens) else len(self._text)

    def before(self, offset: int, word: str) -> int:
        """The offset of the last token `word` before `offset`; `offset` itself when there is none."""
        for index in range(self.index(offset) - 1, -1, -1):
            if self.tokens[index].text == word:
                return self.tokens[index].start
        return offset

    # --- spellings ----------------------------------------------------------------------------------------------------

    @cached_property
    def _spellings(self) -> dict[str, str]:
        """The spellings of strings that are written over several lines, by their values."""
        from omnigraph.language.scanner import Scanner

        found: dict[str, str] = {}
        for token in self.tokens:
            # A string whose line ends differ from the rest of the text would change when all line ends are made equal.
            spelt = token.text.replace(self.line_end, "\n")
            ends = token.text.count(self.line_end)
            if token.text.startswith('"') and 0 < ends == spelt.count("\n") and "\r" not in spelt:
                found.setdefault(Scanner(Source(token.text)).take_string(), spelt)
        return found

    def spelling(self, text: str) -> str | None:
        """The spelling of a string that the source writes over several lines; None when it is written on one line."""
        return self._spellings.get(text) if "\n" in text else None


#: For printing a tree that has no original text.
NOTHING_WRITTEN = Written(Source(""))
