"""Vector indexes: what there is to train one on, how large it should be, and when a table has outgrown it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from omnigraph.storage.tables.lance_errors import translated
from omnigraph.storage.tables.table import Table, TableIndex

#: Small enough that a query reads few vectors, large enough that there are few partitions to choose from.
VECTORS_PER_PARTITION = 4096
MAX_PARTITIONS = 4096
#: Up to here the index holds the vectors as they are; above it holds one byte for each number, a quarter of the space.
MAX_PLAIN_VECTORS = 262_144
#: Partitions that hold so many times what they should are trained anew; fewer would make every load a training.
OUTGROWN = 4


@dataclass(frozen=True, slots=True)
class VectorShape:
    """The Lance kind of a vector index and into how many partitions it is divided."""

    kind: str
    partitions: int


def shape_for(vectors: int) -> VectorShape:
    """The index for so many vectors."""
    partitions = min(max(1, vectors // VECTORS_PER_PARTITION), MAX_PARTITIONS)
    return VectorShape("IVF_FLAT" if vectors <= MAX_PLAIN_VECTORS else "IVF_SQ", partitions)


def trainable_vectors(table: Table, column: str, metric: str) -> int:
    """How many vectors an index can be trained on. For cosine only those count that have a direction."""
    there = f"`{column}` is not null"
    if metric != "cosine":
        return table.count_rows(there)
    count = 0
    for batch in table.scan([column], there):
        vectors = batch.column(column)
        matrix = vectors.flatten().to_numpy(zero_copy_only=False).reshape(len(vectors), -1)
        count += int(np.count_nonzero(np.einsum("ij,ij->i", matrix, matrix)))
    return count


def serves_vectors(index: TableIndex, table: Table, column: str, metric: str) -> bool:
    """Whether an index of a column answers for this metric and is not outgrown."""
    if not index.kind.startswith("IVF_") or str(index.details.get("metric_type")).lower() != metric:
        return False
    return not _is_outgrown(index, table, column, metric)


def _is_outgrown(index: TableIndex, table: Table, column: str, metric: str) -> bool:
    # Only some rows may have a vector, but rows are counted for nothing.
    most = shape_for(table.count_rows()).partitions
    if most < OUTGROWN:
        return False
    with translated(str(table.location), f"read the partitions of index {index.name} of"):
        limit = OUTGROWN * len(table.dataset.get_ivf_model(index.name).centroids)
    return most >= limit and shape_for(trainable_vectors(table, column, metric)).partitions >= limit
