"""Reading many commits in order gives what reading each of them on its own gives, at a cost that follows the commits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.changes.along import ROWS_AHEAD, Along, Appended
from omnigraph.changes.diff import moved_tables
from omnigraph.changes.filter import Filter
from omnigraph.commit.history import state_of, states_along

SCHEMA = """
node Staff { handle: String @key  level: I32?  tags: [String]? }
node Doc { title: String @key  content: Blob? }
edge Mentors: Staff -> Staff { since: Date? }
"""
QUERIES = """
query put($h: String, $l: I32) { insert Staff { handle: $h, level: $l } }
query link($a: String, $b: String) { insert Mentors { from: $a, to: $b } }
query up($h: String, $l: I32) { update Staff set { level: $l } where handle = $h }
query drop($h: String) { delete Staff where handle = $h }
query doc($t: String, $c: Blob) { insert Doc { title: $t, content: $c } }
"""


def do(graph: og.Graph, name: str, branch: str = "main", **params: Any) -> None:
    graph.mutate(QUERIES, name, params, branch=branch)


def fed(graph: og.Graph, branch: str = "main", **options: Any) -> list[dict[str, Any]]:
    """The feed from its beginning, page by page, with the parts of a commit put together."""
    blocks: list[dict[str, Any]] = []
    asked: dict[str, Any] = {"start": "beginning"}
    while True:
        page = graph.changes(branch, **asked, **options)
        for block in (block.to_dict() for block in page.blocks):
            if blocks and blocks[-1]["cause"] == block["cause"]:
                blocks[-1]["changes"] += block["changes"]
            else:
                blocks.append(block)
        if page.next_page_token is not None:
            asked = {"page_token": page.next_page_token}
        elif page.caught_up:
            return blocks
        else:
            asked = {"cursor": page.cursor}


def one_by_one(graph: og.Graph, branch: str = "main") -> list[dict[str, Any]]:
    """The same from each commit on its own, along first parents."""
    found = []
    commit = graph.head(branch)
    while commit.parent is not None:
        if commit.kind != "init":
            found.append(graph.commit_changes(commit.id).to_dict())
        commit = graph.commit(commit.parent)
    return found[::-1]


@pytest.fixture
def varied(tmp_path: Path) -> og.Graph:
    """A history with everything in it that is not a plain insert."""
    graph = og.init(tmp_path / "graph", SCHEMA)
    for number in range(12):
        do(graph, "put", h=f"s{number:02}", l=number)
        if number % 4 == 3:
            do(graph, "up", h=f"s{number - 2:02}", l=-number)
            do(graph, "link", a=f"s{number:02}", b=f"s{number - 1:02}")
    graph.tag("early")
    do(graph, "doc", t="one", c="base64:AAEC")
    do(graph, "drop", h="s00")
    graph.create_branch("side")
    do(graph, "put", branch="side", h="side", l=1)
    do(graph, "put", branch="side", h="x" * 400, l=1)
    do(graph, "put", h="main", l=1)
    graph.merge("side")
    graph.optimize()
    rows = [{"type": "Staff", "data": {"handle": f"many{number:03}", "level": number}} for number in range(200)]
    graph.load(rows)
    graph.load([*rows[:20], {"type": "Staff", "data": {"handle": "new"}}], mode="merge")
    for number in range(8):
        do(graph, "put", h=f"t{number:02}", l=number)
        do(graph, "put", branch="side", h=f"u{number:02}", l=number)
    return graph


@pytest.mark.parametrize("branch", ["main", "side"])
def test_the_feed_is_what_each_commit_says(varied: og.Graph, branch: str) -> None:
    expected = one_by_one(varied, branch)
    assert fed(varied, branch) == expected
    assert fed(varied, branch, limit=3, max_commits=7) == expected
    assert fed(og.open(varied.uri, "ro"), branch, max_commits=1) == expected


def test_after_a_schema_change(varied: og.Graph) -> None:
    """Names are those of the time of each commit; rows are not read ahead across a change of the schema."""
    before = fed(varied)
    varied.delete_branch("side")
    wider = SCHEMA.replace("level: I32?", 'rank: I32? @rename_from("level")\n  note: String?')
    varied.apply_schema(wider)
    done = varied.head()
    varied.mutate('query q() { insert Staff { handle: "last", rank: 3, note: "n" } }')
    page = varied.changes(start="beginning", limit=8192)
    assert [block.to_dict() for block in page.blocks] == before
    with pytest.raises(og.errors.ChangeSchemaBoundary, match=done.id):
        varied.changes(cursor=page.cursor)
    (last,) = varied.changes(start=f"after:{done.id}").blocks
    assert last.changes[0].after == {"handle": "last", "rank": 3, "tags": None, "note": "n"}


def test_states_are_those_of_each_commit(varied: og.Graph) -> None:
    context = varied._context
    commits = [commit for commit in reversed(varied.commits()) if commit.branch == "main"]
    single = [state_of(context.manifest, commit) for commit in commits]
    joined = 0
    for place in range(1, len(commits)):
        for state, expected in zip(
            states_along(context.manifest, single[place - 1], commits[place:]), single[place:], strict=False
        ):
            joined += 1
            assert (state.head, state.commit_version) == (expected.head, expected.commit_version)
            assert (state.tables, state.schema_hash, state.fence) == (
                expected.tables,
                expected.schema_hash,
                expected.fence,
            )
    assert joined > 2 * len(commits), "several are read together"


def test_a_commit_that_also_deletes_is_not_taken_for_an_insert(varied: og.Graph) -> None:
    """Its rows may all be there still, and the count of rows is as after an insert."""
    do(varied, "put", h="gone", l=1)
    varied.create_branch("swap")
    do(varied, "drop", branch="swap", h="gone")
    do(varied, "put", branch="swap", h="n1", l=1)
    do(varied, "put", branch="swap", h="n2", l=1)
    do(varied, "put", h="meanwhile", l=1)
    varied.merge("swap")
    commit = varied.head()
    (block,) = varied.changes(start=f"after:{commit.parent}").blocks
    assert sorted((change.op, change.id) for change in block.changes) == [
        ("delete", "gone"),
        ("insert", "n1"),
        ("insert", "n2"),
    ]


def test_what_is_read_follows_the_commits(tmp_path: Path) -> None:
    """Not their number times the number of fragments: states are read in runs, rows from the newest version."""
    graph = og.init(tmp_path / "graph", SCHEMA)
    for number in range(60):
        do(graph, "put", h=f"s{number:02}", l=number)
    reader = og.open(graph.uri, "ro")
    manifest, tables = reader._context.manifest, reader._context.tables
    before = manifest.scans
    assert len(reader.changes(start="beginning").blocks) == 60
    assert manifest.scans - before <= 5
    assert len(tables._handles) <= 2


def test_rows_are_read_ahead_within_bounds(tmp_path: Path) -> None:
    graph = og.init(tmp_path / "graph", "node N { k: I32 @key }")
    graph.load([{"type": "N", "data": {"k": number}} for number in range(ROWS_AHEAD + 1)])
    graph.load([{"type": "N", "data": {"k": -1 - number}} for number in range(100)])
    context, commits = graph._context, list(reversed(graph.commits()))[1:]
    along = Along(context, commits, context.manifest.load())
    deltas = []
    for commit in commits:
        before, after = along.states(commit)
        (pair,) = moved_tables(before, after, Filter(None, None, None), after)
        deltas.append(along.delta(pair, before, after))
    assert [isinstance(delta, Appended) for delta in deltas] == [False, True]
    assert [delta.candidates for delta in deltas] == [ROWS_AHEAD + 1, 100]
    page = graph.changes(start="beginning", limit=8192)
    assert page.next_page_token is not None
    assert len(fed(graph, limit=8192)[0]["changes"]) == ROWS_AHEAD + 1
