"""`Result`: the answer of a query as an Arrow table, and its conversions to other formats and to text."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from typing import Any, TypeAlias

import orjson
import pyarrow as pa

from omnigraph.errors import BadRequest
from omnigraph.language.types import PropType
from omnigraph.shown import Shown
from omnigraph.values.render import Column, plain, python_values

#: The text of a result shows at most so many rows, and says how many there are in all.
MOST_ROWS = 1000
#: Converts a column of a property type to a list of Python values.
_Taken: TypeAlias = Callable[[Column, PropType], list[Any]]


@dataclass(frozen=True)
class Result(Shown):
    """The rows of a query and the commit they come from. `types` are the property types of the columns, in order."""

    table: pa.Table
    types: tuple[PropType, ...]
    commit: str

    @property
    def columns(self) -> list[str]:
        """The names of the columns: `variable.property`, or the alias."""
        return list(self.table.column_names)

    @cached_property
    def rows(self) -> list[dict[str, Any]]:
        """The rows as dicts of Python values: a Date is a `date`, a DateTime an aware `datetime` in UTC."""
        return self._dicts(python_values)

    def to_dicts(self, *, json: bool = False) -> list[dict[str, Any]]:
        """The rows as dicts. With `json` as the command line and the wire show them: dates are ISO texts, non-finite floats
        texts such as `"NaN"`.
        """
        return self._dicts(plain) if json else list(self.rows)

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.rows)

    # --- other libraries --------------------------------------------------------------------------------------------

    def to_arrow(self) -> pa.Table:
        """The Arrow table itself."""
        return self.table

    def to_pandas(self) -> Any:
        """A pandas data frame; pandas is an optional extra."""
        _optional("pandas")
        return self.table.to_pandas()

    def to_polars(self) -> Any:
        """A polars data frame; polars is an optional extra."""
        return _optional("polars").from_arrow(self.table)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The rows as an Arrow C stream, for any library that supports this interface."""
        return self.table.__arrow_c_stream__(requested_schema)

    # --- for programs and people ------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """The result as plain JSON data."""
        return {
            "columns": self.columns,
            "types": [str(kind) for kind in self.types],
            "row_count": len(self),
            "rows": self.to_dicts(json=True),
            "commit": self.commit,
        }

    def to_json(self) -> str:
        """The rows as a JSON array."""
        return orjson.dumps(self.to_dicts(json=True)).decode()

    def __str__(self) -> str:
        return text_table(self.columns, self._texts(), len(self))

    def __repr__(self) -> str:
        return f"Result({len(self)} rows of {', '.join(self.columns)})"

    def _texts(self) -> list[list[str]]:
        """The first rows as texts, at most MOST_ROWS of them, so that showing a large result stays cheap."""
        first = self._values(self.table.slice(0, MOST_ROWS), plain)
        return [["" if value is None else cell(value) for value in row] for row in first]

    def _dicts(self, taken: _Taken) -> list[dict[str, Any]]:
        names = self.columns
        return [dict(zip(names, values, strict=True)) for values in self._values(self.table, taken)]

    def _values(self, table: pa.Table, taken: _Taken) -> Iterator[tuple[Any, ...]]:
        """The rows of a table as tuples of values, converted by the function `taken`."""
        return zip(*(taken(table.column(place), kind) for place, kind in enumerate(self.types)), strict=True)


def _optional(library: str) -> Any:
    """Import a library that is an optional extra; raises BadRequest when it is not installed."""
    try:
        return import_module(library)
    except ImportError:
        raise BadRequest(f"{library} is not installed; run `pip install {library}`") from None


# An answer as a table of text: columns of equal width, long cells cut or wrapped.


_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


@dataclass(frozen=True)
class TableStyle:
    """How wide a column may be, and what happens to a longer cell: `truncate` or `wrap`."""

    max_column_width: int = 80
    cell_layout: str = "truncate"


def cell(value: object) -> str:
    """A plain value as text: a text unchanged, any other value as JSON."""
    if isinstance(value, str):
        return value
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


def text_table(columns: Sequence[str], rows: Sequence[Sequence[str]], count: int) -> str:
    """Header, rule and rows; `rows` are the first of `count` rows."""
    lines = list(table_lines(columns, rows, TableStyle()))
    if count > len(rows):
        lines.append(f"… {count} rows in all")
    return "\n".join(lines)


def _record(record: Sequence[Sequence[str]], widths: Sequence[int]) -> Iterator[str]:
    """The lines of one record; more than one when a cell was wrapped."""
    for line in range(max(map(len, record))):
        parts = [parts[line] if line < len(parts) else "" for parts in record]
        padded = (part + " " * (width - _width(part)) for part, width in zip(parts, widths, strict=True))
        yield " | ".join(padded).rstrip()


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
    """The longest prefix of a text that fits into `width` terminal columns."""
    if text.isascii():
        return text[:width]
    used = 0
    for place, character in enumerate(text):
        used += _width(character)
        if used > width:
            return text[:place]
    return text


def _width(text: str) -> int:
    """How many terminal columns a text takes: a wide character takes two, a combining character none."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(character) else 2 if unicodedata.east_asian_width(character) in "WF" else 1
        for character in text
    )


# `explain`: the plan as lowered, as rewritten, and what happens at each operator.


@dataclass(frozen=True)
class Explanation(Shown):
    """How a query is answered. `steps` is the rewritten plan with notes, and with rows and times after an analysis."""

    plan: str
    rewritten: str
    steps: str
    analyzed: bool

    def __str__(self) -> str:
        title = "Analyzed" if self.analyzed else "Steps"
        return f"Plan\n{_indented(self.plan)}\n\nRewritten\n{_indented(self.rewritten)}\n\n{title}\n{_indented(self.steps)}"

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values, ready for JSON."""
        return {"plan": self.plan, "rewritten": self.rewritten, "steps": self.steps, "analyzed": self.analyzed}


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines())
