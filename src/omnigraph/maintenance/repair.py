"""`repair`: handles tables that moved without a commit of the graph.

Without `confirm` it only reports. With `confirm`, a head with the same rows as the pin is published; with `force`, any head. A
publish is a single compare-and-swap and moves no table, so a failure needs no recovery.

A table with an index on a dropped column can not be read or written by key; such an index is dropped, by an ordinary
commit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from typing import Any

from omnigraph.commit.branches import branch_names
from omnigraph.commit.context import CommitContext
from omnigraph.commit.model import MAIN, Lineage, ManifestState, TableEntry, sorted_entries
from omnigraph.commit.protocol import Step, TableEffect, Write, execute
from omnigraph.commit.publisher import publish
from omnigraph.commit.recovery import pending
from omnigraph.commit.sidecar import Kind, Sidecar
from omnigraph.commit.updates import SchemaIs, SetTable, written
from omnigraph.errors import BadRequest, RecoveryRequired
from omnigraph.ids import new_ulid, now_micros
from omnigraph.maintenance.drifted import Classification, Drift, look_for_drift
from omnigraph.shown import Shown
from omnigraph.storage.locks import HeldLock
from omnigraph.storage.tables.staged import stage_index_removal
from omnigraph.storage.tables.torn import set_torn_versions_aside


class Action(StrEnum):
    """What repair did, or would do with `confirm`."""

    NO_OP = "no_op"
    PREVIEW = "preview"
    HEALED = "healed"
    FORCED = "forced"
    DROPPED = "dropped"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class RepairedTable:
    """One table of one branch: its head, its pin, and what was done about the difference."""

    type_key: str
    branch: str
    published_dataset_version: int
    lance_head_version: int | None
    classification: str
    action: str
    operations: tuple[str, ...] = ()
    error: str | None = None

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "operations": list(self.operations)}


@dataclass(frozen=True, slots=True)
class RepairReport(Shown):
    """What `repair` found and did."""

    confirm: bool
    force: bool
    graph_manifest_version: int
    datasets: tuple[RepairedTable, ...]

    @property
    def refused(self) -> bool:
        """Whether a drifted table was left alone although `confirm` was given."""
        return any(table.action == Action.REFUSED for table in self.datasets)

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values, ready for JSON."""
        return {
            "confirm": self.confirm,
            "force": self.force,
            "graph_manifest_version": self.graph_manifest_version,
            "datasets": [table.to_dict() for table in self.datasets],
        }


def repair(
    context: CommitContext,
    *,
    branch: str | None = None,
    confirm: bool = False,
    force: bool = False,
    actor: str | None = None,
) -> RepairReport:
    """Examine every table that a branch owns (None: all branches), and publish what may be published."""
    if force and not confirm:
        raise BadRequest("force publishes rows that nobody committed; confirm it too (--force --confirm)")
    waiting = {sidecar.branch: sidecar for sidecar in pending(context)}
    blocked = waiting.get(branch or MAIN)
    if blocked is not None:
        raise RecoveryRequired(_pending_text(blocked), operation_id=blocked.operation_id)
    found: list[RepairedTable] = []
    for name in branch_names(context) if branch is None else [branch]:
        if name in waiting:
            found += _left_alone(context, name, waiting[name])
        elif confirm:
            found += _repair_branch(context, name, force, actor)
        else:
            found += [_shown(name, drift, _preview(drift)) for drift in _drifts(context, context.manifest.load(name))]
    return RepairReport(confirm, force, context.manifest.load(branch or MAIN).version, tuple(found))


def _drifts(context: CommitContext, state: ManifestState) -> Iterator[Drift]:
    for entry in _owned(context, state):
        yield look_for_drift(context, entry)


def _owned(context: CommitContext, state: ManifestState) -> list[TableEntry]:
    """The tables that a branch owns; the head of a shared table may well be beyond this branch's pin."""
    return [entry for entry in sorted_entries(state.tables.values()) if not context.forks.is_shared(state, entry)]


def _preview(drift: Drift) -> Action:
    return Action.NO_OP if drift.classification is Classification.NO_DRIFT else Action.PREVIEW


