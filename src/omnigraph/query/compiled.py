"""Loops that are compiled: they hold no lock of the interpreter while they run."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def search_each(starts: Any, indices: Any, sources: Any, least: int, most: int) -> Any:  # pragma: no cover
    """Breadth-first search from each source: how many positions each reaches, and all of them in turn."""
    size = len(starts) - 1
    # Holds the number of the last source that reached a position, so that it is cleared only once.
    seen = np.zeros(size, np.int32)
    queue = np.empty(size, np.int32)
    counts = np.zeros(len(sources), np.int64)
    found = np.empty(max(1024, len(sources)), np.int64)
    total = 0
    for number in range(len(sources)):
        source = sources[number]
        if source < 0:
            continue
        before = total
        mark = np.int32(number + 1)
        seen[source] = mark
        queue[0] = source
        begin, end = 0, 1
        for hop in range(1, most + 1):
            level_end = end
            for place in range(begin, level_end):
                position = queue[place]
                for slot in range(starts[position], starts[position + 1]):
                    neighbour = indices[slot]
                    if seen[neighbour] == mark:
                        continue
                    seen[neighbour] = mark
                    queue[end] = neighbour
                    end += 1
            if hop == 1 and least == 1:
                total, found = _append_loop(starts, indices, source, total, found)
            if hop >= least:
                found = _room(found, total, end - level_end)
                for place in range(level_end, end):
                    found[total] = queue[place]
                    total += 1
            begin = level_end
            if begin == end:
                break
        counts[number] = total - before
    return counts, found[:total].copy()


@njit(cache=True, nogil=True)
def _append_loop(starts: Any, indices: Any, source: Any, total: Any, found: Any) -> Any:  # pragma: no cover
    """The source itself, when an edge leads from it to itself."""
    for slot in range(starts[source], starts[source + 1]):
        if indices[slot] == source:
            found = _room(found, total, 1)
            found[total] = source
            return total + 1, found
    return total, found


@njit(cache=True, nogil=True)
def _room(found: Any, total: Any, more: Any) -> Any:  # pragma: no cover
    """The same array, or a copy that is large enough for more."""
    if total + more <= len(found):
        return found
    larger = np.empty(max(2 * len(found), total + more), np.int64)
    larger[:total] = found[:total]
    return larger
