"""A graph that was moved or copied: it answers as before, its first write makes it a graph of its own, and nothing else does."""

from __future__ import annotations

import logging
import shutil
import threading
from pathlib import Path
from typing import Literal

import orjson
import pytest

import omnigraph as og
from omnigraph.commit.place import ROOT_RECORD
from omnigraph.graph.lifecycle import connect
from omnigraph.storage.digests import read_log
from omnigraph.storage.objects import open_store
from omnigraph.storage.root import Root
from tests.commit.travelled import (
    Told,
    answers,
    copy_prefix,
    rows,
    texts_below,
    travelled_graph,
    write_elsewhere,
)
from tests.mutation.org_graph import WRITES
from tests.s3 import S3Server


@pytest.fixture
def told(tmp_path: Path) -> Told:
    """A graph at `tmp_path/here`."""
    return travelled_graph(tmp_path / "here")[1]


def record(place: Path) -> dict[str, object]:
    found: dict[str, object] = orjson.loads((place / ROOT_RECORD).read_bytes())
    return found


def everything_below(place: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in place.rglob("*") if path.is_file() and "__locks" not in str(path)}


@pytest.mark.parametrize("mode", ["rw", "ro"])
@pytest.mark.parametrize("copied", [True, False], ids=["copied", "moved"])
def test_a_graph_answers_as_before_where_it_is_now(
    tmp_path: Path, told: Told, mode: Literal["rw", "ro"], copied: bool
) -> None:
    here, there = tmp_path / "here", tmp_path / "a longer name of a folder"
    before = answers(og.open(here), told)
    (shutil.copytree if copied else shutil.move)(here, there)
    if copied:
        shutil.rmtree(here)  # it needs nothing of the original
    on_disk = everything_below(there)
    assert answers(og.open(there, mode), told) == before
    assert everything_below(there) == on_disk, "reading writes nothing"


def test_the_first_write_settles_a_copy_and_says_so(
    tmp_path: Path, told: Told, caplog: pytest.LogCaptureFixture
) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    before = answers(og.open(here), told)
    shutil.copytree(here, there)
    assert texts_below(there, str(here))
    copy = og.open(there)
    with caplog.at_level(logging.WARNING):
        copy.create_branch("new", "b0")
    assert f"lay at {here} and is written at {there}" in caplog.text
    now = record(there)
    assert now["uri"] == str(there)
    assert now["identity"] not in (None, now["earlier"])
    # Only the record of what a clone was made from still says where that was.
    left = texts_below(there, f"{here}/")
    assert all(b"\x22" in Path(path).read_bytes() for path in left)
    for branch in copy.branches():
        state = copy._context.manifest.load(branch)
        for entry in state.tables.values():
            bases = copy._context.tables.open(entry.location, entry.version).dataset.base_paths()
            assert all(base.path.startswith(f"{there}/") for base in bases.values())
    copy.delete_branch("new")
    shutil.rmtree(here)
    caplog.clear()
    assert answers(og.open(there), told) == before, "cursors of the original answer as before"
    og.open(there).mutate(WRITES, "put", {"h": "zoe", "n": 1}, branch="b2")
    assert not caplog.records, "once"
    assert og.verify(there, deep=True).ok


def test_two_copies_that_are_written_are_two_graphs(tmp_path: Path, told: Told) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    shutil.copytree(here, there)
    original, copy = og.open(here), og.open(there)
    shared = original.changes(start="now").cursor
    assert shared is not None
    assert copy.changes(cursor=shared).cursor == shared, "until it is written a copy is the same graph"
    original.mutate(WRITES, "put", {"h": "only-here", "n": 1})
    copy.mutate(WRITES, "put", {"h": "only-there", "n": 1})
    (here_told,), (there_told,) = original.changes(cursor=shared).blocks, copy.changes(cursor=shared).blocks
    assert here_told.commit.id != there_told.commit.id
    with pytest.raises(og.errors.ChangeCursorRejected, match="another graph"):
        original.changes(cursor=copy.changes(start="now").cursor)
    with pytest.raises(og.errors.ChangeCursorRejected, match="not in the history"):
        copy.changes(cursor=original.changes(start="now").cursor)
    assert "identity" not in record(here)
    # A copy of the copy knows all of them.
    third = tmp_path / "third"
    shutil.copytree(there, third)
    of_copy = copy.changes(start="now").cursor
    og.open(third).tag("t")
    assert len(record(third)["earlier"]) == 2  # type: ignore[arg-type]
    assert og.open(third).changes(cursor=of_copy).caught_up
    assert og.open(third).changes(cursor=shared).blocks


