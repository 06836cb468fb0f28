"""Writes the rows of a merge: reads them from both sides, combines them, and writes files that belong to no version yet.

A table judged in one piece is streamed in one piece. A table judged by tasks is written by tasks: each reads its own piece
and returns descriptions of the files. A task that is repeated writes other files, and only the files in its result count;
before the commit, their numbers of rows are compared with the judgement.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc
from lance.fragment import FragmentMetadata

from omnigraph import failpoints
from omnigraph.commit.context import CommitContext
from omnigraph.load.tasks import remove_files
from omnigraph.merge.classify import Op
from omnigraph.merge.combine import align, flat, mix
from omnigraph.merge.difference import BATCH_ROWS_WITH_BLOBS, Difference, TableSpec, open_difference
from omnigraph.merge.judge import judge_table
from omnigraph.merge.part import Part
from omnigraph.merge.plan import TablePlan
from omnigraph.merge.spread import Pieces, context_of, not_whole, require_each
from omnigraph.storage.objects import open_store
from omnigraph.storage.root import Root
from omnigraph.storage.tables.location import Location
from omnigraph.storage.tables.staged import staged_files, write_rows
from omnigraph.storage.tables.table import Table

failpoints.declare("branch_merge.piece_written")

_ALL: Collection[Op] = ("insert", "update")


def written(context: CommitContext, table: Table, plan: TablePlan) -> list[FragmentMetadata]:
    """Write all rows of a plan for their table; returns the new fragments."""
    if plan.pieces is not None:
        fragments = _by_tasks(context.root, table, plan.difference, plan.pieces)
        failpoints.hit("branch_merge.after_append")
        if plan.decided_rows is not None:
            fragments += write_rows(table, plan.decided_rows.to_batches())
        failpoints.hit("branch_merge.after_upsert")
        return fragments
    fragments = []
    if plan.judged.new_rows:
        fragments += write_rows(table, rows_of(plan.difference, plan.judged, ["insert"]))
        failpoints.hit("branch_merge.after_append")
    if plan.judged.changed_rows or plan.judged.combined is not None or plan.decided_rows is not None:
        fragments += write_rows(table, changed_rows(plan))
        failpoints.hit("branch_merge.after_upsert")
    return fragments


def changed_rows(plan: TablePlan) -> Iterator[pa.RecordBatch]:
    """Rows that replace others, and rows that come from the caller's decisions."""
    yield from rows_of(plan.difference, plan.judged, ["update"])
    yield from _mixed(plan.difference, plan.judged)
    if plan.decided_rows is not None:
        yield from plan.decided_rows.to_batches()


def rows_of(difference: Difference, judged: Part, wanted: Collection[Op]) -> Iterator[pa.RecordBatch]:
    """The rows of theirs that are written unchanged, of the kinds of change in `wanted`."""
    for change in difference.changes(blobs="values"):
        after = change.after
        if change.op not in wanted or after is None:
            continue
        if len(judged.skipped):
            after = after.filter(pc.invert(pc.is_in(after["id"], value_set=judged.skipped)))
        yield from after.select(difference.columns).to_batches()


def _mixed(difference: Difference, judged: Part) -> Iterator[pa.RecordBatch]:
    """Rows mixed from both sides, a few at a time."""
    combined = judged.combined
    for start in range(0, 0 if combined is None else combined.num_rows, BATCH_ROWS_WITH_BLOBS):
        assert combined is not None
        part = combined.slice(start, BATCH_ROWS_WITH_BLOBS)
        ids = flat(part["id"])
        ours, _ = align(difference.ours.rows(ids, difference.columns, blobs="values"), ids)
        theirs, _ = align(difference.theirs.rows(ids, difference.columns, blobs="values"), ids)
        marks = {name: part[name].to_numpy() for name in part.column_names if name != "id"}
        yield from mix(ours, theirs, marks).to_batches()


# --- by tasks ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class WriteTask:
    """One piece of a table to write, and the version of the target's table it is written for."""

    root: Root
    number: int
    spec: TableSpec
    location: Location
    version: int
    #: Whether some rows of theirs are left out or mixed with ours.
    alters: bool


@dataclass(frozen=True)
class WrittenPiece:
    """The fragments that the rows of one piece were written to."""

    number: int
    fragments: tuple[FragmentMetadata, ...]

    @property
    def rows(self) -> int:
        return sum(fragment.physical_rows for fragment in self.fragments)


def write_piece(task: WriteTask) -> WrittenPiece:
    """Write the rows of one piece, in any process. For pinned versions, judging again gives the same result."""
    context = context_of(task.root)
    difference = open_difference(context, task.spec)
    judged = judge_table(difference) if task.alters else Part()
    table = context.tables.open(task.location, task.version)
    fragments = write_rows(table, _all_rows(difference, judged))
    failpoints.hit("branch_merge.piece_written")
    return WrittenPiece(task.number, tuple(fragments))


def _all_rows(difference: Difference, judged: Part) -> Iterator[pa.RecordBatch]:
    yield from rows_of(difference, judged, _ALL)
    yield from _mixed(difference, judged)


def _by_tasks(root: Root, table: Table, difference: Difference, found: Pieces) -> list[FragmentMetadata]:
    """Write every piece that has rows, by tasks; on failure all written files are removed."""
    wanted = [piece for piece in found.judged if piece.rows]
    tasks = [WriteTask(root, piece.number, piece.spec, table.location, table.version, piece.alters) for piece in wanted]
    remove = partial(_remove, root, table.location)
    stage = f"merge {difference.spec.entity.name}: write"
    made = found.runner.run(write_piece, tasks, unused=remove, stage=stage)
    try:
        require_each([task.number for task in tasks], [piece.number for piece in made], difference)
        for piece, one in zip(wanted, made, strict=True):
            if piece.rows != one.rows:
                raise not_whole(difference, f"{one.rows} of {piece.rows} rows of piece {piece.number} were written")
    except BaseException:
        for one in made:
            remove(one)
        raise
    return [fragment for one in made for fragment in one.fragments]


def _remove(root: Root, location: Location, piece: WrittenPiece) -> None:
    """Remove the files of a piece that will not be committed, best effort; cleanup removes the rest."""
    remove_files(open_store(root), staged_files(location, piece.fragments))
