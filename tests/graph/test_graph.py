"""`Graph`: the handle people hold. Its nouns, its filters, its refusals, and several handles side by side."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import omnigraph as og
from omnigraph import failpoints
from omnigraph.commit.context import CommitContext
from omnigraph.commit.protocol import execute
from omnigraph.commit.sidecar import Kind
from omnigraph.errors import BadRequest, BranchNotFound, CommitNotFound, Conflict, ExpectedVersionMismatch
from omnigraph.graph.lifecycle import connect
from omnigraph.storage.root import Root
from tests.commit.healthy import assert_healthy, tree
from tests.commit.org import (
    MENTORS,
    SCHEMA,
    STAFF,
    TEAM,
    again,
    ids,
    insert,
    load_org,
    mentors,
    new_graph,
    staff,
    team,
    write,
)


@pytest.fixture
def org(shared_root: Root) -> CommitContext:
    """FX-ORG on each kind of store."""
    context = new_graph(shared_root.uri, storage_options=shared_root.storage_options)
    load_org(context)
    return context


@pytest.fixture
def graph(org: CommitContext) -> og.Graph:
    return og.open(org.root.uri, storage_options=org.root.storage_options)


# --- nouns ------------------------------------------------------------------------------------------------------------


def test_a_handle_says_what_it_is(tmp_path: Path) -> None:
    graph = og.init(tmp_path / "graph", SCHEMA, actor="me")
    assert repr(graph) == f"Graph('{tmp_path}/graph', mode='rw', branch='main')"
    graph.create_branch("feature")
    bound = graph.at("feature")
    assert (bound.branch, bound.mode, bound.actor, bound.uri) == ("feature", "rw", "me", graph.uri)
    with pytest.raises(BranchNotFound, match="branch 'nowhere' not found"):
        graph.at("nowhere")


def test_a_bound_handle_means_its_branch(graph: og.Graph, org: CommitContext) -> None:
    created = graph.create_branch("feature")
    assert (created.branch, created.commit) == ("feature", graph.head().id)
    insert(org, {STAFF: staff(["eve"])}, branch="feature")
    bound = graph.at("feature")
    assert bound.snapshot().entry(STAFF).row_count == 5
    assert bound.head().branch == "feature"
    assert len(bound.commits()) == len(graph.commits()) + 1
    assert bound.create_branch("deeper").commit == bound.head().id, "a bound handle branches from its own branch"
    assert bound.snapshot("main").entry(STAFF).row_count == 4


@pytest.mark.row("BR-12")
def test_the_active_branch_is_not_deleted_through_its_handle(graph: og.Graph) -> None:
    graph.create_branch("feature")
    with pytest.raises(Conflict, match="currently active branch"):
        graph.at("feature").delete_branch("feature")
    graph.delete_branch("feature")
    assert graph.branches() == ["main"]
    with pytest.raises(BadRequest, match="cannot delete branch 'main'"):
        graph.delete_branch("main")


def test_commits_are_found_by_id_on_any_branch(graph: og.Graph, org: CommitContext) -> None:
    graph.create_branch("feature")
    commit_id = insert(org, {STAFF: staff(["eve"])}, branch="feature").head
    found = graph.commit(commit_id)
    assert (found.id, found.branch) == (commit_id, "feature")
    assert set(found.to_dict()) >= {
        "id",
        "branch",
        "parent",
        "merged_parent",
        "actor",
        "created_at",
        "manifest_version",
        "kind",
    }
    for unknown in ("01J00000000000000000000000", "nonsense", ""):
        with pytest.raises(CommitNotFound, match=f"commit '{unknown}' not found"):
            graph.commit(unknown)


def test_commits_are_filtered_by_actor_kind_and_time(graph: og.Graph, org: CommitContext) -> None:
    for number, actor in enumerate(("ann", "bob", "ann")):
        insert(org, {STAFF: staff([f"p{number}"])}, actor=actor)
    listed = graph.commits()
    newest, oldest = listed[0].created_at, listed[-1].created_at

    assert [commit.actor for commit in graph.commits(actor="ann")] == ["ann", "ann"]
    assert [commit.kind for commit in graph.commits(kind="load")] == ["load"]
    assert graph.commits(kind="init") == listed[-1:]
    assert graph.commits(since=newest) == listed[:1]
    assert graph.commits(until=oldest) == listed[-1:]
    assert graph.commits(since=oldest, until=newest) == listed
    assert graph.commits(actor="ann", since=newest) == listed[:1]
    assert graph.commits(actor="nobody") == []
    later = datetime.fromtimestamp(newest / 1_000_000, UTC) + timedelta(seconds=1)
    assert graph.commits(since=later) == []
    assert graph.commits(until=later.replace(tzinfo=None)) == listed, "a time without a zone is UTC"
    with pytest.raises(BadRequest, match="'mutations' is no kind of commit; the kinds are cherry_pick, init"):
        graph.commits(kind="mutations")


@pytest.mark.parametrize("moment", ["2026-01-01", 1.5, True, date(2026, 1, 1)])
def test_a_time_that_is_none(tmp_path: Path, moment: Any) -> None:
    graph = og.init(tmp_path / "g", "node P { n: String @key }")
    for name in ("since", "until"):
        with pytest.raises(og.errors.BadRequest, match="a point in time is a datetime"):
            graph.commits(**{name: moment})


def test_snapshots_are_plain_data_too(graph: og.Graph) -> None:
    shown = graph.snapshot().to_dict()
    assert {name: shown[name] for name in ("id", "branch", "version", "commit")} == {
        "id": "manifest:main:v2",
        "branch": "main",
        "version": 2,
        "commit": graph.head().id,
    }
    assert [(table["key"], table["rows"]) for table in shown["tables"]] == [
        ("node:Staff", 4),
        ("node:Team", 2),
        ("edge:MemberOf", 2),
        ("edge:Mentors", 3),
    ]


# --- recovery through a handle ----------------------------------------------------------------------------------------


AFTER_B = "mutation.post_phase_b_pre_manifest_commit"


def interrupted_write(context: CommitContext, failpoint: str = AFTER_B, branch: str = "main") -> None:
    """Leave a sidecar behind, as a process that dies there would."""

    class Died(BaseException):
        """Not an error that the protocol could handle."""

    def die() -> None:
        raise Died

    with failpoints.armed(failpoint, die), pytest.raises(Died):
        insert(context, {STAFF: staff(["half"]), TEAM: team(["half"])}, actor="ann", branch=branch)


@pytest.mark.parametrize("branch", ["main", "feature"])
@pytest.mark.parametrize(
    ("failpoint", "kind", "rows"),
    [
        ("mutation.post_phase_a", "RolledBack", (4, 2)),
        ("mutation.mid_phase_b", "RolledBack", (4, 2)),
        (AFTER_B, "RolledForward", (5, 3)),
        ("mutation.post_phase_c", "RolledForward", (5, 3)),
    ],
)
def test_refresh_heals_what_a_dead_writer_left(
    graph: og.Graph, org: CommitContext, branch: str, failpoint: str, kind: str, rows: tuple[int, int]
) -> None:
    graph.create_branch("feature")
    interrupted_write(org, failpoint, branch)
    assert [sidecar.kind for sidecar in graph.pending_operations()] == [Kind.MUTATION]

    healed = graph.refresh()

    assert [(recovery.recovery_kind, recovery.recovery_for_actor) for recovery in healed] == [(kind, "ann")]
    assert graph.recoveries() == healed
    seen = graph.snapshot(branch)
    assert (seen.entry(STAFF).row_count, seen.entry(TEAM).row_count) == rows
    assert graph.refresh() == []
    assert_healthy(again(org))
    insert(org, {STAFF: staff(["next"])}, branch=branch)
    assert graph.snapshot(branch).entry(STAFF).row_count == rows[0] + 1


def test_a_read_only_refresh_heals_nothing(tmp_path: Path) -> None:
    context = new_graph(str(tmp_path / "graph"))
    interrupted_write(context)
    reader = og.open(tmp_path / "graph", "ro")
    before = tree(context)
    assert reader.refresh() == []
    assert len(reader.pending_operations()) == 1
    assert reader.snapshot().entry(STAFF).row_count == 0
    assert tree(context) == before


def test_a_record_is_set_aside_by_its_id(tmp_path: Path) -> None:
    context = new_graph(str(tmp_path / "graph"))
    interrupted_write(context, "mutation.post_phase_a")
    graph = og.Graph(og.open(tmp_path / "graph", "ro")._door, mode="rw", actor=None)
    operation = graph.pending_operations()[0].operation_id
    aside = graph.discard_operation(operation)
    assert context.store.exists(aside)
    assert graph.pending_operations() == []


# --- read-only --------------------------------------------------------------------------------------------------------

WRITING: dict[str, Callable[[og.Graph], object]] = {
    "create_branch": lambda graph: graph.create_branch("new"),
    "delete_branch": lambda graph: graph.delete_branch("feature"),
    "mutate": lambda graph: graph.mutate('query put() { insert Staff { handle: "eve" } }'),
    "discard_operation": lambda graph: graph.discard_operation("01J00000000000000000000000"),
}


@pytest.mark.parametrize("name", sorted(WRITING))
def test_a_read_only_handle_refuses_to_write(tmp_path: Path, name: str) -> None:
    og.init(tmp_path / "graph", SCHEMA).create_branch("feature")
    context = connect(str(tmp_path / "graph"))
    before = tree(context)
    reader = og.open(tmp_path / "graph", "ro")
    with pytest.raises(BadRequest, match='read-only; open the graph with mode="rw"'):
        WRITING[name](reader)
    with pytest.raises(BadRequest, match="read-only"):
        WRITING[name](reader.at("feature"))
    assert tree(context) == before


def test_reading_writes_nothing_in_either_mode(tmp_path: Path) -> None:
    context = new_graph(str(tmp_path / "graph"))
    load_org(context)
    og.open(tmp_path / "graph").create_branch("feature")
    before = tree(context)
    for mode in ("rw", "ro"):
        graph = og.open(tmp_path / "graph", mode)
        graph.snapshot("feature").open(STAFF).read()
        graph.commits(), graph.head(), graph.branches(), graph.recoveries(), graph.refresh()
        graph.entity("node", "Staff", "ada")
    assert tree(context) == before


# --- several handles --------------------------------------------------------------------------------------------------


def persistent(context: CommitContext, changes: dict[str, pa.Table]) -> int:
    """Write until it succeeds, starting over when the base has moved; returns how often it was lost."""
    lost = 0
    while True:
        try:
            insert(context, changes)
        except ExpectedVersionMismatch:
            lost += 1
            continue
        return lost


@pytest.mark.row("OCC-01")
def test_an_older_handle_adds_another_key(org: CommitContext) -> None:
    older = again(org)
    older.manifest.load()
    insert(org, {STAFF: staff(["eve"])})
    insert(older, {STAFF: staff(["fay"])})
    assert ids(again(org), STAFF) == ["ada", "ben", "cleo", "dov", "eve", "fay"]


@pytest.mark.row("OCC-02")
def test_an_older_handle_updates_from_the_current_head(org: CommitContext) -> None:
    older = again(org)
    older.manifest.load()
    insert(org, {STAFF: staff(["eve"])})
    insert(older, {STAFF: staff(["ada"], 99)}, upsert=True)
    graph = og.open(org.root.uri, "ro", storage_options=org.root.storage_options)
    assert graph.entity("node", "Staff", "eve") is not None
    assert graph.entity("node", "Staff", "ada") == {"id": "ada", "handle": "ada", "level": 99}


@pytest.mark.parametrize("changed", [STAFF, TEAM])
def test_a_prepared_write_whose_table_moved_loses_and_one_whose_table_did_not_wins(
    org: CommitContext, changed: str
) -> None:
    older = again(org)
    prepared = write(older, {STAFF: staff(["slow"])})
    insert(org, {STAFF: staff(["fast"])} if changed == STAFF else {TEAM: team(["new"])})
    if changed == STAFF:
        with pytest.raises(ExpectedVersionMismatch) as raised:
            execute(older, prepared)
        assert (raised.value.table_key, raised.value.expected, raised.value.actual) == (STAFF, 2, 3)
        assert "slow" not in ids(org, STAFF)
    else:
        execute(older, prepared)
        assert "slow" in ids(org, STAFF)
    assert_healthy(again(org))


@pytest.mark.row("OCC-04")
def test_handles_that_append_at_once_all_succeed(org: CommitContext) -> None:
    handles = [again(org) for _ in range(4)]

    def append(number: int) -> None:
        for round_ in range(3):
            persistent(handles[number], {STAFF: staff([f"w{number}-{round_}"])})

    with ThreadPoolExecutor(len(handles)) as pool:
        list(pool.map(append, range(len(handles))))
    expected = [f"w{number}-{round_}" for number in range(4) for round_ in range(3)]
    assert ids(again(org), STAFF) == ["ada", "ben", "cleo", "dov", *expected]
    assert_healthy(again(org))


@pytest.mark.row("OCC-05")
def test_a_warm_handle_sees_a_new_edge(org: CommitContext) -> None:
    warm = again(org)
    assert len(ids(warm, MENTORS)) == 3
    insert(org, {MENTORS: mentors([("cleo", "dov")])})
    assert len(ids(warm, MENTORS)) == 4


@pytest.mark.row("OCC-06")
@pytest.mark.parametrize(
    "failpoint",
    ["mutation.pre_phase_a", "mutation.post_phase_a", "mutation.mid_phase_b", "mutation.post_phase_b_pre_manifest_commit",
     "mutation.post_phase_c"],
)  # fmt: skip
def test_a_write_that_is_cancelled_in_flight_is_there_wholly_or_not_at_all(tmp_path: Path, failpoint: str) -> None:
    context = new_graph(str(tmp_path / "graph"))
    load_org(context)

    def cancel() -> None:
        raise KeyboardInterrupt

    with failpoints.armed(failpoint, cancel), pytest.raises(KeyboardInterrupt):
        insert(context, {STAFF: staff(["eve"]), MENTORS: mentors([("eve", "ada")])})

    graph = og.open(tmp_path / "graph")
    counts = (graph.snapshot().entry(STAFF).row_count, graph.snapshot().entry(MENTORS).row_count)
    assert counts in {(4, 3), (5, 4)}
    assert graph.branches() == ["main"]
    assert_healthy(again(context))
    insert(context, {STAFF: staff(["fay"])})  # the same process writes on
    assert ids(context, STAFF)[-1] == "fay"


@pytest.mark.row("OCC-07")
def test_many_writes_on_one_handle_are_what_a_fresh_one_sees(org: CommitContext) -> None:
    for number in range(6):
        insert(org, {STAFF: staff([f"p{number}"])})
        insert(org, {MENTORS: mentors([("ada", f"p{number}")])})
    fresh = again(org)
    assert org.manifest.load() == fresh.manifest.load()
    assert [len(ids(handle, key)) for handle in (org, fresh) for key in (STAFF, MENTORS)] == [10, 9, 10, 9]


def test_one_handle_serves_many_threads(tmp_path: Path) -> None:
    context = new_graph(str(tmp_path / "graph"))
    graph = og.open(tmp_path / "graph")

    def work(number: int) -> list[int]:
        persistent(context, {STAFF: staff([f"p{number}"])})
        return [graph.snapshot().entry(STAFF).row_count, len(graph.commits())]

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(16)))
    assert len(ids(context, STAFF)) == 16
    assert_healthy(again(context))


# --- what is read -----------------------------------------------------------------------------------------------------

ALL_STAFF = "query q() { match { $s: Staff } return { $s.handle } }"
READING: dict[str, Callable[[og.Graph, Any, Any], object]] = {
    "query": lambda graph, branch, snapshot: graph.query(ALL_STAFF, branch=branch, snapshot=snapshot).rows,
    "explain": lambda graph, branch, snapshot: graph.explain(ALL_STAFF, branch=branch, snapshot=snapshot).plan,
    "entity": lambda graph, branch, snapshot: graph.entity("node", "Staff", "eve", branch=branch, snapshot=snapshot),
    "export_chunks": lambda graph, branch, snapshot: list(graph.export_chunks(branch=branch, snapshot=snapshot)),
    "picture": lambda graph, branch, snapshot: graph.picture("Staff", branch=branch, snapshot=snapshot).marks,
}


@pytest.mark.parametrize("name", READING)
def test_a_branch_and_a_snapshot_exclude_each_other(tmp_path: Path, name: str) -> None:
    graph = og.init(tmp_path / "graph", SCHEMA)
    graph.create_branch("b")
    graph.mutate('query q() { insert Staff { handle: "eve" } }', branch="b")
    read = READING[name]
    for snapshot in (graph.snapshot("b"), graph.head("b").id, graph.snapshot("b").version, graph.snapshot("b").id):
        with pytest.raises(BadRequest, match="branch and snapshot exclude each other"):
            read(graph, "b", snapshot)
    assert read(graph, "b", None) == read(graph, None, graph.head("b").id)


def test_other_readers_refuse_both_too(tmp_path: Path) -> None:
    graph = og.init(tmp_path / "graph", SCHEMA + "\nnode Doc { title: String @key  content: Blob? }")
    for read in (
        lambda: graph.read_blob("node", "Doc", "a", "content", branch="main", snapshot=1),
        lambda: graph.export(tmp_path / "out", branch="main", snapshot=1),
        lambda: graph.spark_table("node:Staff", branch="main", snapshot=1),
    ):
        with pytest.raises(BadRequest, match="branch and snapshot exclude each other"):
            read()
    assert not (tmp_path / "out").exists()


def test_an_entity_of_a_branch(tmp_path: Path) -> None:
    graph = og.init(tmp_path / "graph", SCHEMA)
    graph.create_branch("b")
    graph.mutate('query q() { insert Staff { handle: "eve" } }', branch="b")
    found = graph.entity("node", "Staff", "eve", branch="b")
    assert found is not None
    assert found["handle"] == "eve"
    assert graph.entity("node", "Staff", "eve") is None
    with pytest.raises(BranchNotFound):
        graph.entity("node", "Staff", "eve", branch="c")


@pytest.mark.parametrize("kind", ["vertex", "", "nodes", None, "Node"])
def test_an_unknown_kind_of_entity(tmp_path: Path, kind: Any) -> None:
    graph = og.init(tmp_path / "graph", SCHEMA)
    for read in (
        lambda: graph.entity(kind, "Staff", "eve"),
        lambda: graph.read_blob(kind, "Staff", "eve", "handle"),
    ):
        with pytest.raises(BadRequest, match="is no kind of entity; the kinds are node and edge"):
            read()
    with pytest.raises(og.errors.NotFound, match="node:Staf does not exist .*; did you mean `Staff`"):
        graph.entity("node", "Staf", "eve")


@pytest.mark.parametrize("wrong", [5, None, b"eve", "\ud800"], ids=repr)
def test_an_id_is_a_text(tmp_path: Path, wrong: Any) -> None:
    graph = og.init(tmp_path / "graph", "node Staff { handle: String @key  photo: Blob? }")
    for read in (
        lambda: graph.entity("node", "Staff", wrong),
        lambda: graph.read_blob("node", "Staff", wrong, "photo"),
        lambda: graph.neighbours("Staff", wrong),
    ):
        with pytest.raises(BadRequest, match="an id is a text, not "):
            read()


def test_arguments_of_other_types_are_refused(tmp_path: Path) -> None:
    graph: Any = og.init(tmp_path / "graph", "node Staff { handle: String @key }")
    graph.mutate('insert Staff { handle: "eve" }')
    for message, call in (
        ("limit is a number of edges", lambda: graph.neighbours("Staff", "eve", limit="5")),
        ("skip is a number of edges", lambda: graph.neighbours("Staff", "eve", skip="5")),
        ('direction is "in" or "out"', lambda: graph.neighbours("Staff", "eve", direction="up")),
        ("attempts is at least 1", lambda: graph.retrying(lambda _: None, attempts="3")),
        ("retrying calls a function", lambda: graph.retrying(5)),
        ("cancel is an omnigraph.Cancel", lambda: graph.query("match { $s: Staff } return { $s.handle }", cancel=5)),
        ("a graph lies at a path or a URI", lambda: og.open(5)),  # type: ignore[arg-type]
    ):
        with pytest.raises(BadRequest, match=message):
            call()


# --- schemas as files -------------------------------------------------------------------------------------------------


def test_a_schema_may_be_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.pg").write_text(SCHEMA)
    assert og.init(tmp_path / "one", tmp_path / "s.pg").schema() == SCHEMA
    assert og.init(Path("two"), Path("s.pg")).schema() == SCHEMA
    graph = og.init("three", "s.pg")
    assert graph.schema() == SCHEMA
    wider = SCHEMA + "\nnode Extra { name: String @key }"
    (tmp_path / "wider.pg").write_text(wider)
    assert graph.plan_schema(tmp_path / "wider.pg").supported
    assert graph.apply_schema(Path("wider.pg")).applied
    assert graph.schema() == wider


def test_a_schema_file_that_can_not_be_read(tmp_path: Path) -> None:
    (tmp_path / "latin.pg").write_bytes(b"node \xe9")
    for schema in (tmp_path / "no.pg", "no.pg", tmp_path, tmp_path / "latin.pg"):
        with pytest.raises(BadRequest, match="cannot read"):
            og.init(tmp_path / "graph", schema)
    wrong: Any
    for wrong in (None, 7, b"node"):
        with pytest.raises(BadRequest, match="a text or the path of a .pg file"):
            og.init(tmp_path / "graph", wrong)
    assert not (tmp_path / "graph").exists()


# --- closing ----------------------------------------------------------------------------------------------------------

#: Properties of a handle, and the verbs that end it; they work on a closed one too.
WITHOUT_A_GRAPH = {"mode", "actor", "branch", "uri", "is_closed", "close"}
ARGUMENTS: dict[str, tuple[Any, ...]] = {
    "at": ("main",),
    "backup": ("elsewhere",),
    "load_frames": ({"Staff": pa.table({"name": ["eve"]})},),
    "rebase": ("topic",),
    "stream_load": (None,),
    "baseline": (),
    "cherry_pick": ("01J00000000000000000000000",),
    "commit": ("01J00000000000000000000000",),
    "commit_changes": ("01J00000000000000000000000",),
    "compare": ("main",),
    "create_branch": ("b",),
    "delete_branch": ("b",),
    "delete_tag": ("t",),
    "diff": ("main",),
    "discard_operation": ("01J00000000000000000000000",),
    "entity": ("node", "Staff", "eve"),
    "explain": (ALL_STAFF,),
    "export": ("out.jsonl",),
    "ingest": ([], "b"),
    "load": ([],),
    "merge": ("b",),
    "mutate_many": ([ALL_STAFF],),
    "mutate": ('query q() { insert Staff { handle: "eve" } }',),
    "neighbours": ("Staff", "eve"),
    "plan_schema": (SCHEMA,),
    "apply_schema": (SCHEMA,),
    "query": (ALL_STAFF,),
    "query_frame": (ALL_STAFF,),
    "read_blob": ("node", "Staff", "eve", "x"),
    "retrying": (lambda handle: handle.head(),),
    "set_config": ("merge.level", "property"),
    "revert": ("01J00000000000000000000000",),
    "spark_table": ("node:Staff",),
    "tag": ("t",),
}


OPTIONS: dict[str, dict[str, Any]] = {"cleanup": {"keep": 1}, "stream_load": {"checkpoint": "place"}}


def test_no_verb_works_on_a_closed_handle(tmp_path: Path) -> None:
    graph = og.init(tmp_path / "graph", SCHEMA)
    bound = graph.at("main")
    held = graph.snapshot()
    graph.close()
    graph.close()
    assert graph.is_closed
    assert bound.is_closed, "handles of one opened graph are closed together"
    assert repr(graph) == f"Graph('{tmp_path}/graph', mode='rw', branch='main', closed)"
    assert graph.uri == str(tmp_path / "graph")
    for name in sorted(name for name in dir(og.Graph) if not name.startswith("_") and name not in WITHOUT_A_GRAPH):
        options = OPTIONS.get(name, {})
        with pytest.raises(BadRequest, match="is closed; open the graph again"):
            list(getattr(bound, name)(*ARGUMENTS.get(name, ()), **options))
    assert held.open(STAFF).count_rows() == 0, "a snapshot stays readable"
    assert og.open(tmp_path / "graph").branches() == ["main"]


def test_a_graph_in_a_with_statement(tmp_path: Path) -> None:
    with og.init(tmp_path / "graph", SCHEMA) as graph:
        graph.mutate('query q() { insert Staff { handle: "eve" } }')
    assert graph.is_closed
    with pytest.raises(ZeroDivisionError), og.open(tmp_path / "graph") as again:
        assert len(again.query(ALL_STAFF)) == 1
        raise ZeroDivisionError
    assert again.is_closed
    with pytest.raises(BadRequest, match="is closed"), graph:
        raise AssertionError("a closed handle is not entered")


def test_a_running_call_survives_the_close(tmp_path: Path) -> None:
    graph = og.init(tmp_path / "graph", SCHEMA)
    graph.load([{"type": "Staff", "data": {"handle": f"s{number}"}} for number in range(1000)])
    chunks = graph.export_chunks()
    graph.close()
    assert b"".join(chunks).count(b"\n") == 1000


def test_closing_frees_what_a_handle_holds(tmp_path: Path) -> None:
    graph = og.init(tmp_path / "graph", SCHEMA)
    graph.query(ALL_STAFF)
    held = [weakref.ref(part) for part in (graph._context, graph._caches, graph._queries, graph._context.tables)]
    graph.close()
    gc.collect()
    assert [part() for part in held] == [None] * 4
