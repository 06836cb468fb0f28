"""Branches that are deleted, created again, interrupted, or changed by two at once: one life is never taken for another."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from omnigraph import failpoints
from omnigraph.commit.branch_refs import list_refs
from omnigraph.commit.branches import branch_names, create_branch, delete_branch
from omnigraph.commit.context import CommitContext
from omnigraph.commit.history import history
from omnigraph.commit.model import MAIN
from omnigraph.commit.protocol import Step, TableEffect, Write, execute
from omnigraph.commit.sidecar import Kind, list_sidecars
from omnigraph.errors import (
    AlreadyExists,
    BranchNotFound,
    Conflict,
    ExpectedVersionMismatch,
    OmnigraphError,
    StorageError,
)
from omnigraph.graph.lifecycle import connect
from omnigraph.storage.faults import FaultyStore
from omnigraph.storage.objects import open_store
from omnigraph.storage.tables.commit import create_lance_branch
from omnigraph.storage.tables.location import Location
from omnigraph.storage.tables.staged import stage_append
from tests.commit.org import (
    STAFF,
    TEAM,
    accepted,
    again,
    ids,
    insert,
    lineage,
    staff,
    table_of,
    write,
)

ORG = ["ada", "ben", "cleo", "dov"]


# --- deletion and a second life ---------------------------------------------------------------------------------------


def test_a_deleted_branch_is_gone_for_every_handle(org: CommitContext) -> None:
    create_branch(org, "feature", MAIN)
    insert(org, {STAFF: staff(["eve"])}, branch="feature")
    warm = again(org)
    assert ids(warm, STAFF, "feature") == [*ORG, "eve"]

    delete_branch(org, "feature")

    for handle in (org, warm, again(org)):
        with pytest.raises(BranchNotFound):
            handle.manifest.load("feature")
        with pytest.raises(BranchNotFound):
            insert(handle, {STAFF: staff(["fay"])}, branch="feature")
    assert ids(warm, STAFF) == ORG


def test_a_name_used_again_is_another_branch_for_warm_handles_too(org: CommitContext) -> None:
    create_branch(org, "feature", MAIN)
    insert(org, {STAFF: staff(["old"])}, branch="feature")
    warm = again(org)
    old = warm.manifest.load("feature")
    assert ids(warm, STAFF, "feature") == [*ORG, "old"]
    prepared = write(warm, {STAFF: staff(["stale"])}, branch="feature")

    delete_branch(org, "feature")
    create_branch(org, "feature", MAIN)
    insert(org, {STAFF: staff(["new"])}, branch="feature")

    new = warm.manifest.load("feature")
    assert new.version == old.version, "the trap: equal version numbers"
    assert new.incarnation != old.incarnation
    assert ids(warm, STAFF, "feature") == [*ORG, "new"]
    assert warm.manifest.load_at("feature", new.version).head == new.head
    with pytest.raises(Conflict):
        execute(warm, prepared)
    assert insert(warm, {STAFF: staff(["newer"])}, branch="feature").by_key[STAFF].row_count == 6


def test_a_branch_never_writes_the_line_of_another(shared_graph: CommitContext) -> None:
    """A write that was prepared on a fork's namesake, as it looks when a branch was created anew in between."""
    create_branch(shared_graph, "feature", MAIN)
    state = shared_graph.manifest.load("feature")
    entry = state.by_key[STAFF]
    staged = stage_append(table_of(shared_graph, entry), staff(["astray"]))
    astray = Write(Kind.MUTATION, "feature", lineage(), (TableEffect(entry, (Step(staged),)),), accepted(state))

    with pytest.raises(ExpectedVersionMismatch, match="does not belong to branch 'feature'"):
        execute(shared_graph, astray)

    assert shared_graph.tables.head_version(entry.location) == entry.version
    assert list_sidecars(shared_graph.store) == []
    insert(shared_graph, {STAFF: staff(["main"])})
    insert(shared_graph, {STAFF: staff(["feature"])}, branch="feature")
    assert [ids(shared_graph, STAFF, name) for name in (MAIN, "feature")] == [["main"], ["feature"]]


