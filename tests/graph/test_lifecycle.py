"""Creating and opening a graph, whoever dies, races or comes too late."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent
from typing import Any, Literal

import pytest

import omnigraph as og
from omnigraph import failpoints
from omnigraph.commit.context import CommitContext
from omnigraph.commit.schema_files import FILES
from omnigraph.errors import (
    AlreadyInitialized,
    BadRequest,
    GraphNotFound,
    ParseError,
    StorageError,
)
from omnigraph.graph.lifecycle import CLAIM, connect, create, open_for_reading, open_for_writing
from omnigraph.storage.faults import FaultyStore, error_before, unconditional
from omnigraph.storage.objects import ObjectStore, open_store
from omnigraph.storage.root import Root
from tests.commit.healthy import assert_healthy
from tests.commit.lawless import lawless
from tests.commit.org import SCHEMA, STAFF, again, ids, insert, new_graph, staff

OTHER_SCHEMA = "node Planet { name: String @key }\n"
INIT_FAILPOINTS = ["init.after_claim", "init.after_tables", "init.after_schema_files"]


def init(root: Root, schema: str = SCHEMA, **options: Any) -> og.Graph:
    return og.init(root.uri, schema, storage_options=root.storage_options, **options)


def reopen(root: Root, mode: Literal["rw", "ro"] = "rw") -> og.Graph:
    return og.open(root.uri, mode, storage_options=root.storage_options)


def schema_files(store: ObjectStore) -> dict[str, bytes | None]:
    return {name: store.get_or_none(name) for name in FILES}


# --- creating ---------------------------------------------------------------------------------------------------------


def test_init_makes_a_graph_with_one_commit(shared_root: Root) -> None:
    graph = init(shared_root, actor="me")

    assert graph.branches() == ["main"]
    head = graph.head()
    assert (head.kind, head.parent, head.actor, head.branch, head.manifest_version) == ("init", None, "me", "main", 1)
    assert graph.commits() == [head]
    assert [entry.key for entry in graph.snapshot().entries()] == [
        "node:Staff",
        "node:Team",
        "edge:MemberOf",
        "edge:Mentors",
    ]
    assert graph.schema() == SCHEMA
    folders = {info.path.split("/")[0] for info in open_store(shared_root).list()} - {"__locks", "__digests.log"}
    assert folders == {*FILES, "_schemas", "__manifest", "__root.json", "nodes", "edges"}
    assert_healthy(connect(shared_root.uri, storage_options=shared_root.storage_options))


@pytest.mark.row("LIF-02")
def test_an_opened_graph_is_the_one_that_was_created(shared_root: Root) -> None:
    created = init(shared_root)
    for mode in ("rw", "ro"):
        opened = reopen(shared_root, mode)
        assert opened.contract() == created.contract()
        assert opened.contract().identity_domain == created.contract().identity_domain
        assert opened.snapshot().version >= created.snapshot().version
        assert opened.head() == created.head()


@pytest.mark.row("LIF-03")
@pytest.mark.parametrize("mode", ["rw", "ro"])
def test_a_missing_graph_can_not_be_opened_and_nothing_is_made(tmp_path: Path, mode: Literal["rw", "ro"]) -> None:
    with pytest.raises(GraphNotFound, match=r"no graph at .*/nowhere; create one with `omnigraph init`") as raised:
        og.open(tmp_path / "nowhere", mode)
    assert raised.value.uri == str(tmp_path / "nowhere")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.row("LIF-04")
@pytest.mark.parametrize("force", [False, True])
def test_init_never_touches_a_graph_that_is_there(shared_root: Root, force: bool) -> None:
    graph = init(shared_root)
    insert(connect(shared_root.uri, storage_options=shared_root.storage_options), {STAFF: staff(["ada"])})
    store = open_store(shared_root)
    before = {info.path: info.size for info in store.list()}
    files = schema_files(store)

    with pytest.raises(AlreadyInitialized, match="already initialized") as raised:
        init(shared_root, OTHER_SCHEMA, force=force)

    assert raised.value.name == shared_root.uri
    assert schema_files(store) == files
    assert {info.path: info.size for info in store.list()} == before
    assert graph.snapshot().entry(STAFF).row_count == 1


def test_a_schema_that_is_wrong_leaves_nothing_behind(tmp_path: Path) -> None:
    with pytest.raises(ParseError):
        og.init(tmp_path / "graph", "node {")
    assert list(tmp_path.iterdir()) == []
    og.init(tmp_path / "graph", SCHEMA)


@pytest.mark.row("LIF-06")
@pytest.mark.parametrize("orphan", FILES)
def test_an_orphaned_schema_file_is_replaced_by_force_only(shared_root: Root, orphan: str) -> None:
    store = open_store(shared_root)
    store.put(orphan, b"left over")

    with pytest.raises(AlreadyInitialized, match=f"already initialized.*{orphan}"):
        init(shared_root)
    assert store.get(orphan) == b"left over"

    assert init(shared_root, force=True).branches() == ["main"]
    assert reopen(shared_root).schema() == SCHEMA


@pytest.mark.parametrize("part", ["nodes/x/data/1.lance", "edges/x/_versions/1.manifest", "__manifest/data/1.lance"])
@pytest.mark.parametrize("force", [False, True])
def test_half_a_graph_is_neither_opened_nor_replaced(tmp_path: Path, part: str, force: bool) -> None:
    store = open_store(Root.parse(tmp_path / "graph"))
    store.put(part, b"data")
    folder = part.split("/")[0]

    with pytest.raises(AlreadyInitialized, match=f"{folder}.*restore it from a backup"):
        og.init(tmp_path / "graph", SCHEMA, force=force)
    with pytest.raises(GraphNotFound, match=f"parts of a graph.*{folder}.*restore it from a backup"):
        og.open(tmp_path / "graph")
    assert store.get(part) == b"data"


def test_a_folder_with_other_files_can_hold_a_graph(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    og.init(tmp_path, SCHEMA)
    assert og.open(tmp_path).branches() == ["main"]
    assert (tmp_path / "notes.txt").read_text() == "mine"


# --- creation interrupted ---------------------------------------------------------------------------------------------


def interrupted(root: Root, failpoint: str) -> CommitContext:
    context = connect(root.uri, storage_options=root.storage_options)
    with failpoints.armed(failpoint, "error"), pytest.raises(failpoints.FailpointError):
        create(context, SCHEMA)
    return context


@pytest.mark.parametrize("failpoint", INIT_FAILPOINTS)
def test_an_interrupted_creation_is_no_graph_and_can_be_repeated(shared_root: Root, failpoint: str) -> None:
    context = interrupted(shared_root, failpoint)
    for opener in (open_for_writing, open_for_reading):
        with pytest.raises(GraphNotFound, match="creation .*interrupted.*`omnigraph init`"):
            opener(again(context))

    graph = init(shared_root, OTHER_SCHEMA)

    assert graph.schema() == OTHER_SCHEMA
    assert_healthy(again(context))


def test_a_creation_interrupted_after_the_manifest_is_whole(shared_root: Root) -> None:
    context = interrupted(shared_root, "init.after_manifest")
    with pytest.raises(AlreadyInitialized):
        init(shared_root)
    assert reopen(shared_root, "ro").schema() == SCHEMA
    assert context.store.exists(CLAIM)
    assert reopen(shared_root).schema() == SCHEMA
    assert_healthy(again(context))


def test_a_creator_that_died_while_it_wrote_the_manifest_left_no_graph(tmp_path: Path) -> None:
    root = Root.parse(tmp_path / "graph")
    context = interrupted(root, "init.after_schema_files")
    context.store.put("__manifest/data/half.lance", b"rows without a version")

    with pytest.raises(GraphNotFound, match="interrupted"):
        reopen(root)
    init(root)
    assert_healthy(again(context))
    assert not context.store.exists("__manifest/data/half.lance")


def test_a_damaged_claim_does_not_stop_the_next_creator(tmp_path: Path) -> None:
    root = Root.parse(tmp_path / "graph")
    context = interrupted(root, "init.after_schema_files")
    context.store.put(CLAIM, b"{")
    init(root, OTHER_SCHEMA)
    assert reopen(root).schema() == OTHER_SCHEMA


def test_an_interrupted_creation_removes_only_what_it_made(tmp_path: Path) -> None:
    root = Root.parse(tmp_path / "graph")
    context = interrupted(root, "init.after_tables")
    context.store.put("nodes/somebody-elses/data", b"kept")
    init(root)
    assert context.store.get("nodes/somebody-elses/data") == b"kept"
    assert len({info.path.split("/")[1] for info in context.store.list("nodes")}) == 3


@pytest.mark.parametrize("failpoint", INIT_FAILPOINTS)
def test_a_creator_that_lost_its_lock_can_not_spoil_the_graph_of_another(tmp_path: Path, failpoint: str) -> None:
    uri = str(tmp_path / "graph")
    slow = lawless(connect(uri))

    def overtaken() -> None:
        new_graph(uri, OTHER_SCHEMA)

    with failpoints.armed(failpoint, _once(overtaken)), pytest.raises(AlreadyInitialized):
        create(slow, SCHEMA)

    graph = og.open(uri)
    assert graph.schema() == OTHER_SCHEMA
    assert [entry.key for entry in graph.snapshot().entries()] == ["node:Planet"]


def _once(action: Callable[[], None]) -> Callable[[], None]:
    waiting = [action]

    def run() -> None:
        if waiting:
            waiting.pop()()

    return run


@pytest.mark.parametrize("verb", ["put", "create"])
def test_a_store_that_fails_while_creating_is_typed_and_creation_can_be_repeated(tmp_path: Path, verb: str) -> None:
    root = Root.parse(tmp_path / "graph")
    pattern = "_schemas/*" if verb == "put" else "_schema.ir.json"
    store = FaultyStore(open_store(root), [error_before(verb, pattern, kind="permanent")])
    with pytest.raises(StorageError):
        create(connect(root.uri, store=store), SCHEMA)
    assert store.fired
    init(root)
    assert_healthy(connect(root.uri))


# --- the file system --------------------------------------------------------------------------------------------------


@pytest.mark.row("LIF-16")
def test_a_store_without_atomic_create_is_refused_at_read_write_open(tmp_path: Path) -> None:
    root = Root.parse(tmp_path / "graph")
    init(root)
    plain = open_store(root)
    plain.put("__probe-01J00000000000000000000000", b"somebody else's")
    before = {info.path: plain.get(info.path) for info in plain.list() if "/" not in info.path}
    careless = FaultyStore(open_store(root), [unconditional("create", "__probe*")])

    with pytest.raises(StorageError, match="no atomic create-if-absent") as raised:
        open_for_writing(connect(root.uri, store=careless))

    assert raised.value.kind == "configuration"
    assert {info.path: plain.get(info.path) for info in plain.list() if "/" not in info.path} == before
    assert reopen(root, "ro").schema() == SCHEMA


@pytest.mark.row("LIF-16")
def test_a_store_without_atomic_create_gets_no_graph(tmp_path: Path) -> None:
    root = Root.parse(tmp_path / "graph")
    careless = FaultyStore(open_store(root), [unconditional("create")])
    with pytest.raises(StorageError, match="no atomic create-if-absent"):
        create(connect(root.uri, store=careless), SCHEMA)
    assert [info.path for info in open_store(root).list() if not info.path.startswith("__locks/")] == []


# --- where a graph lies -----------------------------------------------------------------------------------------------


def test_a_relative_uri_means_the_same_graph_from_everywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    graph = og.init("sub/../graph", SCHEMA)
    assert graph.uri == str(tmp_path / "graph")
    graph.create_branch("feature")
    insert(connect("./graph"), {STAFF: staff(["eve"])}, branch="feature")

    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    for uri in ("../graph", str(tmp_path / "graph"), f"file://{tmp_path}/graph", Path("../graph")):
        assert og.open(uri).snapshot("feature").entry(STAFF).row_count == 1


def test_a_symbolic_link_is_the_graph_it_points_to(tmp_path: Path) -> None:
    og.init(tmp_path / "graph", SCHEMA).create_branch("feature")
    os.symlink(tmp_path / "graph", tmp_path / "link")
    linked = connect(str(tmp_path / "link"))
    insert(linked, {STAFF: staff(["eve"])}, branch="feature")
    assert ids(connect(str(tmp_path / "graph")), STAFF, "feature") == ["eve"]
    assert og.open(tmp_path / "link").uri == str(tmp_path / "graph")


def test_a_mode_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadRequest, match="'w'"):
        og.open(tmp_path, "w")  # type: ignore[arg-type]  # wrong on purpose


def test_a_graph_is_not_made_inside_another(shared_root: Root) -> None:
    """The files of the inner one would be damage to the outer one."""
    graph = init(shared_root)
    for inner in ("_schemas/inner", "nodes/inner", "edges/b/c"):
        place = Root(f"{shared_root.uri}/{inner}", shared_root.options)
        with pytest.raises(BadRequest, match=f"{inner} lies inside the graph {shared_root.uri}, whose files"):
            init(place)
    assert graph.verify(deep=True).ok


def test_a_handle_is_of_no_use_in_a_forked_process(tmp_path: Path) -> None:
    """Lance's threads do not exist there: a write would wait for ever."""
    script = """
        import os, sys
        import omnigraph as og
        graph = og.init(sys.argv[1], "node A { k: String @key }")
        child = os.fork()
        if child == 0:
            try:
                graph.mutate('insert A { k: "c" }')
            except og.errors.BadRequest as error:
                os._exit(7 if "before the process was forked" in str(error) else 1)
            os._exit(2)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        graph.mutate('insert A { k: "p" }')
    """
    command = [sys.executable, "-W", "ignore", "-c", dedent(script), str(tmp_path / "g")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr


def test_an_error_in_a_schema_file_names_the_file(tmp_path: Path) -> None:
    path = tmp_path / "bad.pg"
    path.write_text("node W { name: Strin @key }")
    with pytest.raises(ParseError, match=r"bad\.pg:1:16: parse error"):
        og.init(tmp_path / "g", path)
    graph = og.init(tmp_path / "g", OTHER_SCHEMA)
    for read in (graph.plan_schema, graph.apply_schema):
        with pytest.raises(ParseError, match=r"bad\.pg:1:16: parse error"):
            read(path)
