"""Where the tasks of a compaction run: in this process, or as tasks of Spark when there is much to rewrite."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from lance.optimize import CompactionTask, RewriteResult

from omnigraph.spark.options import SparkOptions, refuse_unknown_engine
from omnigraph.spark.runner import choose_runner
from omnigraph.storage.root import Root
from omnigraph.storage.tables.handles import Tables
from omnigraph.storage.tables.location import Location
from omnigraph.storage.tables.staged import execute_compaction
from omnigraph.storage.tables.table import Table

#: Below this many rows a rewrite takes less time than it takes to start Spark.
ROWS_FOR_SPARK = 5_000_000


class Rewriter(Protocol):
    """Carries out the tasks of the compaction of one table."""

    def rewrite(self, root: Root, table: Table, tasks: Sequence[CompactionTask]) -> list[RewriteResult]: ...


class InProcess:
    """One task after the other; Lance uses all cores for each."""

    def rewrite(self, root: Root, table: Table, tasks: Sequence[CompactionTask]) -> list[RewriteResult]:
        return [execute_compaction(table, task) for task in tasks]


@dataclass(frozen=True)
class OnSpark:
    """Tasks of Spark; with `large_only` a table with little to rewrite stays in this process."""

    options: SparkOptions
    large_only: bool

    def rewrite(self, root: Root, table: Table, tasks: Sequence[CompactionTask]) -> list[RewriteResult]:
        described = [task.json() for task in tasks]  # type: ignore[attr-defined]
        if self.large_only and (len(tasks) < 2 or sum(map(_rows, described)) < ROWS_FOR_SPARK):
            return InProcess().rewrite(root, table, tasks)
        specs = [RewriteSpec(root, table.location, table.version, text) for text in described]
        results = choose_runner("spark", self.options, is_large=lambda: True).run(run_task, specs)
        return [RewriteResult.from_json(text) for text in results]  # type: ignore[attr-defined]


def rewriter_for(engine: str, options: SparkOptions) -> Rewriter:
    """Where a caller wants the work done: "local", "spark", or "auto" for whichever is faster."""
    refuse_unknown_engine(engine)
    return InProcess() if engine == "local" else OnSpark(options, large_only=engine == "auto")


@dataclass(frozen=True)
class RewriteSpec:
    """One task of a compaction, as it travels to where it runs."""

    root: Root
    location: Location
    version: int
    task: str


def run_task(spec: RewriteSpec) -> str:
    """Write the fragments of one task, in any process; returns what Lance needs to commit them."""
    table = Tables(spec.root).open(spec.location, spec.version)
    task = CompactionTask.from_json(spec.task)  # type: ignore[attr-defined]
    written: str = execute_compaction(table, task).json()  # type: ignore[attr-defined]
    return written


def _rows(task: str) -> int:
    return sum(fragment["physical_rows"] for fragment in json.loads(task)["task"]["fragments"])
