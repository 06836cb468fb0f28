"""Branches: one Lance branch of `__manifest` each, isolated, forked lazily, safe to delete and create again."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import quote

import pyarrow as pa
import pytest

from omnigraph import failpoints
from omnigraph.commit.branch_refs import LONGEST_NAME, list_refs, read_ref
from omnigraph.commit.branches import branch_names, create_branch, delete_branch
from omnigraph.commit.context import CommitContext
from omnigraph.commit.history import history
from omnigraph.commit.model import MAIN
from omnigraph.commit.protocol import Step, Write, execute
from omnigraph.commit.sidecar import Kind
from omnigraph.errors import (
    AlreadyExists,
    BadRequest,
    BranchNotFound,
    Conflict,
    OmnigraphError,
)
from omnigraph.graph.lifecycle import open_for_writing
from omnigraph.storage.tables.commit import create_lance_branch
from omnigraph.storage.tables.staged import stage_delete
from tests.commit.org import (
    MEMBER_OF,
    MENTORS,
    STAFF,
    TEAM,
    accepted,
    again,
    delete,
    effect,
    ids,
    insert,
    lineage,
    mentors,
    staff,
)

ORG = ["ada", "ben", "cleo", "dov"]


# --- reading and writing ----------------------------------------------------------------------------------------------


def test_main_is_the_only_branch_at_first(org: CommitContext) -> None:
    assert branch_names(org) == [MAIN]


@pytest.mark.row("BR-02")
def test_a_branch_shows_main_as_it_was_at_creation(org: CommitContext) -> None:
    create_branch(org, "feature", MAIN)
    insert(org, {STAFF: staff(["later"])})
    assert ids(again(org), STAFF, "feature") == ORG
    assert branch_names(org) == [MAIN, "feature"]


@pytest.mark.row("BR-03", "BR-04")
def test_a_write_is_visible_on_its_branch_only(org: CommitContext) -> None:
    create_branch(org, "feature", MAIN)
    insert(org, {STAFF: staff(["eve"])}, branch="feature")
    insert(org, {STAFF: staff(["mia"])})
    assert ids(org, STAFF, "feature") == [*ORG, "eve"]
    assert ids(org, STAFF) == [*ORG, "mia"]


@pytest.mark.row("BR-05")
def test_a_branch_of_a_branch(org: CommitContext) -> None:
    create_branch(org, "feature", MAIN)
    insert(org, {STAFF: staff(["eve"])}, branch="feature")
    create_branch(org, "experiment", "feature")

    assert branch_names(again(org)) == [MAIN, "experiment", "feature"]
    assert ids(org, STAFF, "experiment") == [*ORG, "eve"]
    assert ids(org, STAFF) == ORG
    insert(org, {STAFF: staff(["fay"])}, branch="experiment")
    assert ids(org, STAFF, "feature") == [*ORG, "eve"]


@pytest.mark.row("BR-06")
def test_a_table_is_forked_by_its_first_write_only(org: CommitContext) -> None:
    create_branch(org, "feature", MAIN)
    insert(org, {MENTORS: mentors([("cleo", "dov")])}, branch="feature")

    main, feature = org.manifest.load(), org.manifest.load("feature")
    assert {key: feature.by_key[key].location for key in (STAFF, TEAM, MEMBER_OF)} == {
        key: main.by_key[key].location for key in (STAFF, TEAM, MEMBER_OF)
    }
    assert feature.by_key[MENTORS].branch is not None
    fork = feature.by_key[MENTORS].branch
    insert(org, {MENTORS: mentors([("dov", "ada")])}, branch="feature")
    assert org.manifest.load("feature").by_key[MENTORS].branch == fork, "forked once"
    assert len(ids(org, MENTORS)) == 3
    assert len(ids(org, MENTORS, "feature")) == 5


@pytest.mark.row("BR-07")
def test_an_older_handle_sees_new_rows_of_a_branch(org: CommitContext) -> None:
    create_branch(org, "feature", MAIN)
    older = again(org)
    assert ids(older, STAFF, "feature") == ORG
    insert(org, {STAFF: staff(["eve"])}, branch="feature")
    assert ids(older, STAFF, "feature") == [*ORG, "eve"]


@pytest.mark.row("BR-19")
def test_a_delete_of_a_node_as_first_write_of_a_branch(org: CommitContext) -> None:
    create_branch(org, "feature", MAIN)
    state = org.manifest.load("feature")
    gone = pa.array(["ada"])
    incident = "src = 'ada' or dst = 'ada'"
    steps = {
        STAFF: Step(lambda table: stage_delete(table, ids=gone)),
        MENTORS: Step(lambda table: stage_delete(table, filter=incident)),
        MEMBER_OF: Step(lambda table: stage_delete(table, filter="src = 'ada'")),
    }
    effects = tuple(effect(org, state, key, step) for key, step in steps.items())
    execute(org, Write(Kind.MUTATION, "feature", lineage(), effects, accepted(state)))

    assert ids(org, STAFF, "feature") == ["ben", "cleo", "dov"]
    assert [len(ids(org, key, "feature")) for key in (MENTORS, MEMBER_OF)] == [1, 1]
    assert [len(ids(org, key)) for key in (STAFF, MENTORS, MEMBER_OF)] == [4, 3, 2]


@pytest.mark.row("BR-22")
def test_writes_leave_the_list_of_branches_alone(org: CommitContext) -> None:
    create_branch(org, "feature", MAIN)
    insert(org, {STAFF: staff(["eve"])}, branch="feature")
    insert(org, {STAFF: staff(["fay"])}, kind=Kind.LOAD)
    delete(org, STAFF, ["fay"])
    with failpoints.armed("mutation.mid_phase_b", "error"), pytest.raises(OmnigraphError):
        insert(org, {STAFF: staff(["gus"]), TEAM: pa.table({"id": ["x"], "code": ["x"]})}, branch="feature")
    assert branch_names(org) == [MAIN, "feature"]


@pytest.mark.row("BR-23")
def test_branches_and_their_data_survive_a_reopen(org: CommitContext) -> None:
    create_branch(org, "feature", MAIN)
    insert(org, {STAFF: staff(["eve"])}, branch="feature")
    create_branch(org, "team/b", "feature")

    fresh = again(org)
    open_for_writing(fresh)
    assert branch_names(fresh) == [MAIN, "feature", "team/b"]
    assert ids(fresh, STAFF, "team/b") == [*ORG, "eve"]


# --- history ----------------------------------------------------------------------------------------------------------


def test_a_fresh_branch_has_its_fork_point_as_head_and_first_parent(org: CommitContext) -> None:
    fork_point = org.manifest.load().head
    create_branch(org, "feature", MAIN)
    insert(org, {STAFF: staff(["main-goes-on"])})

    assert again(org).manifest.load("feature").head == fork_point
    first = insert(org, {STAFF: staff(["eve"])}, branch="feature").head
    commit = org.manifest.find_commit("feature", first)
    assert commit is not None
    assert (commit.parent, commit.branch) == (fork_point, "feature")


def test_nested_branches_have_one_history_each_down_to_one_root(org: CommitContext) -> None:
    base = MAIN
    for depth in range(4):
        name = f"level{depth}"
        create_branch(org, name, base)
        if depth != 1:  # a branch in the middle without a commit of its own
            insert(org, {STAFF: staff([f"p{depth}"])}, branch=name)
        base = name

    listed = history(again(org).manifest, "level3")
    assert [commit.branch for commit in listed] == ["level3", "level2", "level0", MAIN, MAIN]
    assert [commit.parent for commit in listed] == [*(commit.id for commit in listed[1:]), None]
    assert ids(org, STAFF, "level3") == [*ORG, "p0", "p2", "p3"]


@pytest.mark.row("BR-20")
def test_an_idle_handle_writes_on_top_of_what_others_wrote(org: CommitContext) -> None:
    idle = again(org)
    idle.manifest.load()
    by_b = insert(org, {STAFF: staff(["b"])}).head
    by_a = insert(idle, {STAFF: staff(["a"])}).head

    commits = again(org).manifest.commits()
    assert commits[by_a].parent == by_b
    parents = [commit.parent for commit in commits.values() if commit.parent is not None]
    assert len(parents) == len(set(parents))


# --- refusals ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        pytest.param(
            lambda c: create_branch(c, "main", MAIN), BadRequest, "cannot create branch 'main'", id="BR-08 create"
        ),
        pytest.param(lambda c: delete_branch(c, "main"), BadRequest, "cannot delete branch 'main'", id="BR-08 delete"),
        pytest.param(
            lambda c: create_branch(c, "__schema_apply_lock__", MAIN),
            BadRequest,
            "cannot create branch '__schema_apply_lock__'",
            id="reserved create",
        ),
        pytest.param(
            lambda c: delete_branch(c, "__schema_apply_lock__"),
            BadRequest,
            "cannot delete branch '__schema_apply_lock__'",
            id="reserved delete",
        ),
        pytest.param(
            lambda c: create_branch(c, "feature", MAIN), AlreadyExists, "branch 'feature' already exists", id="exists"
        ),
        pytest.param(
            lambda c: create_branch(c, "new", "nowhere"), BranchNotFound, "branch 'nowhere' not found", id="no base"
        ),
        pytest.param(lambda c: delete_branch(c, "nowhere"), BranchNotFound, "branch 'nowhere' not found", id="missing"),
        pytest.param(lambda c: delete_branch(c, "feature"), Conflict, "'experiment' still depends on it", id="BR-15"),
        pytest.param(
            lambda c: create_branch(c, "feature/child", MAIN), AlreadyExists, "overlaps.*'feature'", id="below"
        ),
        pytest.param(
            lambda c: create_branch(c, "feature/a/b", MAIN), AlreadyExists, "overlaps.*'feature'", id="far below"
        ),
        pytest.param(
            lambda c: create_branch(c, "deep", MAIN), AlreadyExists, "overlaps.*'deep/down/there'", id="above"
        ),
        pytest.param(lambda c: create_branch(c, "deep/down", MAIN), AlreadyExists, "overlaps", id="just above"),
        pytest.param(lambda c: create_branch(c, "main/x", MAIN), AlreadyExists, "overlaps.*'main'", id="below main"),
    ],
)
def test_what_is_refused(
    graph: CommitContext, call: Callable[[CommitContext], object], error: type[OmnigraphError], message: str
) -> None:
    create_branch(graph, "feature", MAIN)
    create_branch(graph, "experiment", "feature")
    create_branch(graph, "deep/down/there", MAIN)
    names = branch_names(graph)

    with pytest.raises(error, match=message):
        call(graph)
    assert branch_names(again(graph)) == names


@pytest.mark.parametrize("name", ["feature2", "feature-x", "feat", "deep/downtown", "deep/down.here", "Feature"])
def test_names_that_only_look_alike_do_not_overlap(graph: CommitContext, name: str) -> None:
    create_branch(graph, "feature", MAIN)
    create_branch(graph, "deep/down", MAIN)
    create_branch(graph, name, MAIN)
    assert name in branch_names(graph)


@pytest.mark.parametrize(
    "name",
    [
        "", " ", "/", "/a", "a/", "a//b", ".", "..", "a/..", "../a", "a/./b", "a..b", "a b", "a\tb", "a\nb", "a\\b", "a:b",
        "a*", "a?", "a#1", "a%2Fb", "x.lock", "\x00", "x" * (LONGEST_NAME + 1), "ü" * 21,
        "/".join("d" * 60), "\ud800", None, 5, b"a", ["a"],
    ],
)  # fmt: skip
def test_a_name_that_can_not_be_stored_is_refused(graph: CommitContext, name: str) -> None:
    with pytest.raises(BadRequest, match="cannot create branch"):
        create_branch(graph, name, MAIN)
    assert branch_names(graph) == [MAIN]


@pytest.mark.parametrize(
    "name",
    [
        "a",
        "agent/1",
        "a/b/c/d",
        "v1.2.3",
        "x_y-z",
        "büro/größe",
        "日本",
        "__run__7",
        "HEAD",
        "tree",
        "x" * LONGEST_NAME,
        "ü" * 20,
        "/".join("d" * 33),
    ],
)
def test_any_other_name_works_from_creation_to_deletion(graph: CommitContext, name: str) -> None:
    _from_creation_to_deletion(graph, name)


def test_names_work_on_every_store(shared_graph: CommitContext) -> None:
    _from_creation_to_deletion(shared_graph, "büro/größe")


def _from_creation_to_deletion(graph: CommitContext, name: str) -> None:
    create_branch(graph, name, MAIN)
    insert(graph, {STAFF: staff(["eve"])}, branch=name)
    assert branch_names(again(graph)) == [MAIN, name]
    assert ids(again(graph), STAFF, name) == ["eve"]
    delete_branch(graph, name)
    assert branch_names(again(graph)) == [MAIN]


@pytest.mark.row("BR-16")
def test_a_legacy_overlap_is_deleted_leaf_first(org: CommitContext) -> None:
    create_branch(org, "feature", MAIN)
    warm = org.manifest.warm(MAIN)
    create_lance_branch(
        warm.dataset, "feature/child", warm.state.version
    )  # refused by name today, made by older versions
    insert(org, {STAFF: staff(["kid"])}, branch="feature/child")

    with pytest.raises(Conflict, match="delete the child branch first"):
        delete_branch(org, "feature")
    assert ids(again(org), STAFF, "feature/child") == [*ORG, "kid"]
    delete_branch(org, "feature/child")
    assert ids(again(org), STAFF, "feature") == ORG
    delete_branch(org, "feature")
    assert branch_names(again(org)) == [MAIN]


def test_a_legacy_branch_below_main_goes_alone(org: CommitContext) -> None:
    """Lance, asked to delete `main/x`, removes the manifest of the whole graph."""
    warm = org.manifest.warm(MAIN)
    create_lance_branch(warm.dataset, "main/x", warm.state.version)
    insert(org, {STAFF: staff(["kid"])}, branch="main/x")
    assert ids(again(org), STAFF, "main/x") == [*ORG, "kid"]
    delete_branch(org, "main/x")
    assert branch_names(again(org)) == [MAIN]
    assert ids(again(org), STAFF) == ORG
    assert [info.path for info in org.store.list("__manifest/tree")] == []


# --- cost -------------------------------------------------------------------------------------------------------------


def test_creating_a_branch_touches_nothing_but_the_manifest(org: CommitContext) -> None:
    tables = {info.path for folder in ("nodes", "edges") for info in org.store.list(folder)}
    create_branch(org, "büro/eins", MAIN)
    assert {info.path for folder in ("nodes", "edges") for info in org.store.list(folder)} == tables
    ref = read_ref(org.store, "büro/eins")
    assert ref is not None
    assert (ref.parent, ref.parent_version) == (MAIN, org.manifest.load().version)
    assert list_refs(org.store) == [ref]
    assert org.store.exists(f"__manifest/_refs/branches/{quote('büro/eins', safe='')}.json")


def test_branches_that_are_deleted_at_once(graph: CommitContext) -> None:
    """Lance reads all refs when one goes; one that another deletion takes away meanwhile is no damage."""
    names = [f"b{number:02}" for number in range(36)]
    for name in names:
        create_branch(graph, name, MAIN)

    def delete(mine: list[str]) -> None:
        own = again(graph)
        for name in mine:
            delete_branch(own, name)

    with ThreadPoolExecutor(3) as threads:
        for done in [threads.submit(delete, names[start::3]) for start in range(3)]:
            done.result()
    assert branch_names(again(graph)) == [MAIN]
    assert list(Path(graph.root.uri, "__manifest/tree").glob("*")) == []
