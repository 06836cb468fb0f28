"""A small table for the tests of table storage, and every way to change it."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import lance
import pyarrow as pa

from omnigraph.storage.tables.commit import commit_staged
from omnigraph.storage.tables.handles import Tables
from omnigraph.storage.tables.location import Location
from omnigraph.storage.tables.staged import (
    Staged,
    stage_append,
    stage_compaction,
    stage_create,
    stage_delete,
    stage_index,
    stage_index_fold,
    stage_overwrite,
    stage_replace,
)
from omnigraph.storage.tables.table import Table
from tests.storage.tables.upserts import stage_upsert

HOME = Location("nodes/0000000000000001-00000000000000a1")
SCHEMA = pa.schema(
    [pa.field("id", pa.string(), nullable=False, metadata={"omnigraph:property": "1"}), pa.field("name", pa.string())],
    {"omnigraph:stamp": "4"},
)

Row = tuple[str, str | None]


def people(numbers: Iterable[int], name: str = "old") -> pa.Table:
    """Rows p0, p1 … that all have one name."""
    listed = list(numbers)
    return pa.table({"id": [f"p{number}" for number in listed], "name": [name] * len(listed)}, schema=SCHEMA)


def seed(tables: Tables, location: Location = HOME) -> Table:
    """Twelve rows in three fragments, one deleted in each of the first two; the BTREE on id lacks the third."""
    created = stage_create(tables, location, SCHEMA, people(range(4)))
    commit_staged(tables, created, expected_version=None, transaction_id="seed-0")
    commit(tables, stage_append(head(tables, location), people(range(4, 8))), "seed-1")
    commit(tables, stage_index(head(tables, location), "id", "BTREE", "id_idx"), "seed-2")
    commit(tables, stage_append(head(tables, location), people(range(8, 12))), "seed-3")
    commit(tables, stage_delete(head(tables, location), ids=pa.array(["p1", "p6"])), "seed-4")
    return head(tables, location)


def head(tables: Tables, location: Location = HOME) -> Table:
    table = tables.open_head(location)
    assert table is not None
    return table


def commit(tables: Tables, staged: Staged | None, transaction_id: str = "tx") -> Table:
    """Commit against the version a write was staged on."""
    assert staged is not None
    version = commit_staged(tables, staged, expected_version=staged.read_version, transaction_id=transaction_id)
    return tables.open(staged.location, version)


def rows(table: Table) -> list[Row]:
    read = table.read(["id", "name"])
    return sorted(zip(read["id"].to_pylist(), read["name"].to_pylist(), strict=True))


def rows_with_ids(table: Table) -> list[tuple[str, str | None, int]]:
    """The rows with Lance's stable row ids."""
    read = table.read(["id", "name"], with_row_id=True)
    return sorted(zip(*(read[column].to_pylist() for column in ("id", "name", "_rowid")), strict=True))


def looked_up(table: Table, *ids: str) -> list[Row]:
    """The rows found one by one, through the index where there is one."""
    found = [table.take_ids(pa.array([id_]), ["id", "name"]).to_pylist() for id_ in ids]
    return [(row["id"], row["name"]) for each in found for row in each]


def foreign_append(tables: Tables, location: Location = HOME, number: int = 90) -> None:
    """A commit by someone who does not know our rules."""
    uri = tables.root.lance_uri(location.dataset_path)
    lance.write_dataset(people([number], "foreign"), uri, mode="append", storage_options=tables.root.storage_options)


def addresses_of(table: Table, *ids: str) -> pa.ChunkedArray:
    return table.take_ids(pa.array(list(ids)), ["id"], with_row_address=True)["_rowaddr"]


def _expected(changed: dict[str, str | None], gone: Iterable[str] = ()) -> list[Row]:
    image: dict[str, str | None] = {f"p{number}": "old" for number in range(12) if number not in (1, 6)}
    image.update(changed)
    return sorted((id_, name) for id_, name in image.items() if id_ not in set(gone))


ALL = [f"p{number}" for number in range(12)]

# Every kind of write of rows: how it is staged on the seeded table, and what the table then holds.
WRITES: dict[str, tuple[Callable[[Table], Staged], list[Row]]] = {
    "append": (lambda table: stage_append(table, people([20, 21], "new")), _expected({"p20": "new", "p21": "new"})),
    "upsert": (
        lambda table: stage_upsert(table, people([2, 9, 20], "new")),
        _expected({"p2": "new", "p9": "new", "p20": "new"}),
    ),
    "upsert of every row": (
        lambda table: stage_upsert(table, people(range(12), "new")),
        sorted((id_, "new") for id_ in ALL),
    ),
    "replace": (
        lambda table: stage_replace(table, people([2, 8, 20], "new"), addresses_of(table, "p2", "p8")),
        _expected({"p2": "new", "p8": "new", "p20": "new"}),
    ),
    "replace of a whole fragment": (
        lambda table: stage_replace(
            table, people([8, 9, 10, 11], "new"), addresses_of(table, "p8", "p9", "p10", "p11")
        ),
        _expected({"p8": "new", "p9": "new", "p10": "new", "p11": "new"}),
    ),
    "delete by filter": (lambda table: stage_delete(table, filter="id in ('p0', 'p9')"), _expected({}, ["p0", "p9"])),
    "delete by ids": (
        lambda table: stage_delete(table, ids=pa.array(["p3", "p4", "none"])),
        _expected({}, ["p3", "p4"]),
    ),
    "delete by row addresses": (
        lambda table: stage_delete(table, row_addresses=addresses_of(table, "p5")),
        _expected({}, ["p5"]),
    ),
    "delete of fragment 0": (
        lambda table: stage_delete(table, ids=pa.array(["p0", "p2", "p3"])),
        _expected({}, ["p0", "p2", "p3"]),
    ),
    "delete of fragment 2": (
        lambda table: stage_delete(table, ids=pa.array(["p8", "p9", "p10", "p11"])),
        _expected({}, ["p8", "p9", "p10", "p11"]),
    ),
    "delete of everything": (lambda table: stage_delete(table, filter="true"), []),
    "overwrite": (lambda table: stage_overwrite(table, people([0, 50], "new")), [("p0", "new"), ("p50", "new")]),
    "overwrite to nothing": (lambda table: stage_overwrite(table, people([])), []),
}

# Writes of derived state: the rows stay as they are.
DERIVED: dict[str, Callable[[Table], Staged | None]] = {
    "index": lambda table: stage_index(table, "name", "BTREE", "name_idx"),
    "index again": lambda table: stage_index(table, "id", "BTREE", "id_idx"),
    "compaction": lambda table: stage_compaction(table, target_rows_per_fragment=100),
    "index fold": lambda table: stage_index_fold(table, ["id_idx"]),
}

SEEDED = _expected({})