def test_the_forks_of_a_deleted_branch_are_removed_and_inherited_ones_kept(org: CommitContext) -> None:
    create_branch(org, "feature", MAIN)
    insert(org, {STAFF: staff(["eve"])}, branch="feature")
    create_branch(org, "experiment", "feature")
    insert(org, {TEAM: pa.table({"id": ["x"], "code": ["x"]})}, branch="experiment")
    own = org.manifest.load("experiment").by_key[TEAM].location
    inherited = org.manifest.load("experiment").by_key[STAFF].location

    delete_branch(org, "experiment")

    assert again(org).tables.head_version(own) is None
    assert again(org).tables.head_version(inherited) is not None
    assert ids(again(org), STAFF, "feature") == [*ORG, "eve"]
    delete_branch(org, "feature")
    assert again(org).tables.head_version(inherited) is None


def test_a_missing_fork_does_not_stop_the_deletion(graph: CommitContext) -> None:
    create_branch(graph, "feature", MAIN)
    location = insert(graph, {STAFF: staff(["eve"])}, branch="feature").by_key[STAFF].location
    shutil.rmtree(graph.root.local_path(location.dataset_path))
    delete_branch(again(graph), "feature")
    assert branch_names(graph) == [MAIN]


# --- at the same time -------------------------------------------------------------------------------------------------


class Meanwhile:
    """A failpoint action: something that another handle begins at this point, and how it ended."""

    def __init__(self, action: Callable[[], object]) -> None:
        self._thread = threading.Thread(target=self._run)
        self._action = action
        self.error: OmnigraphError | None = None

    def __call__(self) -> None:
        if self._thread.ident is None:
            self._thread.start()
            self._thread.join(0.2)  # what need not wait is done by then

    def _run(self) -> None:
        try:
            self._action()
        except OmnigraphError as error:
            self.error = error

    def finish(self) -> None:
        self._thread.join()


def test_two_names_that_overlap_are_not_created_at_once(shared_graph: CommitContext) -> None:
    other = Meanwhile(lambda: create_branch(again(shared_graph), "a", MAIN))
    with failpoints.armed("branch_create.before_ref", other):
        create_branch(shared_graph, "a/b", MAIN)
    other.finish()
    assert isinstance(other.error, AlreadyExists)
    assert branch_names(shared_graph) == [MAIN, "a/b"]


def test_a_base_is_not_deleted_while_it_is_branched(shared_graph: CommitContext) -> None:
    create_branch(shared_graph, "base", MAIN)
    insert(shared_graph, {STAFF: staff(["eve"])}, branch="base")
    other = Meanwhile(lambda: delete_branch(again(shared_graph), "base"))
    with failpoints.armed("branch_create.before_ref", other):
        create_branch(shared_graph, "kid", "base")
    other.finish()
    assert isinstance(other.error, Conflict)
    assert ids(again(shared_graph), STAFF, "kid") == ["eve"]


class AfterReadingTheRef(FaultyStore):
    """A store where something happens right after the ref of `feature` was read for the nth time."""

    def __init__(self, context: CommitContext, nth: int, action: Callable[[], object]) -> None:
        super().__init__(open_store(context.root))
        self._left = nth
        self._action = action

    def get_tagged(self, path: str) -> tuple[bytes, str]:
        found = super().get_tagged(path)
        if path.endswith("/feature.json"):
            self._left -= 1
            if self._left == 0:
                self._action()
        return found


@pytest.mark.parametrize(
    ("read", "nth"),
    [
        pytest.param(lambda c: c.manifest.load("feature").head, 1, id="state"),
        pytest.param(lambda c: c.manifest.load_at("feature", 2).head, 1, id="old state, before the branch is read"),
        pytest.param(lambda c: c.manifest.load_at("feature", 2).head, 3, id="old state, before the version is read"),
        pytest.param(lambda c: history(c.manifest, "feature")[0].id, 1, id="history"),
    ],
)
@pytest.mark.parametrize("created_again", [False, True])
def test_a_branch_that_is_deleted_while_it_is_read(
    graph: CommitContext, read: Callable[[CommitContext], str], nth: int, created_again: bool
) -> None:
    """It is not found, or it is what it is now; never damaged, and never a mixture."""
    create_branch(graph, "feature", MAIN)
    for name in ("ada", "ben"):
        insert(graph, {STAFF: staff([name])}, branch="feature")

    def pull_away() -> None:
        delete_branch(graph, "feature")
        if created_again:
            create_branch(graph, "feature", MAIN)
            for name in ("eve", "fay"):
                insert(graph, {STAFF: staff([name])}, branch="feature")

    reader = connect(graph.root.uri, store=AfterReadingTheRef(graph, nth, pull_away))
    if not created_again:
        with pytest.raises(BranchNotFound):
            read(reader)
    else:
        assert read(reader) == read(again(graph))


