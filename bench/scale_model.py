"""Curves of cost: measured at three sizes, with a straight line through the first two that says what the third will cost."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from bench.measure import Floor, Measure, Row

#: How far the third measurement may be from what the first two say.
WITHIN = 0.2
#: Sizes of each curve unless `OMNIGRAPH_SCALE` says others: small enough for any machine.
SIZES: Mapping[str, tuple[int, int, int]] = {
    "rows": (100_000, 300_000, 1_000_000),
    "commits": (30, 100, 300),
    "branches": (10, 30, 100),
    "types": (1, 10, 100),
    "writers": (1, 2, 4),
    "milliseconds": (5, 20, 50),
}
VARIABLE = "OMNIGRAPH_SCALE"


def sizes(curve: str, environ: Mapping[str, str] = os.environ) -> tuple[int, int, int]:
    """The sizes of a curve: `OMNIGRAPH_SCALE="rows=1000000,10000000,50000000 commits=100,1000,10000"`."""
    for given in environ.get(VARIABLE, "").split():
        name, _, listed = given.partition("=")
        if name not in SIZES:
            raise ValueError(f"{VARIABLE}: there is no curve '{name}'; the curves are {', '.join(SIZES)}")
        if name == curve:
            numbers = tuple(int(number) for number in listed.split(","))
            if len(numbers) != 3 or list(numbers) != sorted(set(numbers)):
                raise ValueError(f"{VARIABLE}: {curve} takes three numbers, smallest first, not '{listed}'")
            return numbers
    return SIZES[curve]


@dataclass(frozen=True)
class Line:
    """A cost that is the same for every size, and a cost for each piece of it."""

    fixed: float
    each: float

    @classmethod
    def through(cls, one: tuple[float, float], other: tuple[float, float]) -> Line:
        """The line through two measurements, each a size and a cost."""
        each = (other[1] - one[1]) / (other[0] - one[0])
        return cls(one[1] - each * one[0], each)

    def at(self, size: float) -> float:
        """What a size costs."""
        return self.fixed + self.each * size


@dataclass(frozen=True)
class Curve:
    """One cost, measured at some sizes; the last of them is foretold from the first two."""

    what: str
    unit: str
    points: Sequence[tuple[int, float]]

    @property
    def line(self) -> Line:
        return Line.through(self.points[0], self.points[1])

    @property
    def deviation(self) -> float:
        """How far the last measurement is from what was foretold, as a part of it."""
        size, cost = self.points[-1]
        foretold = self.line.at(size)
        return (cost - foretold) / foretold if foretold else 0.0 if cost == foretold else float("inf")

    @property
    def holds(self) -> bool:
        """Whether the line says what the last size costs."""
        return abs(self.deviation) <= WITHIN

    def rows(self, of: str) -> Iterator[Row]:
        """The measurements as lines of the table; the last beside what was foretold, which it may exceed by a fifth."""
        for size, cost in self.points[:-1]:
            yield Row(f"{self.what} at {size:,} {of}", _exactly(cost, self.unit))
        size, cost = self.points[-1]
        foretold = self.line.at(size)
        model = Floor("by the first two", _exactly(foretold, self.unit))
        yield Row(f"{self.what} at {size:,} {of}", _exactly(cost, self.unit), model, foretold * (1 + WITHIN))


def _exactly(value: float, unit: str) -> Measure:
    return Measure(value, value, value, unit)


def curves(measured: Mapping[int, Mapping[tuple[str, str], float]]) -> list[Curve]:
    """Curves from measurements: by size, then by what was measured and its unit."""
    names = dict.fromkeys(name for costs in measured.values() for name in costs)
    return [
        Curve(what, unit, [(size, costs[what, unit]) for size, costs in sorted(measured.items())])
        for what, unit in names
    ]
