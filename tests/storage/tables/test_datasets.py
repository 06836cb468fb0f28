"""Single datasets without a pin: what the manifest and the audit log are written through."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from lance import LanceDataset

from omnigraph import failpoints
from omnigraph.errors import AlreadyExists
from omnigraph.storage.root import Root
from omnigraph.storage.tables.commit import (
    append_rows,
    commit_exact,
    compact_dataset,
    create_dataset,
    set_schema_metadata,
)
from omnigraph.storage.tables.handles import Tables
from omnigraph.storage.tables.lance_errors import CommitUnknown, StaleCommit
from omnigraph.storage.tables.location import Location
from omnigraph.storage.tables.staged import stage_append, stage_overwrite, stage_replace
from omnigraph.storage.tables.table import Table
from tests.storage.tables.people import SCHEMA, addresses_of, people, rows
from tests.storage.tables.test_commit import lose_the_answer, once
from tests.storage.tables.upserts import stage_upsert

MANIFEST = Location("__manifest")


def opened(root: Root) -> Table:
    table = Tables(root).open_head(MANIFEST)
    assert table is not None
    return table


@pytest.fixture
def dataset(shared_root: Root) -> LanceDataset:
    return create_dataset(shared_root, MANIFEST.path, SCHEMA, people(range(4)))


def test_a_dataset_is_created_once(shared_root: Root, dataset: LanceDataset) -> None:
    assert dataset.version == 1
    assert dataset.has_stable_row_ids
    assert dataset.schema.equals(SCHEMA, check_metadata=True)
    with pytest.raises(AlreadyExists):
        create_dataset(shared_root, MANIFEST.path, SCHEMA, people([7]))
    assert opened(shared_root).count_rows() == 4


def test_of_two_updates_of_one_row_one_wins(shared_root: Root, dataset: LanceDataset) -> None:
    first, second = (stage_upsert(opened(shared_root), people([1], name)) for name in ("first", "second"))
    assert commit_exact(dataset, first.transaction).version == 2
    with pytest.raises(StaleCommit) as caught:
        commit_exact(dataset, second.transaction)
    assert caught.value.retryable
    assert ("p1", "first") in rows(opened(shared_root))


def test_of_two_replacements_of_one_row_one_wins(shared_root: Root, dataset: LanceDataset) -> None:
    """Also when the row is the last of its fragment, which then vanishes."""
    for round_ in range(3):
        table = opened(shared_root)
        addresses = addresses_of(table, "p1")
        first, second = (stage_replace(table, people([1], f"{name}{round_}"), addresses) for name in ("a", "b"))
        commit_exact(table.dataset, first.transaction)
        with pytest.raises(StaleCommit) as caught:
            commit_exact(table.dataset, second.transaction)
        assert caught.value.retryable
        assert ("p1", f"a{round_}") in rows(opened(shared_root))
        assert opened(shared_root).count_rows() == 4


def test_of_two_overwrites_one_wins(shared_root: Root, dataset: LanceDataset) -> None:
    first, second = (stage_overwrite(opened(shared_root), people([9], name)) for name in ("first", "second"))
    commit_exact(dataset, first.transaction)
    with pytest.raises(StaleCommit):
        commit_exact(dataset, second.transaction)
    assert rows(opened(shared_root)) == [("p9", "first")]


def test_an_overwrite_is_never_rebased(shared_root: Root, dataset: LanceDataset) -> None:
    staged = stage_overwrite(opened(shared_root), people([9]))
    append_rows(shared_root, MANIFEST.path, people([5]))
    with pytest.raises(StaleCommit):
        commit_exact(dataset, staged.transaction)
    assert opened(shared_root).count_rows() == 5


def test_a_lost_answer_is_looked_up(shared_root: Root, dataset: LanceDataset) -> None:
    staged = stage_upsert(opened(shared_root), people([1], "new"))
    with once("table_commit.lost_acknowledgement", lose_the_answer):
        after = commit_exact(dataset, staged.transaction)
    assert after.version == 2
    assert after.count_rows("name = 'new'") == 1


def test_the_outcome_can_stay_unknown(tmp_path: Path) -> None:
    root = Root.parse(tmp_path / "graph")
    dataset = create_dataset(root, MANIFEST.path, SCHEMA, people(range(4)))
    staged = stage_append(opened(root), people([7]))
    home = Path(root.lance_uri(MANIFEST.path))

    def go_away() -> None:
        home.rename(home.with_name("aside"))
        lose_the_answer()

    with once("table_commit.lost_acknowledgement", go_away), pytest.raises(CommitUnknown):
        commit_exact(dataset, staged.transaction)
    home.with_name("aside").rename(home)
    assert opened(root).version == 2


def test_a_create_whose_outcome_stays_unknown(tmp_path: Path) -> None:
    root = Root.parse(tmp_path / "graph")

    def go_away() -> None:
        manifest = next((tmp_path / "graph" / MANIFEST.path / "_versions").glob("*.manifest"))
        manifest.write_bytes(b"junk")
        lose_the_answer()

    with once("table_commit.lost_acknowledgement", go_away), pytest.raises(CommitUnknown):
        create_dataset(root, MANIFEST.path, SCHEMA)


def test_a_crash_after_the_commit_leaves_it_done(shared_root: Root, dataset: LanceDataset) -> None:
    staged = stage_append(opened(shared_root), people([7]))
    with (
        failpoints.armed("table_commit.lost_acknowledgement"),
        pytest.raises(failpoints.FailpointError),
    ):
        commit_exact(dataset, staged.transaction)
    assert opened(shared_root).count_rows() == 5


def test_rows_are_appended_and_the_dataset_made_when_missing(shared_root: Root) -> None:
    assert append_rows(shared_root, MANIFEST.path, people([1])) == 1
    assert append_rows(shared_root, MANIFEST.path, people([2])) == 2
    assert rows(opened(shared_root)) == [("p1", "old"), ("p2", "old")]


def test_schema_metadata_is_stamped_alone(shared_root: Root, dataset: LanceDataset) -> None:
    stamped = set_schema_metadata(dataset, "omnigraph:stamp", "5")
    assert stamped.schema.metadata == {b"omnigraph:stamp": b"5"}
    assert opened(shared_root).schema.field("id").metadata == SCHEMA.field("id").metadata
    assert opened(shared_root).count_rows() == 4
    with pytest.raises(StaleCommit):
        set_schema_metadata(dataset, "omnigraph:stamp", "6")


def test_compaction_keeps_rows_and_stamp(shared_root: Root, dataset: LanceDataset) -> None:
    for number in range(5, 8):
        append_rows(shared_root, MANIFEST.path, people([number]))
    before = opened(shared_root)
    handle = opened(shared_root).dataset
    assert compact_dataset(Tables(shared_root), MANIFEST, handle) == handle.version > before.version
    after = opened(shared_root)
    assert after.fragment_count == 1
    assert rows(after) == rows(before)
    assert after.schema.equals(SCHEMA, check_metadata=True)


def test_a_compaction_that_was_overtaken(shared_root: Root, dataset: LanceDataset) -> None:
    append_rows(shared_root, MANIFEST.path, people([5]))
    handle = opened(shared_root).dataset
    overtaking = stage_upsert(opened(shared_root), people([1, 5], "new"))
    commit_exact(handle, overtaking.transaction)
    with pytest.raises(StaleCommit):
        compact_dataset(Tables(shared_root), MANIFEST, handle)
    assert rows(opened(shared_root))[1] == ("p1", "new")


def test_a_transaction_is_recognised_by_its_uuid_not_by_its_place(tmp_path: Path) -> None:
    """Someone else's commit at the next version is not taken for ours."""
    root = Root.parse(tmp_path / "graph")
    dataset = create_dataset(root, MANIFEST.path, SCHEMA, people(range(4)))
    ours = replace(stage_append(opened(root), people([7])).transaction, uuid="00000000-0000-0000-0000-000000000001")
    transactions = Path(root.lance_uri(MANIFEST.path)) / "_transactions"
    lance.write_dataset(people([8], "foreign"), root.lance_uri(MANIFEST.path), mode="append")
    transactions.rename(transactions.with_name("aside"))
    transactions.write_text("in the way")
    with pytest.raises(Exception, match="File exists") as caught:
        commit_exact(dataset, ours)
    assert not isinstance(caught.value, CommitUnknown)


def test_data_may_be_a_stream(tmp_path: Path) -> None:
    root = Root.parse(tmp_path / "graph")
    create_dataset(root, MANIFEST.path, SCHEMA, (batch for batch in people(range(3)).to_batches(max_chunksize=1)))
    assert opened(root).read(["id"])["id"].to_pylist() == pa.array(["p0", "p1", "p2"]).to_pylist()
