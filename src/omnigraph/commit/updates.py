"""A publish as data: updates say what becomes true, requirements what must still be true. Both are pure.

`check` and `apply_updates` need only a ManifestState, so the compare-and-swap can be tested without I/O.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from omnigraph.commit import rows
from omnigraph.commit.model import Commit, Identity, Lineage, ManifestState, TableEntry
from omnigraph.errors import (
    AlreadyExists,
    Conflict,
    ExpectedVersionMismatch,
    NotFound,
    OmnigraphError,
    PreconditionFailed,
    ReadSetChanged,
    SchemaChanged,
)

# --- requirements -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TableAt:
    """A table that is written must still be at the version (and fork) the write was staged against."""

    key: str
    identity: Identity
    version: int | None
    branch: str | None


@dataclass(frozen=True, slots=True)
class TableUnchanged:
    """A table that was read for a check must still be at the version the check saw."""

    key: str
    identity: Identity
    version: int
    branch: str | None


@dataclass(frozen=True, slots=True)
class HeadIs:
    """The branch head must still be this commit: a conditional write."""

    commit: str


@dataclass(frozen=True, slots=True)
class SchemaIs:
    """The schema a write was prepared under must still be the accepted one.

    None: a graph of an older format, which records no schema until its first schema change.
    """

    schema_hash: str | None


@dataclass(frozen=True, slots=True)
class TagIs:
    """A tag must still name this commit; None: there must be no such tag."""

    name: str
    commit: str | None


@dataclass(frozen=True, slots=True)
class FenceIs:
    """Nothing at all may have been published since the state with this count of publishes was read."""

    count: int


Requirement = TableAt | TableUnchanged | HeadIs | SchemaIs | TagIs | FenceIs


def written(entry: TableEntry) -> TableAt:
    """The requirement of a write to this table."""
    return TableAt(entry.key, entry.identity, entry.version, entry.branch)


def created(key: str, identity: Identity) -> TableAt:
    """The requirement of a write that creates this table: it is not registered yet."""
    return TableAt(key, identity, None, None)


def read(entry: TableEntry) -> TableUnchanged:
    """The requirement of a check that read this table."""
    return TableUnchanged(entry.key, entry.identity, entry.version, entry.branch)


def check(requirements: Iterable[Requirement], state: ManifestState) -> None:
    """Raise the error of the first requirement that does not hold."""
    for requirement in requirements:
        if isinstance(requirement, HeadIs):
            if state.head != requirement.commit:
                raise PreconditionFailed(
                    f"branch '{state.branch}' is at commit {state.head}, not at {requirement.commit}; "
                    "read it again and repeat the write",
                    branch=state.branch,
                    expected=requirement.commit,
                    actual=state.head,
                )
            continue
        if isinstance(requirement, SchemaIs):
            if state.schema_hash != requirement.schema_hash:
                raise SchemaChanged(
                    "the schema was changed while this write was being prepared; repeat the write",
                    expected=requirement.schema_hash,
                    actual=state.schema_hash,
                )
            continue
        if isinstance(requirement, TagIs):
            if state.tags.get(requirement.name) != requirement.commit:
                raise _other_tag(requirement, state)
            continue
        if isinstance(requirement, FenceIs):
            if state.fence != requirement.count:
                raise Conflict(f"branch '{state.branch}' was published on meanwhile; look again")
            continue
        entry = state.tables.get(requirement.identity)
        actual = (entry.version, entry.branch) if entry else (None, None)
        if actual == (requirement.version, requirement.branch):
            continue
        if isinstance(requirement, TableUnchanged):
            raise ReadSetChanged(
                f"{requirement.key} changed while this write was being checked; repeat the write",
                table_key=requirement.key,
            )
        raise ExpectedVersionMismatch(
            f"{requirement.key} is at version {actual[0]}, this write was prepared at {requirement.version}; "
            "repeat the write",
            table_key=requirement.key,
            expected=requirement.version,
            actual=actual[0],
        )


def _other_tag(required: TagIs, state: ManifestState) -> OmnigraphError:
    if required.commit is None:
        return AlreadyExists(
            f"tag '{required.name}' already exists and names commit {state.tags[required.name]}; delete it first to move it",
            name=required.name,
        )
    if required.name not in state.tags:
        return NotFound(f"tag '{required.name}' not found")
    return Conflict(f"tag '{required.name}' names another commit by now ({state.tags[required.name]}); look again")


# --- updates ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SetTable:
    """A table is now at this version; a new table is registered, a renamed table gets its new key."""

    entry: TableEntry


@dataclass(frozen=True, slots=True)
class DropTable:
    """A table is no longer part of the graph; its data stays until cleanup."""

    entry: TableEntry


@dataclass(frozen=True, slots=True)
class SetTag:
    name: str
    commit: str
    actor: str | None = None


@dataclass(frozen=True, slots=True)
class DropTag:
    name: str


@dataclass(frozen=True, slots=True)
class RecordReceipt:
    """Store the answer to a write under its idempotency key; refused when the key exists already."""

    key: str
    request: str
    receipt: Mapping[str, Any]
    #: The commit it belongs to, if that is one of `EarlierCommits` or the commit of a tag; None: the commit of the publish.
    commit: str | None = None


@dataclass(frozen=True, slots=True)
class EarlierCommits:
    """Commits of a group before the commit of the publish, in order; the updates are those of all commits together."""

    lineages: tuple[Lineage, ...]


@dataclass(frozen=True, slots=True)
class ImportCommits:
    """Commits of another branch that are now reachable in this branch's history."""

    commits: tuple[Commit, ...]


