"""Computed values in the type of a property: what is cast, and which value is told where one can not be."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pytest

from omnigraph.language.schema.build import compile_schema
from omnigraph.language.types import PropType
from omnigraph.values.columns import arrow_type
from omnigraph.values.fitting import Unfit, fitted_column


def kind_of(text: str) -> PropType:
    return compile_schema(f"node N {{ p: {text} }}").nodes["N"].properties["p"].type


def fitted(values: list[Any], found: str, kind: str) -> list[Any]:
    column = pa.array(values, arrow_type(kind_of(found)))
    return list(fitted_column(column, kind_of(found), kind_of(kind)).to_pylist())


@pytest.mark.parametrize(
    ("values", "found", "kind", "expected"),
    [
        ([1.0, None, -2.0], "F64?", "I32?", [1, None, -2]),
        ([1, 2**31 - 1], "I64", "I32", [1, 2**31 - 1]),
        ([0.1, math.inf, None], "F64?", "F32?", [pytest.approx(0.1), math.inf, None]),
        ([[1, None], None], "[I64]?", "[I32]?", [[1, None], None]),
        ([2**53 + 1, None], "I64?", "F64?", [2.0**53, None]),
        ([], "I64", "I32", []),
    ],
)
def test_what_fits(values: list[Any], found: str, kind: str, expected: list[Any]) -> None:
    assert fitted(values, found, kind) == expected


@pytest.mark.parametrize(
    ("values", "found", "kind", "row", "reason"),
    [
        ([1, None, 2**31, 2**40], "I64?", "I32?", 2, "2147483648 is outside the range of I32"),
        ([0.5], "F64", "I64", 0, "0.5 is not a whole number, I64 holds only those"),
        ([*range(1000), -1], "I64", "U64", 1000, "-1 is outside the range of U64"),
        ([1.0, math.nan], "F64", "I32", 1, "nan is not a whole number"),
        ([1.0, math.inf], "F64", "I32", 1, "inf is not a whole number"),
        ([math.inf, 1e39], "F64", "F32", 1, "a number is outside the range of F32"),
        ([[1.0], None, [2.0, 1e39]], "[F64]?", "[F32]?", 2, "a number is outside the range of F32"),
        ([[1], [2, None, 2**31]], "[I64]", "[I32]", 1, "2147483648 is outside the range of I32"),
    ],
)
def test_the_first_that_does_not_fit(values: list[Any], found: str, kind: str, row: int, reason: str) -> None:
    with pytest.raises(Unfit) as refused:
        fitted(values, found, kind)
    assert (refused.value.row, str(refused.value).startswith(reason)) == (row, True)


def test_what_a_null_list_hides_is_not_asked_about() -> None:
    hiding = pa.ListArray.from_arrays(
        pa.array([0, 1, 2], pa.int32()), pa.array([2**40, 1]), mask=pa.array([True, False])
    )
    assert fitted_column(hiding, kind_of("[I64]?"), kind_of("[I32]?")).to_pylist() == [None, [1]]
