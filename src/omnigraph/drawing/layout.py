"""Where the marks of a picture stand: pushed apart by each other, pulled together by lines. The same picture every time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from omnigraph.drawing.picture import Line, Mark, Picture

#: The room that one mark has to itself, in pixels.
ROOM = 130.0
MARGIN = 80.0
_STEPS = 200

Points = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Placed:
    """A picture with a place for every mark, and its size."""

    picture: Picture
    places: dict[str, tuple[float, float]]
    width: float
    height: float
    groups: tuple[str, ...]


def place(picture: Picture) -> Placed:
    """Lay a picture out."""
    points = _spread(picture.marks, picture.lines)
    if len(points):
        points = points - points.min(axis=0) + MARGIN
    width, height = (points.max(axis=0) + MARGIN).tolist() if len(points) else (2 * MARGIN, 2 * MARGIN)
    places = {mark.key: (float(x), float(y)) for mark, (x, y) in zip(picture.marks, points, strict=True)}
    groups = tuple(sorted({mark.group for mark in picture.marks}))
    return Placed(picture, places, max(width, 320.0), max(height, 200.0), groups)


def _spread(marks: tuple[Mark, ...], lines: tuple[Line, ...]) -> Points:
    """The method of Fruchterman and Reingold: repulsion between all, attraction along lines, ever smaller steps."""
    count = len(marks)
    points = _circle(count)
    if count < 2:
        return points
    number = {mark.key: at for at, mark in enumerate(marks)}
    pairs = {(number[line.source], number[line.target]) for line in lines if line.source != line.target}
    ends = np.array(sorted(pairs), np.int64).reshape(-1, 2)
    reach = ROOM * np.sqrt(count)
    for step in range(_STEPS):
        apart = points[:, np.newaxis] - points[np.newaxis]
        distance = np.maximum(np.linalg.norm(apart, axis=2), 1e-3)
        force = (apart * (ROOM**2 / distance**2)[..., np.newaxis]).sum(axis=1)
        along = points[ends[:, 0]] - points[ends[:, 1]]
        pull = along * (np.linalg.norm(along, axis=1) / ROOM)[:, np.newaxis]
        np.add.at(force, ends[:, 0], -pull)
        np.add.at(force, ends[:, 1], pull)
        # Parts that hang together with nothing must not drift away.
        force -= 0.05 * (points - points.mean(axis=0))
        length = np.maximum(np.linalg.norm(force, axis=1, keepdims=True), 1e-9)
        heat = reach * 0.1 * (1 - step / _STEPS)
        points = points + force / length * np.minimum(length, heat)
    return points


def _circle(count: int) -> Points:
    """A start that depends on nothing but the number of marks; a spiral, so that no two stand opposite each other."""
    turn = np.arange(count) * np.pi * (3 - np.sqrt(5))
    away = ROOM * np.sqrt(np.arange(count) + 0.5)
    return np.asarray(np.stack([np.cos(turn) * away, np.sin(turn) * away], axis=1))
