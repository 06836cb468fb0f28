"""Breadth-first search over adjacency: which positions lie within some distance of each source."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from omnigraph.query.csr import Adjacency
from omnigraph.query.limits import Budget
from omnigraph.query.loops import compiled, is_worth_compiling, without_compiling
from omnigraph.query.rows import Integers, Mask

#: How many marks (sources times positions) the plain search holds at once.
_MARKS = 16_000_000
#: What the plain search costs, as steps of a compiled loop: each position that it finds, and so many marks that it clears.
_STEPS_PER_FOUND = 8
_MARKS_PER_STEP = 64
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
    if is_worth_compiling(steps):
        # Of one width, so that the loop is compiled once.
        wide = sources.astype(np.int64, copy=False)
        starts, indices = adjacency.starts, adjacency.indices
        counts, found, done = budget.patiently(
            lambda: compiled("search_each", starts, indices, wide, least, most, collect, room, budget.stop), steps
        )
        budget.check()
        return Found(counts, found, done)
    found = _plain(adjacency, sources, least, most, budget, room)
    # Each position that is found takes some steps; clearing the marks of all others is quick.
    without_compiling(_STEPS_PER_FOUND * int(found.counts.sum()) + steps // _MARKS_PER_STEP)
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
