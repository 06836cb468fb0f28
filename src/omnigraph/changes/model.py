"""The values that describe a change: one entity, before and after."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Literal, NamedTuple, Protocol, overload

from omnigraph.shown import Shown

Op = Literal["insert", "update", "delete"]
Kind = Literal["node", "edge"]

OPS: tuple[Op, ...] = ("insert", "update", "delete")
KINDS: tuple[Kind, ...] = ("node", "edge")

#: The properties of an entity as plain JSON values; properties that its side lacks are absent.
Image = Mapping[str, Any]


class SchemaStep(Protocol):
    """One step of the difference between two schemas; its text is for people."""

    kind: ClassVar[str]

    def to_dict(self) -> dict[str, Any]: ...


def told_steps(steps: Iterable[SchemaStep]) -> dict[str, Any]:
    """Schema changes in their JSON form; empty when the schemas are equal."""
    told = [{**step.to_dict(), "text": str(step)} for step in steps]
    return {"schema": told} if told else {}


class Endpoints(NamedTuple):
    """The ids of the nodes that an edge connects."""

    src: str
    dst: str


@dataclass(frozen=True, slots=True)
class Change(Shown):
    """One changed entity. An insert has only `after`, a delete only `before`; only edges have `endpoints`.

    `type_id`: the opaque id of the type, which survives a rename. `endpoints_before`: the endpoints of the earlier image.
    """

    op: Op
    kind: Kind
    type: str
    id: str
    before: Image | None
    after: Image | None
    endpoints: Endpoints | None = None
    type_id: str = ""
    endpoints_before: Endpoints | None = None

    @property
    def type_key(self) -> str:
        """`node:Type` or `edge:Type`."""
        return f"{self.kind}:{self.type}"

    def to_dict(self) -> dict[str, Any]:
        """The change in its JSON form."""
        told: dict[str, Any] = {
            "kind": self.kind,
            "type": {"id": self.type_id, "name": self.type},
            "id": self.id,
            "op": self.op,
        }
        if self.before is not None:
            told["before"] = _image(self.before, self.endpoints_before)
        if self.after is not None:
            told["after"] = _image(self.after, self.endpoints)
        return told


def _image(properties: Image, endpoints: Endpoints | None) -> dict[str, Any]:
    told: dict[str, Any] = {"properties": dict(properties)}
    if endpoints is not None:
        told["endpoints"] = {"from": endpoints.src, "to": endpoints.dst}
    return told


class Changes(Sequence[Change]):
    """Changes that are read again at each iteration; asking for the length or an item reads them all."""

    def __init__(self, stream: Callable[[], Iterator[Change]]) -> None:
        self._stream = stream

    @cached_property
    def _all(self) -> list[Change]:
        return list(self._stream())

    def __iter__(self) -> Iterator[Change]:
        return iter(self._all) if "_all" in self.__dict__ else self._stream()

    def __len__(self) -> int:
        return len(self._all)

    @overload
    def __getitem__(self, place: int) -> Change: ...
    @overload
    def __getitem__(self, place: slice) -> list[Change]: ...
    def __getitem__(self, place: int | slice) -> Change | list[Change]:
        return self._all[place]

    def __bool__(self) -> bool:
        return next(iter(self), None) is not None

    def __eq__(self, other: object) -> bool:
        return list(self) == list(other) if isinstance(other, Sequence) else NotImplemented

    __hash__ = None  # type: ignore[assignment]  # compared by content, like a list

    def __repr__(self) -> str:
        return f"Changes({self._all!r})" if "_all" in self.__dict__ else "Changes(…)"


@dataclass(frozen=True, slots=True)
class ChangeStats:
    """How many entities were inserted, updated and deleted, and of which types (as `node:Type`)."""

    inserts: int = 0
    updates: int = 0
    deletes: int = 0
    types: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class ChangeSet(Shown):
    """A difference: nodes before edges, then by type, id and operation.

    `schema`: the steps from the schema of the earlier state to that of the later one.
    """

    changes: Sequence[Change]
    schema: tuple[SchemaStep, ...] = field(default=(), kw_only=True)

    @cached_property
    def stats(self) -> ChangeStats:
        """The counts of the changes; reads all of them."""
        counts = dict.fromkeys(OPS, 0)
        types: dict[str, None] = {}
        for change in self.changes:
            counts[change.op] += 1
            types[change.type_key] = None
        return ChangeStats(counts["insert"], counts["update"], counts["delete"], tuple(types))

    def __iter__(self) -> Iterator[Change]:
        return iter(self.changes)

    def __len__(self) -> int:
        return len(self.changes)

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values, ready for JSON."""
        changes = [change.to_dict() for change in self.changes]
        return {**told_steps(self.schema), "changes": changes, "stats": self.stats.to_dict()}
