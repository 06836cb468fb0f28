"""Which indexes a schema declares, which of them a table lacks, and which can be built now or must wait."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np

from omnigraph.language.schema.catalog import EdgeType, NodeType, Property
from omnigraph.language.types import PropType
from omnigraph.query.scan.entities import stored_columns
from omnigraph.query.search.analyser import INDEX_OPTIONS
from omnigraph.storage.tables.lance_errors import translated
from omnigraph.storage.tables.table import Table, TableIndex

_NODE_COLUMNS = ("id",)
_EDGE_COLUMNS = ("id", "src", "dst")


class IndexKind(StrEnum):
    """The kind of an index. Lance has several kinds of vector index; the number of vectors decides which one is used."""

    BTREE = "BTREE"
    INVERTED = "INVERTED"
    LABEL_LIST = "LABEL_LIST"
    VECTOR = "VECTOR"


@dataclass(frozen=True, slots=True)
class DeclaredIndex:
    """One index that a type should have: on a property, or on `id`, `src` or `dst`, for which `declared` is None."""

    column: str
    declared: Property | None
    kind: IndexKind

    @property
    def name(self) -> str:
        """The index's name in its table. It contains a property's stable id, so a rename does not change it."""
        owner = self.column if self.declared is None else f"p{self.declared.id}"
        return f"{owner}_{self.kind.lower()}"

    @property
    def metric(self) -> str:
        """The distance measure of a vector index."""
        assert self.declared is not None, "only properties hold vectors"
        return self.declared.metric


def index_kinds(kind: PropType, *, is_key: bool) -> tuple[IndexKind, ...]:
    """The indexes of a property of this type that is declared with `@key` or `@index`."""
    if kind.is_blob:
        return ()
    if kind.is_vector:
        return (IndexKind.VECTOR,)
    if kind.is_list:
        return (IndexKind.LABEL_LIST,)
    if kind.is_text and kind.enum is None:
        # Keys are looked up by equality, other texts are searched.
        return (IndexKind.BTREE, IndexKind.INVERTED) if is_key else (IndexKind.INVERTED,)
    return (IndexKind.BTREE,)


def declared_indexes(entity: NodeType | EdgeType) -> tuple[DeclaredIndex, ...]:
    """All indexes that the table of a type should have; a constraint on several columns gives one index per column."""
    fixed = _EDGE_COLUMNS if isinstance(entity, EdgeType) else _NODE_COLUMNS
    found = [DeclaredIndex(column, None, IndexKind.BTREE) for column in fixed]
    key = entity.key or ()
    indexed = {name for constraint in entity.indexes for name in constraint}
    for name, declared in entity.properties.items():
        if name in key or name in indexed:
            kinds = index_kinds(declared.type, is_key=name in key)
            found += [DeclaredIndex(name, declared, kind) for kind in kinds]
    return tuple(found)


# The declared indexes that one table lacks.


Entity = NodeType | EdgeType


@dataclass(frozen=True, slots=True)
class Build:
    """An index to build: its column in the table, and Lance's kind and options."""

    index: DeclaredIndex
    column: str
    lance_kind: str
    options: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Waiting:
    """An index that can not be built yet, and the reason."""

    index: DeclaredIndex
    reason: str


@dataclass(frozen=True, slots=True)
class TablePlan:
    """The indexes that one table lacks."""

    builds: tuple[Build, ...]
    waiting: tuple[Waiting, ...]


def plan_indexes(entity: Entity, table: Table) -> TablePlan:
    """Compare the declared indexes of a type with those of its table. An index with other settings counts as missing."""
    existing = table.indices()
    stored = stored_columns(entity, table)
    steps = [_step(index, table, stored[index.column], existing) for index in declared_indexes(entity)]
    return TablePlan(
        builds=tuple(step for step in steps if isinstance(step, Build)),
        waiting=tuple(step for step in steps if isinstance(step, Waiting)),
    )


def _step(
    index: DeclaredIndex, table: Table, column: str | None, existing: tuple[TableIndex, ...]
) -> Build | Waiting | None:
    if column is None:
        return Waiting(index, "the table has no column for it yet")
    if any(_serves(there, index, table, column) for there in existing):
        return None
    # An index of an empty table would cover none of the rows added later, so it waits for rows.
    if not table.count_rows():
        return Waiting(index, "the table is empty")
    if index.kind is not IndexKind.VECTOR:
        return Build(index, column, index.kind.value, INDEX_OPTIONS if index.kind is IndexKind.INVERTED else {})
    vectors = trainable_vectors(table, column, index.metric)
    if not vectors:
        return Waiting(index, "there are no vectors yet")
    shape = shape_for(vectors)
    return Build(index, column, shape.kind, {"metric": index.metric, "num_partitions": shape.partitions})


def _serves(there: TableIndex, index: DeclaredIndex, table: Table, column: str) -> bool:
    """Whether an existing index is the declared one, whatever its name."""
    if there.columns != (column,):
        return False
    if index.kind is IndexKind.VECTOR:
        return serves_vectors(there, table, column, index.metric)
    if index.kind is IndexKind.INVERTED:
        return serves_texts(there, table)
    return there.kind == index.kind


def serves_texts(index: TableIndex, table: Table) -> bool:
    """Whether a full-text index was built with the options of our analyser."""
    if index.kind != "INVERTED":
        return False
    # Not from `index.details`, because Lance leaves out the stop words there.
    with translated(str(table.location), f"read the settings of index {index.name} of"):
        segments = table.dataset.stats.index_stats(index.name)["indices"]
    return all(
        segment["params"].get(option) == value for segment in segments for option, value in INDEX_OPTIONS.items()
    )


# Vector indexes: how many vectors can train one, how many partitions it needs, and when a table has enough rows.


#: Small enough that a query reads few vectors, large enough that few partitions must be compared.
VECTORS_PER_PARTITION = 4096
MAX_PARTITIONS = 4096
#: Up to this number the index stores the vectors unchanged; above it one byte per number, a quarter of the space.
MAX_PLAIN_VECTORS = 262_144
#: An index is trained again when its partitions hold this many times their size; a lower factor would train at every load.
OUTGROWN = 4


@dataclass(frozen=True, slots=True)
class VectorShape:
    """The Lance kind of a vector index and its number of partitions."""

    kind: str
    partitions: int


def shape_for(vectors: int) -> VectorShape:
    """The shape of an index for this many vectors."""
    partitions = min(max(1, vectors // VECTORS_PER_PARTITION), MAX_PARTITIONS)
    return VectorShape("IVF_FLAT" if vectors <= MAX_PLAIN_VECTORS else "IVF_SQ", partitions)


def trainable_vectors(table: Table, column: str, metric: str) -> int:
    """How many vectors an index can be trained on. For cosine, zero vectors do not count."""
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
    """Whether a vector index has this metric and is not outgrown."""
    if not index.kind.startswith("IVF_") or str(index.details.get("metric_type")).lower() != metric:
        return False
    return not _is_outgrown(index, table, column, metric)


def _is_outgrown(index: TableIndex, table: Table, column: str, metric: str) -> bool:
    # Counting rows is free; only some of them may have a vector.
    most = shape_for(table.count_rows()).partitions
    if most < OUTGROWN:
        return False
    with translated(str(table.location), f"read the partitions of index {index.name} of"):
        limit = OUTGROWN * len(table.dataset.get_ivf_model(index.name).centroids)
    return most >= limit and shape_for(trainable_vectors(table, column, metric)).partitions >= limit
