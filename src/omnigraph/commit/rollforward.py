"""Rolling forward: publish exactly what a dead writer had committed to its tables, under its planned commit id."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from omnigraph import failpoints
from omnigraph.commit import schema_files
from omnigraph.commit.context import CommitContext
from omnigraph.commit.history import missing_commits
from omnigraph.commit.judge import Judged
from omnigraph.commit.model import RECOVERY_ACTOR, Identity, Lineage, ManifestState, TableEntry
from omnigraph.commit.publisher import publish
from omnigraph.commit.rows import decode_changed, decode_group, decode_touched
from omnigraph.commit.sidecar import PlannedCommit, Sidecar
from omnigraph.commit.updates import (
    DropTable,
    EarlierCommits,
    ImportCommits,
    RecordReceipt,
    Requirement,
    SetSchema,
    SetTable,
    Update,
    created,
    written,
)
from omnigraph.commit.writers import WRITERS
from omnigraph.storage.tables.commit import drop_history, drop_table

failpoints.declare("recovery.before_roll_forward", "recovery.after_roll_forward")


def can_roll_forward(context: CommitContext, sidecar: Sidecar, state: ManifestState) -> bool:
    """Whether all conditions besides the tables hold: the expected head, unused idempotency keys, the schema files."""
    commit = sidecar.commit
    if commit.if_commit is not None and state.head != commit.if_commit:
        return False
    keys = [planned.idempotency_key for planned in sidecar.commits if planned.idempotency_key is not None]
    if any(context.manifest.receipt(sidecar.branch, key) for key in keys):
        return False
    if sidecar.moves_schema_files:
        return schema_files.staged_target(context.store) == sidecar.schema_target
    return not sidecar.changes_schema or schema_files.is_archived(context.store, sidecar.schema_target)


def roll_forward(context: CommitContext, sidecar: Sidecar, state: ManifestState, judged: Sequence[Judged]) -> str:
    """Publish the classified versions in one commit, and promote staged schema files. Returns the id of the commit."""
    failpoints.hit("recovery.before_roll_forward")
    updates: list[Update] = []
    requirements: list[Requirement] = []
    for table in judged:
        assert table.seen.head is not None, "a table that rolled past its pin has a head"
        entry = table.entry or _registration(table.planned.table_key, table.planned.table_path)
        requirements.append(written(entry) if table.entry else created(entry.key, entry.identity))
        updates.append(
            SetTable(
                replace(
                    entry,
                    # A schema change may move and rename a table at once; other writes use the table's current key.
                    key=table.planned.table_key if sidecar.changes_schema else entry.key,
                    version=table.seen.head,
                    branch=table.location.branch,
                    row_count=context.tables.open(table.location, table.seen.head).count_rows(),
                )
            )
        )
    updates += _further_updates(context, sidecar, state)
    context.make_durable(*(table.planned.table_path for table in judged))
    publish(context, sidecar.branch, updates, requirements, _lineage(sidecar, sidecar.commit))
    failpoints.hit("recovery.after_roll_forward")
    if sidecar.moves_schema_files:
        schema_files.promote(context.store, context.root)
    purge(context, sidecar)
    return sidecar.commit.id


def purge(context: CommitContext, sidecar: Sidecar) -> None:
    """Remove data that was dropped for good, after the publish: whole tables, or old versions of a table. Repeatable."""
    if not sidecar.purged:
        return
    live = context.manifest.load(sidecar.branch).by_path
    for path in sidecar.purged:
        if path in live:
            drop_history(context.tables, live[path].location)
        else:
            drop_table(context.tables, path, context.store.delete_prefix)


def _further_updates(context: CommitContext, sidecar: Sidecar, state: ManifestState) -> list[Update]:
    """The updates that a sidecar publishes besides moved tables: renames, drops, schema, merged history, receipts."""
    updates: list[Update] = [
        SetTable(replace(state.by_path[path], key=key)) for path, key in sidecar.renamed if path in state.by_path
    ]
    updates += [DropTable(state.by_path[path]) for path in sidecar.dropped if path in state.by_path]
    if sidecar.schema_target is not None:
        updates.append(SetSchema(sidecar.schema_target))
    commit = sidecar.commit
    if commit.merged_parent is not None:
        updates.append(ImportCommits(tuple(missing_commits(context.manifest, sidecar.branch, commit.merged_parent))))
    if sidecar.earlier:
        updates.append(EarlierCommits(tuple(_lineage(sidecar, planned) for planned in sidecar.earlier)))
    for planned in sidecar.commits:
        if planned.idempotency_key is not None:
            receipt = planned.receipt or {}
            updates.append(RecordReceipt(planned.idempotency_key, planned.request or "", receipt, planned.id))
    return updates


def _lineage(sidecar: Sidecar, planned: PlannedCommit) -> Lineage:
    return Lineage(
        id=planned.id,
        created_at=planned.created_at,
        kind=planned.kind or WRITERS[sidecar.kind].commit_kind,
        actor=RECOVERY_ACTOR,
        merged_parent=planned.merged_parent,
        recovery_for_actor=sidecar.actor_id if planned.group is None else planned.actor_id,
        message=planned.message,
        group=decode_group(planned.group),
        touched=decode_touched(planned.group),
        changed=decode_changed(planned.changed),
    )


def _registration(key: str, path: str) -> TableEntry:
    """The entry of a table that the write was creating; its identity is read from its path."""
    table_id, _, incarnation = path.rpartition("/")[2].partition("-")
    identity: Identity = (int(table_id, 16), int(incarnation, 16))
    return TableEntry(key=key, path=path, identity=identity, version=0, branch=None, row_count=0)
