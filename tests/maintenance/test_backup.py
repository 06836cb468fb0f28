"""`backup` and `restore`: one point of a graph at another place, whatever dies, and the graph that is made of it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph import failpoints
from omnigraph.maintenance.backup_files import INVENTORY, PLAN
from omnigraph.storage.root import Root
from tests import warm
from tests.commit.travelled import Told, answers, rows, travelled_graph
from tests.mutation.org_graph import SCHEMA, WRITES
from tests.s3 import S3Server

CHILD = str(Path(__file__).with_name("backup_child.py"))
BACKUP_STEPS = [
    "backup.captured",
    "backup.file_copied",
    "backup.copied",
    "backup.planned",
    "backup.installed",
    "backup.removed",
    "backup.recorded",
]
RESTORE_STEPS = [
    "restore.claimed",
    "backup.file_copied",
    "restore.copied",
    "restore.before_schema",
    "restore.before_state",
]


@pytest.fixture
def told(tmp_path: Path) -> Told:
    """A graph at `tmp_path/g`."""
    return travelled_graph(tmp_path / "g")[1]


def put(graph: og.Graph, handle: str, branch: str = "main") -> str:
    graph.mutate(WRITES, "put", {"h": handle, "n": 1}, branch=branch)
    return graph.head(branch).id


def child(*arguments: object, failpoint: str | None = None) -> subprocess.Popen[str]:
    armed = {} if failpoint is None else {"OMNIGRAPH_FAILPOINTS": f"{failpoint}=kill"}
    words = [sys.executable, CHILD, *map(str, arguments)]
    return warm.Popen(words, env=os.environ | armed, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def is_sound(uri: Path) -> bool:
    report = og.verify(uri, deep=True)
    assert not report.damages
    return report.ok


# --- a backup is a graph ----------------------------------------------------------------------------------------------


def test_a_backup_is_read_like_the_graph(tmp_path: Path, told: Told) -> None:
    graph = og.open(tmp_path / "g")
    report = graph.backup(tmp_path / "b")
    assert report.heads == {branch: graph.head(branch).id for branch in graph.branches()}
    assert report.copied_files == report.files > 100
    before = answers(graph, told)
    shutil.rmtree(tmp_path / "g")
    backup = og.open(tmp_path / "b")
    assert backup.mode == "ro"
    assert answers(backup, told) == before
    assert is_sound(tmp_path / "b")
    with pytest.raises(og.errors.BadRequest, match="read-only"):
        put(backup, "eve")


def test_a_second_backup_copies_only_what_is_new(tmp_path: Path, told: Told) -> None:
    graph = og.open(tmp_path / "g")
    first = graph.backup(tmp_path / "b")
    again = graph.backup(tmp_path / "b")
    assert (again.copied_files, again.removed_files) == (0, 0)
    put(graph, "eve", "b0")
    expected = graph.backup(tmp_path / "b", dry_run=True)
    third = graph.backup(tmp_path / "b")
    assert (third.copied_files, third.copied_bytes) == (expected.copied_files, expected.copied_bytes)
    assert 0 < third.copied_files <= 10 < first.files
    assert "eve" in str(rows(og.open(tmp_path / "b"), branch="b0"))
    assert is_sound(tmp_path / "b")


def test_what_the_graph_gives_up_the_backup_gives_up_too(
    tmp_path: Path, told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMNIGRAPH_FEED_RETENTION", "0s")
    graph = og.open(tmp_path / "g")
    graph.backup(tmp_path / "b")
    graph.delete_branch("b3")
    graph.create_branch("b3")
    put(graph, "second-life", "b3")
    graph.optimize()
    graph.cleanup(keep=1)
    report = graph.backup(tmp_path / "b")
    assert report.removed_files > 0
    backup = og.open(tmp_path / "b")
    assert rows(backup, branch="b3") == rows(graph, branch="b3")
    assert is_sound(tmp_path / "b")
    left = {str(path.relative_to(tmp_path / "b")) for path in (tmp_path / "b").rglob("*.lance") if path.is_file()}
    assert left == {
        str(path.relative_to(tmp_path / "g")) for path in (tmp_path / "g").rglob("*.lance") if path.is_file()
    }


def test_while_four_processes_write(tmp_path: Path, told: Told) -> None:
    uri = tmp_path / "g"
    writers = [child("write", uri, f"w{number}") for number in range(4)]
    reports = []
    for _ in range(3):
        reports.append(og.open(uri).backup(tmp_path / "b"))
        backup = og.open(tmp_path / "b")
        assert {branch: backup.head(branch).id for branch in backup.branches()} == reports[-1].heads
        assert is_sound(tmp_path / "b")
    (tmp_path / "stop").touch()
    for writer in writers:
        out, err = writer.communicate()
        assert writer.returncode == 0, err
        assert int(out) > 0
    assert reports[0].heads != reports[-1].heads
    og.restore(tmp_path / "b", tmp_path / "r")
    restored, graph = og.open(tmp_path / "r"), og.open(uri)
    for branch, head in reports[-1].heads.items():
        assert rows(restored, branch=branch) == rows(graph, snapshot=head)
    put(restored, "after", "b1/x")
    assert is_sound(tmp_path / "r")


# --- what dies --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("step", BACKUP_STEPS)
def test_a_backup_that_is_killed(tmp_path: Path, told: Told, step: str) -> None:
    """The earlier point, or the later one: never a mixture, never something that looks complete and is not."""
    graph = og.open(tmp_path / "g")
    graph.backup(tmp_path / "b")
    before = answers(graph, told)
    put(graph, "eve", "b0")
    graph.create_branch("late")
    after = answers(graph, told)
    process = child("backup", tmp_path / "g", tmp_path / "b", failpoint=step)
    process.communicate()
    assert process.returncode == -9
    shutil.copytree(tmp_path / "b", tmp_path / "left")
    if step in ("backup.installed", "backup.removed"):
        with pytest.raises(og.errors.BadRequest, match="interrupted"):
            og.open(tmp_path / "left")
    else:
        assert answers(og.open(tmp_path / "left"), told) == (after if step == "backup.recorded" else before)
    # Without the graph the backup is still worth all of a point.
    og.restore(tmp_path / "left", tmp_path / "r")
    assert answers(og.open(tmp_path / "r"), told) in (before, after)
    # With it the next run goes on.
    graph.backup(tmp_path / "b")
    assert answers(og.open(tmp_path / "b"), told) == after
    assert not (tmp_path / "b" / PLAN).exists()
    assert is_sound(tmp_path / "b")


@pytest.mark.parametrize("step", ["backup.captured", "backup.file_copied", "backup.copied", "backup.planned"])
def test_a_first_backup_that_is_killed(tmp_path: Path, told: Told, step: str) -> None:
    process = child("backup", tmp_path / "g", tmp_path / "b", failpoint=step)
    process.communicate()
    assert process.returncode == -9
    with pytest.raises((og.errors.GraphNotFound, og.errors.BadRequest)):
        og.open(tmp_path / "b")
    graph = og.open(tmp_path / "g")
    graph.backup(tmp_path / "b")
    assert answers(og.open(tmp_path / "b"), told) == answers(graph, told)
    assert is_sound(tmp_path / "b")


@pytest.mark.parametrize("step", RESTORE_STEPS)
def test_a_restore_that_is_killed(tmp_path: Path, told: Told, step: str) -> None:
    graph = og.open(tmp_path / "g")
    graph.backup(tmp_path / "b")
    process = child("restore", tmp_path / "b", tmp_path / "r", failpoint=step)
    process.communicate()
    assert process.returncode == -9
    for mode in ("rw", "ro"):
        with pytest.raises((og.errors.GraphNotFound, og.errors.SchemaContractError)):
            og.open(tmp_path / "r", mode)
    og.restore(tmp_path / "b", tmp_path / "r")
    assert answers(og.open(tmp_path / "r"), told) == answers(graph, told)
    put(og.open(tmp_path / "r"), "eve", "b2")
    assert is_sound(tmp_path / "r")


def test_every_failpoint_is_met() -> None:
    declared = {name for name in failpoints.NAMES if name.startswith(("backup.", "restore."))}
    assert declared == {*BACKUP_STEPS, *RESTORE_STEPS}


# --- refused ----------------------------------------------------------------------------------------------------------


def test_two_backups_to_one_place(tmp_path: Path, told: Told) -> None:
    graph = og.open(tmp_path / "g")
    refused: list[og.OmnigraphError] = []

    def second() -> None:
        try:
            og.open(tmp_path / "g").backup(tmp_path / "b")
        except og.OmnigraphError as error:
            refused.append(error)

    def elsewhere() -> None:
        thread = threading.Thread(target=second)
        thread.start()
        thread.join()

    with failpoints.armed("backup.captured", elsewhere):
        graph.backup(tmp_path / "b")
    assert "another process" in refused[0].message
    assert is_sound(tmp_path / "b")


def test_cleanup_waits_for_a_backup(tmp_path: Path, told: Told) -> None:
    graph, refused = og.open(tmp_path / "g"), []

    def clean() -> None:
        with pytest.raises(og.errors.Conflict, match="a backup is being taken") as raised:
            og.open(tmp_path / "g").cleanup(keep=1)
        refused.append(raised.value)

    with failpoints.armed("backup.captured", clean):
        graph.backup(tmp_path / "b")
    assert refused
    graph.cleanup(keep=1)


def test_a_branch_that_goes_and_comes_while_it_is_copied(tmp_path: Path, told: Told) -> None:
    graph = og.open(tmp_path / "g")
    lives: list[int] = []

    def recreate() -> None:
        if len(lives) < 2:
            lives.append(1)
            other = og.open(tmp_path / "g")
            other.delete_branch("b3")
            other.create_branch("b3")
            put(other, f"life{len(lives)}", "b3")

    with failpoints.armed("backup.captured", recreate):
        graph.backup(tmp_path / "b")
    assert rows(og.open(tmp_path / "b"), branch="b3") == rows(graph, branch="b3")
    assert is_sound(tmp_path / "b")


def test_places_that_are_taken(tmp_path: Path, told: Told) -> None:
    graph = og.open(tmp_path / "g")
    other = og.init(tmp_path / "other", SCHEMA)
    graph.backup(tmp_path / "b")
    for target, said in [
        (tmp_path / "other", "no backup"),
        (tmp_path / "g" / "inside", "one is inside the other"),
        (tmp_path / "g", "one is inside the other"),
    ]:
        with pytest.raises(og.errors.BadRequest, match=said):
            graph.backup(target)
    with pytest.raises(og.errors.BadRequest, match="another graph"):
        other.backup(tmp_path / "b")
    with pytest.raises(og.errors.AlreadyInitialized, match="not empty"):
        og.restore(tmp_path / "b", tmp_path / "other")
    with pytest.raises(og.errors.BadRequest, match="no complete backup"):
        og.restore(tmp_path / "g", tmp_path / "r")
    with pytest.raises(og.errors.BadRequest, match="neither a commit"):
        og.restore(tmp_path / "b", tmp_path / "r", at="yesterday-ish")
    assert not (tmp_path / "r").exists()


def test_what_others_keep_beside_a_backup_stays(tmp_path: Path, told: Told) -> None:
    """Only files of the graph go from a backup: not a note, and not the backup of another graph in a folder below it."""
    graph, other = og.open(tmp_path / "g"), og.init(tmp_path / "other", SCHEMA)
    graph.backup(tmp_path / "b")
    other.backup(tmp_path / "b" / "other")
    (tmp_path / "b" / "README").write_text("a note")
    put(graph, "eve")
    graph.delete_branch("b3")
    assert graph.backup(tmp_path / "b").copied_files > 0
    assert (tmp_path / "b" / "README").read_text() == "a note"
    assert is_sound(tmp_path / "b" / "other")
    og.restore(tmp_path / "b", tmp_path / "r")
    assert not (tmp_path / "r" / "README").exists()


@pytest.mark.parametrize(("source", "target"), [("b", "b/inside"), ("b/inside", "b")])
def test_a_graph_is_not_restored_into_its_backup(tmp_path: Path, told: Told, source: str, target: str) -> None:
    og.open(tmp_path / "g").backup(tmp_path / source)
    with pytest.raises(og.errors.BadRequest, match="one is inside the other"):
        og.restore(tmp_path / source, tmp_path / target)


def test_no_graph_is_restored_or_backed_up_into_another(tmp_path: Path, told: Told) -> None:
    graph = og.open(tmp_path / "g")
    graph.backup(tmp_path / "b")
    og.init(tmp_path / "other", "node N { k: String @key }")
    with pytest.raises(og.errors.BadRequest, match="lies inside the graph"):
        og.restore(tmp_path / "b", tmp_path / "other" / "nodes" / "r")
    with pytest.raises(og.errors.BadRequest, match="lies inside the graph"):
        graph.backup(tmp_path / "other" / "__staging" / "b")
    assert is_sound(tmp_path / "other")


def test_a_backup_that_lost_files_gets_them_again(tmp_path: Path, told: Told) -> None:
    graph = og.open(tmp_path / "g")
    graph.backup(tmp_path / "b")
    data = sorted((tmp_path / "b" / "nodes").rglob("data/*.lance"))
    versions = sorted((tmp_path / "b" / "__manifest" / "_versions").rglob("*.manifest"))
    for file in (data[0], versions[-1]):
        file.unlink()
    data[1].write_bytes(data[1].read_bytes()[:10])
    with pytest.raises(og.errors.BadRequest, match="lacks .*; run `omnigraph backup` again"):
        og.restore(tmp_path / "b", tmp_path / "r")
    assert graph.backup(tmp_path / "b").copied_files == 3
    assert is_sound(tmp_path / "b")
    og.restore(tmp_path / "b", tmp_path / "r")
    assert answers(og.open(tmp_path / "r"), told) == answers(graph, told)


def test_a_damaged_file_is_not_taken_for_good(tmp_path: Path, told: Told) -> None:
    graph = og.open(tmp_path / "g")
    file = next(path for path in sorted((tmp_path / "g" / "nodes").rglob("data/*.lance")))
    whole = file.read_bytes()
    file.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    with pytest.raises(og.OmnigraphError, match="is damaged.*verify --deep"):
        graph.backup(tmp_path / "b")
    file.write_bytes(whole)
    graph.backup(tmp_path / "b")
    copied = tmp_path / "b" / file.relative_to(tmp_path / "g")
    copied.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    with pytest.raises(og.OmnigraphError, match="is damaged"):
        og.restore(tmp_path / "b", tmp_path / "r")
    with pytest.raises((og.errors.GraphNotFound, og.errors.SchemaContractError)):
        og.open(tmp_path / "r")


# --- an earlier moment ------------------------------------------------------------------------------------------------


def test_an_earlier_moment(tmp_path: Path) -> None:
    """A commit, a tag and a time: branches, schema, tags and cursors as they were."""
    graph, _ = travelled_graph(tmp_path / "g", branches=3, rounds=1)
    commit = put(graph, "then")
    graph.tag("then")
    tags = graph.tags()
    before = {branch: rows(graph, branch=branch) for branch in graph.branches()}
    schema, cursor = graph.schema(), graph.changes(start="now").cursor
    time.sleep(1.1)  # the ref of a branch tells the second it was made in
    moment = datetime.now(UTC)
    time.sleep(1.1)
    graph.create_branch("late", "b0")
    for branch in graph.branches():
        put(graph, "later", branch)
    graph.apply_schema(SCHEMA.replace("level: I32?", "level: I32?\n  note: String?"))
    graph.mutate('query q() { insert Staff { handle: "noted", note: "n" } }')
    graph.tag("later")
    graph.delete_tag("first")
    graph.backup(tmp_path / "b")
    moments: tuple[str | datetime, ...] = (commit, "then", moment, moment.isoformat())
    for number, at in enumerate(moments):
        place = tmp_path / f"r{number}"
        report = og.restore(tmp_path / "b", place, at=at)
        assert report.left_out == ("late",)
        restored = og.open(place)
        assert {branch: rows(restored, branch=branch) for branch in restored.branches()} == before
        assert restored.schema() == schema
        assert restored.head().id == commit
        assert restored.tags() == tags
        assert restored.changes(cursor=cursor).caught_up
        assert is_sound(place)
        restored.create_branch("late", "b0")
        for branch in restored.branches():
            put(restored, "other", branch)
        restored.apply_schema(SCHEMA.replace("level: I32?", "level: I32?\n  other: String?"))
        assert is_sound(place)
        with pytest.raises(og.errors.ChangeCursorRejected):
            restored.changes(cursor=graph.changes(start="now").cursor)
    with pytest.raises(og.errors.HistoricalVersionReclaimed, match="older than the graph"):
        og.restore(tmp_path / "b", tmp_path / "never", at="2001-01-01T00:00:00Z")


def test_restored_to_where_it_was(tmp_path: Path, told: Told) -> None:
    graph = og.open(tmp_path / "g")
    graph.backup(tmp_path / "b")
    before = answers(graph, told)
    shutil.rmtree(tmp_path / "g")
    expected = og.restore(tmp_path / "b", tmp_path / "g", dry_run=True)
    assert not (tmp_path / "g").exists()
    assert og.restore(tmp_path / "b", tmp_path / "g").files == expected.files
    graph = og.open(tmp_path / "g")
    assert answers(graph, told) == before
    put(graph, "eve")
    assert len(graph.backup(tmp_path / "b").heads) == len(graph.branches()), "and its backup goes on"


# --- elsewhere --------------------------------------------------------------------------------------------------------


def test_between_disk_and_s3(tmp_path: Path, told: Told, s3_server: S3Server) -> None:
    root, copy = s3_server.new_root(), s3_server.new_root()
    options: dict[str, Any] = {"storage_options": root.storage_options}
    graph = og.open(tmp_path / "g")
    before = answers(graph, told)
    graph.backup(root.uri, **options)
    assert answers(og.open(root.uri, **options), told) == before
    put(graph, "eve", "b2")
    assert graph.backup(root.uri, **options).copied_files <= 10
    after = answers(graph, told)
    og.restore(root.uri, copy.uri, **options)
    restored = og.open(copy.uri, **options)
    assert answers(restored, told) == after
    put(restored, "fin", "b2")
    again = s3_server.new_root()
    first = restored.backup(again.uri)
    assert restored.backup(again.uri).copied_files == 0 < first.copied_files
    og.restore(again.uri, tmp_path / "home", **options)
    assert "fin" in str(rows(og.open(tmp_path / "home"), branch="b2"))
    assert is_sound(tmp_path / "home")
    assert Root.parse(root.uri, root.storage_options).uri == root.uri


def test_the_inventory_says_what_is_there(tmp_path: Path, told: Told) -> None:
    og.open(tmp_path / "g").backup(tmp_path / "b")
    import orjson

    listed = orjson.loads((tmp_path / "b" / INVENTORY).read_bytes())["files"]
    there = {
        str(path.relative_to(tmp_path / "b")): path.stat().st_size
        for path in (tmp_path / "b").rglob("*")
        if path.is_file()
    }
    own = {
        path for path in there if path.startswith(("__backup/", "__locks/")) or path in ("__root.json", "__digests.log")
    }
    assert {path: size for path, (size, _, _) in listed.items()} == {path: there[path] for path in there.keys() - own}


@pytest.mark.long
def test_twenty_branches_and_five_hundred_commits(tmp_path: Path) -> None:
    graph, told = travelled_graph(tmp_path / "g", branches=20, rounds=16)
    assert sum(len(graph.commits(branch)) for branch in graph.branches()) > 500
    before = answers(graph, told)
    shutil.copytree(tmp_path / "g", tmp_path / "copy")
    shutil.move(tmp_path / "copy", tmp_path / "renamed")
    assert answers(og.open(tmp_path / "renamed"), told) == before
    put(og.open(tmp_path / "renamed"), "eve", "b2")
    writers = [child("write", tmp_path / "g", f"w{number}") for number in range(4)]
    moment = datetime.now(UTC)
    report = graph.backup(tmp_path / "b")
    second = graph.backup(tmp_path / "b")
    (tmp_path / "stop").touch()
    for writer in writers:
        assert writer.wait() == 0
    assert second.copied_files < report.copied_files / 2
    og.restore(tmp_path / "b", tmp_path / "r", at=moment)
    og.restore(tmp_path / "b", tmp_path / "r2")
    restored = og.open(tmp_path / "r2")
    for branch, head in second.heads.items():
        assert rows(restored, branch=branch) == rows(graph, snapshot=head)
    assert is_sound(tmp_path / "r")
    assert is_sound(tmp_path / "r2")
