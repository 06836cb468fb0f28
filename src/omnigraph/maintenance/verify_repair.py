"""`verify --repair`: restores tables to their newest undamaged version and drops damaged indexes; one commit per branch.

The rows that later versions added are lost; `Restored` says how many, and by which commits. Edges that lose their node are
removed in the same commit. A table that a branch still shares is only pinned to another version; its own table gets a Lance
restore through the commit protocol. If the newest version file itself is unreadable, nothing can be committed on top of it: it
is set aside (`__recovery/torn/`), and the version below it is published.

Files without older versions (`__manifest`, schema files, refs) can only be restored from a backup.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc
from lance import LanceOperation, Transaction

from omnigraph.commit.context import CommitContext
from omnigraph.commit.model import Identity, Lineage, ManifestState, TableEntry
from omnigraph.commit.protocol import Step, TableEffect, Write, execute
from omnigraph.commit.publisher import publish
from omnigraph.commit.sidecar import Kind
from omnigraph.commit.updates import SchemaIs, SetTable, written
from omnigraph.errors import Conflict
from omnigraph.ids import new_ulid, now_micros
from omnigraph.language.schema.catalog import Catalog
from omnigraph.maintenance.verify import Found
from omnigraph.maintenance.verify_files import group_of, place_of, read_files, read_specs
from omnigraph.maintenance.verify_report import Restored, attempted
from omnigraph.maintenance.verify_rules import node_slabs
from omnigraph.maintenance.verify_states import Walked, walk
from omnigraph.storage.tables.staged import Staged, stage_delete, stage_index_removal
from omnigraph.storage.tables.table import Table
from omnigraph.storage.tables.torn import set_torn_versions_aside
from omnigraph.storage.tables.version_files import version_file, version_of, versions_path

CatalogOf = Callable[[ManifestState], Catalog]

RESTORED = "restored"
INDEX_DROPPED = "index_dropped"


@dataclass(frozen=True, slots=True)
class Plan:
    """What is done to one table of a branch: the version to restore (None: none), and the indexes to drop."""

    state: ManifestState
    entry: TableEntry
    target: int | None
    indexes: tuple[str, ...]
    #: Whether the file of the published version is unreadable.
    unreadable: bool
    #: Whether the branch has not written the table yet, and uses a version of its parent.
    shared: bool
    lost_commits: tuple[str, ...] = ()

    def told(self, rows: int | None, removed_edges: int, commit: str) -> Restored:
        if self.target is None:
            return Restored(self.entry.key, self.state.branch, INDEX_DROPPED, commit, self.entry.version)
        lost = None if rows is None else self.entry.row_count - rows
        return Restored(
            self.entry.key, self.state.branch, RESTORED, commit, self.target, lost, self.lost_commits, removed_edges
        )


def plan_repair(context: CommitContext, found: Found) -> list[Plan]:
    """The plans that `restore` would carry out: one for each damaged table that can be repaired, per branch."""
    planned = (
        attempted(partial(_plan_table, context, found, state, entry))
        for state in found.needed.states_of_branches()
        for entry in state.tables.values()
    )
    # If the damage prevents planning, nothing can be done.
    return [plan for plan in planned if isinstance(plan, Plan)]


def _plan_table(context: CommitContext, found: Found, state: ManifestState, entry: TableEntry) -> Plan | None:
    here = found.walked.get((entry.location, entry.version))
    if here is None:
        return None
    if (entry.location, entry.version) in found.spoilt:
        target = _newest_whole(context, found, entry)
        if target is None:
            return None
        lost = _commits_after(found, entry, target)
        shared = context.forks.is_shared(state, entry)
        return Plan(state, entry, target, (), here.problem is not None, shared, lost)
    names = tuple(_damaged_indexes(context, found, entry, here))
    return Plan(state, entry, None, names, False, context.forks.is_shared(state, entry)) if names else None


def shown(context: CommitContext, plans: Iterable[Plan]) -> tuple[Restored, ...]:
    """The result that the plans would have, as a preview; dangling edges are not counted."""
    return tuple(
        plan.told(None if plan.target is None else _open(context, plan, plan.target).count_rows(), 0, "")
        for plan in plans
    )


def _commits_after(found: Found, entry: TableEntry, target: int) -> tuple[str, ...]:
    """The commits whose changes to a table are lost, newest first; the oldest commit that names a version has made it."""
    versions = range(target + 1, entry.version + 1)
    users = (found.needed.versions.get((entry.location, version)) for version in versions)
    return tuple(sorted({min(user.commits) for user in users if user is not None and user.commits}, reverse=True))


def _newest_whole(context: CommitContext, found: Found, entry: TableEntry) -> int | None:
    """The newest version before the published one whose files are all undamaged; None when there is none."""
    listed = (version_of(info.path) for info in context.store.list(versions_path(entry.location)))
    older = sorted((v for v in listed if v is not None and v < entry.version), reverse=True)
    return next((v for v in older if _is_whole(context, found, walk(context, (entry.location, v)))), None)


def _is_whole(context: CommitContext, found: Found, version: Walked) -> bool:
    if version.problem is not None:
        return False
    bad = {group_of(path) or path for path in found.damaged}
    named = {file.path for file in version.files}
    if named & bad or any(not file.is_folder and file.path not in found.files for file in version.files):
        return False
    recorded = found.recorded.digests
    specs = read_specs(
        context.root, [(path, found.files[path].size, recorded.get(path, ())) for path in named if path in found.files]
    )
    return not any(read_files(spec).wrong for spec in specs)


def _damaged_indexes(context: CommitContext, found: Found, entry: TableEntry, here: Walked) -> Iterator[str]:
    """The names of a table's indexes that have a damaged file, or that are on a dropped column."""
    yield from here.dead_indexes
    bad = {group_of(path) or path for path in found.damaged if place_of(path).kind == "index"}
    named = {file.path.rpartition("/")[2] for file in here.files if file.is_folder and file.path in bad}
    if named:
        for index in context.tables.open(entry.location, entry.version).dataset.describe_indices():
            if index.name not in here.dead_indexes and any(segment.uuid in named for segment in index.segments):
                yield index.name


