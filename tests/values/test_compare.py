"""A column compared with a constant: by value for every type, the same in memory and in a scan, through an index or not."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from omnigraph.language.types import PropType, Scalar
from omnigraph.values.columns import arrow_type
from omnigraph.values.compare import (
    EVERYTHING,
    EXCHANGED,
    NOTHING,
    Comparison,
    coerce,
    coerce_items,
    condition,
    matches,
    scan_filter,
)

#: What a column can be compared with.
Constant = str | int | float | bool | None
PLAIN: dict[str, Callable[[Any, Any], bool]] = {
    "=": lambda left, right: left == right,
    "!=": lambda left, right: left != right,
    "<": lambda left, right: left < right,
    "<=": lambda left, right: left <= right,
    ">": lambda left, right: left > right,
    ">=": lambda left, right: left >= right,
}
INTEGER_VALUES = {
    Scalar.I32: [-(2**31), -3, 0, 2, 3, 2**31 - 1],
    Scalar.I64: [-(2**63), -3, 0, 2, 3, 2**63 - 1],
    Scalar.U32: [0, 2, 3, 2**32 - 1],
    Scalar.U64: [0, 2, 3, 2**63, 2**64 - 1],
}
FLOAT_VALUES = [-math.inf, -2.5, -0.0, 0.0, 0.1, 2.0, 2.5, 1e30, math.inf, math.nan]
#: The values that a column of each type holds here; one null is added to each.
VALUES: dict[Scalar, Sequence[Constant]] = {
    **INTEGER_VALUES,
    Scalar.F32: FLOAT_VALUES,
    Scalar.F64: FLOAT_VALUES,
    Scalar.STRING: ["", "A", "a", "ab", "b", "ü", "it's"],
    Scalar.BOOL: [False, True],
    Scalar.DATE: [-1, 0, 19723],
    Scalar.DATETIME: [-1, 0, 1_700_000_000_000],
}
NUMBERS = [-math.inf, -(2**70), -3, -2.7, -0.0, 0, 2, 2.0, 2.7, 3, 2**31, 2**32, 2**63, 2**64, 1e30, math.inf, math.nan]
#: The constants each column is compared with.
CONSTANTS: dict[Scalar, Sequence[Constant]] = {
    **dict.fromkeys((*INTEGER_VALUES, Scalar.F32, Scalar.F64), NUMBERS),
    Scalar.STRING: ["", "a", "b", "zz", "it's", 'quote"'],
    Scalar.BOOL: [False, True],
    Scalar.DATE: [-1, 0, 1, 19723],
    Scalar.DATETIME: [-1, 0, 1, 1_700_000_000_000],
}


def column(scalar: Scalar) -> pa.Array:
    """The values of a type, then a null, in its stored form."""
    return pa.array([*VALUES[scalar], None], arrow_type(PropType(scalar)))


def expected(scalar: Scalar, operator: str, constant: Constant) -> list[int]:
    """The positions that satisfy the comparison, by the values as Python compares them."""
    stored = column(scalar)
    if scalar in (Scalar.DATE, Scalar.DATETIME):
        values = [*VALUES[scalar], None]
    else:
        values = stored.to_pylist()
    if scalar is Scalar.F32 and isinstance(constant, float):
        # The stored width decides.
        constant = pa.scalar(constant, pa.float64()).cast(pa.float32(), safe=False).as_py()
    return [row for row, value in enumerate(values) if value is not None and PLAIN[operator](value, constant)]


@pytest.mark.parametrize("operator", EXCHANGED)
@pytest.mark.parametrize("scalar", VALUES, ids=str)
def test_in_memory_a_comparison_is_by_value(scalar: Scalar, operator: str) -> None:
    stored = pa.chunked_array([column(scalar)])
    for constant in CONSTANTS[scalar]:
        mask = matches(stored, coerce(PropType(scalar), operator, constant))
        assert mask.null_count == 0
        assert pc.indices_nonzero(mask).to_pylist() == expected(scalar, operator, constant), constant


@pytest.fixture(scope="module")
def datasets(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[Scalar, bool], lance.LanceDataset]:
    """A dataset of each type, without and with an index on the column."""
    found = {}
    for scalar, indexed in product(VALUES, (False, True)):
        place = tmp_path_factory.mktemp("column") / "d"
        dataset = lance.write_dataset(pa.table({"camelCase": column(scalar)}), place)
        if indexed:
            dataset.create_scalar_index("camelCase", "BTREE")
        found[scalar, indexed] = dataset
    return found


@pytest.mark.parametrize("indexed", [False, True], ids=["scan", "index"])
@pytest.mark.parametrize("operator", EXCHANGED)
@pytest.mark.parametrize("scalar", VALUES, ids=str)
def test_a_scan_finds_the_same_rows(
    datasets: dict[tuple[Scalar, bool], lance.LanceDataset], scalar: Scalar, operator: str, indexed: bool
) -> None:
    kind, dataset = PropType(scalar), datasets[scalar, indexed]
    for constant in CONSTANTS[scalar]:
        asked = coerce(kind, operator, constant)
        scanner = dataset.scanner(columns=[], filter=scan_filter("camelCase", kind, asked), with_row_address=True)
        assert sorted(scanner.to_table()["_rowaddr"].to_pylist()) == expected(scalar, operator, constant), constant
        # Every value is in the column's own type, so the index answers wherever there is something to look up.
        if isinstance(asked, Comparison) and indexed:
            assert "ScalarIndexQuery" in scanner.explain_plan(), constant


I32, U32, U64, F32, F64 = (PropType(scalar) for scalar in (Scalar.I32, Scalar.U32, Scalar.U64, Scalar.F32, Scalar.F64))


@pytest.mark.parametrize(
    ("kind", "operator", "constant", "meaning"),
    [
        (I32, "=", 2.7, NOTHING),
        (I32, "!=", 2.7, EVERYTHING),
        (I32, ">", 2.7, Comparison(">=", pa.scalar(3, pa.int32()))),
        (I32, "<", 2.7, Comparison("<=", pa.scalar(2, pa.int32()))),
        (I32, "<=", -2.7, Comparison("<=", pa.scalar(-3, pa.int32()))),
        (I32, "=", 2.0, Comparison("=", pa.scalar(2, pa.int32()))),
        (I32, "=", 3_000_000_000, NOTHING),
        (I32, "<", 3_000_000_000, EVERYTHING),
        (I32, ">", -3_000_000_000, EVERYTHING),
        (I32, "<=", 2**31 - 0.5, Comparison("<=", pa.scalar(2**31 - 1, pa.int32()))),
        (U32, ">=", -1, EVERYTHING),
        (U32, ">", -0.5, Comparison(">=", pa.scalar(0, pa.uint32()))),
        (U64, "=", 2**64, NOTHING),
        (U64, "=", 2**64 - 1, Comparison("=", pa.scalar(2**64 - 1, pa.uint64()))),
        (F32, "=", 0.1, Comparison("=", pa.scalar(0.1, pa.float32()))),
        (F64, "<", math.nan, NOTHING),
        (F64, "!=", math.nan, EVERYTHING),
        (PropType(Scalar.STRING), "=", None, NOTHING),
        (PropType(Scalar.STRING), "!=", None, NOTHING),
    ],
)
def test_what_a_comparison_becomes(kind: PropType, operator: str, constant: Constant, meaning: object) -> None:
    assert coerce(kind, operator, constant) == meaning


def test_exchanged_operands_say_the_same() -> None:
    for operator, (left, right) in product(EXCHANGED, product([1, 2], [1, 2])):
        assert PLAIN[operator](left, right) == PLAIN[EXCHANGED[operator]](right, left)


def test_conditions_can_be_combined(tmp_path: Path) -> None:
    dataset = lance.write_dataset(pa.table({"n": pa.array([1, 2, 3, None], pa.int32())}), tmp_path / "d")
    above, below = (condition("n", coerce(I32, operator, 2)) for operator in (">=", "<="))
    assert dataset.to_table(filter=above & below)["n"].to_pylist() == [2]


#: Lists as a query may hold them: all of the column's own kind, too large or too small, of other kinds, with null.
LISTS: list[list[str | int | float | bool | None]] = [
    [],
    [3, 2, 3],
    [2**31, 3],
    [-(2**63) - 1, 2**64],
    [2, 2.0, 2.5],
    [2.0, -0.0, math.inf, math.nan],
    [None, 3],
]


@pytest.mark.parametrize("scalar", [*INTEGER_VALUES, Scalar.F32, Scalar.F64], ids=str)
@pytest.mark.parametrize("values", LISTS, ids=str)
def test_items_are_coerced_as_each_of_them_is(scalar: Scalar, values: list[str | int | float | bool | None]) -> None:
    kind = PropType(scalar)
    each = [coerce(kind, "=", value) for value in values]
    expected = [found.value.as_py() for found in each if isinstance(found, Comparison)]
    items = coerce_items(kind, values)
    assert items.type == arrow_type(kind)
    assert items.to_pylist() == expected


def test_items_of_other_types_are_what_the_column_holds() -> None:
    assert coerce_items(PropType(Scalar.STRING), ["a", "", "a"]).equals(pa.array(["a", "", "a"]))
    assert coerce_items(PropType(Scalar.DATE), [0, 19723]).equals(pa.array([0, 19723], pa.int32()).cast(pa.date32()))
    assert coerce_items(PropType(Scalar.BOOL), [True, None]).equals(pa.array([True]))