def test_a_handle_that_was_opened_before_another_process_wrote_first(tmp_path: Path, told: Told) -> None:
    there = tmp_path / "there"
    shutil.move(tmp_path / "here", there)
    early = og.open(there)
    assert write_elsewhere(str(there), "eve", "b0") == 0
    cursor = og.open(there).changes("b0", start="now").cursor
    assert early.changes("b0", cursor=cursor).caught_up
    assert "eve" in str(rows(early, branch="b0"))
    identity = record(there)["identity"]
    early.mutate(WRITES, "put", {"h": "fin", "n": 1}, branch="b0")
    assert record(there)["identity"] == identity, "one identity, whoever was first"


@pytest.mark.parametrize(
    "failpoint", ["place.before_roots", "place.root_written", "place.before_record", "place.recorded"]
)
def test_killed_while_it_settles(tmp_path: Path, told: Told, failpoint: str) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    before = answers(og.open(here), told)
    shutil.move(here, there)
    assert write_elsewhere(str(there), "eve", "b0", failpoint) == -9
    assert answers(og.open(there, "ro"), told) == before
    assert og.verify(there, deep=True).ok
    assert write_elsewhere(str(there), "eve", "b0") == 0
    assert record(there)["uri"] == str(there)
    assert "eve" in str(rows(og.open(there), branch="b0"))
    assert og.verify(there, deep=True).ok


def test_two_processes_at_once(tmp_path: Path, told: Told) -> None:
    there = tmp_path / "there"
    shutil.move(tmp_path / "here", there)
    ended: list[int] = []
    writers = [
        threading.Thread(target=lambda n=n: ended.append(write_elsewhere(str(there), f"e{n}", f"b{2 * n}")))
        for n in range(2)
    ]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert ended == [0, 0]
    assert len(record(there)["earlier"]) == 1  # type: ignore[arg-type]
    graph = og.open(there)
    assert "e0" in str(rows(graph, branch="b0"))
    assert "e1" in str(rows(graph, branch="b2"))


def test_a_graph_of_an_older_release(tmp_path: Path, told: Told) -> None:
    """It has a record only when it had branches; without one it is where it is."""
    here, there = tmp_path / "here", tmp_path / "there"
    (here / ROOT_RECORD).unlink()
    og.open(here).mutate(WRITES, "put", {"h": "eve", "n": 1})
    assert record(here) == {"uri": str(here)}
    (here / ROOT_RECORD).unlink()
    shutil.move(here, there)
    before = rows(og.open(there), branch="b2")
    og.open(there).create_branch("c", "b2")
    assert rows(og.open(there), branch="c") == before


def test_it_is_moved_again_and_back(tmp_path: Path, told: Told) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    before = answers(og.open(here), told)
    shutil.move(here, there)
    og.open(there).tag("t")
    og.open(there).delete_tag("t")
    shutil.move(there, here)
    assert answers(og.open(here), told) == before
    og.open(here).tag("t")
    og.open(here).delete_tag("t")
    assert answers(og.open(here), told) == before


def test_maintenance_of_a_moved_graph(tmp_path: Path, told: Told) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    before = [rows(og.open(here), branch=branch) for branch in og.open(here).branches()]
    shutil.move(here, there)
    graph = og.open(there)
    for branch in graph.branches():
        graph.at(branch).optimize()
    graph.cleanup(keep=1)
    assert [rows(graph, branch=branch) for branch in graph.branches()] == before
    assert og.verify(there, deep=True).ok


def test_an_unmoved_graph_makes_no_request_more(tmp_path: Path) -> None:
    og.init(tmp_path / "g", "node A { k: String @key }")
    context = connect(str(tmp_path / "g"))
    context.place.look()
    asked = sum(context.store.counts.values())
    assert asked == 1
    assert context.place.identities("x") == ("x",)
    assert context.place.is_settled
    assert sum(context.store.counts.values()) == asked


def test_from_prefix_to_prefix(s3_server: S3Server) -> None:
    source, target = s3_server.new_root(), s3_server.new_root()
    options = source.storage_options
    graph, told = travelled_graph(source.uri, storage_options=options)
    before = answers(graph, told)
    copy_prefix(source, target)
    open_store(source).delete_prefix("")
    assert answers(og.open(target.uri, "ro", storage_options=target.storage_options), told) == before
    copy = og.open(target.uri, storage_options=target.storage_options)
    copy.mutate(WRITES, "put", {"h": "eve", "n": 1}, branch="b2")
    assert "eve" in str(rows(copy, branch="b2"))
    copy.at("b2").optimize()
    assert og.verify(target.uri, storage_options=target.storage_options).ok


def test_from_disk_to_s3(tmp_path: Path, told: Told, s3_root: Root) -> None:
    before = answers(og.open(tmp_path / "here"), told)
    copy_prefix(Root.parse(tmp_path / "here"), s3_root)
    shutil.rmtree(tmp_path / "here")
    copy = og.open(s3_root.uri, storage_options=s3_root.storage_options)
    assert answers(copy, told) == before
    copy.create_branch("new", "b0")
    copy.delete_branch("new")
    assert answers(copy, told) == before
    assert read_log(copy._context.store).digests
