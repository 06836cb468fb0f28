"""The result of a merge: its outcome, its commit, and its conflicts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

from omnigraph.commit.config import ENTITY_LEVEL, MERGE_LEVEL
from omnigraph.commit.model import Commit
from omnigraph.shown import Shown

#: The outcome of a dry run with conflicts: the real merge would raise `MergeConflicts` and write nothing.
CONFLICTS = "conflicts"


class ConflictKind(StrEnum):
    """The kinds of conflicts. The last four: the merged graph breaks a rule of the schema."""

    SCHEMA_CONFLICT = "SchemaConflict"
    DIVERGENT_INSERT = "DivergentInsert"
    DIVERGENT_UPDATE = "DivergentUpdate"
    DELETE_VS_UPDATE = "DeleteVsUpdate"
    ORPHAN_EDGE = "OrphanEdge"
    UNIQUE_VIOLATION = "UniqueViolation"
    CARDINALITY_VIOLATION = "CardinalityViolation"
    VALUE_CONSTRAINT_VIOLATION = "ValueConstraintViolation"


Image = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Conflict(Shown):
    """One entity (or, without an id, one rule of a type) that needs a decision. Images are included on request."""

    kind: str
    type_key: str
    entity_id: str | None
    message: str
    base: Image | None = None
    ours: Image | None = None
    theirs: Image | None = None

    @property
    def entity_kind(self) -> str:
        """ "node" or "edge"."""
        return self.type_key.partition(":")[0]

    @property
    def type_name(self) -> str:
        """The name of the type, without its kind."""
        return self.type_key.partition(":")[2]

    @property
    def order(self) -> tuple[bool, str, bool, str, str, str]:
        """A sort key: nodes before edges, then by type, then by id."""
        return (
            self.entity_kind != "node",
            self.type_key,
            self.entity_id is None,
            self.entity_id or "",
            self.kind,
            self.message,
        )

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values, ready for JSON."""
        images = {name: getattr(self, name) for name in ("base", "ours", "theirs") if getattr(self, name) is not None}
        return {
            "kind": self.kind,
            "entity_kind": self.entity_kind,
            "type_name": self.type_name,
            "type_key": self.type_key,
            "entity_id": self.entity_id,
            "message": self.message,
            **images,
        }


class DecidedBy(StrEnum):
    """What made a decision about an entity."""

    STRATEGY = "strategy"
    RESOLUTION = "resolution"
    #: An edge that one side deleted with its node is kept, because the node was kept.
    KEPT_NODE = "kept node"


@dataclass(frozen=True, slots=True)
class Decision:
    """An entity whose merged state does not follow from the sides alone: the image it gets, and what decided.

    `take`: ours, theirs, base or value. `conflict`: the kind of the decided conflict; None when there was none, or when a
    resolution was given before it could arise.
    """

    type_key: str
    entity_id: str
    take: str
    by: str
    conflict: str | None = None

    @property
    def line(self) -> str:
        """The decision as one line of text."""
        met = "" if self.conflict is None else f"{self.conflict} "
        return f"{met}{self.type_key} {self.entity_id}: {self.take} ({self.by})"

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


#: How many decisions a result lists; `stats` counts all of them.
LISTED_DECISIONS = 1000


@dataclass(frozen=True, slots=True)
class MergeResult(Shown):
    """`outcome` is already_up_to_date, fast_forward, merged, rebased or conflicts; `commit` is None when nothing was written.

    Only a dry run has `conflicts`, as outcome and as a list: a merge that meets one raises `MergeConflicts` instead.
    `decided` lists the entities that a strategy, a resolution or a kept node decided about, at most `LISTED_DECISIONS`.
    `stats` has the counts: `inserted`, `updated`, `deleted` in all and per type in `tables`, `decided` by what was taken.
    `level`: what was compared, whole entities ("entity") or each property of them ("property").
    """

    outcome: str
    commit: Commit | None
    conflicts: tuple[Conflict, ...] = ()
    stats: Mapping[str, Any] = field(default_factory=dict)
    decided: tuple[Decision, ...] = ()
    level: str = ENTITY_LEVEL

    def lines(self) -> Iterator[str]:
        """The result as text: the level if not the default, schema steps, counts per changed type, decisions."""
        if self.level != ENTITY_LEVEL:
            yield f"{MERGE_LEVEL}: {self.level}"
        for step in self.stats.get("schema", ()):
            yield f"schema: {step['text']}"
        for type_key, counts in self.stats.get("tables", {}).items():
            yield f"{type_key}: {', '.join(f'{count} {name}' for name, count in counts.items() if count)}"
        for decision in self.decided:
            yield f"decided {decision.line}"
        left_out = sum(self.stats.get("decided", {}).values()) - len(self.decided)
        if left_out > 0:
            yield f"decided: and {left_out} more"

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values, ready for JSON."""
        return {
            "outcome": self.outcome,
            "level": self.level,
            "commit": None if self.commit is None else self.commit.to_dict(),
            "conflicts": [conflict.to_dict() for conflict in self.conflicts],
            "stats": dict(self.stats),
            "decided": [decision.to_dict() for decision in self.decided],
        }
