"""Changes as people read them, and the filters that every command about changes takes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import click

from omnigraph.cli import output
from omnigraph.cli.moments import iso
from omnigraph.cli.options import together

if TYPE_CHECKING:
    from omnigraph.changes.model import Change
    from omnigraph.commit.model import Commit

filter_options = together(
    click.option("--kind", "kinds", metavar="KIND", multiple=True, help="Only `node` or `edge`; may be repeated."),
    click.option("--type", "types", metavar="TYPE", multiple=True, help="Only types of this name; may be repeated."),
    click.option(
        "--op", "ops", metavar="OP", multiple=True, help="Only `insert`, `update` or `delete`; may be repeated."
    ),
)
limit_option = click.option("--limit", type=int, metavar="N", help="How many changes are read at once: 1 to 8192.")

_ABSENT = object()
#: A vector that is longer would fill the screen; `--json` has all of it.
_LONGEST_LIST = 16


def show_cause(commit: Commit) -> None:
    """What is said once about the commit of some changes."""
    from omnigraph.changes.commits import cause

    told = cause(commit)
    output.fields(told | {"authored_branch": commit.branch, "authored_at": iso(commit.created_at)})


def show_changes(changes: Iterable[Change]) -> None:
    """Each change with what it did to the properties."""
    for change in changes:
        output.line(f"{change.op} {change.kind} {change.type} {shown_value(change.id)}")
        before, after = _image(change.before, change.endpoints_before), _image(change.after, change.endpoints)
        if change.op == "update":
            for name in {**before, **after}:
                old, new = before.get(name, _ABSENT), after.get(name, _ABSENT)
                if old is _ABSENT or new is _ABSENT or old != new:
                    output.line(f"  {name}: {shown_value(old)} -> {shown_value(new)}")
            continue
        sign = "+" if change.op == "insert" else "-"
        for name, value in (after if change.op == "insert" else before).items():
            output.line(f"  {sign} {name}: {shown_value(value)}")


def _image(properties: Any, endpoints: Any) -> dict[str, Any]:
    ends = {} if endpoints is None else {"from": endpoints.src, "to": endpoints.dst}
    return ends | dict(properties or {})


def shown_value(value: object) -> str:
    """A value on one line; of a long vector only its beginning."""
    if value is _ABSENT:
        return "<absent>"
    if value is None:
        return "<null>"
    import orjson

    if isinstance(value, list) and len(value) > _LONGEST_LIST and all(isinstance(item, float) for item in value):
        return f"[{','.join(f'{item:.4g}' for item in value[:3])},… {len(value)} numbers]"
    if not isinstance(value, str):
        return orjson.dumps(value).decode()
    # What would break the line is shown as JSON shows it.
    return value if value.isprintable() else orjson.dumps(value).decode()[1:-1]
