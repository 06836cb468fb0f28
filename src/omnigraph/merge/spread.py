"""Where the changes of a table are judged: in this process, or on Spark when both sides have changed a lot.

A range of ids is one task, and tasks give the same parts wherever they run. Only what theirs changed in a table that ours
has moved too is worth it: where ours is the base there is nothing to compare, and rows are only streamed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import pyarrow.compute as pc

from omnigraph.commit.context import CommitContext
from omnigraph.commit.manifest import Manifest
from omnigraph.merge.difference import Difference, TableSpec, open_difference
from omnigraph.merge.judge import judge_table
from omnigraph.merge.part import Part, together
from omnigraph.spark.options import SparkOptions
from omnigraph.spark.runner import Inline, Runner, choose_runner
from omnigraph.storage.locks import BranchLocks
from omnigraph.storage.objects import open_store
from omnigraph.storage.root import Root
from omnigraph.storage.tables.handles import Tables

#: From so many rows to look at, a table that both sides have changed is judged on Spark (engine "auto").
LARGE_DELTA = 1_000_000
#: How many ids one task judges at most; there are at least as many tasks as run at once.
IDS_PER_TASK = 250_000


@dataclass(frozen=True)
class RangeTask:
    """One range of ids of one table of a merge."""

    root: Root
    spec: TableSpec


def judge_range(task: RangeTask) -> Part:
    """Judge one range of ids, in any process."""
    return judge_table(open_difference(_context(task.root), task.spec))


def judge_spread(context: CommitContext, difference: Difference, engine: str, spark: SparkOptions) -> Part:
    """Judge everything that theirs changed in a table, where the engine says."""
    if not difference.candidates:
        return Part()
    runner = _runner(difference, engine, spark)
    if isinstance(runner, Inline):
        return judge_table(difference)
    tasks = [RangeTask(context.root, spec) for spec in ranges(difference, runner.parallelism)]
    return together([Part(), *runner.run(judge_range, tasks)])


def _runner(difference: Difference, engine: str, spark: SparkOptions) -> Runner:
    if engine == "auto":
        large = difference.candidates >= LARGE_DELTA and not difference.spec.unopposed
        engine = "spark" if large else "local"
    return choose_runner(engine, spark, is_large=lambda: False)


def ranges(difference: Difference, at_least: int) -> list[TableSpec]:
    """A table of a merge cut into ranges of ids of about the same number of rows."""
    ids = difference.candidate_ids()
    ids = ids.take(pc.array_sort_indices(ids))
    count = max(1, min(len(ids), max(at_least, -(-len(ids) // IDS_PER_TASK))))
    ends = [ids[len(ids) * number // count - 1].as_py() for number in range(1, count)]
    bounds = [None, *dict.fromkeys(ends), None]
    return [replace(difference.spec, after_id=low, until_id=high) for low, high in pairwise(bounds)]


def _context(root: Root) -> CommitContext:
    store, tables = open_store(root), Tables(root)
    return CommitContext(root, store, tables, Manifest(store, tables), BranchLocks(store, root))
