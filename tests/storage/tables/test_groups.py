"""Values that rows share, and counts per value, found in one pass and in many."""

from __future__ import annotations

from pathlib import Path

import lance
import pyarrow as pa
import pytest

from omnigraph.storage.tables.groups import counts_outside, repeated_rows
from omnigraph.storage.tables.location import Location
from omnigraph.storage.tables.table import Table

COUNT = 400
COLUMNS = {
    "id": pa.array([f"{number:03}" for number in range(COUNT)]),
    "camelCase": pa.array([f"v{number % 398}" for number in range(COUNT)]),
    "number": pa.array(range(COUNT), pa.uint64()),
    "zero": pa.array([0.0, -0.0, *map(float, range(2, COUNT))], pa.float32()),
    "at": pa.array([number // 2 if number < 4 else number for number in range(COUNT)], pa.timestamp("ms", tz="UTC")),
    "sparse": pa.array([None if number % 2 else f"s{number}" for number in range(COUNT)]),
    "listed": pa.array([[str(number // 2 if number < 2 else number)] for number in range(COUNT)]),
    "vector": pa.array([[1.0, float(number // 2)] for number in range(COUNT)], pa.list_(pa.float32(), 2)),
    "src": pa.array([f"n{number % 7}" for number in range(COUNT)]),
}


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Table:
    path: Path = tmp_path_factory.mktemp("groups") / "t"
    return Table(Location("t"), lance.write_dataset(pa.table(COLUMNS), str(path)))


@pytest.mark.parametrize("rows_per_pass", [10_000, 30], ids=["one-pass", "many-passes"])
@pytest.mark.parametrize(
    ("columns", "ids"),
    [
        (["camelCase"], {"000", "398", "001", "399"}),
        (["number"], set()),
        (["zero"], {"000", "001"}),
        (["at"], {"000", "001", "002", "003"}),
        (["sparse"], set()),
        (["listed"], {"000", "001"}),
        (["camelCase", "number"], set()),
        (["vector", "at"], {"000", "001", "002", "003"}),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, list) else "",
)
def test_repeated_rows(table: Table, columns: list[str], ids: set[str], rows_per_pass: int) -> None:
    found = repeated_rows(table, columns, 10, rows_per_pass)
    assert set(found["id"].to_pylist()) == ids
    assert found.schema.names == ["id", *columns]
    assert [kind.type for kind in found.schema] == [table.schema.field(name).type for name in ("id", *columns)]


def test_as_many_as_are_wanted(table: Table) -> None:
    assert repeated_rows(table, ["vector"], 3).num_rows == 6
    assert repeated_rows(table, ["src"], 2, 30).num_rows >= 4


@pytest.mark.parametrize("rows_per_pass", [10_000, 30], ids=["one-pass", "many-passes"])
def test_counts(table: Table, rows_per_pass: int) -> None:
    # One of seven sources has 58 edges, the others 57.
    assert counts_outside(table, "src", 0, 57, 10, rows_per_pass).to_pylist() == ["n0"]
    assert sorted(counts_outside(table, "src", 58, None, 10, rows_per_pass).to_pylist()) == [
        f"n{n}" for n in range(1, 7)
    ]
    assert counts_outside(table, "src", 0, 58, 10, rows_per_pass).to_pylist() == []
    assert len(counts_outside(table, "src", 58, None, 2, rows_per_pass)) == 2
