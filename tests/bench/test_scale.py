"""The curves of `bench.scale`: the line through two measurements, and the sizes that are asked for."""

from __future__ import annotations

import pytest

from bench.scale_model import SIZES, Curve, Line, curves, sizes


def test_a_line_through_two_measurements() -> None:
    line = Line.through((10, 25.0), (30, 65.0))
    assert (line.fixed, line.each) == (5.0, 2.0)
    assert line.at(100) == 205.0


@pytest.mark.parametrize(
    ("last", "holds"),
    [(205.0, True), (240.0, True), (260.0, False), (150.0, False)],
    ids=["as told", "more", "far", "less"],
)
def test_whether_a_curve_is_foretold(last: float, holds: bool) -> None:
    curve = Curve("requests", "requests", [(10, 25.0), (30, 65.0), (100, last)])
    assert curve.holds is holds
    *_, row = curve.rows("commits")
    assert row.floor is not None
    assert row.floor.measure.median == 205.0
    assert row.goal == pytest.approx(246.0)


def test_curves_of_measurements() -> None:
    made = curves({3: {("a", "s"): 3.0}, 1: {("a", "s"): 1.0}, 2: {("a", "s"): 2.0}})
    assert [(curve.what, curve.unit, list(curve.points)) for curve in made] == [
        ("a", "s", [(1, 1.0), (2, 2.0), (3, 3.0)])
    ]


def test_sizes_of_the_caller() -> None:
    assert sizes("rows", {}) == SIZES["rows"]
    assert sizes("rows", {"OMNIGRAPH_SCALE": "commits=1,2,3 rows=10,20,30"}) == (10, 20, 30)
    for wrong in ("row=1,2,3", "rows=1,2", "rows=3,2,1", "rows=a,b,c"):
        with pytest.raises(ValueError, match=r"OMNIGRAPH_SCALE|invalid literal"):
            sizes("rows", {"OMNIGRAPH_SCALE": wrong})
