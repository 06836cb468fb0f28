"""ShortestPaths: for each row the shortest path between two of its nodes, or all shortest paths.
A path is a sequence of positions, whose order is the order of the ids. The smallest of equally short paths therefore takes the
smallest next position at each step. Two searches meet in the middle: one along the edges from the source, one against the edges
from the target. With weights, the distances to the target are computed hop by hop.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.language.query.ir import VALUE, Direction, EdgePattern, ShortestPaths
from omnigraph.language.source import evaluation_error
from omnigraph.query.limits import Budget
from omnigraph.query.rows import Integers, Mask, Rows, Values, column_name
from omnigraph.query.run import Run
from omnigraph.query.scan.read import Request, read
from omnigraph.query.traverse.choice import CSR
from omnigraph.query.traverse.csr import Adjacency, EdgeGraph, edge_graph, slots_from, sums_of
from omnigraph.query.traverse.domain import SortedIds, passing_key
from omnigraph.query.traverse.points import points_of
from omnigraph.query.traverse.reach import marked
from omnigraph.values.columns import whole

#: A path as positions, its source first.
Path = tuple[int, ...]
Floats = npt.NDArray[np.float64]

#: Bytes that are charged for each node of a path.
_BYTES_PER_STEP = 16


def shortest(plan: ShortestPaths, rows: Rows, run: Run) -> Iterator[Rows]:
    """The rows whose ends are connected, each with its shortest path; with `every`, one row per shortest path."""
    nodes = run.nodes(plan.node_type)
    sources = points_of(rows, plan.source, nodes, run)
    targets = points_of(rows, plan.target, nodes, run)
    finder = _unweighted(plan, run) if plan.weight is None else _weighted(plan, run)
    starts, ends = sources.within(finder.domain, run), targets.within(finder.domain, run)
    same = pc.equal(rows.column(plan.source, "id"), rows.column(plan.target, "id"))
    stays = whole(pc.fill_null(same, False)).to_numpy(zero_copy_only=False)
    found: dict[tuple[int, int], list[Path]] = {}
    owners: list[int] = []
    paths: list[Path | None] = []
    for row in range(rows.count):
        if stays[row] and plan.edge.min_hops == 0:
            # A path of length 0 (None): its node may have no edges and then is not in the domain.
            owners.append(row)
            paths.append(None)
            continue
        pair = (int(starts[row]), int(ends[row]))
        if -1 in pair:
            continue
        if pair not in found:
            run.budget.check()
            found[pair] = finder.paths(*pair, every=plan.every)
            run.budget.charge(_BYTES_PER_STEP * sum(map(len, found[pair])))
        owners += [row] * len(found[pair])
        paths += found[pair]
    run.budget.release(_BYTES_PER_STEP * sum(len(path) for each in found.values() for path in each))
    yield _bound(plan, rows.take(np.array(owners, np.int64)), paths, finder.domain, run)


def _bound(plan: ShortestPaths, rows: Rows, paths: list[Path | None], domain: SortedIds, run: Run) -> Rows:
    """Rows with those columns of their paths (length, nodes, edges) that the plan reads."""
    columns: dict[str, Values] = {}
    names = plan.columns
    if "length" in plan.reading:
        lengths = [0 if path is None else len(path) - 1 for path in paths]
        columns[column_name(names["length"], VALUE)] = pa.array(lengths, pa.int64())
    if "nodes" in plan.reading:
        own = whole(rows.column(plan.source, "id"))
        lists = [
            [own[row].as_py()] if path is None else domain.ids.take(pa.array(path)).to_pylist()
            for row, path in enumerate(paths)
        ]
        columns[column_name(names["nodes"], VALUE)] = pa.array(lists, pa.list_(pa.string()))
    if "edges" in plan.reading:
        columns[column_name(names["edges"], VALUE)] = _edges_of(plan, paths, domain, run)
    return rows.with_columns(columns)


# --- paths of the fewest edges ----------------------------------------------------------------------------------------


def _unweighted(plan: ShortestPaths, run: Run) -> _Unweighted:
    """A finder over the whole adjacency: the extent of a search is not known in advance, and the adjacency is kept."""
    edges = run.edges(plan.edge.edge_type)
    run.note(f"traversal: {CSR}")
    graph = run.caches.edge_graph(edges.table, True, edges.rows, run.budget)
    return _Unweighted(graph, plan.edge, run.budget)


@dataclass(frozen=True)
class _Unweighted:
    """A finder of paths with the fewest edges; it searches from both ends."""

    graph: EdgeGraph
    edge: EdgePattern
    budget: Budget

    @property
    def domain(self) -> SortedIds:
        return self.graph.sources

    def paths(self, source: int, target: int, *, every: bool) -> list[Path]:
        """The smallest shortest path, or with `every` all; an empty list when its length is outside of the hop bounds."""
        least, most = max(self.edge.min_hops, 1), self.edge.max_hops
        along = self.graph.adjacency(self.edge.direction)
        if source == target:
            # A path from a node to itself exists only as a self-loop.
            return [(source, source)] if least == 1 and len(_next(along, source, np.array([source]))) else []
        found = self._levels(along, source, target, most)
        if found is None or len(found) - 1 < least:
            return []
        return list(_every(along, found, self.budget)) if every else [_smallest(along, found)]

    def _levels(self, along: Adjacency, source: int, target: int, most: int) -> list[Integers] | None:
        """For each distance from the source, the positions on shortest paths to the target, ascending.
        The first level is the source, the last the target. Every neighbour in the next level continues a shortest path. None
        when
        there is no path of at most `most` edges.
        """
        against = self.graph.adjacency(self.edge.direction.reversed)
        adjacent = (along, against)
        sides = [[np.array([source])], [np.array([target])]]
        seen = [np.zeros(along.size, np.bool_) for _ in sides]
        for marks, side in zip(seen, sides, strict=True):
            marks[side[0]] = True
        ahead = [_degrees(adjacency, side[0]) for adjacency, side in zip(adjacent, sides, strict=True)]
        while len(sides[0]) + len(sides[1]) - 2 < most:
            self.budget.check()
            turn = 0 if ahead[0] <= ahead[1] else 1
            fresh = _fresh(adjacent[turn], sides[turn][-1], seen[turn])
            if not len(fresh):
                return None
            sides[turn].append(fresh)
            ahead[turn] = _degrees(adjacent[turn], fresh)
            meeting = fresh[seen[1 - turn][fresh]]
            if len(meeting):
                # The meeting positions are all in the last level of the other search; an earlier level would have met before.
                return [*_leading_to(meeting, sides[0][:-1], adjacent), *sides[1][-2::-1]]
        return None


def _leading_to(middle: Integers, levels: list[Integers], adjacent: tuple[Adjacency, Adjacency]) -> list[Integers]:
    """The positions in each level of a search that lead on to the middle, and the middle itself as the last level."""
    along, against = adjacent
    kept = [middle]
    marks = np.zeros(along.size, np.bool_)
    for level in reversed(levels):
        marks[:] = False
        if _degrees(along, level) <= _degrees(against, kept[-1]):
            marks[kept[-1]] = True
            counts, slots = along.slots(level)
            leads = sums_of(marks[along.indices[slots]].view(np.int8), counts) > 0
        else:
            marks[against.indices[against.slots(kept[-1])[1]]] = True
            leads = marks[level]
        kept.append(level[leads])
    return kept[::-1]


def _fresh(adjacency: Adjacency, positions: Integers, seen: Mask) -> Integers:
    """The unseen neighbours of some positions, each once, ascending; they are marked as seen."""
    reached = adjacency.indices[adjacency.slots(positions)[1]]
    fresh = marked(reached[~seen[reached]].astype(np.int64), adjacency.size)
    seen[fresh] = True
    return fresh


def _degrees(adjacency: Adjacency, positions: Integers) -> int:
    return int(adjacency.degrees(positions).sum())


def _next(along: Adjacency, position: int, level: Integers) -> Integers:
    """The neighbours of a position that are in a level, ascending."""
    neighbours = along.indices[along.starts[position] : along.starts[position + 1]]
    places = np.minimum(np.searchsorted(level, neighbours), len(level) - 1)
    here: Mask = level[places] == neighbours
    return neighbours[here]


def _smallest(along: Adjacency, levels: list[Integers]) -> Path:
    path = [int(levels[0][0])]
    for level in levels[1:]:
        path.append(int(_next(along, path[-1], level)[0]))
    return tuple(path)


def _every(along: Adjacency, levels: list[Integers], budget: Budget) -> Iterator[Path]:
    """All paths through the levels, in ascending order of their positions."""
    partial: list[Path] = [(int(levels[0][0]),)]
    held = 0
    try:
        for level in levels[1:]:
            longer: list[Path] = []
            for path in partial:
                budget.check()
                ends = _next(along, path[-1], level)
                longer += [(*path, end) for end in ends.tolist()]
                held += budget.charge(_BYTES_PER_STEP * len(ends) * (len(path) + 1))
            partial = longer
        yield from partial
    finally:
        budget.release(held)


# --- paths of the smallest weight -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Weighted:
    """A finder of paths with the smallest weight: edges by tail with weights; of parallel edges only the lightest."""

    domain: SortedIds
    starts: Integers
    heads: Integers
    weights: Floats
    edge: EdgePattern
    budget: Budget

    def paths(self, source: int, target: int, *, every: bool) -> list[Path]:
        """A list with the lightest path, of equally light paths the smallest; empty when no path is within the hop bounds."""
        least, most = max(self.edge.min_hops, 1), self.edge.max_hops
        if source == target:
            # As without weights: only a self-loop.
            own = self.heads[self.starts[source] : self.starts[source + 1]]
            return [(source, source)] if least == 1 and source in own else []
        held = self.budget.held
        try:
            best = self._to(target, most)
            if not np.isfinite(best[-1][source]):
                return []
            path = self._smallest(source, target, best, min(most, len(self.domain.ids)))
            return [path] if len(path) > least else []
        finally:
            self.budget.release(self.budget.held - held)

    def _to(self, target: int, most: int) -> list[Floats]:
        """For each number of edges n, the weight of the lightest path of at most n edges from every position to the target.
        The bytes of all levels stay charged.
        """
        distances = np.full(len(self.domain.ids), np.inf)
        distances[target] = 0.0
        levels = [distances]
        owners = np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))
        while len(levels) <= most:
            self.budget.check()
            self.budget.charge(distances.nbytes)
            longer = levels[-1].copy()
            np.minimum.at(longer, owners, self.weights + levels[-1][self.heads])
            if np.array_equal(longer, levels[-1]):
                break
            levels.append(longer)
        return levels

    def _smallest(self, source: int, target: int, best: list[Floats], hops: int) -> Path:
        """The smallest of the lightest paths of at most `hops` edges, by positions; there is one."""
        path = [source]
        passed = np.zeros(len(self.domain.ids), np.bool_)
        while path[-1] != target:
            self.budget.check()
            passed[path[-1]] = True
            ends = self._lightest(np.array(path[-1:]), best, hops)
            *others, last = np.sort(ends[~passed[ends]]).tolist()
            weight = _within(best, hops)[path[-1]]
            hops -= 1
            path.append(next((end for end in others if self._leads_on(end, target, best, hops, weight, passed)), last))
        return tuple(path)

    def _leads_on(self, end: int, target: int, best: list[Floats], hops: int, weight: float, passed: Mask) -> bool:
        """Whether a lightest path goes on from a position without the passed ones, of which none has less than `weight` to go.
        Only edges that leave the weight as it is can lead back to them, so positions with less to go need no search.
        """
        seen = passed.copy()
        fresh = np.array([end])
        while len(fresh):
            self.budget.check()
            if target in fresh or bool((_within(best, hops)[fresh] < weight).any()):
                return True
            seen[fresh] = True
            ends = self._lightest(fresh, best, hops)
            fresh = np.unique(ends[~seen[ends]])
            hops -= 1
        return False

    def _lightest(self, positions: Integers, best: list[Floats], hops: int) -> Integers:
        """Where the lightest paths of at most `hops` edges go first from some positions."""
        begins = self.starts[positions]
        counts = self.starts[positions + 1] - begins
        slots = slots_from(begins, counts, counts.cumsum())
        ends = self.heads[slots]
        here, there = _within(best, hops)[positions], _within(best, hops - 1)[ends]
        lightest: Mask = self.weights[slots] + there == here.repeat(counts)
        return ends[lightest]


def _within(best: list[Floats], hops: int) -> Floats:
    """The weights of the lightest paths of at most so many edges; more edges than there are levels make no path lighter."""
    return best[min(hops, len(best) - 1)]


def _weighted(plan: ShortestPaths, run: Run) -> _Weighted:
    """A finder over the edges of a type with their weights; an edge with a null weight is not followed."""
    edges = run.edges(plan.edge.edge_type)
    assert plan.weight is not None
    found = read(Request(edges, "#edge", ("src", "dst", plan.weight)), run)
    weights = whole(found.column("#edge", plan.weight)).cast(pa.float64(), safe=False)
    known = weights.is_valid()
    graph = _graph_of(found.column("#edge", "src").filter(known), found.column("#edge", "dst").filter(known))
    values = weights.filter(known).to_numpy(zero_copy_only=False)
    unfit = values[(values < 0) | ~np.isfinite(values)]
    if len(unfit):
        message = (
            f"`shortest … by {plan.weight}` needs finite weights of at least 0; {edges.entity.name} has an edge with "
        )
        raise evaluation_error(f"{message}{float(unfit[0])}", plan.place)
    tails, heads = graph.tails.astype(np.int64), graph.heads.astype(np.int64)
    if plan.edge.direction is Direction.IN:
        tails, heads = heads, tails
    elif plan.edge.direction is Direction.BOTH:
        tails, heads, values = np.concatenate([tails, heads]), np.concatenate([heads, tails]), np.tile(values, 2)
    order = np.lexsort((values, heads, tails))
    tails, heads, values = tails[order], heads[order], values[order]
    first = np.ones(len(tails), np.bool_)
    first[1:] = (tails[1:] != tails[:-1]) | (heads[1:] != heads[:-1])
    tails, heads, values = tails[first], heads[first], values[first]
    starts = np.zeros(len(graph.sources.ids) + 1, np.int64)
    np.cumsum(np.bincount(tails, minlength=len(graph.sources.ids)), out=starts[1:])
    return _Weighted(graph.sources, starts, heads, values, plan.edge, run.budget)


def _graph_of(sources: Values, targets: Values) -> EdgeGraph:
    columns = [pa.chunked_array([whole(column)], pa.string()) for column in (sources, targets)]
    return edge_graph(passing_key(), columns[0], columns[1], same_type=True)


# --- the edges of a path ----------------------------------------------------------------------------------------------


def _edges_of(plan: ShortestPaths, paths: list[Path | None], domain: SortedIds, run: Run) -> pa.Array:
    """The ids of the edges of each path; of parallel edges the lightest, then the one with the smallest id."""
    steps = {step for path in paths if path is not None for step in pairwise(path)}
    at = pa.array(sorted({position for step in steps for position in step}), pa.int64())
    # Every edge of a path has its `src` among the nodes of the path, whichever way it is followed.
    edges = run.edges(plan.edge.edge_type)
    columns = ("id", "src", "dst", *(() if plan.weight is None else (plan.weight,)))
    found = read(Request(edges, "#edge", columns, among=("src", domain.ids.take(at))), run)
    ids = whole(found.column("#edge", "id")).to_pylist()
    tails, heads = (domain.positions(found.column("#edge", name)).tolist() for name in ("src", "dst"))
    weights = [0] * len(ids) if plan.weight is None else whole(found.column("#edge", plan.weight)).to_pylist()
    chosen: dict[tuple[int, int], tuple[float, str]] = {}
    for id_, tail, head, weight in zip(ids, tails, heads, weights, strict=True):
        ways = {Direction.OUT: ((tail, head),), Direction.IN: ((head, tail),)}
        for step in ways.get(plan.edge.direction, ((tail, head), (head, tail))):
            if step in steps and weight is not None:
                chosen[step] = min(chosen.get(step, (math.inf, "")), (float(weight), id_))
    lists = [[] if path is None else [chosen[step][1] for step in pairwise(path)] for path in paths]
    return pa.array(lists, pa.list_(pa.string()))
