"""Tables for people: in a terminal and in a notebook."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

#: A longer cell is cut.
WIDEST_CELL = 80
#: More rows are not looked at; the table says how many there are.
MOST_ROWS = 1000


def text_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Header, rule and rows, in columns of equal width."""
    shown = [[_cell(text) for text in row] for row in rows[:MOST_ROWS]]
    widths = [max(map(len, column)) for column in zip(columns, *shown, strict=True)]
    lines = [_line(columns, widths, " | "), "-+-".join("-" * width for width in widths)]
    lines += [_line(row, widths, " | ") for row in shown]
    if len(rows) > MOST_ROWS:
        lines.append(f"… {len(rows)} rows in all")
    return "\n".join(lines)


def _line(cells: Sequence[str], widths: Sequence[int], between: str) -> str:
    return between.join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip()


def _cell(text: str) -> str:
    one_line = text.replace("\n", "\\n")
    return one_line if len(one_line) <= WIDEST_CELL else one_line[: WIDEST_CELL - 1] + "…"


def html_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """The same as an HTML table."""
    head = "".join(f"<th>{escape(name)}</th>" for name in columns)
    body = "".join(f"<tr>{''.join(f'<td>{escape(_cell(text))}</td>' for text in row)}</tr>" for row in rows[:MOST_ROWS])
    more = f"<caption>{len(rows)} rows, the first {MOST_ROWS} shown</caption>" if len(rows) > MOST_ROWS else ""
    return f"<table>{more}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
