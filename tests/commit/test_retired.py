"""History of deleted branches: it can be read, compared, reverted, picked, tagged and told until cleanup takes it."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.commit.retired import RETIRED, read_line, retired_lines
from omnigraph.errors import BranchNotFound, Conflict, HistoricalVersionReclaimed
from tests import warm
from tests.mutation.org_graph import call, commit_of, content, ids, level, org_graph


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    return org_graph(tmp_path / "g")


@pytest.fixture(autouse=True)
def no_feed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cleanup keeps what the change feed may be asked for; here it is asked for nothing."""
    monkeypatch.setenv("OMNIGRAPH_FEED_RETENTION", "0s")


def merged(graph: og.Graph, branch: str, *people: str, base: str = "main", into: str = "main") -> list[og.Commit]:
    """Hire people on a branch of their own, one commit each, and merge and delete it."""
    graph.create_branch(branch, base)
    made = [commit_of(call(graph, "put", person, 1, branch=branch)) for person in people]
    result = graph.merge(branch, into, delete_branch=True)
    assert result.stats["branch_deleted"], result.stats
    return made


def test_states_of_a_deleted_branch_can_be_read(graph: og.Graph) -> None:
    before = ids(graph, "node:Staff")
    first, second = merged(graph, "agent/x", "eve", "fay")
    assert graph.branches() == ["main"]
    for handle in (graph, og.open(graph.uri, mode="ro")):
        assert ids(handle, "node:Staff", at=first.id) == sorted([*before, "eve"])
        assert ids(handle, "node:Staff", at=second.id) == sorted([*before, "eve", "fay"])
        shown = handle.snapshot(at=first.id)
        assert (shown.id, shown.commit) == (first.id, first.id)
        assert handle.query("query q() { match { $s: Staff } return { count($s) as n } }", snapshot=first.id).rows == [
            {"n": len(before) + 1}
        ]
        assert [change.id for change in handle.commit_changes(second.id).changes] == ["fay"]
        assert [change.id for change in handle.diff(first.id, second.id).changes] == ["fay"]
    with pytest.raises(BranchNotFound):
        graph.snapshot(at=f"manifest:agent/x:v{first.manifest_version}")


def test_they_are_reverted_picked_and_tagged(graph: og.Graph) -> None:
    first, second = merged(graph, "x", "eve", "fay")
    graph.revert(first.id)
    assert "eve" not in ids(graph, "node:Staff")
    assert "fay" in ids(graph, "node:Staff")
    graph.cherry_pick(first.id)
    assert "eve" in ids(graph, "node:Staff")
    graph.tag("hired", first.id)
    graph.cleanup(keep=1)
    assert "fay" not in ids(graph, "node:Staff", at="hired")
    with pytest.raises(HistoricalVersionReclaimed):
        graph.snapshot(at=second.id)
    assert graph.verify(deep=True).ok


def test_a_tagged_and_merged_branch_can_be_deleted(graph: og.Graph) -> None:
    graph.create_branch("x")
    made = commit_of(call(graph, "put", "eve", 1, branch="x"))
    graph.tag("there", made.id)
    with pytest.raises(Conflict, match="tag 'there'"):
        graph.delete_branch("x")
    graph.merge("x")
    graph.delete_branch("x")
    assert "eve" in ids(graph, "node:Staff", at="there")


def test_a_branch_that_nobody_reaches_is_gone(graph: og.Graph) -> None:
    graph.create_branch("x")
    made = commit_of(call(graph, "put", "eve", 1, branch="x"))
    graph.create_branch("empty")
    graph.delete_branch("x")
    graph.delete_branch("empty")
    assert not (Path(graph.uri) / RETIRED).exists()
    assert not list(Path(graph.uri).glob("nodes/*/tree/*"))
    with pytest.raises(og.errors.CommitNotFound):
        graph.snapshot(at=made.id)


def test_incarnations_of_one_name_stay_apart(graph: og.Graph) -> None:
    people = [f"p{number}" for number in range(6)]
    made = [merged(graph, "again", person)[0] for person in people]
    graph.create_branch("again")
    call(graph, "put", "live", 1, branch="again")
    for handle in (graph, og.open(graph.uri, mode="ro")):
        for number, commit in enumerate(made):
            hired = [one for one in ids(handle, "node:Staff", at=commit.id) if one.startswith("p")]
            assert hired == people[: number + 1]
    assert "live" in ids(graph, "node:Staff", "again")
    graph.cleanup(keep=4)
    # The newest four of main's history: the last merge, what it merged, and the same once more.
    assert [_is_readable(graph, commit) for commit in made] == [False] * 4 + [True] * 2
    assert ids(graph, "node:Staff", "again") == sorted([*ids(graph, "node:Staff"), "live"])
    assert graph.verify(deep=True).ok


