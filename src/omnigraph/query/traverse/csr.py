"""Adjacency in memory: the connected positions along one edge type, as compressed sparse rows."""

from __future__ import annotations

import threading
from bisect import bisect_left
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.language.query.ir import Direction
from omnigraph.query.cache import Key
from omnigraph.query.rows import Integers, Narrow, is_all_in_order
from omnigraph.query.traverse.domain import SortedIds, numbered_ids
from omnigraph.query.traverse.loops import compiled, is_worth_compiling
from omnigraph.storage.tables.table import Table


@dataclass(frozen=True)
class Adjacency:
    """The neighbours of position i are `indices[starts[i]:starts[i + 1]]`, sorted, each once.
    `parallel`: the number of parallel edges to each neighbour; None when it is always 1. `size`: how many positions the targets
    have.
    """

    starts: Integers
    indices: Narrow
    parallel: Narrow | None
    size: int

    @property
    def nbytes(self) -> int:
        """How much memory it takes."""
        return self.starts.nbytes + self.indices.nbytes + (0 if self.parallel is None else self.parallel.nbytes)

    @cached_property
    def ends(self) -> Integers:
        """The target positions with an incoming edge, ascending."""
        marks = np.zeros(self.size, np.bool_)
        marks[self.indices] = True
        return np.flatnonzero(marks)

    @property
    def sources(self) -> int:
        """The number of source positions, with or without neighbours."""
        return len(self.starts) - 1

    def degrees(self, sources: Integers) -> Integers:
        """The number of neighbours of each position; 0 for -1."""
        return self.begins_and_counts(sources)[1]

    def begins_and_counts(self, sources: Integers) -> tuple[Integers, Integers]:
        """For each position the place of its first neighbour in `indices`, and the number of its neighbours."""
        begins = self.starts[sources]
        # For -1, `starts[-1]` is the last and `starts[0]` the first entry: the difference is not positive.
        return begins, np.maximum(self.starts[sources + 1] - begins, 0)

    def is_everything(self, sources: Integers) -> bool:
        """Whether `sources` are all source positions, in order."""
        return is_all_in_order(sources, self.sources)

    def slots(self, sources: Integers) -> tuple[Integers, Integers]:
        """The number of neighbours of each source, and the places of all neighbours in `indices`, source by source."""
        begins, counts = self.begins_and_counts(sources)
        return counts, slots_from(begins, counts, counts.cumsum())


def slots_from(begins: Integers, counts: Integers, ends: Integers) -> Integers:
    """The places of runs of neighbours: run i begins at `begins[i]` with length `counts[i]`; `ends` = cumsum(counts)."""
    total = int(ends[-1]) if len(ends) else 0
    shift = (begins - (ends - counts)).repeat(counts)
    return np.asarray(np.arange(total) + shift)


def sums_of(values: Integers, counts: Integers) -> Integers:
    """The sum of each owner's values; the values stand owner by owner, `counts[i]` of them for owner i."""
    owners = counts > 0
    sums = np.zeros(len(counts), np.int64)
    if owners.any():
        sums[owners] = np.add.reduceat(values, (np.cumsum(counts) - counts)[owners], dtype=np.int64)
    return sums


@dataclass
class EdgeGraph:
    """The edges of one type as positions in two domains; the adjacency of each direction is made on first use."""

    sources: SortedIds
    targets: SortedIds
    tails: Narrow
    heads: Narrow
    _made: dict[Direction, Adjacency] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def nbytes(self) -> int:
        """The bytes in memory, with the adjacency that was made so far."""
        made = sum(adjacency.nbytes for adjacency in list(self._made.values()))
        return self.tails.nbytes + self.heads.nbytes + self.sources.nbytes + self.targets.nbytes + made

    def domain_from(self, direction: Direction) -> SortedIds:
        """The domain of the nodes from which a step in this direction starts."""
        return self.targets if direction is Direction.IN else self.sources

    def domain_to(self, direction: Direction) -> SortedIds:
        """The domain of the nodes to which a step in this direction leads."""
        return self.sources if direction is Direction.IN else self.targets

    def adjacency(self, direction: Direction) -> Adjacency:
        """The adjacency of a direction, made on first use."""
        with self._lock:
            if direction not in self._made:
                self._made[direction] = self._make(direction)
            return self._made[direction]

    def is_made(self, direction: Direction) -> bool:
        """Whether the adjacency of a direction has been made."""
        return direction in self._made

    def _make(self, direction: Direction) -> Adjacency:
        size, reach = len(self.domain_from(direction).ids), len(self.domain_to(direction).ids)
        match direction:
            case Direction.OUT:
                return build_adjacency(self.tails, self.heads, size, reach)
            case Direction.IN:
                return build_adjacency(self.heads, self.tails, size, reach)
            case Direction.BOTH:
                # A self-loop is the same from both ends and counts once.
                turned = self.tails != self.heads
                tails = np.concatenate([self.tails, self.heads[turned]])
                heads = np.concatenate([self.heads, self.tails[turned]])
                return build_adjacency(tails, heads, size, reach)


