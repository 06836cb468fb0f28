"""Examines one table of a sidecar: its head, its pin, and the class that follows from them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from omnigraph.commit.classify import Class, Observed, classify, mode_of
from omnigraph.commit.context import POWER, CommitContext
from omnigraph.commit.model import ManifestState, TableEntry
from omnigraph.commit.sidecar import PlannedTable, Sidecar
from omnigraph.errors import StorageError
from omnigraph.storage.tables.location import Location
from omnigraph.storage.tables.torn import set_torn_versions_aside


@dataclass(frozen=True, slots=True)
class Judged:
    """One table of a sidecar as recovery found it. `entry`: its published table entry; None if it has none."""

    planned: PlannedTable
    entry: TableEntry | None
    location: Location
    seen: Observed
    cls: Class

    @property
    def moved(self) -> bool:
        return self.cls not in (Class.NO_MOVEMENT, Class.ALREADY_PUBLISHED)


def judge(context: CommitContext, sidecar: Sidecar, state: ManifestState) -> list[Judged]:
    """Compare the head of every planned table with its pin and classify it."""
    shared = context.manifest.inherited(sidecar.branch)
    return [_judge(context, sidecar, planned, state, shared) for planned in sidecar.tables]


def _judge(
    context: CommitContext,
    sidecar: Sidecar,
    planned: PlannedTable,
    state: ManifestState,
    shared: Collection[Location],
) -> Judged:
    entry = state.by_path.get(planned.table_path)
    forked = planned.forked_from
    if forked is not None or entry is None:
        location = Location(planned.table_path, planned.table_branch)
    else:
        location = entry.location
    pin = entry.version if entry else None
    if forked is None and entry is not None and location in shared:
        # The table belongs to another branch: this write has not moved it, and must not undo what moved it.
        head = pin
    else:
        head = _head(context, location, above=pin or 0)
    displaced = False
    if forked is not None and (entry is None or entry.branch != planned.table_branch):
        # The fork is not published yet: compare it with the version it was forked from. It may not even have been made.
        pin = forked.version
        head = pin if head is None else head
        displaced = entry is None or (entry.branch, entry.version) != (forked.branch, forked.version)
    ours = planned.transaction_id is None or (
        head is not None and head != pin and context.tables.created_by(location, head) == planned.transaction_id
    )
    seen = Observed(head=head, pin=pin, ours=ours, displaced=displaced)
    mode = mode_of(sidecar.kind, sidecar.schema_version)
    return Judged(planned, entry, location, seen, classify(mode, planned, seen))


def _head(context: CommitContext, location: Location, *, above: int) -> int | None:
    """The head of a table. Damaged versions above its pin count as no movement: they are set aside."""
    flushed = context.durability == POWER
    try:
        head = context.tables.head_version(location)
        # On local disk a dead writer may have left a partial file when the disk was full. Object stores keep whole objects.
        suspect = head is not None and head != above and (context.root.is_local or head < above or flushed)
    except StorageError as error:
        if error.kind != "permanent":
            raise
        suspect = True
    if suspect:
        set_torn_versions_aside(context.tables, context.store, location, above=above, with_data=flushed)
        head = context.tables.head_version(location)
    return head
