"""The texts and types of Lance's errors. Relied on by `storage/tables/lance_errors.py`, which alone reads them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from lance import LanceDataset, LanceOperation, Transaction
from lance.commit import CommitConflictError
from lance.fragment import write_fragments
from lance.optimize import Compaction

from omnigraph.errors import AlreadyExists, BadRequest, OmnigraphError, StorageError, ValidationError
from omnigraph.storage.tables.lance_errors import (
    LANCE_ERRORS,
    BranchInUse,
    Corrupt,
    IndexNotReady,
    Missing,
    StaleCommit,
    translate,
)
from tests.storage.bad_s3 import HANG_UP, Answer, bad_s3
from tests.substrate.lance_rows import appending, fragment_metadata, new_dataset, overwriting, rows, upserting


def meaning(raising: Callable[[], object]) -> OmnigraphError:
    """What our one translating module makes of the error that Lance raises."""
    with pytest.raises(LANCE_ERRORS) as caught:
        raising()
    assert not isinstance(caught.value, OmnigraphError)
    return translate(caught.value, path="t", action="try")


@pytest.fixture
def dataset(tmp_path: Path) -> LanceDataset:
    return new_dataset(tmp_path / "a folder" / "table")


# --- absent -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "raising",
    [
        pytest.param(lambda dataset: lance.dataset(f"{dataset.uri}-not-there"), id="dataset"),
        pytest.param(lambda dataset: lance.dataset(f"{dataset.uri}/tree/nope"), id="branch by path"),
        pytest.param(lambda dataset: dataset.checkout_version(("nope", None)), id="branch by checkout"),
        pytest.param(lambda dataset: lance.dataset(dataset.uri, version=99), id="version"),
        pytest.param(lambda dataset: dataset.checkout_version(99), id="version by checkout"),
        pytest.param(lambda dataset: dataset.branches.delete("nope"), id="branch to delete"),
    ],
)
def test_missing(dataset: LanceDataset, raising: Callable[[LanceDataset], object]) -> None:
    assert isinstance(meaning(lambda: raising(dataset)), Missing)


@pytest.mark.parametrize("inside", ["", "data", "_versions"])
def test_a_folder_without_a_version_is_missing(tmp_path: Path, inside: str) -> None:
    (tmp_path / "empty" / inside).mkdir(parents=True)
    assert isinstance(meaning(lambda: lance.dataset(str(tmp_path / "empty"))), Missing)


def test_a_removed_branch_is_missing_to_a_kept_handle(dataset: LanceDataset) -> None:
    dataset.create_branch("b", dataset.version)
    kept = lance.dataset(f"{dataset.uri}/tree/b")
    dataset.branches.delete("b")
    assert isinstance(meaning(lambda: kept.latest_version), Missing)


# --- unreadable -------------------------------------------------------------------------------------------------------


def damaged(content: bytes, kind: str) -> bytes:
    return {"empty": b"", "junk": b"junk" * 20, "cut off": content[:-10], "zeros": bytes(len(content))}[kind]


@pytest.mark.parametrize("kind", ["empty", "junk", "cut off"])
def test_a_damaged_manifest_is_corrupt(dataset: LanceDataset, kind: str) -> None:
    newest = min(Path(dataset.uri, "_versions").glob("*.manifest"))
    newest.write_bytes(damaged(newest.read_bytes(), kind))
    assert isinstance(meaning(lambda: lance.dataset(dataset.uri)), Corrupt)


def test_a_manifest_of_zeros_opens_as_version_0(dataset: LanceDataset) -> None:
    """Relied on by `storage/tables/handles.py`, which refuses it, and by `storage/tables/torn.py`."""
    newest = min(Path(dataset.uri, "_versions").glob("*.manifest"))
    newest.write_bytes(bytes(500))
    assert lance.dataset(dataset.uri).version == 0
    assert isinstance(meaning(lambda: lance.dataset(dataset.uri, version=3)), Corrupt)


@pytest.mark.parametrize("kind", ["empty", "junk", "cut off", "zeros", "gone"])
@pytest.mark.parametrize("what", ["data", "_deletions"])
def test_a_damaged_file_is_corrupt(dataset: LanceDataset, what: str, kind: str) -> None:
    dataset.delete("id = 'k0'")
    for path in Path(dataset.uri, what).iterdir():
        if kind == "gone":
            path.unlink()
        else:
            path.write_bytes(damaged(path.read_bytes(), kind))
    assert isinstance(meaning(lambda: lance.dataset(dataset.uri).to_table()), Corrupt)


# --- conflicts --------------------------------------------------------------------------------------------------------


def commit(dataset: LanceDataset, transaction: Transaction) -> LanceDataset:
    return LanceDataset.commit(dataset, transaction, max_retries=0)


def test_a_stale_update_is_a_typed_retryable_conflict(dataset: LanceDataset) -> None:
    first, second = upserting(dataset, [1]), upserting(dataset, [1])
    commit(dataset, first)
    with pytest.raises(CommitConflictError) as caught:
        commit(dataset, second)
    assert caught.value.retryable
    stale = translate(caught.value, path="t", action="commit to")
    assert isinstance(stale, StaleCommit)
    assert stale.retryable


def test_an_append_after_an_overwrite_is_a_conflict_for_good(dataset: LanceDataset) -> None:
    append = appending(dataset, [50])
    commit(dataset, overwriting(dataset, [60]))
    stale = meaning(lambda: commit(dataset, append))
    assert isinstance(stale, StaleCommit)
    assert not stale.retryable


def test_a_second_stamp_of_one_key_is_a_conflict_for_good(dataset: LanceDataset) -> None:
    """Relied on by `commit/migrations.py`."""
    stamp = LanceOperation.UpdateConfig(schema_metadata_updates=LanceOperation.UpdateMap({"stamp": "4"}))
    commit(dataset, Transaction(dataset.version, stamp))
    stale = meaning(lambda: commit(dataset, Transaction(dataset.version, stamp)))
    assert isinstance(stale, StaleCommit)
    assert not stale.retryable


def test_a_fragment_brought_back_twice_is_a_conflict_for_good(dataset: LanceDataset) -> None:
    """Relied on by `storage/tables/commit.py`: two who undo the same effect at once."""
    vanished = fragment_metadata(dataset, 1)
    after = commit(dataset, Transaction(dataset.version, LanceOperation.Delete([], [1], "any text")))
    back = LanceOperation.Update(new_fragments=[vanished])
    commit(after, Transaction(after.version, back))
    stale = meaning(lambda: commit(after, Transaction(after.version, back)))
    assert isinstance(stale, StaleCommit)
    assert not stale.retryable


def test_an_overtaken_compaction_is_a_plain_error_with_a_known_text(dataset: LanceDataset) -> None:
    results = [task.execute(dataset) for task in Compaction.plan(dataset, options={}).tasks]
    dataset.delete("id = 'k0'")
    with pytest.raises(OSError, match="Retryable commit conflict") as caught:
        Compaction.commit(lance.dataset(dataset.uri), results)
    assert not isinstance(caught.value, CommitConflictError)
    assert isinstance(translate(caught.value, path="t", action="compact"), StaleCommit)


# --- existing ---------------------------------------------------------------------------------------------------------


def test_create_over_an_existing_dataset(dataset: LanceDataset) -> None:
    assert isinstance(meaning(lambda: write_fragments(rows([1]), dataset.uri, mode="create")), AlreadyExists)


@pytest.mark.parametrize("version", [1, 2])
def test_a_branch_that_exists_is_refused_with_misleading_texts(dataset: LanceDataset, version: int) -> None:
    """Relied on by `storage/tables/commit.py`, which therefore looks at the refs instead."""
    dataset.create_branch("b", 2)
    error = meaning(lambda: dataset.create_branch("b", version))
    assert isinstance(error, AlreadyExists if version == 2 else Missing)


def test_a_ref_whose_tree_is_gone_still_exists(dataset: LanceDataset) -> None:
    dataset.create_branch("b", 2)
    LanceDataset.drop(f"{dataset.uri}/tree/b")
    assert isinstance(meaning(lambda: dataset.create_branch("b", 2)), AlreadyExists)
    dataset.branches.delete("b")
    assert dataset.create_branch("b", 2).version == 2


def test_a_branch_that_others_start_from(dataset: LanceDataset) -> None:
    lance.dataset(dataset.create_branch("parent", 2).uri).create_branch("child", 2)
    assert isinstance(meaning(lambda: dataset.branches.delete("parent")), BranchInUse)


# --- bad requests -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "raising",
    [
        pytest.param(lambda dataset: dataset.create_branch("a b", 1), id="branch name"),
        pytest.param(lambda dataset: dataset.to_table(filter="nope = 1"), id="unknown column"),
        pytest.param(lambda dataset: dataset.to_table(columns=["nope"]), id="unknown projection"),
        pytest.param(lambda dataset: dataset.to_table(filter="id = = 1"), id="broken filter"),
        pytest.param(lambda dataset: dataset.to_table(filter="id = 1"), id="wrong type"),
        pytest.param(
            lambda dataset: dataset.to_table(filter=pc.field("nope") == 1), id="unknown column in an expression"
        ),
        pytest.param(
            lambda dataset: write_fragments(pa.table({"id": ["x"], "w": [1]}), dataset, mode="append"), id="columns"
        ),
        pytest.param(
            lambda dataset: write_fragments(pa.table({"id": pa.array([None], pa.string()), "v": ["x"]}), dataset),
            id="null where required",
        ),
    ],
)
def test_bad_request(dataset: LanceDataset, raising: Callable[[LanceDataset], object]) -> None:
    assert isinstance(meaning(lambda: raising(dataset)), BadRequest)


def test_two_source_rows_for_one_stored_row(dataset: LanceDataset) -> None:
    error = meaning(lambda: upserting(dataset, [1, 1]))
    assert isinstance(error, ValidationError)
    assert error.kind == "duplicate_id"


@pytest.mark.parametrize(
    ("vectors", "kind", "options"),
    [
        pytest.param([None] * 50, "IVF_FLAT", {}, id="no vectors at all"),
        pytest.param([[1.0, 2.0]] * 50, "IVF_PQ", {"num_sub_vectors": 1}, id="too few to train on"),
    ],
)
def test_too_few_vectors(tmp_path: Path, vectors: list[object], kind: str, options: dict[str, Any]) -> None:
    uri = str(tmp_path / "vectors")
    for values in ([[1.0, 2.0]] * 300, vectors):
        lance.write_dataset(pa.table({"vector": pa.array(values, pa.list_(pa.float32(), 2))}), uri, mode="append")
    dataset = lance.dataset(uri)
    error = meaning(
        lambda: dataset.create_index_uncommitted(
            "vector", kind, name="v", fragment_ids=[1], num_partitions=1, **options
        )
    )
    assert isinstance(error, IndexNotReady)


# --- the store --------------------------------------------------------------------------------------------------------


def test_a_file_in_the_place_of_a_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    error = meaning(lambda: lance.dataset(str(tmp_path / "file")))
    assert isinstance(error, StorageError)
    assert error.kind == "configuration"


@pytest.mark.parametrize(
    ("answer", "kind"),
    [(401, "configuration"), (403, "configuration"), (429, "transient"), (503, "transient"), (HANG_UP, "transient")],
)
def test_answers_of_an_object_store(answer: Answer, kind: str) -> None:
    with bad_s3() as server:
        server.answers.append(answer)
        options = {**server.options, "client_max_retries": "0"}
        error = meaning(lambda: lance.dataset("s3://bucket/t", storage_options=options))
    assert isinstance(error, StorageError)
    assert error.kind == kind


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        # These states need another user or a full disk; the texts are those of the operating system.
        ("LanceError(IO): No space left on device (os error 28)", "permanent"),
        ('LanceError(IO): Permission denied (os error 13) at path "/x/data/.tmp5BgwUd"', "configuration"),
        ("something that was never seen before", "permanent"),
        # A version file that is removed while it is being opened.
        ("LanceError(IO): Generic N/A error: Not found: /g/t/_versions/18446744073709551566.manifest", "not_found"),
        ("LanceError(IO): Generic N/A error: Not found: /g/t/data/1.lance", "permanent"),
        ("Invalid user input: Packed blob range [0, 90000) exceeds blob object size 12288", "permanent"),
    ],
)
def test_texts_of_the_operating_system(text: str, kind: str) -> None:
    error = translate(OSError(text), path="nodes/1", action="append to")
    assert isinstance(error, StorageError)
    assert error.kind == kind
    assert error.path == "nodes/1"


def test_a_message_is_one_line_without_lances_source_places(dataset: LanceDataset) -> None:
    message = meaning(lambda: lance.dataset(f"{dataset.uri}-not-there")).message
    assert message.startswith("can not try t: Dataset at path")
    assert ".rs:" not in message
    assert "\n" not in message


def test_a_file_that_is_gone_may_be_there_at_a_second_try() -> None:
    """Somebody deletes a branch or cleans up: nobody needs to restore anything."""
    error = translate(OSError("Not found: /g/t/_refs/branches/b.json"), path="t", action="try")
    assert isinstance(error, Corrupt)
    assert "try again" in error.message
    assert "restore" not in error.message


def test_our_own_errors_pass_through() -> None:
    ours = BadRequest("as it was")
    assert translate(ours, path="t", action="try") is ours
