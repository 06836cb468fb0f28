"""Tables of every library: each type of property, with nulls, as Arrow, pandas, polars and Spark hold it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import omnigraph as og
from omnigraph.errors import BadRequest, LoadRejected
from tests.load.loading import rows

SCHEMA = """
node T {
  key: String @key
  text: String? small: I32? wide: I64? plain: U64? half: F32? real: F64? yes: Bool? day: Date? at: DateTime?
  words: [String]? numbers: [I64]? days: [Date]? vector: Vector(3)? blob: Blob?
}
"""
#: 12:30 in a zone two hours east of Greenwich.
_MOMENT = datetime(2024, 2, 29, 12, 30, 0, 123000, timezone(timedelta(hours=2)))
ROWS: list[dict[str, Any]] = [
    {
        "key": "full",
        "text": "ä \U0001f600",
        "small": -(2**31),
        "wide": 2**63 - 1,
        "plain": 2**53,
        "half": 0.5,
        "real": -1e300,
        "yes": True,
        "day": date(1, 1, 1),
        "at": _MOMENT,
        "words": ["a", ""],
        "numbers": [1, -1],
        "days": [date(2024, 2, 29)],
        "vector": [1.0, 2.5, -3.0],
        "blob": "base64:AAH/",
    },
    {"key": "empty", "text": "", "words": [], "numbers": [], "days": [], "blob": "base64:"},
    {"key": "null"},
]


def arrow(**changed: pa.DataType) -> pa.Table:
    """The rows as an Arrow table; some columns of another type than the plain one."""
    kinds: dict[str, pa.DataType] = {
        "key": pa.string(),
        "text": pa.string(),
        "small": pa.int32(),
        "wide": pa.int64(),
        "plain": pa.uint64(),
        "half": pa.float32(),
        "real": pa.float64(),
        "yes": pa.bool_(),
        "day": pa.date32(),
        "at": pa.timestamp("ms", "UTC"),
        "words": pa.list_(pa.string()),
        "numbers": pa.list_(pa.int64()),
        "days": pa.list_(pa.date32()),
        "vector": pa.list_(pa.float32(), 3),
        "blob": pa.string(),
    }
    kinds |= changed
    return pa.table({name: pa.array([row.get(name) for row in ROWS], kind) for name, kind in kinds.items()})


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    return og.init(tmp_path / "g", SCHEMA)


def check(graph: og.Graph) -> None:
    """What is stored is what was given, whatever it was held in."""
    found = {row["id"]: {name: value for name, value in row.items() if name != "id"} for row in rows(graph, "node:T")}
    assert list(found) == ["empty", "full", "null"]
    full = found["full"]
    assert full["at"].astimezone(UTC) == _MOMENT
    assert {name: full[name] for name in full if name not in ("at", "blob")} == {
        name: value for name, value in ROWS[0].items() if name not in ("at", "blob")
    }
    assert full["blob"] == b"\x00\x01\xff"
    assert {name: value for name, value in found["null"].items() if value is not None} == {"key": "null"}
    assert {name: value for name, value in found["empty"].items() if value is not None} == {
        "key": "empty",
        "text": "",
        "words": [],
        "numbers": [],
        "days": [],
        "blob": b"",
    }


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param({}, id="plain"),
        pytest.param({"key": pa.large_string(), "text": pa.large_string()}, id="large text"),
        pytest.param({"text": pa.string_view()}, id="views"),
        pytest.param({"key": pa.dictionary(pa.int32(), pa.string())}, id="dictionary"),
        pytest.param({"small": pa.int64(), "wide": pa.int64(), "plain": pa.int64()}, id="wider integers"),
        pytest.param({"half": pa.float64(), "vector": pa.list_(pa.float64())}, id="wider floats"),
        pytest.param({"vector": pa.large_list(pa.float32()), "words": pa.large_list(pa.string())}, id="large lists"),
        pytest.param({"day": pa.date64()}, id="days as milliseconds"),
        pytest.param({"at": pa.timestamp("us", "+02:00")}, id="a zone"),
        pytest.param({"at": pa.timestamp("ns", "Europe/Helsinki")}, id="a place"),
        pytest.param({"words": pa.list_(pa.large_string())}, id="lists of large text"),
        pytest.param({"numbers": pa.list_(pa.int32())}, id="lists of narrow integers"),
    ],
)
def test_arrow(graph: og.Graph, changed: dict[str, pa.DataType]) -> None:
    graph.load(arrow(**changed), type="T", engine="local")
    check(graph)


def test_parquet(graph: og.Graph, tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    pq.write_table(arrow(), tmp_path / "in.parquet")
    graph.load(tmp_path / "in.parquet", type="T", engine="local")
    check(graph)


def test_pandas(graph: og.Graph) -> None:
    """With types of its own for what may be null, and without, where null makes integers floats."""
    pytest.importorskip("pandas")
    frame = arrow().to_pandas(types_mapper=_nullable())
    graph.load(frame, type="T", engine="local")
    check(graph)


def _nullable() -> Callable[[pa.DataType], Any]:
    import pandas

    return {
        pa.int32(): pandas.Int32Dtype(),
        pa.int64(): pandas.Int64Dtype(),
        pa.uint64(): pandas.UInt64Dtype(),
        pa.bool_(): pandas.BooleanDtype(),
    }.get


def test_frames_that_are_no_tables_are_refused(graph: og.Graph) -> None:
    pandas = pytest.importorskip("pandas")
    for frame, message in (
        (pandas.DataFrame({"k": ["a", 1]}), "can not take the pandas frame as a table: Conversion failed for column k"),
        (pandas.DataFrame([["a", "b"]], columns=["k", "k"]), "Duplicate column names"),
        (pandas.Series(["a"], name="k"), "load a frame"),
    ):
        with pytest.raises(BadRequest, match=message):
            graph.load(frame, type="T", engine="local")


def test_large_integers_as_floats(graph: og.Graph) -> None:
    """Beyond 2^53, where not every integer is a float."""
    large = pa.array([2**64 - 1], pa.uint64())
    graph.load(pa.table({"key": ["n"], "half": large, "real": large}), type="T", engine="local")
    found = graph.entity("node", "T", "n")
    assert found is not None
    assert (found["half"], found["real"]) == (1.8446744e19, 2.0**64)


def test_polars(graph: og.Graph) -> None:
    polars = pytest.importorskip("polars")
    graph.load(polars.from_arrow(arrow()), type="T", engine="local")
    check(graph)


def test_spark(graph: og.Graph) -> None:
    """A frame of Spark, which has neither unsigned numbers nor lists of a fixed size; nor does the session have pandas."""
    from omnigraph.spark.session import spark_session

    table = arrow(plain=pa.int64(), vector=pa.list_(pa.float32()))
    graph.load(spark_session().sql.createDataFrame(table), type="T", engine="spark")
    check(graph)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"wide": pa.array([1.5])}, "expected an integer, got 1.5"),
        ({"small": pa.array([2**31])}, "outside the range of I32"),
        ({"plain": pa.array([-1])}, "outside the range of U64"),
        ({"half": pa.array([1e39])}, "outside the range of F32"),
        ({"vector": pa.array([[1.0, 2.0]])}, "expects 3 dimensions, got 2"),
        ({"vector": pa.array([[1.0, None, 2.0]])}, "elements must be numeric"),
        ({"words": pa.array([["a", None]])}, "T.words"),
        ({"at": pa.array([1], pa.timestamp("us", "UTC"))}, "finer than a millisecond"),
        ({"day": pa.array(["2024-02-30"])}, "is not a day of the calendar"),
        ({"yes": pa.array([1])}, "T.yes"),
        ({"text": pa.array([5])}, "T.text"),
    ],
)
def test_values_that_do_not_fit(graph: og.Graph, changed: dict[str, pa.Array], message: str) -> None:
    with pytest.raises(LoadRejected, match=message) as rejected:
        graph.load(pa.table({"key": ["a"], **changed}), type="T", engine="local")
    assert rejected.value.errors[0][1] == 1
    assert rows(graph, "node:T") == []
