"""One step of a traversal in dense positions: from each source, all ends within the bounds of the step."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from omnigraph.language.query.ir import EdgePattern
from omnigraph.query.bfs import search
from omnigraph.query.csr import Adjacency, sums_of
from omnigraph.query.rows import Integers, Mask

#: Up to so many positions are told apart one by one, or not at all.
_FEW = 64
#: From this part of a domain on, a mark for each of its positions costs less than sorting some.
_DENSE = 24


@dataclass(frozen=True)
class Reached:
    """The ends of each source, one source after the other: `counts` of them each.

    `slots` are their places in the adjacency when the step has one hop and starts from some positions only.
    """

    counts: Integers
    ends: Integers
    slots: Integers | None = None

    def keep(self, mask: Mask) -> Reached:
        """Only the ends for which the mask holds."""
        owners = np.repeat(np.arange(len(self.counts)), self.counts)[mask]
        counts = np.bincount(owners, minlength=len(self.counts)).astype(np.int64)
        return Reached(counts, self.ends[mask], None if self.slots is None else self.slots[mask])

    def spread(self, rows: Integers | None) -> tuple[Integers, Integers]:
        """For rows that start at these sources: the row of each result, and the place of its end in `ends`.

        None when each source is that of one row, in order.
        """
        if rows is None:
            return np.repeat(np.arange(len(self.counts)), self.counts), np.arange(len(self.ends))
        counts = self.counts[rows]
        begins = (np.cumsum(self.counts) - self.counts)[rows]
        ends = np.cumsum(counts)
        total = int(ends[-1]) if len(ends) else 0
        places = np.arange(total) + np.repeat(begins - (ends - counts), counts)
        return np.repeat(np.arange(len(rows)), counts), places

    def sums(self, values: Integers) -> Integers:
        """The sum of one value per end, for each source."""
        return sums_of(values, self.counts)


def reach(adjacency: Adjacency, edge: EdgePattern, sources: Integers) -> Reached:
    """All ends within the bounds of a step; sources are distinct and ascending unless they are few, and -1 has none."""
    if edge.max_hops == 1:
        if adjacency.is_everything(sources):
            return Reached(np.diff(adjacency.starts), adjacency.indices)
        counts, slots = adjacency.slots(sources)
        return Reached(counts, adjacency.indices[slots], slots)
    counts, ends = search(adjacency, sources, edge.min_hops, edge.max_hops)
    return Reached(counts, ends)


def slots_of(reached: Reached) -> Integers:
    """The places of the ends, which are known."""
    assert reached.slots is not None
    return reached.slots


def is_few(positions: Integers, edge: EdgePattern) -> bool:
    """Whether positions are followed as they are: to find those that are the same would take longer."""
    return edge.max_hops == 1 and len(positions) <= _FEW


def distinct(positions: Integers, size: int) -> tuple[Integers, Integers]:
    """The distinct positions in a domain of this size, ascending, and for each position its place among them."""
    if len(positions) == 1:
        return positions, np.zeros(1, np.int64)
    if len(positions) <= _FEW:
        # numpy takes longer to begin than this does to end.
        each = sorted(set(positions.tolist()))
        place = {position: number for number, position in enumerate(each)}
        return np.array(each, np.int64), np.array([place[position] for position in positions.tolist()], np.int64)
    if len(positions) * _DENSE < size:
        found, inverse = np.unique(positions, return_inverse=True)
        return found, np.asarray(inverse, dtype=np.int64)
    # The first mark is that of -1.
    marks = np.zeros(size + 1, np.bool_)
    marks[positions + 1] = True
    places = np.cumsum(marks) - 1
    return np.flatnonzero(marks) - 1, places[positions + 1]


def marked(positions: Integers, size: int) -> Integers:
    """The distinct positions in a domain of this size, ascending; none of them is -1."""
    if len(positions) * _DENSE < size:
        return np.unique(positions)
    marks = np.zeros(size, np.bool_)
    marks[positions] = True
    return np.flatnonzero(marks)
