"""Files that end early because the disk was full for a moment, at every step of the protocol; the writer lives or dies there."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from omnigraph import failpoints
from omnigraph.commit.context import CommitContext
from omnigraph.commit.model import MAIN
from omnigraph.commit.protocol import execute
from omnigraph.commit.publisher import publish
from omnigraph.commit.recovery import heal
from omnigraph.commit.sidecar import list_sidecars
from omnigraph.commit.updates import SetTag
from omnigraph.graph.lifecycle import open_for_writing
from omnigraph.storage.tables.torn import ASIDE
from omnigraph.storage.tables.written import ShortFile
from tests.commit.healthy import assert_healthy
from tests.commit.org import STAFF, TEAM, again, ids, insert, staff, team, write


class Stopped(BaseException):
    """The process dies here."""


def newest(context: CommitContext, path: str, pattern: str) -> Path:
    """The file of a dataset that was written last."""
    return max(Path(context.root.uri, path).glob(pattern), key=lambda place: place.stat().st_mtime_ns)


def cutting(context: CommitContext, path: str, pattern: str, *, at: int, dies: bool) -> Callable[[], None]:
    """Cut the newest file of a dataset at the nth time this is called; then the process goes on, or is gone."""
    calls = [0]

    def act() -> None:
        calls[0] += 1
        if calls[0] == at:
            os.truncate(newest(context, path, pattern), 30)
            if dies:
                raise Stopped

    return act


def assert_mended(context: CommitContext) -> None:
    """The graph is healthy. What was set aside may be there: it is kept for people, and nothing reads it."""
    fresh = again(context)
    fresh.store.delete_prefix(ASIDE)
    assert_healthy(fresh)


@pytest.mark.parametrize("dies", [False, True], ids=["lives", "dies"])
@pytest.mark.parametrize("number", [1, 2, 3], ids=["first table", "second table", "manifest"])
def test_a_version_that_ends_early(graph: CommitContext, number: int, dies: bool) -> None:
    insert(graph, {STAFF: staff(["before"]), TEAM: team(["before"])})
    entries = graph.manifest.load().by_key
    path = "__manifest" if number == 3 else entries[[STAFF, TEAM][number - 1]].path
    prepared = write(graph, {STAFF: staff(["ada"]), TEAM: team(["blue"])})
    cut = cutting(graph, path, "_versions/*.manifest", at=number, dies=dies)
    acknowledged = False
    with failpoints.armed("table_commit.lost_acknowledgement", cut):
        try:
            execute(graph, prepared)
            acknowledged = True
        except (ShortFile, Stopped):
            pass
    fresh = again(graph)
    open_for_writing(fresh)
    heal(fresh)
    there = "ada" in ids(fresh, STAFF)
    assert ("blue" in ids(fresh, TEAM)) == there, "the write is there as a whole or not at all"
    assert there or not acknowledged
    assert dies or there == acknowledged
    assert list_sidecars(fresh.store) == []
    insert(fresh, {STAFF: staff(["after"]), TEAM: team(["after"])})
    assert {"before", "after"} <= set(ids(again(graph), STAFF))
    assert_mended(graph)


def test_a_staged_file_that_ends_early_changes_nothing(graph: CommitContext) -> None:
    insert(graph, {STAFF: staff(["before"])})
    before = graph.manifest.load()
    prepared = write(graph, {STAFF: staff(["ada"]), TEAM: team(["blue"])})
    os.truncate(newest(graph, before.by_key[TEAM].path, "data/*.lance"), 192)
    with pytest.raises(ShortFile, match="has 192 bytes of .*free some space and repeat the write"):
        execute(graph, prepared)
    assert again(graph).manifest.load() == before
    assert list_sidecars(graph.store) == []
    for key in (STAFF, TEAM):
        entry = before.by_key[key]
        assert graph.tables.head_version(entry.location) == entry.version
    assert_mended(graph)


def test_a_tag_whose_version_ends_early_is_not_set(graph: CommitContext) -> None:
    insert(graph, {STAFF: staff(["before"])})
    before = graph.manifest.load()
    cut = cutting(graph, "__manifest", "_versions/*.manifest", at=1, dies=False)
    with failpoints.armed("table_commit.lost_acknowledgement", cut), pytest.raises(ShortFile):
        publish(graph, MAIN, [SetTag("t", before.head)], [], None)
    assert again(graph).manifest.load() == graph.manifest.load() == before
    assert publish(graph, MAIN, [SetTag("t", before.head)], [], None).tags == {"t": before.head}


@pytest.mark.parametrize("pattern", ["data/*.lance", "_versions/*.manifest"])
def test_what_a_dead_writer_left_short_is_not_rolled_forward(graph: CommitContext, pattern: str) -> None:
    """It dies between the commit of its table and the look at what was written."""
    insert(graph, {STAFF: staff(["before"])})
    prepared = write(graph, {STAFF: staff(["ada"])})
    cut = cutting(graph, graph.manifest.load().by_key[STAFF].path, pattern, at=1, dies=True)
    with failpoints.armed("table_commit.lost_acknowledgement", cut), pytest.raises(Stopped):
        execute(graph, prepared)
    fresh = again(graph)
    assert [recovery.recovery_kind for recovery in heal(fresh)] == ["RolledBack"]
    assert ids(fresh, STAFF) == ["before"]
    insert(fresh, {STAFF: staff(["after"])})
    assert ids(again(graph), STAFF) == ["after", "before"]
    assert_mended(graph)
