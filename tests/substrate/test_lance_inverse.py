"""The inverse transaction. Relied on by `storage/tables/inverse.py` and `storage/tables/commit.py` (undo)."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from lance import LanceDataset, LanceOperation, Transaction
from lance.commit import CommitConflictError

from tests.substrate.lance_rows import appending, fragment_metadata, ids, new_dataset, upserting


@pytest.fixture
def dataset(tmp_path: Path) -> LanceDataset:
    return new_dataset(tmp_path / "table", indexed=True)


def commit(dataset: LanceDataset, transaction: Transaction) -> LanceDataset:
    return LanceDataset.commit(dataset, transaction, max_retries=0)


def stamped(dataset: LanceDataset) -> list[dict[str, object]]:
    columns = ["id", "v", "_rowid", "_row_created_at_version", "_row_last_updated_at_version"]
    found: list[dict[str, object]] = dataset.to_table(columns=columns).sort_by("id").to_pylist()
    return found


def without(dataset: LanceDataset, fragment_id: int) -> LanceDataset:
    return commit(dataset, Transaction(dataset.version, LanceOperation.Delete([], [fragment_id], "any text")))


def bring_back(after: LanceDataset, before: LanceDataset, fragment_id: int) -> LanceDataset:
    vanished = fragment_metadata(before, fragment_id)
    return commit(after, Transaction(after.version, LanceOperation.Update(new_fragments=[vanished])))


def test_added_fragments_go_and_changed_ones_get_their_metadata_back(dataset: LanceDataset) -> None:
    effect = commit(dataset, upserting(dataset, [1, 50]))
    inverse = LanceOperation.Update(removed_fragment_ids=[3], updated_fragments=[fragment_metadata(dataset, 0)])
    commit(effect, appending(effect, [90], "foreign"))
    after = commit(effect, Transaction(effect.version, inverse))
    kept = [row for row in stamped(after) if row["id"] != "k90"]
    assert kept == stamped(dataset)
    assert "k90" in ids(after)
    for id_, values in (("k1", ["old"]), ("k50", []), ("k90", ["foreign"])):
        assert after.to_table(filter=f"id = '{id_}'")["v"].to_pylist() == values
    assert "ScalarIndexQuery" in after.scanner(filter="id = 'k1'").explain_plan()


def test_the_inverse_conflicts_with_a_change_of_the_same_fragments(dataset: LanceDataset) -> None:
    effect = commit(dataset, upserting(dataset, [1]))
    inverse = LanceOperation.Update(removed_fragment_ids=[3], updated_fragments=[fragment_metadata(dataset, 0)])
    commit(effect, upserting(effect, [2]))
    with pytest.raises(CommitConflictError) as caught:
        commit(effect, Transaction(effect.version, inverse))
    assert caught.value.retryable


def test_a_vanished_fragment_comes_back_under_its_id(dataset: LanceDataset) -> None:
    dataset.delete("id = 'k5'")
    after = bring_back(without(dataset, 1), dataset, 1)
    assert [fragment.fragment_id for fragment in after.get_fragments()] == [0, 1, 2]
    assert [(row["id"], row["_rowid"]) for row in stamped(after)] == [
        (row["id"], row["_rowid"]) for row in stamped(dataset)
    ]
    # Its rows count as new, which is why undo compares fragments without their stamps.
    assert {row["_row_created_at_version"] for row in stamped(after) if row["id"] == "k4"} == {after.version}


def test_a_vanished_fragment_0_comes_back_under_another_id(dataset: LanceDataset) -> None:
    after = bring_back(without(dataset, 0), dataset, 0)
    assert [fragment.fragment_id for fragment in after.get_fragments()] == [1, 2, 3]
    assert [(row["id"], row["_rowid"]) for row in stamped(after)] == [
        (row["id"], row["_rowid"]) for row in stamped(dataset)
    ]
    assert after.to_table(filter="id = 'k1'")["v"].to_pylist() == ["old"]


def test_a_vanished_fragment_0_with_marks_can_not_come_back(dataset: LanceDataset) -> None:
    dataset.delete("id = 'k1'")
    after = bring_back(without(dataset, 0), dataset, 0)
    with pytest.raises(pa.ArrowInvalid, match=r"Not found: .*_deletions"):
        after.to_table()


def test_merge_is_no_way_back(dataset: LanceDataset) -> None:
    effect = commit(dataset, appending(dataset, [50]))
    fragments = [fragment.metadata for fragment in dataset.get_fragments()]
    merge = LanceOperation.Merge(fragments, dataset.lance_schema)
    with pytest.raises(OSError, match="reduced fragment count"):
        commit(effect, Transaction(effect.version, merge))


def test_the_delta_is_empty_across_a_compaction(dataset: LanceDataset) -> None:
    version = dataset.version
    dataset.optimize.compact_files()
    delta = dataset.delta(compared_against=version)
    for reader in (delta.get_inserted_rows(), delta.get_updated_rows(), delta.get_deleted_row_ids()):
        assert reader.read_all().num_rows == 0
