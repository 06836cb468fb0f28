"""Loops that are compiled: they hold no lock of the interpreter while they run."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def search_each(starts: Any, indices: Any, sources: Any, least: int, most: int) -> Any:  # pragma: no cover
    """Breadth-first search from each source; `seen` holds the number of the last source that reached a position."""
    size = len(starts) - 1
    seen = np.zeros(size, np.int64)
    queue = np.empty(size, np.int64)
    counts = np.zeros(len(sources), np.int64)
    found = np.empty(max(1024, len(sources)), np.int64)
    total = 0
    for number in range(len(sources)):
        source = sources[number]
        if source < 0:
            continue
        before = total
        seen[source] = number + 1
        queue[0] = source
        begin, end = 0, 1
        for hop in range(1, most + 1):
            level_end = end
            for place in range(begin, level_end):
                position = queue[place]
                for slot in range(starts[position], starts[position + 1]):
                    neighbour = indices[slot]
                    loops = hop == 1 and least == 1 and neighbour == source
                    if seen[neighbour] == number + 1 and not loops:
                        continue
                    if not loops:
                        seen[neighbour] = number + 1
                        queue[end] = neighbour
                        end += 1
                    if hop >= least:
                        if total == len(found):
                            larger = np.empty(2 * total, np.int64)
                            larger[:total] = found
                            found = larger
                        found[total] = neighbour
                        total += 1
            begin = level_end
            if begin == end:
                break
        counts[number] = total - before
    return counts, found[:total].copy()
