"""How far a fused order is settled when only the best of two rankings are known.

Every node has a rank between two bounds on either side, and so a fused score between two bounds. The first nodes are
settled when no other one, seen or not, can come before any of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Bounds:
    """The best and the worst rank that each of some nodes can have in one ranking; infinite when it has none.

    `unseen` is the best rank that a node outside of them can have.
    """

    best: Numbers
    worst: Numbers
    unseen: float

    def with_worst(self, nodes: npt.NDArray[np.int64], worst: float) -> Bounds:
        """The same with the worst rank that some nodes can have; infinite: they have no rank at all."""
        best, last = self.best.copy(), self.worst.copy()
        last[nodes] = worst
        if np.isinf(worst):
            best[nodes] = np.inf
        return Bounds(best, last, self.unseen)


def fused(left: Bounds, right: Bounds, k: int) -> tuple[Numbers, Numbers, float]:
    """The least and the largest score of each node, and the largest of one that was not seen."""
    least = 1.0 / (k + left.worst) + 1.0 / (k + right.worst)
    largest = 1.0 / (k + left.best) + 1.0 / (k + right.best)
    return least, largest, 1.0 / (k + left.unseen) + 1.0 / (k + right.unseen)


def expected(left: Bounds, right: Bounds, k: int) -> Numbers:
    """The score of each node when any rank between its bounds is as likely as any other."""
    return _expected(left, k) + _expected(right, k)


def _expected(bounds: Bounds, k: int) -> Numbers:
    open_ = np.isfinite(bounds.worst) & (bounds.worst > bounds.best)
    values = 1.0 / (k + bounds.worst)
    low, width = k + bounds.best[open_], bounds.worst[open_] - bounds.best[open_]
    values[open_] = np.log1p(width / low) / width
    return values


def contenders(least: Numbers, largest: Numbers, limit: int) -> npt.NDArray[np.bool_]:
    """The nodes that can be among the first."""
    if len(least) <= limit:
        return np.ones(len(least), np.bool_)
    return np.asarray(largest >= _nth_largest(least, limit))


def settled(least: Numbers, largest: Numbers, unseen: float, limit: int) -> npt.NDArray[np.bool_] | None:
    """The first nodes by their least score, those that tie with the last of them included; None when not settled.

    Nodes whose scores are known exactly may be equal; any others must be told apart.
    """
    if len(least) < limit:
        return None
    order = np.argsort(-least, kind="stable")
    low, high = least[order], largest[order]
    exact = low == high
    after_open = _largest_after(np.where(exact, 0.0, high), unseen)
    after_any = _largest_after(high, unseen)
    ahead = low > np.where(exact, after_open, after_any)
    return least >= low[limit - 1] if ahead[:limit].all() else None


def likely(values: Numbers, least: Numbers, unseen: float, limit: int) -> npt.NDArray[np.bool_] | None:
    """The first nodes by some value between their bounds; None when there are too few, or one not seen may be better."""
    if len(values) < limit or _nth_largest(least, limit) <= unseen:
        return None
    return np.asarray(values >= _nth_largest(values, limit))


def _nth_largest(values: Numbers, number: int) -> float:
    return float(np.partition(values, len(values) - number)[len(values) - number])


def _largest_after(values: Numbers, last: float) -> Numbers:
    """For each place the largest value behind it, where `last` comes after all."""
    behind = np.append(values[1:], last)
    return np.maximum.accumulate(behind[::-1])[::-1]
