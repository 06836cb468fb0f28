"""`optimize`: compact the tables of a branch and bring their indexes up to date, in one commit.

Building indexes and rewriting fragments takes long, so it happens while others write, under a staging record. Only the
commits, and folding the newest rows into existing indexes, happen inside the effect window. Work on anything that a writer
changed meanwhile is dropped and left for the next run: no writer waits or restarts because of maintenance.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from omnigraph.commit.audit import AUDIT_PATH
from omnigraph.commit.context import CommitContext
from omnigraph.commit.layout import settle_layout
from omnigraph.commit.messages import new_lineage
from omnigraph.commit.model import Lineage, ManifestState, TableEntry, sorted_entries
from omnigraph.commit.protocol import TableEffect, Write
from omnigraph.commit.recovery import heal, pending
from omnigraph.commit.staging_jobs import staging_job
from omnigraph.commit.updates import SchemaIs, check
from omnigraph.commit.write_loop import Prepared, Writing, carry_out
from omnigraph.commit.writers import OPTIMIZE
from omnigraph.errors import Conflict, ExpectedVersionMismatch, OmnigraphError, StorageError
from omnigraph.ids import new_ulid
from omnigraph.language.schema.catalog import Catalog
from omnigraph.maintenance.index_plan import Entity, TablePlan
from omnigraph.maintenance.table_upkeep import Prepared as Upkeep
from omnigraph.maintenance.table_upkeep import Survey, adapted, prepare, survey
from omnigraph.maintenance.workplace import Workplace
from omnigraph.shown import Shown
from omnigraph.storage.tables.commit import commit_staged
from omnigraph.storage.tables.location import Location
from omnigraph.storage.tables.staged import stage_compaction

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class PendingIndex:
    """A declared index that can not be built yet, and the reason."""

    property: str
    reason: str


def pending_indexes(plan: TablePlan | None) -> tuple[PendingIndex, ...]:
    """The pending indexes of a table; a property with two pending indexes is listed once."""
    waiting = () if plan is None else plan.waiting
    return tuple(dict.fromkeys(PendingIndex(one.index.column, one.reason) for one in waiting))


@dataclass(frozen=True, slots=True)
class OptimizedTable:
    """What happened to one table. `skipped`: why it was left alone; None if it was not."""

    type_key: str
    fragments_before: int
    fragments_removed: int
    fragments_added: int
    committed: bool
    skipped: str | None
    published_dataset_version: int
    lance_head_version: int | None
    pending_indexes: tuple[PendingIndex, ...]
    #: The names of the indexes that were built, and of the indexes into which new rows were folded.
    built_indexes: tuple[str, ...] = ()
    folded_indexes: tuple[str, ...] = ()

    @property
    def fragments_after(self) -> int:
        return self.fragments_before - self.fragments_removed + self.fragments_added

    def to_dict(self) -> dict[str, Any]:
        return {
            "type_key": self.type_key,
            "fragments_removed": self.fragments_removed,
            "fragments_added": self.fragments_added,
            "committed": self.committed,
            "skipped": self.skipped,
            "published_dataset_version": self.published_dataset_version,
            "lance_head_version": self.lance_head_version,
            "pending_indexes": [{"property": one.property, "reason": one.reason} for one in self.pending_indexes],
        }

    def to_plan(self) -> dict[str, Any]:
        """The same for a dry run, with the names of the indexes."""
        indexes = {"built_indexes": list(self.built_indexes), "folded_indexes": list(self.folded_indexes)}
        return self.to_dict() | indexes


@dataclass(frozen=True, slots=True)
class OptimizeReport(Shown):
    """What `optimize` did to each table, or with `dry_run` would do. `commit`: None when no table needed anything."""

    datasets: tuple[OptimizedTable, ...]
    commit: str | None
    dry_run: bool = False

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values, ready for JSON."""
        if self.dry_run:
            return {"datasets": [table.to_plan() for table in self.datasets], "commit": None, "dry_run": True}
        return {"datasets": [table.to_dict() for table in self.datasets], "commit": self.commit}


