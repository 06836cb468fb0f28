"""Plain Lance datasets for the substrate tests, made without any code of ours."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import lance
import pyarrow as pa
from lance import LanceDataset, Transaction
from lance.fragment import write_fragments

SCHEMA = pa.schema([pa.field("id", pa.string(), nullable=False), pa.field("v", pa.string())])


def rows(numbers: Iterable[int], value: str = "old") -> pa.Table:
    listed = list(numbers)
    return pa.table({"id": [f"k{number}" for number in listed], "v": [value] * len(listed)}, schema=SCHEMA)


def new_dataset(path: Path, fragments: int = 3, indexed: bool = False) -> LanceDataset:
    """Four rows in each fragment, with stable row ids; k0 … k3 are in fragment 0 and so on."""
    uri = str(path)
    lance.write_dataset(rows(range(4)), uri, enable_stable_row_ids=True, data_storage_version="2.2")
    for number in range(1, fragments):
        lance.write_dataset(rows(range(number * 4, number * 4 + 4)), uri, mode="append")
    if indexed:
        lance.dataset(uri).create_scalar_index("id", "BTREE", name="id_idx")
    return lance.dataset(uri)


def appending(dataset: LanceDataset, numbers: Iterable[int], value: str = "new") -> Transaction:
    return write_fragments(rows(numbers, value), dataset, mode="append", return_transaction=True)


def overwriting(dataset: LanceDataset, numbers: Iterable[int], value: str = "new") -> Transaction:
    return write_fragments(rows(numbers, value), dataset, mode="overwrite", return_transaction=True)


def upserting(dataset: LanceDataset, numbers: Iterable[int], value: str = "new") -> Transaction:
    merge = dataset.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
    return merge.execute_uncommitted(rows(numbers, value))[0]


def ids(dataset: LanceDataset) -> list[str]:
    return sorted(dataset.to_table(columns=["id"])["id"].to_pylist())
