"""A selection as arrays: nodes are positions, edges are pairs of positions, adjacency is compressed sparse rows.
Nodes are numbered by type name, then by id. Results follow this order, here and on Spark.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.algorithms.selection import Direction, Selection
from omnigraph.errors import BadRequest
from omnigraph.query.caches import Caches
from omnigraph.query.limits import Budget
from omnigraph.query.rows import Integers, Narrow
from omnigraph.query.scan.entities import Entities
from omnigraph.query.traverse.csr import Adjacency, build_adjacency
from omnigraph.query.traverse.domain import positions_in

Floats = npt.NDArray[np.float64]
Made = TypeVar("Made")

#: The most bytes per edge, and per node, of the arrays while an algorithm runs.
BYTES_PER_EDGE = 48
BYTES_PER_NODE = 160
#: Reading one edge takes about as long as so many steps of a loop.
_STEPS_PER_ROW = 40


@dataclass(frozen=True, slots=True)
class Csr:
    """The neighbours of position i are `indices[starts[i]:starts[i + 1]]`; parallel edges occur several times.
    `weights`: the weight of each entry; None when every edge weighs 1.
    """

    starts: Integers
    indices: Narrow
    weights: Floats | None


@dataclass(eq=False)
class CompactGraph:
    """The nodes of several types and the edges between them."""

    #: The name and the sorted ids of each type, in the order of the names.
    nodes: tuple[tuple[str, pa.Array], ...]
    tails: Narrow
    heads: Narrow
    weights: Floats | None
    _made: dict[str, object] = field(default_factory=dict)
    _lock: threading.RLock = field(default_factory=threading.RLock)

    @property
    def size(self) -> int:
        """How many nodes there are."""
        return sum(len(ids) for _, ids in self.nodes)

    @property
    def nbytes(self) -> int:
        """An upper bound of its bytes, including all adjacency that may be made of it."""
        return (
            BYTES_PER_EDGE * len(self.tails)
            + BYTES_PER_NODE * self.size
            + sum(int(ids.nbytes) for _, ids in self.nodes)
        )

    def csr(self, direction: Direction) -> Csr:
        """The neighbours of every node in a direction; a self-loop occurs once."""

        def make() -> Csr:
            from omnigraph.algorithms import kernels

            tails, heads, weights = self.tails, self.heads, self.weights
            if direction == "in":
                tails, heads = heads, tails
            elif direction == "both":
                turned = tails != heads
                tails, heads = np.concatenate([tails, heads[turned]]), np.concatenate([heads, tails[turned]])
                weights = None if weights is None else np.concatenate([weights, weights[turned]])
            return Csr(*kernels.group(tails, heads, weights, self.size))

        return self._kept(f"csr {direction}", make)

    def simple(self, direction: Direction = "both") -> Adjacency:
        """The distinct neighbours of every node, sorted; with "both", without self-loops."""

        def make() -> Adjacency:
            tails, heads = (self.heads, self.tails) if direction == "in" else (self.tails, self.heads)
            if direction == "both":
                apart = tails != heads
                tails, heads = (
                    np.concatenate([tails[apart], heads[apart]]),
                    np.concatenate([heads[apart], tails[apart]]),
                )
            return build_adjacency(tails, heads, self.size, self.size)

        return self._kept(f"simple {direction}", make)

    def simple_with_loops(self) -> Adjacency:
        """The distinct neighbours of every node in both directions, sorted, with self-loops."""
        return self._kept(
            "simple with loops",
            lambda: build_adjacency(
                np.concatenate([self.tails, self.heads]),
                np.concatenate([self.heads, self.tails]),
                self.size,
                self.size,
            ),
        )

    def _kept(self, name: str, make: Callable[[], Made]) -> Made:
        with self._lock:
            if name not in self._made:
                self._made[name] = make()
            return cast("Made", self._made[name])

    def position(self, type_name: str, node_id: str) -> int | None:
        """The position of a node; None when there is no node with this id."""
        offset = 0
        for name, ids in self.nodes:
            if name == type_name:
                place = int(positions_in(ids, pa.array([node_id], pa.string()))[0])
                return None if place < 0 else offset + place
            offset += len(ids)
        return None


def compact_graph(selection: Selection, caches: Caches, budget: Budget) -> CompactGraph:
    """The arrays of a selection; cached by the versions of the tables, as long as there is room."""
    nodes, edges = selection.node_tables(), selection.edge_tables()
    identities = tuple(tuple(each.table.identity) for each in (*nodes, *edges))
    key = ("compact", identities, selection.weight)
    steps = _STEPS_PER_ROW * (selection.node_count + selection.edge_count)
    made = caches.compact.get_or_make(
        key, lambda: budget.patiently(lambda: _read(nodes, edges, selection.weight, budget), steps)
    )
    return cast("CompactGraph", made)


def needed_bytes(selection: Selection) -> int:
    """The most bytes that an algorithm over a selection takes."""
    return BYTES_PER_EDGE * selection.edge_count + BYTES_PER_NODE * selection.node_count


def _read(nodes: list[Entities], edges: list[Entities], weight: str | None, budget: Budget) -> CompactGraph:
    listed: dict[str, tuple[int, pa.Array]] = {}
    offset = 0
    for each in nodes:
        budget.check()
        ids = each.table.read(["id"])["id"].combine_chunks()
        ids = ids.take(pc.sort_indices(ids))
        listed[each.entity.name] = (offset, ids)
        offset += len(ids)
    if offset >= 2**31:
        raise BadRequest(f'{offset:,} nodes are too many for one process; use engine="spark"')
    tails: list[Narrow] = []
    heads: list[Narrow] = []
    weights: list[Floats] = []
    for each in edges:
        budget.check()
        stored = None if weight is None else each.stored[weight]
        rows = each.table.read(["src", "dst", *([stored] if stored else [])])
        tail, head = (
            _positions(listed[end], rows[column])
            for end, column in ((each.entity.from_type, "src"), (each.entity.to_type, "dst"))  # type: ignore[union-attr]
        )
        tails.append(tail)
        heads.append(head)
        if weight is not None:
            weights.append(_weights(each.entity.name, weight, rows, stored))
    return CompactGraph(
        tuple((name, ids) for name, (_, ids) in listed.items()),
        np.concatenate([*tails, np.zeros(0, np.int32)]),
        np.concatenate([*heads, np.zeros(0, np.int32)]),
        None if weight is None else np.concatenate([*weights, np.zeros(0, np.float64)]),
    )


def _positions(end: tuple[int, pa.Array], column: pa.ChunkedArray) -> Narrow:
    offset, ids = end
    return (positions_in(ids, column) + offset).astype(np.int32)


def _weights(edge: str, weight: str, rows: pa.Table, stored: str | None) -> Floats:
    """The weights of edges; raises BadRequest when one is missing or not finite."""
    missing = rows.num_rows if stored is None else rows[stored].null_count
    if missing:
        raise BadRequest(
            f"{missing:,} of the {rows.num_rows:,} {edge} edges have no '{weight}'; give them one, or choose other edges"
        )
    values = pc.cast(rows[stored], pa.float64()).to_numpy() if rows.num_rows else np.zeros(0, np.float64)
    if not np.isfinite(values).all():
        raise BadRequest(f"'{edge}.{weight}' has values that are not finite; an algorithm can not count with them")
    return np.ascontiguousarray(values, np.float64)
