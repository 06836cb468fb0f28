"""Schema and field metadata. Relied on by `commit/format.py` (the stamp) and by property ids in field metadata."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from lance import LanceDataset, LanceOperation, Transaction
from lance.fragment import write_fragments

from tests.substrate.lance_rows import appending, rows, upserting

SCHEMA = pa.schema(
    [pa.field("id", pa.string(), nullable=False, metadata={"property": "1"}), pa.field("v", pa.string())],
    {"stamp": "4"},
)


@pytest.fixture
def dataset(tmp_path: Path) -> LanceDataset:
    return lance.write_dataset(rows(range(4)).cast(SCHEMA), str(tmp_path / "table"), enable_stable_row_ids=True)


def commit(dataset: LanceDataset, transaction: Transaction) -> LanceDataset:
    return LanceDataset.commit(dataset, transaction, max_retries=0)


def compacted(dataset: LanceDataset) -> LanceDataset:
    after = commit(dataset, appending(dataset, [50]))
    after.optimize.compact_files()
    return after


KEEPING: dict[str, Callable[[LanceDataset], LanceDataset]] = {
    "creation": lambda dataset: dataset,
    "append": lambda dataset: commit(dataset, appending(dataset, [50])),
    "merge-insert": lambda dataset: commit(dataset, upserting(dataset, [1, 50])),
    "compaction": compacted,
    "branch": lambda dataset: dataset.create_branch("b", dataset.version),
}


@pytest.mark.parametrize("kind", KEEPING)
def test_metadata_is_kept(dataset: LanceDataset, kind: str) -> None:
    assert KEEPING[kind](dataset).schema.equals(SCHEMA, check_metadata=True)


def overwriting(dataset: LanceDataset, schema: pa.Schema) -> Transaction:
    return write_fragments(rows([7]).cast(schema), dataset, mode="overwrite", return_transaction=True)


def test_an_overwrite_writes_rows_and_stamp_in_one_version(dataset: LanceDataset) -> None:
    after = commit(dataset, overwriting(dataset, SCHEMA.with_metadata({"stamp": "5"})))
    assert (after.version, after.schema.metadata, after.count_rows()) == (2, {b"stamp": b"5"}, 1)
    assert after.has_stable_row_ids


def test_an_overwrite_without_a_stamp_removes_it(dataset: LanceDataset) -> None:
    assert commit(dataset, overwriting(dataset, SCHEMA.remove_metadata())).schema.metadata is None


def test_a_stamp_alone_is_one_version(dataset: LanceDataset) -> None:
    updates = LanceOperation.UpdateMap({"stamp": "5", "more": "x"})
    stamp = LanceOperation.UpdateConfig(schema_metadata_updates=updates)
    after = commit(dataset, Transaction(dataset.version, stamp))
    assert (after.version, after.schema.metadata) == (2, {b"stamp": b"5", b"more": b"x"})
    assert after.schema.field("id").metadata == {b"property": b"1"}
