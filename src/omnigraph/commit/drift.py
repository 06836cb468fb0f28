"""Drift: a table whose head is not its pin, although no sidecar claims the difference."""

from __future__ import annotations

from dataclasses import replace

from omnigraph.commit.context import CommitContext
from omnigraph.commit.model import RECOVERY_ACTOR, Lineage, TableEntry
from omnigraph.commit.publisher import publish
from omnigraph.commit.recovery import pending
from omnigraph.commit.updates import SetTable, written
from omnigraph.errors import DriftNeedsRepair, ExpectedVersionMismatch, RecoveryRequired
from omnigraph.ids import new_ulid, now_micros
from omnigraph.storage.tables.commit import undo
from omnigraph.storage.tables.handles import UNDO


def refuse_drift(context: CommitContext, branch: str, entry: TableEntry, head: int | None) -> None:
    """Raise if the head of a table is not its pin: an unknown program moved it, and this write would publish the change."""
    if head == entry.version:
        return
    for sidecar in pending(context):
        if sidecar.branch == branch and any(table.table_path == entry.path for table in sidecar.tables):
            raise RecoveryRequired(
                f"{entry.key} is being changed by operation {sidecar.operation_id}, which is not settled yet; "
                "repeat the write",
                operation_id=sidecar.operation_id,
            )
    if head is not None and _ends_in_our_undo(context, entry, head):
        version = _bring_back(context, branch, entry)
        raise ExpectedVersionMismatch(
            f"{entry.key} was put right and is at version {version} now, this write was prepared at {entry.version}; "
            "repeat the write",
            table_key=entry.key,
            expected=entry.version,
            actual=version,
        )
    raise DriftNeedsRepair(
        f"{entry.key} is at version {head} in storage but the graph publishes {entry.version}, and no recovery "
        "record explains it; look at it with `omnigraph repair`",
        table_key=entry.key,
    )


def _ends_in_our_undo(context: CommitContext, entry: TableEntry, head: int) -> bool:
    """Whether the head is an undo by OmniGraph and every version above the pin was made by OmniGraph."""
    made_by = [context.tables.created_by(entry.location, version) for version in range(entry.version + 1, head + 1)]
    return made_by[-1:] == [UNDO] and None not in made_by


def _bring_back(context: CommitContext, branch: str, entry: TableEntry) -> int:
    """Publish the content of a table's pin under its newest version; returns that version.

    A writer that ignores the locks can publish while another writer undoes its effect, or undo its own effect above a version
    that is being published. In both cases the head is an undo by OmniGraph, and the content of the pin is right.
    """
    version = undo(context.tables, entry.location, pin=entry.version)
    rows = context.tables.open(entry.location, version).count_rows()
    lineage = Lineage(id=new_ulid(), created_at=now_micros(), kind="recovery", actor=RECOVERY_ACTOR)
    context.make_durable(entry.path)
    publish(context, branch, [SetTable(replace(entry, version=version, row_count=rows))], [written(entry)], lineage)
    return version
