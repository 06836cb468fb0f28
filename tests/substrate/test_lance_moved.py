"""What a version of a branch says about where its parent lies. Relied on by `storage/tables/bases.py` and `commit/place.py`."""

from __future__ import annotations

import shutil
from pathlib import Path

import lance
import pytest
from lance import LanceDataset

from omnigraph.storage.root import Root
from omnigraph.storage.tables.bases import has_foreign_bases, relocated, with_bases_here
from omnigraph.storage.tables.location import Location
from omnigraph.storage.tables.version_files import version_name
from tests.substrate.lance_rows import appending, ids, new_dataset


@pytest.fixture
def moved(tmp_path: Path) -> Root:
    """`t` with the branch `a`, and `b` made from that, each with rows of its own; renamed after all that."""
    dataset = new_dataset(tmp_path / "old" / "t")
    dataset.create_scalar_index("id", "BTREE")
    first = lance.dataset(dataset.uri).create_branch("a", 4)
    first = LanceDataset.commit(first, appending(first, [50], "new"), max_retries=0)
    second = first.create_branch("b", 5)
    LanceDataset.commit(second, appending(second, [60], "new"), max_retries=0)
    shutil.move(tmp_path / "old", tmp_path / "new")
    return Root.parse(tmp_path / "new")


def opened(root: Root, branch: str, version: int | None = None) -> LanceDataset:
    return lance.dataset(f"{root.uri}/t/tree/{branch}", version=version)


def here(root: Root, branch: str) -> LanceDataset:
    dataset = opened(root, branch)
    return LanceDataset(dataset.uri, serialized_manifest=with_bases_here(dataset, root, "t"))


def test_a_branch_names_its_bases_and_where_they_lay(moved: Root, tmp_path: Path) -> None:
    bases = {base.name: base.path for base in opened(moved, "b").base_paths().values()}
    assert bases == {None: f"{tmp_path}/old/t", "a": f"{tmp_path}/old/t/tree/a"}
    assert not lance.dataset(f"{moved.uri}/t").base_paths(), "the main line has none"
    with pytest.raises(Exception, match="[Nn]ot found"):
        ids(opened(moved, "b"))


def test_a_handle_takes_another_manifest(moved: Root) -> None:
    assert has_foreign_bases(opened(moved, "b"), moved, "t")
    dataset = here(moved, "b")
    assert not has_foreign_bases(dataset, moved, "t")
    assert {"k50", "k60"} <= set(ids(dataset))
    assert dataset.to_table(filter="id = 'k0'").num_rows == 1


def test_a_commit_on_such_a_handle_says_where_the_bases_are_now(moved: Root) -> None:
    dataset = here(moved, "b")
    LanceDataset.commit(dataset, appending(dataset, [70], "new"), max_retries=0)
    assert "k70" in ids(opened(moved, "b"))


def test_branches_clones_and_restores_take_what_is_on_disk(moved: Root, tmp_path: Path) -> None:
    """So every handle of a branch, and every clone, is looked at when it is opened."""
    dataset = here(moved, "b")
    dataset.create_branch("c", dataset.version)
    assert has_foreign_bases(opened(moved, "c"), moved, "t")
    assert ids(here(moved, "c")) == ids(dataset)
    clone = dataset.shallow_clone(str(tmp_path / "clone"), ("b", dataset.version))
    assert has_foreign_bases(clone, moved, "t")


def test_a_version_file_is_rewritten_in_place(moved: Root) -> None:
    for branch, version in (("a", 4), ("a", 5), ("b", 5), ("b", 6)):
        file = Path(moved.uri) / f"t/tree/{branch}/_versions" / version_name(version)
        data = file.read_bytes()
        file.write_bytes(relocated(data, moved, Location("t", branch)))
        assert relocated(file.read_bytes(), moved, Location("t", branch)) == file.read_bytes()
        assert not has_foreign_bases(opened(moved, branch, version), moved, "t")
        assert opened(moved, branch, version).describe_indices(), "sections before the manifest keep their places"
        assert opened(moved, branch, version).read_transaction(version) is not None
    assert {"k50", "k60"} <= set(ids(opened(moved, "b")))


@pytest.mark.parametrize(
    "damage", [lambda data: b"", lambda data: data[:-1], lambda data: bytes(len(data)), lambda data: data[7:]]
)
def test_what_is_no_version_file_is_told(moved: Root, damage: object) -> None:
    data = (Path(moved.uri) / "t/tree/a/_versions" / version_name(5)).read_bytes()
    with pytest.raises(ValueError, match="short|whole"):
        relocated(damage(data), moved, Location("t", "a"))  # type: ignore[operator]
