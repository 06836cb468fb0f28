"""Turns a plan into effects on tables: one Lance transaction per table for its rows, made visible by the commit.

If the merged schema changes a table's columns, an earlier transaction does that.

New and changed rows of theirs are streamed into files of the target's table (`writing`); deletion marks are set on replaced
and deleted rows. No rows are joined, no index is built, and the rows are never all in memory.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain

from omnigraph import failpoints
from omnigraph.commit.context import CommitContext
from omnigraph.commit.model import ManifestState, TableEntry
from omnigraph.commit.protocol import Step, TableEffect
from omnigraph.commit.updates import DropTable, SetSchema, SetTable, Update
from omnigraph.evolution.image import changes_table, in_steps, wanted_columns
from omnigraph.evolution.look import Entity
from omnigraph.language.schema.sameness import types_of
from omnigraph.merge.plan import Plan, TablePlan
from omnigraph.merge.writing import changed_rows, rows_of, written
from omnigraph.storage.tables.columns import Column, stage_columns
from omnigraph.storage.tables.location import Location
from omnigraph.storage.tables.staged import Staged, stage_create, stage_delete, stage_fragments
from omnigraph.storage.tables.table import Table
from omnigraph.values.columns import table_path, table_schema


@dataclass
class Effects:
    """The effects of a merge on the tables of the target, and the further updates of its commit."""

    tables: list[TableEffect] = field(default_factory=list)
    updates: list[Update] = field(default_factory=list)


def stage(context: CommitContext, target: ManifestState, plan: Plan) -> Effects:
    """The effects of a plan: tables whose columns or rows change, new tables, and dropped or renamed tables."""
    effects = Effects()
    by_number = {table.entity.id: table for table in plan.tables}
    before = {entity.id: entity for entity in types_of(plan.schema.ours)}
    for entity in types_of(plan.schema.ir):
        was, table = before.get(entity.id), by_number.get(entity.id)
        if was is None:
            effects.tables.append(_created(context, entity, table))
        else:
            _changed_table(context, target, (was, entity), table, effects)
    kept = {entity.id for entity in types_of(plan.schema.ir)}
    for entity in before.values():
        if entity.id not in kept:
            effects.updates.append(DropTable(target.tables[entity.id, entity.incarnation]))
    if plan.schema.target is not None:
        effects.updates.append(SetSchema(plan.schema.target))
    return effects


def _created(context: CommitContext, entity: Entity, plan: TablePlan | None) -> TableEffect:
    """The effect that creates a table which the target lacks, with all rows of theirs."""
    path = table_path(entity)
    entry = TableEntry(entity.type_key, path, (entity.id, entity.incarnation), 0, None, 0)
    schema, by_tasks = table_schema(entity), plan is not None and plan.pieces is not None
    rows = None
    if plan is not None and not by_tasks:
        rows = chain(rows_of(plan.difference, plan.judged, ["insert"]), changed_rows(plan))
    steps = [Step(stage_create(context.tables, Location(path), schema, rows))]
    if plan is not None and by_tasks:
        # Tasks can only write for an existing table.
        steps.append(Step(partial(_transaction, context=context, plan=plan)))
    return TableEffect(entry, tuple(steps), creates=True)


def _changed_table(
    context: CommitContext,
    target: ManifestState,
    entities: tuple[Entity, Entity],
    plan: TablePlan | None,
    effects: Effects,
) -> None:
    """Add the effect on a table of the target: its columns change first, then its rows, each in one transaction.

    A table that the target still shares must be forked first, so everything is staged only after that.
    """
    was, entity = entities
    stored = target.tables[was.id, was.incarnation]
    entry = replace(stored, key=entity.type_key)
    stages: list[Callable[[Table], Staged]] = []
    writes = plan is not None and plan.whole.writes
    columns = wanted_columns(was, entity) if changes_table(was, entity) else ()
    late = writes and any(_becomes_required(column, was) for column in columns)
    if columns:
        early = tuple(map(_nullable, columns)) if late else columns
        stages += [partial(stage_columns, columns=some) for some in in_steps(early)]
    if plan is not None and writes:
        stages.append(partial(_transaction, context=context, plan=plan))
    if late:
        # Rows without a value are first replaced by rows that have one; only then can the column become required.
        stages.append(partial(stage_columns, columns=tuple(Column(c.field, c.field.name) for c in columns)))
    if not stages:
        if entry != stored:
            effects.updates.append(SetTable(entry))
        return
    if context.forks.is_shared(target, stored):
        effects.tables.append(TableEffect(entry, tuple(map(Step, stages)), forks=True))
        return
    # The first step can be staged ahead; the later steps need the version it leads to.
    first, *rest = stages
    table = context.tables.open(stored.location, stored.version)
    effects.tables.append(TableEffect(entry, (Step(first(table)), *map(Step, rest))))


def _becomes_required(column: Column, was: Entity) -> bool:
    """Whether stored rows may lack a value in a column that becomes required."""
    if column.field.nullable or column.fill is not None or column.stored in ("id", "src", "dst"):
        return False
    return column.stored is None or was.properties[column.stored].type.nullable


def _nullable(column: Column) -> Column:
    fixed = column.stored in ("id", "src", "dst")
    return column if fixed else replace(column, field=column.field.with_nullable(True))


def _transaction(table: Table, context: CommitContext, plan: TablePlan) -> Staged:
    fragments, marked = written(context, table, plan), plan.whole.marked
    if not fragments:
        staged = stage_delete(table, row_addresses=marked)
    else:
        staged = stage_fragments(table, fragments, removed=marked if len(marked) else None)
    if len(marked):
        failpoints.hit("branch_merge.after_delete")
    return staged
