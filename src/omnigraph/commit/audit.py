"""The audit trail: one row per completed recovery, in `_graph_commit_recoveries.lance`."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import pyarrow as pa

from omnigraph import failpoints
from omnigraph.commit.context import CommitContext
from omnigraph.shown import Shown
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
    """What recovery did to one table. `to_version`: the logical version, also if its content has a new number now."""

    table_key: str
    from_version: int | None
    to_version: int | None
    cls: str


@dataclass(frozen=True, slots=True)
class Recovery(Shown):
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
        """The fields as plain values, ready for JSON."""
        return asdict(self)


def record(context: CommitContext, recovery: Recovery) -> None:
    """Append one row, unless an earlier recovery of this operation has recorded it before it died."""
    failpoints.hit("recovery.record_audit")
    if _is_recorded(context, recovery.operation_id):
        return
    append_rows(context.root, AUDIT_PATH, pa.Table.from_pylist([_encode(recovery)], schema=SCHEMA))
    context.make_durable(AUDIT_PATH)


def recoveries(context: CommitContext) -> list[Recovery]:
    """Every completed recovery, ordered by operation id."""
    table = context.tables.open_head(Location(AUDIT_PATH))
    found = [] if table is None else [_decode(row) for row in table.read().to_pylist()]
    return sorted(found, key=lambda recovery: recovery.operation_id)


def _is_recorded(context: CommitContext, operation_id: str) -> bool:
    table = context.tables.open_head(Location(AUDIT_PATH))
    # As SQL text: Lance can not push down an expression on a table that holds a list of structs.
    literal = operation_id.replace("'", "''")
    return table is not None and table.count_rows(f"operation_id = '{literal}'") > 0


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
