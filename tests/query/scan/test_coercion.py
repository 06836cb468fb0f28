"""Comparisons of columns with constants: every type, operator and operand order, with and without an index."""

from __future__ import annotations

import operator
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from tests.query.loading import append

OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
EXCHANGED = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}

SCHEMA = """
node N {
  k: String @key
  i32: I32? @index
  i64: I64? @index
  u32: U32? @index
  u64: U64? @index
  f32: F32? @index
  f64: F64? @index
  date: Date? @index
  at: DateTime? @index
}
"""
SIGNED = [-(2**31), -3, 0, 2, 3, 2**31 - 1, None]
VALUES: dict[str, list[Any]] = {
    "i32": SIGNED,
    "i64": [-(2**63), -3, 0, 2, 3, 2**63 - 1, None],
    "u32": [0, 1, 2, 3, 7, 2**32 - 1, None],
    "u64": [0, 1, 2, 3, 7, 2**63 - 1, None],
    "f32": [-2.5, -0.0, 0.0, 0.5, 2.0, 3.5, None],
    "f64": [-2.5, -0.0, 0.0, 0.1, 2.0, float("nan"), None],
    "date": ["1969-12-31", "1970-01-01", "2024-02-29", "2024-03-01", "2030-01-01", "9999-12-31", None],
    "at": [
        "1969-12-31T23:59:59.999Z",
        "1970-01-01T00:00:00.000Z",
        "2024-02-29T12:00:00.000Z",
        "2024-02-29T12:00:00.001Z",
        "2030-01-01T00:00:00.000Z",
        "9999-12-31T00:00:00.000Z",
        None,
    ],
}
#: Fitting, whole floats, fractions, and beyond the range of some or all types.
NUMBERS = ["2", "3", "0", "2.0", "2.7", "0.1", "0.5", "2147483647", "3000000000", "4294967296", "9223372036854775807"]
CONSTANTS = {
    **dict.fromkeys(("i32", "i64", "u32", "u64", "f32", "f64"), NUMBERS),
    "date": ['date("2024-02-29")', 'date("0001-01-01")'],
    "at": ['datetime("2024-02-29T12:00:00Z")', 'datetime("2024-02-29T13:00:00+01:00")'],
}
#: Which constants an integer type can hold. Others decide the comparison without an index; the other types hold all.
FITS: dict[str, Callable[[float], bool]] = {
    "i32": lambda value: value == int(value) and value < 2**31,
    "i64": lambda value: value == int(value) and value < 2**63,
    "u32": lambda value: value == int(value) and value < 2**32,
    "u64": lambda value: value == int(value) and value < 2**64,
}


@pytest.fixture(scope="module", params=["indexed", "unindexed"])
def numbers(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> og.Graph:
    graph = og.init(Path(tmp_path_factory.mktemp("numbers")) / "g", SCHEMA)
    rows = [{name: values[place] for name, values in VALUES.items()} for place in range(len(SIGNED))]
    append(graph, [{"type": "N", "data": {"k": f"k{place}", **row}} for place, row in enumerate(rows)])
    if request.param == "indexed":
        graph.ensure_indices()
    return graph


def plain(constant: str, column: str) -> Any:
    if column in ("date", "at"):
        text = constant.split('"')[1]
        return {"2024-02-29T12:00:00Z": VALUES["at"][2], "2024-02-29T13:00:00+01:00": VALUES["at"][2]}.get(text, text)
    value: int | float = float(constant) if "." in constant else int(constant)
    if column == "f32":
        import numpy as np

        return float(np.float32(value))
    return float(value) if column == "f64" else value


@pytest.mark.parametrize("column", VALUES)
@pytest.mark.parametrize("word", OPERATORS)
def test_every_comparison(numbers: og.Graph, column: str, word: str) -> None:
    indexed = bool(numbers.snapshot().open("node:N").indices())
    for constant in CONSTANTS[column]:
        wanted = plain(constant, column)
        expected = {
            f"k{place}"
            for place, value in enumerate(VALUES[column])
            if value is not None and OPERATORS[word](value, wanted)
        }
        for condition in (f"$n.{column} {word} {constant}", f"{constant} {EXCHANGED[word]} $n.{column}"):
            source = f"query q() {{ match {{ $n: N {condition} }} return {{ $n.k }} }}"
            assert {row["n.k"] for row in numbers.query(source).rows} == expected, condition
        if indexed and word != "!=" and (column not in FITS or FITS[column](float(constant))):
            assert "_btree (BTREE)" in numbers.explain(source).steps, (column, constant)
