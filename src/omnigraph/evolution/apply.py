"""A schema change as one commit: check the stored rows, stage one transaction per table, publish, promote.

    prepare     compare, refuse, validate, stage           no lock; nothing moves
    window      the lock of the branch                     no writer on it; for a hard drop no new branch either
    execute     sidecar, tables, manifest, schema files    `commit.protocol`

If another writer moves a table while the change is prepared without the lock, it is prepared again inside the window. If
another schema change comes first, it is not: the change was meant for the schema that was accepted when it was requested.

A schema belongs to a branch. A table that the branch still shares is forked when the change moves it, so no other branch
is affected; a hard drop removes older versions, so it is refused while another branch or a tag names the table.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from omnigraph import failpoints
from omnigraph.commit.branch_refs import SCHEMA_APPLY_LOCK
from omnigraph.commit.branches import branch_names
from omnigraph.commit.context import CommitContext
from omnigraph.commit.exactly_once import Once, commit_made, refuse_other_request
from omnigraph.commit.history import state_of
from omnigraph.commit.model import Commit, Lineage, ManifestState, TableEntry
from omnigraph.commit.protocol import Step, TableEffect, Write
from omnigraph.commit.rows import Receipt
from omnigraph.commit.schema_files import COMPILED, SchemaFiles, archive, archived_source_path, target_hash
from omnigraph.commit.tags import tagged_commits
from omnigraph.commit.updates import DropTable, RecordReceipt, SchemaIs, SetSchema, SetTable, Update
from omnigraph.commit.write_loop import Prepared, Writing, carry_out
from omnigraph.commit.writers import SCHEMA_APPLY
from omnigraph.errors import BranchNotFound, CommitNotFound, Conflict, HistoricalVersionReclaimed
from omnigraph.evolution.compare import entities, kept_names
from omnigraph.evolution.existing import broken, must_be_judged, refuse_broken, shown_violations
from omnigraph.evolution.image import changes_table, wanted_columns
from omnigraph.evolution.look import Backfilled, Entity
from omnigraph.evolution.plan import Plan, plan_change, plan_of
from omnigraph.evolution.rekey import other_ids
from omnigraph.evolution.steps import RULE_BROKEN, UnsupportedChange
from omnigraph.evolution.stored import stored_rows
from omnigraph.language.schema.ir import SchemaIR
from omnigraph.shown import Shown
from omnigraph.storage.tables.columns import Beside, Values, stage_columns
from omnigraph.storage.tables.location import Location
from omnigraph.storage.tables.staged import Staged, stage_create
from omnigraph.storage.tables.table import Table
from omnigraph.values.columns import table_path, table_schema

failpoints.declare("schema_apply.prepared")


@dataclass(frozen=True, slots=True)
class Applied(Shown):
    """The result of applying a schema. `commit`: None when there was nothing to change."""

    plan: Plan
    commit: Commit | None
    graph_manifest_version: int

    @property
    def applied(self) -> bool:
        """Whether a commit was made; False when the accepted schema equals the wanted one."""
        return self.commit is not None

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values, ready for JSON."""
        about = {"applied": self.applied, "graph_manifest_version": self.graph_manifest_version}
        return self.plan.to_dict() | about | {"commit": None if self.commit is None else self.commit.id}


@dataclass(frozen=True)
class Change:
    """The accepted and the wanted schema of a branch, both with stable ids, and their files."""

    branch: str
    before: SchemaIR
    after: SchemaIR
    files_before: SchemaFiles
    files: SchemaFiles
    #: The schema hash in the manifest when `before` was read.
    base: str | None
    allow_data_loss: bool = False
    #: The backfills: how rows get values that they lack.
    backfilled: Backfilled = field(default_factory=Backfilled)
    #: Writes the columns of large tables elsewhere, such as on Spark; None: this process writes them.
    beside: Beside | None = None


def plan(context: CommitContext, change: Change) -> Plan:
    """What applying a schema would do, including refusals because of rows that break it."""
    state = context.manifest.load(change.branch)
    planned = _planned(context, change, state)
    if not planned.supported:
        return planned
    broken_rules = [
        UnsupportedChange(entity.type_key, f"rows break it: {shown_violations(found)}; change them first", RULE_BROKEN)
        for was, entity, table in _judged(context, change, state)
        if (found := broken(was, entity, table, change.backfilled.values(entity)))
    ]
    return replace(planned, steps=(*planned.steps, *broken_rules))


def _planned(context: CommitContext, change: Change, state: ManifestState) -> Plan:
    look = stored_rows(context, state, change.backfilled)
    return plan_change(change.before, change.after, look, allow_data_loss=change.allow_data_loss)


