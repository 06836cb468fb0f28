"""What is not a graph, not ours to touch, or not where it was: a typed error that says what to do, and nothing lost."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import Any, Literal

import lance
import orjson
import pyarrow as pa
import pytest

import omnigraph as og
from omnigraph.commit.context import CommitContext
from omnigraph.commit.place import ROOT_RECORD
from omnigraph.errors import (
    BadRequest,
    CommitStateUnknown,
    GraphNotFound,
    HistoricalVersionReclaimed,
    OmnigraphError,
    RecoveryRequired,
    StorageError,
)
from omnigraph.graph.lifecycle import connect, open_for_writing
from omnigraph.storage.faults import FaultyStore, error_before
from omnigraph.storage.objects import open_store
from omnigraph.storage.root import Root
from tests.commit.healthy import assert_healthy, picture, tree
from tests.commit.org import SCHEMA, STAFF, again, insert, load_org, new_graph, staff

#: How a graph is opened.
Mode = Literal["rw", "ro"]
BOTH_MODES = pytest.mark.parametrize("mode", ["rw", "ro"])


@pytest.fixture
def org(tmp_path: Path) -> CommitContext:
    context = new_graph(str(tmp_path / "graph"))
    load_org(context)
    return context


# --- not a graph ------------------------------------------------------------------------------------------------------


def _empty_folder(place: Path) -> None:
    place.mkdir()


def _other_files(place: Path) -> None:
    place.mkdir()
    (place / "readme.txt").write_text("hello")


def _a_lance_dataset(place: Path) -> None:
    lance.write_dataset(pa.table({"x": [1]}), str(place))


@BOTH_MODES
@pytest.mark.parametrize("make", [_empty_folder, _other_files, _a_lance_dataset])
def test_what_is_not_a_graph_is_not_opened(tmp_path: Path, make: Callable[[Path], None], mode: Mode) -> None:
    make(tmp_path / "place")
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(GraphNotFound, match="no graph at .*/place; create one with `omnigraph init`"):
        og.open(tmp_path / "place", mode)
    assert sorted(tmp_path.rglob("*")) == before


@BOTH_MODES
def test_a_file_is_not_a_graph(tmp_path: Path, mode: Mode) -> None:
    (tmp_path / "file").write_text("hello")
    with pytest.raises(OmnigraphError, match="file"):
        og.open(tmp_path / "file", mode)
    with pytest.raises(OmnigraphError, match="file"):
        og.init(tmp_path / "file", SCHEMA)
    with pytest.raises(OmnigraphError, match="file"):
        og.init(tmp_path / "file" / "below", SCHEMA)
    assert (tmp_path / "file").read_text() == "hello"


@pytest.mark.parametrize(
    ("uri", "message"),
    [
        ("", "empty"),
        ("ftp://host/graph", "ftp:// is not supported"),
        ("s3://", "names no bucket"),
        ("file://host/graph", "another host"),
        ("memory://x", "local path or s3"),
        ("a\x00b", "control characters"),
    ],
)
def test_a_uri_that_can_not_be_one_is_refused(uri: str, message: str) -> None:
    with pytest.raises(BadRequest, match=message):
        og.init(uri, SCHEMA)


def test_an_unknown_durability_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadRequest, match="durability is process or power, not 'max'"):
        og.init(tmp_path / "graph", SCHEMA, durability="max")
    assert list(tmp_path.iterdir()) == []


# --- half a graph -----------------------------------------------------------------------------------------------------


@BOTH_MODES
@pytest.mark.parametrize("lost", ["__manifest", "__manifest/_versions"])
def test_a_graph_without_its_manifest_is_told_from_none(org: CommitContext, lost: str, mode: Mode) -> None:
    shutil.rmtree(Path(org.root.uri, lost))
    before = tree(org)
    with pytest.raises(GraphNotFound, match="parts of a graph .*nodes.*restore it from a backup"):
        og.open(org.root.uri, mode)
    with pytest.raises(OmnigraphError, match="already initialized"):
        og.init(org.root.uri, SCHEMA, force=True)
    assert tree(org) == before


@BOTH_MODES
@pytest.mark.parametrize("damage", ["_versions", "data"])
def test_a_damaged_manifest_is_named(org: CommitContext, damage: str, mode: Mode) -> None:
    for file in Path(org.root.uri, "__manifest", damage).iterdir():
        file.write_bytes(b"garbage")
    before = tree(org)
    with pytest.raises(StorageError, match="__manifest"):
        og.open(org.root.uri, mode)
    assert tree(org) == before, "nothing is set aside when nothing is left that can be read"


@pytest.mark.parametrize("damage", ["gone", "garbage"])
def test_a_lost_table_is_loud_when_it_is_read_or_written(org: CommitContext, damage: str) -> None:
    entry = org.manifest.load().by_key[STAFF]
    path = Path(org.root.uri, entry.path)
    if damage == "gone":
        shutil.rmtree(path)
    else:
        for file in (path / "_versions").iterdir():
            file.write_bytes(b"garbage")
    graph = og.open(org.root.uri)
    with pytest.raises((StorageError, HistoricalVersionReclaimed), match=f"{entry.path}.*restore"):
        graph.snapshot().open(STAFF).read()
    with pytest.raises(OmnigraphError, match=f"{entry.path}|{STAFF}"):
        insert(again(org), {STAFF: staff(["eve"])})
    assert graph.snapshot().open("node:Team").count_rows() == 2, "the other tables are fine"


# --- moved ------------------------------------------------------------------------------------------------------------


@BOTH_MODES
def test_a_moved_graph_with_branches_is_read_where_it_is(org: CommitContext, tmp_path: Path, mode: Mode) -> None:
    og.open(org.root.uri).create_branch("feature")
    shutil.move(org.root.uri, tmp_path / "elsewhere")
    assert og.open(tmp_path / "elsewhere", mode).snapshot("feature").open(STAFF).count_rows() == 4


def test_a_graph_without_branches_may_be_moved(org: CommitContext, tmp_path: Path) -> None:
    graph = og.open(org.root.uri)
    graph.create_branch("feature")
    graph.delete_branch("feature")
    shutil.move(org.root.uri, tmp_path / "elsewhere")

    moved = og.open(tmp_path / "elsewhere")
    moved.create_branch("feature")
    insert(connect(str(tmp_path / "elsewhere")), {STAFF: staff(["eve"])}, branch="feature")
    assert og.open(tmp_path / "elsewhere").snapshot("feature").open(STAFF).count_rows() == 5


@pytest.mark.parametrize("record", [b"", b"{", b"[]", b'{"uri": 7}', b"null"])
def test_a_damaged_record_of_the_place_is_loud(org: CommitContext, record: bytes) -> None:
    og.open(org.root.uri).create_branch("feature")
    assert orjson.loads(org.store.get(ROOT_RECORD)) == {"uri": org.root.uri}
    org.store.put(ROOT_RECORD, record)
    with pytest.raises(StorageError, match=f"{ROOT_RECORD}.*remove it"):
        og.open(org.root.uri)
    org.store.delete(ROOT_RECORD)
    og.open(org.root.uri).create_branch("another")
    assert orjson.loads(org.store.get(ROOT_RECORD)) == {"uri": org.root.uri}


# --- no permission ----------------------------------------------------------------------------------------------------

_CHILD = """
import os, sys, tempfile
import omnigraph as og
from omnigraph.errors import ExpectedVersionMismatch, OmnigraphError
action, uri, schema = sys.argv[1:]
with tempfile.TemporaryDirectory() as place:
    # Everything is imported while the installation can still be read.
    og.init(place + "/graph", schema).create_branch("mine")
    og.open(place + "/graph", "ro").snapshot().open("node:Staff").count_rows()
