"""Blob columns of storage version 2.2. Relied on by `storage/tables/blobs.py` and `storage/tables/staged.py`."""

from __future__ import annotations

from pathlib import Path

import lance
import pyarrow as pa
import pytest
from lance import LanceDataset
from lance.fragment import write_fragments

SCHEMA = pa.schema([pa.field("id", pa.string(), nullable=False), lance.blob_field("b")])
PACKED, DEDICATED = b"x" * 200_000, b"y" * 6_000_000


@pytest.fixture
def outside(tmp_path: Path) -> str:
    (tmp_path / "outside.bin").write_bytes(b"0123456789")
    return (tmp_path / "outside.bin").as_uri()


@pytest.fixture
def dataset(tmp_path: Path, outside: str) -> LanceDataset:
    values = [b"hi", None, b"", PACKED, DEDICATED, lance.Blob.from_uri(outside), lance.Blob.from_uri(outside, 2, 3)]
    table = pa.table([[f"k{number}" for number in range(len(values))], lance.blob_array(values)], schema=SCHEMA)
    return lance.write_dataset(
        table,
        str(tmp_path / "blobs"),
        enable_stable_row_ids=True,
        data_storage_version="2.2",
        allow_external_blob_outside_bases=True,
    )


def test_a_scan_gives_descriptors(dataset: LanceDataset, outside: str) -> None:
    found = dataset.to_table()["b"].to_pylist()
    assert [None if each is None else (each["kind"], each["size"], each["blob_uri"]) for each in found] == [
        (0, 2, ""),
        None,
        (0, 0, ""),
        (1, len(PACKED), ""),
        (2, len(DEDICATED), ""),
        (3, 0, outside),
        (3, 3, outside),
    ]


def test_all_binary_gives_bytes(dataset: LanceDataset) -> None:
    read = dataset.to_table(blob_handling="all_binary")
    assert read.schema.field("b").type == pa.large_binary()
    assert read["b"].to_pylist() == [b"hi", None, b"", PACKED, DEDICATED, b"0123456789", b"234"]


def test_blobs_are_read_by_address_in_order(dataset: LanceDataset) -> None:
    read = dataset.read_blobs("b", addresses=[3, 0, 2], preserve_order=True)
    assert [value for _, value in read] == [PACKED, b"hi", b""]


@pytest.mark.parametrize("blob_handling", [None, "all_binary"], ids=["descriptors", "bytes"])
def test_what_is_read_can_not_be_written(dataset: LanceDataset, blob_handling: str | None) -> None:
    with pytest.raises(OSError, match=r"descriptor layout|should have type struct"):
        write_fragments(dataset.to_table(blob_handling=blob_handling), dataset, mode="append")


def test_merge_insert_refuses_external_values(dataset: LanceDataset, outside: str) -> None:
    """Why an upsert into a table with a blob column is staged as a replacement."""
    rows = pa.table([["k0"], lance.blob_array([lance.Blob.from_uri(outside)])], schema=SCHEMA)
    with pytest.raises(OSError, match="outside registered external bases"):
        dataset.merge_insert("id").when_matched_update_all().execute_uncommitted(rows)


def test_compaction_keeps_values_and_references(dataset: LanceDataset) -> None:
    before = dataset.to_table(blob_handling="all_binary")["b"].to_pylist()
    external = [each for each in dataset.to_table()["b"].to_pylist() if each and each["kind"] == 3]
    dataset.delete("id = 'k0'")
    dataset.optimize.compact_files(materialize_deletions_threshold=0.0)
    assert dataset.to_table(blob_handling="all_binary")["b"].to_pylist() == before[1:]
    assert [each for each in dataset.to_table()["b"].to_pylist() if each and each["kind"] == 3] == external
