"""Nodes and relationships as the files of Neo4j have them, whichever format it is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from omnigraph.integrations.proposal import Note
from omnigraph.load.parsed import LISTED_PROBLEMS, rejection

Labels = tuple[str, ...]
#: The keys of a point in any coordinate system.
_POINT = {"crs", "srid", "latitude", "longitude", "height", "x", "y", "z"}


@dataclass(frozen=True, slots=True)
class End:
    """One end of a relationship: a node by its id in an id space. `labels` is None where the file does not say them."""

    id: str
    space: str = ""
    labels: Labels | None = None


@dataclass(frozen=True, slots=True)
class ForeignNode:
    line: int
    id: str
    labels: Labels
    properties: Mapping[str, Any]
    space: str = ""


@dataclass(frozen=True, slots=True)
class ForeignEdge:
    line: int
    type: str
    start: End
    end: End
    properties: Mapping[str, Any]


Foreign = ForeignNode | ForeignEdge


class ForeignFile(Protocol):
    """One file of an export. It is read from the beginning each time."""

    @property
    def name(self) -> str: ...

    def entities(self, problems: Problems) -> Iterator[Foreign]:
        """What the file holds, in order of lines; lines that can not be read become problems."""
        ...


class Source(Protocol):
    """An export: its files, and what is known of it before it is read."""

    @property
    def key(self) -> str:
        """The property that holds the id of a node, where the source has no name for it."""
        ...

    @property
    def files(self) -> Sequence[ForeignFile]: ...

    def key_of(self, space: str) -> str:
        """The name of the property that holds the ids of an id space."""
        ...

    def notes(self) -> list[Note]:
        """What the format itself can not carry over."""
        ...


@dataclass
class Problems:
    """Lines that can not be used: the first ones, and how many there are."""

    listed: list[tuple[str, int, str]] = field(default_factory=list)
    total: int = 0

    def add(self, file: str, line: int, message: str) -> None:
        self.total += 1
        if len(self.listed) < LISTED_PROBLEMS:
            self.listed.append((file, line, message))

    def refuse(self) -> None:
        """Raise LoadRejected when there are any."""
        if self.total:
            raise rejection(self.listed, self.total)


def without_points(properties: Mapping[str, Any]) -> Mapping[str, Any]:
    """Properties with each point as one property for each of its parts, `place_longitude` and so on."""
    if not any(isinstance(value, dict) for value in properties.values()):
        return properties
    made: dict[str, Any] = {}
    for name, value in properties.items():
        if not is_point(value):
            made[name] = value
            continue
        for part, number in value.items():
            if number is not None:
                made[f"{name}_{part}"] = number if part in ("crs", "srid") else float(number)
    return made


def is_point(value: object) -> bool:
    """Whether a value is a point as exports write it: a map of coordinates and their system."""
    if not isinstance(value, dict) or not value or not set(value) <= _POINT:
        return False
    return {"latitude", "longitude"} <= set(value) or {"x", "y"} <= set(value)
