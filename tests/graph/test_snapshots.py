"""Time travel: a snapshot is one manifest version and never changes, whatever is written, renamed or deleted later."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pyarrow.compute as pc
import pytest

import omnigraph as og
from omnigraph.commit.branches import create_branch, delete_branch
from omnigraph.commit.context import CommitContext
from omnigraph.commit.model import MAIN
from omnigraph.commit.protocol import Step, Write, execute
from omnigraph.commit.publisher import publish
from omnigraph.commit.sidecar import Kind
from omnigraph.commit.updates import ImportCommits, SetTable
from omnigraph.errors import BadRequest, BranchNotFound, CommitNotFound, HistoricalVersionReclaimed, NotFound
from omnigraph.graph.contract import accept
from omnigraph.graph.snapshot import Snapshot
from omnigraph.language.schema.accept import accept_schema
from omnigraph.language.schema.build import compile_schema
from omnigraph.storage.root import Root
from omnigraph.storage.tables.staged import stage_delete
from tests.commit.org import (
    MEMBER_OF,
    MENTORS,
    SCHEMA,
    STAFF,
    TEAM,
    accepted,
    delete,
    effect,
    insert,
    lineage,
    load_org,
    member_of,
    new_graph,
    staff,
)

ORG = ["ada", "ben", "cleo", "dov"]


@pytest.fixture
def org(shared_root: Root) -> CommitContext:
    """FX-ORG on each kind of store."""
    context = new_graph(shared_root.uri, storage_options=shared_root.storage_options)
    load_org(context)
    return context


@pytest.fixture
def graph(org: CommitContext) -> og.Graph:
    return og.open(org.root.uri, storage_options=org.root.storage_options)


def handles(snapshot: Snapshot) -> list[str]:
    return sorted(snapshot.open(STAFF).read(["handle"])["handle"].to_pylist())


def level(snapshot: Snapshot, name: str) -> int | None:
    found: list[int | None] = snapshot.open(STAFF).read(["level"], pc.field("id") == name)["level"].to_pylist()
    return found[0]


def relevel(context: CommitContext, name: str, value: int) -> None:
    insert(context, {STAFF: staff([name], value)}, upsert=True)


def unlink(context: CommitContext, key: str, src: str) -> None:
    step = Step(lambda table: stage_delete(table, filter=pc.field("src") == src))
    state = context.manifest.load()
    execute(context, Write(Kind.MUTATION, MAIN, lineage(), (effect(context, state, key, step),), accepted(state)))


def write_until_compacted(context: CommitContext) -> None:
    """Add staff until the manifest compacts itself, which makes a version that no commit made."""
    for number in range(20):
        insert(context, {STAFF: staff([f"p{number}"])})
        state = context.manifest.load()
        if state.version > state.commit_version:
            return
    raise AssertionError("the manifest was never compacted")


def edges(snapshot: Snapshot, key: str) -> list[tuple[str, str]]:
    table = snapshot.open(key).read(["src", "dst"])
    return sorted(zip(table["src"].to_pylist(), table["dst"].to_pylist(), strict=True))


# --- then and now -----------------------------------------------------------------------------------------------------


@pytest.mark.row("TT-03")
def test_every_version_shows_its_own_rows(org: CommitContext, graph: og.Graph) -> None:
    first = graph.snapshot().version
    relevel(org, "ada", 99)
    second = graph.snapshot().version
    insert(org, {STAFF: staff(["fay"])})

    then, between, now = (graph.snapshot(at=version) for version in (first, second, None))
    assert [len(handles(snapshot)) for snapshot in (then, between, now)] == [4, 4, 5]
    assert (level(then, "ada"), level(between, "ada")) == (30, 99)


@pytest.mark.row("TT-04")
def test_a_deleted_node_is_still_there_then(org: CommitContext, graph: og.Graph) -> None:
    version = graph.snapshot().version
    delete(org, STAFF, ["cleo"])
    assert handles(graph.snapshot(at=version)) == ORG
    assert handles(graph.snapshot()) == ["ada", "ben", "dov"]


@pytest.mark.row("TT-05", "TT-07")
@pytest.mark.parametrize(("key", "then", "now"), [(MENTORS, 2, 0), (MEMBER_OF, 1, 0)])
def test_deleted_edges_are_still_there_then(org: CommitContext, graph: og.Graph, key: str, then: int, now: int) -> None:
    version = graph.snapshot().version
    unlink(org, key, "ada")
    seen = [
        [src for src, _ in edges(snapshot, key)].count("ada")
        for snapshot in (graph.snapshot(at=version), graph.snapshot())
    ]
    assert seen == [then, now]


@pytest.mark.row("TT-06")
def test_an_edge_that_came_later_is_not_there_then(org: CommitContext, graph: og.Graph) -> None:
    version = graph.snapshot().version
    insert(org, {MEMBER_OF: member_of([("cleo", "core")])})
    teamless = [
        set(ORG) - {src for src, _ in edges(at, MEMBER_OF)} for at in (graph.snapshot(at=version), graph.snapshot())
    ]
    assert teamless == [{"cleo", "dov"}, {"dov"}]


@pytest.mark.row("TT-08")
def test_a_filter_sees_the_values_of_its_snapshot(org: CommitContext, graph: og.Graph) -> None:
    version = graph.snapshot().version
    relevel(org, "ben", 40)
    above = [
        sorted(at.open(STAFF).read(["id"], pc.field("level") > 30)["id"].to_pylist())
        for at in (graph.snapshot(at=version), graph.snapshot())
    ]
    assert above == [["cleo"], ["ben", "cleo"]]


@pytest.mark.row("TT-13")
def test_a_snapshot_stays_what_it_is(org: CommitContext, graph: og.Graph) -> None:
    snapshot = graph.snapshot()
    pinned = (snapshot.id, snapshot.version, snapshot.commit)
    write_until_compacted(org)
    delete(org, STAFF, ["ada"])
    assert (snapshot.id, snapshot.version, snapshot.commit) == pinned
    assert handles(snapshot) == ORG
    assert handles(graph.snapshot(at=snapshot)) == ORG


# --- names of snapshots -----------------------------------------------------------------------------------------------


def test_all_names_of_a_snapshot_lead_to_it(org: CommitContext, graph: og.Graph) -> None:
    commit = graph.head()
    write_until_compacted(org)
    snapshot_id = f"manifest:{commit.branch}:v{commit.manifest_version}"
    for name in (commit.manifest_version, str(commit.manifest_version), commit.id, snapshot_id):
        snapshot = graph.snapshot(at=name)
        assert handles(snapshot) == ORG
        assert (snapshot.commit, snapshot.version, snapshot.id) == (commit.id, commit.manifest_version, snapshot_id)


def test_a_snapshot_is_called_by_the_version_its_commit_made(org: CommitContext, graph: og.Graph) -> None:
    write_until_compacted(org)
    for handle in (graph, og.open(graph.uri, "ro", storage_options=org.root.storage_options)):
        assert handle.snapshot().version == handle.head().manifest_version


def test_versions_are_those_of_the_branch_that_is_read(org: CommitContext, graph: og.Graph) -> None:
    fork = graph.snapshot().version
    create_branch(org, "feature", MAIN)
    insert(org, {STAFF: staff(["eve"])}, branch="feature")
    insert(org, {STAFF: staff(["mia"])})

    assert handles(graph.snapshot("feature", at=fork)) == ORG
    assert handles(graph.snapshot("feature", at=fork + 1)) == [*ORG, "eve"]
    assert handles(graph.snapshot(at=fork + 1)) == [*ORG, "mia"]
    assert handles(graph.at("feature").snapshot(at=fork + 1)) == [*ORG, "eve"]
    assert handles(graph.snapshot(at=f"manifest:feature:v{fork + 1}")) == [*ORG, "eve"]
    assert handles(graph.snapshot(at=graph.head("feature").id)) == [*ORG, "eve"], "a commit id needs no branch"
    assert graph.snapshot("feature").id == f"manifest:feature:v{fork + 1}"


def test_a_fresh_branch_shows_the_commit_it_was_forked_at(org: CommitContext, graph: og.Graph) -> None:
    write_until_compacted(org)
    create_branch(org, "feature", MAIN)
    fresh = graph.snapshot("feature")
    assert (fresh.commit, fresh.version) == (graph.head().id, graph.head().manifest_version)
    assert handles(graph.snapshot(at=fresh.id)) == handles(fresh)


@pytest.mark.row("TT-11")
@pytest.mark.parametrize(
    ("reference", "error"),
    [
        (99999, CommitNotFound),
        ("99999", CommitNotFound),
        ("manifest:main:v99999", CommitNotFound),
        (0, CommitNotFound),
        (-1, CommitNotFound),
        ("01J00000000000000000000000", CommitNotFound),
        ("manifest:nowhere:v1", BranchNotFound),
        ("manifest:main", BadRequest),
        ("manifest:main:v", BadRequest),
        ("yesterday", BadRequest),
        ("", BadRequest),
        ("²", BadRequest),
        ("9" * 5000, BadRequest),
        (True, BadRequest),
        (1.5, BadRequest),
    ],
)
def test_what_names_no_snapshot_is_refused(tmp_path: Path, reference: str | int, error: type[Exception]) -> None:
    graph = og.init(tmp_path / "graph", SCHEMA)
    with pytest.raises(error):
        graph.snapshot(at=reference)


@pytest.mark.parametrize("again", [False, True])
def test_a_commit_whose_branch_is_gone_can_be_read(org: CommitContext, graph: og.Graph, again: bool) -> None:
    create_branch(org, "feature", MAIN)
    lost = insert(org, {STAFF: staff(["eve"])}, branch="feature").head
    copied = org.manifest.find_commit("feature", lost)
    assert copied is not None
    merge = lineage(Kind.BRANCH_MERGE, merged_parent=lost)
    publish(org, MAIN, [ImportCommits((copied,))], [], merge)
    delete_branch(org, "feature")
    if again:
        create_branch(org, "feature", MAIN)
        insert(org, {STAFF: staff(["new"])}, branch="feature")

    assert graph.commit(lost) == copied, "history knows it"
    assert "eve" in graph.snapshot(at=lost).open(STAFF).read(["id"])["id"].to_pylist()


def test_a_snapshot_of_a_branch_that_was_deleted_says_so(org: CommitContext, graph: og.Graph) -> None:
    create_branch(org, "feature", MAIN)
    insert(org, {STAFF: staff(["eve"])}, branch="feature")
    held = graph.snapshot("feature")
    delete_branch(org, "feature")
    with pytest.raises(HistoricalVersionReclaimed, match="branch was deleted"):
        held.open(STAFF)


# --- names of types ---------------------------------------------------------------------------------------------------


def test_an_unknown_type_does_not_exist(graph: og.Graph) -> None:
    with pytest.raises(NotFound, match=r"node:Ghost does not exist at this snapshot \(manifest:main:v2\)"):
        graph.snapshot().entry("node:Ghost")


@pytest.mark.row("TT-14")
def test_an_old_snapshot_is_read_by_the_names_types_have_now(org: CommitContext, graph: og.Graph) -> None:
    before = graph.snapshot().version
    _rename_team_to_guild_and_declare_team_anew(org, graph)

    old = graph.snapshot(at=before)
    assert old.open("node:Guild").count_rows() == 2
    with pytest.raises(NotFound, match="node:Team does not exist at this snapshot"):
        old.open("node:Team")
    assert graph.snapshot().open("node:Guild").count_rows() == 2
    assert graph.snapshot().entry("node:Team").row_count == 0


def _rename_team_to_guild_and_declare_team_anew(org: CommitContext, graph: og.Graph) -> None:
    """What two schema changes leave behind."""
    before = graph.contract()
    renamed = SCHEMA.replace("node Team {", 'node Guild @rename_from("Team") {').replace(
        "Staff -> Team", "Staff -> Guild"
    )
    ir = accept_schema(compile_schema(renamed), before.ir)
    source = renamed.replace(' @rename_from("Team")', "") + "node Team { code: String @key }\n"
    ir = accept_schema(compile_schema(source), ir, incarnation=0xBEEF)
    after = accept(source, ir, schema_version=3, identity_domain=before.identity_domain)
    state = org.manifest.load()
    fresh = replace(state.by_key[TEAM], identity=after.names()[TEAM], path="nodes/fresh", version=1, row_count=0)
    guild = replace(state.by_key[TEAM], key="node:Guild")
    publish(org, MAIN, [SetTable(guild), SetTable(fresh)], [], lineage())
    for name, data in after.files().items():
        org.store.put(name, data)


# --- entities ---------------------------------------------------------------------------------------------------------


def test_one_entity_then_and_now(org: CommitContext, graph: og.Graph) -> None:
    version = graph.snapshot().version
    relevel(org, "ada", 99)
    assert graph.entity("node", "Staff", "ada") == {"id": "ada", "handle": "ada", "level": 99}
    assert graph.entity("node", "Staff", "ada", snapshot=version) == {"id": "ada", "handle": "ada", "level": 30}
    assert graph.entity("node", "Staff", "nobody") is None
    with pytest.raises(NotFound):
        graph.entity("edge", "Staff", "ada")


def test_an_entity_has_the_values_of_results(tmp_path: Path) -> None:
    graph = og.init(tmp_path / "g", "node N { k: String @key d: Date? z: DateTime? f: F64? b: Blob? l: [Date]? }")
    graph.load([{"type": "N", "data": {"k": "a", "d": -1, "z": 0, "f": math.inf, "b": b"x", "l": [0]}}])
    assert graph.entity("node", "N", "a") == {
        "id": "a",
        "k": "a",
        "d": "1969-12-31",
        "z": "1970-01-01T00:00:00.000Z",
        "f": "Infinity",
        "b": "base64:eA==",
        "l": ["1970-01-01"],
    }
