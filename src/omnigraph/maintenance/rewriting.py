"""The tasks of a compaction, one after the other or as tasks of Spark."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from lance.optimize import CompactionTask, RewriteResult

from omnigraph.maintenance.workplace import Workplace
from omnigraph.spark.runner import Display, Inline
from omnigraph.storage.root import Root
from omnigraph.storage.tables.handles import Tables
from omnigraph.storage.tables.location import Location
from omnigraph.storage.tables.staged import execute_compaction
from omnigraph.storage.tables.table import Table


def rewrite(workplace: Workplace, table: Table, tasks: Sequence[CompactionTask]) -> list[RewriteResult]:
    """Write the fragments of every task; nothing becomes visible."""
    described = [task.json() for task in tasks]  # type: ignore[attr-defined]
    rows = [sum(part["physical_rows"] for part in json.loads(text)["task"]["fragments"]) for text in described]
    count = workplace.counter("compact", sum(rows))
    runner = workplace.runner(sum(rows), len(tasks))
    if isinstance(runner, Inline):
        # The table is open here, and Lance uses all cores for each task.
        results = []
        for task, size in zip(tasks, rows, strict=True):
            results.append(execute_compaction(table, task))
            count(size)
        return results
    specs = [
        RewriteSpec(workplace.root, table.location, table.version, text, size)
        for text, size in zip(described, rows, strict=True)
    ]
    written = runner.run(run_task, specs, display=Display(rows_of_task, count), stage="compact")
    return [RewriteResult.from_json(result.written) for result in written]  # type: ignore[attr-defined]


@dataclass(frozen=True)
class RewriteSpec:
    """One task of a compaction, as it travels to where it runs."""

    root: Root
    location: Location
    version: int
    task: str
    rows: int


@dataclass(frozen=True)
class Rewritten:
    """What Lance needs to commit the fragments of one task, and how many rows it has read."""

    written: str
    rows: int


def rows_of_task(result: Rewritten) -> int:
    """How many rows a task has read, to tell how far a compaction is."""
    return result.rows


def run_task(spec: RewriteSpec) -> Rewritten:
    """Write the fragments of one task, in any process."""
    table = Tables(spec.root).open(spec.location, spec.version)
    task = CompactionTask.from_json(spec.task)  # type: ignore[attr-defined]
    return Rewritten(execute_compaction(table, task).json(), spec.rows)  # type: ignore[attr-defined]
