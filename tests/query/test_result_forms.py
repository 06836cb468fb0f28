"""What a result can be had as: data frames, Arrow, text, HTML."""

from __future__ import annotations

import json
import math
import sys
from datetime import UTC, date, datetime
from typing import Any

import pyarrow as pa
import pytest

import omnigraph as og
from omnigraph.errors import BadRequest
from omnigraph.language.types import PropType, Scalar
from omnigraph.query.result import MOST_ROWS, Result
from tests.query.fixtures import ORG_QUERIES


def result_of(*texts: str | None, name: str = "a.b") -> Result:
    return Result(pa.table({name: pa.array(texts, pa.string())}), (PropType(Scalar.STRING, nullable=True),), "01J")


def test_pandas(org: og.Graph) -> None:
    pytest.importorskip("pandas")
    result = org.query(ORG_QUERIES, "everyone")
    frame = result.to_pandas()
    assert list(frame.columns) == ["s.handle", "s.level"]
    assert frame["s.handle"].tolist() == [row["s.handle"] for row in result]


def test_polars(org: og.Graph) -> None:
    pytest.importorskip("polars")
    result = org.query(ORG_QUERIES, "everyone")
    assert result.to_polars().to_dicts() == result.rows


@pytest.mark.parametrize(("library", "method"), [("pandas", "to_pandas"), ("polars", "to_polars")])
def test_a_library_that_is_missing(monkeypatch: pytest.MonkeyPatch, library: str, method: str) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(BadRequest, match=f"{library} is not installed"):
        getattr(result_of("x"), method)()


def test_any_library_that_speaks_arrow(org: og.Graph) -> None:
    result = org.query(ORG_QUERIES, "everyone")
    duckdb: Any = pytest.importorskip("duckdb")
    assert pa.RecordBatchReader.from_stream(result).read_all().equals(result.to_arrow())
    assert duckdb.sql('select count("s.handle") from result').fetchall() == [(len(result),)]


def test_a_value_can_not_steer_a_terminal_or_a_page() -> None:
    result = result_of("\x1b[31mred\n<b>", name="<i>")
    assert str(result).splitlines() == ["<i>", "-" * 16, r"\x1b[31mred\n<b>"]
    cells = "<th>&lt;i&gt;</th></tr></thead><tbody><tr><td>\\x1b[31mred\n&lt;b&gt;</td></tr></tbody></table>"
    assert cells in result._repr_html_()


def test_wide_characters_keep_columns_straight() -> None:
    table = pa.table({"a": ["東京", "x"], "b": ["1", "2"]})
    kind = PropType(Scalar.STRING)
    assert str(Result(table, (kind, kind), "01J")).splitlines() == ["a    | b", "-----+--", "東京 | 1", "x    | 2"]


def test_only_the_first_rows_are_looked_at() -> None:
    result = result_of(*map(str, range(MOST_ROWS + 5)))
    assert str(result).splitlines()[-2:] == [str(MOST_ROWS - 1), f"… {MOST_ROWS + 5} rows in all"]
    assert f"{MOST_ROWS + 5:,} rows, the first 20 and the last 5 shown" in result._repr_html_()
    assert "rows" not in vars(result), "all rows were made for a table of some"
    assert len(result.rows) == MOST_ROWS + 5


def test_rows_hold_python_values_and_json_holds_texts() -> None:
    """Rows, iteration and `to_dicts` agree; what is shown on a terminal or sent is JSON."""
    instant = datetime(2024, 6, 1, 12, 0, 0, 5000, tzinfo=UTC)
    columns: dict[str, tuple[pa.Array, PropType, Any, Any]] = {
        "day": (pa.array([19875], pa.date32()), PropType(Scalar.DATE), date(2024, 6, 1), "2024-06-01"),
        "at": (
            pa.array([1_717_243_200_005], pa.timestamp("ms", tz="UTC")),
            PropType(Scalar.DATETIME),
            instant,
            "2024-06-01T12:00:00.005Z",
        ),
        "days": (
            pa.array([[0, None]], pa.list_(pa.date32())),
            PropType(Scalar.DATE, is_list=True),
            [date(1970, 1, 1), None],
            ["1970-01-01", None],
        ),
        "x": (pa.array([math.inf]), PropType(Scalar.F64), math.inf, "Infinity"),
        "f": (pa.array([0.1], pa.float32()), PropType(Scalar.F32), 0.1, 0.1),
        "v": (
            pa.array([[0.1, math.inf]], pa.list_(pa.float32(), 2)),
            PropType(Scalar.VECTOR, dimension=2),
            [0.1, math.inf],
            [0.1, "Infinity"],
        ),
        "t": (pa.array(["x"]), PropType(Scalar.STRING), "x", "x"),
        "none": (pa.array([None], pa.date32()), PropType(Scalar.DATE, nullable=True), None, None),
    }
    table = pa.table({name: column[0] for name, column in columns.items()})
    result = Result(table, tuple(column[1] for column in columns.values()), "01J")
    python = {name: column[2] for name, column in columns.items()}
    shown = {name: column[3] for name, column in columns.items()}
    assert result.rows == result.to_dicts() == list(result) == [python]
    assert result.rows[0]["at"].tzinfo is UTC
    assert result.to_dicts(json=True) == json.loads(result.to_json()) == result.to_dict()["rows"] == [shown]
    assert "2024-06-01T12:00:00.005Z" in str(result)


def test_no_columns_and_no_rows() -> None:
    empty = Result(pa.table({}), (), "01J")
    assert (str(empty), empty.rows, len(empty)) == ("", [], 0)
    assert str(result_of()).splitlines() == ["a.b", "---"]
