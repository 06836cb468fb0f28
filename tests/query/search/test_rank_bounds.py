"""What bounds settle is true for every rank within them."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.query.search.rank_lists import Bounds, expected, fused, settled


@st.composite
def rankings(draw: st.DrawFn) -> tuple[np.ndarray, Bounds]:
    """The true ranks of some nodes, the last of them unseen, and bounds around those of the seen."""
    count = draw(st.integers(2, 12))
    truth = np.array(draw(st.permutations(range(1, count + 1))), np.float64)
    listed = draw(st.integers(0, count))
    seen = truth[:-1]
    best = np.where(seen <= listed, seen, listed + 1.0)
    worst = np.where(seen <= listed, seen, draw(st.sampled_from([np.inf, float(count)])))
    unseen = listed + 1.0
    return truth, Bounds(best, worst, unseen)


@given(st.data(), st.integers(1, 4), st.sampled_from([1, 5, 60]))
def test_what_is_settled_is_true(data: st.DataObject, limit: int, k: int) -> None:
    left_truth, left = data.draw(rankings())
    right_truth, right = data.draw(rankings().filter(lambda ranking: len(ranking[0]) == len(left_truth)))
    truth = 1 / (k + left_truth) + 1 / (k + right_truth)
    if left_truth[-1] < left.unseen or right_truth[-1] < right.unseen:
        return  # a node that a list holds is not unseen
    least, largest, unseen = fused(left, right, k)
    assert (least <= truth[:-1]).all()
    assert (truth[:-1] <= largest).all()
    assert truth[-1] <= unseen
    first = settled(least, largest, unseen, limit)
    if first is None:
        return
    by_least = np.argsort(-least, kind="stable")[:limit]
    assert sorted(truth, reverse=True)[:limit] == list(truth[by_least])


def test_known_ranks_are_settled() -> None:
    ranks = np.array([1.0, 2.0, 3.0])
    side = Bounds(ranks, ranks, 4.0)
    least, largest, unseen = fused(side, side, 60)
    settled_ones = settled(least, largest, unseen, 2)
    assert settled_ones is not None
    assert settled_ones.tolist() == [True, True, False]
    assert np.array_equal(expected(side, side, 60), least)


def test_an_unseen_node_may_be_better() -> None:
    side = Bounds(np.array([1.0, 4.0]), np.array([1.0, 9.0]), 2.0)
    least, largest, unseen = fused(side, side, 60)
    assert settled(least, largest, unseen, 2) is None
    assert settled(least, largest, unseen, 1) is not None
