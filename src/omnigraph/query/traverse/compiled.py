"""Loops compiled by Numba: they do not hold the interpreter lock while they run."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def search_each(  # pragma: no cover
    starts: Any, indices: Any, sources: Any, least: int, most: int, collect: bool, room: int, stop: Any
) -> Any:
    """Breadth-first search from each source. Returns: how many positions each source reaches, the positions themselves,
    source by source, and how many sources were searched.
    Without `collect` positions are only counted. The search ends after the source with which it has found more than `room`
    positions, and at once when `stop[0]` is not 0; its result is then meaningless.
    """
    size = len(starts) - 1
    # One bit for each position: these marks are read for every edge and should fit into the CPU cache.
    seen = np.zeros((size >> 6) + 1, np.uint64)
    queue = np.empty(size + 1, np.int32)
    counts = np.zeros(len(sources), np.int64)
    found = np.empty(max(1024, len(sources)), np.int64)
    total = 0
    done = 0
    for number in range(len(sources)):
        if total > room or stop[0] != 0:
            break
        done = number + 1
        source = sources[number]
        if source < 0:
            continue
        reached = np.int64(0)
        seen[source >> 6] |= np.uint64(1) << np.uint64(source & 63)
        queue[0] = source
        begin, end = np.int64(0), np.int64(1)
        for hop in range(1, most + 1):
            level_end = end
            for place in range(begin, level_end):
                if place & 4095 == 0 and stop[0] != 0:
                    return counts, found[:0].copy(), done
                position = queue[place]
                for slot in range(starts[position], starts[position + 1]):
                    # Whether the neighbour is new is unpredictable for the CPU: a branch would cost more than always writing
                    # it.
                    neighbour = indices[slot]
                    bit = np.uint64(neighbour & 63)
                    marks = seen[neighbour >> 6]
                    seen[neighbour >> 6] = marks | (np.uint64(1) << bit)
                    queue[end] = neighbour
                    end += 1 - np.int64((marks >> bit) & np.uint64(1))
            if hop == 1 and least == 1 and _has_loop(starts, indices, source):
                reached += 1
                if collect:
                    found = _room(found, total, 1)
                    found[total] = source
                    total += 1
            if hop >= least:
                reached += end - level_end
                if collect:
                    found = _room(found, total, end - level_end)
                    for place in range(level_end, end):
                        found[total] = queue[place]
                        total += 1
            begin = level_end
            if begin == end:
                break
        counts[number] = reached
        _forget(seen, queue, end)
    return counts, found[:total].copy(), done


@njit(cache=True, nogil=True)
def _forget(seen: Any, queue: Any, end: Any) -> None:  # pragma: no cover
    """Clear the marks of the positions that one source reached, one by one or all at once, whichever is cheaper."""
    if end < len(seen):
        for place in range(end):
            seen[queue[place] >> 6] = np.uint64(0)
    else:
        seen[:] = np.uint64(0)


@njit(cache=True, nogil=True)
def _has_loop(starts: Any, indices: Any, source: Any) -> Any:  # pragma: no cover
    """Whether an edge leads from the source to itself; neighbours are sorted."""
    slot = starts[source] + np.searchsorted(indices[starts[source] : starts[source + 1]], source)
    return slot < starts[source + 1] and indices[slot] == source


@njit(cache=True, nogil=True)
def _room(found: Any, total: Any, more: Any) -> Any:  # pragma: no cover
    """The array itself if it has room for `more` entries after `total`, else a larger copy."""
    if total + more <= len(found):
        return found
    larger = np.empty(max(2 * len(found), total + more), np.int64)
    larger[:total] = found[:total]
    return larger


@njit(cache=True, nogil=True)
def group_edges(tails: Any, heads: Any, size: int, reach: int) -> Any:  # pragma: no cover
    """The adjacency of edges: the start of each tail, its distinct heads in order, and the number of edges to each head."""
    # Two stable counting sorts, by head and then by tail, order the edges without comparisons.
    by_head = _placed(heads, reach)
    order = np.empty(len(tails), np.int32)
    place = _begins(tails, size)
    for edge in by_head:
        order[place[tails[edge]]] = edge
        place[tails[edge]] += 1
    starts = np.zeros(size + 1, np.int64)
    indices = np.empty(len(tails), np.int32)
    parallel = np.empty(len(tails), np.int32)
    total = 0
    last_tail, last_head = -1, -1
    for edge in order:
        tail, head = tails[edge], heads[edge]
        if tail == last_tail and head == last_head:
            parallel[total - 1] += 1
            continue
        indices[total] = head
        parallel[total] = 1
        total += 1
        starts[tail + 1] += 1
        last_tail, last_head = tail, head
    for position in range(size):
        starts[position + 1] += starts[position]
    return starts, indices[:total].copy(), parallel[:total].copy()


@njit(cache=True, nogil=True)
def _placed(values: Any, size: int) -> Any:  # pragma: no cover
    """The places of values below `size`, in stable order of the values."""
    order = np.empty(len(values), np.int32)
    place = _begins(values, size)
    for number in range(len(values)):
        order[place[values[number]]] = number
        place[values[number]] += 1
    return order


@njit(cache=True, nogil=True)
def _begins(values: Any, size: int) -> Any:  # pragma: no cover
    """The first place of each value in the sorted values."""
    begins = np.zeros(size + 1, np.int64)
    for value in values:
        begins[value + 1] += 1
    for value in range(size):
        begins[value + 1] += begins[value]
    return begins
