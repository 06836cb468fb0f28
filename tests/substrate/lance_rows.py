"""Plain Lance datasets for the substrate tests, made without any code of ours."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import lance
import pyarrow as pa
from lance import LanceDataset, LanceOperation, Transaction
from lance.fragment import FragmentMetadata, LanceFragment, write_fragments
from lance.optimize import Compaction

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


def fragment(dataset: LanceDataset, number: int) -> LanceFragment:
    """The fragment of this number, which must exist."""
    found = dataset.get_fragment(number)
    assert found is not None
    return found


def fragment_metadata(dataset: LanceDataset, number: int) -> FragmentMetadata:
    """What a version's manifest says of one of its fragments."""
    return fragment(dataset, number).metadata


def appending(dataset: LanceDataset, numbers: Iterable[int], value: str = "new") -> Transaction:
    return write_fragments(rows(numbers, value), dataset, mode="append", return_transaction=True)


def overwriting(dataset: LanceDataset, numbers: Iterable[int], value: str = "new") -> Transaction:
    return write_fragments(rows(numbers, value), dataset, mode="overwrite", return_transaction=True)


def upserting(dataset: LanceDataset, numbers: Iterable[int], value: str = "new") -> Transaction:
    merge = dataset.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
    return merge.execute_uncommitted(rows(numbers, value))[0]


def rewriting(dataset: LanceDataset) -> Transaction:
    """A compaction of all fragments, put together by hand."""
    results = [task.execute(dataset) for task in Compaction.plan(dataset, options={}).tasks]
    groups = [
        # Lance's stub calls the attribute by another name than the compiled class does.
        LanceOperation.RewriteGroup(each.original_fragments, each.new_fragments)  # type: ignore[attr-defined]
        for each in results
    ]
    return Transaction(dataset.version, LanceOperation.Rewrite(groups, []))


def ids(dataset: LanceDataset) -> list[str]:
    return sorted(dataset.to_table(columns=["id"])["id"].to_pylist())
