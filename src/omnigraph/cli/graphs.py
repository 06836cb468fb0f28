"""`omnigraph graphs …`: the graphs of a server."""

from __future__ import annotations

import click

from omnigraph.cli import output
from omnigraph.cli.addressing import scope_of
from omnigraph.cli.commands import Group
from omnigraph.cli.options import json_option
from omnigraph.cli.scope import SERVED
from omnigraph.errors import BadRequest


@click.group(cls=Group)
def graphs() -> None:
    """Look at the graphs of a server."""


@graphs.command("list", scope=SERVED)
@json_option
@click.pass_context
def list_(context: click.Context, as_json: bool) -> None:
    """List the graphs of a server, as ID and URI."""
    server = scope_of(context).server
    if server is None:
        raise BadRequest(
            "`graphs list` asks a server; address it with --server <name|url>, or with a profile of a server"
        )
    found = server.graphs()
    if as_json:
        output.json({"graphs": found})
        return
    for entry in found:
        output.line(f"{entry['graph_id']}\t{entry['uri']}")
