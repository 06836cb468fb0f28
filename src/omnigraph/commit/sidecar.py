"""Sidecars (recovery records): what a write is about to do, written before its first durable effect.

One JSON object per running write, `__recovery/<operation id>.json`; the folder is empty when no write is running.
"""

from __future__ import annotations

import logging
import re
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from typing import Any

import orjson

from omnigraph import failpoints
from omnigraph.commit.model import MAIN
from omnigraph.commit.record_fields import Fields
from omnigraph.commit.rows import decode_changed, decode_group, decode_touched
from omnigraph.errors import NotFound, OmnigraphError, StorageError
from omnigraph.storage.objects import ObjectStore

FOLDER = "__recovery"
SCHEMA_VERSION = 2
#: Record version with several commits. Older releases must not settle such a sidecar: they would lose commits.
OF_GROUPS = 3
#: Record version with a schema change on another branch than main, or by a merge. Older releases, in which a schema
#: does not belong to a branch, would settle the sidecar without the schema.
OF_SCHEMAS = 4
NEWEST = OF_SCHEMAS
#: The first record version whose merges confirm the versions they reached (phase B′). A historical constant.
CONFIRMATION_SINCE = 2

failpoints.declare("recovery.sidecar_write", "recovery.sidecar_delete", "recovery.sidecar_list")

_log = logging.getLogger(__name__)
_TABLE = re.compile(r"(nodes|edges)/(?!\.\.?$)[^/]+")
_NEW_TABLE = re.compile(r"(nodes|edges)/[0-9a-f]{16}-[0-9a-f]{16}")


class Kind(StrEnum):
    """The kind of write of a sidecar. Revert and cherry-pick write as BranchMerge."""

    MUTATION = "Mutation"
    LOAD = "Load"
    SCHEMA_APPLY = "SchemaApply"
    BRANCH_MERGE = "BranchMerge"
    ENSURE_INDICES = "EnsureIndices"
    OPTIMIZE = "Optimize"


@dataclass(frozen=True, slots=True)
class ForkedFrom:
    """The Lance branch and version from which this write forked a table."""

    branch: str | None
    version: int


@dataclass(frozen=True, slots=True)
class PlannedTable:
    """One table that a write is going to move. `expected_version` None: the write creates it."""

    table_key: str
    table_path: str
    table_branch: str | None
    expected_version: int | None
    post_commit_pin: int | None
    transaction_id: str | None
    confirmed_version: int | None = None
    forked_from: ForkedFrom | None = None


@dataclass(frozen=True, slots=True)
class PlannedCommit:
    """The commit that a write is going to publish. `if_commit`: only while this commit is still the branch head."""

    id: str
    created_at: int
    merged_parent: str | None = None
    idempotency_key: str | None = None
    kind: str | None = None
    #: The contents of the receipt row, so that a write that was rolled forward answers a repeat like the first call.
    request: str | None = None
    receipt: dict[str, Any] | None = None
    if_commit: str | None = None
    message: str | None = None
    #: Its place in a group and what it did itself, as in its manifest row; None for a commit published alone.
    group: dict[str, Any] | None = None
    #: Its actor, if it is a commit of a group; else the actor of the sidecar applies.
    actor_id: str | None = None
    #: How many rows it changes, as in its manifest row; None if they are not counted.
    changed: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Sidecar:
    """One recovery record."""

    operation_id: str
    kind: Kind
    branch: str
    actor_id: str | None
    created_at: int
    commit: PlannedCommit
    tables: tuple[PlannedTable, ...]
    schema_version: int = SCHEMA_VERSION
    schema_target: str | None = None
    branch_created_from: str | None = None
    #: Tables (by path) that a schema change drops, and tables (path, new key) that it renames without moving them.
    dropped: tuple[str, ...] = ()
    renamed: tuple[tuple[str, str], ...] = ()
    #: Paths of tables whose earlier data is removed once this is published: dropped tables entirely, others their old versions.
    purged: tuple[str, ...] = ()
    #: Set by a schema change between phases C and D: the manifest names the new schema, its files may lag behind.
    published: bool = False
    #: The commits of the same group that come before `commit`, in order.
    earlier: tuple[PlannedCommit, ...] = ()

    @property
    def commits(self) -> tuple[PlannedCommit, ...]:
        """All commits that it publishes, in order."""
        return (*self.earlier, self.commit)

    @property
    def changes_schema(self) -> bool:
        """Whether it changes the accepted schema of its branch."""
        return self.kind is Kind.SCHEMA_APPLY or self.schema_target is not None

    @property
    def moves_schema_files(self) -> bool:
        """Whether the schema files at the root must change too: they describe main."""
        return self.changes_schema and self.branch == MAIN

    @property
    def path(self) -> str:
        return sidecar_path(self.operation_id)

    def confirmed(self, versions: dict[str, int]) -> Sidecar:
        """The sidecar of phase B′, with the version that every planned table reached. `versions`: by table path."""
        missing = [table.table_key for table in self.tables if table.table_path not in versions]
        if missing:
            raise StorageError(
                f"operation {self.operation_id} can not be confirmed: no version reached for {', '.join(missing)}",
                kind="permanent",
                path=self.path,
            )
        tables = tuple(replace(table, confirmed_version=versions[table.table_path]) for table in self.tables)
        return replace(self, tables=tables)

    def to_json(self) -> bytes:
        value = asdict(self)
        for planned in (value["commit"], *value["earlier"]):
            for name in ("message", "group", "actor_id", "changed"):
                if planned[name] is None:
                    del planned[name]
        if not self.earlier:
            del value["earlier"]
        return orjson.dumps({"schema_version": value.pop("schema_version"), **value}, option=orjson.OPT_INDENT_2)


