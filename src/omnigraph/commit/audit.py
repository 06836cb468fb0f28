"""The audit trail: one row per completed recovery, in `_graph_commit_recoveries.lance`."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph import failpoints
from omnigraph.commit.context import CommitContext
from omnigraph.storage.tables.commit import append_rows
from omnigraph.storage.tables.location import Location

AUDIT_PATH = "_graph_commit_recoveries.lance"

failpoints.declare("recovery.record_audit")

_TABLE = pa.struct(
    [
        pa.field("table_key", pa.string(), nullable=False),
        pa.field("from_version", pa.uint64()),
        pa.field("to_version", pa.uint64()),
        pa.field("class", pa.string(), nullable=False),
    ]
)
SCHEMA = pa.schema(
    [
        pa.field("operation_id", pa.string(), nullable=False),
        pa.field("recovery_kind", pa.string(), nullable=False),
        pa.field("recovery_for_actor", pa.string()),
        pa.field("writer_kind", pa.string(), nullable=False),
        pa.field("graph_commit_id", pa.string()),
        pa.field("branch", pa.string(), nullable=False),
        pa.field("created_at", pa.int64(), nullable=False),
        pa.field("tables", pa.list_(_TABLE), nullable=False),
    ]
)


@dataclass(frozen=True, slots=True)
class AuditedTable:
    """What recovery did to one table; `to_version` is the logical version, also where its content came back under a new one."""

    table_key: str
    from_version: int | None
    to_version: int | None
    cls: str


@dataclass(frozen=True, slots=True)
class Recovery:
    """One completed recovery. `recovery_kind` is RolledForward or RolledBack."""

    operation_id: str
    recovery_kind: str
    recovery_for_actor: str | None
    writer_kind: str
    graph_commit_id: str | None
    branch: str
    created_at: int
    tables: tuple[AuditedTable, ...]

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def record(context: CommitContext, recovery: Recovery) -> None:
    """Append one row, unless an earlier pass that died later has recorded this operation already."""
    failpoints.hit("recovery.record_audit")
    if any(known.operation_id == recovery.operation_id for known in _read(context, recovery.operation_id)):
        return
    append_rows(context.root, AUDIT_PATH, pa.Table.from_pylist([_encode(recovery)], schema=SCHEMA))
    context.make_durable(AUDIT_PATH)


def recoveries(context: CommitContext) -> list[Recovery]:
    """Every completed recovery, in the order of their operations."""
    return sorted(_read(context, None), key=lambda recovery: recovery.operation_id)


def _read(context: CommitContext, operation_id: str | None) -> list[Recovery]:
    table = context.tables.open_head(Location(AUDIT_PATH))
    if table is None:
        return []
    condition = None if operation_id is None else pc.field("operation_id") == operation_id
    return [_decode(row) for row in table.read(filter=condition).to_pylist()]


def _encode(recovery: Recovery) -> dict[str, Any]:
    row = asdict(recovery)
    row["tables"] = [{**table, "class": table.pop("cls")} for table in row["tables"]]
    return row


def _decode(row: dict[str, Any]) -> Recovery:
    tables = tuple(
        AuditedTable(table["table_key"], table["from_version"], table["to_version"], table["class"])
        for table in row.pop("tables")
    )
    return Recovery(**row, tables=tables)