# --- carrying it out --------------------------------------------------------------------------------------------------


def restore(context: CommitContext, found: Found, catalog_of: CatalogOf, actor: str | None) -> tuple[Restored, ...]:
    """Carry the plans out, one commit per branch; raises a conflict if a branch has moved since it was verified."""
    done: list[Restored] = []
    plans = plan_repair(context, found)
    for branch in dict.fromkeys(plan.state.branch for plan in plans):
        done += _restore_branch(context, [plan for plan in plans if plan.state.branch == branch], catalog_of, actor)
    return tuple(done)


def _restore_branch(
    context: CommitContext, plans: list[Plan], catalog_of: CatalogOf, actor: str | None
) -> list[Restored]:
    state = plans[0].state
    if context.manifest.load(state.branch).head != state.head:
        raise Conflict(
            f"branch '{state.branch}' has moved since it was verified; nothing was repaired, verify it again"
        )
    kind = "recovery" if any(plan.target is not None for plan in plans) else "maintenance"
    lineage = Lineage(new_ulid(), now_micros(), kind, actor)
    pinned = [plan for plan in plans if plan.target is not None and (plan.unreadable or plan.shared)]
    made = _publish_older(context, pinned, lineage) if pinned else {}
    rest = [plan for plan in plans if plan not in pinned]
    if pinned:
        # The other plans, and the removal of dangling edges, follow in a second commit on top of this.
        state = context.manifest.load(state.branch)
        lineage = Lineage(new_ulid(), now_micros(), kind, actor)
    final = {entry.identity: entry for entry in state.tables.values()}
    for plan in rest:
        if plan.target is not None:
            rows = _open(context, plan, plan.target).count_rows()
            final[plan.entry.identity] = replace(plan.entry, version=plan.target, row_count=rows)
    changed = {plan.entry.identity for plan in plans if plan.target is not None}
    dangling = dict(_dangling(context, catalog_of(state), final, changed))
    effects = _effects(context, state, rest, dangling)
    if effects:
        requires = SchemaIs(state.schema_hash)
        # Several steps on one table must be confirmed before they are published, as in a merge.
        write = Write(Kind.BRANCH_MERGE, state.branch, lineage, effects, requires=requires, if_commit=state.head)
        execute(context, write)
    told = []
    for plan in plans:
        left = final[plan.entry.identity].row_count if plan.target is not None else None
        told.append(plan.told(left, len(dangling.get(plan.entry.identity, ())), made.get(plan.entry.path, lineage.id)))
    restored = {plan.entry.identity for plan in plans}
    for identity, ids in dangling.items():
        if identity not in restored:
            entry = final[identity]
            told.append(
                Restored(entry.key, state.branch, "edges_removed", lineage.id, entry.version, len(ids), (), len(ids))
            )
    return told


