"""An answer as a table of text: columns of equal width, long cells cut or wrapped."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


@dataclass(frozen=True)
class TableStyle:
    """How wide a column may be, and what happens to a longer cell: `truncate` or `wrap`."""

    max_column_width: int = 80
    cell_layout: str = "truncate"


def cell(value: object) -> str:
    """A plain value as text: texts as they are, all others as JSON."""
    if isinstance(value, str):
        return value
    import orjson

    return orjson.dumps(value).decode()


def table_lines(columns: Sequence[str], rows: Sequence[Sequence[str]], style: TableStyle) -> Iterator[str]:
    """Header, rule and rows; nothing when no columns are known."""
    if not columns:
        return
    laid_out = [[_layout(text, style) for text in row] for row in (columns, *rows)]
    widths = [max(_width(part) for parts in column for part in parts) for column in zip(*laid_out, strict=True)]
    header, *body = laid_out
    yield from _record(header, widths)
    yield "-+-".join("-" * width for width in widths)
    for record in body:
        yield from _record(record, widths)


def _record(record: Sequence[Sequence[str]], widths: Sequence[int]) -> Iterator[str]:
    """The lines of one record; more than one when a cell was wrapped."""
    for line in range(max(map(len, record))):
        parts = [parts[line] if line < len(parts) else "" for parts in record]
        padded = (part + " " * (width - _width(part)) for part, width in zip(parts, widths, strict=True))
        yield " | ".join(padded).rstrip()


def shown_cell(text: str, style: TableStyle) -> str:
    """A cell on one line, cut when it is longer than a column may be."""
    return _layout(text, TableStyle(style.max_column_width))[0]


def _layout(text: str, style: TableStyle) -> list[str]:
    """The lines of a cell. Control characters are shown by their escapes: a value must not steer the terminal."""
    shown = _CONTROL.sub(lambda match: repr(match.group())[1:-1], text)
    if _width(shown) <= style.max_column_width:
        return [shown]
    if style.cell_layout == "truncate":
        return [_cut(shown, style.max_column_width - 1) + "…"]
    lines = []
    while shown:
        # A character that is wider than the column has a line of its own.
        line = _cut(shown, style.max_column_width) or shown[0]
        lines.append(line)
        shown = shown[len(line) :]
    return lines


def _cut(text: str, width: int) -> str:
    """As much of the start of a text as fits."""
    if text.isascii():
        return text[:width]
    used = 0
    for place, character in enumerate(text):
        used += _width(character)
        if used > width:
            return text[:place]
    return text


def _width(text: str) -> int:
    """How many columns of a terminal a text takes: wide characters two, combining ones none."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(character) else 2 if unicodedata.east_asian_width(character) in "WF" else 1
        for character in text
    )
