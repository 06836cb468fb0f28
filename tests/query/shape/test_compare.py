"""Comparisons in memory: numpy and bits instead of Arrow's kernels, with the same answers."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest

from omnigraph.language.types import PropType, Scalar
from omnigraph.query.shape.compare import as_mask, compare_constant
from omnigraph.values.compare import EXCHANGED, coerce, matches

COLUMNS = [
    pytest.param(Scalar.I32, pa.int32(), [3, -1, 0, 2**31 - 1, 7, -(2**31)], id="I32"),
    pytest.param(Scalar.U64, pa.uint64(), [0, 1, 2**64 - 1, 2**63, 7, 5], id="U64"),
    pytest.param(Scalar.F32, pa.float32(), [0.1, -0.0, math.nan, math.inf, 2.5, -math.inf], id="F32"),
    pytest.param(Scalar.F64, pa.float64(), [0.1, -0.0, math.nan, math.inf, 2.5, 1e300], id="F64"),
]
CONSTANTS = [0, 7, 2.5, 0.1, -1, 2**63, 1e300, math.nan, math.inf]


@pytest.mark.parametrize(("scalar", "kind", "values"), COLUMNS)
@pytest.mark.parametrize("with_null", [False, True], ids=["whole", "nulls"])
def test_numbers_compare_as_arrow_compares_them(
    scalar: Scalar, kind: pa.DataType, values: list[float], with_null: bool
) -> None:
    column = pa.array([*values, None] if with_null else values, kind)
    for part in (column, column.slice(2), column.slice(1, 3), column.slice(0, 0)):
        for operator in EXCHANGED:
            for constant in CONSTANTS:
                coerced = coerce(PropType(scalar), operator, constant)
                expected = matches(part, coerced).to_pylist()
                assert compare_constant(part, coerced).tolist() == expected, (operator, constant)


def test_a_mask_is_the_truth_of_each_row_and_can_be_changed() -> None:
    truth = pa.array([True, None, False] * 50)
    for part in (truth, truth.slice(5, 77), truth.slice(149), truth.slice(3, 0)):
        mask = as_mask(part)
        assert mask.tolist() == [value is True for value in part.to_pylist()]
        mask &= np.zeros(len(mask), np.bool_)
    chunked = pa.chunked_array([truth.slice(0, 9), truth.slice(9, 20)])
    assert as_mask(chunked).tolist() == [value is True for value in chunked.to_pylist()]
    assert as_mask(pa.chunked_array([], pa.bool_())).tolist() == []
