"""Recovery records ("sidecars"): what a write is about to do, written before its first durable effect.

One JSON object per running write, `__recovery/<operation id>.json`; the folder is empty in the steady state.
"""

from __future__ import annotations

import logging
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from typing import Any

import orjson

from omnigraph import failpoints
from omnigraph.errors import OmnigraphError, StorageError
from omnigraph.storage.objects import ObjectStore

FOLDER = "__recovery"
SCHEMA_VERSION = 2
#: The first version whose merges confirm what they reached (phase B′). A fixed fact of history, not an alias.
CONFIRMATION_SINCE = 2

failpoints.declare("recovery.sidecar_write", "recovery.sidecar_delete", "recovery.sidecar_list")

_log = logging.getLogger(__name__)


class Kind(StrEnum):
    """Who wrote a sidecar. Revert and cherry-pick write as BranchMerge."""

    MUTATION = "Mutation"
    LOAD = "Load"
    SCHEMA_APPLY = "SchemaApply"
    BRANCH_MERGE = "BranchMerge"
    ENSURE_INDICES = "EnsureIndices"
    OPTIMIZE = "Optimize"


@dataclass(frozen=True, slots=True)
class ForkedFrom:
    """Where a table was forked by this write: its Lance branch and version there."""

    branch: str | None
    version: int


@dataclass(frozen=True, slots=True)
class PlannedTable:
    """One table a write is going to move. `expected_version` None: the write creates it."""

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
    """The commit a write is going to publish. `if_commit`: only while this is still the branch head."""

    id: str
    created_at: int
    merged_parent: str | None = None
    idempotency_key: str | None = None
    kind: str | None = None
    #: What the idempotency row will hold, so that a rolled-forward write answers a repeat like the first call.
    request: str | None = None
    receipt: dict[str, Any] | None = None
    if_commit: str | None = None


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
    #: A schema change also drops tables (by path) and gives tables new keys (path → key) without moving them.
    dropped: tuple[str, ...] = ()
    renamed: tuple[tuple[str, str], ...] = ()
    #: Set between phases C and D by a schema change: the manifest names the new schema, its files may lag.
    published: bool = False

    @property
    def path(self) -> str:
        return sidecar_path(self.operation_id)

    def confirmed(self, versions: dict[str, int]) -> Sidecar:
        """The record of phase B′: the exact version every pinned table reached, by table path."""
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
        return orjson.dumps({"schema_version": value.pop("schema_version"), **value}, option=orjson.OPT_INDENT_2)


class UnreadableSidecar(OmnigraphError):
    """A recovery record that can not be understood. It is kept: only an operator may set it aside."""

    def __init__(self, message: str, *, path: str) -> None:
        super().__init__(message)
        self.path = path


def sidecar_path(operation_id: str) -> str:
    return f"{FOLDER}/{operation_id}.json"


def parse_sidecar(data: bytes, path: str) -> Sidecar:
    """A sidecar from its JSON; anything that is not one is refused with the file's name."""
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError:
        raise UnreadableSidecar(f"recovery record {path} is not valid JSON; {_way_out(path)}", path=path) from None
    try:
        version = value["schema_version"]
        if version > SCHEMA_VERSION:
            raise UnreadableSidecar(
                f"recovery record {path} has version {version}, this OmniGraph knows {SCHEMA_VERSION}; upgrade omnigraph",
                path=path,
            )
        return _decode(value)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UnreadableSidecar(
            f"recovery record {path} is incomplete ({type(error).__name__}: {error}); {_way_out(path)}", path=path
        ) from None


def _way_out(path: str) -> str:
    operation = path.removeprefix(f"{FOLDER}/").removesuffix(".json")
    return f"look at it, then set it aside with `omnigraph recovery discard {operation} --confirm`"


def _decode(value: dict[str, Any]) -> Sidecar:
    operation_id = value["operation_id"]
    planned = value.get("commit") or {"id": operation_id, "created_at": value.get("created_at", 0)}
    return Sidecar(
        operation_id=operation_id,
        kind=Kind(value["kind"]),
        branch=value.get("branch") or "main",
        actor_id=value.get("actor_id"),
        created_at=int(value.get("created_at") or 0),
        commit=PlannedCommit(
            id=planned["id"],
            created_at=int(planned.get("created_at") or 0),
            merged_parent=planned.get("merged_parent"),
            idempotency_key=planned.get("idempotency_key"),
            kind=planned.get("kind"),
            request=planned.get("request"),
            receipt=planned.get("receipt"),
            if_commit=planned.get("if_commit"),
        ),
        tables=tuple(_decode_table(table) for table in value["tables"]),
        schema_version=value["schema_version"],
        schema_target=value.get("schema_target"),
        branch_created_from=value.get("branch_created_from"),
        dropped=tuple(value.get("dropped") or ()),
        renamed=tuple((path, key) for path, key in value.get("renamed") or ()),
        published=bool(value.get("published", False)),
    )


def _decode_table(value: dict[str, Any]) -> PlannedTable:
    forked = value.get("forked_from")
    return PlannedTable(
        table_key=value["table_key"],
        table_path=value["table_path"],
        table_branch=value.get("table_branch"),
        expected_version=value["expected_version"],
        post_commit_pin=value.get("post_commit_pin"),
        transaction_id=value.get("transaction_id"),
        confirmed_version=value.get("confirmed_version"),
        forked_from=ForkedFrom(forked.get("branch"), forked["version"]) if forked else None,
    )


# --- the folder -------------------------------------------------------------------------------------------------------


def write_sidecar(store: ObjectStore, sidecar: Sidecar) -> None:
    """Phase A (and B′): a failure here aborts the write before any effect."""
    failpoints.hit("recovery.sidecar_write")
    store.put(sidecar.path, sidecar.to_json())


def delete_sidecar(store: ObjectStore, operation_id: str) -> bool:
    """Phase D: a failure is only a warning, because the write is done; the next heal removes the record."""
    try:
        failpoints.hit("recovery.sidecar_delete")
        store.delete(sidecar_path(operation_id))
    except OmnigraphError as error:
        _log.warning("recovery record of finished operation %s could not be removed: %s", operation_id, error)
        return False
    return True


def list_sidecars(store: ObjectStore) -> list[str]:
    """The operation ids with a pending record, oldest first. A failed listing is never taken for an empty one."""
    failpoints.hit("recovery.sidecar_list")
    names = (info.path.removeprefix(f"{FOLDER}/") for info in store.list(FOLDER))
    return sorted(name.removesuffix(".json") for name in names if name.endswith(".json") and "/" not in name)


def read_sidecar(store: ObjectStore, operation_id: str) -> Sidecar | None:
    """A pending sidecar, or None when somebody has dealt with it meanwhile."""
    data = store.get_or_none(sidecar_path(operation_id))
    return None if data is None else parse_sidecar(data, sidecar_path(operation_id))


def discard_sidecar(store: ObjectStore, operation_id: str) -> str:
    """The operator's way out: move a record aside, never destroy it. Returns where it went."""
    if not operation_id or "/" in operation_id:
        raise StorageError(f"'{operation_id}' is not an operation id", kind="not_found", path=FOLDER)
    data = store.get(sidecar_path(operation_id))
    aside = f"{FOLDER}/discarded/{operation_id}.json"
    store.put(aside, data)
    store.delete(sidecar_path(operation_id))
    return aside

