"""What one table lacks of the indexes that its type declares: what can be built now, and what has to wait."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from omnigraph.language.schema.catalog import EdgeType, NodeType
from omnigraph.maintenance.index_kinds import DeclaredIndex, IndexKind, declared_indexes
from omnigraph.maintenance.text_indexes import serves_texts
from omnigraph.maintenance.vector_indexes import serves_vectors, shape_for, trainable_vectors
from omnigraph.query.scan.entities import stored_columns
from omnigraph.query.search.analyser import INDEX_OPTIONS
from omnigraph.storage.tables.table import Table, TableIndex

Entity = NodeType | EdgeType


@dataclass(frozen=True, slots=True)
class Build:
    """An index to build: the column as the table calls it, and Lance's kind and options."""

    index: DeclaredIndex
    column: str
    lance_kind: str
    options: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Waiting:
    """An index that can not be built yet, and why."""

    index: DeclaredIndex
    reason: str


@dataclass(frozen=True, slots=True)
class TablePlan:
    """What is missing of the indexes of one table."""

    builds: tuple[Build, ...]
    waiting: tuple[Waiting, ...]


def plan_indexes(entity: Entity, table: Table) -> TablePlan:
    """Compare what a type declares with what its table has. An index with other settings is as good as none."""
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
    # An index of an empty table would cover none of the rows that come, so it waits for them.
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
    """Whether an index is what is declared, whatever its name is."""
    if there.columns != (column,):
        return False
    if index.kind is IndexKind.VECTOR:
        return serves_vectors(there, table, column, index.metric)
    if index.kind is IndexKind.INVERTED:
        return serves_texts(there, table)
    return there.kind == index.kind
