"""The rows of `__manifest`: how tables, commits, heads, receipts, tags and the fence are encoded and decoded."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import orjson
import pyarrow as pa

from omnigraph.commit.format import HISTORY_IN_MANIFEST
from omnigraph.commit.model import (
    Changed,
    Commit,
    Group,
    Identity,
    Lineage,
    ManifestState,
    TableEntry,
    Touched,
    identity_text,
)
from omnigraph.errors import StorageError

STAMP_KEY = "omnigraph:internal_schema_version"
#: Metadata key: lists the fragments that hold only history; see `commit/layout`.
HISTORY_KEY = "omnigraph:history_fragments"
FENCE = "fence"

TABLE = "table"
TABLE_VERSION = "table_version"
TOMBSTONE = "table_tombstone"
GRAPH_COMMIT = "graph_commit"
GRAPH_HEAD = "graph_head"
IDEMPOTENCY = "idempotency"
TAG = "tag"

#: The types of rows that make up a state. Commits and receipts grow with history and are looked up only when needed.
STATE_TYPES = (FENCE, TABLE, TABLE_VERSION, TOMBSTONE, GRAPH_HEAD, TAG)

COLUMNS = pa.schema(
    [
        pa.field("object_id", pa.string(), nullable=False),
        pa.field("object_type", pa.string(), nullable=False),
        pa.field("location", pa.string()),
        pa.field("metadata", pa.string()),
        pa.field("base_objects", pa.list_(pa.string())),
        pa.field("table_key", pa.string()),
        pa.field("stable_table_id", pa.uint64()),
        pa.field("table_incarnation_id", pa.uint64()),
        pa.field("table_version", pa.uint64()),
        pa.field("table_branch", pa.string()),
        pa.field("row_count", pa.uint64()),
    ]
)

Row = dict[str, Any]


def manifest_schema(stamp: int, kept: Mapping[bytes, bytes] | None = None) -> pa.Schema:
    """The Arrow schema of `__manifest` with its format stamp. `kept`: other metadata to keep."""
    # The rows are rewritten into other fragments, so the list of history fragments is dropped.
    lasting = {key: value for key, value in (kept or {}).items() if key != HISTORY_KEY.encode()}
    return COLUMNS.with_metadata({**lasting, STAMP_KEY.encode(): str(stamp).encode()})


def stamp_of(schema: pa.Schema) -> int:
    """The format stamp of a manifest; format 1 has none."""
    text = (schema.metadata or {}).get(STAMP_KEY.encode(), b"1")
    try:
        return int(text)
    except ValueError:
        raise StorageError(f"the manifest's format stamp {text!r} is not a number", kind="permanent") from None


def history_fragments(schema: pa.Schema) -> frozenset[int]:
    """The ids of the fragments that are listed as holding only history; empty when the metadata is missing or invalid."""
    text = (schema.metadata or {}).get(HISTORY_KEY.encode(), b"").decode(errors="replace")
    ids = text.split(",")
    return frozenset(map(int, ids)) if all(id_.isdecimal() for id_ in ids) else frozenset()


def to_arrow(rows: Iterable[Row], schema: pa.Schema = COLUMNS) -> pa.Table:
    """Rows as an Arrow table; absent columns are null."""
    return pa.Table.from_pylist(list(rows), schema=schema)


# --- writing ----------------------------------------------------------------------------------------------------------


def table_row(entry: TableEntry) -> Row:
    return _table_row(TABLE, "table", entry, location=entry.path)


def version_row(entry: TableEntry) -> Row:
    return _table_row(
        TABLE_VERSION,
        "version",
        entry,
        table_version=entry.version,
        table_branch=entry.branch,
        row_count=entry.row_count,
    )


def tombstone_row(entry: TableEntry) -> Row:
    return _table_row(TOMBSTONE, "tombstone", entry, table_version=entry.version, table_branch=entry.branch)


def _table_row(object_type: str, prefix: str, entry: TableEntry, **columns: Any) -> Row:
    return {
        "object_id": f"{prefix}:{identity_text(entry.identity)}",
        "object_type": object_type,
        "table_key": entry.key,
        "stable_table_id": entry.identity[0],
        "table_incarnation_id": entry.identity[1],
        **columns,
    }


def commit_row(lineage: Lineage, *, branch: str, parent: str | None, manifest_version: int | None = None) -> Row:
    """The row of a commit. Its manifest version is stored only in copies on other branches."""
    metadata: dict[str, Any] = {
        "parent": parent,
        "merged_parent": lineage.merged_parent,
        "actor": lineage.actor,
        "created_at": lineage.created_at,
        "branch": branch,
        "kind": lineage.kind,
        "recovery_for_actor": lineage.recovery_for_actor,
    }
    if lineage.recovers is not None:
        metadata["recovers"] = lineage.recovers
    if lineage.message is not None:
        metadata["message"] = lineage.message
    if lineage.changed is not None:
        metadata["changed"] = changed_object(lineage.changed)
    if manifest_version is not None:
        metadata["manifest_version"] = manifest_version
    if lineage.group is not None:
        metadata["group"] = group_object(lineage.group, lineage.touched)
    return {"object_id": lineage.id, "object_type": GRAPH_COMMIT, "metadata": _dump(metadata)}


def changed_object(changed: Changed) -> dict[str, int]:
    """The counts of changed rows as JSON."""
    return {"nodes": changed.nodes, "edges": changed.edges}


def group_object(group: Group, touched: Mapping[str, Touched]) -> dict[str, Any]:
    """A place in a group as JSON, with what the commit did to each table (`touched`, left out of copies of the commit)."""
    told: dict[str, Any] = {"id": group.id, "place": group.place, "size": group.size}
    if touched:
        told["touched"] = {identity: {"ids": list(one.ids), "rows": one.rows} for identity, one in touched.items()}
    return told


def copied_commit_row(commit: Commit) -> Row:
    """The row of a commit copied from another branch, so that it outlives that branch."""
    lineage = Lineage(
        id=commit.id,
        created_at=commit.created_at,
        kind=commit.kind,
        actor=commit.actor,
        merged_parent=commit.merged_parent,
        recovery_for_actor=commit.recovery_for_actor,
        recovers=commit.recovers,
        message=commit.message,
        group=commit.group,
        changed=commit.changed,
    )
    return commit_row(lineage, branch=commit.branch, parent=commit.parent, manifest_version=commit.manifest_version)


def head_row(branch: str, commit_id: str) -> Row:
    return {
        "object_id": f"graph_head:{branch}",
        "object_type": GRAPH_HEAD,
        "metadata": _dump({"commit": commit_id}),
    }


def fence_row(count: int, head: str, schema_hash: str | None = None, commit_version: int | None = None) -> Row:
    """The row that every publish replaces. It also names the newest commit, which is the head of a branch made here.

    `schema_hash`: the compiled schema of the state. `commit_version`: the manifest version of the newest commit, if this
    publish makes no commit itself.
    """
    metadata = {"count": count, "head": head} | ({} if schema_hash is None else {"schema": schema_hash})
    if commit_version is not None:
        metadata["commit_version"] = commit_version
    return {"object_id": FENCE, "object_type": FENCE, "metadata": _dump(metadata)}


def tag_object_id(name: str) -> str:
    return f"tag:{name}"


def tag_row(name: str, commit_id: str, actor: str | None = None) -> Row:
    metadata = {"commit": commit_id} | ({} if actor is None else {"actor": actor})
    return {"object_id": tag_object_id(name), "object_type": TAG, "metadata": _dump(metadata)}


def idempotency_object_id(key: str) -> str:
    return f"idem:{hashlib.sha256(key.encode()).hexdigest()}"


def idempotency_row(key: str, *, commit_id: str, request: str, receipt: Mapping[str, Any]) -> Row:
    """The receipt of a write. `request`: a fingerprint of the request, so that the key can not serve a different request."""
    return {
        "object_id": idempotency_object_id(key),
        "object_type": IDEMPOTENCY,
        "metadata": _dump({"commit": commit_id, "request": request, "receipt": dict(receipt)}),
    }


def _dump(value: Mapping[str, Any]) -> str:
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()


# --- reading ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Receipt:
    """The contents of a receipt row."""

    commit_id: str
    request: str
    receipt: Mapping[str, Any]


def decode_state(
    table: pa.Table,
    *,
    branch: str,
    version: int,
    incarnation: str,
    stamp: int,
    fragment_count: int,
    old_head: Commit | None = None,
) -> ManifestState:
    """The state from a scan of the STATE_TYPES rows, read with `_rowaddr` and `_row_created_at_version`.

    A manifest of an older format has no fence; its head is the newest commit of its old history.
    """
    registered: dict[Identity, tuple[str, str]] = {}
    published: dict[Identity, Row] = {}
    dropped: set[Identity] = set()
    tags: dict[str, str] = {}
    fence: dict[str, Any] | None = None
    head: str | None = None
    commit_version = version
    addresses: dict[str, int] = {}
    own_head = f"graph_head:{branch}"
    for row in table.to_pylist():
        object_id, object_type = row["object_id"], row["object_type"]
        addresses[object_id] = row["_rowaddr"]
        if object_type == FENCE:
            fence = orjson.loads(row["metadata"])
            commit_version = fence.get("commit_version", row["_row_created_at_version"])
        elif object_type == GRAPH_HEAD:
            if object_id == own_head:
                head = orjson.loads(row["metadata"])["commit"]
        elif object_type == TAG:
            tags[object_id.removeprefix("tag:")] = orjson.loads(row["metadata"])["commit"]
        else:
            identity = (row["stable_table_id"], row["table_incarnation_id"])
            if object_type == TABLE:
                registered[identity] = (row["table_key"], row["location"])
            elif object_type == TABLE_VERSION:
                published[identity] = row
            elif object_type == TOMBSTONE:
                dropped.add(identity)
    if fence is None and stamp < HISTORY_IN_MANIFEST:
        fence = {"count": 0, "head": old_head.id if old_head else ""}
        commit_version = old_head.manifest_version if old_head else version
    if fence is None:
        raise StorageError(
            f"`__manifest` of branch '{branch}' has no fence row; it was not written by OmniGraph or is damaged",
            kind="permanent",
            path="__manifest",
        )
    tables = {
        identity: TableEntry(
            key=key,
            path=path,
            identity=identity,
            version=published[identity]["table_version"],
            branch=published[identity]["table_branch"],
            row_count=published[identity]["row_count"],
        )
        for identity, (key, path) in registered.items()
        if identity not in dropped and identity in published
    }
    return ManifestState(
        branch=branch,
        version=version,
        commit_version=commit_version,
        incarnation=incarnation,
        stamp=stamp,
        fence=fence["count"],
        head=head or fence["head"],
        tables=tables,
        tags=tags,
        addresses=addresses,
        fragment_count=fragment_count,
        schema_hash=fence.get("schema"),
    )


def apply_publish(written: Iterable[Row], before: ManifestState, commit: Commit) -> ManifestState | None:
    """The state after the publish of a commit that wrote these rows on top of `before`; None if it does not fit.

    Every publish increments the count of the fence by one, so a publish in between is noticed.
    """
    registered = {identity: (entry.key, entry.path) for identity, entry in before.tables.items()}
    tables = dict(before.tables)
    by_type: dict[str, list[Row]] = {}
    for row in written:
        by_type.setdefault(row["object_type"], []).append(row)
    if len(by_type.get(FENCE, [])) != 1 or commit.id not in {row["object_id"] for row in by_type.get(GRAPH_COMMIT, [])}:
        return None
    fence = orjson.loads(by_type[FENCE][0]["metadata"])
    if fence["count"] != before.fence + 1 or fence["head"] != commit.id:
        return None
    for row in by_type.get(TABLE, []):
        identity = (row["stable_table_id"], row["table_incarnation_id"])
        registered[identity] = (row["table_key"], row["location"])
        if identity in tables:
            tables[identity] = replace(tables[identity], key=row["table_key"], path=row["location"])
    for row in by_type.get(TABLE_VERSION, []):
        identity = (row["stable_table_id"], row["table_incarnation_id"])
        if identity not in registered:
            return None
        key, path = registered[identity]
        tables[identity] = TableEntry(key, path, identity, row["table_version"], row["table_branch"], row["row_count"])
    for row in by_type.get(TOMBSTONE, []):
        tables.pop((row["stable_table_id"], row["table_incarnation_id"]), None)
    return replace(
        before,
        version=commit.manifest_version,
        commit_version=commit.manifest_version,
        fence=fence["count"],
        head=commit.id,
        tables=tables,
        addresses={},
        schema_hash=fence.get("schema"),
        newest=None,
    )


def decode_commits(table: pa.Table) -> list[Commit]:
    """The commits from a scan of graph_commit rows, read with `_row_created_at_version`."""
    return [
        _decode_commit(object_id, orjson.loads(metadata), created_at_version)
        for object_id, metadata, created_at_version in zip(
            table["object_id"].to_pylist(),
            table["metadata"].to_pylist(),
            table["_row_created_at_version"].to_pylist(),
            strict=True,
        )
    ]


def _decode_commit(commit_id: str, metadata: dict[str, Any], created_at_version: int) -> Commit:
    return Commit(
        id=commit_id,
        branch=metadata["branch"],
        parent=metadata["parent"],
        merged_parent=metadata["merged_parent"],
        actor=metadata["actor"],
        created_at=metadata["created_at"],
        manifest_version=metadata.get("manifest_version", created_at_version),
        kind=metadata["kind"],
        recovery_for_actor=metadata["recovery_for_actor"],
        recovers=metadata.get("recovers"),
        message=metadata.get("message"),
        group=decode_group(metadata.get("group")),
        changed=decode_changed(metadata.get("changed")),
    )


def decode_changed(value: Mapping[str, Any] | None) -> Changed | None:
    """How many rows a commit changed; None if its row does not say."""
    return None if value is None else Changed(int(value["nodes"]), int(value["edges"]))


def decode_group(value: Mapping[str, Any] | None) -> Group | None:
    """The place of a commit in its group; None for a commit that was published alone."""
    return None if value is None else Group(str(value["id"]), int(value["place"]), int(value["size"]))


def decode_touched(value: Mapping[str, Any] | None) -> dict[str, Touched]:
    """What a commit of a group did to each table, by table identity as text."""
    touched = (value or {}).get("touched", {})
    return {identity: Touched(tuple(map(str, one["ids"])), int(one["rows"])) for identity, one in touched.items()}


def decode_members(table: pa.Table, group_id: str) -> list[dict[str, Touched]]:
    """What each commit of a group did, in order, from a scan of the graph_commit rows."""
    found = (orjson.loads(metadata).get("group") for metadata in table["metadata"].to_pylist())
    members = [group for group in found if group is not None and group["id"] == group_id]
    return [decode_touched(member) for member in sorted(members, key=lambda member: int(member["place"]))]


def decode_receipt(metadata: str) -> Receipt:
    value = orjson.loads(metadata)
    return Receipt(value["commit"], value["request"], value["receipt"])
