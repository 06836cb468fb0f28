"""`omnigraph lsp`: schemas and queries in an editor, over the Language Server Protocol."""

from __future__ import annotations

import os
import sys

import click

from omnigraph.cli.addressing import open_graph, resolve_storage
from omnigraph.cli.commands import Command
from omnigraph.cli.options import positional_uri
from omnigraph.cli.scope import DIRECT
from omnigraph.cli.settings import Settings
from omnigraph.cli.sources import read_source


@click.command(cls=Command, scope=DIRECT)
@positional_uri
@click.option(
    "--schema", "schema_path", metavar="FILE", help="The schema of all queries, instead of one found beside them."
)
@click.pass_context
def lsp(context: click.Context, uri: str | None, schema_path: str | None) -> None:
    """Serve an editor on standard input and output.

    The queries of a file are checked against the schema file or the graph that is named, else against the schema that is found
    beside the file.
    """
    from omnigraph.cli.lsp_schemas import Schemas
    from omnigraph.cli.lsp_server import make_server

    addresses = [f"--{flag}" for flag in context.ensure_object(Settings).flags]
    if schema_path is not None and (uri is not None or addresses):
        way = "a positional URI" if uri is not None else addresses[0]
        raise click.UsageError(f"--schema and {way} exclude each other; give one of them")
    if schema_path is not None:
        read_source(schema_path)
    graph = open_graph(resolve_storage(context, uri), "ro").schema() if uri is not None or addresses else None
    # The server closes its streams when the editor ends it; those of the process are still used after that.
    with os.fdopen(os.dup(sys.stdin.fileno()), "rb") as received, os.fdopen(os.dup(sys.stdout.fileno()), "wb") as sent:
        make_server(Schemas(schema_path, graph)).start_io(received, sent)