if os.getuid() == 0:
    os.setgid(65534); os.setuid(65534)
try:
    graph = og.init(uri, schema) if action == "init" else og.open(uri, action)
    if action == "ro":
        print("rows", graph.snapshot().open("node:Staff").count_rows())
    else:
        graph.create_branch("mine")
        print("done")
except OmnigraphError as error:
    print(type(error).__name__, getattr(error, "kind", ""), error)
"""


def as_nobody(action: str, place: Path) -> str:
    """What a process without rights is told."""
    done = subprocess.run([sys.executable, "-c", _CHILD, action, str(place), SCHEMA], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@contextmanager
def modes(folder: int, file: int, *paths: Path) -> Iterator[None]:
    """Give folders and files other permissions for a while."""
    before = [(path, path.stat().st_mode) for path in paths]
    for path in paths:
        path.chmod(folder if path.is_dir() else file)
    try:
        yield
    finally:
        for path, mode in before:
            path.chmod(mode)


@pytest.fixture
def open_to_all(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder that everybody can reach: the parents that pytest makes are private."""
    place = tmp_path_factory.mktemp("shared")
    ours = [
        folder for folder in (place, *place.parents) if folder.is_relative_to(tmp_path_factory.getbasetemp().parent)
    ]
    with modes(0o755, 0o644, *ours):
        if not all(folder.stat().st_mode & 0o001 for folder in place.parents):
            pytest.skip(f"other users can not reach {place}")
        yield place


def test_who_may_not_read_is_told_so_and_never_that_it_is_absent(open_to_all: Path) -> None:
    place = open_to_all / "graph"
    new_graph(str(place))
    with modes(0o000, 0o000, place):
        for action in ("ro", "rw", "init"):
            told = as_nobody(action, place)
            assert told.startswith("StorageError configuration"), told
            assert "permission denied" in told
            assert str(place) in told


def test_who_may_only_read_can_read_and_is_refused_to_write(open_to_all: Path) -> None:
    place = open_to_all / "graph"
    context = new_graph(str(place))
    load_org(context)
    before = tree(context)
    with modes(0o555, 0o444, place, *place.rglob("*")):
        assert as_nobody("ro", place) == "rows 4"
        told = as_nobody("rw", place)
    assert told.startswith("StorageError configuration"), told
    assert "give this user read and write access" in told
    assert tree(context) == before


