"""Columns as JSON text: valid JSON that says what `plain` says, value by value."""

from __future__ import annotations

import json
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omnigraph.language.temporal import DATE_DAYS, DATETIME_MILLISECONDS
from omnigraph.language.types import PropType, Scalar
from omnigraph.values.columns import arrow_type
from omnigraph.values.json_text import json_string, json_text
from omnigraph.values.render import plain

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20) | st.sampled_from(
    ['"', "\\", "a\nb\tc\r", "\x00\x1f\x7f", "\u2028é😀", "\\u0041", ""]
)
VALUES: dict[Scalar, st.SearchStrategy[Any]] = {
    Scalar.STRING: TEXTS,
    Scalar.BOOL: st.booleans(),
    Scalar.I32: st.integers(-(2**31), 2**31 - 1),
    Scalar.I64: st.integers(-(2**63), 2**63 - 1),
    Scalar.U32: st.integers(0, 2**32 - 1),
    Scalar.U64: st.integers(0, 2**64 - 1),
    Scalar.F32: st.floats(width=32),
    Scalar.F64: st.floats(),
    Scalar.DATE: st.integers(DATE_DAYS.start, DATE_DAYS.stop - 1),
    Scalar.DATETIME: st.integers(DATETIME_MILLISECONDS.start, DATETIME_MILLISECONDS.stop - 1),
}


def columns() -> st.SearchStrategy[tuple[PropType, list[Any]]]:
    def of(scalar: Scalar) -> st.SearchStrategy[tuple[PropType, list[Any]]]:
        values = VALUES[scalar]
        single = st.lists(st.none() | values, max_size=12).map(lambda rows: (PropType(scalar, nullable=True), rows))
        lists = st.lists(st.none() | st.lists(st.none() | values, max_size=4), max_size=8)
        return single | lists.map(lambda rows: (PropType(scalar, is_list=True, nullable=True), rows))

    vectors = st.lists(st.none() | st.lists(st.floats(width=32), min_size=3, max_size=3), max_size=8).map(
        lambda rows: (PropType(Scalar.VECTOR, dimension=3, nullable=True), rows)
    )
    return st.sampled_from(list(VALUES)).flatmap(of) | vectors


@given(columns(), st.integers(0, 3))
@settings(max_examples=400, deadline=None)
def test_every_column_is_what_its_values_are(given_column: tuple[PropType, list[Any]], skipped: int) -> None:
    kind, rows = given_column
    column = pa.array(rows, arrow_type(kind))[min(skipped, len(rows)) :]
    texts = json_text(column, kind)
    assert texts.null_count == 0
    shown = [json.loads(text) for text in texts.to_pylist()]
    narrow = kind.is_vector or kind.scalar is Scalar.F32
    expected = plain(column, kind)
    # A stored 32-bit float is written as the shortest text that gives it back.
    assert (_narrowed(shown), _narrowed(expected)) == (_narrowed(expected),) * 2 if narrow else shown == expected


def _narrowed(value: Any) -> Any:
    if isinstance(value, list):
        return [_narrowed(item) for item in value]
    return str(np.float32(value)) if isinstance(value, float) else value


@pytest.mark.parametrize(
    ("value", "written"),
    [(0.1, "0.1"), (-0.0, "-0.0"), (1.0, "1.0"), (float("nan"), '"NaN"'), (float("-inf"), '"-Infinity"')],
)
def test_floats_are_short_and_exact(value: float, written: str) -> None:
    for scalar, stored in ((Scalar.F32, pa.float32()), (Scalar.F64, pa.float64())):
        assert json_text(pa.array([value], stored), PropType(scalar)).to_pylist() == [written]


@given(st.lists(st.none() | TEXTS, max_size=10))
@settings(max_examples=300, deadline=None)
def test_texts_are_escaped_as_json_does(texts: list[str | None]) -> None:
    found = json_string(pa.array(texts, pa.string())).to_pylist()
    assert [None if text is None else json.loads(text) for text in found] == texts


def test_blobs_are_base64_or_their_reference() -> None:
    column = lance.blob_array([b"\x01\x02\x03", b"", None, lance.Blob.from_uri("file:///gone")])
    shown = json_text(column, PropType(Scalar.BLOB, nullable=True)).to_pylist()
    assert shown == ['"base64:AQID"', '"base64:"', "null", '"file:///gone"']
