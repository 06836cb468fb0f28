"""Rows by where they lie, packed: nothing is lost, nothing comes twice, and no form is larger than it must be."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omnigraph.storage.tables.row_places import RowPlaces

ADDRESSES = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 200)), max_size=120)


def addresses_of(pairs: list[tuple[int, int]]) -> np.ndarray:
    return np.array([(fragment << 32) + offset for fragment, offset in pairs], np.uint64)


@settings(deadline=None)
@given(ADDRESSES, ADDRESSES)
def test_packed_and_unpacked(one: list[tuple[int, int]], other: list[tuple[int, int]]) -> None:
    first, second = addresses_of(one), addresses_of(other)
    expected = np.unique(np.concatenate([first, second]))
    both = RowPlaces.together([RowPlaces.of(first), RowPlaces.of(second)])
    assert both.addresses().tolist() == expected.tolist()
    assert len(both) == len(expected)
    assert pickle.loads(pickle.dumps(both)).addresses().tolist() == expected.tolist()


@pytest.mark.parametrize(
    ("offsets", "most"),
    [
        pytest.param(np.arange(1_000_000), 8, id="neighbours"),
        pytest.param(np.arange(0, 1_000_000, 2), 125_000, id="every-second"),
        pytest.param(np.array([5, 999_999]), 8, id="few"),
        pytest.param(np.zeros(0, np.int64), 0, id="none"),
    ],
)
def test_the_smallest_form(offsets: np.ndarray, most: int) -> None:
    places = RowPlaces.of(offsets.astype(np.uint64))
    assert places.nbytes <= most
    assert places.addresses().tolist() == offsets.tolist()
