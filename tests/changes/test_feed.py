"""Section 15: the change feed of a branch."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import omnigraph as og
from omnigraph.changes.feed import Block, FeedPage
from omnigraph.errors import BadRequest, BranchNotFound, ChangeCursorRejected, ChangeFeedGap, ResourceLimit
from tests.changes.applying import applied, content, told
from tests.changes.test_commit_changes import THREE, made, reclaim
from tests.mutation.org_graph import call, org_graph


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    return org_graph(tmp_path / "g")


def followed(graph: og.Graph, branch: str | None = None, **options: Any) -> tuple[list[Block], FeedPage]:
    """All pages of one poll as blocks, parts of a commit put together; and the last page."""
    limits = {name: value for name, value in options.items() if name in ("limit", "kinds", "types", "ops")}
    page = graph.changes(branch, **options)
    blocks = list(page.blocks)
    while page.next_page_token is not None:
        assert (page.cursor, page.caught_up) == (None, None)
        page = graph.changes(branch, page_token=page.next_page_token, **limits)
        for block in page.blocks:
            if blocks and blocks[-1].commit == block.commit:
                blocks[-1] = Block(block.commit, [*blocks[-1].changes, *block.changes])
            else:
                blocks.append(block)
    assert page.cursor is not None
    return blocks, page


def short(blocks: Any) -> list[tuple[str, list[str]]]:
    return [(block.commit.id, [change.id for change in block.changes]) for block in blocks]


@pytest.mark.row("CHG-24")
def test_a_poll_goes_through_a_fixed_window(graph: og.Graph, row: list[str]) -> None:
    start = graph.changes(start="now")
    assert (start.blocks, start.caught_up, start.next_page_token) == ([], True, None)
    a = made(graph.mutate(THREE))
    b = made(call(graph, "put_link", "D", 1, "A"))
    first = graph.changes(cursor=start.cursor, limit=2)
    assert short(first.blocks) == [(a, ["A", "B"])]
    assert (first.cursor, first.caught_up) == (None, None)
    assert first.next_page_token is not None
    later = made(call(graph, "put", "E", 1))
    second = graph.changes(page_token=first.next_page_token, limit=2)
    assert short(second.blocks) == [(a, ["C"]), (b, ["D"])]
    third = graph.changes(page_token=second.next_page_token, limit=2)
    assert [block.commit.id for block in third.blocks] == [b]
    assert (third.caught_up, third.next_page_token) == (False, None)
    rest = graph.changes(cursor=third.cursor)
    assert (short(rest.blocks), rest.caught_up) == ([(later, ["E"])], True)
    assert graph.changes(cursor=rest.cursor).blocks == []
    shape = second.to_dict()
    assert set(shape) == {"blocks", "next_page_token"}
    assert shape["blocks"][0]["cause"]["graph_commit_id"] == a
    assert set(third.to_dict()) == {"blocks", "cursor", "caught_up"}


@pytest.mark.row("CHG-25")
def test_where_a_feed_starts(graph: og.Graph, row: list[str]) -> None:
    x = made(call(graph, "put", "x", 1))
    y = made(call(graph, "put", "y", 1))
    oldest_first = [commit.id for commit in reversed(graph.commits()) if commit.kind != "init"]
    blocks, page = followed(graph, start="beginning")
    assert [block.commit.id for block in blocks] == oldest_first
    assert page.caught_up is True
    state: Any = {}
    for block in blocks:
        state = applied(state, block.changes)
    assert state == content(graph)
    assert short(followed(graph, start=f"after:{x}")[0]) == [(y, ["y"])]
    assert followed(graph, start=f"after:{y}")[0] == []
    genesis = graph.commits()[-1]
    assert len(followed(graph, start=f"after:{genesis.id}")[0]) == len(oldest_first)
    for unknown in ("01J00000000000000000000009", "", "nonsense", "' or 1=1", "\ud800"):
        with pytest.raises(ChangeCursorRejected) as caught:
            graph.changes(start=f"after:{unknown}")
        assert caught.value.reason == "unknown_commit"
    for nonsense in ("later", "", "after", "Now"):
        with pytest.raises(BadRequest, match="is no start of a feed"):
            graph.changes(start=nonsense)


@pytest.mark.row("CHG-26")
def test_a_branch_tells_what_it_inherited(graph: og.Graph, row: list[str]) -> None:
    graph.create_branch("b")
    own = made(call(graph, "put", "eve", 1, branch="b"))
    call(graph, "put", "not-here", 1)
    blocks, page = followed(graph, "b", start="beginning")
    assert [block.to_dict()["cause"]["authored_branch"] for block in blocks] == [None, "b"]
    assert (blocks[-1].commit.id, blocks[-1].commit.branch) == (own, "b")
    assert page.caught_up
    assert short(graph.at("b").changes(start="beginning").blocks) == short(blocks)
    fork_point = blocks[0].commit.id
    assert short(followed(graph, "b", start=f"after:{fork_point}")[0]) == [(own, ["eve"])]


@pytest.mark.row("CHG-27")
def test_a_merge_is_one_block(graph: og.Graph, row: list[str]) -> None:
    cursor = graph.changes().cursor
    graph.create_branch("b")
    call(graph, "put", "eve", 1, branch="b")
    theirs = made(call(graph, "relevel", "ben", 1, branch="b"))
    ours = made(call(graph, "put", "fay", 1))
    merged = graph.merge("b").commit
    assert merged is not None
    blocks, _ = followed(graph, cursor=cursor)
    assert [block.commit.id for block in blocks] == [ours, merged.id]
    assert told(blocks[1].changes) == [("update", "node:Staff", "ben"), ("insert", "node:Staff", "eve")]
    assert blocks[1].to_dict()["cause"]["merged_parent_commit_id"] == theirs
    # A commit that came in by the merge is in the history, but not in what this branch tells.
    with pytest.raises(ChangeCursorRejected):
        graph.changes(start=f"after:{theirs}")


@pytest.mark.row("CHG-29")
def test_a_ceiling_of_commits(graph: og.Graph, row: list[str]) -> None:
    for number in range(5):
        call(graph, "put", f"x{number}", number)
    every, _ = followed(graph, start="beginning")
    for ceiling in (1, 2, 4, 6, 7, 512):
        page = graph.changes(start="beginning", max_commits=ceiling)
        blocks = list(page.blocks)
        assert len(page.blocks) <= ceiling
        while not page.caught_up:
            page = graph.changes(cursor=page.cursor, max_commits=ceiling)
            assert 0 < len(page.blocks) <= ceiling
            blocks += page.blocks
        assert short(blocks) == short(every)
    wrong: Any
    for wrong in (0, -1, "2", True):
        with pytest.raises(BadRequest):
            graph.changes(max_commits=wrong)
    with pytest.raises(ResourceLimit):
        graph.changes(max_commits=513)
    with pytest.raises(ResourceLimit) as caught:
        graph.changes(limit=8193)
    assert caught.value.limit == 8192


@pytest.mark.row("CHG-30")
def test_cursors_that_do_not_fit(graph: og.Graph, tmp_path: Path, row: list[str]) -> None:
    graph.create_branch("b")
    cursor = graph.changes("b", types="Staff").cursor
    call(graph, "put", "eve", 1, branch="b")
    call(graph, "put", "fay", 1, branch="b")
    page_token = graph.changes("b", cursor=cursor, types="Staff", limit=1).next_page_token
    commit_token = graph.commit_changes(made(graph.mutate(THREE)), limit=1).next_page_token
    other = org_graph(tmp_path / "other")
    other.create_branch("b")

    def reason(graph: og.Graph, branch: str, **options: Any) -> str:
        with pytest.raises(ChangeCursorRejected, match="change cursor rejected") as caught:
            graph.changes(branch, **options)
        return caught.value.reason

    for which in ("cursor", "page_token"):
        token = {"cursor": cursor, "page_token": page_token}[which]
        assert reason(graph, "main", types="Staff", **{which: token}) == "other_branch"
        assert reason(graph, "b", **{which: token}) == "other_filter"
        assert reason(graph, "b", types="Staff", ops="delete", **{which: token}) == "other_filter"
        assert reason(other, "b", types="Staff", **{which: token}) == "other_graph"
        assert reason(graph, "b", types="Staff", **{which: "garbage"}) == "malformed"
        assert reason(graph, "b", **{which: commit_token}) == "wrong_kind"
    assert reason(graph, "b", types="Staff", cursor=page_token) == "wrong_kind"
    assert reason(graph, "b", types="Staff", page_token=cursor) == "wrong_kind"
    several: list[dict[str, Any]] = [{"cursor": cursor, "start": "now"}, {"cursor": cursor, "page_token": page_token}]
    for two in several:
        with pytest.raises(BadRequest, match="not several"):
            graph.changes("b", types="Staff", **two)
    graph.delete_branch("b")
    with pytest.raises(BranchNotFound):
        graph.changes("b", types="Staff", cursor=cursor)
    graph.create_branch("b")
    assert reason(graph, "b", types="Staff", cursor=cursor) == "recreated_branch"
    assert reason(og.open(graph.uri, mode="ro"), "b", types="Staff", page_token=page_token) == "recreated_branch"


@pytest.mark.row("CHG-32")
def test_a_gap_is_said(graph: og.Graph, row: list[str]) -> None:
    cursor = graph.changes().cursor
    lost = made(call(graph, "put", "eve", 1))
    page_token = None
    kept = made(graph.mutate(THREE))
    page_token = graph.changes(cursor=cursor, limit=2).next_page_token
    reclaim(graph)
    fresh = og.open(graph.uri)
    with pytest.raises(ChangeFeedGap) as caught:
        fresh.changes(cursor=cursor)
    assert (caught.value.cursor, caught.value.first_unreadable_commit) == (cursor, lost)
    with pytest.raises(ChangeFeedGap) as caught:
        fresh.changes(page_token=page_token)
    assert (caught.value.cursor, caught.value.first_unreadable_commit) == (None, kept)
    with pytest.raises(ChangeFeedGap) as caught:
        fresh.changes(start="beginning")
    assert caught.value.cursor is None
    # Nothing is missing for those who have seen all that is gone.
    call(fresh, "put", "gus", 1)
    assert [change.id for block in fresh.changes(start=f"after:{kept}").blocks for change in block.changes] == ["gus"]


def test_commits_before_a_gap_are_told_first(graph: og.Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    cursor = graph.changes().cursor
    one = made(call(graph, "put", "eve", 1))
    two = made(call(graph, "hire", "cleo", "core"))
    lost = graph.snapshot(at=two).entry("edge:MemberOf")
    call(graph, "put", "fay", 1)
    graph._context.tables.forget(lost.location)
    original = graph._context.tables.open_dataset

    def without(location: Any, version: int | None = None) -> Any:
        if (location, version) == (lost.location, lost.version):
            return original(location, 99)
        return original(location, version)

    monkeypatch.setattr(graph._context.tables, "open_dataset", without)
    page = graph.changes(cursor=cursor)
    assert ([block.commit.id for block in page.blocks], page.caught_up) == ([one], False)
    with pytest.raises(ChangeFeedGap) as caught:
        graph.changes(cursor=page.cursor)
    assert (caught.value.cursor, caught.value.first_unreadable_commit) == (page.cursor, two)


def test_filters_keep_the_blocks(graph: og.Graph) -> None:
    cursor = graph.changes(types="Staff", ops=["insert"]).cursor
    call(graph, "put_link", "eve", 1, "ada")
    call(graph, "hire", "cleo", "core")
    call(graph, "relevel", "eve", 2)
    page = graph.changes(cursor=cursor, types=["Staff"], ops="insert")
    assert [[change.id for change in block.changes] for block in page.blocks] == [["eve"], [], []]
    with pytest.raises(BadRequest, match="unknown type"):
        graph.changes(types="Nothing")


def test_derived_state_is_an_empty_block(graph: og.Graph) -> None:
    cursor = graph.changes().cursor
    graph.ensure_indices()
    page = graph.changes(cursor=cursor)
    assert short(page.blocks) == [(graph.head().id, [])]


def test_a_tag_is_no_news(graph: og.Graph) -> None:
    cursor = graph.changes().cursor
    graph.tag("v1")
    page = graph.changes(cursor=cursor)
    assert (page.blocks, page.caught_up) == ([], True)


def test_a_poll_reads_only_newer_history(graph: og.Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(20):
        call(graph, "put", f"x{number}", number)
    cursor = graph.changes().cursor
    call(graph, "put", "new", 1)
    read = []
    manifest = graph._context.manifest
    original = manifest._read_commits

    def counted(*given: Any) -> Any:
        read.append(found := original(*given))
        return found

    monkeypatch.setattr(manifest, "_read_commits", counted)
    assert len(graph.changes(cursor=cursor).blocks) == 1
    assert max(map(len, read)) == 1


def test_cursors_outlive_the_process_and_compaction_of_the_manifest(graph: og.Graph) -> None:
    cursor = graph.changes().cursor
    for number in range(30):
        call(graph, "relevel", "ben", number)
    fresh = og.open(graph.uri, mode="ro")
    assert len(followed(fresh, cursor=cursor)[0]) == 30


# --- laws -------------------------------------------------------------------------------------------------------------

NAMES = ["ada", "ben", "eve", "zoë"]
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.sampled_from(NAMES), st.integers(0, 3)),
        st.tuples(st.just("drop_staff"), st.sampled_from(NAMES)),
        st.tuples(st.just("put_link"), st.sampled_from(NAMES), st.integers(0, 3), st.sampled_from(NAMES)),
    ),
    min_size=1,
    max_size=5,
)


@settings(max_examples=15, deadline=None)
@given(steps=STEPS, limits=st.lists(st.integers(1, 6), min_size=1, max_size=3), ceiling=st.integers(1, 4))
def test_any_paging_tells_the_same(steps: Any, limits: list[int], ceiling: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        graph = org_graph(Path(folder) / "g")
        for name, *values in steps:
            try:
                call(graph, name, *values)
            except og.OmnigraphError:
                continue
        whole, _ = followed(graph, start="beginning")
        by_commit = [(commit.id, graph.commit_changes(commit.id)) for commit in graph.commits()[-2::-1]]
        assert [(block.commit.id, list(block.changes)) for block in whole] == [
            (commit, list(page.changes)) for commit, page in by_commit
        ]
        for limit in limits:
            blocks, page = followed(graph, start="beginning", limit=limit, max_commits=ceiling)
            while not page.caught_up:
                more, page = followed(graph, cursor=page.cursor, limit=limit, max_commits=ceiling)
                blocks += more
            assert short(blocks) == short(whole)
        state: Any = {}
        for block in whole:
            state = applied(state, block.changes)
        assert state == content(graph)
