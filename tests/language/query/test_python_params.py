"""Parameters as Python programs hold them: dates, timestamps, NumPy and pandas values, decimals, bytes, UUIDs, enums."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pytest

from omnigraph.errors import BadRequest
from omnigraph.language.literals import PlainValue
from tests.language.query.test_params import bind, bind_one

NOON = 1_717_243_200_000  # 2024-06-01T12:00:00Z
PLUS_2 = timezone(timedelta(hours=2))


class Kind(StrEnum):
    CAT = "cat"


class Level(IntEnum):
    HIGH = 7


class Colour(Enum):
    RED = "red"


class Long(int):
    """An integer of a class of its own, as drivers of other databases have."""


@pytest.mark.parametrize(
    ("kind", "value", "bound"),
    [
        pytest.param("Date", date(2024, 6, 1), 19875, id="date"),
        pytest.param("Date", date(1, 1, 1), -719162, id="the first date"),
        pytest.param("Date", datetime(2024, 6, 1), 19875, id="datetime at midnight"),
        pytest.param("Date", datetime(2024, 6, 1, tzinfo=PLUS_2), 19875, id="aware datetime at its own midnight"),
        pytest.param("Date", np.datetime64("2024-06-01"), 19875, id="datetime64 in days"),
        pytest.param("Date", np.datetime64("2024-06-01T00:00:00", "ns"), 19875, id="datetime64 in ns at midnight"),
        pytest.param("DateTime", datetime(2024, 6, 1, 12), NOON, id="naive datetime is UTC"),
        pytest.param("DateTime", datetime(2024, 6, 1, 14, tzinfo=PLUS_2), NOON, id="aware datetime"),
        pytest.param("DateTime", datetime(2024, 6, 1, 14, tzinfo=ZoneInfo("Europe/Berlin")), NOON, id="zone"),
        pytest.param("DateTime", datetime(2024, 6, 1, 12, 0, 0, 5000, tzinfo=UTC), NOON + 5, id="milliseconds"),
        pytest.param("DateTime", datetime(1, 1, 1), -62_135_596_800_000, id="the first datetime"),
        pytest.param("DateTime", np.datetime64("2024-06-01T12:00:00.005", "ns"), NOON + 5, id="datetime64 in ns"),
        pytest.param("DateTime", np.datetime64("2024-06-01T12", "h"), NOON, id="datetime64 in hours"),
        pytest.param("DateTime", np.array(np.datetime64("2024-06-01T12", "s")), NOON, id="datetime64 of no dimension"),
        pytest.param("DateTime?", np.datetime64("NaT"), None, id="NaT of NumPy"),
        pytest.param("I64", np.int32(7), 7, id="NumPy integer"),
        pytest.param("I32", np.uint8(7), 7, id="NumPy small integer"),
        pytest.param("F64", np.float64(1.5), 1.5, id="NumPy float"),
        pytest.param("F32", np.float32(0.1), 0.10000000149011612, id="NumPy 32-bit float"),
        pytest.param("Bool", np.True_, True, id="NumPy bool"),
        pytest.param("I64", Long(7), 7, id="integer of its own class"),
        pytest.param("[U64]", [Long(7), 8], (7, 8), id="integers of their own class"),
        pytest.param("String", np.str_("ada"), "ada", id="NumPy text"),
        pytest.param("I64", np.array(3), 3, id="array of no dimension"),
        pytest.param("[I64]", np.array([1, 2]), (1, 2), id="array of integers"),
        pytest.param("[F64]", np.array([1.5, 2]), (1.5, 2.0), id="array of floats"),
        pytest.param("[String]", np.array(["a", "b"]), ("a", "b"), id="array of texts"),
        pytest.param("[Bool]", np.array([True, False]), (True, False), id="array of bools"),
        pytest.param("[Date]", np.array(["2024-06-01", "1970-01-02"], "M8[ns]"), (19875, 1), id="array of moments"),
        pytest.param("[Date]", [date(1970, 1, 2), "1970-01-03"], (1, 2), id="list of dates and texts"),
        pytest.param("[DateTime]", (datetime(1970, 1, 1, 0, 0, 1),), (1000,), id="tuple of datetimes"),
        pytest.param("[I64]", pa.array([1, 2]), (1, 2), id="Arrow array"),
        pytest.param("[I64]", pa.chunked_array([[1], [2, 3]]), (1, 2, 3), id="Arrow array in chunks"),
        pytest.param("[Date]", pa.table({"d": [date(1970, 1, 2)]})["d"], (1,), id="column of a table"),
        pytest.param("Vector(2)", pa.chunked_array([[0.5, 2.0]]), (0.5, 2.0), id="vector of an Arrow column"),
        pytest.param("I64", pa.scalar(7, pa.int8()), 7, id="Arrow integer"),
        pytest.param("String", pa.scalar("ada"), "ada", id="Arrow text"),
        pytest.param(
            "String", pa.scalar("ada").cast(pa.dictionary(pa.int8(), pa.string())), "ada", id="Arrow category"
        ),
        pytest.param("DateTime", pa.scalar(NOON, pa.timestamp("ms", "UTC")), NOON, id="Arrow moment"),
        pytest.param("[I64]", pa.scalar([1, 2]), (1, 2), id="Arrow list"),
        pytest.param("[I64]", [pa.scalar(1), 2], (1, 2), id="list of Arrow scalars"),
        pytest.param("I64?", pa.scalar(None, pa.int64()), None, id="Arrow null"),
        pytest.param("Vector(2)", np.array([1, 0.5], np.float32), (1.0, 0.5), id="vector of NumPy"),
        pytest.param("Vector(2)", [np.float32(0.5), Decimal(2)], (0.5, 2.0), id="vector of scalars"),
        pytest.param("I64", Decimal("12"), 12, id="decimal integer"),
        pytest.param("I64", Decimal("1.20E+2"), 120, id="decimal with an exponent"),
        pytest.param("F64", Decimal("19.99"), 19.99, id="decimal"),
        pytest.param("F64", Decimal("-0.10"), -0.1, id="decimal with a zero behind"),
        pytest.param("[F64]", [Decimal("0.5"), 1], (0.5, 1.0), id="list of decimals"),
        pytest.param("Blob", b"\x01\x02\x03", "base64:AQID", id="bytes"),
        pytest.param("Blob", bytearray(b""), "base64:", id="no bytes"),
        pytest.param("Blob", memoryview(b"\x01"), "base64:AQ==", id="a view of bytes"),
        pytest.param("String", UUID(int=5), "00000000-0000-0000-0000-000000000005", id="UUID"),
        pytest.param("[String]", [UUID(int=0)], ("00000000-0000-0000-0000-000000000000",), id="list of UUIDs"),
        pytest.param("String", Kind.CAT, "cat", id="StrEnum"),
        pytest.param("String", Colour.RED, "red", id="Enum"),
        pytest.param("I64", Level.HIGH, 7, id="IntEnum"),
        pytest.param("[String]", [Kind.CAT, Colour.RED], ("cat", "red"), id="list of enums"),
    ],
)
def test_accepted(kind: str, value: object, bound: PlainValue) -> None:
    result = bind_one(kind, value)
    assert result == bound
    assert type(result) is type(bound)
    if isinstance(result, tuple):
        assert isinstance(bound, tuple)
        assert [type(item) for item in result] == [type(item) for item in bound]


@pytest.mark.parametrize(
    ("kind", "value", "message"),
    [
        pytest.param("Date", datetime(2024, 6, 1, 1), "'2024-06-01T01:00:00' is not a whole day", id="not midnight"),
        pytest.param(
            "DateTime", date(2024, 6, 1), "expected a text, got the date 2024-06-01", id="a date is no moment"
        ),
        pytest.param("DateTime", datetime(2024, 1, 1, 0, 0, 0, 1), "finer than a millisecond", id="microseconds"),
        pytest.param("DateTime", np.datetime64(1, "ns"), "finer than a microsecond", id="nanoseconds"),
        pytest.param("DateTime", np.datetime64(10_000_000_000_000, "s"), "outside the years", id="far away"),
        pytest.param("DateTime", datetime(1, 1, 1, tzinfo=PLUS_2), "outside the years", id="before the first year"),
        pytest.param("Date", np.datetime64("NaT"), "null is not accepted for non-nullable", id="NaT"),
        pytest.param("String", date(2024, 6, 1), "expected a text, got the date 2024-06-01", id="a date is no text"),
        pytest.param("String", b"ada", "expected a text, got a bytes", id="bytes are no text"),
        pytest.param("String", Level.HIGH, "expected a text, got 7", id="the value of an enum counts"),
        pytest.param("String", np.array(["a"]), "expected a text, got an array", id="an array is no scalar"),
        pytest.param("I64", Decimal("1.5"), "expected an integer, got the decimal 1.5", id="decimal with a fraction"),
        pytest.param("I64", Decimal("1E+999999"), "expected an integer, got the decimal", id="a huge decimal"),
        pytest.param("I64", Decimal("1E+30"), "outside the range of I64", id="a large decimal"),
        pytest.param("F64", Decimal("0.12345678901234567890"), "more digits than F64 holds", id="too many digits"),
        pytest.param("F64", Decimal("NaN"), "finite", id="decimal NaN"),
        pytest.param("F64", Decimal("1E+400"), "outside the range of F64", id="a decimal beyond F64"),
        pytest.param("F64", np.float64("inf"), "finite", id="NumPy infinity"),
        pytest.param("I64", np.float64(2.0), "expected an integer, got 2.0", id="NumPy float is no integer"),
        pytest.param("[I64]", np.array([[1], [2]]), "expected an integer, got an array", id="two dimensions"),
        pytest.param("[I64]", {1, 2}, "expected an array, got a set", id="a set has no order"),
        pytest.param("[Date]", [np.datetime64("NaT")], "null is not accepted as an element", id="NaT in a list"),
        pytest.param("[I64]", pa.chunked_array([[1, None]]), "null is not accepted as an element", id="null in chunks"),
        pytest.param("I64", pa.chunked_array([[1]]), "expected an integer, got an array", id="chunks for an integer"),
        pytest.param("I64", pa.scalar({"a": 1}), "expected an integer, got an object", id="Arrow struct"),
        pytest.param("DateTime", pa.scalar(1, pa.timestamp("s", "No/Where")), "can not be read", id="zone of nowhere"),
        pytest.param("I64", 1j, "expected an integer, got a complex", id="complex"),
        pytest.param("I64", timedelta(1), "expected an integer, got a timedelta", id="timedelta"),
    ],
)
def test_refused(kind: str, value: object, message: str) -> None:
    with pytest.raises(BadRequest) as caught:
        bind_one(kind, value)
    assert message in caught.value.message
    assert "'x'" in caught.value.message


def test_pandas() -> None:
    pandas: Any = pytest.importorskip("pandas")
    noon = pandas.Timestamp("2024-06-01T12:00:00")
    assert bind_one("DateTime", noon) == NOON
    assert bind_one("DateTime", noon.tz_localize("Europe/Berlin")) == NOON - 2 * 3_600_000
    assert bind_one("Date", pandas.Timestamp("2024-06-01")) == 19875
    assert bind_one("[Date]", pandas.Series(pandas.to_datetime(["2024-06-01"]))) == (19875,)
    assert bind_one("[I64]", pandas.Series([1, 2])) == (1, 2)
    assert bind_one("[String]", pandas.Index(["a"])) == ("a",)
    assert bind_one("DateTime?", pandas.NaT) is None
    assert bind_one("I64?", pandas.NA) is None
    with pytest.raises(BadRequest, match="finer than a millisecond"):
        bind_one("DateTime", noon + pandas.Timedelta(1, "ns"))
    with pytest.raises(BadRequest, match="is not a whole day"):
        bind_one("Date", noon)


def test_a_null_of_a_library_is_null() -> None:
    assert bind("$x: Date?", {"x": np.datetime64("NaT")})["x"].value is None
