"""Tables for people in a Python session."""

from __future__ import annotations

from collections.abc import Sequence

from omnigraph.query.text_table import TableStyle, table_lines

#: More rows are not looked at; the table says how many there are.
MOST_ROWS = 1000
_STYLE = TableStyle()


def text_table(columns: Sequence[str], rows: Sequence[Sequence[str]], count: int) -> str:
    """Header, rule and rows; `count` is how many rows there are, of which these are the first."""
    lines = list(table_lines(columns, rows, _STYLE))
    if count > len(rows):
        lines.append(f"… {count} rows in all")
    return "\n".join(lines)
