"""What the tests of maintenance share: looking at the indexes of published tables, and building one by hand."""

from __future__ import annotations

import omnigraph as og
from omnigraph.commit.protocol import Step, Write, execute
from omnigraph.commit.sidecar import Kind
from omnigraph.graph.lifecycle import connect
from omnigraph.storage.tables.staged import stage_index
from omnigraph.storage.tables.table import Table, TableIndex
from tests.commit.org import accepted, effect, lineage


def published(graph: og.Graph, type_key: str, branch: str | None = None) -> Table:
    """The table of a type as readers see it now."""
    return graph.snapshot(branch).open(type_key)


def index_on(graph: og.Graph, type_key: str, column: str, branch: str | None = None) -> TableIndex:
    """The only index of a column."""
    (found,) = [index for index in published(graph, type_key, branch).indices() if index.columns == (column,)]
    return found


def versions(graph: og.Graph, branch: str | None = None) -> dict[str, tuple[int, str | None, int]]:
    """Version, fork and row count of every table."""
    entries = graph.snapshot(branch).entries()
    return {entry.key: (entry.version, entry.branch, entry.row_count) for entry in entries}


def build_index(graph: og.Graph, type_key: str, column: str, kind: str, name: str, **options: object) -> None:
    """Publish an index as somebody else might have built it."""
    context = connect(graph.uri)
    step = Step(lambda table: stage_index(table, column, kind, name, options=options))
    state = context.manifest.load("main")
    build = effect(context, state, type_key, step)
    execute(context, Write(Kind.ENSURE_INDICES, "main", lineage(Kind.ENSURE_INDICES), (build,), accepted(state)))
