"""The common parts of SVG and PNG: colours, sizes, and the curves of lines."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import hypot

from omnigraph.drawing.layout import LETTER, LONGEST_LABEL, RADIUS, Placed
from omnigraph.drawing.picture import Line

INK, PAPER, THREAD = "#222222", "#ffffff", "#8a8f98"
#: With more lines than this, lines are faint, so that the marks stand out.
FAINT, MOST_STRONG = "#b6bbc3", 200
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

#: With more lines than this, lines have no names.
MOST_NAMED = 60
#: The places along a line that are tried for its name, as fractions of its length.
_ALONG = (0.5, 0.42, 0.58, 0.34, 0.66, 0.26, 0.74)

Point = tuple[float, float]
#: Left, top, right, bottom.
Box = tuple[float, float, float, float]


@dataclass(frozen=True)
class Way:
    """A line as a curve with one control point, and the tip of its arrow.

    `label`: the middle of the baseline of its name; None when every place along the line is taken.
    """

    start: Point
    control: Point
    end: Point
    arrow: tuple[Point, Point, Point]
    label: Point | None = None

    def at(self, part: float) -> Point:
        """The point of the curve at a parameter from 0 (start) to 1 (end)."""
        first, second, third = (1 - part) ** 2, 2 * part * (1 - part), part**2
        return (
            first * self.start[0] + second * self.control[0] + third * self.end[0],
            first * self.start[1] + second * self.control[1] + third * self.end[1],
        )


def colour_of(placed: Placed, group: str) -> str:
    """The colour of a group, the same in every picture of a graph; groups beyond the last colour begin again with the first."""
    return COLOURS[placed.picture.colours.index(group) % len(COLOURS)]


def short(text: str) -> str:
    """A label that fits beside its mark, on one line."""
    line = " ".join(text.split())
    return line if len(line) <= LONGEST_LABEL else line[: LONGEST_LABEL - 1] + "…"


def ways(placed: Placed) -> list[tuple[Line, Way]]:
    """The curve of every line; lines between the same marks bend apart, and names do not overlap marks or other names."""
    drawn: dict[frozenset[str], int] = {}
    found = []
    for line in placed.picture.lines:
        pair = frozenset((line.source, line.target))
        nth = drawn.get(pair, 0)
        drawn[pair] = nth + 1
        start, end = placed.places[line.source], placed.places[line.target]
        found.append((line, _loop(start, nth) if line.source == line.target else _curve(start, end, nth, line)))
    return _named(placed, found) if len(found) <= MOST_NAMED else found


def _named(placed: Placed, drawn: list[tuple[Line, Way]]) -> list[tuple[Line, Way]]:
    """The lines with places for their names; lines with few free places choose first."""
    taken = [_box_of(mark.label, placed.places[mark.key]) for mark in placed.picture.marks]
    free = {
        at: [point for point in map(way.at, _ALONG) if _is_free(_name_box(line, point), taken)]
        for at, (line, way) in enumerate(drawn)
    }
    names: list[Box] = []
    found = list(drawn)
    for at in sorted(free, key=lambda at: (len(free[at]), at)):
        line, way = drawn[at]
        for point in free[at]:
            box = _name_box(line, point)
            if _is_free(box, names):
                names.append(box)
                found[at] = (line, replace(way, label=point))
                break
    return found


def _box_of(label: str, place: Point) -> Box:
    """The box of a mark with its label."""
    half = max(RADIUS, len(short(label)) * LETTER / 2)
    return place[0] - half, place[1] - RADIUS, place[0] + half, place[1] + RADIUS + 18


def _name_box(line: Line, point: Point) -> Box:
    half = len(short(line.label)) * LETTER / 2 + 2
    return point[0] - half, point[1] - 12, point[0] + half, point[1] + 4


def _is_free(box: Box, taken: list[Box]) -> bool:
    left, top, right, bottom = box
    return not any(left < other[2] and other[0] < right and top < other[3] and other[1] < bottom for other in taken)


def _curve(start: Point, end: Point, nth: int, line: Line) -> Way:
    across, down = end[0] - start[0], end[1] - start[1]
    length = max(hypot(across, down), 1.0)
    # The bend is measured from the same side for both directions of a pair, so that the curves do not overlap.
    side = (1 if nth % 2 else -1) * (1 if line.source < line.target else -1)
    bend = side * _BEND * ((nth + 1) // 2)
    control = (
        (start[0] + end[0]) / 2 - down / length * bend,
        (start[1] + end[1]) / 2 + across / length * bend,
    )
    return Way(_toward(start, control), control, _toward(end, control), _arrow(_toward(end, control), control))


def _loop(place: Point, nth: int) -> Way:
    x, y = place
    control = (x, y - RADIUS - 60.0 - 40.0 * nth)
    start, end = (x - RADIUS * 0.7, y - RADIUS * 0.7), (x + RADIUS * 0.7, y - RADIUS * 0.7)
    return Way(start, control, end, _arrow(end, control))


def _toward(place: Point, other: Point) -> Point:
    """The point on the edge of a mark in the direction of another point."""
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
