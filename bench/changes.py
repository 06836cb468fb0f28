"""Differences and history: a small change in a large graph, and reads far down a chain of branches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial

import lance

import omnigraph
from bench.measure import Floor, Row, benchmark, in_turn, scratch_folder
from bench.mutation_graphs import Sized, call
from omnigraph.graph.history import ReadTarget

SIZE = 1_000_000
CHANGED = 10
DIFF_GOAL = 0.1
#: Four times the commits may take five times as long.
FEED_COMMITS = 400
FEED_GROWTH = 5
DEPTH = 32
DEPTH_GOAL = 1.3
_ROUNDS = 15

_LOOK_UP = "query one($h: String) { match { $s: Staff { handle: $h } } return { $s.handle, $s.level } }"
_COUNT = "query above($n: I32) { match { $s: Staff $s.level > $n } return { count($s) as total } }"


@benchmark("changes.diff")
def small_differences() -> Iterator[Row]:
    """The difference of two commits that differ in a few of many rows: on one line, after compaction, across branches."""
    with scratch_folder() as folder:
        graph = Sized(SIZE, folder).graph
        graph.ensure_indices()
        before = graph.head()
        for number in range(CHANGED):
            call(graph, "relevel", h=f"s{number * (SIZE // CHANGED):07}", n=77)
        after = graph.head()
        assert graph.diff(before, after).stats.updates == CHANGED
        old, new = (graph.snapshot(at=commit.id).open("node:Staff").dataset for commit in (before, after))

        def bare() -> int:
            delta = lance.dataset(new.uri, version=new.version).delta(compared_against=old.version)
            inserted = delta.get_inserted_rows().read_all()
            return int(delta.get_updated_rows().read_all().num_rows + inserted.num_rows)

        ours, floor = in_turn([lambda: _expect(graph, before, after), bare], _ROUNDS)
        what = f"diff of two commits, {CHANGED} of {SIZE:,} rows"
        yield Row(what, ours, Floor("Lance's delta, later images only", floor), goal=DIFF_GOAL)
        (page,) = in_turn([lambda: graph.commit_changes(after.id, limit=1000)], _ROUNDS)
        yield Row(f"changes of one commit, 1 of {SIZE:,} rows", page, goal=DIFF_GOAL)
        graph.create_branch("feature")
        for number in range(CHANGED):
            call(graph.at("feature"), "relevel", h=f"s{number * (SIZE // CHANGED):07}", n=78)
        (across,) = in_turn([lambda: _expect(graph, "main", "feature")], _ROUNDS)
        yield Row(f"diff of two branches, {CHANGED} of {SIZE:,} rows", across, goal=DIFF_GOAL)
        graph.optimize()
        assert graph.head() != after
        (compacted,) = in_turn([lambda: _expect(graph, before, "main")], _ROUNDS)
        yield Row(f"the same across a compaction, {CHANGED} of {SIZE:,} rows", compacted)


def _expect(graph: omnigraph.Graph, before: ReadTarget, after: ReadTarget) -> None:
    changes = graph.diff(before, after).changes
    assert sum(1 for _ in changes) == CHANGED


@benchmark("changes.feed")
def feed_from_the_beginning() -> Iterator[Row]:
    """The change feed over many small commits: its cost for a commit is the same after 100 commits and after 400."""
    with scratch_folder() as folder:
        graph = omnigraph.init(folder / "feed", "node Staff { handle: String @key  level: I32? }")
        put = "query put($h: String, $n: I32) { insert Staff { handle: $h, level: $n } }"
        few: Floor | None = None
        for commits in (FEED_COMMITS // 4, FEED_COMMITS):
            for number in range(len(graph.commits()) - 1, commits):
                graph.mutate(put, params={"h": f"s{number:07}", "n": number})
            (measured,) = in_turn([lambda: _follow(graph)], 5)
            goal = None if few is None else FEED_GROWTH * few.measure.median
            yield Row(f"changes from the beginning, {commits} commits", measured, few, goal=goal)
            few = Floor(f"{commits} commits", measured)


def _follow(graph: omnigraph.Graph) -> int:
    page = graph.changes(start="beginning")
    told = len(page.blocks)
    while page.next_page_token is not None or not page.caught_up:
        page = graph.changes(cursor=page.cursor, page_token=page.next_page_token)
        told += len(page.blocks)
    return told


@benchmark("changes.depth")
def deep_branches() -> Iterator[Row]:
    """Reads on a branch at the end of a chain of branches, each of which has written, next to the same reads on main."""
    with scratch_folder() as folder:
        graph = Sized(100_000, folder).graph
        graph.ensure_indices()
        base = "main"
        for level in range(DEPTH):
            graph.create_branch(f"level-{level}", base=base)
            base = f"level-{level}"
            call(graph.at(base), "relevel", h=f"s{level:07}", n=5)
            # Main gets the same rows, so that both have as many fragments.
            call(graph, "relevel", h=f"s{level:07}", n=5)
        deep = graph.at(base)
        for what, source, params in (
            ("a look-up", _LOOK_UP, {"h": "s0050000"}),
            ("a filter over all rows", _COUNT, {"n": 3}),
        ):
            asked = [partial(_rows, handle, source, params) for handle in (graph, deep)]
            on_main, on_branch = in_turn(asked, _ROUNDS * 4)
            assert _rows(graph, source, params) == _rows(deep, source, params)
            floor = Floor("on main", on_main)
            yield Row(f"{what}, {DEPTH} branches deep", on_branch, floor, goal=DEPTH_GOAL * on_main.median)


def _rows(graph: omnigraph.Graph, source: str, params: Mapping[str, object]) -> list[dict[str, object]]:
    return graph.query(source, params=params).rows
