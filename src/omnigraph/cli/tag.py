"""`omnigraph tag …`: names for commits."""

from __future__ import annotations

import click

from omnigraph.cli import output
from omnigraph.cli.addressing import open_graph, resolve
from omnigraph.cli.commands import Group
from omnigraph.cli.options import json_option, uri_option
from omnigraph.cli.scope import READ, WRITE
from omnigraph.cli.settings import Settings
from omnigraph.commit.model import MAIN


@click.group(cls=Group)
def tag() -> None:
    """Name commits; cleanup keeps what is tagged."""


@tag.command(scope=WRITE)
@uri_option
@click.argument("name")
@click.argument("commit", default=MAIN)
@json_option
@click.pass_context
def create(context: click.Context, uri: str | None, name: str, commit: str, as_json: bool) -> None:
    """Name a COMMIT: its id, a branch (its head), or main's head."""
    settings = context.ensure_object(Settings)
    graph = open_graph(resolve(context, uri, named_by="--uri"), "rw", settings.actor)
    tagged = graph.tag(name, commit)
    if as_json:
        output.json({"name": name, "graph_commit_id": tagged})
        return
    output.line(f"tagged {tagged} as {name}")


@tag.command("list", scope=READ)
@uri_option
@json_option
@click.pass_context
def list_(context: click.Context, uri: str | None, as_json: bool) -> None:
    """List the tags and the commits they name."""
    tags = open_graph(resolve(context, uri, named_by="--uri"), "ro").tags()
    if as_json:
        output.json({"tags": [{"name": name, "graph_commit_id": commit} for name, commit in tags.items()]})
        return
    for name, commit in tags.items():
        output.line(f"{name} {commit}")


@tag.command(scope=WRITE)
@uri_option
@click.argument("name")
@json_option
@click.pass_context
def delete(context: click.Context, uri: str | None, name: str, as_json: bool) -> None:
    """Forget a tag; its commit stays until cleanup may take it."""
    open_graph(resolve(context, uri, named_by="--uri"), "rw").delete_tag(name)
    if as_json:
        output.json({"name": name})
        return
    output.line(f"deleted tag {name}")
