"""Cuts a table of a merge into pieces; one task judges and later writes each piece: here, or on Spark for large tables.

Tasks give the same results wherever they run. A piece is a description: a range of ids, or some files if theirs has only added
files. The result of a task is small compared to the rows it reads: counts, conflicts, packed row addresses, and the columns
that rules about many rows need.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from omnigraph.changes.spans import spans
from omnigraph.commit.context import CommitContext
from omnigraph.commit.manifest import Manifest
from omnigraph.errors import OmnigraphError
from omnigraph.maintenance.workplace import Workplace
from omnigraph.merge.difference import Difference, TableSpec, open_difference
from omnigraph.merge.judge import judge_table
from omnigraph.merge.part import NO_IDS, Part, together
from omnigraph.spark.options import SparkOptions
from omnigraph.spark.runner import Inline, Runner
from omnigraph.storage.locks import BranchLocks
from omnigraph.storage.objects import open_store
from omnigraph.storage.root import Root
from omnigraph.storage.tables.handles import Tables
from omnigraph.storage.tables.table import grouped_fragments

#: The most ids that one task judges; there are at least as many tasks as can run concurrently.
IDS_PER_TASK = 250_000


@dataclass(frozen=True)
class JudgeTask:
    """One piece of a table to judge, in a form that can be sent to another process."""

    root: Root
    number: int
    spec: TableSpec


@dataclass(frozen=True)
class JudgedPiece:
    """The judgement on one piece, without the data that is needed only to write its rows."""

    number: int
    spec: TableSpec
    part: Part
    #: How many rows the piece will write.
    rows: int
    #: Whether some rows of theirs are left out or mixed with ours; the write task judges again to find out which.
    alters: bool


@dataclass(frozen=True)
class Pieces:
    """A table whose rows are read and written by tasks: the runner of the tasks, and the judged pieces."""

    runner: Runner
    judged: tuple[JudgedPiece, ...]


def judge_piece(task: JudgeTask) -> JudgedPiece:
    """Judge one piece, in any process."""
    part = judge_table(open_difference(context_of(task.root), task.spec))
    alters = len(part.skipped) > 0 or part.combined is not None
    slim = replace(part, skipped=NO_IDS, combined=None)
    return JudgedPiece(task.number, task.spec, slim, part.written_rows, alters)


def judge_spread(
    context: CommitContext, difference: Difference, engine: str, spark: SparkOptions
) -> tuple[Part, Pieces | None]:
    """Judge all changes of theirs in a table, where the engine decides. Pieces are None if this process judges it."""
    if not difference.candidates:
        return Part(), None
    most = -(-difference.candidates // IDS_PER_TASK)
    runner = Workplace(context.root, engine, spark).runner(difference.candidates, most)
    if isinstance(runner, Inline):
        return judge_table(difference), None
    specs = pieces(difference, runner.parallelism)
    tasks = [JudgeTask(context.root, number, spec) for number, spec in enumerate(specs)]
    judged = runner.run(judge_piece, tasks, stage=f"merge {difference.spec.entity.name}: compare")
    require_each([task.number for task in tasks], [piece.number for piece in judged], difference)
    return together([Part(), *(piece.part for piece in judged)]), Pieces(runner, tuple(judged))


def require_each(asked: Sequence[int], came: Sequence[int], difference: Difference) -> None:
    """Raise unless every piece has exactly one result, in order."""
    if list(asked) != list(came):
        raise not_whole(difference, f"{len(came)} results came for {len(asked)} pieces, or others than were asked for")


def not_whole(difference: Difference, found: str) -> OmnigraphError:
    """The error of a merge whose tasks returned incomplete results."""
    name = difference.spec.entity.type_key
    return OmnigraphError(
        f"the merge of {name} is not whole: {found}; nothing was published, try again and report this"
    )


def pieces(difference: Difference, at_least: int) -> list[TableSpec]:
    """Cut a table of a merge into pieces with about the same number of rows."""
    if difference.only_new:
        return [replace(difference.spec, fragments=numbers) for numbers in _files(difference, at_least)]
    wanted = max(at_least, -(-difference.candidates // IDS_PER_TASK))
    found = spans(difference.candidate_batches(), difference.candidates, wanted)
    return [replace(difference.spec, after_id=span.after_id, until_id=span.until_id) for span in found]


def _files(difference: Difference, at_least: int) -> Iterator[tuple[int, ...]]:
    """The ids of the fragments that theirs has added, grouped so that each group has rows for about one task."""
    after = difference.deltas[0].after
    assert after is not None, "a table that has only new rows has rows"
    rows = min(IDS_PER_TASK, -(-difference.candidates // max(at_least, 1)))
    for group in grouped_fragments(after.fragments, rows):
        yield group.ids


def context_of(root: Root) -> CommitContext:
    """A commit context for a task, which may run in any process."""
    store, tables = open_store(root), Tables(root)
    return CommitContext(root, store, tables, Manifest(store, tables), BranchLocks(store, root))
