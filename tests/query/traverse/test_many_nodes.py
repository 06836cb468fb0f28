"""A graph that is large enough for the ways small ones never take: adjacency, bridges, scans of targets, compiled search."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np
import pytest

import omnigraph as og
from omnigraph.language.query.ir import Direction
from omnigraph.query.limits import Budget, Limits
from omnigraph.query.traverse import count_paths, csr
from omnigraph.query.traverse import reach as bfs
from omnigraph.query.traverse.loops import compiled
from tests.query.loading import append

SCHEMA = """
node N { k: String @key age: I32 }
node Club { k: String @key }
edge To: N -> N
edge In: N -> Club
"""
NODES, EDGES, CLUBS = 3000, 12_000, 20


@dataclass(frozen=True)
class Large:
    graph: og.Graph
    ages: dict[str, int]
    ends: dict[str, set[str]]
    clubs: dict[str, set[str]]


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Large:
    random = Random(5)
    ages = {f"n{number}": random.randint(0, 90) for number in range(NODES)}
    ends: dict[str, set[str]] = defaultdict(set)
    clubs: dict[str, set[str]] = defaultdict(set)
    documents: list[dict[str, object]] = [{"type": "N", "data": {"k": key, "age": age}} for key, age in ages.items()]
    documents += [{"type": "Club", "data": {"k": f"c{number}"}} for number in range(CLUBS)]
    for _ in range(EDGES):
        tail, head = f"n{random.randrange(NODES)}", f"n{random.randrange(NODES)}"
        ends[tail].add(head)
        documents.append({"edge": "To", "from": tail, "to": head})
    for key in ages:
        club = f"c{random.randrange(CLUBS)}"
        clubs[key].add(club)
        documents.append({"edge": "In", "from": key, "to": club})
    graph = og.init(tmp_path_factory.mktemp("large") / "g", SCHEMA)
    append(graph, documents)
    graph.ensure_indices()
    return Large(graph, ages, ends, clubs)


def one(large: Large, source: str) -> int:
    value: int = next(iter(large.graph.query(source).rows[0].values()))
    return value


def test_two_hops_are_counted(large: Large, mode: str) -> None:
    expected = sum(len(large.ends[end]) for ends in list(large.ends.values()) for end in ends)
    assert one(large, "query q() { match { $a: N $a to $b $b to $c } return { count($c) as n } }") == expected


def test_two_hops_are_counted_with_conditions(large: Large, mode: str) -> None:
    old = {key for key, age in large.ages.items() if age > 25}
    expected = sum(
        len(large.ends[end] & old) for ends in list(large.ends.values()) for end in ends if large.ages[end] < 50
    )
    source = "query q() { match { $a: N $a to $b $b to $c $b.age < 50 $c.age > 25 } return { count($c) as n } }"
    assert one(large, source) == expected


def test_groups_across_types(large: Large, mode: str) -> None:
    expected: Counter[str] = Counter()
    total: Counter[str] = Counter()
    for key, ends in large.ends.items():
        for end in ends:
            for club in large.clubs[end]:
                expected[club] += 1
                total[club] += large.ages[key]
    source = "query q() { match { $a: N $a to $b $b in $c } return { $c.k, count($a) as n, sum($a.age) as s } }"
    found = {row["c.k"]: (row["n"], row["s"]) for row in large.graph.query(source).rows}
    assert found == {club: (expected[club], float(total[club])) for club in expected}


COUNTED_BACK = [
    ('$a: N exists { $a in $c $c.k = "c3" }', lambda large, key: "c3" in large.clubs[key]),
    ('$a: N not { $a to $b $b in $c $c.k = "c3" }', lambda large, key: not _followed_in(large, key, "c3")),
    ('$a: N count { $a to $b $b in $c $c.k = "c3" } = 2', lambda large, key: len(_followed_in(large, key, "c3")) == 2),
]


def _followed_in(large: Large, key: str, club: str) -> list[str]:
    return [end for end in large.ends.get(key, ()) if club in large.clubs[end]]


@pytest.mark.parametrize(("block", "holds"), COUNTED_BACK, ids=["exists", "not", "count"])
def test_few_ends_are_counted_from_their_side(
    large: Large, block: str, holds: Callable[[Large, str], bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The costs are set so that turning the adjacency is free and any number of edges counts as many."""
    monkeypatch.setenv("OMNIGRAPH_TRAVERSAL_MODE", "csr")
    monkeypatch.setattr(count_paths, "_PER_EDGE_TURNED", 0.0)
    monkeypatch.setattr(count_paths, "_MANY_EDGES", 1)
    taken = []
    back = count_paths._Edges._back

    def counted(*given: Any) -> object:
        taken.append(1)
        return back(*given)

    monkeypatch.setattr(count_paths._Edges, "_back", counted)
    expected = sorted(key for key in large.ages if holds(large, key))
    found = large.graph.query(f"match {{ {block} }} return {{ $a.k }} order {{ $a.k }}").rows
    assert [row["a.k"] for row in found] == expected
    assert taken


