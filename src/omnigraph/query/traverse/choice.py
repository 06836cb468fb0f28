"""How edges are followed: through the index on their ends, or through adjacency in memory. Both give the same answers.
Following the index reads only the edges at the frontier into a small graph; from there on both ways use the same code.
"""

from __future__ import annotations

import os

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import BadRequest
from omnigraph.language.query.ir import Direction, EdgePattern
from omnigraph.language.schema.catalog import EdgeType
from omnigraph.query.cache import LOOKUP, PER_ID
from omnigraph.query.rows import Integers, Values
from omnigraph.query.run import Run
from omnigraph.query.scan.entities import Entities
from omnigraph.query.traverse.csr import EdgeGraph, Followed, MixedGraph, edge_graph, mixed_graph
from omnigraph.query.traverse.domain import SortedIds, passing_key
from omnigraph.query.traverse.points import Points, is_passing
from omnigraph.values.columns import whole

MODE_VARIABLE = "OMNIGRAPH_TRAVERSAL_MODE"
INDEXED, CSR = "indexed", "csr"

#: The cost of each edge of an adjacency that must be built; this is the unit of costs.
_PER_EDGE = 1.0
#: Reading an edge takes about as long as so many steps of a loop.
_STEPS_PER_EDGE = 80

#: The edge columns that hold the ends from which a step in a direction starts.
START_COLUMNS = {Direction.OUT: ("src",), Direction.IN: ("dst",), Direction.BOTH: ("src", "dst")}
_OTHER = {"src": "dst", "dst": "src"}


def forced_mode() -> str | None:
    """The traversal mode set by the environment variable, or None."""
    mode = os.environ.get(MODE_VARIABLE) or None
    if mode not in (None, "auto", INDEXED, CSR):
        raise BadRequest(f"{MODE_VARIABLE} is '{mode}'; it can be {INDEXED} or {CSR}")
    return None if mode == "auto" else mode


def graph_for(edge: EdgePattern, start: Points, run: Run) -> EdgeGraph:
    """A graph with at least the edges within reach of the start nodes."""
    edges = run.edges(edge.edge_type)
    mode = forced_mode()
    known = None if mode == INDEXED else run.caches.known_edge_graph(edges.table)
    if known is not None:
        run.note(f"traversal: {CSR}")
        return known
    if mode != CSR and (mode == INDEXED or _affordable(edges, edge, start.count, run)):
        nearby = _nearby(edges, edge, start.ids, run, bounded=mode is None)
        if nearby is not None:
            run.note(f"traversal: {INDEXED}")
            return nearby
    run.note(f"traversal: {CSR}")
    return run.caches.edge_graph(edges.table, is_same_type(edges), edges.rows, run.budget)


def followed_by(edge: EdgePattern, start: Points, run: Run) -> Followed:
    """The adjacency that a step from these nodes follows, with the domains of its ends."""
    if edge.alternatives:
        return _mixed(edge, run)
    graph = graph_for(edge, start, run)
    direction = edge.direction
    return Followed(graph.adjacency(direction), graph.domain_from(direction), graph.domain_to(direction))


def _mixed(edge: EdgePattern, run: Run) -> Followed:
    """The adjacency of several edge types; it is cached."""
    run.note(f"traversal: {CSR}")
    assert edge.ends is not None
    tables = [(run.edges(name), direction) for name, direction in edge.alternatives]
    # A single hop needs only the edges between its two types; the directions in the key keep such graphs apart.
    key = ("mixed", *(part for edges, direction in tables for part in (*edges.table.identity, direction.value)))

    def make() -> MixedGraph:
        parts = []
        for edges, direction in tables:
            declared = edges.entity
            assert isinstance(declared, EdgeType)
            columns = edges.table.read(["src", "dst"])
            out = (declared.from_type, columns["src"], declared.to_type, columns["dst"])
            if direction is not Direction.IN:
                parts.append(out)
            if direction is not Direction.OUT:
                parts.append((out[2], out[3], out[0], out[1]))
        return mixed_graph(key, parts)

    steps = _STEPS_PER_EDGE * sum(edges.rows for edges, _ in tables)
    graph = run.caches.mixed.get_or_make(key, lambda: run.budget.patiently(make, steps))
    return graph.followed(edge.ends)


def count_ends(edge: EdgePattern, domain: SortedIds, run: Run) -> None:
    """Count the look-up by id of ends that were found through the index as a part of the cost of following it."""
    if is_passing(domain):
        cost = LOOKUP + PER_ID * len(domain.ids)
        run.caches.spending.add(run.edges(edge.edge_type).table.identity, cost)


def is_same_type(edges: Entities) -> bool:
    """Whether both ends of an edge are of one type, so that edges can be chained."""
    assert isinstance(edges.entity, EdgeType)
    return edges.entity.from_type == edges.entity.to_type


def _affordable(edges: Entities, edge: EdgePattern, frontier: int, run: Run) -> bool:
    """Whether following the index costs less than building the adjacency, which is not in memory yet."""
    if not _is_indexed(edges, edge.direction, run):
        return False
    return LOOKUP * min(edge.max_hops, 8) + PER_ID * frontier < _left_to_spend(edges, run)


def _left_to_spend(edges: Entities, run: Run) -> float:
    """The cost that may still be spent on the index before building the adjacency, which is then kept, is worth it."""
    return _PER_EDGE * edges.rows - run.caches.spending.of(edges.table.identity)


def _is_indexed(edges: Entities, direction: Direction, run: Run) -> bool:
    covered = {column for index in run.caches.indices(edges.table) if index.kind == "BTREE" for column in index.columns}
    return covered.issuperset(START_COLUMNS[direction])


def _nearby(edges: Entities, edge: EdgePattern, start: Values, run: Run, *, bounded: bool) -> EdgeGraph | None:
    """The edges within reach, read hop by hop; None when the frontier grows so large that building adjacency is cheaper."""
    frontier = pc.unique(start).drop_null()
    seen = frontier
    found: list[pa.Table] = []
    for hop in range(edge.max_hops):
        if not len(frontier):
            break
        if bounded and hop and PER_ID * len(frontier) > _left_to_spend(edges, run):
            return None
        reached = []
        for column in START_COLUMNS[edge.direction]:
            part = edges.table.take_by(column, frontier, ["id", "src", "dst"])
            run.caches.spending.add(edges.table.identity, LOOKUP + PER_ID * len(frontier) + part.num_rows)
            found.append(part)
            reached.append(part[_OTHER[column]])
        ends = pc.unique(pa.chunked_array([chunk for column in reached for chunk in column.chunks], pa.string()))
        frontier = ends.filter(pc.invert(pc.is_in(ends, value_set=seen)))
        seen = pa.concat_arrays([seen, frontier])
    run.note(f"index: {' and '.join(START_COLUMNS[edge.direction])} of {edges.entity.name}")
    if not found:
        found.append(pa.table({name: pa.array([], pa.string()) for name in ("id", "src", "dst")}))
    near = pa.concat_tables(found)
    first = first_of_each(near["id"])
    if first is not None:
        near = near.take(pa.array(first))
    return edge_graph(passing_key(), near["src"], near["dst"], is_same_type(edges))


def first_of_each(ids: Values) -> Integers | None:
    """The first place of each distinct id; None when no id repeats. (An edge may be found from both of its ends.)"""
    column = whole(ids)
    encoded = pc.dictionary_encode(column)
    if len(encoded.dictionary) == len(column):
        return None
    return np.asarray(pc.index_in(encoded.dictionary, value_set=column).to_numpy(), dtype=np.int64)