def _repair_branch(context: CommitContext, branch: str, force: bool, actor: str | None) -> list[RepairedTable]:
    with context.locks.hold(branch) as lock:
        context.manifest.forget(branch)
        state = context.manifest.load(branch)
        for sidecar in pending(context):
            if sidecar.branch == branch:
                raise RecoveryRequired(_pending_text(sidecar), operation_id=sidecar.operation_id)
        judged = [(drift, _decide(drift, force)) for drift in _drifts(context, state)]
        judged = [(_readable_again(context, drift, action), action) for drift, action in judged]
        _publish(context, branch, [pair for pair in judged if pair[1] in (Action.HEALED, Action.FORCED)], actor)
        _drop_dead(context, branch, [drift for drift, action in judged if action is Action.DROPPED], actor, lock)
        return [_shown(branch, drift, action) for drift, action in judged]


def _decide(drift: Drift, force: bool) -> Action:
    match drift.classification:
        case Classification.NO_DRIFT:
            return Action.NO_OP
        case Classification.VERIFIED_MAINTENANCE:
            return Action.HEALED
        case Classification.DEAD_INDEX:
            return Action.DROPPED
        case Classification.SUSPICIOUS:
            return Action.FORCED if force else Action.REFUSED
        case Classification.UNVERIFIABLE:
            # A head before the pin can not be published; an unreadable head can be set aside.
            return Action.FORCED if force and drift.head is None else Action.REFUSED


def _readable_again(context: CommitContext, drift: Drift, action: Action) -> Drift:
    """Set unreadable newest versions of a table aside, without destroying them, so that the pin is its head again."""
    if action is not Action.FORCED or drift.head is not None:
        return drift
    entry = drift.entry
    set_torn_versions_aside(context.tables, context.store, entry.location, above=entry.version, with_data=True)
    return replace(drift, head=context.tables.head_version(entry.location))


def _publish(context: CommitContext, branch: str, chosen: Sequence[tuple[Drift, Action]], actor: str | None) -> None:
    updates = []
    for drift, _ in chosen:
        entry, head = drift.entry, drift.head
        if head is not None and head > entry.version:
            rows = context.tables.open(entry.location, head).count_rows()
            updates.append(SetTable(replace(entry, version=head, row_count=rows)))
    if not updates:
        return
    # Rows from outside are no maintenance: readers of the change feed must see them.
    changes_rows = any(action is Action.FORCED for _, action in chosen)
    kind = "recovery" if changes_rows else "maintenance"
    lineage = Lineage(new_ulid(), now_micros(), kind, actor)
    context.make_durable(*(update.entry.path for update in updates))
    publish(context, branch, updates, [written(drift.entry) for drift, _ in chosen], lineage)


def _drop_dead(context: CommitContext, branch: str, drifts: Sequence[Drift], actor: str | None, lock: HeldLock) -> None:
    """Drop the indexes on dropped columns, in one commit."""
    if not drifts:
        return
    effects = []
    for drift in drifts:
        table = context.tables.open(drift.entry.location, drift.entry.version)
        effects.append(TableEffect(drift.entry, (Step(stage_index_removal(table, drift.operations)),)))
    lineage = Lineage(new_ulid(), now_micros(), "maintenance", actor)
    requires = SchemaIs(context.manifest.load(branch).schema_hash)
    execute(context, Write(Kind.ENSURE_INDICES, branch, lineage, tuple(effects), requires=requires), lock)


def _left_alone(context: CommitContext, branch: str, sidecar: Sidecar) -> list[RepairedTable]:
    """The tables of a branch with pending writes, all refused: their state is unknown until recovery."""
    state = context.manifest.load(branch)
    return [
        RepairedTable(
            entry.key,
            branch,
            entry.version,
            context.tables.head_version(entry.location),
            Classification.UNVERIFIABLE.value,
            Action.REFUSED.value,
            error=_pending_text(sidecar),
        )
        for entry in _owned(context, state)
    ]


def _pending_text(sidecar: Sidecar) -> str:
    return (
        f"operation {sidecar.operation_id} on branch '{sidecar.branch}' waits for recovery; open the graph for writing to "
        "settle it, or see `omnigraph recovery list`"
    )


def _shown(branch: str, drift: Drift, action: Action) -> RepairedTable:
    return RepairedTable(
        drift.entry.key,
        branch,
        drift.entry.version,
        drift.head,
        drift.classification.value,
        action.value,
        drift.operations,
        drift.problem,
    )
