"""Adjacency in memory: who is connected to whom along one edge type, as compressed sparse rows over dense positions."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.language.query.ir import Direction
from omnigraph.query.cache import Key, identity_of
from omnigraph.query.domain import SortedIds, sorted_ids
from omnigraph.query.rows import Integers
from omnigraph.storage.tables.table import Table

Narrow = npt.NDArray[np.int32]


@dataclass(frozen=True)
class Adjacency:
    """The neighbours of position i are `indices[starts[i]:starts[i + 1]]`, sorted, each once.

    `parallel` says how many edges stand behind each of them; None when it is always one.
    """

    starts: Integers
    indices: Narrow
    parallel: Narrow | None
    size: int

    @property
    def sources(self) -> int:
        """How many positions have neighbours or could have."""
        return len(self.starts) - 1

    def degrees(self, sources: Integers) -> Integers:
        """How many neighbours some positions have; a position of -1 has none."""
        safe = np.maximum(sources, 0)
        if not self.sources:
            return np.zeros(len(sources), np.int64)
        return np.where(sources >= 0, self.starts[safe + 1] - self.starts[safe], 0)

    def _is_everything(self, sources: Integers) -> bool:
        return len(sources) == self.sources and bool((sources == np.arange(len(sources))).all())

    def slots(self, sources: Integers) -> tuple[Integers, Integers]:
        """For each source its number of neighbours, and for all of them, one after the other, their places in `indices`."""
        if self._is_everything(sources):
            return np.diff(self.starts), np.arange(int(self.starts[-1]))
        counts = self.degrees(sources)
        begins = np.where(sources >= 0, self.starts[np.maximum(sources, 0)], 0) if len(sources) else counts
        ends = np.cumsum(counts)
        total = int(ends[-1]) if len(ends) else 0
        shift = np.repeat(begins - (ends - counts), counts)
        return counts, np.arange(total) + shift


@dataclass
class EdgeGraph:
    """The edges of one type over the domains of their ends, with the adjacency of each direction made on first use."""

    sources: SortedIds
    targets: SortedIds
    tails: Integers
    heads: Integers
    _made: dict[Direction, Adjacency] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def domain_from(self, direction: Direction) -> SortedIds:
        """Where a step in this direction starts."""
        return self.targets if direction is Direction.IN else self.sources

    def domain_to(self, direction: Direction) -> SortedIds:
        """Where it leads."""
        return self.sources if direction is Direction.IN else self.targets

    def adjacency(self, direction: Direction) -> Adjacency:
        """The neighbours seen in one direction."""
        with self._lock:
            if direction not in self._made:
                self._made[direction] = self._make(direction)
            return self._made[direction]

    def _make(self, direction: Direction) -> Adjacency:
        size, reach = len(self.domain_from(direction).ids), len(self.domain_to(direction).ids)
        match direction:
            case Direction.OUT:
                return build_adjacency(self.tails, self.heads, size, reach)
            case Direction.IN:
                return build_adjacency(self.heads, self.tails, size, reach)
            case Direction.BOTH:
                # A self-loop looks the same from both ends and is one edge.
                turned = self.tails != self.heads
                tails = np.concatenate([self.tails, self.heads[turned]])
                heads = np.concatenate([self.heads, self.tails[turned]])
                return build_adjacency(tails, heads, size, reach)


def build_adjacency(tails: Integers, heads: Integers, size: int, reach: int) -> Adjacency:
    """Sort edges by their tail, then head, and count those that are parallel."""
    codes, parallel = np.unique(tails * max(reach, 1) + heads, return_counts=True)
    owners, indices = np.divmod(codes, max(reach, 1))
    starts = np.zeros(size + 1, np.int64)
    np.cumsum(np.bincount(owners, minlength=size), out=starts[1:])
    single = bool((parallel == 1).all())
    return Adjacency(starts, indices.astype(np.int32), None if single else parallel.astype(np.int32), reach)


def edge_graph(key: Key, sources: pa.ChunkedArray, targets: pa.ChunkedArray, same_type: bool) -> EdgeGraph:
    """The graph of some edges, given as columns of ids."""
    if same_type:
        ids = sorted_ids((*key, "ends"), sources, targets)
        return EdgeGraph(ids, ids, ids.positions(sources), ids.positions(targets))
    from_ids, to_ids = sorted_ids((*key, "src"), sources), sorted_ids((*key, "dst"), targets)
    return EdgeGraph(from_ids, to_ids, from_ids.positions(sources), to_ids.positions(targets))


def read_edge_graph(table: Table, same_type: bool) -> EdgeGraph:
    """The graph of a whole edge table."""
    ends = table.read(["src", "dst"])
    return edge_graph(identity_of(table), ends["src"], ends["dst"], same_type)
