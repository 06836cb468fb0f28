"""Every file a write makes is known with its size, and a file that ends early fails the write with nothing changed."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

from omnigraph import failpoints
from omnigraph.storage.root import Root
from omnigraph.storage.tables.columns import Column, stage_columns
from omnigraph.storage.tables.commit import (
    append_rows,
    commit_exact,
    commit_staged,
    compact_dataset,
    create_dataset,
    create_lance_branch,
)
from omnigraph.storage.tables.handles import Tables
from omnigraph.storage.tables.location import Location
from omnigraph.storage.tables.staged import Staged, stage_append, stage_create, stage_delete, stage_index
from omnigraph.storage.tables.table import Table
from omnigraph.storage.tables.version_files import version_file
from omnigraph.storage.tables.written import (
    ShortFile,
    WrittenFile,
    files_of_staged,
    files_of_version,
    require_whole,
)
from tests.storage.tables.people import DERIVED, HOME, SCHEMA, SEEDED, WRITES, commit, head, people, rows, seed


def _with_column(table: Table) -> Staged:
    kept = [Column(table.schema.field(name), stored=name) for name in table.schema.names]
    return stage_columns(table, [*kept, Column(pa.field("age", pa.int64()), fill=pa.scalar(7, pa.int64()))])


STAGED: dict[str, Callable[[Table], Staged | None]] = {
    **{kind: stage for kind, (stage, _) in WRITES.items()},
    **{kind: stage for kind, stage in DERIVED.items() if kind != "index fold"},
    "filled column": _with_column,
}


def on_disk(root: Root) -> set[str]:
    """All files below a graph, without Lance's hint, which may be wrong at any time."""
    base = Path(root.uri)
    found = (path for path in base.rglob("*") if path.is_file() and path.name != "latest_version_hint.json")
    return {str(path.relative_to(base)) for path in found}


