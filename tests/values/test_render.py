"""Values as plain JSON values, by property type and by what is stored."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime

import lance
import pyarrow as pa
import pytest

from omnigraph.values.render import plain, stored_kind

CASES = [
    (pa.array(["a", "", None]), ["a", "", None]),
    (pa.array([2**64 - 1, None], pa.uint64()), [2**64 - 1, None]),
    (pa.array([True, None]), [True, None]),
    (pa.array([1.5, math.nan, math.inf, -math.inf, None]), [1.5, "NaN", "Infinity", "-Infinity", None]),
    (pa.array([0.5, 0.1, -0.0, 16777217.0, 3.4e38], pa.float32()), [0.5, 0.1, -0.0, 16777216.0, 3.4e38]),
    (pa.array([[0.1, math.inf], [], None], pa.list_(pa.float32())), [[0.1, "Infinity"], [], None]),
    (pa.array([[0.1, 0.2], None], pa.list_(pa.float32(), 2)), [[0.1, 0.2], None]),
    (pa.array([date(1, 1, 1), date(9999, 12, 31), None]), ["0001-01-01", "9999-12-31", None]),
    (
        pa.array([datetime(2026, 4, 1, 8, 30, tzinfo=UTC), None], pa.timestamp("ms", tz="UTC")),
        ["2026-04-01T08:30:00.000Z", None],
    ),
    (pa.array([["a", None], [], None]), [["a", None], [], None]),
    (pa.array([[date(2024, 1, 2)]]), [["2024-01-02"]]),
    (pa.array([[1.0, math.nan], None], pa.list_(pa.float32(), 2)), [[1.0, "NaN"], None]),
    (lance.blob_array([b"\x01\x02\x03", b"", None]), ["base64:AQID", "base64:", None]),
    (lance.blob_array([lance.Blob.from_uri("file:///x/y")]), ["file:///x/y"]),
]


@pytest.mark.parametrize(("column", "expected"), CASES, ids=[str(column.type)[:40] for column, _ in CASES])
@pytest.mark.parametrize("chunked", [False, True])
def test_values_are_plain(column: pa.Array, expected: list[object], chunked: bool) -> None:
    kind = stored_kind(column.type)
    assert plain(pa.chunked_array([column]) if chunked else column, kind) == expected
