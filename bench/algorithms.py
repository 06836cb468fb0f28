"""PageRank and components of the social graph, against igraph and rustworkx in one run; equal answers before times."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import numpy as np

from bench.measure import Floor, Measure, Row, benchmark, in_turn, scratch_folder
from bench.social import Social, load_social, make_social

ROUNDS = 20
REPEAT, WARM_UP = 7, 2
#: Goal: not slower than the best peer times this.
SLOWER = 1.2
_PEERS = ("igraph", "rustworkx")


@benchmark("algorithms.social")
def algorithms() -> Iterator[Row]:
    """Follows among persons: 100,000 nodes, about 2.4 million edges. Peers hold their graphs in memory, as our handle does."""
    missing = [peer for peer in _PEERS if find_spec(peer) is None]
    if missing:
        print(f"algorithms.social needs its peers: pip install {' '.join(missing)}", file=sys.stderr)
        return
    social = make_social()
    order, pairs = _positions(social)
    with scratch_folder() as folder:
        run = load_social(social, folder / "graph").algorithms
        first, second = _igraph(len(order), pairs), _rustworkx(len(order), pairs)
        ranks = [row["rank"] for row in run.pagerank(nodes=["Person"], edges=["Follows"], tolerance=1e-12)]
        _equal("PageRank", ranks, [first.pagerank()[place] for place in np.argsort(order, kind="stable")])
        ours, one, other = in_turn(
            [
                lambda: run.pagerank(nodes=["Person"], edges=["Follows"], iterations=ROUNDS, tolerance=0),
                lambda: first.pagerank(),
                lambda: second.pagerank(ROUNDS),
            ],
            REPEAT,
            warm_up=WARM_UP,
        )
        # rustworkx gives up, with an error, when it has not converged; igraph solves until it has.
        yield from _rows(f"PageRank, {ROUNDS} rounds", ours, one, other)
        found = [row["component"] for row in run.connected_components(nodes=["Person"], edges=["Follows"])]
        if len(set(found)) != first.components() or len(set(found)) != second.components():
            raise AssertionError("components: the engines disagree")
        ours, one, other = in_turn(
            [
                lambda: run.connected_components(nodes=["Person"], edges=["Follows"]),
                first.components,
                second.components,
            ],
            REPEAT,
            warm_up=WARM_UP,
        )
        yield from _rows("connected components", ours, one, other)


def _rows(what: str, ours: Measure, igraph: Measure, rustworkx: Measure) -> Iterator[Row]:
    goal = SLOWER * min(igraph.median, rustworkx.median)
    yield Row(what, ours, Floor("igraph", igraph), goal=goal)
    yield Row(what, ours, Floor("rustworkx", rustworkx), goal=goal)


def _positions(social: Social) -> tuple[list[str], np.ndarray[Any, np.dtype[np.int64]]]:
    """The keys of persons, and the follows as pairs of places among them."""
    keys = social.nodes["Person"]["key"].to_pylist()
    places = {key: place for place, key in enumerate(keys)}
    follows = social.edges["Follows"]
    ends = [[places[key] for key in follows[column].to_pylist()] for column in ("src", "dst")]
    return keys, np.array(ends, np.int64).T


class _igraph:
    def __init__(self, size: int, pairs: np.ndarray[Any, np.dtype[np.int64]]) -> None:
        import igraph

        self._graph = igraph.Graph(n=size, edges=pairs, directed=True)

    def pagerank(self) -> list[float]:
        return list(self._graph.pagerank())

    def components(self) -> int:
        return len(self._graph.connected_components(mode="weak"))


class _rustworkx:
    def __init__(self, size: int, pairs: np.ndarray[Any, np.dtype[np.int64]]) -> None:
        import rustworkx

        self._library = rustworkx
        self._graph = rustworkx.PyDiGraph()
        self._graph.add_nodes_from(range(size))
        self._graph.add_edges_from_no_data([(int(tail), int(head)) for tail, head in pairs])

    def pagerank(self, rounds: int) -> object:
        return self._library.pagerank(self._graph, max_iter=rounds, tol=1e-6)

    def components(self) -> int:
        return len(self._library.weakly_connected_components(self._graph))


def _equal(what: str, ours: list[float], theirs: list[float]) -> None:
    if not np.allclose(ours, theirs, rtol=1e-5, atol=1e-12):
        raise AssertionError(f"{what}: the engines disagree")