def test_the_most_followed_are_ordered(large: Large) -> None:
    degrees = Counter(end for ends in large.ends.values() for end in ends)
    expected = sorted(degrees.items(), key=lambda item: (-item[1], item[0]))[:5]
    source = "query q() { match { $a: N $a to $b } return { $b.k, count($a) as n } order { n desc, $b.k asc } limit 5 }"
    assert [(row["b.k"], row["n"]) for row in large.graph.query(source).rows] == expected


@pytest.mark.parametrize(("least", "most"), [(1, 2), (2, 3), (1, 6)])
def test_the_compiled_search_is_the_plain_one(large: Large, least: int, most: int) -> None:
    table = large.graph.snapshot().open("edge:To")
    from omnigraph.query.traverse.csr import read_edge_graph

    graph = read_edge_graph(table, same_type=True)
    sources = np.arange(-1, 60)
    budget = Budget(Limits())
    everything = 2**62
    for direction in Direction:
        adjacency = graph.adjacency(direction)
        bounds = (adjacency.starts, adjacency.indices, sources, least, most)
        plain = bfs._plain(adjacency, sources, least, most, budget, everything)
        counts, ends = plain.counts, plain.ends
        fast_counts, fast_ends, done = compiled("search_each", *bounds, True, everything, budget.stop)
        assert done == plain.done == len(sources)
        assert (counts == fast_counts).all()
        only_counts, nothing, _ = compiled("search_each", *bounds, False, everything, budget.stop)
        assert (counts == only_counts).all()
        assert not len(nothing)
        splits = np.cumsum(counts)[:-1]
        for slow, fast in zip(np.split(ends, splits), np.split(fast_ends, splits), strict=True):
            assert (np.sort(slow) == np.sort(fast)).all()


def test_the_compiled_adjacency_is_the_plain_one(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(3)
    tails, heads = (random.integers(0, 40, 3000).astype(np.int32) for _ in range(2))
    monkeypatch.setattr(csr, "is_worth_compiling", lambda loop, steps: True)
    fast = csr.build_adjacency(tails, heads, 50, 45)
    monkeypatch.setattr(csr, "is_worth_compiling", lambda loop, steps: False)
    plain = csr.build_adjacency(tails, heads, 50, 45)
    assert fast.parallel is not None
    assert plain.parallel is not None
    for one, other in ((fast.starts, plain.starts), (fast.indices, plain.indices), (fast.parallel, plain.parallel)):
        assert one.dtype == other.dtype
        assert (one == other).all()
    assert (plain.ends == np.unique(heads)).all()


def test_threads_share_a_handle(large: Large) -> None:
    source = "query q($k: String) { match { $a: N { k: $k } $a to{1,2} $b } return { count($b) as n } }"
    keys = [f"n{number}" for number in range(40)]
    alone = [large.graph.query(source, params={"k": key}).rows for key in keys]
    with ThreadPoolExecutor(8) as threads:
        together = list(threads.map(lambda key: large.graph.query(source, params={"k": key}).rows, keys))
    assert together == alone


def test_branches_share_the_adjacency_of_a_shared_table(large: Large, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMNIGRAPH_TRAVERSAL_MODE", "csr")
    source = "query q() { match { $a: N $a in $c } return { count($c) as n } }"
    large.graph.query(source)
    kept = len(large.graph._caches.graphs)
    large.graph.create_branch("shared")
    assert large.graph.query(source, branch="shared").rows == [{"n": NODES}]
    assert len(large.graph._caches.graphs) == kept


def test_explain_shows_what_is_used(large: Large) -> None:
    lookup = large.graph.explain('query q() { match { $a: N { k: "n1" } } return { $a.age } }')
    assert "lookup by id" in lookup.steps
    assert "id_btree (BTREE)" in lookup.steps
    analyzed = large.graph.explain("query q() { match { $a: N $a.age > 80 } return { $a.k } }", analyze=True)
    expected = sum(age > 80 for age in large.ages.values())
    assert "pushed: $a.age > 80" in analyzed.steps
    assert f"NodeScan  {expected} rows" in analyzed.steps


def test_a_limit_reads_no_more_than_it_needs(large: Large) -> None:
    assert len(large.graph.query("query q() { match { $a: N } return { $a.k } limit 7 }")) == 7


def test_control_c_while_compiled_code_packs_its_results(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compiled code says SystemError when a signal lands in its first or last steps; who pressed Ctrl-C gets Ctrl-C."""
    from omnigraph.query.traverse import compiled as loops

    def interrupted(*arguments: object) -> None:
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt as interrupt:
            raise SystemError("returned a result with an exception set") from interrupt

    def broken(*arguments: object) -> None:
        raise SystemError("of its own")

    monkeypatch.setattr(loops, "search_each", interrupted)
    with pytest.raises(KeyboardInterrupt):
        compiled("search_each")
    monkeypatch.setattr(loops, "search_each", broken)
    with pytest.raises(SystemError, match="of its own"):
        compiled("search_each")
