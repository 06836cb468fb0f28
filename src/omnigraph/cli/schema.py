"""`omnigraph schema …`."""

from __future__ import annotations

import click

from omnigraph.cli import output
from omnigraph.cli.addressing import open_graph, resolve
from omnigraph.cli.commands import Group
from omnigraph.cli.options import json_option, positional_uri
from omnigraph.cli.scope import LOCAL, WRITE
from omnigraph.cli.sources import read_source


@click.group(cls=Group)
def schema() -> None:
    """Look at schemas."""


@schema.command(scope=WRITE)
@positional_uri
@json_option
@click.pass_context
def show(context: click.Context, uri: str | None, as_json: bool) -> None:
    """Show the accepted schema of a graph."""
    source = open_graph(resolve(context, uri), "ro").schema()
    if as_json:
        output.json({"schema_source": source})
    else:
        output.raw(source if source.endswith("\n") else f"{source}\n")


schema.add_command(show, "get")


@schema.command("show-ir", scope=LOCAL)
@click.argument("file")
def show_ir(file: str) -> None:
    """Show the canonical form of a schema FILE, as a new graph would keep it."""
    from omnigraph.language.schema.accept import accept_schema
    from omnigraph.language.schema.build import compile_schema

    catalog = compile_schema(read_source(file), file)
    output.json_text(accept_schema(catalog).to_json())
