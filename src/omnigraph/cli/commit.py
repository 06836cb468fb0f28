"""`omnigraph commit …`: the history of a graph."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from omnigraph.cli import output
from omnigraph.cli.addressing import open_graph, resolve
from omnigraph.cli.changes import filter_options, limit_option, show_cause, show_changes
from omnigraph.cli.commands import Group
from omnigraph.cli.options import branch_option, json_option, positional_uri, uri_option
from omnigraph.cli.scope import READ
from omnigraph.cli.wording import first_moment, iso, last_moment
from omnigraph.commit.messages import first_line
from omnigraph.commit.model import MAIN
from omnigraph.wire.shapes import commit_output

if TYPE_CHECKING:
    from omnigraph.commit.model import Commit


KEYS = ("actor", "kind", "since", "until")


@dataclass(frozen=True)
class CommitFilters:
    """The filter of commits to list; a field that is None does not filter."""

    actor: str | None = None
    kind: str | None = None
    since: datetime | None = None
    until: datetime | None = None


def read_filters(filters: Iterable[str]) -> CommitFilters:
    """The filters of one call; each key once."""
    given: dict[str, str] = {}
    for text in filters:
        key, equals, value = text.partition("=")
        if not equals or key not in KEYS or not value:
            raise click.UsageError(f"--filter '{text}' is not one of {', '.join(f'{key}=…' for key in KEYS)}")
        if key in given:
            raise click.UsageError(f"--filter {key}=… is given twice")
        given[key] = value
    since, until = given.get("since"), given.get("until")
    return CommitFilters(
        actor=given.get("actor"),
        kind=given.get("kind"),
        since=None if since is None else first_moment(since),
        until=None if until is None else last_moment(until),
    )


@click.group(cls=Group)
def commit() -> None:
    """Look at the history of a graph."""


@commit.command("list", scope=READ)
@positional_uri
@branch_option
@click.option(
    "--filter",
    "filters",
    metavar="KEY=VALUE",
    multiple=True,
    help="Only these commits: actor=…, kind=…, since=… or until=… (a date or time); may be repeated.",
)
@json_option
@click.pass_context
def list_(context: click.Context, uri: str | None, branch: str | None, filters: tuple[str, ...], as_json: bool) -> None:
    """List the commits of a branch, newest first."""
    chosen = read_filters(filters)
    graph = open_graph(resolve(context, uri), "ro")
    commits = graph.commits(
        branch or MAIN, actor=chosen.actor, kind=chosen.kind, since=chosen.since, until=chosen.until
    )
    if as_json:
        output.json({"commits": [commit_output(found) for found in commits]})
        return
    for found in commits:
        output.line(listed(found))


def listed(found: Commit) -> str:
    """A commit in one line; the message comes last, because it may contain any text."""
    actor = "" if found.actor is None else f" actor={found.actor}"
    place = f"{found.id} graph_branch={found.branch} graph_manifest_version={found.manifest_version}{actor}"
    counts = "" if found.changed is None else f" nodes={found.changed.nodes} edges={found.changed.edges}"
    message = "" if found.message is None else f" message={first_line(found.message)}"
    return f"{place} created_at={iso(found.created_at)} kind={found.kind}{counts}{message}"


@commit.command(scope=READ)
@uri_option
@click.argument("commit_id", metavar="ID")
@json_option
@click.pass_context
def show(context: click.Context, uri: str | None, commit_id: str, as_json: bool) -> None:
    """Show the commit ID, wherever it was made."""
    found = open_graph(resolve(context, uri, named_by="--uri"), "ro").commit(commit_id)
    if as_json:
        output.json(commit_output(found))
        return
    readable = {"graph_branch": found.branch, "created_at": iso(found.created_at)}
    counts = {} if found.changed is None else {"changed": f"{found.changed.nodes} nodes, {found.changed.edges} edges"}
    output.fields(commit_output(found) | readable | counts)


@commit.command(scope=READ)
@uri_option
@click.argument("commit_id", metavar="ID")
@limit_option
@click.option("--page-token", metavar="TOKEN", help="Show one page: the one behind this token.")
@filter_options
@json_option
@click.pass_context
def changes(
    context: click.Context,
    uri: str | None,
    commit_id: str,
    limit: int | None,
    page_token: str | None,
    kinds: tuple[str, ...],
    types: tuple[str, ...],
    ops: tuple[str, ...],
    as_json: bool,
) -> None:
    """Show what the commit ID did against its first parent."""
    graph = open_graph(resolve(context, uri, named_by="--uri"), "ro")
    wanted: dict[str, Any] = {"limit": limit, "kinds": kinds, "types": types, "ops": ops}
    page = graph.commit_changes(commit_id, page_token=page_token, **wanted)
    told = page.to_dict() if as_json else {}
    if not as_json:
        show_cause(page.commit)
        show_changes(page.changes)
    while page_token is None and page.next_page_token is not None:
        page = graph.commit_changes(commit_id, page_token=page.next_page_token, **wanted)
        if as_json:
            told["changes"] += page.to_dict()["changes"]
        else:
            show_changes(page.changes)
    if page_token is None:
        # All pages were followed.
        told.pop("next_page_token", None)
    if as_json:
        output.json(told)
    elif page.next_page_token is not None:
        output.line(f"next_page_token: {page.next_page_token}")


@commit.command(scope=READ)
@positional_uri
@click.option("--branch", metavar="NAME", help="Only the history of this branch; all branches unless given.")
@json_option
@click.pass_context
def graph(context: click.Context, uri: str | None, branch: str | None, as_json: bool) -> None:
    """Draw the commits of all branches and their parents."""
    opened = open_graph(resolve(context, uri), "ro")
    from omnigraph.cli.log import draw
    from omnigraph.commit.history import children_first

    names = [branch] if branch is not None else opened.branches()
    heads = {name: opened.head(name).id for name in names}
    commits = children_first({found.id: found for name in names for found in opened.commits(name)})
    if as_json:
        output.json({"heads": heads, "commits": [commit_output(found) for found in commits]})
        return
    for line in draw(commits, lambda found: _described(found, heads)):
        output.line(line)


def _described(found: Commit, heads: dict[str, str]) -> str:
    """The label of a commit in the drawing."""
    named = [name for name, head in heads.items() if head == found.id]
    marks = f" ({', '.join(named)})" if named else ""
    actor = "" if found.actor is None else f" by {found.actor}"
    return f"{found.id}{marks} {found.kind} on {found.branch}{actor}, {iso(found.created_at)}"