def _open(context: CommitContext, plan: Plan, version: int) -> Table:
    return context.tables.open(plan.entry.location, version)


def _publish_older(context: CommitContext, plans: list[Plan], lineage: Lineage) -> dict[str, str]:
    """Publish older versions unchanged, and set unreadable newer ones aside. Returns the id of the commit by table path."""
    branch = plans[0].state.branch
    updates = []
    with context.locks.hold(branch):
        for plan in plans:
            assert plan.target is not None, "such a plan goes back to a version"
            if not plan.shared:
                _set_aside(context, plan, plan.target)
            rows = _open(context, plan, plan.target).count_rows()
            updates.append(SetTable(replace(plan.entry, version=plan.target, row_count=rows)))
        publish(context, branch, updates, [written(plan.entry) for plan in plans], lineage)
    return {plan.entry.path: lineage.id for plan in plans}


def _set_aside(context: CommitContext, plan: Plan, target: int) -> None:
    location = plan.entry.location
    set_torn_versions_aside(context.tables, context.store, location, above=target)
    head = context.tables.head_version(location)
    if head != target:
        raise Conflict(
            f"{plan.entry.key} can not go back to version {target}, version {head} lies above it; restore "
            f"{version_file(location, plan.entry.version)} from a backup"
        )


def _effects(
    context: CommitContext, state: ManifestState, plans: list[Plan], dangling: Mapping[Identity, pa.Array]
) -> tuple[TableEffect, ...]:
    """The effects on the tables that are not just pinned to another version."""
    effects = []
    by_identity = {plan.entry.identity: plan for plan in plans}
    for identity in {**by_identity, **dangling}:
        entry, plan, ids = state.tables[identity], by_identity.get(identity), dangling.get(identity)
        steps: list[Step] = []
        if plan is not None and plan.target is not None:
            restoring = Transaction(entry.version, LanceOperation.Restore(plan.target))
            steps.append(Step(Staged("restore", entry.location, entry.version, restoring)))
        elif plan is not None:
            steps.append(Step(_dropping(plan.indexes)))
        if ids is not None:
            steps.append(Step(_deleting(ids)))
        effects.append(TableEffect(entry, tuple(steps), forks=context.forks.is_shared(state, entry)))
    return tuple(effects)


def _dropping(names: tuple[str, ...]) -> Callable[[Table], Staged]:
    return lambda table: stage_index_removal(table, names)


def _deleting(ids: pa.Array) -> Callable[[Table], Staged]:
    return lambda table: stage_delete(table, row_addresses=_addresses(table, ids))


def _addresses(table: Table, ids: pa.Array) -> pa.ChunkedArray:
    """The addresses of the rows with these ids, found by a scan, because an index may be damaged."""
    found = [
        batch.column("_rowaddr").filter(pc.is_in(batch.column("id"), value_set=ids))
        for batch in table.scan(["id"], with_row_address=True)
    ]
    return pa.chunked_array(found, pa.uint64())


def _dangling(
    context: CommitContext, catalog: Catalog, final: Mapping[Identity, TableEntry], changed: set[Identity]
) -> Iterator[tuple[Identity, pa.Array]]:
    """The ids of edges that would lose a node, by the identity of their table; only for tables that something changes."""
    for edge in catalog.edges.values():
        identity = (edge.id, edge.incarnation)
        nodes = {end: catalog.nodes[name] for end, name in (("src", edge.from_type), ("dst", edge.to_type))}
        ends = {end: (node.id, node.incarnation) for end, node in nodes.items()}
        if not changed & {identity, *ends.values()} or identity not in final:
            continue
        ids = _lost_ends(context, final[identity], {end: final[node] for end, node in ends.items()})
        if len(ids):
            yield identity, ids


def _lost_ends(context: CommitContext, entry: TableEntry, nodes: Mapping[str, TableEntry]) -> pa.Array:
    table = context.tables.open(entry.location, entry.version)
    lost: list[pa.Array] = []
    for end, node in nodes.items():
        known = list(node_slabs(context.tables.open(node.location, node.version)))
        for batch in table.scan(["id", end]):
            absent = pc.invert(pc.is_in(batch.column(end), value_set=pa.concat_arrays(known)))
            lost.append(batch.column("id").filter(absent))
    return pc.unique(pa.concat_arrays(lost)) if lost else pa.array([], pa.string())
