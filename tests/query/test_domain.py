"""Ids in a fixed order: one is found by comparing texts, compiled or not, and by one hash table for many."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omnigraph.query import domain
from omnigraph.query.domain import SortedIds, positions_in

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)


@pytest.mark.parametrize("compiling", [True, False], ids=["compiled", "plain"])
def test_an_id_is_found_where_it_is(compiling: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(domain, "is_worth_compiling", lambda _: compiling)

    @settings(deadline=None)  # the first call loads the compiler
    @given(ids=st.sets(TEXTS), asked=st.lists(TEXTS, max_size=5), skipped=st.integers(0, 3))
    def agree(ids: set[str], asked: list[str], skipped: int) -> None:
        column = pa.array(sorted(ids, key=str.encode), pa.string())
        for part in (column, column.slice(skipped)):
            wanted = pa.array([*asked, *ids], pa.string())
            known = SortedIds(("test",), part)
            assert known.positions_of(wanted.to_pylist()).tolist() == positions_in(part, wanted).tolist()

    agree()
