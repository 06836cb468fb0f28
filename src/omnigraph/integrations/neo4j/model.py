"""Nodes and relationships of Neo4j files, for all formats."""

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
    """One end of a relationship: a node by its id in an id space. `labels` is None when the file does not have them."""

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
        """The nodes and relationships of the file, line by line; unreadable lines are added to `problems`."""
        ...


class Source(Protocol):
    """An export: its files, and what is known before they are read."""

    @property
    def key(self) -> str:
        """The name of the property for node ids, where the source does not name it."""
        ...

    @property
    def files(self) -> Sequence[ForeignFile]: ...

    def key_of(self, space: str) -> str:
        """The name of the property that holds the ids of an id space."""
        ...

    def notes(self) -> list[Note]:
        """Notes on data that the format can not represent."""
        ...


@dataclass
class Problems:
    """Unusable lines: the first few, and their total number."""

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
    """Properties with each point split into one property per part, such as `place_longitude`."""
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
    """Whether a value is an exported point: a map of coordinates and their system."""
    if not isinstance(value, dict) or not value or not set(value) <= _POINT:
        return False
    return {"latitude", "longitude"} <= set(value) or {"x", "y"} <= set(value)
