"""Other columns for a table: only the schema changes, or a file is written beside, or all is written again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

from omnigraph.storage.root import Root
from omnigraph.storage.tables.columns import Column, stage_columns
from omnigraph.storage.tables.commit import commit_staged, undo
from omnigraph.storage.tables.handles import Tables
from omnigraph.storage.tables.location import Location
from omnigraph.storage.tables.staged import stage_append, stage_create, stage_delete, stage_index
from omnigraph.storage.tables.table import Table

PLACE = Location("nodes/t")


def field(name: str, kind: pa.DataType, number: int, *, nullable: bool = True) -> pa.Field:
    return pa.field(name, kind, nullable=nullable, metadata={b"omnigraph:property_id": str(number).encode()})


ID = pa.field("id", pa.string(), nullable=False)
A = field("a", pa.int32(), 1, nullable=False)
B = field("b", pa.string(), 2)
L = field("l", pa.list_(pa.string()), 3)
SCHEMA = pa.schema([ID, A, B, L])
ROWS = [{"id": f"k{n}", "a": n, "b": f"t{n}" if n % 2 else None, "l": [str(n)] if n % 3 else None} for n in range(6)]


@pytest.fixture
def tables(tmp_path: Path) -> Tables:
    return Tables(Root.parse(tmp_path))


def commit(tables: Tables, table: Table, stage: Callable[[Table], Any]) -> Table:
    version = commit_staged(tables, stage(table), expected_version=table.version, transaction_id="t")
    return tables.open(PLACE, version)


@pytest.fixture
def table(tables: Tables) -> Table:
    """Two fragments, one with a deletion mark, and two indexes."""
    made = stage_create(tables, PLACE, SCHEMA, pa.Table.from_pylist(ROWS[:4], schema=SCHEMA))
    version = commit_staged(tables, made, expected_version=None, transaction_id="t")
    table = commit(
        tables, tables.open(PLACE, version), lambda t: stage_append(t, pa.Table.from_pylist(ROWS[4:], schema=SCHEMA))
    )
    table = commit(tables, table, lambda t: stage_delete(t, ids=pa.array(["k0"])))
    table = commit(tables, table, lambda t: stage_index(t, "a", "BTREE", "a_idx"))
    return commit(tables, table, lambda t: stage_index(t, "b", "BTREE", "b_idx"))


def kept(*names: str) -> list[Column]:
    return [Column(SCHEMA.field(name), name) for name in names]


def change(tables: Tables, table: Table, columns: Sequence[Column]) -> Table:
    return commit(tables, table, lambda t: stage_columns(t, columns))


def shown(table: Table) -> list[dict[str, Any]]:
    return sorted(table.read().to_pylist(), key=lambda row: str(row["id"]))


LIVE = ROWS[1:]
NEW_I = field("n", pa.int64(), 9, nullable=False)

CASES = [
    pytest.param(kept("id", "a", "l"), lambda row: {key: row[key] for key in ("id", "a", "l")}, {"a_idx"}, id="drop"),
    pytest.param(
        [*kept("id", "a", "l"), Column(field("c", pa.string(), 2), "b")],
        lambda row: {"id": row["id"], "a": row["a"], "l": row["l"], "c": row["b"]},
        {"a_idx", "b_idx"},
        id="rename-and-reorder",
    ),
    pytest.param(
        [*kept("id", "a", "b", "l"), Column(field("v", pa.list_(pa.float32(), 2), 9)), Column(lance.blob_field("p"))],
        lambda row: row | {"v": None, "p": None},
        {"a_idx", "b_idx"},
        id="add-nulls",
    ),
    pytest.param(
        [*kept("id", "b", "l"), Column(A.with_nullable(True), "a")],
        lambda row: {"id": row["id"], "b": row["b"], "l": row["l"], "a": row["a"]},
        {"a_idx", "b_idx"},
        id="allow-null",
    ),
    pytest.param(
        [*kept("id", "a", "b", "l"), Column(NEW_I, fill=pa.scalar(7, pa.int64()))],
        lambda row: row | {"n": 7},
        {"a_idx", "b_idx"},
        id="fill",
    ),
    pytest.param(
        [
            *kept("id"),
            Column(field("b", pa.int32(), 1, nullable=False), "a"),
            Column(field("a", pa.string(), 9, nullable=False), fill=pa.scalar("x")),
            Column(field("z", pa.list_(pa.int32()), 10)),
        ],
        lambda row: {"id": row["id"], "b": row["a"], "a": "x", "z": None},
        set(),
        id="take-names-fill-and-add",
    ),
    pytest.param(
        [
            *kept("id", "l"),
            Column(field("c", pa.int32(), 1, nullable=False), "a"),
            Column(field("a", pa.string(), 9, nullable=False), fill=pa.scalar("x")),
        ],
        lambda row: {"id": row["id"], "l": row["l"], "c": row["a"], "a": "x"},
        {"a_idx"},
        id="rename-and-fill-under-the-old-name",
    ),
    pytest.param(
        [
            *kept("id"),
            Column(field("b", pa.int32(), 1, nullable=False), "a"),
            Column(field("a", pa.string(), 2), "b"),
        ],
        lambda row: {"id": row["id"], "b": row["a"], "a": row["b"]},
        {"a_idx", "b_idx"},
        id="swap-names",
    ),
    pytest.param(
        [*kept("id"), Column(A.with_nullable(True), "a"), Column(NEW_I, fill=pa.scalar(7, pa.int64()))],
        lambda row: {"id": row["id"], "a": row["a"], "n": 7},
        set(),
        id="fill-and-allow-null",
    ),
]


@pytest.mark.parametrize(("columns", "expected", "indexes"), CASES)
def test_columns(
    tables: Tables, table: Table, columns: list[Column], expected: Callable[[Any], Any], indexes: set[str]
) -> None:
    before = shown(table)
    after = change(tables, table, columns)
    assert shown(after) == [expected(row) for row in LIVE]
    assert after.schema.names == [column.field.name for column in columns]
    for column in columns:
        stored = after.schema.field(column.field.name)
        assert (stored.type, stored.nullable) == (column.field.type, column.field.nullable)
        wanted = (column.field.metadata or {}).get(b"omnigraph:property_id")
        assert (stored.metadata or {}).get(b"omnigraph:property_id") == wanted
    assert {index.name for index in after.indices()} == indexes
    assert shown(table) == before, "the older version shows what it did"
    more = after.read(blobs="values").slice(0, 1)
    assert commit(tables, after, lambda t: stage_append(t, more)).count_rows() == len(LIVE) + 1
    back = tables.open(PLACE, undo(tables, PLACE, pin=table.version, effect=None))
    assert shown(back) == before


def test_an_index_answers_for_a_renamed_column(tables: Tables, table: Table) -> None:
    after = change(tables, table, [*kept("id", "b", "l"), Column(field("q", pa.int32(), 1, nullable=False), "a")])
    assert after.take_by("q", pa.array([3, 5], pa.int32()), ["id"])["id"].to_pylist() == ["k3", "k5"]
    plan = after.dataset.scanner(filter="q = 3", columns=["id"]).explain_plan()
    assert "ScalarIndexQuery" in plan


def test_a_name_and_an_id_that_come_back_show_nothing_of_the_old_column(tables: Tables, table: Table) -> None:
    without = change(tables, table, kept("id", "b", "l"))
    again = change(tables, without, [*kept("id", "b", "l"), Column(field("a", pa.int32(), 11))])
    assert {row["a"] for row in shown(again)} == {None}


def test_no_rows(tables: Tables) -> None:
    made = stage_create(tables, PLACE, SCHEMA)
    table = tables.open(PLACE, commit_staged(tables, made, expected_version=None, transaction_id="t"))
    after = change(
        tables, table, [*kept("id"), Column(NEW_I, fill=pa.scalar(7, pa.int64())), Column(A.with_nullable(True), "a")]
    )
    assert after.schema.names == ["id", "n", "a"]
    rows = pa.Table.from_pylist([{"id": "x", "n": 1, "a": None}], schema=after.schema)
    assert shown(commit(tables, after, lambda t: stage_append(t, rows))) == [{"id": "x", "n": 1, "a": None}]