# --- interrupted work -------------------------------------------------------------------------------------------------


@pytest.mark.row("BR-17")
def test_a_creation_that_left_files_without_a_ref_is_repeated(org: CommitContext) -> None:
    create_branch(org, "feature", MAIN)
    insert(org, {STAFF: staff(["ghost"])}, branch="feature")
    org.store.delete("__manifest/_refs/branches/feature.json")
    assert branch_names(again(org)) == [MAIN]

    for handle in (again(org), org):
        create_branch(handle, "feature", MAIN)
        assert ids(handle, STAFF, "feature") == ORG
        delete_branch(handle, "feature")


@pytest.mark.parametrize(
    "failpoint", ["branch_create.before_ref", "branch_delete.before_ref", "branch_delete.after_ref"]
)
def test_an_interrupted_create_or_delete_can_be_repeated(graph: CommitContext, failpoint: str) -> None:
    deleting = failpoint.startswith("branch_delete")
    if deleting:
        create_branch(graph, "feature", MAIN)
        insert(graph, {STAFF: staff(["eve"])}, branch="feature")
    with failpoints.armed(failpoint, "error"), pytest.raises(failpoints.FailpointError):
        (delete_branch(graph, "feature") if deleting else create_branch(graph, "feature", MAIN))

    if failpoint == "branch_delete.before_ref":
        assert ids(graph, STAFF, "feature") == ["eve"]
        delete_branch(graph, "feature")
    assert branch_names(graph) == [MAIN]
    create_branch(graph, "feature", MAIN)
    assert ids(graph, STAFF, "feature") == []


@pytest.mark.row("BR-18")
def test_a_fork_left_by_an_interrupted_write_is_in_nobodys_way(org: CommitContext) -> None:
    create_branch(org, "feature", MAIN)
    entry = org.manifest.load("feature").by_key[STAFF]
    dataset = org.tables.open(entry.location, entry.version).dataset
    create_lance_branch(dataset, "01J0000000000000000000FORK", entry.version)

    insert(org, {STAFF: staff(["eve"])}, branch="feature")
    insert(org, {STAFF: staff(["fay"])}, branch="feature", kind=Kind.LOAD)

    assert ids(again(org), STAFF, "feature") == [*ORG, "eve", "fay"]
    assert ids(again(org), STAFF) == ORG


@pytest.mark.parametrize("kind", [Kind.MUTATION, Kind.LOAD])
@pytest.mark.row("BR-18")
def test_a_first_write_that_dies_after_forking_leaves_no_fork(graph: CommitContext, kind: Kind) -> None:
    create_branch(graph, "feature", MAIN)
    prepared = write(graph, {STAFF: staff(["lost"])}, branch="feature", kind=kind)
    with failpoints.armed("table_commit.before_commit", "error"), pytest.raises(failpoints.FailpointError):
        execute(graph, prepared)
    fork = Location(graph.manifest.load().by_key[STAFF].path, prepared.operation_id)
    assert again(graph).tables.head_version(fork) is None
    assert list_sidecars(graph.store) == []

    insert(graph, {STAFF: staff(["eve"])}, branch="feature", kind=kind)
    assert ids(graph, STAFF, "feature") == ["eve"]


def test_an_unreadable_ref_is_loud(graph: CommitContext) -> None:
    create_branch(graph, "feature", MAIN)
    Path(graph.root.uri, "__manifest/_refs/branches/feature.json").write_text("{not json")
    # Its name is known all the same: one damaged ref does not hide the other branches.
    assert branch_names(again(graph)) == [MAIN, "feature"]
    with pytest.raises(StorageError, match="ref of branch 'feature' is unreadable"):
        list_refs(graph.store)
    with pytest.raises(StorageError, match="ref of branch 'feature' is unreadable"):
        delete_branch(again(graph), "feature")
    with pytest.raises(StorageError, match="feature"):
        again(graph).manifest.load("feature")
    assert ids(again(graph), STAFF) == []
