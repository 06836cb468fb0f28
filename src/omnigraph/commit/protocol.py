"""How the commit protocol makes a write visible. Writers differ in what they stage; the protocol is the same for all:

    A   write the sidecar            before the first effect
    B   commit each table            one staged transaction per table (maintenance and merges may take several)
    B′  confirm                      merges only: the exact version every table reached
    C   publish                      one manifest compare-and-swap
    D   delete the sidecar           a failure here is only a warning

All of it runs inside the effect window: one writer at a time per branch.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field, replace

from omnigraph import failpoints
from omnigraph.commit import schema_files
from omnigraph.commit.branches import creating, make_branch
from omnigraph.commit.context import CommitContext
from omnigraph.commit.drift import refuse_drift
from omnigraph.commit.format import CURRENT
from omnigraph.commit.manifest import Warm
from omnigraph.commit.migrations import migrated
from omnigraph.commit.model import MAIN, Lineage, ManifestState, TableEntry
from omnigraph.commit.publisher import Draft, check_receipts, compact_when_due, draft, publish
from omnigraph.commit.recovery import Attempt, heal, recover
from omnigraph.commit.rollforward import purge
from omnigraph.commit.rows import changed_object, group_object
from omnigraph.commit.schema_files import SchemaFiles
from omnigraph.commit.sidecar import (
    OF_GROUPS,
    OF_SCHEMAS,
    SCHEMA_VERSION,
    ForkedFrom,
    Kind,
    PlannedCommit,
    PlannedTable,
    Sidecar,
    delete_sidecar,
    list_sidecars,
    write_sidecar,
)
from omnigraph.commit.updates import (
    DropTable,
    EarlierCommits,
    HeadIs,
    RecordReceipt,
    Requirement,
    SchemaIs,
    SetTable,
    Update,
    check,
    created,
    read,
    written,
)
from omnigraph.commit.writers import WRITERS, Mode, Writer
from omnigraph.errors import (
    CommitStateUnknown,
    Conflict,
    ExpectedVersionMismatch,
    ManifestContention,
    OmnigraphError,
    RecoveryRequired,
)
from omnigraph.ids import new_ulid
from omnigraph.storage.locks import HeldLock, HeldLocks
from omnigraph.storage.objects import at_once
from omnigraph.storage.tables.commit import commit_staged, fork
from omnigraph.storage.tables.location import Location
from omnigraph.storage.tables.staged import Staged
from omnigraph.storage.tables.table import Table
from omnigraph.storage.tables.written import files_of_staged, require_whole
from omnigraph.watching import span

_log = logging.getLogger(__name__)

failpoints.declare(
    "branch_merge.after_append",
    "branch_merge.after_upsert",
    "branch_merge.after_delete",
    "branch_merge.post_confirm",
    "optimize.between_compact_and_index",
    "schema_apply.before_promote",
    "schema_apply.after_promote",
)

Stage = Staged | Callable[[Table], Staged]


@dataclass(frozen=True, slots=True)
class Step:
    """One Lance transaction: staged beforehand, or on the table when its turn comes. `failpoint`: reached after it."""

    stage: Stage
    failpoint: str | None = None


@dataclass(frozen=True, slots=True)
class TableEffect:
    """What a write does to one table. `entry`: the table as it was published when the write was prepared.

    `forks`: the branch still shares its parent's table; it is forked first, so the steps can only be staged afterwards.
    `creates`: the table does not exist yet; `entry` gives the key and path it will have.
    """

    entry: TableEntry
    steps: tuple[Step, ...]
    forks: bool = False
    creates: bool = False

    @property
    def has_pin(self) -> bool:
        """Whether the table exists and is written in place, so that its head must be its pin."""
        return not (self.forks or self.creates)


@dataclass(frozen=True)
class Write:
    """A prepared write: everything that was staged, and everything it relies on."""

    kind: Kind
    branch: str
    lineage: Lineage
    effects: tuple[TableEffect, ...]
    #: The schema it was prepared under. No default: a writer that forgot it could publish what the schema no longer has.
    requires: SchemaIs
    #: Tables that were read for a check and are not written.
    reads: tuple[TableEntry, ...] = ()
    #: Further updates that its commit publishes.
    updates: tuple[Update, ...] = ()
    if_commit: str | None = None
    schema: SchemaFiles | None = None
    #: Paths of tables whose earlier data is removed with this commit: dropped tables entirely, others their old versions.
    purges: tuple[str, ...] = ()
    #: The parent, if the branch does not exist yet and is created by this write; else None.
    branch_created_from: str | None = None
    operation_id: str = field(default_factory=new_ulid)

    @property
    def writer(self) -> Writer:
        """The record of its kind of writer."""
        return WRITERS[self.kind]

    def requirements(self) -> list[Requirement]:
        needed: list[Requirement] = [] if self.if_commit is None else [HeadIs(self.if_commit)]
        for effect in self.effects:
            entry = effect.entry
            needed.append(created(entry.key, entry.identity) if effect.creates else written(entry))
        needed += [read(entry) for entry in self.reads]
        # A changed schema explains why a table moved, so it is checked and reported first.
        return [self.requires, *needed]


def execute(context: CommitContext, write: Write, held: HeldLock | HeldLocks | None = None) -> ManifestState:
    """Carry a prepared write through the protocol, or leave nothing of it behind.

    `held`: the lock of the branch, if the writer has prepared inside the effect window; schema changes hold further locks.
    """
    if write.branch_created_from is not None:
        with creating(context, write.branch, write.branch_created_from) as (locks, parent):
            check(write.requirements(), parent.state)
            check_receipts(parent, write.updates)
            return _carry_out(context, write, locks, parent)[0]
    if held is not None:
        return _carry_out(context, write, held, _enter(context, write))[0]
    with context.locks.hold(write.branch) as lock:
        known = lock.finds_settled and write.writer.checked_by_commits
        base = _enter_settled(context, write) if known else _enter(context, write)
        state, complete = _carry_out(context, write, lock, base)
        if complete:
            lock.leave_settled()
        return state


def _carry_out(
    context: CommitContext, write: Write, lock: HeldLock | HeldLocks, base: Warm
) -> tuple[ManifestState, bool]:
    """Carry out the phases under the lock. Returns the state after them, and whether nothing is left to clean up.

    `base`: the branch, or the parent from which it is created.
    """
    writer = write.writer
    writer.hit("pre_phase_a")
    if not lock.still_held():
        raise ManifestContention(f"the lock of branch '{write.branch}' was lost; nothing was written, repeat the write")
    sidecar = _plan(write)
    _require_whole(context, write)
    creates_branch = write.branch_created_from is not None
    drafted = None if creates_branch else _draft_ahead(context, write, sidecar, base)
    if drafted is not None and context.root.is_local:
        # Local drafting is done, or failed: so a full disk is detected before any table has moved.
        drafted.result()
    with span("commit.record"):
        _phase_a(context, write, sidecar)
    moved: dict[str, int] = {}
    try:
        writer.hit("post_phase_a")
        if creates_branch:
            make_branch(context, base, write.branch)
            base = context.manifest.warm(write.branch)
        with span("commit.effects", tables=len(write.effects)):
            updates = _phase_b(context, write, sidecar, moved)
        if writer.mode is Mode.CONFIRMED:
            sidecar = sidecar.confirmed(moved)
            _put_record(context, sidecar)
            failpoints.hit("branch_merge.post_confirm")
        context.make_durable(*(effect.entry.path for effect in write.effects))
        writer.hit("post_phase_b_pre_manifest_commit")
        updates += write.updates
        ahead = drafted.result() if drafted is not None else None
        with span("commit.publish"):
            state = publish(context, write.branch, updates, write.requirements(), write.lineage, base, ahead)
        writer.hit("post_phase_c")
        if sidecar.changes_schema:
            if sidecar.moves_schema_files:
                _promote(context, sidecar)
            purge(context, sidecar)
    except OmnigraphError as error:
        return _settle(context, write, sidecar, frozenset(moved), error), False
    with span("commit.finish"):
        complete = delete_sidecar(context.store, sidecar.operation_id)
        compact_when_due(context.manifest, write.branch)
    return state, complete


# --- before the first effect ------------------------------------------------------------------------------------------


def _enter(context: CommitContext, write: Write) -> Warm:
    """Under the lock: settle pending writes, then check the requirements and that no table has drifted."""
    look = _look(context, write)
    if look.operations.result() and heal(context, holding={write.branch}):
        look = _look(context, write)
    base = look.base.result()
    if base.state.stamp != CURRENT:
        base = migrated(context, write.branch)
    check(write.requirements(), base.state)
    check_receipts(base, write.updates)
    _refuse_shared(context, write, base.state)
    for entry, head in look.heads:
        refuse_drift(context, write.branch, entry, head.result())
    return base


def _enter_settled(context: CommitContext, write: Write) -> Warm:
    """The same for a lock that nobody has held since this process left the branch settled: the cached state still applies.

    Makes no request. A writer that ignores locks is detected by the commits: a table's commit must produce the version after
    its pin, and the manifest's commit must replace the fence.
    """
    base = context.manifest.last_seen(write.branch)
    check(write.requirements(), base.state)
    check_receipts(base, write.updates)
    _refuse_shared(context, write, base.state)
    return base


def _refuse_shared(context: CommitContext, write: Write, state: ManifestState) -> None:
    """Raise if a table to be written is shared: a branch that was created again shares the forks of its namesake."""
    for effect in write.effects:
        if effect.has_pin and context.forks.is_shared(state, effect.entry):
            raise ExpectedVersionMismatch(
                f"{effect.entry.key} does not belong to branch '{write.branch}': the branch was created anew while this write "
                "was prepared; repeat the write",
                table_key=effect.entry.key,
                expected=effect.entry.version,
                actual=effect.entry.version,
            )


@dataclass(frozen=True, slots=True)
class _Look:
    """The answers of the store at the start of the effect window, from three kinds of concurrent requests."""

    operations: Future[list[str]]
    base: Future[Warm]
    heads: list[tuple[TableEntry, Future[int | None]]]


def _look(context: CommitContext, write: Write) -> _Look:
    entries = [effect.entry for effect in write.effects if effect.has_pin]
    with at_once(context.root) as requests:
        return _Look(
            operations=requests.submit(list_sidecars, context.store),
            base=requests.submit(context.manifest.warm, write.branch),
            heads=[
                (entry, requests.submit(context.tables.head_version, entry.location, likely=entry.version))
                for entry in entries
            ],
        )


def _draft_ahead(context: CommitContext, write: Write, sidecar: Sidecar, base: Warm) -> Future[Draft] | None:
    """Stage phase C while A and B run, if the result of B can be predicted; else None. B may still turn out otherwise."""
    updates: list[Update] = []
    for effect, planned in zip(write.effects, sidecar.tables, strict=True):
        staged = [step.stage for step in effect.steps if isinstance(step.stage, Staged)]
        if len(staged) < len(effect.steps):
            return None
        rows = effect.entry.row_count + sum(step.stats.inserted - step.stats.deleted for step in staged)
        version = planned.post_commit_pin
        assert version is not None, "a plan of ours says what it leads to"
        updates.append(SetTable(replace(effect.entry, version=version, branch=planned.table_branch, row_count=rows)))
    requests = at_once(context.root)
    drafted = requests.submit(draft, context, base, [*updates, *write.updates], write.lineage)
    requests.shutdown(wait=False)
    return drafted


def _require_whole(context: CommitContext, write: Write) -> None:
    """Raise `ShortFile`, before anything has changed, unless everything staged beforehand is complete on disk."""
    for effect in write.effects:
        for step in effect.steps:
            if isinstance(step.stage, Staged):
                require_whole(context.root, files_of_staged(step.stage))


# --- phase A ----------------------------------------------------------------------------------------------------------


def _plan(write: Write) -> Sidecar:
    operation_id = write.operation_id
    receipts = {
        update.commit or write.lineage.id: update for update in write.updates if isinstance(update, RecordReceipt)
    }
    earlier = next((update.lineages for update in write.updates if isinstance(update, EarlierCommits)), ())
    compiled = write.schema[schema_files.COMPILED] if write.schema is not None else None
    paths = {effect.entry.path for effect in write.effects}
    return Sidecar(
        operation_id=operation_id,
        kind=write.kind,
        branch=write.branch,
        actor_id=write.lineage.actor,
        created_at=write.lineage.created_at,
        commit=replace(_plan_commit(write.lineage, receipts), if_commit=write.if_commit),
        earlier=tuple(_plan_commit(lineage, receipts) for lineage in earlier),
        schema_version=_record_version(write, earlier),
        tables=tuple(_plan_table(effect, operation_id) for effect in write.effects),
        schema_target=schema_files.target_hash(compiled) if compiled is not None else None,
        branch_created_from=write.branch_created_from,
        dropped=tuple(update.entry.path for update in write.updates if isinstance(update, DropTable)),
        purged=write.purges,
        renamed=tuple(
            (update.entry.path, update.entry.key)
            for update in write.updates
            if isinstance(update, SetTable) and update.entry.path not in paths
        ),
    )


def _record_version(write: Write, earlier: tuple[Lineage, ...]) -> int:
    if write.schema is not None and (write.kind is not Kind.SCHEMA_APPLY or write.branch != MAIN):
        return OF_SCHEMAS
    return OF_GROUPS if earlier else SCHEMA_VERSION


def _plan_commit(lineage: Lineage, receipts: Mapping[str, RecordReceipt]) -> PlannedCommit:
    receipt = receipts.get(lineage.id)
    return PlannedCommit(
        id=lineage.id,
        created_at=lineage.created_at,
        merged_parent=lineage.merged_parent,
        idempotency_key=receipt.key if receipt else None,
        kind=lineage.kind,
        request=receipt.request if receipt else None,
        receipt=dict(receipt.receipt) if receipt else None,
        message=lineage.message,
        group=None if lineage.group is None else group_object(lineage.group, lineage.touched),
        actor_id=None if lineage.group is None else lineage.actor,
        changed=None if lineage.changed is None else changed_object(lineage.changed),
    )


def _plan_table(effect: TableEffect, operation_id: str) -> PlannedTable:
    entry = effect.entry
    expected = None if effect.creates else entry.version
    return PlannedTable(
        table_key=entry.key,
        table_path=entry.path,
        table_branch=operation_id if effect.forks else entry.branch,
        expected_version=expected,
        post_commit_pin=(expected or 0) + len(effect.steps),
        transaction_id=new_ulid(),
        forked_from=ForkedFrom(entry.branch, entry.version) if effect.forks else None,
    )


def _phase_a(context: CommitContext, write: Write, sidecar: Sidecar) -> None:
    try:
        _put_record(context, sidecar)
        if write.schema is not None and sidecar.moves_schema_files:
            schema_files.stage(context.store, write.schema)
            context.make_durable(*map(schema_files.staged_path, schema_files.FILES))
        elif write.schema is not None:
            schema_files.archive(context.store, context.root, write.schema)
            context.make_durable(schema_files.ARCHIVE, schema_files.SOURCES)
    except OmnigraphError:
        # Nothing has moved. The put may have happened although it failed; a sidecar without effects is harmless. It goes last,
        # because it explains the staged files. An archived schema that no state names is harmless too.
        if sidecar.moves_schema_files:
            schema_files.drop_staged(context.store)
        delete_sidecar(context.store, sidecar.operation_id)
        raise


def _put_record(context: CommitContext, sidecar: Sidecar) -> None:
    write_sidecar(context.store, sidecar)
    context.make_durable(sidecar.path)


# --- phase B ----------------------------------------------------------------------------------------------------------


def _phase_b(context: CommitContext, write: Write, sidecar: Sidecar, moved: dict[str, int]) -> list[Update]:
    """Commit the steps of every table. `moved` collects, by path, the version each table has, or may have, reached."""
    updates: list[Update] = []
    for number, (effect, planned) in enumerate(zip(write.effects, sidecar.tables, strict=True)):
        if number:
            write.writer.hit("mid_phase_b")
        location = Location(planned.table_path, planned.table_branch)
        if planned.forked_from is not None:
            source = Location(planned.table_path, planned.forked_from.branch)
            location = fork(context.tables, source, planned.forked_from.version, sidecar.operation_id)
        version = planned.expected_version
        assert planned.transaction_id is not None
        for step in effect.steps:
            staged = step.stage
            if callable(staged):
                assert version is not None, "a table is created by a transaction that was staged beforehand"
                staged = staged(context.tables.open(location, version))
            try:
                version = commit_staged(
                    context.tables,
                    staged,
                    expected_version=version,
                    transaction_id=planned.transaction_id,
                    seen_at_pin=effect.has_pin and step is effect.steps[0],
                    seen_whole=staged is step.stage,
                )
            except ExpectedVersionMismatch as conflict:
                # Another writer has moved this table, so its new versions are not from this write.
                raise ExpectedVersionMismatch(
                    f"{planned.table_key} was moved by another writer at the same time ({conflict})",
                    table_key=planned.table_key,
                    expected=conflict.expected,
                    actual=conflict.actual,
                ) from conflict
            except OmnigraphError:
                moved[planned.table_path] = (version or 0) + 1
                raise
            moved[planned.table_path] = version
            if step.failpoint is not None:
                failpoints.hit(step.failpoint)
        assert version is not None
        rows = context.tables.open(location, version).count_rows()
        updates.append(SetTable(replace(effect.entry, version=version, branch=location.branch, row_count=rows)))
    return updates


# --- after C, or after a failure --------------------------------------------------------------------------------------


def _promote(context: CommitContext, sidecar: Sidecar) -> None:
    """Make the staged schema files live; the manifest already names the new schema. Recovery finishes failures here."""
    _put_record(context, replace(sidecar, published=True))
    failpoints.hit("schema_apply.before_promote")
    schema_files.promote(context.store, context.root)
    context.make_durable(*schema_files.FILES)
    failpoints.hit("schema_apply.after_promote")


def _settle(
    context: CommitContext, write: Write, sidecar: Sidecar, moved: frozenset[str], error: OmnigraphError
) -> ManifestState:
    """After a failure in B or C, finish or undo the write at once, so that the caller gets a clear answer."""
    attempt = Attempt(moved=moved, must_undo=isinstance(error, Conflict))
    try:
        outcome = recover(context, sidecar, live=attempt)
        if outcome.recovery_kind == "RolledForward":
            return context.manifest.load(write.branch)
    except OmnigraphError as unsettled:
        _log.warning("operation %s could not be settled at once: %s", sidecar.operation_id, unsettled)
        if isinstance(error, CommitStateUnknown):
            raise error from unsettled
        raise RecoveryRequired(
            f"the write failed half-way ({_cause(error)}) and could not be settled yet ({_cause(unsettled)}); operation "
            f"{sidecar.operation_id} will be finished or undone as a whole by the next write, refresh or open. Before you "
            f"repeat it, look for commit {write.lineage.id} (`omnigraph commit show`), or run `omnigraph recovery list`",
            operation_id=sidecar.operation_id,
        ) from error
    raise error


def _cause(error: OmnigraphError) -> str:
    """The text of an error without its advice, which assumes that nothing was changed."""
    return str(error).partition("; ")[0]
