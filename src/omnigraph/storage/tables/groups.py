"""Queries over all rows of a table, run by Lance's SQL in passes of bounded memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import pyarrow as pa

from omnigraph.storage.tables.lance_errors import translated
from omnigraph.storage.tables.table import Table

#: The most rows that one pass groups. A pass needs about a hundred bytes per distinct value.
ROWS_PER_PASS = 10_000_000
_BUCKETS = 256


def repeated_rows(table: Table, columns: Sequence[str], limit: int, rows_per_pass: int = ROWS_PER_PASS) -> pa.Table:
    """Two rows (`id` and these columns) for each value that several rows share; rows with a null share no value."""
    keys = [_key(table, name) for name in columns]
    present = " AND ".join(f"{_quoted(name)} IS NOT NULL" for name in columns)
    values = ", ".join(f"{key} AS {_quoted(name)}" for key, name in zip(keys, columns, strict=True))
    schema = pa.schema([(name, table.schema.field(name).type) for name in ("id", *columns)])
    found = [schema.empty_table()]
    for part in _parts(table, columns, rows_per_pass):
        shared = f"FROM dataset WHERE {present}{part} GROUP BY {', '.join(keys)} HAVING count(*) > 1 LIMIT {limit}"
        # Keeping an id for every value costs several times as much, and usually no value is repeated.
        if not any(batch.num_rows for batch in _run(table, f"SELECT count(*) {shared}")):
            continue
        for batch in _run(table, f'SELECT min("id") AS "first id", max("id") AS "last id", {values} {shared}'):
            first, last, *shown = batch.columns
            found += [pa.Table.from_arrays([ids, *shown], names=schema.names).cast(schema) for ids in (first, last)]
        if sum(rows.num_rows for rows in found) >= 2 * limit:
            break
    return pa.concat_tables(found)


def counts_outside(
    table: Table, column: str, low: int, high: int | None, limit: int, rows_per_pass: int = ROWS_PER_PASS
) -> pa.Array:
    """At most `limit` values of a column that fewer than `low` or more than `high` rows have."""
    key = _quoted(column)
    above = f" OR count(*) > {high}" if high is not None else ""
    found = [pa.array([], table.schema.field(column).type)]
    for part in _parts(table, [column], rows_per_pass):
        query = f"SELECT {key} FROM dataset WHERE {key} IS NOT NULL{part} GROUP BY {key} HAVING count(*) < {low}{above}"
        found += [batch.column(0) for batch in _run(table, f"{query} LIMIT {limit}")]
    return pa.concat_arrays(found)[:limit]


def _key(table: Table, column: str) -> str:
    # Adding zero turns −0 into 0.
    floating = pa.types.is_floating(table.schema.field(column).type)
    return f"({_quoted(column)} + 0.0)" if floating else _quoted(column)


def _parts(table: Table, columns: Sequence[str], rows_per_pass: int) -> Iterator[str]:
    """SQL conditions that split the rows by their value in a column, so that equal values fall into the same pass."""
    # Lance's SQL can not convert a vector to text.
    split = [name for name in columns if not pa.types.is_fixed_size_list(table.schema.field(name).type)]
    passes = min(_BUCKETS, -(-table.count_rows() // rows_per_pass))
    if passes <= 1 or not split:
        yield ""
        return
    bounds = [number * _BUCKETS // passes for number in range(passes + 1)]
    for first, end in pairwise(bounds):
        bucket = f"substr(md5(arrow_cast({_key(table, split[0])}, 'Utf8')), 1, 2)"
        yield f" AND {bucket} BETWEEN '{first:02x}' AND '{end - 1:02x}'"


def _run(table: Table, query: str) -> list[pa.RecordBatch]:
    with translated(str(table.location), "read"):
        batches: list[pa.RecordBatch] = table.dataset.sql(query).build().to_batch_records()
    return batches


def _quoted(name: str) -> str:
    return f'"{name}"'
