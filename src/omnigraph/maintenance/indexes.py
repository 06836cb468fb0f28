"""`ensure_indices`: build the indexes that a branch's schema declares, in one commit.

Indexes are built before the effect window of the branch; tables that the branch still shares are forked and indexed inside
it. If a table moves meanwhile, its indexes are built again; for the others the staged ones are kept. If the branch never
stands still, the last attempt holds its lock.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from typing import Any

from omnigraph.commit.context import CommitContext
from omnigraph.commit.messages import new_lineage
from omnigraph.commit.model import Lineage, ManifestState, TableEntry
from omnigraph.commit.protocol import Step, TableEffect, Write
from omnigraph.commit.staging_jobs import staging_job
from omnigraph.commit.updates import SchemaIs, check
from omnigraph.commit.write_loop import Prepared, Writing, carry_out, settle_pending
from omnigraph.commit.writers import ENSURE_INDICES
from omnigraph.errors import BadRequest
from omnigraph.ids import new_ulid
from omnigraph.language.schema.catalog import Catalog
from omnigraph.language.source import did_you_mean, nearest_name
from omnigraph.maintenance.index_building import stage_builds
from omnigraph.maintenance.index_plan import Build, Entity, TablePlan, plan_indexes
from omnigraph.maintenance.workplace import Workplace
from omnigraph.shown import Shown
from omnigraph.storage.tables.location import Location
from omnigraph.storage.tables.staged import Staged


@dataclass(frozen=True, slots=True)
class IndexStatus:
    """One declared index of one type. `reason`: why it could not be built yet; None if it was built."""

    type_key: str
    column: str
    kind: str
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class IndexReport(Shown):
    """What was built and what has to wait. `commit`: None when nothing was built."""

    built: tuple[IndexStatus, ...]
    pending: tuple[IndexStatus, ...]
    commit: str | None
    #: Whether nothing was built and `built` lists what would be.
    dry_run: bool = False

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values, ready for JSON."""
        said = asdict(self)
        return said if self.dry_run else {name: value for name, value in said.items() if name != "dry_run"}


def ensure_indices(
    context: CommitContext,
    catalog: Catalog,
    branch: str,
    requires: SchemaIs,
    types: Collection[str] | None = None,
    actor: str | None = None,
    workplace: Workplace | None = None,
    message: str | None = None,
    commit_id: str | None = None,
) -> IndexReport:
    """Build all declared indexes that are missing, for all types or for some (`node:Person`, `edge:Knows`).

    `requires`: the schema that declares them; `SchemaChanged` if another schema is accepted before the commit.
    `commit_id`: the id of the commit; None: a new id.
    """
    lineage = new_lineage(ENSURE_INDICES.commit_kind, actor, message, commit_id)
    place = workplace or Workplace(context.root)
    reconciliation = _Reconciliation(context, _chosen(catalog, types), branch, lineage, requires, place)
    settle_pending(context, branch)
    # Building takes long, and until the commit the index files look like garbage.
    locations = reconciliation.locations()
    with (
        staging_job(context.store, new_ulid(), ENSURE_INDICES.kind.value, branch, locations)
        if locations
        else nullcontext()
    ):
        return carry_out(reconciliation)


def preview(context: CommitContext, catalog: Catalog, branch: str, types: Collection[str] | None = None) -> IndexReport:
    """What `ensure_indices` would build now; changes nothing."""
    plans = _plans(context, _chosen(catalog, types), context.manifest.load(branch))
    return replace(_report(plans, None), dry_run=True)


def _chosen(catalog: Catalog, types: Collection[str] | None) -> tuple[Entity, ...]:
    entities: list[Entity] = [*catalog.nodes.values(), *catalog.edges.values()]
    if types is None:
        return tuple(entities)
    if isinstance(types, str):
        types = [types]
    known = [entity.type_key for entity in entities]
    for name in types:
        if name not in known:
            raise BadRequest(f"there is no type '{name}' to index{did_you_mean(nearest_name(name, known))}")
    return tuple(entity for entity in entities if entity.type_key in types)


def _plans(
    context: CommitContext, entities: Sequence[Entity], state: ManifestState
) -> list[tuple[TableEntry, TablePlan]]:
    # None: a schema change has dropped the type since the catalog was read.
    entries = ((entity, state.tables.get((entity.id, entity.incarnation))) for entity in entities)
    return [
        (entry, plan_indexes(entity, context.tables.open(entry.location, entry.version)))
        for entity, entry in entries
        if entry is not None
    ]


class _Reconciliation(Writing[IndexReport]):
    """One call: the wanted indexes, and those staged so far."""

    writer = ENSURE_INDICES

    def __init__(
        self,
        context: CommitContext,
        entities: tuple[Entity, ...],
        branch: str,
        lineage: Lineage,
        requires: SchemaIs,
        workplace: Workplace,
    ) -> None:
        self.context, self.branch, self.requires = context, branch, requires
        self._workplace = workplace
        self._schema = requires
        self._entities = entities
        self._lineage = lineage
        self._staged: dict[TableEntry, Staged] = {}

    def locations(self) -> list[Location]:
        """The tables that lack an index."""
        state = self.context.manifest.load(self.branch)
        check([self._schema], state)
        return [entry.location for entry, plan in _plans(self.context, self._entities, state) if plan.builds]

    def prepare(self, state: ManifestState) -> Prepared[IndexReport]:
        """Build what is missing now."""
        plans = _plans(self.context, self._entities, state)
        effects = [
            self._effect(entry, plan.builds, shared=self.context.forks.is_shared(state, entry))
            for entry, plan in plans
            if plan.builds
        ]
        if not effects:
            return Prepared(None, lambda _: _report(plans, None))
        write = Write(self.writer.kind, self.branch, self._lineage, tuple(effects), self._schema)
        return Prepared(write, lambda _: _report(plans, self._lineage.id))

    def _effect(self, entry: TableEntry, builds: tuple[Build, ...], *, shared: bool) -> TableEffect:
        if shared:
            return TableEffect(entry, (Step(lambda table: stage_builds(self._workplace, table, builds)),), forks=True)
        if entry not in self._staged:
            table = self.context.tables.open(entry.location, entry.version)
            self._staged[entry] = stage_builds(self._workplace, table, builds)
        return TableEffect(entry, (Step(self._staged[entry]),))


def _report(plans: Sequence[tuple[TableEntry, TablePlan]], commit: str | None) -> IndexReport:
    built = [
        IndexStatus(entry.key, build.index.column, build.lance_kind) for entry, plan in plans for build in plan.builds
    ]
    pending = [
        IndexStatus(entry.key, waiting.index.column, waiting.index.kind.value, waiting.reason)
        for entry, plan in plans
        for waiting in plan.waiting
    ]
    return IndexReport(tuple(built), tuple(pending), commit)
