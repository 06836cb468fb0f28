"""The rows that a merge writes: read from both sides, combined, and written to files that belong to no version yet.

A table that was judged in one piece is written in one piece, streaming. One that was judged by tasks is written by tasks: each
reads its own piece, and what comes back are descriptions of files. A task that is repeated writes other files, and only those
in its result count; before anything is committed, the rows in them are compared with the rows that were judged.
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
    """Write all rows of a plan for the table that they go to."""
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
    """Rows that replace others, and rows that a decision of the caller gives."""
    yield from rows_of(plan.difference, plan.judged, ["update"])
    yield from _mixed(plan.difference, plan.judged)
    if plan.decided_rows is not None:
        yield from plan.decided_rows.to_batches()


def rows_of(difference: Difference, judged: Part, wanted: Collection[Op]) -> Iterator[pa.RecordBatch]:
    """The rows of theirs that are written as they are."""
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
    """One piece of a table of a merge, and the version of the target's table that its rows are written for."""

    root: Root
    number: int
    spec: TableSpec
    location: Location
    version: int
    #: Some rows of theirs are left out or mixed with ours.
    alters: bool


@dataclass(frozen=True)
class WrittenPiece:
    """The files that the rows of one piece were written to."""

    number: int
    fragments: tuple[FragmentMetadata, ...]

    @property
    def rows(self) -> int:
        return sum(fragment.physical_rows for fragment in self.fragments)


def write_piece(task: WriteTask) -> WrittenPiece:
    """Write the rows of one piece, in any process. Of pinned versions the judgement is the same whoever makes it."""
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
    """Have every piece written that has rows; all of it is there, or nothing is left of it."""
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
    """Remove the files of a piece that will not be committed, best effort; cleanup removes what stays."""
    remove_files(open_store(root), staged_files(location, piece.fragments))
