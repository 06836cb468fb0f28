"""Searches over adjacency in dense positions: breadth first, and one step of a traversal with its bounds."""

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
#: What the plain search costs, as steps of a compiled loop: each position that it finds, and so many marks that it clears.
_STEPS_PER_FOUND = 8
_MARKS_PER_STEP = 64
#: The compiled search.
_LOOP = "search_each"
#: More positions than any search finds.
_ENDLESS = 2**62


@dataclass(frozen=True)
class Found:
    """For each of the first `done` sources how many positions it reaches, and all of them in turn."""

    counts: Integers
    ends: Integers
    done: int


def search(
    adjacency: Adjacency, sources: Integers, least: int, most: int, budget: Budget, room: int | None = None
) -> Found:
    """The positions that each source reaches at a shortest distance within the bounds.

    The source itself counts only through a self-loop, as something one hop away. Sources of -1 reach nothing. The search
    ends with the source that makes it more than `room` positions; the sources after it are not done.
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
        # Of one width, so that the loop is compiled once.
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
    """All sources move one hop at a time; a mark for each (source, position) says it was reached."""
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
    """The codes that were not marked before, each once, ascending; they are marked now."""
    if len(codes) * 8 < len(marks):
        fresh = np.unique(codes[~marks[codes]])
        marks[fresh] = True
        return fresh
    # Comparing all marks is faster than sorting when there are many codes.
    before = marks.copy()
    marks[codes] = True
    return np.flatnonzero(marks & ~before)


# One step of a traversal: from each source, all ends within the bounds of the step.


#: Up to so many positions are told apart one by one, or not at all.
_FEW = 64
#: From this part of a domain on, a mark for each of its positions costs less than sorting some.
_DENSE = 24
#: Where few rows may be enough: the rows of the first batch at least, the sources that are searched first, and how many
#: times as large each next batch is.
_FIRST = 1024
_FIRST_SOURCES = 16
_GROWTH = 8
#: A search holds its ends twice when it is done, as they are found and as they are returned.
_BYTES_PER_END = 16


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

    def spread(self, rows: Integers | None, sizes: Sizes) -> Iterator[tuple[Integers, Integers]]:
        """For rows that start at these sources: the row of each result, and the place of its end in `ends`.

        In pieces of at most the next of `sizes` results. `rows` is None when each source is that of one row, in order.
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
    """How many rows each next batch has: few at first when few rows may be enough, then more, up to the bound."""

    def __init__(self, bound: int, first: int | None = None) -> None:
        self._bound = bound
        self.size = bound if first is None else min(bound, max(first, _FIRST))

    def next(self) -> int:
        """The size of a batch; the one after it may be larger."""
        size = self.size
        self.size = min(self._bound, size * _GROWTH)
        return size


@dataclass(frozen=True)
class Piece:
    """What some consecutive rows reach, `start` to `stop`. `inverse`: for each row its place among the sources; None when
    each source is that of one row, in order. `whole`: there are no other pieces."""

    start: int
    stop: int
    reached: Reached
    inverse: Integers | None
    whole: bool


def reaching(
    adjacency: Adjacency, edge: EdgePattern, positions: Integers, budget: Budget, first: int | None = None
) -> Iterator[Piece]:
    """All ends within the bounds of a step for rows at these positions; -1 has none.

    One hop reaches at most all edges, so that it is one piece. Several hops may reach everything from everywhere: pieces
    are made so small that each has about as many ends as a batch has rows. `first`: so many rows may be enough.
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
            # So many sources were done with a batch of ends; a single one is always done.
            size = max(1, min(found.done, (stop - start) // 2))
            continue
        if stop >= count:
            return
        per_row = max(len(found.ends), 1) / (stop - start)
        size = max(1, min(_GROWTH * (stop - start), int(budget.rows / 2 / per_row)))
        start = stop


def _one_hop(adjacency: Adjacency, positions: Integers, budget: Budget) -> tuple[Reached, Integers | None]:
    """The neighbours of rows at these positions, and for each row its place among the sources."""
    if len(positions) <= _FEW:
        # To find positions that are the same would take longer than to follow each of them.
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
    """The places of the ends, which are known."""
    assert reached.slots is not None
    return reached.slots


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
