"""Lance indexes. Relied on by `storage/tables/staged.py` (index staging) and `storage/tables/table.py` (lookups)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import lance
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from lance import LanceDataset, LanceOperation, Transaction
from lance.query import MatchQuery

from tests.substrate.lance_rows import appending, new_dataset, overwriting, rewriting, rows


@pytest.fixture
def dataset(tmp_path: Path) -> LanceDataset:
    return new_dataset(tmp_path / "table", indexed=True)


def commit(dataset: LanceDataset, transaction: Transaction) -> LanceDataset:
    return LanceDataset.commit(dataset, transaction, max_retries=0)


FILTERS: dict[str, Callable[[], object]] = {
    "equality": lambda: "id = 'k1'",
    "list": lambda: "id in ('k1', 'k9')",
    "range": lambda: "id >= 'k1' and id < 'k3'",
    "prefix": lambda: "id like 'k1%'",
    "expression": lambda: pc.field("id") == "k1",
    "expression with a list": lambda: pc.field("id").isin(pa.array(["k1", "k9"])),
}


@pytest.mark.parametrize("kind", FILTERS)
def test_a_matching_literal_uses_the_index(dataset: LanceDataset, kind: str) -> None:
    assert "ScalarIndexQuery" in dataset.scanner(filter=FILTERS[kind]()).explain_plan()


def test_rows_behind_the_index_are_found(dataset: LanceDataset) -> None:
    after = commit(dataset, appending(dataset, [50]))
    assert after.to_table(filter="id in ('k1', 'k50')").num_rows == 2


def test_folding_is_one_version_and_covers_everything(dataset: LanceDataset) -> None:
    after = commit(dataset, appending(dataset, [50]))
    after.optimize.optimize_indices(index_names=["id_idx"])
    assert after.version == dataset.version + 2
    (index,) = after.describe_indices()
    assert [sorted(segment.fragment_ids) for segment in index.segments] == [[0, 1, 2, 3]]
    after.optimize.optimize_indices(index_names=["id_idx"])
    assert after.version == dataset.version + 2, "nothing to fold makes no version"


def test_compaction_does_not_mix_covered_and_uncovered_fragments(dataset: LanceDataset) -> None:
    after = commit(dataset, appending(dataset, [50]))
    after.optimize.compact_files()
    assert len(after.get_fragments()) == 2
    after.optimize.optimize_indices()
    after.optimize.compact_files()
    assert len(after.get_fragments()) == 1


def test_a_hand_made_rewrite_loses_the_coverage(dataset: LanceDataset) -> None:
    after = commit(dataset, rewriting(dataset))
    (index,) = after.describe_indices()
    assert [sorted(segment.fragment_ids) for segment in index.segments] == [[]]
    assert after.to_table(filter="id = 'k1'").num_rows == 1


def test_an_overwrite_drops_every_index(dataset: LanceDataset) -> None:
    assert commit(dataset, overwriting(dataset, [1])).describe_indices() == []


@pytest.mark.parametrize("merged", [True, False], ids=["merged", "as built"])
def test_a_full_text_segment_must_be_merged_before_it_is_committed(dataset: LanceDataset, merged: bool) -> None:
    segment = dataset.create_index_uncommitted("v", "INVERTED", name="fts", fragment_ids=[0, 1, 2])
    if merged:
        segment = dataset.merge_existing_index_segments([segment])
    after = commit(dataset, Transaction(dataset.version, LanceOperation.CreateIndex([segment], [])))
    search = after.scanner(full_text_query=MatchQuery("old", column="v"), limit=3)
    if merged:
        assert search.to_table().num_rows == 3
    else:
        with pytest.raises((ValueError, OSError), match="Not found"):
            search.to_table()


def test_an_index_on_an_empty_table(tmp_path: Path) -> None:
    dataset = lance.write_dataset(rows([]), str(tmp_path / "empty"), enable_stable_row_ids=True)
    segment = dataset.create_index_uncommitted("id", "BTREE", name="ix", fragment_ids=[])
    after = commit(dataset, Transaction(dataset.version, LanceOperation.CreateIndex([segment], [])))
    after = commit(after, appending(after, [1]))
    assert after.to_table(filter="id = 'k1'").num_rows == 1
