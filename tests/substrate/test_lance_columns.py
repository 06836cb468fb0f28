"""Schemas with chosen field ids, and what Lance does with them. Relied on by `storage/tables/columns.py`."""

from __future__ import annotations

from pathlib import Path

import lance
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from lance import LanceDataset, LanceOperation, Transaction
from lance.schema import LanceSchema

from omnigraph.storage.tables import lance_private
from omnigraph.storage.tables.lance_fields import largest_id, new_field, schema_of, stored_fields

SCHEMA = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("a", pa.int32(), nullable=False, metadata={b"k": b"v"}),
        pa.field("l", pa.list_(pa.string())),
    ]
)


@pytest.fixture
def dataset(tmp_path: Path) -> LanceDataset:
    rows = pa.table({"id": ["x"], "a": pa.array([1], pa.int32()), "l": [["u"]]}, schema=SCHEMA)
    return lance.write_dataset(rows, str(tmp_path / "t"), enable_stable_row_ids=True, data_storage_version="2.2")


def commit(dataset: LanceDataset, operation: LanceOperation.BaseOperation) -> LanceDataset:
    return LanceDataset.commit(dataset, Transaction(dataset.version, operation), max_retries=0)


def test_a_schema_is_pickled_as_messages_in_the_order_of_its_fields(dataset: LanceDataset) -> None:
    reduced = dataset.lance_schema.__reduce__()
    assert isinstance(reduced, tuple)
    metadata, *messages = reduced[1]
    assert metadata == "{}"
    assert [name for message in messages for name in (b"id", b"item") if name in message] == [b"id", b"item"]
    assert len(messages) == 4, "one for each field, children counted"
    assert LanceSchema._from_protos(metadata, *messages) == dataset.lance_schema


def test_the_last_value_in_a_message_wins(dataset: LanceDataset) -> None:
    fields = stored_fields(dataset.lance_schema)
    changed = schema_of([fields["a"].renamed("ä" * 100).made_nullable()], dataset.lance_schema)
    (field,) = changed.fields()
    assert (field.name(), field.id(), changed.to_pyarrow().field(0).nullable) == ("ä" * 100, 1, True)
    assert dict(changed.to_pyarrow().field(0).metadata) == {b"k": b"v"}


def test_a_new_field_has_the_ids_it_is_given(dataset: LanceDataset) -> None:
    made = new_field(pa.field("n", pa.list_(pa.int64())), 300)
    schema = schema_of([*stored_fields(dataset.lance_schema).values(), made], dataset.lance_schema)
    field = schema.field("n")
    assert field is not None
    assert (field.id(), [child.id() for child in field.children()]) == (300, [301])
    assert largest_id(schema) == 301


def test_project_adds_columns_of_nulls_and_changes_nullability(dataset: LanceDataset) -> None:
    fields = stored_fields(dataset.lance_schema)
    wanted = [fields["id"], fields["a"].made_nullable(), new_field(pa.field("n", pa.int64()), dataset.max_field_id + 1)]
    after = commit(dataset, LanceOperation.Project(schema_of(wanted, dataset.lance_schema)))
    assert after.to_table().to_pylist() == [{"id": "x", "a": 1, "n": None}]
    assert after.schema.field("a").nullable


def test_merge_does_not_change_nullability(dataset: LanceDataset) -> None:
    """Why a filled column and a newly allowed null together are a rewrite."""
    fields = stored_fields(dataset.lance_schema)
    schema = schema_of([fields["id"], fields["a"].made_nullable(), fields["l"]], dataset.lance_schema)
    fragments = [fragment.metadata for fragment in dataset.get_fragments()]
    with pytest.raises(OSError, match="Merge operation changes field id 1"):
        commit(dataset, LanceOperation.Merge(fragments, schema))


def test_merge_does_not_give_a_field_the_name_that_another_has(dataset: LanceDataset) -> None:
    fields = stored_fields(dataset.lance_schema)
    schema = schema_of([fields["id"], fields["a"].renamed("l")], dataset.lance_schema)
    fragments = [fragment.metadata for fragment in dataset.get_fragments()]
    with pytest.raises(OSError, match='Merge operation remaps field id 1 from "a" to "l"'):
        commit(dataset, LanceOperation.Merge(fragments, schema))


def test_merge_columns_takes_the_same_ids_in_every_fragment(dataset: LanceDataset) -> None:
    dataset = lance.write_dataset(dataset.to_table(), dataset.uri, mode="append")
    new = pa.schema([pa.field("n", pa.int64(), nullable=False)])

    def values(batch: pa.RecordBatch) -> pa.RecordBatch:
        return pa.RecordBatch.from_arrays([pa.repeat(pa.scalar(7, pa.int64()), batch.num_rows)], schema=new)

    ids = set()
    for fragment in dataset.get_fragments():
        metadata, schema = fragment.merge_columns(values, columns=["id"])
        made = schema.field("n")
        assert made is not None
        ids.add((tuple(metadata.files[-1].fields), made.id()))
    assert ids == {((dataset.max_field_id + 1,), dataset.max_field_id + 1)}


def test_a_list_of_unsigned_integers_needs_a_placeholder_in_filters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Relied on by `storage/tables/lance_private.py`, which can go when Lance reads this by itself."""
    rows = pa.table({"id": ["x"], "l": pa.array([[1]], pa.list_(pa.uint64())), "u": pa.array([1], pa.uint64())})
    dataset = lance.write_dataset(rows, str(tmp_path / "t"))
    asked = pc.field("id") == "x"
    assert dataset.to_table(filter=asked).num_rows == 1
    with monkeypatch.context() as patched:
        patched.setattr(lance_private._lance, "_needs_substrait_placeholder", lance_private._known_to_lance)
        with pytest.raises(Exception, match="Unsupported Substrait user defined type"):
            dataset.to_table(filter=asked)
