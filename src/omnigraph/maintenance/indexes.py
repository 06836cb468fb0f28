"""`ensure_indices`: bring the indexes of a branch to what its schema declares, in one commit.

Indexes are built before the effect window of the branch; only tables that the branch still shares are forked, and then
built, inside it. A table that moved meanwhile is built again, the others keep what was staged. A branch that never
stands still is held for the last attempt.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import asdict, dataclass
from typing import Any

from omnigraph.commit.context import CommitContext
from omnigraph.commit.model import Commit, Lineage, TableEntry
from omnigraph.commit.protocol import Step, TableEffect, Write, execute
from omnigraph.commit.recovery import heal
from omnigraph.commit.sidecar import Kind, list_sidecars
from omnigraph.errors import BadRequest, ExpectedVersionMismatch
from omnigraph.ids import new_ulid, now_micros
from omnigraph.language.schema.catalog import Catalog, EdgeType, NodeType
from omnigraph.language.suggest import did_you_mean, nearest_name
from omnigraph.maintenance.index_kinds import DeclaredIndex
from omnigraph.maintenance.index_plan import Build, plan_indexes, stage_builds
from omnigraph.storage.locks import HeldLock
from omnigraph.storage.tables.staged import Staged

Entity = NodeType | EdgeType

#: How often indexes are built while others may write, before the branch is held for it.
UNLOCKED_ATTEMPTS = 3


@dataclass(frozen=True, slots=True)
class BuiltIndex:
    """An index that was built; `property` is what the schema calls it, or `id`, `src`, `dst`."""

    type_key: str
    property: str
    kind: str
    name: str


@dataclass(frozen=True, slots=True)
class PendingIndex:
    """An index that is declared and can not be built yet."""

    type_key: str
    property: str
    kind: str
    reason: str


@dataclass(frozen=True, slots=True)
class IndexReport:
    """What `ensure_indices` did; `commit` is None when there was nothing to build."""

    built: tuple[BuiltIndex, ...]
    pending: tuple[PendingIndex, ...]
    commit: Commit | None

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def ensure_indices(
    context: CommitContext,
    catalog: Catalog,
    branch: str,
    types: Collection[str] | None = None,
    actor: str | None = None,
) -> IndexReport:
    """Build every index that is declared and missing, of all types or of some (`node:Person`, `edge:Knows`)."""
    reconciliation = _Reconciliation(
        context, _chosen(catalog, types), branch, Lineage(new_ulid(), now_micros(), "maintenance", actor)
    )
    _settle_pending(context, branch)
    for _ in range(UNLOCKED_ATTEMPTS):
        try:
            return reconciliation.attempt()
        except ExpectedVersionMismatch:
            continue
    with context.locks.hold(branch) as lock:
        return reconciliation.attempt(lock)


def _chosen(catalog: Catalog, types: Collection[str] | None) -> tuple[Entity, ...]:
    known: dict[str, Entity] = {
        entity.type_key: entity for entity in (*catalog.nodes.values(), *catalog.edges.values())
    }
    if types is None:
        return tuple(known.values())
    for name in types:
        if name not in known:
            raise BadRequest(f"there is no type '{name}' to index{did_you_mean(nearest_name(name, known))}")
    return tuple(entity for type_key, entity in known.items() if type_key in types)


def _settle_pending(context: CommitContext, branch: str) -> None:
    """Finish or undo what a dead writer left, before anything is built on it."""
    if list_sidecars(context.store):
        with context.locks.hold(branch):
            heal(context, holding={branch})


class _Reconciliation:
    """One call: what is wanted, and the indexes that were staged for it so far."""

    def __init__(self, context: CommitContext, entities: tuple[Entity, ...], branch: str, lineage: Lineage) -> None:
        self._context = context
        self._entities = entities
        self._branch = branch
        self._lineage = lineage
        self._staged: dict[TableEntry, Staged] = {}

    def attempt(self, held: HeldLock | None = None) -> IndexReport:
        """Build what is missing now and commit it; a conflict when a table moved in between."""
        context = self._context
        state = context.manifest.load(self._branch)
        built: list[BuiltIndex] = []
        pending: list[PendingIndex] = []
        effects: list[TableEffect] = []
        for entity in self._entities:
            # A schema change may have come or gone since the catalog was read.
            entry = state.by_key.get(entity.type_key)
            if entry is None:
                continue
            plan = plan_indexes(entity, context.tables.open(entry.location, entry.version))
            built += [_built(entry.key, build.index) for build in plan.builds]
            pending += [_pending(entry.key, waiting.index, waiting.reason) for waiting in plan.waiting]
            if plan.builds:
                effects.append(self._effect(entry, plan.builds, shared=context.forks.is_shared(state, entry)))
        if not effects:
            return IndexReport((), tuple(pending), None)
        execute(context, Write(Kind.ENSURE_INDICES, self._branch, self._lineage, tuple(effects)), held)
        commit = context.manifest.find_commit(self._branch, self._lineage.id)
        return IndexReport(tuple(built), tuple(pending), commit)

    def _effect(self, entry: TableEntry, builds: tuple[Build, ...], *, shared: bool) -> TableEffect:
        if shared:
            return TableEffect(entry, (Step(lambda table: stage_builds(table, builds)),), forks=True)
        if entry not in self._staged:
            table = self._context.tables.open(entry.location, entry.version)
            self._staged[entry] = stage_builds(table, builds)
        return TableEffect(entry, (Step(self._staged[entry]),))


def _built(type_key: str, index: DeclaredIndex) -> BuiltIndex:
    return BuiltIndex(type_key, index.on, index.kind.value, index.name)


def _pending(type_key: str, index: DeclaredIndex, reason: str) -> PendingIndex:
    return PendingIndex(type_key, index.on, index.kind.value, reason)
