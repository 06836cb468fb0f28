"""What cleanup takes is a gap of the feed; what is tagged stays."""

from __future__ import annotations

from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.errors import ChangeFeedGap, HistoricalVersionReclaimed
from tests.changes.applying import applied, content, told
from tests.changes.test_commit_changes import made
from tests.mutation.org_graph import call, ids, org_graph


@pytest.fixture
def graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> og.Graph:
    monkeypatch.setenv("OMNIGRAPH_FEED_RETENTION", "0s")
    return org_graph(tmp_path / "g")


@pytest.mark.row("CHG-32", "CHG-33")
def test_a_gap_and_the_way_on(graph: og.Graph, row: list[str]) -> None:
    cursor = graph.changes().cursor
    lost = made(call(graph, "put", "eve", 1))
    for number in range(4):
        call(graph, "relevel", "ben", number)
    graph.cleanup(keep=1)
    fresh = og.open(graph.uri)
    with pytest.raises(ChangeFeedGap) as caught:
        fresh.changes(cursor=cursor)
    assert (caught.value.cursor, caught.value.first_unreadable_commit) == (cursor, lost)
    with pytest.raises(ChangeFeedGap) as caught:
        fresh.commit_changes(lost)
    assert (caught.value.cursor, caught.value.first_unreadable_commit) == (None, lost)
    baseline = fresh.baseline()
    before = content(fresh)
    later = made(call(fresh, "drop_staff", "ada"))
    page = fresh.changes(cursor=baseline.cursor)
    assert [block.commit.id for block in page.blocks] == [later]
    assert applied(before, page.blocks[0].changes) == content(fresh)


def test_a_tagged_commit_stays_readable(graph: og.Graph) -> None:
    graph.create_branch("b")
    call(graph, "put", "eve", 1, branch="b")
    graph.tag("on-b", "b")
    # Not where the branch starts, which stays for the sake of the branch.
    call(graph, "put", "zoe", 1)
    tagged = graph.tag("start")
    for number in range(4):
        call(graph, "relevel", "ben", number)
        call(graph, "drop_staff", ["ada", "cleo", "dov", "ben"][number])
        call(graph, "relevel", "eve", number, branch="b")
    graph.cleanup(keep=1)
    fresh = og.open(graph.uri)
    assert ids(fresh, "node:Staff", at="start") == ["ada", "ben", "cleo", "dov", "zoe"]
    assert "eve" in ids(fresh, "node:Staff", at="on-b")
    assert [change[0] for change in told(fresh.diff("start", types="Staff").changes)] == ["delete"] * 4
    fresh.delete_tag("start")
    fresh.cleanup(keep=1)
    with pytest.raises(HistoricalVersionReclaimed):
        og.open(graph.uri).diff(tagged)
