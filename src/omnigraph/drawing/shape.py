"""What SVG and PNG draw alike: colours, sizes, and the way of a line from mark to mark."""

from __future__ import annotations

from dataclasses import dataclass
from math import hypot

from omnigraph.drawing.layout import LONGEST_LABEL, RADIUS, Placed
from omnigraph.drawing.picture import Line

INK, PAPER, THREAD = "#222222", "#ffffff", "#8a8f98"
COLOURS = (
    "#4477aa",
    "#ee6677",
    "#228833",
    "#ccbb44",
    "#66ccee",
    "#aa3377",
    "#dd8833",
    "#7766bb",
    "#44aa99",
    "#999933",
)
_ARROW = 9.0
_BEND = 36.0

Point = tuple[float, float]


@dataclass(frozen=True)
class Way:
    """A line as a curve with one control point, the tip of its arrow, and where its label stands."""

    start: Point
    control: Point
    end: Point
    arrow: tuple[Point, Point, Point]
    label: Point


def colour_of(placed: Placed, group: str) -> str:
    """The colour of a group, the same in every picture of a graph; groups beyond the last colour begin again with the first."""
    return COLOURS[placed.picture.colours.index(group) % len(COLOURS)]


def short(text: str) -> str:
    """A label that fits beside its mark, on one line."""
    line = " ".join(text.split())
    return line if len(line) <= LONGEST_LABEL else line[: LONGEST_LABEL - 1] + "…"


def ways(placed: Placed) -> list[tuple[Line, Way]]:
    """The way of every line; lines between the same two marks bend apart."""
    drawn: dict[frozenset[str], int] = {}
    found = []
    for line in placed.picture.lines:
        pair = frozenset((line.source, line.target))
        nth = drawn.get(pair, 0)
        drawn[pair] = nth + 1
        start, end = placed.places[line.source], placed.places[line.target]
        found.append((line, _loop(start, nth) if line.source == line.target else _curve(start, end, nth, line)))
    return found


def _curve(start: Point, end: Point, nth: int, line: Line) -> Way:
    across, down = end[0] - start[0], end[1] - start[1]
    length = max(hypot(across, down), 1.0)
    # Both directions of a pair measure the bend from the same side, so that they do not lie on each other.
    side = (1 if nth % 2 else -1) * (1 if line.source < line.target else -1)
    bend = side * _BEND * ((nth + 1) // 2)
    control = (
        (start[0] + end[0]) / 2 - down / length * bend,
        (start[1] + end[1]) / 2 + across / length * bend,
    )
    middle = _at_half(start, control, end)
    return Way(_toward(start, control), control, _toward(end, control), _arrow(_toward(end, control), control), middle)


def _loop(place: Point, nth: int) -> Way:
    x, y = place
    control = (x, y - RADIUS - 60.0 - 24.0 * nth)
    start, end = (x - RADIUS * 0.7, y - RADIUS * 0.7), (x + RADIUS * 0.7, y - RADIUS * 0.7)
    return Way(start, control, end, _arrow(end, control), _at_half(start, control, end))


def _at_half(start: Point, control: Point, end: Point) -> Point:
    return (start[0] + 2 * control[0] + end[0]) / 4, (start[1] + 2 * control[1] + end[1]) / 4


def _toward(place: Point, other: Point) -> Point:
    """The edge of a mark, in the direction of another point."""
    across, down = other[0] - place[0], other[1] - place[1]
    length = max(hypot(across, down), 1.0)
    return place[0] + across / length * RADIUS, place[1] + down / length * RADIUS


def _arrow(tip: Point, origin: Point) -> tuple[Point, Point, Point]:
    across, down = tip[0] - origin[0], tip[1] - origin[1]
    length = max(hypot(across, down), 1.0)
    back_x, back_y = -across / length * _ARROW, -down / length * _ARROW
    left = (tip[0] + back_x - back_y / 2, tip[1] + back_y + back_x / 2)
    right = (tip[0] + back_x + back_y / 2, tip[1] + back_y - back_x / 2)
    return tip, left, right
