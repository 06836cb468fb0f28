"""`omnigraph diff`: what changed between any two states of a graph."""

from __future__ import annotations

import click

from omnigraph.cli import output
from omnigraph.cli.addressing import open_graph, resolve
from omnigraph.cli.change_lines import filter_options, show_changes
from omnigraph.cli.commands import Command
from omnigraph.cli.options import json_option, uri_option
from omnigraph.cli.scope import READ
from omnigraph.commit.model import MAIN


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
    show_changes(found.changes)
    stats = found.stats
    output.line(f"{stats.inserts} inserted, {stats.updates} updated, {stats.deletes} deleted")
