"""`omnigraph branch …` and `omnigraph tag …`: names for lines of history and for commits."""

from __future__ import annotations

import click

from omnigraph.cli import output
from omnigraph.cli.addressing import confirm_destruction, echo_write, open_graph, resolve
from omnigraph.cli.commands import Group
from omnigraph.cli.merging import merge, rebase
from omnigraph.cli.options import idempotency_option, json_option, uri_option
from omnigraph.cli.scope import READ, WRITE
from omnigraph.cli.settings import Settings
from omnigraph.commit.model import MAIN


@click.group(cls=Group)
def branch() -> None:
    """Make, list, merge and delete branches."""


@branch.command(scope=WRITE)
@uri_option
@click.option("--from", "base", metavar="BRANCH", default=MAIN, show_default=True, help="The branch to start from.")
@click.argument("name")
@idempotency_option
@json_option
@click.pass_context
def create(
    context: click.Context, uri: str | None, base: str, name: str, idempotency_key: str | None, as_json: bool
) -> None:
    """Make the branch NAME at the head of another one."""
    settings = context.ensure_object(Settings)
    target = resolve(context, uri, named_by="--uri")
    echo_write(settings, "branch create", target)
    graph = open_graph(target, "rw", settings.actor)
    graph.create_branch(name, base, idempotency_key=idempotency_key)
    if as_json:
        output.json({"uri": target.uri, "from": base, "name": name, "actor_id": graph.actor})
    else:
        output.line(f"created branch {name} from {base}")


@branch.command("list", scope=WRITE)
@uri_option
@json_option
@click.pass_context
def list_(context: click.Context, uri: str | None, as_json: bool) -> None:
    """List the branches, sorted by name."""
    names = sorted(open_graph(resolve(context, uri, named_by="--uri"), "ro").branches())
    if as_json:
        output.json({"branches": names})
        return
    for name in names:
        output.line(name)


@branch.command(scope=WRITE)
@uri_option
@click.argument("name")
@idempotency_option
@json_option
@click.pass_context
def delete(context: click.Context, uri: str | None, name: str, idempotency_key: str | None, as_json: bool) -> None:
    """Delete the branch NAME, on which no other branch depends."""
    settings = context.ensure_object(Settings)
    target = resolve(context, uri, named_by="--uri")
    confirm_destruction(settings, "branch delete", target, as_json=as_json)
    echo_write(settings, "branch delete", target)
    graph = open_graph(target, "rw", settings.actor)
    graph.delete_branch(name, idempotency_key=idempotency_key)
    if as_json:
        output.json({"uri": target.uri, "name": name, "actor_id": graph.actor})
    else:
        output.line(f"deleted branch {name}")


branch.add_command(merge)
branch.add_command(rebase)


@click.group(cls=Group)
def tag() -> None:
    """Name commits; cleanup keeps what is tagged."""


@tag.command("create", scope=WRITE)
@uri_option
@click.argument("name")
@click.argument("commit", default=MAIN)
@idempotency_option
@json_option
@click.pass_context
def create_tag(
    context: click.Context, uri: str | None, name: str, commit: str, idempotency_key: str | None, as_json: bool
) -> None:
    """Name a COMMIT: its id, a branch (its head), or main's head."""
    settings = context.ensure_object(Settings)
    graph = open_graph(resolve(context, uri, named_by="--uri"), "rw", settings.actor)
    tagged = graph.tag(name, commit, idempotency_key=idempotency_key)
    if as_json:
        output.json({"name": name, "graph_commit_id": tagged})
        return
    output.line(f"tagged {tagged} as {name}")


@tag.command("list", scope=READ)
@uri_option
@json_option
@click.pass_context
def list_tags(context: click.Context, uri: str | None, as_json: bool) -> None:
    """List the tags and the commits they name."""
    tags = open_graph(resolve(context, uri, named_by="--uri"), "ro").tags()
    if as_json:
        output.json({"tags": [{"name": name, "graph_commit_id": commit} for name, commit in tags.items()]})
        return
    for name, commit in tags.items():
        output.line(f"{name} {commit}")


@tag.command("delete", scope=WRITE)
@uri_option
@click.argument("name")
@idempotency_option
@json_option
@click.pass_context
def delete_tag(context: click.Context, uri: str | None, name: str, idempotency_key: str | None, as_json: bool) -> None:
    """Forget a tag; its commit stays until cleanup may take it."""
    graph = open_graph(resolve(context, uri, named_by="--uri"), "rw")
    graph.delete_tag(name, idempotency_key=idempotency_key)
    if as_json:
        output.json({"name": name})
        return
    output.line(f"deleted tag {name}")