def _judged(context: CommitContext, change: Change, state: ManifestState) -> Iterator[tuple[Entity, Entity, Table]]:
    """Types whose rows may break the change: each before and after the change, with its table."""
    old = entities(change.before.catalog)
    for id_, entity in entities(change.after.catalog).items():
        if id_ in old and must_be_judged(old[id_], entity, change.backfilled.values(entity)):
            entry = state.tables[entity.id, entity.incarnation]
            yield old[id_], entity, context.tables.open(entry.location, entry.version)


def apply(
    context: CommitContext,
    branch: str,
    change: Callable[[], Change],
    lineage: Lineage,
    *,
    drops_data: bool = False,
    asked: Once | None = None,
) -> Applied:
    """Carry a schema change out as one commit, or none if there is nothing to change.

    `change`: called once, after pending writes of the branch are settled; compares the wanted schema with the accepted
    one. `drops_data`: it may be a hard drop. `asked`: a repeated call returns the first answer, from the receipt that is
    published with the commit.
    """
    return carry_out(_Applying(context, branch, change, lineage, drops_data, asked))


class _Applying(Writing[Applied]):
    """One change over both of its attempts."""

    writer = SCHEMA_APPLY

    def __init__(
        self,
        context: CommitContext,
        branch: str,
        change: Callable[[], Change],
        lineage: Lineage,
        drops_data: bool,
        asked: Once | None,
    ) -> None:
        self.context, self.branch = context, branch
        self.idempotency_key = None if asked is None else asked.key
        self._make_change, self._lineage, self._drops_data, self._asked = change, lineage, drops_data, asked
        self._change: Change | None = None

    def locks(self) -> tuple[str, ...]:
        """The branch's lock; for a hard drop also the lock that keeps new branches from being made."""
        return (self.branch, SCHEMA_APPLY_LOCK) if self._drops_data else (self.branch,)

    def capture(self) -> ManifestState:
        """The state to prepare on. A second attempt keeps the change of the first, made for the schema accepted then."""
        if self._change is None:
            self._change = self._make_change()
            self.requires = SchemaIs(self._change.base)
        return super().capture()

    def repeated(self, known: Receipt) -> Applied:
        assert self._asked is not None, "without a key there is no receipt"
        refuse_other_request(known, self._asked.request, self.branch, self._asked.key)
        commit = self.context.manifest.find_commit(self.branch, known.commit_id)
        assert commit is not None, "a receipt lies in the manifest beside its commit"
        return Applied(plan_of(known.receipt), commit, commit.manifest_version)

    def prepare(self, state: ManifestState) -> Prepared[Applied]:
        change, lineage = self._change, self._lineage
        assert change is not None, "the change is made when the state is captured"
        planned, write = _prepare(self.context, state, change, lineage, self._asked)
        if write is None:
            # An earlier sending of this request may have made the change.
            known = self.earlier()
            if known is not None:
                return Prepared(None, lambda _: self.repeated(known))
            return Prepared(None, lambda _: Applied(planned, None, state.commit_version))
        keep_replaced(self.context, change.files_before)
        failpoints.hit("schema_apply.prepared")

        def told(after: ManifestState | None) -> Applied:
            assert after is not None, "something was written"
            commit = commit_made(self.context, after, self.branch, lineage.id)
            return Applied(planned, commit, after.commit_version)

        # A tag or a branch may have been added since; neither is a commit, so no requirement would notice it.
        return Prepared(write, told, lambda: refuse_named_elsewhere(self.context, self.branch, write.purges))


def _receipt(asked: Once | None, planned: Plan) -> tuple[RecordReceipt, ...]:
    return () if asked is None else (RecordReceipt(asked.key, asked.request, planned.to_dict()),)


def keep_replaced(context: CommitContext, accepted: SchemaFiles) -> None:
    """Archive the replaced schema with its text: other branches and older snapshots may still have it."""
    if not context.store.exists(archived_source_path(target_hash(accepted[COMPILED]))):
        archive(context.store, context.root, accepted)


# --- preparing --------------------------------------------------------------------------------------------------------


@dataclass
class _Parts:
    """The parts of a write, collected type by type."""

    effects: list[TableEffect] = field(default_factory=list)
    updates: list[Update] = field(default_factory=list)
    reads: list[TableEntry] = field(default_factory=list)