def optimize(
    context: CommitContext,
    catalog: Catalog,
    branch: str,
    requires: SchemaIs,
    actor: str | None = None,
    workplace: Workplace | None = None,
    message: str | None = None,
    commit_id: str | None = None,
) -> OptimizeReport:
    """Compact every table that a branch owns and complete its indexes; a second run does nothing.

    `requires`: the schema of the catalog; `SchemaChanged` if another schema is accepted before the commit.
    `commit_id`: the id of the commit; None: a new id.
    """
    # Raises if the branch does not exist, before a lock is taken for it.
    context.manifest.load(branch)
    with context.locks.hold(branch):
        heal(context, holding={branch})
    state = context.manifest.load(branch)
    check([requires], state)
    run = _Run(context, catalog, branch, new_lineage(OPTIMIZE.commit_kind, actor, message, commit_id))
    tables = [run.look(entry) for entry in sorted_entries(state.tables.values())]
    needing = [table for table in tables if table.found is not None and table.found.has_work]
    if needing:
        with staging_job(
            context.store, new_ulid(), OPTIMIZE.kind.value, branch, [table.entry.location for table in needing]
        ):
            prepared = [run.prepare(table, workplace or Workplace(context.root)) for table in needing]
            committed = run.commit(prepared, requires)
    else:
        committed = {}
    # A commit that was made is reported even if the compaction after it fails; the next run does that.
    _compact_own_datasets(context, branch, postponed=(Conflict, StorageError) if committed else (Conflict,))
    return OptimizeReport(
        tuple(_report(context, table, committed.get(table.entry.path)) for table in tables),
        run.lineage.id if committed else None,
    )


def preview(context: CommitContext, catalog: Catalog, branch: str) -> OptimizeReport:
    """What `optimize` would do now. Changes nothing; pending writes, which `optimize` would settle first, stay pending."""
    state = context.manifest.load(branch)
    run = _Run(context, catalog, branch, new_lineage("maintenance"))
    waiting = next((sidecar for sidecar in pending(context) if sidecar.branch == branch), None)
    tables = [run.look(entry) for entry in sorted_entries(state.tables.values())]
    if waiting is not None:
        first = f"operation {waiting.operation_id} is settled first, see `omnigraph recovery list`"
        tables = [table if table.skipped is None else replace(table, skipped=first) for table in tables]
    return OptimizeReport(tuple(_planned(table) for table in tables), None, dry_run=True)


@dataclass(frozen=True)
class _Looked:
    """A table before the work: what it needs, or why it is left alone."""

    entry: TableEntry
    fragments: int
    head: int | None
    found: Survey | None
    skipped: str | None = None


class _Run:
    """One call, from the first look to the commit."""

    def __init__(self, context: CommitContext, catalog: Catalog, branch: str, lineage: Lineage) -> None:
        self._context = context
        self._branch = branch
        self.lineage = lineage
        entities: Iterable[Entity] = [*catalog.nodes.values(), *catalog.edges.values()]
        self._entities = {(entity.id, entity.incarnation): entity for entity in entities}

    def look(self, entry: TableEntry) -> _Looked:
        """What a table needs; drifted tables and tables shared with the parent branch are left alone."""
        context = self._context
        state = context.manifest.load(self._branch)
        table = context.tables.open(entry.location, entry.version)
        if context.forks.is_shared(state, entry):
            return _Looked(entry, table.fragment_count, None, None, "shared with the branch it was made from")
        head = context.tables.head_version(entry.location, likely=entry.version)
        entity = self._entities.get(entry.identity)
        if head != entry.version:
            return _Looked(entry, table.fragment_count, head, None, _drifted(entry, head))
        if entity is None:
            return _Looked(entry, table.fragment_count, head, None, "the schema has changed meanwhile")
        return _Looked(entry, table.fragment_count, head, survey(entity, table))

    def prepare(self, looked: _Looked, workplace: Workplace) -> Upkeep:
        """Do the long part of the work on one table."""
        assert looked.found is not None
        entry = looked.entry
        table = self._context.tables.open(entry.location, entry.version)
        return prepare(entry, table, looked.found, workplace)

    def commit(self, done: Sequence[Upkeep], requires: SchemaIs) -> dict[str, TableEntry]:
        """Commit the work that still fits; returns the published table entries by path."""
        try:
            return carry_out(_Fitting(self._context, self._branch, self.lineage, done, requires))
        except ExpectedVersionMismatch as moved:
            _log.info("maintenance of branch '%s' is left for another time: %s", self._branch, moved)
            return {}


