"""`omnigraph changes …` and `omnigraph diff`: the change feed of a branch, and what differs between two states."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import click

from omnigraph.cli import output
from omnigraph.cli.addressing import open_graph, resolve
from omnigraph.cli.commands import Command, Group
from omnigraph.cli.options import branch_option, json_option, refuse_both, together, uri_option
from omnigraph.cli.scope import READ
from omnigraph.cli.wording import iso
from omnigraph.commit.model import MAIN

if TYPE_CHECKING:
    from omnigraph.changes.feed import Block
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
#: Longer vectors are cut in the output for people; `--json` has all components.
_LONGEST_LIST = 16


def show_cause(commit: Commit) -> None:
    """Print the fields of the commit that made some changes."""
    from omnigraph.changes.commits import cause

    told = cause(commit)
    output.fields(told | {"authored_branch": commit.branch, "authored_at": iso(commit.created_at)})


def show_changes(changes: Iterable[Change]) -> None:
    """Print each change; for an update, the properties that changed."""
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


@click.group(cls=Group)
def changes() -> None:
    """Follow what happens on a branch."""


@changes.command(scope=READ)
@uri_option
@branch_option
@click.option("--cursor", metavar="CURSOR", help="Go on from where an earlier poll ended.")
@click.option("--start", metavar="START", help="Where to begin: `now` (unless given), `beginning` or `after:ID`.")
@limit_option
@click.option("--max-commits", type=int, metavar="N", help="How many commits the poll covers: 1 to 512.")
@filter_options
@json_option
@click.pass_context
def poll(
    context: click.Context,
    uri: str | None,
    branch: str | None,
    cursor: str | None,
    start: str | None,
    limit: int | None,
    max_commits: int | None,
    kinds: tuple[str, ...],
    types: tuple[str, ...],
    ops: tuple[str, ...],
    as_json: bool,
) -> None:
    """Show the commits of a branch behind a cursor, and the cursor to go on from."""
    refuse_both(cursor=cursor, start=start)
    graph = open_graph(resolve(context, uri, named_by="--uri"), "ro")
    wanted: dict[str, Any] = {"limit": limit, "kinds": kinds, "types": types, "ops": ops}
    page = graph.changes(branch, cursor=cursor, start=start, max_commits=max_commits, **wanted)
    blocks: list[Block] = []
    shown = None
    while True:
        for block in page.blocks:
            if as_json:
                blocks.append(block)
                continue
            if shown != block.commit.id:
                show_cause(block.commit)
                shown = block.commit.id
            show_changes(block.changes)
        if page.next_page_token is None:
            break
        page = graph.changes(branch, page_token=page.next_page_token, **wanted)
    if as_json:
        output.json({"blocks": _whole(blocks), "cursor": page.cursor, "caught_up": page.caught_up})
        return
    if shown is None:
        output.line("(no new commits)")
    output.line(f"cursor: {page.cursor}")
    output.line(f"caught_up: {'true' if page.caught_up else 'false'}")


def _whole(blocks: list[Block]) -> list[dict[str, Any]]:
    """The blocks of a feed, with the parts of a commit from several pages joined."""
    whole: list[dict[str, Any]] = []
    for block in blocks:
        told = block.to_dict()
        if whole and whole[-1]["cause"] == told["cause"]:
            whole[-1]["changes"] += told["changes"]
        else:
            whole.append(told)
    return whole


@changes.command(scope=READ)
@uri_option
@click.option("--out", metavar="PATH", required=True, help="The file, or s3:// object, that takes the entities.")
@branch_option
@filter_options
@json_option
@click.pass_context
def baseline(
    context: click.Context,
    uri: str | None,
    out: str,
    branch: str | None,
    kinds: tuple[str, ...],
    types: tuple[str, ...],
    ops: tuple[str, ...],
    as_json: bool,
) -> None:
    """Write all that a branch holds to a file, and show the cursor of the changes behind it."""
    graph = open_graph(resolve(context, uri, named_by="--uri"), "ro")
    captured = graph.baseline(branch, out, kinds=kinds, types=types, ops=ops).to_dict()
    if as_json:
        output.json(captured)
        return
    output.fields(captured)


@click.command(cls=Command, scope=READ)
@uri_option
@click.argument("before", metavar="FROM")
@click.argument("after", metavar="TO", default=MAIN)
@filter_options
@json_option
@click.pass_context
def diff(
    context: click.Context,
    uri: str | None,
    before: str,
    after: str,
    kinds: tuple[str, ...],
    types: tuple[str, ...],
    ops: tuple[str, ...],
    as_json: bool,
) -> None:
    """Show what changed from FROM to TO: branches, tags, commits, snapshots or manifest versions of main."""
    graph = open_graph(resolve(context, uri, named_by="--uri"), "ro")
    found = graph.diff(before, after, kinds=kinds, types=types, ops=ops)
    if as_json:
        output.json(found.to_dict())
        return
    for step in found.schema:
        output.line(f"schema: {step}")
    show_changes(found.changes)
    stats = found.stats
    output.line(f"{stats.inserts} inserted, {stats.updates} updated, {stats.deletes} deleted")
