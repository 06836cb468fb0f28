"""Compiled loops of the algorithms. They do not hold the interpreter lock, and end early when `stop[0]` is not 0."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit


def group(tails: Any, heads: Any, weights: Any, size: int) -> tuple[Any, Any, Any]:
    """Edges by tail, in stable order: the start of each position, the heads, and the weights."""
    starts, order = _by_tail(tails, size)
    return starts, heads[order], None if weights is None else weights[order]


@njit(cache=True, nogil=True)
def _by_tail(tails: Any, size: int) -> Any:  # pragma: no cover
    starts = np.zeros(size + 1, np.int64)
    for tail in tails:
        starts[tail + 1] += 1
    for position in range(size):
        starts[position + 1] += starts[position]
    place = starts[:-1].copy()
    order = np.empty(len(tails), np.int32)
    for edge in range(len(tails)):
        order[place[tails[edge]]] = edge
        place[tails[edge]] += 1
    return starts, order


@njit(cache=True, nogil=True)
def rank_step(
    starts: Any, indices: Any, given: Any, ranks: Any, base: float, damping: float, low: int, high: int
) -> Any:  # pragma: no cover
    """One round of PageRank for positions `low` to `high`: updates `ranks`, returns the sum of absolute changes."""
    moved = 0.0
    for position in range(low, high):
        total = 0.0
        for slot in range(starts[position], starts[position + 1]):
            total += given[indices[slot]]
        new = base + damping * total
        moved += abs(new - ranks[position])
        ranks[position] = new
    return moved


@njit(cache=True, nogil=True)
def weighted_rank_step(
    starts: Any, indices: Any, weights: Any, given: Any, ranks: Any, base: float, damping: float, low: int, high: int
) -> Any:  # pragma: no cover
    """`rank_step` for weighted edges."""
    moved = 0.0
    for position in range(low, high):
        total = 0.0
        for slot in range(starts[position], starts[position + 1]):
            total += given[indices[slot]] * weights[slot]
        new = base + damping * total
        moved += abs(new - ranks[position])
        ranks[position] = new
    return moved


@njit(cache=True, nogil=True)
def components(tails: Any, heads: Any, size: int, stop: Any) -> Any:  # pragma: no cover
    """For each position the smallest position of its connected component, ignoring the direction of edges."""
    parent = np.arange(size).astype(np.int32)
    for edge in range(len(tails)):
        if edge & 65535 == 0 and stop[0] != 0:
            break
        one, other = tails[edge], heads[edge]
        # A parent is never larger than its child: the larger root is put below the smaller, and paths are shortened meanwhile.
        while parent[one] != parent[other]:
            if parent[one] < parent[other]:
                one, other = other, one
            above = parent[one]
            parent[one] = parent[other]
            if above == one:
                break
            one = above
    for position in range(size):
        parent[position] = parent[parent[position]]
    return parent


@njit(cache=True, nogil=True)
def strong_components(starts: Any, indices: Any, size: int, stop: Any) -> Any:  # pragma: no cover
    """For each position the smallest position of its strongly connected component (Tarjan's algorithm without recursion)."""
    number = np.full(size, -1, np.int32)
    low = np.empty(size, np.int32)
    found = np.full(size, -1, np.int32)
    stack = np.empty(size, np.int32)
    path = np.empty(size, np.int32)
    slots = np.empty(size, np.int64)
    height = depth = counted = 0
    for first in range(size):
        if first & 4095 == 0 and stop[0] != 0:
            break
        if number[first] >= 0:
            continue
        path[0], depth = first, 1
        number[first] = low[first] = counted
        slots[first] = starts[first]
        counted += 1
        stack[height] = first
        height += 1
        while depth > 0:
            position = path[depth - 1]
            if slots[position] < starts[position + 1]:
                neighbour = indices[slots[position]]
                slots[position] += 1
                if number[neighbour] < 0:
                    number[neighbour] = low[neighbour] = counted
                    slots[neighbour] = starts[neighbour]
                    counted += 1
                    stack[height] = neighbour
                    height += 1
                    path[depth] = neighbour
                    depth += 1
                elif found[neighbour] < 0:
                    low[position] = min(low[position], number[neighbour])
                continue
            depth -= 1
            if depth > 0:
                low[path[depth - 1]] = min(low[path[depth - 1]], low[position])
            if low[position] == number[position]:
                begin = height
                smallest = position
                while True:
                    begin -= 1
                    smallest = min(smallest, stack[begin])
                    if stack[begin] == position:
                        break
                for place in range(begin, height):
                    found[stack[place]] = smallest
                height = begin
    return found


@njit(cache=True, nogil=True)
def hops(starts: Any, indices: Any, sources: Any, size: int, stop: Any) -> Any:  # pragma: no cover
    """The distance in edges of each position from the nearest source; -1 when it is not reachable."""
    distance = np.full(size, -1, np.int64)
    queue = np.empty(size, np.int32)
    end = 0
    for source in sources:
        if distance[source] < 0:
            distance[source] = 0
            queue[end] = source
            end += 1
    begin = 0
    while begin < end:
        if begin & 4095 == 0 and stop[0] != 0:
            break
        position = queue[begin]
        begin += 1
        for slot in range(starts[position], starts[position + 1]):
            neighbour = indices[slot]
            if distance[neighbour] < 0:
                distance[neighbour] = distance[position] + 1
                queue[end] = neighbour
                end += 1
    return distance


@njit(cache=True, nogil=True)
def distances(starts: Any, indices: Any, weights: Any, sources: Any, size: int, stop: Any) -> Any:  # pragma: no cover
    """The smallest sum of weights of a path from a source to each position; infinite when not reachable (Dijkstra)."""
    distance = np.full(size, np.inf)
    heap = np.empty(max(size, 1), np.int32)
    where = np.full(size, -1, np.int32)  # the place of each position in the heap
    count = 0
    for source in sources:
        if distance[source] > 0.0:
            distance[source] = 0.0
            heap[count] = source
            where[source] = count
            count += 1
    taken = 0
    while count > 0:
        taken += 1
        if taken & 4095 == 0 and stop[0] != 0:
            break
        position = heap[0]
        count -= 1
        where[position] = -1
        if count > 0:
            heap[0] = heap[count]
            where[heap[0]] = 0
            _sink(heap, where, distance, 0, count)
        for slot in range(starts[position], starts[position + 1]):
            neighbour = indices[slot]
            new = distance[position] + weights[slot]
            if new < distance[neighbour]:
                distance[neighbour] = new
                if where[neighbour] < 0:
                    heap[count] = neighbour
                    where[neighbour] = count
                    count += 1
                _rise(heap, where, distance, where[neighbour])
    return distance


@njit(cache=True, nogil=True)
def _rise(heap: Any, where: Any, distance: Any, place: int) -> None:  # pragma: no cover
    position = heap[place]
    while place > 0:
        above = (place - 1) >> 1
        if distance[heap[above]] <= distance[position]:
            break
        heap[place] = heap[above]
        where[heap[place]] = place
        place = above
    heap[place] = position
    where[position] = place


@njit(cache=True, nogil=True)
def _sink(heap: Any, where: Any, distance: Any, place: int, count: int) -> None:  # pragma: no cover
    position = heap[place]
    while True:
        below = 2 * place + 1
        if below >= count:
            break
        if below + 1 < count and distance[heap[below + 1]] < distance[heap[below]]:
            below += 1
        if distance[position] <= distance[heap[below]]:
            break
        heap[place] = heap[below]
        where[heap[place]] = place
        place = below
    heap[place] = position
    where[position] = place


@njit(cache=True, nogil=True)
def triangles(starts: Any, indices: Any, size: int, stop: Any) -> Any:  # pragma: no cover
    """The number of triangles of each position. Neighbours must be distinct, and every edge present from both ends."""
    # An edge is followed from its end of lower degree only, so that no position has many such edges.
    counts = np.zeros(size, np.int64)
    out_starts = np.zeros(size + 1, np.int64)
    for position in range(size):
        degree = starts[position + 1] - starts[position]
        for slot in range(starts[position], starts[position + 1]):
            other = indices[slot]
            other_degree = starts[other + 1] - starts[other]
            if degree < other_degree or (degree == other_degree and position < other):
                out_starts[position + 1] += 1
    for position in range(size):
        out_starts[position + 1] += out_starts[position]
    followed = np.empty(out_starts[size], np.int32)
    for position in range(size):
        place = out_starts[position]
        degree = starts[position + 1] - starts[position]
        for slot in range(starts[position], starts[position + 1]):
            other = indices[slot]
            other_degree = starts[other + 1] - starts[other]
            if degree < other_degree or (degree == other_degree and position < other):
                followed[place] = other
                place += 1
    seen = np.full(size, -1, np.int32)
    for position in range(size):
        if position & 1023 == 0 and stop[0] != 0:
            break
        for place in range(out_starts[position], out_starts[position + 1]):
            seen[followed[place]] = position
        for place in range(out_starts[position], out_starts[position + 1]):
            middle = followed[place]
            for second in range(out_starts[middle], out_starts[middle + 1]):
                last = followed[second]
                if seen[last] == position:
                    counts[position] += 1
                    counts[middle] += 1
                    counts[last] += 1
    return counts


@njit(cache=True, nogil=True)
def cores(starts: Any, indices: Any, size: int, stop: Any) -> Any:  # pragma: no cover
    """The core number of each position: the largest k such that a subgraph with all degrees >= k contains it."""
    degree = np.empty(size, np.int64)
    most = 0
    for position in range(size):
        degree[position] = starts[position + 1] - starts[position]
        most = max(most, degree[position])
    begins = np.zeros(most + 2, np.int64)
    for position in range(size):
        begins[degree[position] + 1] += 1
    for value in range(most + 1):
        begins[value + 1] += begins[value]
    order = np.empty(size, np.int32)
    where = np.empty(size, np.int64)
    free = begins.copy()
    for position in range(size):
        where[position] = free[degree[position]]
        order[where[position]] = position
        free[degree[position]] += 1
    for place in range(size):
        if place & 4095 == 0 and stop[0] != 0:
            break
        position = order[place]
        for slot in range(starts[position], starts[position + 1]):
            neighbour = indices[slot]
            if degree[neighbour] > degree[position]:
                # It swaps places with the first position of its degree; then its degree is decreased by one.
                first = begins[degree[neighbour]]
                head = order[first]
                if head != neighbour:
                    order[first], order[where[neighbour]] = neighbour, head
                    where[head], where[neighbour] = where[neighbour], first
                begins[degree[neighbour]] += 1
                degree[neighbour] -= 1
    return degree


@njit(cache=True, nogil=True)
def shared(starts: Any, indices: Any, back_starts: Any, back: Any, source: int, size: int) -> Any:  # pragma: no cover
    """The number of neighbours that each position has in common with `source`."""
    counts = np.zeros(size, np.int64)
    for slot in range(starts[source], starts[source + 1]):
        middle = indices[slot]
        for second in range(back_starts[middle], back_starts[middle + 1]):
            counts[back[second]] += 1
    return counts


@njit(cache=True, nogil=True)
def greedy_colours(starts: Any, indices: Any, order: Any, size: int) -> Any:  # pragma: no cover
    """A colour for each position, different from its neighbours' colours: in `order`, each takes the smallest free one."""
    colours = np.full(size, -1, np.int32)
    taken = np.full(size + 1, -1, np.int32)
    for position in order:
        for slot in range(starts[position], starts[position + 1]):
            colour = colours[indices[slot]]
            if colour >= 0:
                taken[colour] = position
        colour = 0
        while taken[colour] == position:
            colour += 1
        colours[position] = colour
    return colours


@njit(cache=True, nogil=True)
def propagate(
    starts: Any, indices: Any, weights: Any, order: Any, size: int, rounds: int, slack: float, stop: Any
) -> Any:  # pragma: no cover
    """Label propagation, one colour after the other: `order` lists positions by colour.
    A position takes the label with the largest weight among its neighbours. Of several such labels it keeps its own if that is
    one of them, else it takes the largest label. Ends when no position would change its label, or after `rounds`.
    """
    labels = np.arange(size).astype(np.int32)
    sums = np.zeros(size, np.float64)
    for _ in range(rounds):
        settled = True
        for position in order:
            if stop[0] != 0:
                return labels
            most = _weigh(starts, indices, weights, labels, sums, position)
            if starts[position] < starts[position + 1] and sums[labels[position]] < most - slack:
                settled = False
            _clear(starts, indices, labels, sums, position)
            if not settled:
                break
        if settled:
            return labels
        for position in order:
            if stop[0] != 0:
                return labels
            if starts[position] == starts[position + 1]:
                continue
            most = _weigh(starts, indices, weights, labels, sums, position)
            chosen = labels[position]
            if sums[chosen] < most - slack:
                chosen = -1
                for slot in range(starts[position], starts[position + 1]):
                    label = labels[indices[slot]]
                    if sums[label] >= most - slack and label > chosen:
                        chosen = label
            _clear(starts, indices, labels, sums, position)
            labels[position] = chosen
    return labels


@njit(cache=True, nogil=True)
def _weigh(starts: Any, indices: Any, weights: Any, labels: Any, sums: Any, position: int) -> Any:  # pragma: no cover
    most = 0.0
    for slot in range(starts[position], starts[position + 1]):
        label = labels[indices[slot]]
        sums[label] += weights[slot]
        most = max(most, sums[label])
    return most


@njit(cache=True, nogil=True)
def _clear(starts: Any, indices: Any, labels: Any, sums: Any, position: int) -> None:  # pragma: no cover
    for slot in range(starts[position], starts[position + 1]):
        sums[labels[indices[slot]]] = 0.0


@njit(cache=True, nogil=True)
def louvain_moves(
    starts: Any,
    indices: Any,
    weights: Any,
    strength: Any,
    total: float,
    resolution: float,
    classes: int,
    labels: Any,
    totals: Any,
    stop: Any,
) -> Any:  # pragma: no cover
    """One pass of Louvain's moves. Positions of one class (position modulo `classes`) move at the same time.
    `strength`: the sum of the weights of each position's edges. `totals`: the sum of the strengths of each community, updated
    with `labels`. A position alone in its community joins another single position only if that has a smaller number, so that
    two never swap communities. Returns the number of positions that moved.
    """
    size = len(labels)
    sums = np.zeros(size, np.float64)
    members = np.zeros(size, np.int64)
    for position in range(size):
        members[labels[position]] += 1
    wanted = labels.copy()
    moved = 0
    for turn in range(classes):
        for position in range(turn, size, classes):
            if stop[0] != 0:
                return 0
            own = labels[position]
            for slot in range(starts[position], starts[position + 1]):
                if indices[slot] != position:
                    sums[labels[indices[slot]]] += weights[slot]
            share = resolution * strength[position] / (2.0 * total)
            best, most = own, sums[own] - share * (totals[own] - strength[position])
            stay = most
            for slot in range(starts[position], starts[position + 1]):
                label = labels[indices[slot]]
                if label == own or indices[slot] == position:
                    continue
                if members[own] == 1 and members[label] == 1 and label > own:
                    continue
                gain = sums[label] - share * totals[label]
                if gain > most + 1e-10 or (gain > most - 1e-10 and gain > stay + 1e-10 and label < best):
                    best, most = label, max(gain, most)
            for slot in range(starts[position], starts[position + 1]):
                sums[labels[indices[slot]]] = 0.0
            wanted[position] = best
        for position in range(turn, size, classes):
            old, new = labels[position], wanted[position]
            if old != new:
                labels[position] = new
                totals[old] -= strength[position]
                totals[new] += strength[position]
                members[old] -= 1
                members[new] += 1
                moved += 1
    return moved
