"""`omnigraph lsp`: schemas and queries in an editor, over the Language Server Protocol."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import click

from omnigraph.cli.addressing import open_graph, resolve_storage
from omnigraph.cli.commands import Command
from omnigraph.cli.options import positional_uri
from omnigraph.cli.scope import DIRECT
from omnigraph.cli.settings import Settings
from omnigraph.cli.sources import read_source
from omnigraph.cluster.config import GraphConfig, read_config
from omnigraph.cluster.diagnostics import Findings, Stop
from omnigraph.cluster.sources import FILE, Folder

#: Folders that contain no source files of the user.
_SKIPPED = {"node_modules", "__pycache__", "__manifest"}
#: How many parent folders of a file are searched.
_MOST_PARENTS = 20


@dataclass(frozen=True)
class Found:
    """Where a schema is: a file, or the text of a graph's schema. Neither when `missing` says why there is none."""

    file: Path | None = None
    text: str | None = None
    missing: str = ""


@dataclass(frozen=True)
class Schemas:
    """What the server was started with: a schema file, or the schema of a graph; None when schemas are looked for."""

    file: str | None = None
    graph: str | None = None

    def of(self, queries: Path) -> Found:
        """The schema of a file of queries."""
        if self.file is not None:
            return Found(file=Path(self.file).absolute())
        if self.graph is not None:
            return Found(text=self.graph)
        for folder in queries.absolute().parents[:_MOST_PARENTS]:
            listed = _in_cluster(folder, queries)
            if listed is not None:
                return Found(file=listed)
            beside = sorted(folder.glob("*.pg"))
            named = [path for path in beside if path.stem == queries.stem]
            if named or len(beside) == 1:
                return Found(file=(named or beside)[0])
            if beside:
                several = ", ".join(path.name for path in beside)
                return Found(missing=f"{folder} has several schemas ({several}); start `omnigraph lsp --schema FILE`")
        return Found(missing="no schema was found beside this file or above it; start `omnigraph lsp --schema FILE`")


def _in_cluster(folder: Path, queries: Path) -> Path | None:
    """The schema of the graph whose stored queries are in this file, by the cluster.yaml of a folder."""
    if not (folder / FILE).is_file():
        return None
    try:
        config = read_config(Folder(folder), Findings())
    except Stop:
        return None
    return next((folder / graph.schema for graph in config.graphs.values() if _lists(folder, graph, queries)), None)


def _lists(folder: Path, graph: GraphConfig, queries: Path) -> bool:
    path = queries.resolve()
    if graph.query_folder is not None and (folder / graph.query_folder).resolve() == path.parent:
        return True
    return any((folder / source.file).resolve() == path for source in graph.query_files)


def files_below(folders: list[Path], suffix: str) -> Iterator[Path]:
    """The files with a suffix in the folders of a workspace; hidden folders and graphs are left out."""
    for folder in folders:
        for at, below, files in os.walk(folder):
            below[:] = sorted(name for name in below if not name.startswith(".") and name not in _SKIPPED)
            yield from (Path(at, name) for name in sorted(files) if name.endswith(suffix))


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
