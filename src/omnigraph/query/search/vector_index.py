"""What Lance is asked for when it searches for vectors, through an index where there is one."""

from __future__ import annotations

from math import isqrt
from typing import Any

from omnigraph.query.run import Run
from omnigraph.query.scan.entities import Entities
from omnigraph.query.search.vectors import Vector
from omnigraph.storage.tables.lance_errors import translated
from omnigraph.storage.tables.table import TableIndex

#: At least so many partitions of an index are looked at, and at least this part of them.
_PROBES = 20
_PROBED_PART = 10


def vector_index(entities: Entities, column: str, run: Run) -> TableIndex | None:
    """The vector index on a column."""
    found = (index for index in run.caches.indices(entities.table) if index.kind.startswith("IVF"))
    return next((index for index in found if index.columns == (column,)), None)


def vector_search(entities: Entities, column: str, vector: Vector, metric: str, k: int, run: Run) -> dict[str, Any]:
    """The search for the k nearest."""
    search: dict[str, Any] = {"column": column, "q": vector, "k": k, "metric": metric}
    index = vector_index(entities, column, run)
    if index is not None:
        run.note(f"index: {index.name} ({index.kind})")
        search["minimum_nprobes"] = _probes(index)
    return search


def overlooks(entities: Entities, index: TableIndex) -> bool:
    """Whether a search may overlook a vector: not all partitions are looked at, or the index holds shortened vectors."""
    if index.kind != "IVF_FLAT":
        return True
    with translated(str(entities.table.location), f"read the partitions of index {index.name} of"):
        return len(entities.table.dataset.get_ivf_model(index.name).centroids) > _probes(index)


def _probes(index: TableIndex) -> int:
    return max(_PROBES, isqrt(index.rows) // _PROBED_PART)
