"""What a branch costs does not depend on how many others there are, and nothing that another one needs goes."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

import omnigraph
from bench.s3_requests import recorded
from omnigraph import failpoints
from omnigraph.commit.branch_refs import read_ref
from omnigraph.commit.branches import branch_names, create_branch, delete_branch
from omnigraph.commit.context import CommitContext
from omnigraph.commit.forked import FOLDER
from omnigraph.commit.history import state_of
from omnigraph.commit.model import MAIN
from omnigraph.commit.retiring import BRANCHES_LOOKED_AT
from omnigraph.errors import Conflict
from omnigraph.graph.lifecycle import connect, open_for_writing
from tests.commit.org import STAFF, again, ids, insert, new_graph, staff
from tests.s3 import S3Server

FEW, MANY = 2, BRANCHES_LOOKED_AT + 8


def with_branches(place: str, number: int, storage_options: dict[str, str] | None = None) -> CommitContext:
    context = new_graph(place, storage_options=storage_options)
    for at in range(number):
        create_branch(context, f"agents/{at}", MAIN)
    create_branch(context, "gone", MAIN)
    delete_branch(context, "gone")
    return context


def live_and_die(context: CommitContext) -> None:
    create_branch(context, "x", MAIN)
    insert(context, {STAFF: staff(["eve"])}, branch="x")
    delete_branch(context, "x")


@pytest.mark.parametrize("action", [live_and_die, branch_names, open_for_writing], ids=lambda action: action.__name__)
def test_requests_do_not_grow_with_the_branches(tmp_path: Path, action: Callable[[CommitContext], object]) -> None:
    def counted(number: int) -> Counter[str]:
        context = again(with_branches(str(tmp_path / f"g{number}"), number))
        before = Counter(context.store.counts)
        action(context)
        return Counter(context.store.counts) - before

    # A deleted branch with commits is kept when there are too many others to ask whether they know it.
    few, many = counted(MANY), counted(3 * MANY)
    assert few == many


def test_requests_on_s3_do_not_grow_with_the_branches(s3_server: S3Server) -> None:
    """Lance's requests too: it would read the refs of all branches to delete one."""

    def made(number: int) -> tuple[int, int]:
        root = s3_server.new_root()
        with_branches(root.uri, number, storage_options=root.storage_options)
        with recorded(s3_server) as (proxy, recorder):
            context = connect(root.uri, storage_options=proxy.options)
            create_branch(context, "x", MAIN)
            delete_branch(context, "x")
            with recorder.recording() as creating:
                create_branch(context, "x", MAIN)
            with recorder.recording() as deleting:
                delete_branch(context, "x")
            return creating().total, deleting().total

    assert made(FEW) == made(5 * FEW) == (CREATE_ON_S3, DELETE_ON_S3)


#: Requests of all kinds; eight of the first and none of the second are those that Lance makes for a branch.
CREATE_ON_S3 = 19
DELETE_ON_S3 = 14


# --- what another branch needs ----------------------------------------------------------------------------------------


def parent_and_child(context: CommitContext) -> None:
    create_branch(context, "parent", MAIN)
    insert(context, {STAFF: staff(["eve"])}, branch="parent")
    create_branch(context, "child", "parent")


def test_a_parent_stays_while_its_child_lives_and_goes_after_it(graph: CommitContext) -> None:
    parent_and_child(graph)
    with pytest.raises(Conflict, match="'child' still depends on it"):
        delete_branch(again(graph), "parent")
    delete_branch(graph, "child")
    delete_branch(again(graph), "parent")
    assert branch_names(graph) == [MAIN]
    assert not graph.store.exists(f"{FOLDER}/parent.json")


def test_a_graph_that_noted_no_parents_is_asked(graph: CommitContext) -> None:
    """As one that was made before parents were noted."""
    parent_and_child(graph)
    graph.store.delete_prefix(FOLDER)
    for _ in range(2):
        with pytest.raises(Conflict, match="'child' still depends on it"):
            delete_branch(again(graph), "parent")
        assert graph.store.exists(f"{FOLDER}/parent.json")


def test_a_copy_does_not_trust_what_was_noted_elsewhere(graph: CommitContext, tmp_path: Path) -> None:
    """A branch may have been made while the files were copied: with its ref, without the note of its parent."""
    create_branch(graph, "gone", MAIN)
    delete_branch(graph, "gone")
    parent_and_child(graph)
    copy = tmp_path / "copy"
    shutil.copytree(graph.root.uri, copy)
    (copy / FOLDER / "parent.json").unlink()
    with pytest.raises(Conflict, match="'child' still depends on it"):
        delete_branch(connect(str(copy)), "parent")


def test_a_creation_that_died_behind_the_note_is_in_nobodys_way(graph: CommitContext) -> None:
    create_branch(graph, "parent", MAIN)
    with failpoints.armed("branch_create.parent_noted", "error"), pytest.raises(failpoints.FailpointError):
        create_branch(graph, "child", "parent")
    assert branch_names(graph) == [MAIN, "parent"]
    delete_branch(graph, "parent")
    assert branch_names(graph) == [MAIN]


@pytest.mark.parametrize("forgotten", [False, True], ids=["noted", "not noted"])
def test_kept_states_of_a_child_survive_its_parent(tmp_path: Path, forgotten: bool) -> None:
    """The tables of a deleted child were forked from those of its parent, and are kept because main has its commits."""
    context = new_graph(str(tmp_path / "g"))
    graph = omnigraph.open(context.root.uri)
    create_branch(context, "parent", MAIN)
    insert(context, {STAFF: staff(["eve"])}, branch="parent")
    create_branch(context, "child", "parent")
    insert(context, {STAFF: staff(["fay"])}, branch="child")
    head = context.manifest.load("child").head
    graph.merge("child")
    delete_branch(context, "child")
    if forgotten:
        context.store.delete_prefix(FOLDER)
        create_branch(context, "other", MAIN)
        delete_branch(context, "other")
    delete_branch(again(context), "parent")
    later = again(context)
    state = state_of(later.manifest, later.manifest.commit_near(head))
    entry = state.by_key[STAFF]
    assert sorted(later.tables.open(entry.location, entry.version).read().column("id").to_pylist()) == ["eve", "fay"]


def test_a_branch_whose_files_lie_inside_another_keeps_it(graph: CommitContext) -> None:
    """Not made by OmniGraph, which refuses such names; deleting the outer one would take its files."""
    create_branch(graph, "outer", MAIN)
    warm = graph.manifest.warm(MAIN)
    warm.dataset.create_branch("outer/inner", warm.state.version)
    with pytest.raises(Conflict, match="'outer/inner' lies under it"):
        delete_branch(again(graph), "outer")
    assert read_ref(graph.store, "outer/inner") is not None


@pytest.mark.parametrize("name", ["a/b/c", "büro/größe", "x"])
def test_nothing_is_left_of_a_deleted_branch(graph: CommitContext, name: str) -> None:
    create_branch(graph, name, MAIN)
    insert(graph, {STAFF: staff(["eve"])}, branch=name)
    delete_branch(graph, name)
    left = [info.path for info in graph.store.list() if "/tree/" in info.path or "/_refs/" in info.path]
    assert left == []
    create_branch(graph, name, MAIN)
    assert ids(graph, STAFF, name) == []
