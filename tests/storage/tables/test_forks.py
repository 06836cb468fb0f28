"""Table forks: made at a version, written on their own, removed without a trace, healed after a crash."""

from __future__ import annotations

from pathlib import Path

import pytest

from omnigraph.errors import AlreadyExists, BadRequest
from omnigraph.storage.objects import open_store
from omnigraph.storage.tables.commit import create_lance_branch, delete_lance_branch, drop_fork, drop_table, fork
from omnigraph.storage.tables.handles import Tables
from omnigraph.storage.tables.lance_errors import BranchInUse, Missing
from omnigraph.storage.tables.location import Location
from omnigraph.storage.tables.staged import stage_append
from tests.storage.tables.people import HOME, SEEDED, commit, foreign_append, head, people, rows, seed
from tests.storage.tables.upserts import stage_upsert

FORK = Location(HOME.path, "01FORK")


def test_a_fork_starts_at_the_parents_version(backend: Tables) -> None:
    table = seed(backend)
    foreign_append(backend)
    assert fork(backend, HOME, table.version, "01FORK") == FORK
    assert backend.head_version(FORK) == table.version
    assert backend.created_by(FORK, table.version) is None
    assert rows(head(backend, FORK)) == SEEDED


def test_a_fork_is_written_on_its_own(backend: Tables) -> None:
    table = seed(backend)
    fork(backend, HOME, table.version, "01FORK")
    after = commit(backend, stage_upsert(head(backend, FORK), people([2, 20], "fork")), "tx-fork")
    assert after.version == table.version + 1
    assert backend.created_by(FORK, after.version) == "tx-fork"
    assert ("p2", "fork") in rows(after)
    assert rows(head(backend)) == SEEDED
    assert backend.head_version(HOME) == table.version


def test_forking_again_is_forking_once(backend: Tables) -> None:
    table = seed(backend)
    fork(backend, HOME, table.version, "01FORK")
    after = commit(backend, stage_append(head(backend, FORK), people([20])))
    assert fork(backend, HOME, table.version, "01FORK") == FORK
    assert backend.head_version(FORK) == after.version


def test_a_fork_of_another_version_is_another_fork(tables: Tables) -> None:
    table = seed(tables)
    fork(tables, HOME, table.version, "01FORK")
    with pytest.raises(AlreadyExists):
        fork(tables, HOME, table.version - 1, "01FORK")


def test_a_fork_of_a_fork(backend: Tables) -> None:
    table = seed(backend)
    fork(backend, HOME, table.version, "01FORK")
    parent = commit(backend, stage_append(head(backend, FORK), people([20])))
    child = fork(backend, FORK, parent.version, "02FORK")
    assert rows(head(backend, child)) == rows(parent)
    with pytest.raises(AlreadyExists):
        fork(backend, HOME, table.version, "02FORK")
    with pytest.raises(BranchInUse):
        drop_fork(backend, FORK)
    drop_fork(backend, child)
    drop_fork(backend, FORK)
    assert backend.open_head(FORK) is None


def test_dropping_a_fork(backend: Tables) -> None:
    table = seed(backend)
    fork(backend, HOME, table.version, "01FORK")
    commit(backend, stage_append(head(backend, FORK), people([20])))
    drop_fork(backend, FORK)
    assert backend.open_head(FORK) is None
    with pytest.raises(Missing):
        backend.open(FORK, table.version)
    drop_fork(backend, FORK)
    assert rows(head(backend)) == SEEDED


def test_dropping_a_fork_of_a_table_that_is_gone(tables: Tables) -> None:
    drop_fork(tables, FORK)


def test_the_main_line_is_not_dropped_as_a_fork(tables: Tables) -> None:
    seed(tables)
    with pytest.raises(BadRequest):
        drop_fork(tables, HOME)
    assert tables.exists(HOME.path)


def test_a_name_can_be_used_again(backend: Tables) -> None:
    """Handles and caches must not show the old branch."""
    table = seed(backend)
    for name in ("first", "second"):
        fork(backend, HOME, table.version, "again")
        location = Location(HOME.path, "again")
        after = commit(backend, stage_append(head(backend, location), people([20], name)))
        assert ("p20", name) in rows(backend.open(location, after.version))
        drop_fork(backend, location)


def test_a_fork_of_a_missing_version(tables: Tables) -> None:
    seed(tables)
    with pytest.raises(Missing):
        fork(tables, HOME, 99, "01FORK")


def test_dropping_a_table_with_its_forks(backend: Tables) -> None:
    table = seed(backend)
    fork(backend, HOME, table.version, "01FORK")
    backend.open(FORK, table.version)
    drop_table(backend, HOME.path, open_store(backend.root).delete_prefix)
    assert not backend.exists(HOME.path)
    assert backend.open_head(FORK) is None
    with pytest.raises(Missing):
        backend.open(HOME, table.version)


# --- what a crash leaves ----------------------------------------------------------------------------------------------


def remove_ref(tables: Tables, name: str) -> None:
    """The state after a crash between Lance's two puts of a branch, or in the middle of its removal."""
    (Path(tables.root.lance_uri(HOME.path)) / "_refs" / "branches" / f"{name.replace('/', '%2F')}.json").unlink()


@pytest.mark.parametrize("name", ["01FORK", "feature/x"])
def test_a_half_made_branch_can_be_made_again(tables: Tables, name: str) -> None:
    table = seed(tables)
    fork(tables, HOME, table.version, name)
    remove_ref(tables, name)
    location = fork(tables, HOME, table.version, name)
    assert name in head(tables).dataset.branches.list()
    assert rows(commit(tables, stage_append(head(tables, location), people([20])))) == sorted([*SEEDED, ("p20", "old")])


def test_a_half_made_branch_can_be_made_at_another_version(tables: Tables) -> None:
    table = seed(tables)
    fork(tables, HOME, table.version, "b")
    remove_ref(tables, "b")
    create_lance_branch(tables.open(HOME, 1).dataset, "b", 1)
    assert tables.head_version(Location(HOME.path, "b")) == 1


def test_a_half_made_branch_of_a_branch(tables: Tables) -> None:
    table = seed(tables)
    parent = fork(tables, HOME, table.version, "parent")
    fork(tables, parent, table.version, "child")
    remove_ref(tables, "child")
    child = fork(tables, parent, table.version, "child")
    assert rows(head(tables, child)) == SEEDED


def test_a_half_removed_branch_can_be_removed(tables: Tables) -> None:
    table = seed(tables)
    fork(tables, HOME, table.version, "01FORK")
    remove_ref(tables, "01FORK")
    drop_fork(tables, FORK)
    assert tables.open_head(FORK) is None


def test_healing_never_removes_a_branch_that_lies_inside(tables: Tables) -> None:
    table = seed(tables)
    fork(tables, HOME, table.version, "feature")
    inner = fork(tables, HOME, table.version, "feature/x")
    remove_ref(tables, "feature")
    with pytest.raises(AlreadyExists):
        create_lance_branch(table.dataset, "feature", table.version)
    with pytest.raises(Missing):
        delete_lance_branch(table.dataset, "feature")
    assert rows(head(tables, inner)) == SEEDED


def test_deleting_a_branch_that_is_not_there(tables: Tables) -> None:
    table = seed(tables)
    with pytest.raises(Missing):
        delete_lance_branch(table.dataset, "nobody")


@pytest.mark.parametrize("name", ["a b", "a%b", "x.lock", "/a", ""])
def test_a_name_that_lance_refuses(tables: Tables, name: str) -> None:
    table = seed(tables)
    with pytest.raises(BadRequest):
        create_lance_branch(table.dataset, name, table.version)
