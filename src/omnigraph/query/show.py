"""Tables for people: in a Python session and in a notebook."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from omnigraph.query.text_table import TableStyle, shown_cell, table_lines

#: More rows are not looked at; the table says how many there are.
MOST_ROWS = 1000
_STYLE = TableStyle()


def text_table(columns: Sequence[str], rows: Sequence[Sequence[str]], count: int) -> str:
    """Header, rule and rows; `count` is how many rows there are, of which these are the first."""
    lines = list(table_lines(columns, rows, _STYLE))
    if count > len(rows):
        lines.append(f"… {count} rows in all")
    return "\n".join(lines)


def html_table(columns: Sequence[str], rows: Sequence[Sequence[str]], count: int) -> str:
    """The same as an HTML table."""
    head = "".join(f"<th>{escape(shown_cell(name, _STYLE))}</th>" for name in columns)
    body = "".join(
        f"<tr>{''.join(f'<td>{escape(shown_cell(text, _STYLE))}</td>' for text in row)}</tr>" for row in rows
    )
    more = f"<caption>{count} rows, the first {len(rows)} shown</caption>" if count > len(rows) else ""
    return f"<table>{more}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
