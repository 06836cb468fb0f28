"""`omnigraph schema …`."""

from __future__ import annotations

import click

from omnigraph.cli import output
from omnigraph.cli.commands import Group
from omnigraph.cli.sources import read_source


@click.group(cls=Group)
def schema() -> None:
    """Look at schemas."""


@schema.command("show-ir")
@click.argument("file")
def show_ir(file: str) -> None:
    """Show the canonical form of a schema FILE, as a new graph would keep it."""
    from omnigraph.language.schema.accept import accept_schema
    from omnigraph.language.schema.build import compile_schema

    catalog = compile_schema(read_source(file), file)
    output.json_text(accept_schema(catalog).to_json())
