"""Keys of stored rows that an overwrite must look at: ends of edges that stay, sources of edges that go."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from omnigraph.language.schema.catalog import EdgeType
from omnigraph.load.batches import ORDER
from omnigraph.load.checks import OVERWRITE, Plan
from omnigraph.load.exchange import Exchange, Writer
from omnigraph.load.keys import split

#: The place of rows that no line gave.
STORED_ORDER = -1
_ROWS_AT_ONCE = 1 << 20


@dataclass(frozen=True)
class StoredKeys:
    """A column of a stored edge table whose values are checked in a role."""

    plan: Plan
    exchange: Exchange
    edge: EdgeType
    column: str
    role: str


def needed_keys(plan: Plan, exchange: Exchange) -> list[StoredKeys]:
    """What the checks of an overwrite need besides the keys of the lines; nothing in the other modes."""
    if plan.mode != OVERWRITE:
        return []
    needed = []
    for edge in plan.catalog.edges.values():
        key = edge.type_key
        if not plan.stored.pins[key].row_count:
            continue
        if key in plan.written:
            if edge.cardinality.minimum > 0:
                needed.append(StoredKeys(plan, exchange, edge, "src", f"{plan.gone}src {key}"))
            continue
        for column, type_name in (("src", edge.from_type), ("dst", edge.to_type)):
            if f"node:{type_name}" in plan.written:
                needed.append(StoredKeys(plan, exchange, edge, column, f"{column} {key}"))
    return needed


def put_stored_keys(spec: StoredKeys) -> None:
    """Hand the values of a stored column to the partitions they are checked in."""
    parts: dict[int, list[pa.Table]] = {}
    for rows in _rows(spec):
        for part, some in split(rows, rows[spec.column].combine_chunks(), spec.exchange.partitions):
            parts.setdefault(part, []).append(some)
    writer = Writer(f"stored-{spec.column}-{spec.edge.id:x}")
    spec.exchange.put(writer, {part: {spec.role: pa.concat_tables(tables)} for part, tables in parts.items()})


def _rows(spec: StoredKeys) -> Iterator[pa.Table]:
    goes = spec.role.startswith(spec.plan.gone)
    columns: Sequence[str] = ["id", spec.column] if goes else [spec.column]
    table = spec.plan.stored.table(spec.edge.type_key)
    for batch in table.scan(columns, batch_size=_ROWS_AT_ONCE):
        rows = pa.Table.from_batches([batch])
        rows = pa.table({name: rows[name] for name in columns})
        order = pa.array(np.full(rows.num_rows, STORED_ORDER, np.int64))
        yield rows.append_column("by" if goes else ORDER, order)
