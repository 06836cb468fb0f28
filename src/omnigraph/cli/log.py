"""`omnigraph log`: the history of a branch, drawn with characters: one row per commit, one column per line of history."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import click

from omnigraph.cli import output
from omnigraph.cli.addressing import open_graph, resolve
from omnigraph.cli.commands import Command
from omnigraph.cli.commit import listed
from omnigraph.cli.options import branch_option, json_option, positional_uri, together
from omnigraph.cli.scope import READ
from omnigraph.cli.wording import first_moment, iso, last_moment
from omnigraph.commit.messages import counted, first_line
from omnigraph.commit.model import MAIN
from omnigraph.wire.shapes import commit_output

if TYPE_CHECKING:
    from omnigraph.commit.model import Commit


#: The lines of history from left to right, each represented by the next commit on it.
_Lanes = list[str]


def draw(commits: Sequence[Commit], describe: Callable[[Commit], str]) -> Iterator[str]:
    """The rows of the drawing; every commit comes before its parents."""
    shown = {commit.id for commit in commits}
    lanes: _Lanes = []
    for commit in commits:
        yield from _join(lanes, commit.id)
        if commit.id not in lanes:
            lanes.append(commit.id)
        at = lanes.index(commit.id)
        marks = " ".join("*" if lane == at else "|" for lane in range(len(lanes)))
        yield f"{marks}  {describe(commit)}"
        parents = [parent for parent in (commit.parent, commit.merged_parent) if parent is not None and parent in shown]
        yield from _go_on(lanes, at, parents)


def _join(lanes: _Lanes, commit: str) -> Iterator[str]:
    """Join all lines whose next commit is the same, the rightmost first."""
    first, *others = [at for at, awaited in enumerate(lanes) if awaited == commit] or [0]
    for at in reversed(others):
        yield _closed(len(lanes), at, into=first)
        del lanes[at]


def _go_on(lanes: _Lanes, at: int, parents: Sequence[str]) -> Iterator[str]:
    """Continue the line of a commit with its first parent, and open another line for a second parent."""
    if not parents:
        if at < len(lanes) - 1:
            yield _closed(len(lanes), at)
        del lanes[at]
        return
    lanes[at] = parents[0]
    for parent in parents[1:]:
        lanes.insert(at + 1, parent)
        yield "".join("|" if lane == 0 else " |" if lane <= at else "\\ " for lane in range(len(lanes))).rstrip()


def _closed(width: int, at: int, into: int | None = None) -> str:
    """A row in which line `at` ends or joins a line to its left, and the lines to its right move one column left."""
    cells = [" "] * (2 * width)
    for lane in range(width):
        if lane < at:
            cells[2 * lane] = "|"
        elif lane > at or into is not None:
            cells[2 * lane - 1] = "/"
    if into is not None:
        for lane in range(into, at - 1):
            cells[2 * lane + 1] = "_"
    return "".join(cells).rstrip()


_filters = together(
    click.option("--actor", metavar="NAME", help="Only commits of this actor."),
    click.option("--kind", metavar="KIND", help="Only commits of this kind, such as load or merge."),
    click.option("--since", metavar="TIME", help="Only commits from this date or time on."),
    click.option("--until", metavar="TIME", help="Only commits up to this date or time."),
    click.option("--grep", metavar="TEXT", help="Only commits whose message has this text, in any case."),
    click.option("-n", "--limit", type=click.IntRange(min=1), metavar="N", help="The newest N of them."),
)


@click.command(cls=Command, scope=READ)
@positional_uri
@branch_option
@_filters
@json_option
@click.pass_context
def log(
    context: click.Context,
    uri: str | None,
    branch: str | None,
    actor: str | None,
    kind: str | None,
    since: str | None,
    until: str | None,
    grep: str | None,
    limit: int | None,
    as_json: bool,
) -> None:
    """Show the history of a branch, newest first: drawn on a terminal, else one line for each commit."""
    earliest = None if since is None else first_moment(since)
    latest = None if until is None else last_moment(until)
    graph = open_graph(resolve(context, uri), "ro")
    found = graph.commits(branch or MAIN, actor=actor, kind=kind, since=earliest, until=latest)
    if grep is not None:
        wanted = re.compile(re.escape(grep), re.IGNORECASE)
        found = [commit for commit in found if commit.message is not None and wanted.search(commit.message)]
    commits = found[:limit]
    if as_json:
        output.json({"commits": [commit_output(commit) for commit in commits]})
    elif not output.is_terminal(sys.stdout):
        for commit in commits:
            output.line(listed(commit))
    else:
        head = graph.head(branch or MAIN).id
        for line in drawn(commits, {head: branch or MAIN}, colours=output.wants_colours(sys.stdout)):
            output.line(line)


def drawn(commits: list[Commit], heads: dict[str, str], *, colours: bool) -> list[str]:
    """The commits with the lines of history beside them. `heads`: names of branches by the id of their head."""

    def colour(text: str, name: str) -> str:
        return click.style(text, fg=name) if colours else text

    def describe(commit: Commit) -> str:
        named = f" ({colour(heads[commit.id], 'green')})" if commit.id in heads else ""
        actor = "" if commit.actor is None else f" {commit.actor}"
        changed = commit.changed
        counts = "" if changed is None else f" [{counted(changed.nodes, 'node')}, {counted(changed.edges, 'edge')}]"
        message = "" if commit.message is None else f" {first_line(commit.message)}"
        place = "" if commit.branch == MAIN else f" on {commit.branch}"
        about = f"{iso(commit.created_at)[:19]}Z {colour(commit.kind, 'cyan')}{place}{actor}{counts}{message}"
        return f"{colour(commit.id, 'yellow')}{named} {about}"

    return list(draw(commits, describe))
