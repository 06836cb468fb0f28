"""Ids in a fixed order: a few are found by comparing bytes, and many by one hash table for all."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.query.domain import SortedIds, positions_in

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