@pytest.fixture
def brought(graph: og.Graph) -> tuple[og.Graph, list[og.Commit], og.Commit]:
    """Three commits of a deleted branch x, all of which main reaches; a branch y has the first of them.

    The x of today began without them, has got the first by a merge of y, and has made a commit of its own, which main has too.
    """
    for name in ("before", "y", "x"):
        graph.create_branch(name)
    made = [commit_of(call(graph, "put", "p0", 1, branch="x"))]
    graph.merge("x", "y")
    made += [commit_of(call(graph, "put", person, 1, branch="x")) for person in ("p1", "p2")]
    graph.merge("x", delete_branch=True)
    graph.create_branch("x", "before")
    graph.merge("y", "x")
    own = commit_of(call(graph, "put", "own", 1, branch="x"))
    graph.merge("x")
    return graph, made, own


def test_commits_that_a_merge_brings_back_to_a_name(brought: tuple[og.Graph, list[og.Commit], og.Commit]) -> None:
    """They were made by the earlier branch of that name, and what was written down of it stays when the later one goes."""
    graph, made, own = brought
    graph.delete_branch("x")
    assert len(list(retired_lines(graph._context.store))) == 2
    for number, commit in enumerate(made):
        hired = [one for one in ids(graph, "node:Staff", at=commit.id) if one.startswith("p")]
        assert hired == ["p0", "p1", "p2"][: number + 1]
    assert "own" in ids(graph, "node:Staff", at=own.id)
    assert graph.verify(deep=True).ok


def test_a_tag_of_an_earlier_branch_does_not_hold_the_later_one(
    brought: tuple[og.Graph, list[og.Commit], og.Commit],
) -> None:
    graph, made, _ = brought
    graph.tag("earlier", made[0].id)
    graph.delete_branch("x")
    assert "p0" in ids(graph, "node:Staff", at="earlier")


def test_a_name_that_begins_behind_its_earlier_commits_is_whole(graph: og.Graph) -> None:
    """The earlier branch had come to a later version of its manifest than the one the new branch begins at."""
    merged(graph, "x", "eve", "fay", "gus")
    graph.create_branch("x")
    assert graph.verify(deep=True).damages == ()


def test_versions_of_a_later_branch_that_are_gone(graph: og.Graph) -> None:
    """The state of a commit is looked for at its version of the branch that has the name now; that one may be cleaned up."""
    for number in range(3):
        call(graph, "put", f"m{number}", 1)
    graph.create_branch("x")
    made = commit_of(call(graph, "put", "eve", 1, branch="x"))
    for number in range(3):
        call(graph, "put", f"n{number}", 1)
    graph.cleanup(keep=1)
    graph.merge("x", delete_branch=True)
    graph.create_branch("x")
    for handle in (graph, og.open(graph.uri, mode="ro")):
        assert "eve" in ids(handle, "node:Staff", at=made.id)
    assert graph.revert(made.id).outcome == "merged"


@pytest.mark.long
def test_a_name_that_is_used_fifty_times(graph: og.Graph) -> None:
    made = [merged(graph, "again", f"p{number:02}")[0] for number in range(50)]
    for number, commit in enumerate(made):
        hired = [one for one in ids(graph, "node:Staff", at=commit.id) if one.startswith("p")]
        assert hired == [f"p{other:02}" for other in range(number + 1)]


def _is_readable(graph: og.Graph, commit: og.Commit) -> bool:
    try:
        ids(graph, "node:Staff", at=commit.id)
    except HistoricalVersionReclaimed:
        return False
    return True


def test_branches_of_branches(graph: og.Graph) -> None:
    graph.create_branch("x")
    on_x = commit_of(call(graph, "put", "eve", 1, branch="x"))
    (on_y,) = merged(graph, "y", "fay", base="x", into="main")
    graph.delete_branch("x")
    assert "fay" not in ids(graph, "node:Staff", at=on_x.id)
    assert "eve" in ids(graph, "node:Staff", at=on_x.id)
    assert {"eve", "fay"} <= set(ids(graph, "node:Staff", at=on_y.id))
    graph.cleanup(keep=1)
    assert not _is_readable(graph, on_x)
    assert not _is_readable(graph, on_y)
    assert {"eve", "fay"} <= set(ids(graph, "node:Staff"))
    assert not list(retired_lines(graph._context.store))
    assert graph.verify(deep=True).ok


