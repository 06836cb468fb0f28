"""Deletion marks read from their files are those that a scan shows; what can not be read so is said."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from omnigraph.ids import new_ulid
from omnigraph.storage.objects import open_store
from omnigraph.storage.root import Root
from omnigraph.storage.tables.commit import commit_staged, fork
from omnigraph.storage.tables.deletions import marked_offsets
from omnigraph.storage.tables.handles import Tables
from omnigraph.storage.tables.location import Location
from omnigraph.storage.tables.staged import stage_create, stage_delete
from omnigraph.storage.tables.table import Table
from omnigraph.storage.tables.unshared import unshared

SCHEMA = pa.schema([pa.field("id", pa.string(), nullable=False)])
ROWS = 20_000


def filled(tables: Tables) -> Table:
    staged = stage_create(
        tables, Location("nodes/x"), SCHEMA, pa.table({"id": [f"{n:05}" for n in range(ROWS)]}, SCHEMA)
    )
    version = commit_staged(tables, staged, expected_version=None, transaction_id=new_ulid())
    return tables.open(staged.location, version)


def without(tables: Tables, table: Table, places: list[int]) -> Table:
    staged = stage_delete(table, ids=pa.array([f"{n:05}" for n in places]))
    version = commit_staged(tables, staged, expected_version=table.version, transaction_id=new_ulid())
    return tables.open(table.location, version)


def test_marks_on_a_line_and_on_forks_of_it(shared_root: Root) -> None:
    tables, read = Tables(shared_root), open_store(shared_root).get_or_none
    first = filled(tables)
    second = without(tables, first, [3, 19_999])
    place = fork(tables, second.location, second.version, new_ulid())
    forked = tables.open(place, second.version)
    third = without(tables, forked, [7])
    further = tables.open(fork(tables, third.location, third.version, new_ulid()), third.version)
    expected = [
        (first, []),
        (second, [3, 19_999]),
        (forked, [3, 19_999]),
        (third, [3, 7, 19_999]),
        (further, [3, 7, 19_999]),
    ]
    for table, marked in expected:
        (fragment,) = table.dataset.get_fragments()
        found = marked_offsets(table, fragment, shared_root, read)
        assert found is not None
        assert sorted(found.tolist()) == marked


def test_very_many_marks_are_found_by_a_scan(tmp_path: Path) -> None:
    root = Root.parse(tmp_path / "g")
    tables, read = Tables(root), open_store(root).get_or_none
    first = filled(tables)
    many = list(range(0, ROWS, 2))
    second = without(tables, first, many)
    (fragment,) = second.dataset.get_fragments()
    assert marked_offsets(second, fragment, root, read) is None
    before, after = unshared(first, second, first.version, root, read)
    assert (sorted(before.row_ids.tolist()), len(after)) == (many, 0)


@pytest.mark.parametrize("damage", [None, b"", b"nonsense"])
def test_a_file_that_can_not_be_read_is_no_answer(tmp_path: Path, damage: bytes | None) -> None:
    root = Root.parse(tmp_path / "g")
    tables = Tables(root)
    second = without(tables, first := filled(tables), [5])
    (fragment,) = second.dataset.get_fragments()
    assert marked_offsets(second, fragment, root, lambda _: damage) is None
    before, _ = unshared(first, second, first.version, root, lambda _: damage)
    assert before.row_ids.tolist() == [5]
    assert before.row_ids.dtype == np.uint64
