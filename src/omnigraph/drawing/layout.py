"""The layout of a picture: connected parts are laid out separately, then packed. It is deterministic."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from omnigraph.drawing.picture import Mark, Picture

RADIUS = 18.0
LONGEST_LABEL = 24
#: The target distance of connected marks, in pixels.
ROOM = 130.0
#: Pixels around the picture, between its parts, and per letter of a label.
MARGIN, GAP, LETTER = 40.0, 80.0, 6.6
#: Rounds of the force layout: fewer for large parts, whose rounds take longer.
_STEPS, _STEPS_OF_LARGE, _LARGE = 200, 60, 500
#: The most rounds of pushing marks apart until no labels overlap; not done for more marks than _MOST_PUSHED.
_ROUNDS, _MOST_PUSHED = 80, 1000
#: The pull of marks to the middle of their part, and how much larger than its marks require a part may be.
_GRAVITY, _LOOSE = 0.3, 1.8
#: The intended ratio of width to height.
_ASPECT = 1.5

Points = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Placed:
    """A picture with a place for every mark, and its size; `groups`: the occurring groups in the order of the legend."""

    picture: Picture
    places: dict[str, tuple[float, float]]
    width: float
    height: float
    groups: tuple[str, ...]


def place(picture: Picture) -> Placed:
    """Lay out a picture: the legend at the left, the parts beside it."""
    boxes = _boxes(picture.marks)
    number = {mark.key: at for at, mark in enumerate(picture.marks)}
    pairs = {(number[line.source], number[line.target]) for line in picture.lines if line.source != line.target}
    ends = np.array(sorted(pairs), np.int64).reshape(-1, 2)
    points = np.zeros((len(picture.marks), 2))
    parts = _parts(len(picture.marks), ends)
    for part, corner in zip(parts, _packed(parts, ends, boxes, points), strict=True):
        points[part] += corner
    present = {mark.group for mark in picture.marks}
    groups = tuple(group for group in picture.colours if group in present)
    legend = max((len(label) for label in (*groups, picture.title[:LONGEST_LABEL])), default=0) * LETTER + 60
    points += (legend, MARGIN)
    width, height = (points + boxes).max(axis=0).tolist() if len(points) else (0.0, 0.0)
    places = {mark.key: (float(x), float(y)) for mark, (x, y) in zip(picture.marks, points, strict=True)}
    return Placed(
        picture, places, max(width + MARGIN, 320.0), max(height + MARGIN, 60.0 + 18 * len(groups), 120.0), groups
    )


def _boxes(marks: Sequence[Mark]) -> Points:
    """Half the width and half the height of each mark with its label."""
    widths = [max(RADIUS, min(len(mark.label), LONGEST_LABEL) * LETTER / 2) + 6 for mark in marks]
    return np.array([(width, RADIUS + 14) for width in widths]).reshape(-1, 2)


def _parts(count: int, ends: npt.NDArray[np.int64]) -> list[npt.NDArray[np.int64]]:
    """The connected parts as arrays of marks, the largest first; all marks without lines are one part."""
    owner = list(range(count))

    def root(at: int) -> int:
        while owner[at] != at:
            owner[at] = owner[owner[at]]
            at = owner[at]
        return at

    for one, other in ends.tolist():
        owner[root(one)] = root(other)
    joined: dict[int, list[int]] = {}
    for at in range(count):
        joined.setdefault(root(at), []).append(at)
    alone = [at for part in joined.values() if len(part) == 1 for at in part]
    found = sorted((part for part in joined.values() if len(part) > 1), key=lambda part: (-len(part), part[0]))
    return [np.array(part, np.int64) for part in ([*found, alone] if alone else found)]


def _packed(
    parts: Sequence[npt.NDArray[np.int64]], ends: npt.NDArray[np.int64], boxes: Points, points: Points
) -> list[Points]:
    """Lay out each part in `points`, from (0, 0) on; returns the corner of each part in an arrangement in rows."""
    sizes = []
    for part in parts:
        inside = np.isin(ends[:, 0], part) if len(ends) else np.zeros(0, np.bool_)
        local = np.searchsorted(part, ends[inside]) if inside.any() else ends[:0]
        found = _apart(_spread(len(part), local) if len(local) else _grid(boxes[part]), boxes[part])
        found = found - (found - boxes[part]).min(axis=0)
        points[part] = found
        sizes.append((found + boxes[part]).max(axis=0))
    area = sum(float((size[0] + GAP) * (size[1] + GAP)) for size in sizes)
    widest = max([*(float(size[0]) for size in sizes), (area * _ASPECT) ** 0.5], default=0.0)
    corners, x, y, row = [], 0.0, 0.0, 0.0
    for size in sizes:
        if x and x + size[0] > widest:
            x, y, row = 0.0, y + row + GAP, 0.0
        corners.append(np.array([x, y]))
        x, row = x + float(size[0]) + GAP, max(row, float(size[1]))
    return corners


def _spread(count: int, ends: npt.NDArray[np.int64]) -> Points:
    """The force layout of Fruchterman and Reingold: repulsion between all, attraction along lines, decreasing steps."""
    points = _spiral(count)
    steps = _STEPS if count <= _LARGE else _STEPS_OF_LARGE
    reach = ROOM * np.sqrt(count)
    for step in range(steps):
        apart = points[:, np.newaxis] - points[np.newaxis]
        distance = np.maximum(np.linalg.norm(apart, axis=2), 1e-3)
        force = (apart * (ROOM**2 / distance**2)[..., np.newaxis]).sum(axis=1)
        along = points[ends[:, 0]] - points[ends[:, 1]]
        pull = along * (np.linalg.norm(along, axis=1) / ROOM)[:, np.newaxis]
        np.add.at(force, ends[:, 0], -pull)
        np.add.at(force, ends[:, 1], pull)
        # A pull towards the middle, so that long arms do not make the picture large and empty.
        force -= _GRAVITY * (points - points.mean(axis=0))
        length = np.maximum(np.linalg.norm(force, axis=1, keepdims=True), 1e-9)
        heat = reach * 0.1 * (1 - step / steps)
        points = points + force / length * np.minimum(length, heat)
    points = _lying(points - points.mean(axis=0))
    dense = _LOOSE * np.sqrt(count * ROOM * 2 * (RADIUS + 14) / (2 * np.pi))
    return np.asarray(points * min(1.0, dense / max(float(np.sqrt((points**2).sum(axis=1).mean())), 1e-9)))


def _lying(points: Points) -> Points:
    """Rotate a part so that its longest axis is horizontal, since screens are wider than high."""
    if len(points) < 2:
        return points
    _, axes = np.linalg.eigh(points.T @ points)
    turned = points @ axes[:, ::-1]
    # Of the two orientations, the one with the first mark at the upper left, so that a picture never flips.
    first = turned[0]
    return np.asarray(turned * np.where(first > 0, -1.0, 1.0))


def _apart(points: Points, boxes: Points) -> Points:
    """Push marks apart, in the direction of the smaller overlap, until no marks or labels overlap."""
    if not 1 < len(points) <= _MOST_PUSHED:
        return points
    needed = boxes[:, np.newaxis] + boxes[np.newaxis]
    for _ in range(_ROUNDS):
        apart = points[:, np.newaxis] - points[np.newaxis]
        overlap = needed - np.abs(apart)
        np.fill_diagonal(overlap[..., 0], -1.0)
        both = (overlap > 0).all(axis=2)
        if not both.any():
            break
        sideways = both & (overlap[..., 0] < overlap[..., 1])
        sign = np.where(apart >= 0, 1.0, -1.0)
        # Marks at the same place are separated by their order.
        same = (apart == 0).all(axis=2)
        sign[..., 0] = np.where(
            same, np.sign(np.subtract.outer(np.arange(len(points)), np.arange(len(points)))), sign[..., 0]
        )
        push = np.stack(
            [np.where(sideways, overlap[..., 0], 0), np.where(both & ~sideways, overlap[..., 1], 0)], axis=2
        )
        points = points + (push * sign).sum(axis=1) * 0.5
    return points


def _grid(boxes: Points) -> Points:
    """Marks without lines, in rows."""
    count = len(boxes)
    wide = float(boxes[:, 0].max()) * 2 + 10 if count else 0.0
    columns = max(1, round((count * _ASPECT * 80 / max(wide, 1.0)) ** 0.5))
    at = np.arange(count)
    return np.stack([at % columns * wide, at // columns * 80.0], axis=1).astype(np.float64)


def _spiral(count: int) -> Points:
    """Start positions that depend only on the number of marks; no two marks are opposite each other."""
    turn = np.arange(count) * np.pi * (3 - np.sqrt(5))
    away = ROOM * np.sqrt(np.arange(count) + 0.5)
    return np.asarray(np.stack([np.cos(turn) * away, np.sin(turn) * away], axis=1))
