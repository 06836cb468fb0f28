"""What a comparison of two schemas asks about the rows that are there. `Counts` knows only how many there are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from omnigraph.language.schema.catalog import EdgeType, NodeType, Property
from omnigraph.storage.tables.columns import Values

Entity = NodeType | EdgeType

#: How many of the rows or values in the way a message shows.
EXAMPLES = 5


@dataclass(frozen=True, slots=True)
class Found:
    """Some rows: how many there are, of how many, and the ids of the first."""

    count: int = 0
    of: int = 0
    ids: tuple[str, ...] = ()

    def __str__(self) -> str:
        listed = ", ".join(f"'{id_}'" for id_ in self.ids)
        more = ", …" if self.count > len(self.ids) else ""
        return f"{self.count} of {self.of} row{'' if self.of == 1 else 's'} ({listed}{more})"


@dataclass(frozen=True, slots=True)
class Outside:
    """Rows whose value is not among those of an enum: how many, of how many, and the values with the rows that have them."""

    rows: int = 0
    of: int = 0
    values: Mapping[str, int] = field(default_factory=dict)
    #: Whether there are more values than these.
    more: bool = False

    def __str__(self) -> str:
        shown = [f"'{value}' in {count}" for value, count in list(self.values.items())[:EXAMPLES]]
        more = ", …" if self.more or len(self.values) > EXAMPLES else ""
        return f"{self.rows} of {self.of} row{'' if self.of == 1 else 's'} ({', '.join(shown)}{more})"


@dataclass(frozen=True)
class Backfilled:
    """What makes the values that rows do not have, and the text of each expression: by type, then by property."""

    by_type: Mapping[int, Mapping[str, tuple[Values, str]]] = field(default_factory=dict)

    def values(self, entity: Entity) -> dict[str, Values]:
        """What makes the values of properties of a type."""
        return {name: values for name, (values, _) in self.by_type.get(entity.id, {}).items()}

    def text(self, entity: Entity, name: str) -> str | None:
        """The expression of a property; None: it has none."""
        found = self.by_type.get(entity.id, {}).get(name)
        return None if found is None else found[1]


@dataclass(frozen=True)
class Counts:
    """How many rows each type has, by its stable id; about their values nothing is said."""

    rows: Mapping[int, int]
    #: Whether a change may lead back from a wider type to the one it was widened from, and to or from a key: whoever asks
    #: sees to the ids of the rows.
    takes_back: bool = False
    backfilled: Backfilled = field(default_factory=Backfilled)

    def count(self, entity: Entity) -> int:
        """How many rows a type has."""
        return self.rows.get(entity.id, 0)

    def nulls(self, was: Entity, entity: Entity, declared: Property) -> Found | None:
        """The rows that will have no value in a property, apart from its default; None: nobody has looked."""
        return None

    def lacking(self, was: Entity, entity: Entity, declared: Property) -> int:
        """How many rows have no value in a property now."""
        return 0

    def outside(self, was: Entity, entity: Entity, declared: Property) -> Outside:
        """The rows whose text in a property is no value of its enum."""
        return Outside()

    def unfit(self, was: Entity, entity: Entity, declared: Property) -> Found:
        """The rows whose value in a property does not fit its narrower type."""
        return Found()


#: What a comparison is given; `stored.StoredRows` looks at the tables.
Look = Counts
