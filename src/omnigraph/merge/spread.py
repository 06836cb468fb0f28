"""A table of a merge cut into pieces, each of which one task judges and later writes: in this process, or on Spark when large.

Tasks give the same wherever they run. A piece is a description: a range of ids, or some files where theirs has only added
files. What a task returns is small next to the rows it has read: counts, conflicts, packed places of rows, and the columns
that rules about many rows look at.
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

#: How many ids one task judges at most; there are at least as many tasks as run at once.
IDS_PER_TASK = 250_000


@dataclass(frozen=True)
class JudgeTask:
    """One piece of a table of a merge, as it travels to where it is judged."""

    root: Root
    number: int
    spec: TableSpec


@dataclass(frozen=True)
class JudgedPiece:
    """The judgement on one piece, without what only the writing of its rows needs."""

    number: int
    spec: TableSpec
    part: Part
    #: How many rows the piece will write.
    rows: int
    #: Rows of theirs that are left out or mixed with ours; whoever writes the piece finds out again which.
    alters: bool


@dataclass(frozen=True)
class Pieces:
    """A table whose rows are read and written by tasks: what runs them, and the pieces as they were judged."""

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
    """Judge everything that theirs changed in a table, where the engine says; None: in one piece, in this process."""
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
    """Refuse to go on unless every piece has exactly one result."""
    if list(asked) != list(came):
        raise not_whole(difference, f"{len(came)} results came for {len(asked)} pieces, or others than were asked for")


def not_whole(difference: Difference, found: str) -> OmnigraphError:
    """The error of a merge whose tasks have not done what they were asked."""
    name = difference.spec.entity.type_key
    return OmnigraphError(
        f"the merge of {name} is not whole: {found}; nothing was published, try again and report this"
    )


def pieces(difference: Difference, at_least: int) -> list[TableSpec]:
    """A table of a merge in pieces of about the same number of rows."""
    if difference.only_new:
        return [replace(difference.spec, fragments=numbers) for numbers in _files(difference, at_least)]
    wanted = max(at_least, -(-difference.candidates // IDS_PER_TASK))
    found = spans(difference.candidate_batches(), difference.candidates, wanted)
    return [replace(difference.spec, after_id=span.after_id, until_id=span.until_id) for span in found]


def _files(difference: Difference, at_least: int) -> Iterator[tuple[int, ...]]:
    """The files that theirs has added, some together until they have as many rows as one task takes."""
    after = difference.deltas[0].after
    assert after is not None, "a table that has only new rows has rows"
    rows = min(IDS_PER_TASK, -(-difference.candidates // max(at_least, 1)))
    for group in grouped_fragments(after.fragments, rows):
        yield group.ids


def context_of(root: Root) -> CommitContext:
    """A context of its own for a task, which may run in any process."""
    store, tables = open_store(root), Tables(root)
    return CommitContext(root, store, tables, Manifest(store, tables), BranchLocks(store, root))
