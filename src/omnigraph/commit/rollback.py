"""Rolling back: restore the pinned content of every table that a dead writer moved, and publish the restored heads."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace

from omnigraph import failpoints
from omnigraph.commit import schema_files
from omnigraph.commit.branch_refs import read_ref
from omnigraph.commit.context import CommitContext
from omnigraph.commit.forked import offspring
from omnigraph.commit.judge import Judged
from omnigraph.commit.model import MAIN, RECOVERY_ACTOR, Lineage, ManifestState
from omnigraph.commit.publisher import publish
from omnigraph.commit.retiring import remove_ref
from omnigraph.commit.sidecar import Sidecar, list_sidecars, read_sidecar
from omnigraph.commit.updates import Requirement, SetTable, Update, written
from omnigraph.ids import new_ulid, now_micros
from omnigraph.storage.tables.commit import drop_fork, drop_table, undo
from omnigraph.storage.tables.location import Location

failpoints.declare("recovery.before_undo", "recovery.after_undo", "recovery.after_roll_back")

_log = logging.getLogger(__name__)


def roll_back(
    context: CommitContext,
    sidecar: Sidecar,
    state: ManifestState,
    judged: Sequence[Judged],
    *,
    only: frozenset[str] | None,
) -> str | None:
    """Undo a sidecar; returns the id of the recovery commit, or None when no published table had moved.

    `only`: paths of the tables that a live writer has moved; other tables were moved by others and are left alone.
    """
    updates: list[Update] = []
    requirements: list[Requirement] = []
    claimed = _claimed_by_others(context, sidecar)
    for table in judged:
        if not table.moved or table.entry is None or table.planned.forked_from is not None:
            continue
        if only is not None and table.planned.table_path not in only:
            continue
        assert table.seen.head is not None, "a table that moved has a head"
        if context.tables.created_by(table.location, table.seen.head) in claimed:
            continue
        failpoints.hit("recovery.before_undo")
        version = undo(context.tables, table.location, pin=table.entry.version, effect=table.seen.head)
        failpoints.hit("recovery.after_undo")
        context.make_durable(table.planned.table_path)
        if version > table.seen.head + 1:
            # The undo keeps what a program without our locks committed meanwhile. OmniGraph must not publish that.
            _log.warning("%s was changed while operation %s was undone", table.location, sidecar.operation_id)
            continue
        rows = context.tables.open(table.location, version).count_rows()
        updates.append(SetTable(replace(table.entry, version=version, row_count=rows)))
        requirements.append(written(table.entry))
    commit_id = None
    if updates:
        lineage = Lineage(
            id=new_ulid(),
            created_at=now_micros(),
            kind="recovery",
            actor=RECOVERY_ACTOR,
            recovery_for_actor=sidecar.actor_id,
            recovers=sidecar.operation_id,
        )
        commit_id = publish(context, sidecar.branch, updates, requirements, lineage).head
    failpoints.hit("recovery.after_roll_back")
    drop_leftovers(context, sidecar, judged)
    return commit_id


def _claimed_by_others(context: CommitContext, sidecar: Sidecar) -> set[str | None]:
    """The transaction ids of other pending writes; their effects are finished or undone with them."""
    others = (
        read_sidecar(context.store, operation_id)
        for operation_id in list_sidecars(context.store)
        if operation_id != sidecar.operation_id
    )
    return {table.transaction_id for other in others if other is not None for table in other.tables} - {None}


def drop_leftovers(context: CommitContext, sidecar: Sidecar, judged: Sequence[Judged]) -> None:
    """Remove what only this write made: forks, new tables, staged schema files, a branch created with it."""
    published = {table.location for table in judged if table.entry and table.entry.location == table.location}
    foreign = {
        table.planned.table_path for table in judged if table.planned.expected_version is None and not table.seen.ours
    } | set(context.manifest.load(MAIN).by_path)
    for planned in sidecar.tables:
        location = Location(planned.table_path, planned.table_branch)
        if location in published:
            continue
        if planned.forked_from is not None:
            drop_fork(context.tables, location)
        elif planned.expected_version is None and planned.table_path not in foreign:
            drop_table(context.tables, planned.table_path, context.store.delete_prefix)
    if sidecar.moves_schema_files:
        schema_files.drop_staged(context.store)
    if sidecar.branch_created_from is not None:
        _drop_unused_branch(context, sidecar)


def _drop_unused_branch(context: CommitContext, sidecar: Sidecar) -> None:
    """Remove a branch that was created together with this write, unless it has children or commits by now."""
    name = sidecar.branch
    ref = read_ref(context.store, name)
    if ref is None or offspring(context, ref).alive is not None:
        return
    if context.manifest.load(name).head == context.manifest.load_at(name, ref.parent_version).head:
        remove_ref(context, name)
