"""Distances between vectors, computed here in double precision."""

from __future__ import annotations

from math import isqrt
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.errors import BadRequest
from omnigraph.language.query.ir import Nearest
from omnigraph.query.run import Run
from omnigraph.query.scan.entities import Entities
from omnigraph.storage.tables.lance_errors import translated
from omnigraph.storage.tables.table import TableIndex

Vector = npt.NDArray[np.float32]

#: How many numbers are converted to double precision at a time: so few that they fit in the CPU cache.
_AT_ONCE = 65_536


def query_vector(nearest: Nearest, run: Run) -> Vector | None:
    """The query vector of a `nearest`, where a text is embedded first; None when the parameter is null."""
    value = run.value(nearest.query)
    if isinstance(value, str):
        value = run.vector_of(value, nearest.dimension, nearest.model)
    if value is None:
        return None
    assert isinstance(value, tuple)
    if len(value) != nearest.dimension:
        raise BadRequest(f"nearest expects a vector of {nearest.dimension} numbers, got {len(value)}")
    return np.asarray(value, dtype=np.float32)


def distances(vectors: pa.Array, query: Vector | None, metric: str) -> pa.Array:
    """The distance of each vector: Euclidean, 1 − cosine or the negative dot product; null where a vector is null."""
    if query is None:
        return pa.nulls(len(vectors), pa.float64())
    known = vectors.is_valid().to_numpy(zero_copy_only=False)
    matrix = vectors.drop_null().flatten().to_numpy(zero_copy_only=False).reshape(-1, len(query))
    wide = query.astype(np.float64)
    rows = max(1, _AT_ONCE // len(query))
    parts = [_distances(matrix[start : start + rows], wide, metric) for start in range(0, len(matrix), rows)]
    values = np.full(len(vectors), np.nan)
    if parts:
        values[known] = np.concatenate(parts)
    return pa.array(values, mask=~known)


def _distances(matrix: Vector, query: npt.NDArray[np.float64], metric: str) -> npt.NDArray[np.float64]:
    wide = matrix.astype(np.float64)
    match metric:
        case "cosine":
            norms = np.linalg.norm(wide, axis=1) * np.linalg.norm(query)
            similarity = np.divide(wide @ query, norms, out=np.zeros(len(wide)), where=norms > 0)
            return np.asarray(1.0 - similarity)
        case "dot":
            return np.asarray(-(wide @ query))
        case _:
            wide -= query
            wide *= wide
            return np.asarray(np.sqrt(wide.sum(axis=1)))


# Lance's vector search, through an index where there is one.


#: A search probes at least _PROBES partitions of an index, and at least sqrt(rows) / _PROBED_PART.
_PROBES = 20
_PROBED_PART = 10


def vector_index(entities: Entities, column: str, run: Run) -> TableIndex | None:
    """The vector index on a column, or None."""
    found = (index for index in run.caches.indices(entities.table) if index.kind.startswith("IVF"))
    return next((index for index in found if index.columns == (column,)), None)


def vector_search(entities: Entities, column: str, vector: Vector, metric: str, k: int, run: Run) -> dict[str, Any]:
    """The arguments of Lance's search for the k nearest vectors."""
    search: dict[str, Any] = {"column": column, "q": vector, "k": k, "metric": metric}
    index = vector_index(entities, column, run)
    if index is not None:
        run.note(f"index: {index.name} ({index.kind})")
        search["minimum_nprobes"] = _probes(index)
    return search


def overlooks(entities: Entities, index: TableIndex) -> bool:
    """Whether a search may miss a vector: it does not probe all partitions, or the index holds compressed vectors."""
    if index.kind != "IVF_FLAT":
        return True
    with translated(str(entities.table.location), f"read the partitions of index {index.name} of"):
        return len(entities.table.dataset.get_ivf_model(index.name).centroids) > _probes(index)


def _probes(index: TableIndex) -> int:
    return max(_PROBES, isqrt(index.rows) // _PROBED_PART)
