"""The pieces of HTML that objects are shown with: plain, without scripts, readable in light and dark notebooks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape

import orjson

#: What HTML can not hold, even escaped; and marks that turn the direction of the text around them.
_UNSHOWABLE = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff\u202a-\u202e\u2066-\u2069]")
_LONGEST_TEXT = 300
#: Rows that a table shows: all when there are at most so many, otherwise the first and the last.
MOST_ROWS = 40
FIRST_ROWS, LAST_ROWS = 20, 5

_STYLE = """<style>
.og{font:13px/1.45 system-ui,sans-serif;max-width:100%;overflow-x:auto}
.og table{border-collapse:collapse;margin:.3em 0;font-variant-numeric:tabular-nums}
.og th,.og td{text-align:left!important;vertical-align:top;padding:.2em .7em;border-bottom:1px solid rgba(128,128,128,.3)}
.og td,.og th{white-space:pre-wrap;max-width:40em;overflow-wrap:break-word}
.og th{white-space:nowrap}
.og th{font-weight:600;border-bottom-width:2px}
.og .n{text-align:right!important}
.og .w{white-space:nowrap}
.og .head{font-weight:600;margin:.2em 0}
.og .dim{opacity:.65}
.og .tag{display:inline-block;padding:0 .5em;border-radius:1em;background:rgba(128,128,128,.18);margin-right:.4em}
.og tr.plus{background:rgba(46,160,67,.18)!important}
.og tr.minus{background:rgba(218,54,51,.16)!important}
.og tr.turn{background:rgba(210,153,34,.18)!important}
.og pre{margin:.3em 0;white-space:pre-wrap;background:none;color:inherit}
.og details{margin:.3em 0}
</style>"""

#: A cell of a table: its HTML, or a value that is shown as text.
Cell = object


class Html(str):
    """Text that is HTML already."""

    __slots__ = ()


def card(title: str, *parts: str, tags: Iterable[str] = ()) -> str:
    """An object as a whole: its title, tags beside it, and its parts below."""
    labels = "".join(f'<span class="tag">{text(tag)}</span>' for tag in tags)
    head = f'<div class="head">{text(title)} {labels}</div>' if title or labels else ""
    return f'{_STYLE}<div class="og">{head}{"".join(parts)}</div>'


def text(value: object) -> Html:
    """A value as text that stays text: escaped, without what can not be shown, and cut when it is long."""
    if isinstance(value, Html):
        return value
    if value is None:
        return Html("")
    plain = value if isinstance(value, str) else _written(value)
    if len(plain) > _LONGEST_TEXT:
        plain = f"{plain[:_LONGEST_TEXT]}… ({len(plain):,} characters)"
    return Html(escape(showable(plain)))


def unbroken(value: object) -> Html:
    """A short value that stays on one line, such as a time or a size."""
    return Html(f'<span class="w">{text(value)}</span>')


def showable(content: str) -> str:
    """A text in which characters that can not be shown are written as escapes."""
    return _UNSHOWABLE.sub(lambda found: found[0].encode("unicode_escape", "surrogatepass").decode(), content)


def _written(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, list | tuple | dict):
        return orjson.dumps(value, default=str).decode()
    return str(value)


def table(
    columns: Sequence[str], rows: Iterable[Sequence[Cell]], *, classes: Sequence[str] = (), total: int | None = None
) -> Html:
    """A table. `classes`: one per row (`plus`, `minus`, `turn` or nothing). `total`: how many rows there are in all.

    Columns of numbers are aligned to the right.
    """
    listed = [list(row) for row in rows]
    numeric = [_are_numbers([row[place] for row in listed]) for place in range(len(columns))]
    head = "".join(_cell("th", name, number) for name, number in zip(columns, numeric, strict=True))
    body = []
    for place, row in enumerate(listed):
        mark = f' class="{classes[place]}"' if place < len(classes) and classes[place] else ""
        body.append(
            f"<tr{mark}>{''.join(_cell('td', value, number) for value, number in zip(row, numeric, strict=True))}</tr>"
        )
    more = "" if total is None or total <= len(listed) else f'<div class="dim">{total:,} in all</div>'
    return Html(f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table>{more}")


def _are_numbers(values: Sequence[Cell]) -> bool:
    """Whether a column holds numbers, besides nulls and the mark of the rows that are left out."""
    return any(map(_is_number, values)) and all(_is_number(value) or value is None or value == "…" for value in values)


def _is_number(value: Cell) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _cell(tag: str, value: Cell, number: bool) -> str:
    mark = ' class="n"' if number else ""
    return f"<{tag}{mark}>{text(value)}</{tag}>"


def facts(pairs: Mapping[str, object]) -> Html:
    """Names with their values; names without a value are left out."""
    known = [(name, value) for name, value in pairs.items() if value not in (None, "", (), [], {})]
    if not known:
        return Html("")
    return Html(
        f"<table><tbody>{''.join(f'<tr><th>{text(n)}</th><td>{text(v)}</td></tr>' for n, v in known)}</tbody></table>"
    )


def lines(content: str) -> Html:
    """Text that keeps its lines, in a fixed pitch."""
    return Html(f"<pre>{escape(showable(content))}</pre>")


def folded(title: str, content: str, *, is_open: bool = False) -> Html:
    """Something that can be opened."""
    return Html(f"<details{' open' if is_open else ''}><summary>{text(title)}</summary>{content}</details>")


def size(count: int) -> str:
    """A number of bytes for people."""
    amount = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if amount < 1024:
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1024
    return f"{amount:.1f} TiB"


def counted(count: int, one: str, many: str | None = None) -> str:
    """`1 row`, `2 rows`."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"
