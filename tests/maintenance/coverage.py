"""What the tests of maintenance look at: the indexes of a published table."""

from __future__ import annotations

import omnigraph as og
from omnigraph.storage.tables.table import Table, TableIndex


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
