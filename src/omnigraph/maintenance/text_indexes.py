"""Full-text indexes: whether one analyses texts as queries do."""

from __future__ import annotations

from omnigraph.query.search.analyser import INDEX_OPTIONS
from omnigraph.storage.tables.lance_errors import translated
from omnigraph.storage.tables.table import Table, TableIndex


def serves_texts(index: TableIndex, table: Table) -> bool:
    """Whether a full-text index was built with the options of our analyser."""
    if index.kind != "INVERTED":
        return False
    # `index.details` will not do: Lance leaves the stop words out there.
    with translated(str(table.location), f"read the settings of index {index.name} of"):
        segments = table.dataset.stats.index_stats(index.name)["indices"]
    return all(
        segment["params"].get(option) == value for segment in segments for option, value in INDEX_OPTIONS.items()
    )