def build_adjacency(tails: Integers, heads: Integers, size: int, reach: int) -> Adjacency:
    """The adjacency of edges: sorted by tail, then head, with parallel edges counted."""
    if is_worth_compiling("group_edges", len(tails)):
        starts, indices, parallel = compiled("group_edges", tails, heads, size, reach)
    else:
        codes, parallel = np.unique(tails.astype(np.int64) * max(reach, 1) + heads, return_counts=True)
        owners, indices = np.divmod(codes, max(reach, 1))
        starts = np.zeros(size + 1, np.int64)
        np.cumsum(np.bincount(owners, minlength=size), out=starts[1:])
    single = len(indices) == len(tails)
    return Adjacency(starts, indices.astype(np.int32), None if single else parallel.astype(np.int32), reach)


def edge_graph(key: Key, sources: pa.ChunkedArray, targets: pa.ChunkedArray, same_type: bool) -> EdgeGraph:
    """The graph of edges that are given as two columns of ids."""
    if same_type:
        ids, (tails, heads) = numbered_ids((*key, "ends"), sources, targets)
        return EdgeGraph(ids, ids, tails, heads)
    from_ids, (tails,) = numbered_ids((*key, "src"), sources)
    to_ids, (heads,) = numbered_ids((*key, "dst"), targets)
    return EdgeGraph(from_ids, to_ids, tails, heads)


def read_edge_graph(table: Table, same_type: bool) -> EdgeGraph:
    """The graph of a whole edge table."""
    ends = table.read(["src", "dst"])
    return edge_graph(table.identity, ends["src"], ends["dst"], same_type)


@dataclass(frozen=True)
class Followed:
    """The adjacency that a step follows, and the domains of its two ends.
    In a graph of several node types, the positions of the source's type begin at `first` and those of the target's type at
    `last`; in a graph of one edge type both are 0.
    """

    adjacency: Adjacency
    source: SortedIds
    target: SortedIds
    first: int = 0
    last: int = 0
    #: Whether the adjacency leads to nodes of other types too.
    mixed: bool = False

    def inside(self, positions: Integers) -> Integers:
        """Positions in the source domain as positions in the adjacency; -1 stays -1."""
        return positions if not self.first else np.where(positions < 0, positions, positions + self.first)

    @property
    def ends(self) -> Integers:
        """All positions in the target domain to which the adjacency may lead."""
        return np.arange(len(self.target.ids)) if self.mixed else self.adjacency.ends


@dataclass
class MixedGraph:
    """The edges of several types; the positions of the nodes are grouped by node type."""

    graph: EdgeGraph
    #: The first position of each node type, and the ids of its nodes.
    types: dict[str, tuple[int, SortedIds]]

    @property
    def nbytes(self) -> int:
        """How much memory it takes."""
        return self.graph.nbytes + sum(ids.nbytes for _, ids in self.types.values())

    def followed(self, ends: tuple[str, str]) -> Followed:
        """What a step between two node types follows."""
        nothing = (0, SortedIds(("nothing",), pa.array([], pa.string())))
        first, source = self.types.get(ends[0], nothing)
        last, target = self.types.get(ends[1], nothing)
        return Followed(self.graph.adjacency(Direction.OUT), source, target, first, last, mixed=True)


def mixed_graph(key: Key, parts: list[tuple[str, pa.ChunkedArray, str, pa.ChunkedArray]]) -> MixedGraph:
    """The graph of edges between several node types; each part is (source type, source ids, target type, target ids)."""
    tails = [_qualified(kind, ids) for kind, ids, _, _ in parts]
    heads = [_qualified(kind, ids) for _, _, kind, ids in parts]
    graph = edge_graph(key, _one_column(tails), _one_column(heads), same_type=True)
    types: dict[str, tuple[int, SortedIds]] = {}
    for kind in sorted({kind for first, _, last, _ in parts for kind in (first, last)}):
        prefix = kind + _SEPARATOR
        low, high = _range(graph.sources, prefix)
        ids = pc.utf8_slice_codeunits(graph.sources.ids.slice(low, high - low), len(prefix))
        types[kind] = (low, SortedIds((*key, kind), ids))
    return MixedGraph(graph, types)


#: Separates type name and id. Smaller than any character of a name, so that sorting keeps the nodes of a type together.
_SEPARATOR = "\0"


def _qualified(kind: str, ids: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.binary_join_element_wise(pa.scalar(kind), ids, pa.scalar(_SEPARATOR))


def _one_column(columns: list[pa.ChunkedArray]) -> pa.ChunkedArray:
    return pa.chunked_array([chunk for column in columns for chunk in column.chunks], pa.string())


def _range(domain: SortedIds, prefix: str) -> tuple[int, int]:
    """The range (first position, end position) of the ids that begin with the prefix, a type name with separator."""
    low, high = prefix.encode(), prefix[:-1].encode() + b"\1"
    places = range(len(domain.ids))
    return bisect_left(places, low, key=domain.text), bisect_left(places, high, key=domain.text)