def cut(root: Root, path: str, *, to: int | None = None) -> None:
    """What a disk that was full for a moment leaves of a file: its beginning, or nothing."""
    place = root.local_path(path)
    os.truncate(place, place.stat().st_size // 2 if to is None else to)


@pytest.mark.parametrize("kind", STAGED)
def test_the_files_of_a_staged_write_are_known_with_their_sizes(tables: Tables, kind: str) -> None:
    table = seed(tables)
    before = on_disk(tables.root)
    staged = STAGED[kind](table)
    assert staged is not None
    files = list(files_of_staged(staged))
    made = on_disk(tables.root) - before
    assert made == {file.path for file in files} - before
    require_whole(tables.root, files)
    assert all(file.size or file.marks for file in files)

    after = commit(tables, staged)
    listed = {file.path for file in files_of_version(tables.root, HOME, after.dataset, table.dataset)}
    assert {path for path in made if "/_indices/" not in path} <= listed
    assert version_file(HOME, after.version) in listed


@pytest.mark.parametrize("to", [0, None], ids=["nothing", "half"])
@pytest.mark.parametrize("kind", STAGED)
def test_a_staged_file_that_ends_early_is_not_committed(tables: Tables, kind: str, to: int | None) -> None:
    table = seed(tables)
    staged = STAGED[kind](table)
    assert staged is not None
    files = list(files_of_staged(staged))
    # Whole fragments that go, and a table without rows, need no file.
    assert files or kind.startswith("delete of") or kind == "overwrite to nothing"
    for file in files:
        place = tables.root.local_path(file.path)
        whole = place.read_bytes()
        cut(tables.root, file.path, to=to)
        with pytest.raises(ShortFile) as short:
            commit_staged(tables, staged, expected_version=table.version, transaction_id="tx")
        assert short.value.path == file.path
        place.write_bytes(whole)
    assert tables.head_version(HOME) == table.version
    assert rows(head(tables)) == SEEDED
    commit(tables, staged)


def test_many_marks_are_a_bitmap_that_is_read_back(tables: Tables) -> None:
    created = stage_create(tables, HOME, SCHEMA, people(range(100_000)))
    commit_staged(tables, created, expected_version=None, transaction_id="seed")
    staged = stage_delete(head(tables), filter="id < 'p6'")
    (file,) = files_of_staged(staged)
    assert file.path.endswith(".bin")
    assert file.marks == staged.stats.deleted > 50_000
    require_whole(tables.root, [file])
    for size in (tables.root.local_path(file.path).stat().st_size - 1, 20, 7, 0):
        cut(tables.root, file.path, to=size)
        with pytest.raises(ShortFile):
            require_whole(tables.root, [file])


def newest(root: Root, location: Location = HOME) -> WrittenFile:
    """The manifest of the newest version on disk."""
    folder = root.local_path(f"{location.dataset_path}/_versions")
    return WrittenFile(
        f"{location.dataset_path}/_versions/{min(path.name for path in folder.glob('*.manifest'))}", "manifest", None
    )


@pytest.mark.parametrize("to", [0, 15, None])
@pytest.mark.parametrize("part", ["manifest", "transaction"])
def test_a_version_that_ends_early_is_removed_at_once(tables: Tables, part: str, to: int | None) -> None:
    table = seed(tables)
    staged = stage_append(table, people([20]))
    name = f"{HOME.path}/_transactions/{table.version}-{staged.transaction.uuid}.txn"

    def cut_it() -> None:
        cut(tables.root, newest(tables.root).path if part == "manifest" else name, to=to)

    with failpoints.armed("table_commit.lost_acknowledgement", cut_it), pytest.raises(ShortFile):
        commit_staged(tables, staged, expected_version=table.version, transaction_id="tx")
    for opened in (tables, Tables(tables.root)):
        assert opened.head_version(HOME) == table.version
        assert rows(head(opened)) == SEEDED
    # The same number is used again, for something else, and nobody remembers the first.
    after = commit(tables, stage_append(head(tables), people([30])))
    assert after.version == table.version + 1
    for opened in (tables, Tables(tables.root)):
        assert rows(head(opened)) == sorted([*SEEDED, ("p30", "old")])


def test_a_new_table_whose_version_ends_early_is_not_there(tables: Tables) -> None:
    staged = stage_create(tables, HOME, SCHEMA, people(range(4)))
    with (
        failpoints.armed("table_commit.lost_acknowledgement", lambda: cut(tables.root, newest(tables.root).path)),
        pytest.raises(ShortFile),
    ):
        commit_staged(tables, staged, expected_version=None, transaction_id="tx")
    assert tables.head_version(HOME) is None
    commit_staged(
        tables, stage_create(tables, HOME, SCHEMA, people(range(4))), expected_version=None, transaction_id="again"
    )


def test_a_dataset_without_a_pin_is_checked_too(tables: Tables) -> None:
    create_dataset(tables.root, "__log", SCHEMA, people([1]))
    location = Location("__log")
    with (
        failpoints.armed(
            "table_commit.lost_acknowledgement", lambda: cut(tables.root, newest(tables.root, location).path)
        ),
        pytest.raises(ShortFile),
    ):
        append_rows(tables.root, "__log", people([2]))
    assert append_rows(tables.root, "__log", people([3])) == 2
    staged = stage_append(Table(location, tables.open_dataset(location)), people([4]))
    with (
        failpoints.armed(
            "table_commit.lost_acknowledgement", lambda: cut(tables.root, newest(tables.root, location).path)
        ),
        pytest.raises(ShortFile),
    ):
        commit_exact(tables.open_dataset(location), staged.transaction)
    assert [row[0] for row in rows(Table(location, tables.open_dataset(location)))] == ["p1", "p3"]


BLOBS = pa.schema([pa.field("id", pa.string(), nullable=False), lance.blob_field("content")])


def with_blobs(*sizes: int) -> pa.Table:
    values = lance.blob_array([b"x" * size for size in sizes])
    return pa.table({"id": [f"b{at}-{size}" for at, size in enumerate(sizes)], "content": values}, schema=BLOBS)


def test_blob_files_are_known_and_one_that_ends_early_is_not_committed(tables: Tables) -> None:
    sizes = (10, 100_000, 70_000, 5_000_000)
    created = stage_create(tables, HOME, BLOBS, with_blobs(*sizes))
    commit_staged(tables, created, expected_version=None, transaction_id="seed")
    table = head(tables)
    files = [file for file in files_of_version(tables.root, HOME, table.dataset) if file.kind == "blob"]
    assert {file.path for file in files} == {path for path in on_disk(tables.root) if path.endswith(".blob")}
    assert sorted(file.size or 0 for file in files) == [170_000, 5_000_000]
    for large in range(2):
        before = on_disk(tables.root)
        staged = stage_append(table, with_blobs(*sizes))
        made = sorted(path for path in on_disk(tables.root) - before if path.endswith(".blob"))
        cut(tables.root, made[large])
        with pytest.raises(ShortFile) as short:
            commit_staged(tables, staged, expected_version=table.version, transaction_id="tx")
        assert short.value.path == made[large]
        assert tables.head_version(HOME) == table.version
    assert commit(tables, stage_append(table, with_blobs(*sizes))).count_rows() == 8


def test_what_lance_writes_while_it_commits_is_checked(tables: Tables, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compactions and folded indexes have no staged form: their files are checked before their version is accepted."""
    create_dataset(tables.root, "__log", SCHEMA, people([1]))
    location = Location("__log")
    for number in range(2, 5):
        append_rows(tables.root, "__log", people([number]))
    before = on_disk(tables.root)
    dataset = tables.open_dataset(location)
    compact = type(dataset.optimize).compact_files

    def on_a_full_disk(*args: Any, **kwargs: Any) -> object:
        done = compact(*args, **kwargs)
        cut(tables.root, next(path for path in on_disk(tables.root) - before if "/data/" in path))
        return done

    monkeypatch.setattr(type(dataset.optimize), "compact_files", on_a_full_disk)
    version = dataset.version
    with pytest.raises(ShortFile):
        compact_dataset(tables, location, dataset)
    assert tables.head_version(location) == version
    assert len(rows(Table(location, tables.open_dataset(location)))) == 4


def test_a_fork_whose_version_ends_early_is_not_there(tables: Tables, monkeypatch: pytest.MonkeyPatch) -> None:
    table = seed(tables)
    create = lance.LanceDataset.create_branch

    def on_a_full_disk(dataset: lance.LanceDataset, name: str, version: int) -> lance.LanceDataset:
        made = create(dataset, name, version)
        cut(tables.root, newest(tables.root, Location(HOME.path, name)).path)
        return made

    with monkeypatch.context() as patched:
        patched.setattr(lance.LanceDataset, "create_branch", on_a_full_disk)
        with pytest.raises(ShortFile):
            create_lance_branch(table.dataset, "work", table.version)
    assert table.dataset.branches.list() == {}
    create_lance_branch(table.dataset, "work", table.version)
    assert rows(head(tables, Location(HOME.path, "work"))) == SEEDED


def test_a_version_of_an_index_lists_the_folder_of_each_segment(tables: Tables) -> None:
    table = seed(tables)
    after = commit(tables, stage_index(table, "name", "BITMAP", "name_idx"))
    added = [file for file in files_of_version(tables.root, HOME, after.dataset, table.dataset) if file.kind == "index"]
    assert len(added) == 1
    require_whole(tables.root, added)
    part = next(tables.root.local_path(added[0].path).iterdir())
    os.truncate(part, part.stat().st_size - 1)
    with pytest.raises(ShortFile):
        require_whole(tables.root, added)
