"""What Lance's commit does and does not check. Relied on by `storage/tables/commit.py` and `commit/publisher.py`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from lance import LanceDataset, LanceOperation, Transaction
from lance.commit import CommitConflictError
from lance.fragment import write_fragments
from lance.optimize import Compaction

from tests.substrate.lance_rows import appending, fragment, ids, new_dataset, overwriting, rewriting, rows, upserting


@pytest.fixture
def dataset(tmp_path: Path) -> LanceDataset:
    return new_dataset(tmp_path / "table")


def commit(dataset: LanceDataset, transaction: Transaction) -> LanceDataset:
    return LanceDataset.commit(dataset, transaction, max_retries=0)


def deleting(dataset: LanceDataset) -> Transaction:
    marked = fragment(dataset, 1).delete_rows([0])
    assert marked is not None
    return Transaction(dataset.version, LanceOperation.Delete([marked], [], "any text"))


def indexing(dataset: LanceDataset) -> Transaction:
    segment = dataset.create_index_uncommitted("id", "BTREE", name="ix", fragment_ids=[0, 1, 2])
    return Transaction(dataset.version, LanceOperation.CreateIndex([segment], []))


REBASED: dict[str, Callable[[LanceDataset], Transaction]] = {
    "append": lambda dataset: appending(dataset, [50]),
    "delete": deleting,
    "staged merge-insert": lambda dataset: upserting(dataset, [1, 50]),
    "create index": indexing,
    "rewrite": rewriting,
}


@pytest.mark.parametrize("kind", REBASED)
def test_zero_retries_still_rebase_onto_an_append(dataset: LanceDataset, kind: str) -> None:
    staged = REBASED[kind](dataset)
    commit(dataset, appending(dataset, [90]))
    assert commit(dataset, staged).version == dataset.version + 2


def test_a_rebased_merge_insert_doubles_a_key(dataset: LanceDataset) -> None:
    staged = upserting(dataset, [90])
    commit(dataset, appending(dataset, [90]))
    assert ids(commit(dataset, staged)).count("k90") == 2


def test_merge_insert_drops_a_null_key_and_doubles_a_new_one(tmp_path: Path) -> None:
    """Why `storage/tables/incoming.py` looks at the keys."""
    dataset = new_dataset(tmp_path / "indexed", indexed=True)
    source = pa.table({"id": pa.array([None, "b", "b"], pa.string()), "v": ["n", "1", "2"]})
    merge = dataset.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
    after = commit(dataset, merge.execute_uncommitted(source)[0])
    assert after.count_rows() == dataset.count_rows() + 2
    assert ids(after).count("b") == 2


def test_an_overwrite_with_zero_retries_is_strict(dataset: LanceDataset) -> None:
    staged = overwriting(dataset, [60])
    commit(dataset, appending(dataset, [90]))
    with pytest.raises(CommitConflictError) as caught:
        commit(dataset, staged)
    assert caught.value.retryable


def test_a_restore_wipes_a_concurrent_append(dataset: LanceDataset) -> None:
    """Also relied on by the rule that a restore is used only where no inverse exists."""
    commit(dataset, appending(dataset, [90]))
    restore = Transaction(dataset.version, LanceOperation.Restore(dataset.version))
    after = commit(dataset, restore)
    assert after.version == dataset.version + 2
    assert "k90" not in ids(after)


def test_updates_of_one_fragment_conflict_whatever_the_rows(dataset: LanceDataset) -> None:
    """This is what makes the fence of `commit/publisher.py` a compare-and-swap."""
    first, second = upserting(dataset, [0]), upserting(dataset, [3])
    commit(dataset, first)
    with pytest.raises(CommitConflictError) as caught:
        commit(dataset, second)
    assert caught.value.retryable


def test_a_fragment_that_vanished_conflicts_too(dataset: LanceDataset) -> None:
    """A fence row alone in its fragment: replacing it removes the fragment."""

    def replacing(value: str) -> Transaction:
        new = write_fragments(rows(range(8, 12), value), dataset, mode="append")
        return Transaction(dataset.version, LanceOperation.Update(removed_fragment_ids=[2], new_fragments=new))

    first, second = replacing("first"), replacing("second")
    commit(dataset, first)
    with pytest.raises(CommitConflictError) as caught:
        commit(dataset, second)
    assert caught.value.retryable


def test_a_staged_create_with_zero_retries_is_strict(tmp_path: Path) -> None:
    uri = str(tmp_path / "table")
    first, second = (write_fragments(rows([number]), uri, mode="create", return_transaction=True) for number in (1, 2))
    LanceDataset.commit(uri, first, max_retries=0, enable_stable_row_ids=True)
    with pytest.raises(OSError, match=r"_versions/0\.manifest was not found"):
        LanceDataset.commit(uri, second, max_retries=0, enable_stable_row_ids=True)
    assert ids(lance.dataset(uri)) == ["k1"]
    # Without the zero it silently replaces the table.
    LanceDataset.commit(uri, second, enable_stable_row_ids=True)
    assert ids(lance.dataset(uri)) == ["k2"]


def test_uuid_and_properties_survive_the_commit(dataset: LanceDataset) -> None:
    staged = appending(dataset, [50])
    staged.transaction_properties = {"omnigraph.transaction_id": "tx"}
    found = commit(dataset, staged).read_transaction(dataset.version + 1)
    assert found is not None
    assert found.uuid == staged.uuid
    assert found.transaction_properties == {"omnigraph.transaction_id": "tx"}


def test_one_transaction_committed_twice_is_applied_twice(dataset: LanceDataset) -> None:
    staged = appending(dataset, [50])
    commit(dataset, staged)
    assert ids(commit(dataset, staged)).count("k50") == 2


def test_staging_moves_no_head(dataset: LanceDataset) -> None:
    for staged in (*(staging(dataset) for staging in REBASED.values()), overwriting(dataset, [60])):
        assert staged.read_version == dataset.version
    assert lance.dataset(dataset.uri).version == dataset.version


def test_the_handle_of_a_commit_stays_where_it_was(dataset: LanceDataset) -> None:
    version = dataset.version
    commit(dataset, appending(dataset, [50]))
    assert dataset.version == version


def test_compaction_takes_two_versions_and_moves_the_handle(tmp_path: Path) -> None:
    dataset = new_dataset(tmp_path / "indexed", indexed=True)
    before = dataset.version
    results = [task.execute(dataset) for task in Compaction.plan(dataset, options={}).tasks]
    Compaction.commit(dataset, results)
    assert dataset.version == lance.dataset(dataset.uri).version == before + 2
    with pytest.raises(TypeError):
        dataset.read_transaction(dataset.version)


def test_row_ids_survive_updates_and_are_never_reused(dataset: LanceDataset) -> None:
    def row_ids(of: LanceDataset) -> dict[str, int]:
        read = of.to_table(columns=["id"], with_row_id=True)
        return dict(zip(read["id"].to_pylist(), read["_rowid"].to_pylist(), strict=True))

    before = row_ids(dataset)
    updated = commit(dataset, upserting(dataset, [1, 50]))
    assert row_ids(updated)["k1"] == before["k1"]
    restored = commit(updated, Transaction(updated.version, LanceOperation.Restore(dataset.version)))
    again = commit(restored, appending(restored, [51]))
    assert row_ids(again)["k51"] not in {*before.values(), row_ids(updated)["k50"]}


def test_the_version_hint_is_only_a_hint(dataset: LanceDataset) -> None:
    hint = Path(dataset.uri, "_versions", "latest_version_hint.json")
    for text in ('{"version":1}', '{"version":99}', "junk", ""):
        hint.write_text(text)
        assert lance.dataset(dataset.uri).version == dataset.version
    hint.unlink()
    assert lance.dataset(dataset.uri).version == dataset.version
