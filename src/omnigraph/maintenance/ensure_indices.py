"""`ensure_indices`: build the indexes that are declared and missing, in one commit."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

from omnigraph.commit.context import CommitContext
from omnigraph.commit.forks import Forks
from omnigraph.commit.model import Lineage, ManifestState, TableEntry
from omnigraph.commit.protocol import Step, TableEffect, Write, execute
from omnigraph.commit.sidecar import Kind
from omnigraph.ids import new_ulid, now_micros
from omnigraph.language.schema.catalog import EdgeType, NodeType
from omnigraph.maintenance.declared import VECTOR, DeclaredIndex, declared_indexes, vector_options
from omnigraph.query.entities import stored_columns
from omnigraph.storage.tables.staged import Staged, stage_index
from omnigraph.storage.tables.table import Table


@dataclass(frozen=True, slots=True)
class IndexStatus:
    """One index of one type; `reason` says why it could not be built yet."""

    type_key: str
    column: str
    kind: str
    reason: str | None = None

    def to_dict(self) -> dict[str, Any]:
        return {"type_key": self.type_key, "column": self.column, "kind": self.kind, "reason": self.reason}


@dataclass(frozen=True, slots=True)
class IndexReport:
    """What was built and what has to wait. `commit` is None when nothing was to be done."""

    built: tuple[IndexStatus, ...]
    pending: tuple[IndexStatus, ...]
    commit: str | None

    def to_dict(self) -> dict[str, Any]:
        return {
            "built": [status.to_dict() for status in self.built],
            "pending": [status.to_dict() for status in self.pending],
            "commit": self.commit,
        }


@dataclass(frozen=True, slots=True)
class _Build:
    """The indexes of one table that can be built now, and those that can not."""

    entry: TableEntry
    builds: tuple[tuple[str, DeclaredIndex, dict[str, Any]], ...]
    pending: tuple[IndexStatus, ...]


def ensure_indices(
    context: CommitContext, entities: Iterable[NodeType | EdgeType], branch: str, actor: str | None = None
) -> IndexReport:
    """Build what is declared and missing. Without anything to build nothing is written at all."""
    state = context.manifest.load(branch)
    plans = [_plan(context, state, entity) for entity in entities]
    pending = tuple(status for plan in plans for status in plan.pending)
    built = tuple(
        IndexStatus(plan.entry.key, declared.column, declared.kind) for plan in plans for _, declared, _ in plan.builds
    )
    if not built:
        return IndexReport((), pending, None)
    forks = Forks(context.manifest)
    effects = tuple(
        TableEffect(plan.entry, tuple(_steps(plan)), forks=forks.is_shared(state, plan.entry))
        for plan in plans
        if plan.builds
    )
    lineage = Lineage(new_ulid(), now_micros(), "maintenance", actor)
    after = execute(context, Write(Kind.ENSURE_INDICES, branch, lineage, effects))
    return IndexReport(built, pending, after.head)


def _plan(context: CommitContext, state: ManifestState, entity: NodeType | EdgeType) -> _Build:
    entry = state.tables[(entity.id, entity.incarnation)]
    table = context.tables.open(entry.location, entry.version)
    stored = stored_columns(entity, table)
    present = {index.name for index in table.indices()}
    builds = []
    pending = []
    for declared in declared_indexes(entity):
        column = stored[declared.column]
        if column is None or declared.name in present:
            continue
        options, reason = _readiness(table, column, declared, entry.row_count)
        if reason is None:
            builds.append((column, declared, options))
        else:
            pending.append(IndexStatus(entry.key, declared.column, declared.kind, reason))
    return _Build(entry, tuple(builds), tuple(pending))


def _readiness(table: Table, column: str, wanted: DeclaredIndex, rows: int) -> tuple[dict[str, Any], str | None]:
    """The options to build with, or why it is too early."""
    if rows == 0:
        return {}, "the table is empty"
    if wanted.kind != VECTOR:
        return wanted.options, None
    # As text: Lance does not know vector columns in expressions.
    vectors = table.count_rows(f"`{column}` is not null")
    if vectors == 0:
        return {}, "there are no vectors yet"
    assert wanted.declared is not None
    return vector_options(wanted.declared, vectors), None


def _steps(plan: _Build) -> Iterable[Step]:
    for column, declared, options in plan.builds:
        yield Step(partial(_stage, column, declared, options))


def _stage(column: str, declared: DeclaredIndex, options: dict[str, Any], table: Table) -> Staged:
    return stage_index(table, column, declared.kind, declared.name, options=options)
