"""What one table needs: indexes to build, indexes to fold new fragments into, fragments to rewrite.

The work is prepared on the published version while others write. Before its commit the table may have moved; `adapted`
keeps the work that still fits. The order is build, fold, compact: Lance compacts together only fragments that the same
indexes cover, and compaction updates the indexes.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

from lance import LanceOperation, Transaction
from lance.optimize import CompactionTask, RewriteResult

from omnigraph.commit.model import TableEntry
from omnigraph.commit.protocol import Step
from omnigraph.maintenance.index_building import stage_builds
from omnigraph.maintenance.index_plan import Entity, TablePlan, plan_indexes
from omnigraph.maintenance.workplace import Workplace
from omnigraph.spark.runner import Display, Inline
from omnigraph.storage.root import Root
from omnigraph.storage.tables.handles import Tables
from omnigraph.storage.tables.location import Location
from omnigraph.storage.tables.staged import (
    Staged,
    compaction_tasks,
    execute_compaction,
    stage_index_fold,
    stage_rewrites,
)
from omnigraph.storage.tables.table import Table, TableIndex

BETWEEN = "optimize.between_compact_and_index"


@dataclass(frozen=True)
class Survey:
    """What a table needs; nothing has been done yet."""

    indexes: TablePlan
    stale: tuple[str, ...]
    tasks: tuple[CompactionTask, ...]

    @property
    def has_work(self) -> bool:
        return bool(self.indexes.builds or self.stale or self.tasks)


@dataclass(frozen=True)
class Prepared:
    """Work on one table that is done except for its commit."""

    entry: TableEntry
    builds: Staged | None
    #: The fragment ids and index names of the table when the work was done.
    fragments: frozenset[int]
    indexes: frozenset[str]
    results: tuple[RewriteResult, ...]


def survey(entity: Entity, table: Table) -> Survey:
    """Find out what a table needs."""
    indexes = plan_indexes(entity, table)
    replaced = {build.index.name for build in indexes.builds}
    stale = tuple(index.name for index in table.indices() if index.name not in replaced and _is_stale(table, index))
    return Survey(indexes, stale, compaction_tasks(table, folded=replaced | set(stale)))


def prepare(entry: TableEntry, table: Table, found: Survey, workplace: Workplace) -> Prepared:
    """Build the missing indexes and rewrite the fragments; nothing becomes visible."""
    builds = stage_builds(workplace, table, found.indexes.builds) if found.indexes.builds else None
    results = tuple(rewrite(workplace, table, found.tasks)) if found.tasks else ()
    return Prepared(entry, builds, frozenset(table.fragment_ids), _names(table), results)


def adapted(work: Prepared, table: Table) -> tuple[Step, ...]:
    """The steps that commit prepared work on a table as it is published now."""
    steps: list[Step] = []
    built: frozenset[str] = frozenset()
    builds = _fitting_builds(work, table)
    if builds is not None:
        built = frozenset(index.name for index in _operation(builds).new_indices)
        steps.append(Step(builds))
    behind = {index.name for index in table.indices() if index.name not in built and _is_stale(table, index)}
    if built and not work.fragments.issuperset(table.fragment_ids):
        # Rows were added after the indexes were built.
        behind |= built
    if behind:
        names = tuple(sorted(behind))
        steps.append(Step(lambda head: stage_index_fold(head, names)))
    if work.results:
        steps.append(Step(lambda head: stage_rewrites(head, work.results)))
    return tuple(replace(step, failpoint=BETWEEN) if step is not steps[-1] else step for step in steps)


def _fitting_builds(work: Prepared, table: Table) -> Staged | None:
    """The built indexes, for a table that may have moved; None when its indexes, or the fragments they cover, changed."""
    builds = work.builds
    if builds is None or builds.read_version == table.version:
        return builds
    operation = _operation(builds)
    fits = work.fragments.issubset(table.fragment_ids) and _names(table) == work.indexes
    if not fits or operation.removed_indices:
        return None
    return replace(builds, read_version=table.version, work=Transaction(table.version, operation))


def _operation(builds: Staged) -> LanceOperation.CreateIndex:
    operation = builds.transaction.operation
    assert isinstance(operation, LanceOperation.CreateIndex)
    return operation


def _names(table: Table) -> frozenset[str]:
    return frozenset(index.name for index in table.indices())


def _is_stale(table: Table, index: TableIndex) -> bool:
    """Whether fragments with anything to index are not covered by the index."""
    missing = set(table.fragment_ids) - index.fragments
    if not missing or not index.kind.startswith("IVF_"):
        return bool(missing)
    # Lance can not fold fragments that contain no vector.
    (column,) = index.columns
    return table.count_rows_in(missing, f"`{column}` is not null") > 0


def missing_rows(table: Table, index: TableIndex) -> int:
    """How many rows lie in fragments that the index does not cover."""
    return sum(
        fragment.metadata.num_rows
        for fragment in table.dataset.get_fragments()
        if fragment.fragment_id not in index.fragments
    )


def rewrite(workplace: Workplace, table: Table, tasks: Sequence[CompactionTask]) -> list[RewriteResult]:
    """Write the new fragments of every task; nothing becomes visible."""
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
    """One task of a compaction, in a form that can be sent to another process."""

    root: Root
    location: Location
    version: int
    task: str
    rows: int


@dataclass(frozen=True)
class Rewritten:
    """The data that Lance needs to commit the fragments of one task, and the number of rows read."""

    written: str
    rows: int


def rows_of_task(result: Rewritten) -> int:
    """How many rows a task has read, to report progress."""
    return result.rows


def run_task(spec: RewriteSpec) -> Rewritten:
    """Write the fragments of one task, in any process."""
    table = Tables(spec.root).open(spec.location, spec.version)
    task = CompactionTask.from_json(spec.task)  # type: ignore[attr-defined]
    return Rewritten(execute_compaction(table, task).json(), spec.rows)  # type: ignore[attr-defined]
