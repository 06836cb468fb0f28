"""Breadth-first search over adjacency: which positions lie within some distance of each source."""

from __future__ import annotations

import numpy as np

from omnigraph.query.csr import Adjacency
from omnigraph.query.loops import compiled, is_worth_compiling, without_compiling
from omnigraph.query.rows import Integers, Mask

#: How many marks (sources times positions) the plain search holds at once.
_MARKS = 16_000_000


def search(adjacency: Adjacency, sources: Integers, least: int, most: int) -> tuple[Integers, Integers]:
    """For each source how many positions it reaches at a shortest distance within the bounds, and all of them in turn.

    The source itself counts only through a self-loop, as something one hop away. Sources of -1 reach nothing.
    """
    return _search(adjacency, sources, least, most, collect=True)


def count_reached(adjacency: Adjacency, sources: Integers, least: int, most: int) -> Integers:
    """For each source how many positions `search` would find, without holding them."""
    return _search(adjacency, sources, least, most, collect=False)[0]


def _search(
    adjacency: Adjacency, sources: Integers, least: int, most: int, *, collect: bool
) -> tuple[Integers, Integers]:
    most = min(most, adjacency.size + 1)
    if is_worth_compiling(len(sources) * adjacency.size):
        # Of one width, so that the loop is compiled once.
        wide = sources.astype(np.int64, copy=False)
        counts, found = compiled().search_each(adjacency.starts, adjacency.indices, wide, least, most, collect)
        return counts, found
    with without_compiling():
        return _plain(adjacency, sources, least, most)


def _plain(adjacency: Adjacency, sources: Integers, least: int, most: int) -> tuple[Integers, Integers]:
    at_once = max(1, _MARKS // max(adjacency.size, 1))
    parts = [
        _search_some(adjacency, sources[start : start + at_once], least, most)
        for start in range(0, len(sources), at_once)
    ]
    if not parts:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    return np.concatenate([counts for counts, _ in parts]), np.concatenate([found for _, found in parts])


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
