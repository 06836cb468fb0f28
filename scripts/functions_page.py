"""Write docs/functions.md from the registry of functions.

usage: functions_page.py
"""

from __future__ import annotations

from itertools import groupby
from pathlib import Path

from omnigraph.language.query.functions import AGGREGATES, FUNCTIONS, usages_of

PAGE = Path(__file__).parent.parent / "docs" / "functions.md"
EXAMPLE = """\
```pg shop.pg
node Item { name: String @key  price: F64?  added: Date? }
```

```console
$ omnigraph init --schema shop.pg shop.omni
initialized shop.omni
$ omnigraph mutate -e 'query q() { insert Item { name: "lamp", price: 19.99, added: "2026-03-31" } }' --store shop.omni
changed main via q: 1 nodes, 0 edges
$ omnigraph query -e 'query q() { match { $i: Item } return { upper($i.name) as name, round($i.price * 1.19, 2) as gross,
    add_months($i.added, 1) as due } }' --store shop.omni --format csv
name,gross,due
LAMP,23.79,2026-04-30
```
"""
#: What the grammar knows itself, so that the registry does not hold it.
MOMENTS = [
    "| `now()` | The moment of the query, a datetime in UTC; the same in all rows. |",
    '| `date("2026-03-31")`, `datetime("2026-03-31T12:00Z")` | The day, or the moment, that the text names. |',
    '| `t + duration("PT1H30M")`, `t - duration("P2D")` | A datetime so much later or earlier, in ISO 8601: weeks, days, hours, '
    "minutes and seconds. |",
    "| `t - s` | The milliseconds from one datetime to another; of two dates, the days. |",
]


def page() -> str:
    """The page: a table for each group of functions, and one for aggregates."""
    lines = [
        "# Functions",
        "",
        "Functions stand wherever a [query or a mutation](queries.md#expressions) holds a value. Unless a line says otherwise,",
        "the result is null when an argument is null. Places in texts and lists count from 0. A text is no date here: write",
        '`days_between(date("2026-03-01"), today())`.',
    ]
    lines += ["", *EXAMPLE.splitlines()]
    for group, functions in groupby(FUNCTIONS.values(), key=lambda function: function.group):
        lines += ["", f"## {group.capitalize()}", "", "| function | result |", "|---|---|"]
        lines += MOMENTS if group == "dates" else []
        lines += [f"| `{'`, `'.join(usages_of(function))}` | {function.help} |" for function in functions]
    lines += [
        "",
        "## Aggregates",
        "",
        "Nulls are left out. Over nothing `count` is 0, `collect` an empty list, and the others are null.",
        "",
        "| aggregate | result |",
        "|---|---|",
    ]
    lines += [f"| `{function.name}` | {function.help} |" for function in AGGREGATES.values()]
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    PAGE.write_text(page())
