"""Searches over adjacency: breadth-first search, and one step of a traversal with its hop bounds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from omnigraph.language.query.ir import EdgePattern
from omnigraph.query.limits import Budget
from omnigraph.query.rows import Integers, Mask
from omnigraph.query.traverse.csr import Adjacency, slots_from, sums_of
from omnigraph.query.traverse.loops import compiled_patiently, is_worth_compiling, without_compiling

#: How many marks (sources times positions) the plain search holds at once.
_MARKS = 16_000_000
#: The cost of the plain search in steps: so many steps per found position, and one step per so many marks to clear.
_STEPS_PER_FOUND = 8
_MARKS_PER_STEP = 64
#: The name of the compiled search.
_LOOP = "search_each"
#: A bound that no search reaches.
_ENDLESS = 2**62


@dataclass(frozen=True)
class Found:
    """The number of positions that each source reaches, and the positions, source by source; only `done` were searched."""

    counts: Integers
    ends: Integers
    done: int


def search(
    adjacency: Adjacency, sources: Integers, least: int, most: int, budget: Budget, room: int | None = None
) -> Found:
    """The positions whose shortest distance from each source is between `least` and `most` hops.
    A source reaches itself only by a self-loop, at distance 1. A source of -1 reaches nothing. The search stops after the
    source with which it exceeds `room` positions; later sources are not done.
    """
    return _search(adjacency, sources, least, most, budget, _ENDLESS if room is None else room, collect=True)


def count_reached(adjacency: Adjacency, sources: Integers, least: int, most: int, budget: Budget) -> Integers:
    """For each source how many positions `search` would find, without holding them."""
    return _search(adjacency, sources, least, most, budget, _ENDLESS, collect=False).counts


def _search(
    adjacency: Adjacency, sources: Integers, least: int, most: int, budget: Budget, room: int, *, collect: bool
) -> Found:
    most = min(most, adjacency.size + 1)
    steps = len(sources) * adjacency.size
    if is_worth_compiling(_LOOP, steps):
        # Always int64, so that the loop is compiled only once.
        wide = sources.astype(np.int64, copy=False)
        starts, indices = adjacency.starts, adjacency.indices
        counts, found, done = compiled_patiently(
            _LOOP, budget, steps, starts, indices, wide, least, most, collect, room, budget.stop
        )
        budget.check()
        return Found(counts, found, done)
    found = _plain(adjacency, sources, least, most, budget, room)
    # Each position that is found takes some steps; clearing the marks of all others is quick.
    without_compiling(_LOOP, _STEPS_PER_FOUND * int(found.counts.sum()) + steps // _MARKS_PER_STEP)
    return found


def _plain(adjacency: Adjacency, sources: Integers, least: int, most: int, budget: Budget, room: int) -> Found:
    at_once = max(1, _MARKS // max(adjacency.size, 1))
    parts: list[tuple[Integers, Integers]] = []
    done = total = 0
    while done < len(sources) and total <= room:
        budget.check()
        parts.append(_search_some(adjacency, sources[done : done + at_once], least, most))
        done = min(done + at_once, len(sources))
        total += len(parts[-1][1])
    if not parts:
        return Found(np.zeros(0, np.int64), np.zeros(0, np.int64), 0)
    counts = np.zeros(len(sources), np.int64)
    counts[:done] = np.concatenate([counts for counts, _ in parts])
    return Found(counts, np.concatenate([found for _, found in parts]), done)


def _search_some(adjacency: Adjacency, sources: Integers, least: int, most: int) -> tuple[Integers, Integers]:
    """Search from all sources together, hop by hop, with one mark for each pair (source, position)."""
    width = max(adjacency.size, 1)
    owners = np.flatnonzero(sources >= 0)
    starts = sources[owners]
    marks = np.zeros(len(sources) * width, np.bool_)
    marks[owners * width + starts] = True
    frontier, frontier_owners = starts, owners
    reached: list[Integers] = []
    for hop in range(1, most + 1):
        counts, slots = adjacency.slots(frontier)
        codes = np.repeat(frontier_owners, counts) * width + adjacency.indices[slots]
        if hop == least == 1:
            reached.append(codes[codes == np.repeat(owners * width + starts, counts)])
        fresh = _fresh(codes, marks)
        if hop >= least:
            reached.append(fresh)
        frontier_owners, frontier = np.divmod(fresh, width)
        if not len(fresh):
            break
    everything = np.sort(np.concatenate(reached)) if reached else np.zeros(0, np.int64)
    who, what = np.divmod(everything, width)
    return np.bincount(who, minlength=len(sources)).astype(np.int64), what


def _fresh(codes: Integers, marks: Mask) -> Integers:
    """The unmarked codes, each once, ascending; they are marked afterwards."""
    if len(codes) * 8 < len(marks):
        fresh = np.unique(codes[~marks[codes]])
        marks[fresh] = True
        return fresh
    # Comparing all marks is faster than sorting when there are many codes.
    before = marks.copy()
    marks[codes] = True
    return np.flatnonzero(marks & ~before)


# One step of a traversal: from each source, all ends within the hop bounds of the step.


#: Up to so many positions are deduplicated by a Python loop, or not at all.
_FEW = 64
#: For more than 1/_DENSE of the positions of a domain, a mark for each position of the domain costs less than sorting.
_DENSE = 24
#: When few rows may be enough: the least size of the first batch in rows, the number of sources that are searched first, and
#: the growth factor of each next batch.
_FIRST = 1024
_FIRST_SOURCES = 16
_GROWTH = 8
#: Bytes for each end: a finished search holds its ends twice, as found and as returned.
_BYTES_PER_END = 16


@dataclass(frozen=True)
class Reached:
    """The ends of each source, source by source: source i has `counts[i]` ends.
    `slots`: the places of the ends in the adjacency, known when the step has one hop and starts from some positions only.
    """

    counts: Integers
    ends: Integers
    slots: Integers | None = None

    def keep(self, mask: Mask) -> Reached:
        """Only the ends where the mask is true."""
        owners = np.repeat(np.arange(len(self.counts)), self.counts)[mask]
        counts = np.bincount(owners, minlength=len(self.counts)).astype(np.int64)
        return Reached(counts, self.ends[mask], None if self.slots is None else self.slots[mask])

    def spread(self, rows: Integers | None, sizes: Sizes) -> Iterator[tuple[Integers, Integers]]:
        """For rows that start at these sources: the row of each result, and the place of its end in `ends`.
        The results come in pieces, each at most as large as `sizes.next()`. `rows`: the source of each row; None when row i
        starts
        at source i.
        """
        if rows is None and len(self.ends) <= sizes.size:
            yield np.arange(len(self.counts)).repeat(self.counts), np.arange(len(self.ends))
            return
        counts = self.counts if rows is None else self.counts[rows]
        ends = np.cumsum(counts)
        total = int(ends[-1]) if len(ends) else 0
        if rows is not None and total <= sizes.size:
            begins = (np.cumsum(self.counts) - self.counts)[rows]
            yield np.arange(len(counts)).repeat(counts), np.arange(total) + (begins - (ends - counts)).repeat(counts)
            return
        begins = np.cumsum(self.counts) - self.counts
        shifts = (begins if rows is None else begins[rows]) - (ends - counts)
        low = 0
        while low < total:
            high = min(low + sizes.next(), total)
            first, last = np.searchsorted(ends, (low, high - 1), side="right")
            inside = np.arange(first, last + 1)
            some = np.minimum(ends[inside], high) - np.maximum(ends[inside] - counts[inside], low)
            yield np.repeat(inside, some), np.arange(low, high) + np.repeat(shifts[inside], some)
            low = high

    def sums(self, values: Integers) -> Integers:
        """The sum of one value per end, for each source."""
        return sums_of(values, self.counts)


class Sizes:
    """The sizes of successive batches: small at first when few rows may be enough, then growing up to the bound."""

    def __init__(self, bound: int, first: int | None = None) -> None:
        self._bound = bound
        self.size = bound if first is None else min(bound, max(first, _FIRST))

    def next(self) -> int:
        """The size of the next batch; later sizes may be larger."""
        size = self.size
        self.size = min(self._bound, size * _GROWTH)
        return size


@dataclass(frozen=True)
class Piece:
    """The ends that the rows `start` to `stop` reach. `inverse`: the source of each row; None when row i has source i.
    `whole`: there are no other pieces."""

    start: int
    stop: int
    reached: Reached
    inverse: Integers | None
    whole: bool


def reaching(
    adjacency: Adjacency, edge: EdgePattern, positions: Integers, budget: Budget, first: int | None = None
) -> Iterator[Piece]:
    """All ends within the hop bounds of a step for rows at these positions; a position of -1 has none.
    One hop has at most as many ends as there are edges, so it is one piece. Several hops may reach everything from everywhere:
    the pieces are so small that each has about as many ends as a batch has rows. `first`: about so many rows may be enough.
    """
    count = len(positions)
    if edge.max_hops == 1:
        yield Piece(0, count, *_one_hop(adjacency, positions, budget), whole=True)
        return
    start, size = 0, count if first is None else max(1, min(count, _FIRST_SOURCES))
    while True:
        stop = min(start + size, count)
        starts, inverse = distinct(positions[start:stop], adjacency.sources)
        held = budget.charge(_BYTES_PER_END * min(len(starts) * adjacency.size, budget.rows + adjacency.size))
        try:
            found = search(adjacency, starts, edge.min_hops, edge.max_hops, budget, budget.rows)
            whole = start == 0 and stop == count
            if found.done == len(starts):
                yield Piece(start, stop, Reached(found.counts, found.ends), inverse, whole)
        finally:
            budget.release(held)
        if found.done < len(starts):
            # Retry with as many sources as filled a batch; a single source is always completed.
            size = max(1, min(found.done, (stop - start) // 2))
            continue
        if stop >= count:
            return
        per_row = max(len(found.ends), 1) / (stop - start)
        size = max(1, min(_GROWTH * (stop - start), int(budget.rows / 2 / per_row)))
        start = stop


def _one_hop(adjacency: Adjacency, positions: Integers, budget: Budget) -> tuple[Reached, Integers | None]:
    """The neighbours of the sources of rows, and the source of each row (None: row i has source i)."""
    if len(positions) <= _FEW:
        # Deduplicating few positions would take longer than following each of them.
        begins, counts = adjacency.begins_and_counts(positions)
        ends = counts.cumsum()
        if not len(ends) or ends[-1] <= budget.rows:
            slots = slots_from(begins, counts, ends)
            return Reached(counts, adjacency.indices[slots], slots), None
    starts, inverse = distinct(positions, adjacency.sources)
    return one_hop(adjacency, starts), inverse


def one_hop(adjacency: Adjacency, sources: Integers) -> Reached:
    """The neighbours of each source."""
    if adjacency.is_everything(sources):
        return Reached(np.diff(adjacency.starts), adjacency.indices)
    counts, slots = adjacency.slots(sources)
    return Reached(counts, adjacency.indices[slots], slots)


def slots_of(reached: Reached) -> Integers:
    """The slots of `reached`, which must be known."""
    assert reached.slots is not None
    return reached.slots


def distinct(positions: Integers, size: int) -> tuple[Integers, Integers]:
    """The distinct positions, ascending, and for each position its place among them; `size` is the size of the domain."""
    if len(positions) == 1:
        return positions, np.zeros(1, np.int64)
    if len(positions) <= _FEW:
        # NumPy call overhead exceeds a Python loop here.
        each = sorted(set(positions.tolist()))
        place = {position: number for number, position in enumerate(each)}
        return np.array(each, np.int64), np.array([place[position] for position in positions.tolist()], np.int64)
    if len(positions) * _DENSE < size:
        found, inverse = np.unique(positions, return_inverse=True)
        return found, np.asarray(inverse, dtype=np.int64)
    # The first mark belongs to position -1.
    marks = np.zeros(size + 1, np.bool_)
    marks[positions + 1] = True
    places = np.cumsum(marks) - 1
    return np.flatnonzero(marks) - 1, places[positions + 1]


def marked(positions: Integers, size: int) -> Integers:
    """The distinct positions, ascending; none of them may be -1. `size` is the size of the domain."""
    if len(positions) * _DENSE < size:
        return np.unique(positions)
    marks = np.zeros(size, np.bool_)
    marks[positions] = True
    return np.flatnonzero(marks)