class _Fitting(Writing[dict[str, TableEntry]]):
    """The commit of the prepared work, as far as it fits the tables at that time."""

    writer = OPTIMIZE

    def __init__(
        self, context: CommitContext, branch: str, lineage: Lineage, done: Sequence[Upkeep], requires: SchemaIs
    ) -> None:
        self.context, self.branch, self.requires = context, branch, requires
        self._lineage, self._done, self._schema = lineage, done, requires

    def prepare(self, state: ManifestState) -> Prepared[dict[str, TableEntry]]:
        effects = [effect for work in self._done if (effect := self._effect(state, work)) is not None]
        if not effects:
            return Prepared(None, lambda _: {})

        def published(after: ManifestState | None) -> dict[str, TableEntry]:
            assert after is not None, "something was written"
            return {effect.entry.path: after.tables[effect.entry.identity] for effect in effects}

        write = Write(self.writer.kind, self.branch, self._lineage, tuple(effects), self._schema)
        return Prepared(write, published)

    def _effect(self, state: ManifestState, work: Upkeep) -> TableEffect | None:
        """The effect on a table as it is now; None when it was dropped or drifted, or no work fits."""
        tables = self.context.tables
        entry = state.tables.get(work.entry.identity)
        if entry is None or entry.location != work.entry.location:
            return None
        if tables.head_version(entry.location, likely=entry.version) != entry.version:
            return None
        steps = adapted(work, tables.open(entry.location, entry.version))
        return TableEffect(entry, steps) if steps else None


def _drifted(entry: TableEntry, head: int | None) -> str:
    return (
        f"drift: storage is at version {head}, the graph publishes {entry.version}; look at it with `omnigraph repair`"
    )


def _untouched(looked: _Looked) -> OptimizedTable:
    entry, found = looked.entry, looked.found
    return OptimizedTable(
        type_key=entry.key,
        fragments_before=looked.fragments,
        fragments_removed=0,
        fragments_added=0,
        committed=False,
        skipped=looked.skipped,
        published_dataset_version=entry.version,
        lance_head_version=looked.head,
        pending_indexes=pending_indexes(found.indexes if found is not None else None),
    )


def _planned(looked: _Looked) -> OptimizedTable:
    found = looked.found
    if found is None:
        return _untouched(looked)
    return replace(
        _untouched(looked),
        fragments_removed=sum(len(task.fragments) for task in found.tasks),
        # A task makes one full fragment and at most one smaller rest.
        fragments_added=len(found.tasks),
        built_indexes=tuple(build.index.name for build in found.indexes.builds),
        folded_indexes=found.stale,
    )


def _report(context: CommitContext, looked: _Looked, after: TableEntry | None) -> OptimizedTable:
    entry, found = looked.entry, looked.found
    report = _untouched(looked)
    if after is None:
        if found is not None and found.has_work:
            return replace(report, skipped="it was being written at the same time; run optimize again")
        return report
    before = set(context.tables.open(entry.location, entry.version).fragment_ids)
    table = context.tables.open(after.location, after.version)
    now = set(table.fragment_ids)
    there = {index.name for index in table.indices()}
    assert found is not None, "only what was looked at is committed"
    return replace(
        report,
        built_indexes=tuple(build.index.name for build in found.indexes.builds if build.index.name in there),
        folded_indexes=found.stale,
        fragments_removed=len(before - now),
        fragments_added=len(now - before),
        committed=True,
        published_dataset_version=after.version,
        lance_head_version=after.version,
    )


# --- datasets without a pin -------------------------------------------------------------------------------------------


def _compact_own_datasets(context: CommitContext, branch: str, *, postponed: tuple[type[OmnigraphError], ...]) -> None:
    """Compact this branch's `__manifest` and the audit log. Errors of the `postponed` kinds are logged, others raised.

    A conflict means that another process writes the dataset at the same time; it goes first.
    """
    with context.locks.hold(branch), _another_time("__manifest", postponed):
        settle_layout(context, branch)
    with _another_time(AUDIT_PATH, postponed):
        table = context.tables.open_head(Location(AUDIT_PATH))
        staged = None if table is None else stage_compaction(table)
        if staged is not None:
            commit_staged(context.tables, staged, expected_version=staged.read_version, transaction_id=new_ulid())


@contextmanager
def _another_time(what: str, postponed: tuple[type[OmnigraphError], ...]) -> Iterator[None]:
    try:
        yield
    except postponed as error:
        _log.info("%s is compacted another time: %s", what, error)
