"""Recovery records written by hand, in exactly the shape of the write path's specification, and effects to go with them."""

from __future__ import annotations

from typing import Any

import lance
import orjson
import pyarrow as pa

from omnigraph.commit.context import CommitContext
from omnigraph.commit.model import MAIN, TableEntry
from omnigraph.ids import new_ulid, now_micros
from omnigraph.storage.tables.commit import commit_staged
from omnigraph.storage.tables.location import Location
from omnigraph.storage.tables.staged import stage_append

Json = dict[str, Any]


def planned(entry: TableEntry, **changes: Any) -> Json:
    """A table of a record: one step from where the table is published, by no particular transaction."""
    return {
        "table_key": entry.key,
        "table_path": entry.path,
        "table_branch": entry.branch,
        "expected_version": entry.version,
        "post_commit_pin": entry.version + 1,
        "transaction_id": None,
        "confirmed_version": None,
        "forked_from": None,
        **changes,
    }


def record(*tables: Json, kind: str = "Mutation", branch: str = MAIN, **changes: Any) -> Json:
    """A whole record, of a writer that called itself `act-dead`."""
    operation_id = new_ulid()
    return {
        "schema_version": 2,
        "operation_id": operation_id,
        "kind": kind,
        "branch": branch,
        "actor_id": "act-dead",
        "created_at": now_micros(),
        "commit": {"id": new_ulid(), "created_at": now_micros(), "merged_parent": None, "idempotency_key": None},
        "schema_target": None,
        "branch_created_from": None,
        "tables": list(tables),
        **changes,
    }


def leave(context: CommitContext, value: Json) -> str:
    """Leave a record behind, as a writer that died would; returns its operation id."""
    operation_id: str = value["operation_id"]
    context.store.put(f"__recovery/{operation_id}.json", orjson.dumps(value))
    return operation_id


def drift(context: CommitContext, location: Location, data: pa.Table) -> int:
    """Move a table's head behind the graph's back, as a program that only knows Lance would; returns the new head."""
    uri = context.root.lance_uri(location.dataset_path)
    options = context.root.storage_options
    return lance.write_dataset(data, uri, mode="append", storage_options=options).version


def move(context: CommitContext, entry: TableEntry, data: pa.Table, transaction_id: str) -> int:
    """Move a table's head as a writer does in phase B; returns the new head."""
    staged = stage_append(context.tables.open(entry.location, entry.version), data)
    return commit_staged(context.tables, staged, expected_version=entry.version, transaction_id=transaction_id)
