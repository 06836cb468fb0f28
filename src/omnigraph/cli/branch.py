"""`omnigraph branch …`: make, list, merge and delete branches."""

from __future__ import annotations

import click

from omnigraph.cli import output
from omnigraph.cli.addressing import open_graph, resolve
from omnigraph.cli.commands import Group
from omnigraph.cli.merging import merge, rebase
from omnigraph.cli.options import json_option, uri_option
from omnigraph.cli.scope import WRITE
from omnigraph.cli.settings import Settings
from omnigraph.cli.writing import confirm_destruction, echo_write
from omnigraph.commit.model import MAIN


@click.group(cls=Group)
def branch() -> None:
    """Make, list, merge and delete branches."""


@branch.command(scope=WRITE)
@uri_option
@click.option("--from", "base", metavar="BRANCH", default=MAIN, show_default=True, help="The branch to start from.")
@click.argument("name")
@json_option
@click.pass_context
def create(context: click.Context, uri: str | None, base: str, name: str, as_json: bool) -> None:
    """Make the branch NAME at the head of another one."""
    settings = context.ensure_object(Settings)
    target = resolve(context, uri, named_by="--uri")
    echo_write(settings, "branch create", target)
    graph = open_graph(target, "rw", settings.actor)
    graph.create_branch(name, base)
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
@json_option
@click.pass_context
def delete(context: click.Context, uri: str | None, name: str, as_json: bool) -> None:
    """Delete the branch NAME, on which no other branch depends."""
    settings = context.ensure_object(Settings)
    target = resolve(context, uri, named_by="--uri")
    confirm_destruction(settings, "branch delete", target, as_json=as_json)
    echo_write(settings, "branch delete", target)
    graph = open_graph(target, "rw", settings.actor)
    graph.delete_branch(name)
    if as_json:
        output.json({"uri": target.uri, "name": name, "actor_id": graph.actor})
    else:
        output.line(f"deleted branch {name}")


branch.add_command(merge)
branch.add_command(rebase)
