"""Lance branches. Relied on by `storage/tables/location.py`, `storage/tables/commit.py` and `commit/branches.py`."""

from __future__ import annotations

import json
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from lance import LanceDataset

from tests.substrate.lance_rows import appending, ids, new_dataset, upserting


@pytest.fixture
def dataset(tmp_path: Path) -> LanceDataset:
    return new_dataset(tmp_path / "table")


def commit(dataset: LanceDataset, numbers: list[int], value: str = "new") -> LanceDataset:
    return LanceDataset.commit(dataset, appending(dataset, numbers, value), max_retries=0)


@pytest.mark.parametrize("version", [1, 3])
def test_a_branch_starts_at_the_parents_version_and_counts_on(dataset: LanceDataset, version: int) -> None:
    branch = dataset.create_branch("b", version)
    assert branch.version == version
    assert commit(branch, [50]).version == version + 1
    assert lance.dataset(dataset.uri).version == dataset.version


def test_a_branch_is_a_dataset_below_tree(dataset: LanceDataset) -> None:
    dataset.create_branch("feature/x", 3)
    opened = lance.dataset(f"{dataset.uri}/tree/feature/x")
    commit(opened, [50])
    assert opened.latest_version == 4
    opened.checkout_latest()  # type: ignore[no-untyped-call]  # Lance gives it no types
    assert opened.version == 4
    assert ids(opened.checkout_version(3)) == ids(dataset)
    assert "k50" in ids(lance.dataset(f"{dataset.uri}/tree/feature/x", version=4))


def test_deleting_a_branch_below_main_deletes_everything(dataset: LanceDataset) -> None:
    """Why `commit/branch_refs.py` refuses such a name and `commit/branches.py` removes one otherwise."""
    dataset.create_branch("main/x", 3)
    dataset.branches.delete("main/x")
    assert not list(Path(dataset.uri).rglob("*.manifest"))


def test_a_ref_file_says_where_a_branch_starts(dataset: LanceDataset) -> None:
    """Relied on by `commit/branch_refs.py`."""
    dataset.create_branch("feature/x", 3)
    (ref,) = Path(dataset.uri, "_refs", "branches").iterdir()
    assert ref.name == "feature%2Fx.json"
    value = json.loads(ref.read_text())
    assert (value["parentBranch"], value["parentVersion"]) == (None, 3)
    assert value["identifier"]["version_mapping"][-1][0] == 3
    assert dataset.branches.list()["feature/x"]["parent_version"] == 3


def test_a_branch_of_a_branch_names_its_parent(dataset: LanceDataset) -> None:
    parent = dataset.create_branch("parent", 3)
    lance.dataset(commit(parent, [50]).uri).create_branch("child", 4)
    listed = dataset.branches.list()["child"]
    assert (listed["parent_branch"], listed["parent_version"]) == ("parent", 4)


def test_the_first_version_of_a_branch_is_not_ours(dataset: LanceDataset) -> None:
    branch = dataset.create_branch("b", 3)
    found = branch.read_transaction(3)
    assert found is not None
    assert not found.transaction_properties


def test_a_transaction_of_the_parent_ruins_the_branch(dataset: LanceDataset) -> None:
    """Why a fork must exist before anything is staged for it (`storage/tables/staged.py`)."""
    branch = dataset.create_branch("b", 3)
    ruined = LanceDataset.commit(branch, appending(dataset, [50]), max_retries=0)
    with pytest.raises(pa.ArrowInvalid, match="Not found"):
        ruined.to_table()


def test_a_tree_without_a_ref_blocks_its_name(dataset: LanceDataset) -> None:
    """What a crash between the two puts leaves; `commit.create_lance_branch` heals it."""
    dataset.create_branch("b", 3)
    Path(dataset.uri, "_refs", "branches", "b.json").unlink()
    assert lance.dataset(f"{dataset.uri}/tree/b").version == 3
    with pytest.raises(OSError, match="Clone operation should not enter build_manifest"):
        dataset.create_branch("b", 3)
    with pytest.raises(ValueError, match="Ref not found"):
        dataset.branches.delete("b")
    LanceDataset.drop(f"{dataset.uri}/tree/b")
    assert dataset.create_branch("b", 3).version == 3


def test_a_name_can_be_used_again_within_one_session(dataset: LanceDataset) -> None:
    session = lance.Session()  # type: ignore[attr-defined]  # re-exported by Lance without saying so
    for value in ("first", "second"):
        branch = lance.dataset(dataset.uri, session=session).create_branch("b", 3)
        commit(branch, [50], value)
        for opened in (
            lance.dataset(f"{dataset.uri}/tree/b", session=session),
            lance.dataset(f"{dataset.uri}/tree/b", version=4, session=session),
        ):
            assert opened.to_table(filter="id = 'k50'")["v"].to_pylist() == [value]
        lance.dataset(dataset.uri, session=session).branches.delete("b")


def test_a_question_mark_in_the_path_puts_the_branch_elsewhere(tmp_path: Path) -> None:
    """Why `storage/root.py` refuses such a path."""
    dataset = new_dataset(tmp_path / "a?b" / "table")
    dataset.create_branch("b", 1)
    assert not (tmp_path / "a?b" / "table" / "tree").exists()
    assert (tmp_path / "a" / "tree" / "b?b" / "table").exists()


def test_version_stamps_are_the_branchs_own(dataset: LanceDataset) -> None:
    """Relied on by `commit/manifest.py`: a commit's manifest version is the stamp of its row."""
    commit(commit(dataset, [60]), [61])
    branch = commit(commit(dataset.create_branch("b", 2), [50]), [51])
    branch.optimize.compact_files()
    read = lance.dataset(branch.uri).to_table(columns=["id", "_row_created_at_version"])
    stamps = dict(zip(read["id"].to_pylist(), read["_row_created_at_version"].to_pylist(), strict=True))
    assert (stamps["k0"], stamps["k4"], stamps["k50"], stamps["k51"]) == (1, 2, 3, 4)


def test_parents_indexes_serve_the_branch(tmp_path: Path) -> None:
    dataset = new_dataset(tmp_path / "indexed", indexed=True)
    branch = dataset.create_branch("b", dataset.version)
    after = LanceDataset.commit(branch, upserting(branch, [1, 50]), max_retries=0)
    assert "ScalarIndexQuery" in after.scanner(filter="id = 'k1'").explain_plan()
    assert after.to_table(filter="id in ('k1', 'k2', 'k50')").num_rows == 3