@dataclass(frozen=True, slots=True)
class SetSchema:
    """The compiled schema with this hash is the accepted one."""

    schema_hash: str


@dataclass(frozen=True, slots=True)
class Restate:
    """Rows of the state written again unchanged, so that they lie together; to be published with `FenceIs`."""

    rows: tuple[rows.Row, ...]


Update = SetTable | DropTable | SetTag | DropTag | RecordReceipt | EarlierCommits | ImportCommits | SetSchema | Restate


@dataclass(frozen=True, slots=True)
class Publication:
    """The rows that one publish writes and the state it leads to (with version and addresses still of the old state)."""

    rows: list[rows.Row]
    state: ManifestState
    #: Object ids of the rows that are removed.
    removed: tuple[str, ...] = ()
    #: The parent of its commit.
    parent: str | None = None


def apply_updates(state: ManifestState, updates: Iterable[Update], lineage: Lineage | None) -> Publication:
    """The rows that a publish of these updates writes, and the state after it. `lineage` None: it makes no commit."""
    tables = dict(state.tables)
    tags = dict(state.tags)
    schema_hash = state.schema_hash
    written_rows: list[rows.Row] = []
    removed: list[str] = []
    parent = state.head or None
    for update in updates:
        match update:
            case SetTable(entry):
                known = tables.get(entry.identity)
                if known is None or known.key != entry.key or known.path != entry.path:
                    written_rows.append(rows.table_row(entry))
                written_rows.append(rows.version_row(entry))
                tables[entry.identity] = entry
            case DropTable(entry):
                written_rows.append(rows.tombstone_row(entry))
                tables.pop(entry.identity, None)
            case SetTag(name, commit, actor):
                written_rows.append(rows.tag_row(name, commit, actor))
                tags[name] = commit
            case DropTag(name):
                removed.append(rows.tag_object_id(name))
                tags.pop(name, None)
            case RecordReceipt(key, request, receipt, commit_id):
                about = commit_id or (lineage.id if lineage is not None else None)
                assert about is not None, "a receipt is about a commit"
                written_rows.append(rows.idempotency_row(key, commit_id=about, request=request, receipt=receipt))
            case EarlierCommits(lineages):
                for earlier in lineages:
                    written_rows.append(rows.commit_row(earlier, branch=state.branch, parent=parent))
                    parent = earlier.id
            case ImportCommits(commits):
                written_rows.extend(rows.copied_commit_row(commit) for commit in commits)
            case SetSchema(accepted):
                schema_hash = accepted
            case Restate(again):
                written_rows.extend(again)
    if lineage is None:
        # This publish makes a version but no commit, so the version of the newest commit is stored.
        written_rows.append(rows.fence_row(state.fence + 1, state.head, schema_hash, state.commit_version))
        same_head = replace(state, fence=state.fence + 1, tables=tables, tags=tags, schema_hash=schema_hash)
        return Publication(written_rows, same_head, tuple(removed))
    written_rows.append(rows.commit_row(lineage, branch=state.branch, parent=parent))
    written_rows.append(rows.head_row(state.branch, lineage.id))
    written_rows.append(rows.fence_row(state.fence + 1, lineage.id, schema_hash))
    after = replace(
        state,
        fence=state.fence + 1,
        head=lineage.id,
        tables=tables,
        tags=tags,
        newest=None,
        schema_hash=schema_hash,
    )
    return Publication(written_rows, after, tuple(removed), parent)