def test_a_merge_into_another_branch_counts(graph: og.Graph) -> None:
    graph.create_branch("z")
    (made,) = merged(graph, "x", "eve", into="z")
    assert "eve" in ids(graph, "node:Staff", at=made.id)
    graph.delete_branch("z")
    assert not list(Path(graph.uri).glob(f"{RETIRED}/z/*"))
    graph.cleanup(keep=10)
    # No branch reaches it any more.
    assert not (Path(graph.uri) / RETIRED / "x" / f"{made.id}.json").exists()


def test_the_feed_and_merge_bases_of_the_past(graph: og.Graph) -> None:
    start = graph.changes(start="now").cursor
    merged(graph, "x", "eve", "fay")
    assert start is not None
    told = [change.id for block in graph.changes(cursor=start).blocks for change in block.changes]
    assert sorted(told) == ["eve", "fay"]
    graph.create_branch("later", "main")
    call(graph, "put", "gus", 1, branch="later")
    graph.merge("later")
    assert level(graph, "gus") == 1


def test_cleanup_keeps_what_is_young(graph: og.Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = merged(graph, "x", "eve", "fay")
    graph.cleanup(older_than="1h")
    assert _is_readable(graph, first)
    assert _is_readable(graph, second)
    monkeypatch.setenv("OMNIGRAPH_FEED_RETENTION", "7d")
    graph.cleanup(keep=1)
    assert _is_readable(graph, first)
    assert _is_readable(graph, second)
    report = graph.cleanup(keep=1, dry_run=True)
    assert report.bytes_removed == 0


@pytest.mark.parametrize("place", ["before_retiring", "before_ref", "after_ref"])
def test_a_deletion_that_dies(graph: og.Graph, place: str) -> None:
    graph.create_branch("x")
    made = commit_of(call(graph, "put", "eve", 1, branch="x"))
    graph.merge("x")
    _killed(graph, f"branch_delete.{place}", "g.delete_branch('x')")
    healed = og.open(graph.uri)
    assert ("x" in healed.branches()) == (place != "after_ref")
    assert "eve" in ids(healed, "node:Staff", at=made.id)
    if "x" in healed.branches():
        call(healed, "put", "fay", 1, branch="x")
        healed.merge("x", delete_branch=True)
    healed.create_branch("x")
    assert "eve" in ids(healed, "node:Staff", at=made.id)
    assert healed.verify(deep=True).ok
    healed.cleanup(keep=1)
    assert healed.verify(deep=True).ok


def test_a_cleanup_that_dies(graph: og.Graph) -> None:
    merged(graph, "x", "eve")
    merged(graph, "y", "fay")
    for _ in range(2):
        _killed(graph, "cleanup.before_retired", "g.cleanup(keep=1)")
        assert og.open(graph.uri).verify(deep=True).ok
    healed, shown = og.open(graph.uri), content(graph)
    healed.cleanup(keep=1)
    assert content(healed) == shown
    assert not list(retired_lines(healed._context.store))


def _killed(graph: og.Graph, failpoint: str, work: str) -> None:
    code = f"import sys, omnigraph as og; g = og.open(sys.argv[1]); {work}"
    killed = {**os.environ, "OMNIGRAPH_FAILPOINTS": f"{failpoint}=kill"}
    done = warm.run([sys.executable, "-c", code, graph.uri], env=killed, check=False)
    assert done.returncode == -signal.SIGKILL


def test_a_damaged_file_is_told(graph: og.Graph) -> None:
    (made,) = merged(graph, "x", "eve")
    (line,) = retired_lines(graph._context.store)
    assert [publish.commits for publish in line.publishes] == [(made.id,)]
    (Path(graph.uri) / line.path).write_bytes(b'{"format": 1}')
    with pytest.raises(og.errors.StorageError, match="history of a deleted branch"):
        read_line(graph._context.store, line.path)
    assert {damage.path for damage in graph.verify().damages} == {line.path}
    assert ids(graph, "node:Staff")
