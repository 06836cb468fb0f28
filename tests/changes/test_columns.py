"""Columns belong to properties: a rename is no change, a missing column reads as null, blobs are compared by bytes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

from omnigraph.changes.delta import Delta, Side, table_delta
from omnigraph.commit.context import CommitContext
from omnigraph.commit.model import TableEntry
from omnigraph.ids import new_ulid
from omnigraph.storage.tables.commit import commit_staged
from omnigraph.storage.tables.location import Location
from omnigraph.storage.tables.staged import stage_create, stage_overwrite
from omnigraph.values.columns import PROPERTY_ID
from tests.storage.tables.upserts import stage_upsert

LOCATION = Location("nodes/columns")


def field(name: str, kind: pa.DataType, number: int) -> pa.Field:
    return pa.field(name, kind, metadata={PROPERTY_ID: str(number).encode()})


PLAIN = pa.schema([pa.field("id", pa.string(), nullable=False), field("a", pa.string(), 1), field("n", pa.int32(), 2)])


def side(version: int) -> Side:
    return Side(TableEntry("node:T", LOCATION.path, (1, 0), version, None, 0))


def create(context: CommitContext, schema: pa.Schema, rows: pa.Table) -> int:
    staged = stage_create(context.tables, LOCATION, schema, rows)
    return commit_staged(context.tables, staged, expected_version=None, transaction_id=new_ulid())


def evolve(context: CommitContext, change: Callable[[lance.LanceDataset], object]) -> int:
    change(context.tables.open_dataset(LOCATION))
    return context.tables.open_dataset(LOCATION).version


def rename(context: CommitContext) -> int:
    """Give column `a` the name `b`; returns the new version."""
    alteration: Any = {"path": "a", "name": "b"}  # Lance's types demand all four keys, and an iterable of dicts
    return evolve(context, lambda data: data.alter_columns(alteration))


def summary(delta: Delta) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    return [
        pair
        for batch in delta.batches()
        for pair in zip(batch.updated_before.to_pylist(), batch.updated_after.to_pylist(), strict=True)
    ]


@pytest.fixture
def rows() -> pa.Table:
    return pa.table({"id": ["x", "y"], "a": ["1", None], "n": pa.array([1, 2], pa.int32())}, schema=PLAIN)


def test_a_rename_is_no_change(context: CommitContext, rows: pa.Table) -> None:
    first = create(context, PLAIN, rows)
    renamed = rename(context)
    delta = table_delta(context, side(first), side(renamed))
    assert (delta.candidates, summary(delta)) == (0, [])


def test_images_of_a_renamed_column_have_its_newest_name(context: CommitContext, rows: pa.Table) -> None:
    first = create(context, PLAIN, rows)
    rename(context)
    changed = evolve(context, lambda data: data.update({"b": "'2'"}, where="id = 'x'"))
    expected = [({"id": "x", "b": "1", "n": 1}, {"id": "x", "b": "2", "n": 1})]
    assert summary(table_delta(context, side(first), side(changed))) == expected


def test_a_new_column_without_values_is_no_change(context: CommitContext, rows: pa.Table) -> None:
    first = create(context, PLAIN, rows)
    added = evolve(context, lambda data: data.add_columns(pa.schema([field("c", pa.string(), 3)])))
    for pair in ((first, added), (added, first)):
        delta = table_delta(context, side(pair[0]), side(pair[1]))
        assert (delta.candidates, summary(delta)) == (0, [])


def test_values_in_a_column_of_one_side_are_changes(context: CommitContext, rows: pa.Table) -> None:
    first = create(context, PLAIN, rows)
    evolve(context, lambda data: data.add_columns(pa.schema([field("c", pa.string(), 3)])))
    filled = evolve(context, lambda data: data.update({"c": "'new'"}, where="id = 'y'"))
    before = {"id": "y", "a": None, "n": 2}
    after = {**before, "c": "new"}
    assert summary(table_delta(context, side(first), side(filled))) == [(before, after)]
    assert summary(table_delta(context, side(filled), side(first))) == [(after, before)]
    dropped = evolve(context, lambda data: data.drop_columns(["c"]))
    assert summary(table_delta(context, side(filled), side(dropped))) == [(after, before)]


def test_a_name_that_passed_to_another_property_is_another_column(context: CommitContext, rows: pa.Table) -> None:
    first = create(context, PLAIN, rows)
    evolve(context, lambda data: data.drop_columns(["a"]))
    again = evolve(context, lambda data: data.add_columns(pa.schema([field("a", pa.string(), 4)])))
    expected = [({"id": "x", "a": "1", "n": 1}, {"id": "x", "a": None, "n": 1})]
    assert summary(table_delta(context, side(first), side(again))) == expected


def test_a_column_of_another_type_holds_other_values(context: CommitContext, rows: pa.Table) -> None:
    first = create(context, PLAIN, rows)
    retyped = PLAIN.set(1, field("a", pa.float64(), 1))
    later = pa.table([["x", "y"], pa.array([1, None], pa.float64()), rows["n"]], schema=retyped)
    staged = stage_overwrite(context.tables.open(LOCATION, first), later, retyped)
    second = commit_staged(context.tables, staged, expected_version=first, transaction_id=new_ulid())
    (pair,) = summary(table_delta(context, side(first), side(second)))
    assert (pair[0]["a"], pair[1]["a"]) == ("1", 1.0)


@pytest.mark.parametrize(("value", "changed"), [(1, False), (2, True)])
def test_a_wider_column_holds_the_same_values(
    context: CommitContext, rows: pa.Table, value: int, changed: bool
) -> None:
    first = create(context, PLAIN, rows)
    retyped = PLAIN.set(1, field("a", pa.int64(), 1))
    later = pa.table([["x", "y"], pa.array([value, None], pa.int64()), rows["n"]], schema=retyped)
    staged = stage_overwrite(context.tables.open(LOCATION, first), later, retyped)
    second = commit_staged(context.tables, staged, expected_version=first, transaction_id=new_ulid())
    assert len(summary(table_delta(context, side(first), side(second)))) == changed


BLOB = lance.blob_field("content")
BLOBS = pa.schema(
    [pa.field("id", pa.string(), nullable=False), BLOB.with_metadata({**(BLOB.metadata or {}), PROPERTY_ID: b"1"})]
)
CONTENTS = {
    "null": None,
    "empty": b"",
    "small": b"abc",
    "other": b"abd",
    "large": b"x" * 300_000,
    "last": b"y" * 300_000,
}


def blobs(values: list[bytes | None]) -> pa.Table:
    ids = [f"{place:02}" for place in range(len(values))]
    return pa.table([ids, lance.blob_array(values)], schema=BLOBS)


def test_blobs_differ_by_their_bytes(context: CommitContext) -> None:
    pairs = [(old, new) for old in CONTENTS.values() for new in CONTENTS.values()]
    first = create(context, BLOBS, blobs([old for old, _ in pairs]))
    staged = stage_upsert(context.tables.open(LOCATION, first), blobs([new for _, new in pairs]))
    second = commit_staged(context.tables, staged, expected_version=first, transaction_id=new_ulid())
    delta = table_delta(context, side(first), side(second))
    changed = [row["id"] for batch in delta.batches(["id"]) for row in batch.updated_after.to_pylist()]
    assert changed == [f"{place:02}" for place, (old, new) in enumerate(pairs) if old != new]
    values = [
        (row["id"], row["content"]) for batch in delta.batches(blobs="bytes") for row in batch.updated_after.to_pylist()
    ]
    assert values == [(f"{place:02}", new) for place, (old, new) in enumerate(pairs) if old != new]


def test_external_blobs_differ_by_their_reference(context: CommitContext, tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).write_bytes(b"same bytes")
    uris = [f"file://{tmp_path}/{name}" for name in ("one", "two")]
    one, two = (lance.Blob.from_uri(uri) for uri in uris)
    first = create(
        context, BLOBS, pa.table([["a", "b", "c"], lance.blob_array([one, one, b"same bytes"])], schema=BLOBS)
    )
    later = pa.table([["a", "b", "c"], lance.blob_array([one, two, one])], schema=BLOBS)
    staged = stage_upsert(context.tables.open(LOCATION, first), later)
    second = commit_staged(context.tables, staged, expected_version=first, transaction_id=new_ulid())
    (tmp_path / "one").unlink()
    delta = table_delta(context, side(first), side(second))
    changed = [row["id"] for batch in delta.batches(["id"]) for row in batch.updated_after.to_pylist()]
    assert changed == ["b", "c"]