class UnreadableSidecar(OmnigraphError):
    """A sidecar that can not be parsed. It is kept: only an operator may set it aside."""

    def __init__(self, message: str, *, path: str) -> None:
        super().__init__(message)
        self.path = path


def sidecar_path(operation_id: str) -> str:
    return f"{FOLDER}/{operation_id}.json"


def parse_sidecar(data: bytes, path: str) -> Sidecar:
    """A sidecar from its JSON; raises `UnreadableSidecar` with the path for anything else."""
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError:
        raise UnreadableSidecar(f"recovery record {path} is not valid JSON; {_way_out(path)}", path=path) from None
    try:
        fields = Fields(value, "the record")
        version = fields.number("schema_version")
        if version > NEWEST:
            raise UnreadableSidecar(
                f"recovery record {path} has version {version}, this OmniGraph knows {NEWEST}; upgrade omnigraph",
                path=path,
            )
        return _decode(fields, version, path)
    except (ValueError, TypeError) as error:
        raise UnreadableSidecar(
            f"recovery record {path} is incomplete or damaged ({error}); {_way_out(path)}", path=path
        ) from None


def _way_out(path: str) -> str:
    operation = path.removeprefix(f"{FOLDER}/").removesuffix(".json")
    return f"look at it, then set it aside with `omnigraph recovery discard {operation} --confirm`"


def _decode(fields: Fields, version: int, path: str) -> Sidecar:
    operation_id = fields.text("operation_id")
    if version < 1 or sidecar_path(operation_id) != path:
        # Such a sidecar could not be removed under its own name.
        raise ValueError(f"it is the record of operation {operation_id}, version {version}")
    created_at = fields.optional_number("created_at") or 0
    return Sidecar(
        operation_id=operation_id,
        kind=Kind(fields.text("kind")),
        branch=fields.optional_text("branch") or "main",
        actor_id=fields.optional_text("actor_id"),
        created_at=created_at,
        commit=_decode_commit(fields.optional_object("commit") or {"id": operation_id, "created_at": created_at}),
        tables=tuple(_decode_table(Fields(table, "a table")) for table in fields.list("tables")),
        schema_version=version,
        schema_target=fields.optional_text("schema_target"),
        branch_created_from=fields.optional_text("branch_created_from"),
        dropped=tuple(_table_path(path) for path in fields.optional_list("dropped")),
        renamed=tuple((_table_path(path), str(key)) for path, key in fields.optional_list("renamed")),
        purged=tuple(_table_path(path) for path in fields.optional_list("purged")),
        published=fields.flag("published"),
        earlier=tuple(_decode_commit(planned) for planned in fields.optional_list("earlier")),
    )


