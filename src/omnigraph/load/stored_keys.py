"""Hands keys of stored rows to the partitions that check them, so that each column is read once per load.

An overwrite needs the ends of edges that stay and the sources of edges that go. The other modes look the keys of lines up among
stored rows. A few keys are found through an index, by each check for itself. With many keys every check would read the whole
column; instead tasks read it once, some fragments each, and each check gets its part.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from omnigraph.language.schema.catalog import EdgeType
from omnigraph.load.batches import ORDER
from omnigraph.load.checks import OVERWRITE, Plan, replaced_columns
from omnigraph.load.exchange import Exchange, Writer
from omnigraph.load.keys import is_counted, split, unique_roles
from omnigraph.load.parsed import Entity
from omnigraph.storage.tables.table import ROW_ADDRESS
from omnigraph.validation.sets import probe_of
from omnigraph.values.columns import table_schema

#: The place of rows that come from no line.
STORED_ORDER = -1
#: From this many partitions on, one shared pass over a column costs less than one pass per partition.
FEWEST_PARTITIONS = 4
#: About how many stored rows one task reads.
ROWS_PER_TASK = 2 << 20
_ROWS_AT_ONCE = 1 << 20


@dataclass(frozen=True)
class StoredKeys:
    """Some columns of some fragments of a stored table, whose rows are handed to the partitions under a role."""

    plan: Plan
    exchange: Exchange
    entity: Entity
    role: str
    columns: tuple[str, ...]
    #: The column, or the number of the unique rule, whose values decide the partition.
    by: str | int
    #: Name of an added column that holds `STORED_ORDER`, because no line gave the row; None: no such column.
    mark: str | None = None
    with_row_address: bool = False
    fragments: tuple[int, ...] = ()
    number: int = 0


def needed_keys(plan: Plan, exchange: Exchange, rows: Mapping[str, int]) -> list[StoredKeys]:
    """The tasks that hand out the stored keys which the checks need; each task reads some fragments of one table.

    `rows`: how many rows the load has, by type.
    """
    wanted = [*_of_overwrite(plan, exchange), *_looked_up(plan, exchange, rows)]
    return [
        replace(keys, fragments=group.ids, number=number)
        for keys in wanted
        for number, group in enumerate(plan.stored.table(keys.entity.type_key).fragment_groups(ROWS_PER_TASK))
    ]


def _of_overwrite(plan: Plan, exchange: Exchange) -> Iterator[StoredKeys]:
    """For an overwrite: the ends of edges that stay, and the sources of edges that go."""
    if plan.mode != OVERWRITE:
        return
    for edge in plan.catalog.edges.values():
        key = edge.type_key
        if not plan.stored.pins[key].row_count:
            continue
        if key in plan.written:
            if edge.cardinality.minimum > 0:
                role = f"{plan.gone}src {key}"
                yield StoredKeys(plan, exchange, edge, role, ("id", "src"), "src", mark="by")
            continue
        for column, type_name in (("src", edge.from_type), ("dst", edge.to_type)):
            if f"node:{type_name}" in plan.written:
                yield StoredKeys(plan, exchange, edge, f"{column} {key}", (column,), column, mark=ORDER)


def _looked_up(plan: Plan, exchange: Exchange, rows: Mapping[str, int]) -> Iterator[StoredKeys]:
    """The columns in which so many keys are looked up that every check would read the whole column."""
    if exchange.partitions < FEWEST_PARTITIONS:
        return
    asked: dict[str, int] = {}
    for key in plan.written:
        entity, count = plan.entity(key), rows.get(key, 0)
        asked[key] = asked.get(key, 0) + count
        for type_name in (entity.from_type, entity.to_type) if isinstance(entity, EdgeType) else ():
            asked[f"node:{type_name}"] = asked.get(f"node:{type_name}", 0) + count
    for key, count in sorted(asked.items()):
        if not plan.stored.pins[key].row_count or plan.replaces_all(key):
            continue
        entity, table, each = plan.entity(key), plan.stored.table(key), count // exchange.partitions
        replaces = plan.replaces_rows and key in plan.written
        columns = replaced_columns(entity) if replaces else ("id",)
        if table.is_read_through("id", each, columns):
            role = plan.kept("id", key)
            yield StoredKeys(plan, exchange, entity, role, columns, "id", with_row_address=replaces)
        if key not in plan.written:
            continue
        if isinstance(entity, EdgeType) and is_counted(entity) and table.is_read_through("src", each, ("id", "src")):
            yield StoredKeys(plan, exchange, entity, plan.kept("src", key), ("id", "src"), "src")
        for number, names in enumerate(entity.uniques):
            several = tuple(dict.fromkeys(("id", *names)))
            if table.is_read_through(probe_of(names, table_schema(entity)), each, several):
                yield StoredKeys(plan, exchange, entity, plan.kept(f"unique{number}", key), several, number)


def put_stored_keys(spec: StoredKeys) -> None:
    """Hand the rows of some fragments to the partitions that check them."""
    parts: dict[int, list[pa.Table]] = {}
    for rows in _rows(spec):
        for part, some in _split(spec, rows):
            parts.setdefault(part, []).append(some)
    word = spec.role.partition(" ")[0]
    writer = Writer(f"stored{spec.plan.attempt}-{word}-{spec.entity.id:x}-{spec.number:06d}")
    spec.exchange.put(writer, {part: {spec.role: pa.concat_tables(tables)} for part, tables in parts.items()})


def _split(spec: StoredKeys, rows: pa.Table) -> Iterator[tuple[int, pa.Table]]:
    partitions = spec.exchange.partitions
    if isinstance(spec.by, str):
        yield from split(rows, rows[spec.by].combine_chunks(), partitions)
        return
    for word, some, texts in unique_roles(spec.entity, rows, []):
        if word.startswith(f"unique{spec.by} "):
            yield from split(some, texts, partitions)


def _rows(spec: StoredKeys) -> Iterator[pa.Table]:
    table = spec.plan.stored.table(spec.entity.type_key)
    besides = [ROW_ADDRESS] if spec.with_row_address else []
    scanned = table.scan(
        spec.columns, batch_size=_ROWS_AT_ONCE, fragments=spec.fragments, with_row_address=spec.with_row_address
    )
    for batch in scanned:
        rows = pa.Table.from_batches([batch]).select([*spec.columns, *besides])
        if spec.mark is not None:
            rows = rows.append_column(spec.mark, pa.array(np.full(rows.num_rows, STORED_ORDER, np.int64)))
        # Metadata of the table is not needed, and tables with different metadata can not be concatenated.
        yield pa.table({name: rows[name] for name in rows.column_names})
