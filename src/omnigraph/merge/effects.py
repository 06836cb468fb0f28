"""A plan as effects on tables: one Lance transaction for each table, in three parts that only the transaction makes visible.

New rows are streamed from theirs into files of the target's table, changed rows too; the rows they replace and those that
go are marked. Nothing is joined, no index is built, and rows are never all in memory.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc
from lance.fragment import FragmentMetadata

from omnigraph import failpoints
from omnigraph.commit.context import CommitContext
from omnigraph.commit.model import ManifestState
from omnigraph.commit.protocol import Step, TableEffect
from omnigraph.merge.classify import Op
from omnigraph.merge.combine import align, flat, mix
from omnigraph.merge.difference import BATCH_ROWS_WITH_BLOBS, Difference
from omnigraph.merge.part import Part
from omnigraph.merge.plan import TablePlan
from omnigraph.storage.tables.staged import Staged, stage_delete, stage_fragments, write_rows
from omnigraph.storage.tables.table import Table


def stage(context: CommitContext, target: ManifestState, plan: TablePlan) -> TableEffect:
    """The effect on one table. One that the target still shares must be forked first, so it is staged only then."""

    def transaction(table: Table) -> Staged:
        return _transaction(table, plan)

    if context.forks.is_shared(target, plan.entry):
        return TableEffect(plan.entry, (Step(transaction),), forks=True)
    return TableEffect(plan.entry, (Step(transaction(plan.difference.ours.table)),))


def _transaction(table: Table, plan: TablePlan) -> Staged:
    fragments: list[FragmentMetadata] = []
    if plan.judged.new_rows:
        fragments += write_rows(table, _rows(plan, "insert"))
        failpoints.hit("branch_merge.after_append")
    if plan.judged.changed_rows or plan.judged.combined is not None or plan.decided_rows is not None:
        fragments += write_rows(table, _changed(plan))
        failpoints.hit("branch_merge.after_upsert")
    marked = pa.array(plan.whole.marked, pa.uint64())
    if not fragments:
        staged = stage_delete(table, row_addresses=marked)
    else:
        staged = stage_fragments(table, fragments, removed=marked if len(marked) else None)
    if len(marked):
        failpoints.hit("branch_merge.after_delete")
    return staged


def _changed(plan: TablePlan) -> Iterator[pa.RecordBatch]:
    """Rows that take the place of others, and those that were decided on."""
    yield from _rows(plan, "update")
    if plan.judged.combined is not None:
        yield from _combined(plan.difference, plan.judged.combined)
    if plan.decided_rows is not None:
        yield from plan.decided_rows.to_batches()


def _rows(plan: TablePlan, wanted: Op) -> Iterator[pa.RecordBatch]:
    """The rows of theirs that are written as they are."""
    judged: Part = plan.judged
    for change in plan.difference.changes(blobs="values"):
        after = change.after
        if change.op != wanted or after is None:
            continue
        if len(judged.skipped):
            after = after.filter(pc.invert(pc.is_in(after["id"], value_set=judged.skipped)))
        yield from after.select(plan.difference.columns).to_batches()


def _combined(difference: Difference, combined: pa.Table) -> Iterator[pa.RecordBatch]:
    """Rows mixed from both sides, a few at a time."""
    for start in range(0, combined.num_rows, BATCH_ROWS_WITH_BLOBS):
        part = combined.slice(start, BATCH_ROWS_WITH_BLOBS)
        ids = flat(part["id"])
        ours, _ = align(difference.ours.rows(ids, difference.columns, blobs="values"), ids)
        theirs, _ = align(difference.theirs.rows(ids, difference.columns, blobs="values"), ids)
        marks = {name: part[name].to_numpy() for name in part.column_names if name != "id"}
        yield from mix(ours, theirs, marks).to_batches()
