"""What one table lacks of the indexes that its type declares: what can be built now, and what has to wait."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from omnigraph.language.schema.catalog import EntityType
from omnigraph.maintenance.index_kinds import DeclaredIndex, IndexKind, declared_indexes
from omnigraph.maintenance.vector_indexes import fits, shape_for, trainable_vectors
from omnigraph.storage.tables.staged import Staged, stage_index, stage_indexes
from omnigraph.storage.tables.table import Table, TableIndex
from omnigraph.values.columns import stored_name
from omnigraph.values.text_index import TEXT_INDEX_OPTIONS

_LANCE_KINDS = {IndexKind.BTREE: "BTREE", IndexKind.TEXT: "INVERTED", IndexKind.LABELS: "LABEL_LIST"}


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

    builds: tuple[Build, ...] = field(default=())
    waiting: tuple[Waiting, ...] = field(default=())


def plan_indexes(entity: EntityType, table: Table) -> TablePlan:
    """Compare what a type declares with what its table has; an index of another kind or with other settings is no index."""
    existing = table.indices()
    steps = [_step(index, table, existing) for index in declared_indexes(entity)]
    return TablePlan(
        builds=tuple(step for step in steps if isinstance(step, Build)),
        waiting=tuple(step for step in steps if isinstance(step, Waiting)),
    )


def stage_builds(table: Table, builds: tuple[Build, ...]) -> Staged:
    """Build the indexes and stage them as one transaction; each takes the place of one with the same name."""
    return stage_indexes(
        [
            stage_index(table, build.column, build.lance_kind, build.index.name, options=build.options)
            for build in builds
        ]
    )


def _step(index: DeclaredIndex, table: Table, existing: tuple[TableIndex, ...]) -> Build | Waiting | None:
    column = index.on if index.declared is None else stored_name(table.schema, index.declared)
    if column is None:
        return Waiting(index, "the table has no column for it yet")
    if any(_serves(there, index, table, column) for there in existing):
        return None
    # An index of an empty table would never cover the rows that come, so it waits for them.
    if not table.count_rows():
        return Waiting(index, "no rows yet")
    if index.kind is not IndexKind.VECTOR:
        options = TEXT_INDEX_OPTIONS if index.kind is IndexKind.TEXT else {}
        return Build(index, column, _LANCE_KINDS[index.kind], options)
    metric = _metric(index)
    vectors = trainable_vectors(table, column, metric)
    if not vectors:
        return Waiting(index, "no vectors to train on yet")
    shape = shape_for(vectors)
    return Build(index, column, shape.kind, {"metric": metric, "num_partitions": shape.partitions})


def _serves(there: TableIndex, index: DeclaredIndex, table: Table, column: str) -> bool:
    """Whether an index is what is declared, whatever its name is."""
    if there.columns != (column,):
        return False
    if index.kind is IndexKind.VECTOR:
        return fits(there, table, column, _metric(index))
    if index.kind is IndexKind.TEXT and any(
        there.details.get(key) != value for key, value in TEXT_INDEX_OPTIONS.items()
    ):
        return False
    return there.kind == _LANCE_KINDS[index.kind]


def _metric(index: DeclaredIndex) -> str:
    assert index.declared is not None, "only properties hold vectors"
    return index.declared.metric