def test_who_may_not_create_a_folder_gets_no_graph(open_to_all: Path) -> None:
    with modes(0o555, 0o444, open_to_all):
        told = as_nobody("init", open_to_all / "graph")
    assert told.startswith("StorageError configuration"), told
    assert not (open_to_all / "graph").exists()


# --- a full disk ------------------------------------------------------------------------------------------------------


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own."""
    place = tmp_path / "small"
    place.mkdir()
    if os.getuid() != 0 or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", place]).returncode != 0:
        pytest.skip("a small file system can not be mounted here; the injected faults below stand in for it")
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", place], check=True)


SETTLED_LATER = (RecoveryRequired, CommitStateUnknown)
PAGE = 4096
VERBS = """
query put($k: String) { insert N { name: $k, n: 0 } }
query change($k: String, $n: I32) { update N set { n: $n } where name = $k }
query drop($k: String) { delete N where name = $k }
query all() { match { $n: N } return { $n.name as name, $n.n as n } order { name asc } }
"""


def leave_room(disk: Path, pages: int) -> Path:
    """Fill a file system up to so many pages; the file that takes the space is returned."""
    ballast = disk / "ballast"
    found = os.statvfs(disk)
    with ballast.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, found.f_bavail * found.f_frsize - pages * PAGE)
    return ballast


def after(rows: dict[str, int], verb: str, params: dict[str, Any]) -> dict[str, int]:
    """What a verb makes of the rows."""
    if verb == "drop":
        return {name: n for name, n in rows.items() if name != params["k"]}
    return {**rows, params["k"]: params.get("n", 0)}


def test_a_full_disk_loses_nothing_and_the_first_write_with_room_goes_through(small_disk: Path) -> None:
    """A write that failed is absent; one whose outcome is settled later is there wholly or not at all, and blocks no write."""
    graph = og.init(small_disk / "graph", "node N { name: String @key n: I32 }")
    rows: dict[str, int] = {}
    ended: Counter[str] = Counter()
    for pages, verb in product(range(13), ("put", "change", "drop")):
        for name in {"x", "y", "z"} - rows.keys():
            graph.mutate(VERBS, "put", {"k": name})
            rows = after(rows, "put", {"k": name})
        tried: dict[str, dict[str, Any]] = {
            "put": {"k": f"p{pages}"},
            "change": {"k": "y", "n": pages + 1},
            "drop": {"k": "x"},
        }
        params = tried[verb]
        possible = [after(rows, verb, params)]
        ballast = leave_room(small_disk, pages)
        try:
            graph.mutate(VERBS, verb, params)
            ended["done"] += 1
        except OmnigraphError as error:
            ended[type(error).__name__] += 1
            possible = [rows, *possible] if isinstance(error, SETTLED_LATER) else [rows]
        ballast.unlink()
        # The next write is of another kind each time, and must not meet a conflict.
        first = ("change", "drop", "put")[(pages + len(verb)) % 3]
        with_room: dict[str, dict[str, Any]] = {
            "put": {"k": "w"},
            "change": {"k": "z", "n": pages + 1},
            "drop": {"k": "z"},
        }
        written = with_room[first]
        graph.mutate(VERBS, first, written)
        rows = {row["name"]: row["n"] for row in graph.query(VERBS, "all").rows}
        assert rows in [after(image, first, written) for image in possible], (pages, verb, first)
    assert ended["RecoveryRequired"] > 2, ended
    assert ended["done"] > 2, ended
    assert graph.pending_operations() == []
    assert not graph.verify(deep=True).damages


@pytest.mark.parametrize("path", ["__recovery/*", "__probe*"])
def test_a_store_that_is_full_is_named_and_nothing_is_lost(org: CommitContext, path: str) -> None:
    before = picture(org)
    verb = "put" if path == "__recovery/*" else "create"
    store = FaultyStore(open_store(org.root), [error_before(verb, path, nth=None, kind="permanent")])
    if verb == "create":
        store.inject(error_before("put", path, nth=None, kind="permanent"))
    context = connect(org.root.uri, store=store)
    with pytest.raises(StorageError) as raised:
        (insert(context, {STAFF: staff(["eve"])}) if verb == "put" else open_for_writing(context))
    assert raised.value.kind == "permanent"
    assert store.fired
    assert picture(again(org)) == before
    store.clear()
    insert(context, {STAFF: staff(["eve"])})
    assert_healthy(again(org))


def test_a_missing_bucket_is_named(s3_root: Root) -> None:
    uri, options = "s3://no-such-bucket-here/graph", s3_root.storage_options
    with pytest.raises(OmnigraphError, match="no-such-bucket-here"):
        og.open(uri, storage_options=options)
    with pytest.raises(OmnigraphError, match="no-such-bucket-here"):
        og.init(uri, SCHEMA, storage_options=options)