def _decode_commit(value: dict[str, Any]) -> PlannedCommit:
    fields = Fields(value, "the commit")
    group = fields.optional_object("group")
    try:
        decode_group(group), decode_touched(group), decode_changed(fields.optional_object("changed"))
    except (KeyError, AttributeError) as error:
        raise ValueError(f"the group or the counts of the commit are incomplete ({error})") from None
    return PlannedCommit(
        id=fields.text("id"),
        created_at=fields.optional_number("created_at") or 0,
        merged_parent=fields.optional_text("merged_parent"),
        idempotency_key=fields.optional_text("idempotency_key"),
        kind=fields.optional_text("kind"),
        request=fields.optional_text("request"),
        receipt=fields.optional_object("receipt"),
        if_commit=fields.optional_text("if_commit"),
        message=fields.optional_text("message"),
        group=group,
        actor_id=fields.optional_text("actor_id"),
        changed=fields.optional_object("changed"),
    )


def _decode_table(fields: Fields) -> PlannedTable:
    expected = fields.optional_number("expected_version")
    forked = fields.optional_object("forked_from")
    return PlannedTable(
        table_key=fields.text("table_key"),
        table_path=_table_path(fields.text("table_path"), created=expected is None),
        table_branch=fields.optional_text("table_branch"),
        expected_version=expected,
        post_commit_pin=fields.optional_number("post_commit_pin"),
        transaction_id=fields.optional_text("transaction_id"),
        confirmed_version=fields.optional_number("confirmed_version"),
        forked_from=_decode_fork(Fields(forked, "forked_from")) if forked is not None else None,
    )


def _decode_fork(fields: Fields) -> ForkedFrom:
    return ForkedFrom(fields.optional_text("branch"), fields.number("version"))


def _table_path(path: object, *, created: bool = False) -> str:
    """Check the path of a table, because recovery may remove what lies there. A new table's path contains its identity."""
    shape = _NEW_TABLE if created else _TABLE
    if not isinstance(path, str) or shape.fullmatch(path) is None:
        raise ValueError(f"{path!r} is not the path of a table")
    return path


# --- the folder -------------------------------------------------------------------------------------------------------


def write_sidecar(store: ObjectStore, sidecar: Sidecar) -> None:
    """Write the sidecar in phase A and B′; a failure in phase A aborts the write before any effect."""
    failpoints.hit("recovery.sidecar_write")
    store.put(sidecar.path, sidecar.to_json())


def delete_sidecar(store: ObjectStore, operation_id: str) -> bool:
    """Delete the sidecar in phase D. A failure only logs a warning and returns False; the next heal removes the record."""
    try:
        failpoints.hit("recovery.sidecar_delete")
        store.delete(sidecar_path(operation_id))
    except OmnigraphError as error:
        _log.warning("recovery record of finished operation %s could not be removed: %s", operation_id, error)
        return False
    return True


def list_sidecars(store: ObjectStore) -> list[str]:
    """The operation ids of pending sidecars, oldest first. A failed listing raises; it is never taken for an empty one."""
    failpoints.hit("recovery.sidecar_list")
    names = (info.path.removeprefix(f"{FOLDER}/") for info in store.list(FOLDER))
    return sorted(name.removesuffix(".json") for name in names if name.endswith(".json") and "/" not in name)


def read_sidecar(store: ObjectStore, operation_id: str) -> Sidecar | None:
    """A pending sidecar; None when another process has settled it meanwhile."""
    data = store.get_or_none(sidecar_path(operation_id))
    return None if data is None else parse_sidecar(data, sidecar_path(operation_id))


def discard_sidecar(store: ObjectStore, operation_id: str) -> str:
    """Move a sidecar aside on an operator's request, without destroying it. Returns its new path."""
    data = store.get_or_none(sidecar_path(operation_id)) if operation_id and "/" not in operation_id else None
    if data is None:
        raise NotFound(f"no recovery record of operation '{operation_id}' is pending; see `omnigraph recovery list`")
    aside = f"{FOLDER}/discarded/{operation_id}.json"
    store.put(aside, data)
    store.delete(sidecar_path(operation_id))
    return aside