def _prepare(
    context: CommitContext, state: ManifestState, change: Change, lineage: Lineage, asked: Once | None
) -> tuple[Plan, Write | None]:
    """The plan on a captured state, and the write that carries it out; None when there is nothing to change."""
    planned = _planned(context, change, state)
    planned.refuse_unsupported()
    if not planned.steps:
        return planned, None
    old, new = entities(change.before.catalog), entities(change.after.catalog)
    refuse_named_elsewhere(context, change.branch, _purged(change))
    # Check every rule before the first file is staged.
    for was, entity, table in _judged(context, change, state):
        refuse_broken(was, entity, table, change.backfilled.values(entity))
    parts = _Parts()
    ids = other_ids(context, state, change.before, change.after, change.backfilled)
    for id_, entity in new.items():
        if id_ in old:
            made = {**change.backfilled.values(entity), **ids.get(id_, {})}
            _change(context, state, old[id_], entity, made, change.beside, parts)
        else:
            _create(context, entity, parts)
    for id_, entity in old.items():
        if id_ not in new:
            _drop(state.tables[entity.id, entity.incarnation], parts)
    write = Write(
        kind=SCHEMA_APPLY.kind,
        branch=change.branch,
        lineage=lineage,
        effects=tuple(parts.effects),
        reads=tuple(parts.reads),
        updates=(*parts.updates, SetSchema(target_hash(change.files[COMPILED])), *_receipt(asked, planned)),
        requires=SchemaIs(change.base),
        schema=change.files,
        purges=_purged(change),
    )
    return planned, write


def _change(
    context: CommitContext,
    state: ManifestState,
    was: Entity,
    entity: Entity,
    made: Mapping[str, Values],
    beside: Beside | None,
    parts: _Parts,
) -> None:
    entry = state.tables[entity.id, entity.incarnation]
    renamed = replace(entry, key=entity.type_key)
    if changes_table(was, entity) or (made and entry.row_count):
        columns = wanted_columns(was, entity, made)

        def stage(table: Table) -> Staged:
            return stage_columns(table, columns, beside)

        if context.forks.is_shared(state, entry):
            # Other branches read this line of the table, so the change can only be staged on a new fork.
            parts.effects.append(TableEffect(renamed, (Step(stage),), forks=True))
        else:
            staged = stage(context.tables.open(entry.location, entry.version))
            parts.effects.append(TableEffect(renamed, (Step(staged),)))
        return
    if renamed != entry:
        parts.updates.append(SetTable(renamed))
    if renamed != entry or was != entity:
        parts.reads.append(entry)


def _create(context: CommitContext, entity: Entity, parts: _Parts) -> None:
    path = table_path(entity)
    entry = TableEntry(entity.type_key, path, (entity.id, entity.incarnation), 0, None, 0)
    staged = stage_create(context.tables, Location(path), table_schema(entity))
    parts.effects.append(TableEffect(entry, (Step(staged),), creates=True))


def _drop(entry: TableEntry, parts: _Parts) -> None:
    parts.updates.append(DropTable(entry))
    parts.reads.append(entry)


def _purged(change: Change) -> tuple[str, ...]:
    """The paths of tables whose older versions are removed: dropped types, and types with a dropped property."""
    if not change.allow_data_loss:
        return ()
    old, new = entities(change.before.catalog), entities(change.after.catalog)
    return tuple(
        table_path(entity)
        for id_, entity in old.items()
        if id_ not in new or len(kept_names(entity, new[id_])) < len(entity.properties)
    )


# --- other branches ---------------------------------------------------------------------------------------------------


def refuse_named_elsewhere(context: CommitContext, branch: str, purged: Collection[str]) -> None:
    """Raise if a tag or another branch names a table whose older versions would be removed, with their names."""
    if not purged:
        return
    tags: list[str] = []
    branches: list[str] = []
    keys: set[str] = set()
    for found, name, state in [*_tagged(context, tags), *_others(context, branch, branches)]:
        named = {entry.key for path, entry in state.by_path.items() if path in purged}
        if named:
            found.append(name)
            keys |= named
    if tags:
        raise Conflict(
            f"older snapshots of {', '.join(sorted(keys))} would be gone, and {_listed('tag', tags)} could not be read any more; "
            "delete it first (`omnigraph tag delete`), or drop without allow_data_loss"
        )
    if branches:
        raise Conflict(
            f"the data of {', '.join(sorted(keys))} would be gone, and {_listed('branch', branches)} still {_has(branches)} it; "
            "merge or delete first, or drop without allow_data_loss"
        )


_Named = tuple[list[str], str, ManifestState]


def _tagged(context: CommitContext, found: list[str]) -> Iterator[_Named]:
    for name, commit_id in tagged_commits(context).items():
        try:
            yield found, name, state_of(context.manifest, context.manifest.commit_near(commit_id))
        except (BranchNotFound, CommitNotFound, HistoricalVersionReclaimed):
            # The tagged state is no longer readable, so there is nothing to keep.
            continue


def _others(context: CommitContext, branch: str, found: list[str]) -> Iterator[_Named]:
    for name in branch_names(context):
        if name == branch:
            continue
        try:
            yield found, name, context.manifest.load(name)
        except BranchNotFound:
            continue


def _has(names: list[str]) -> str:
    return "has" if len(names) == 1 else "have"


def _listed(word: str, names: list[str]) -> str:
    many = "es" if word == "branch" else "s"
    return f"{word}{'' if len(names) == 1 else many} {', '.join(repr(name) for name in names)}"
