"""Ids in a fixed order: a few are found by comparing bytes, and many by one hash table for all."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.query.traverse.domain import FEW_IDS, SortedIds, TableIds, positions_in

#: Many that begin alike, as far as the first bytes tell and further.
TEXTS = st.builds(
    str.__add__,
    st.sampled_from(["", "a", "node-00", "node-000", "node-0000000", "\0", "éééé"]),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=6),
)


@given(ids=st.sets(TEXTS), asked=st.lists(TEXTS, max_size=5), skipped=st.integers(0, 3))
def test_an_id_is_found_where_it_is(ids: set[str], asked: list[str], skipped: int) -> None:
    column = pa.array(sorted(ids, key=str.encode), pa.string())
    for part in (column, column.slice(skipped)):
        wanted = pa.array([*asked, *ids], pa.string())
        known = SortedIds(("test",), part)
        assert (
            known.positions_of([text.encode() for text in wanted.to_pylist()]).tolist()
            == positions_in(part, wanted).tolist()
        )
        assert [known.text(place).decode() for place in range(len(part))] == part.to_pylist()


@given(ids=st.sets(TEXTS, min_size=1), repeated=st.sampled_from([1, FEW_IDS]), data=st.data())
def test_ids_are_sorted_by_what_stands_for_them(ids: set[str], repeated: int, data: st.DataObject) -> None:
    in_order = pa.array(sorted(ids, key=str.encode), pa.string())
    in_rows = pa.array(data.draw(st.permutations(sorted(ids))), pa.string())
    some = data.draw(st.lists(st.integers(0, len(ids) - 1), max_size=5)) * repeated
    positions = np.array(some, np.int64)
    for domain in (SortedIds(("test",), in_order), TableIds(("test",), in_rows, np.arange(len(ids), dtype=np.uint64))):
        by_text = pc.rank(domain.ids.take(pa.array(positions)), tiebreaker="dense")
        assert pc.rank(domain.sortable(positions), tiebreaker="dense").equals(by_text)
