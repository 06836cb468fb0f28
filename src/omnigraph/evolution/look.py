"""The questions of a schema comparison about stored rows. `Counts` knows only the number of rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from omnigraph.language.schema.catalog import EdgeType, NodeType, Property
from omnigraph.storage.tables.columns import Values

Entity = NodeType | EdgeType

#: How many of the offending rows or values a message shows.
EXAMPLES = 5


@dataclass(frozen=True, slots=True)
class Found:
    """Offending rows: their number, the number of all rows, and the ids of the first."""

    count: int = 0
    of: int = 0
    ids: tuple[str, ...] = ()

    def __str__(self) -> str:
        listed = ", ".join(f"'{id_}'" for id_ in self.ids)
        more = ", …" if self.count > len(self.ids) else ""
        return f"{self.count} of {self.of} row{'' if self.of == 1 else 's'} ({listed}{more})"


@dataclass(frozen=True, slots=True)
class Outside:
    """Rows whose value is not in an enum: their number, the number of all rows, and their values with row counts."""

    rows: int = 0
    of: int = 0
    values: Mapping[str, int] = field(default_factory=dict)
    #: Whether there are more values than listed.
    more: bool = False

    def __str__(self) -> str:
        shown = [f"'{value}' in {count}" for value, count in list(self.values.items())[:EXAMPLES]]
        more = ", …" if self.more or len(self.values) > EXAMPLES else ""
        return f"{self.rows} of {self.of} row{'' if self.of == 1 else 's'} ({', '.join(shown)}{more})"


@dataclass(frozen=True)
class Backfilled:
    """The backfills with the text of each expression, by the type's id, then by property."""

    by_type: Mapping[int, Mapping[str, tuple[Values, str]]] = field(default_factory=dict)

    def values(self, entity: Entity) -> dict[str, Values]:
        """The backfills of a type, by property."""
        return {name: values for name, (values, _) in self.by_type.get(entity.id, {}).items()}

    def text(self, entity: Entity, name: str) -> str | None:
        """The text of a property's backfill; None when it has none."""
        found = self.by_type.get(entity.id, {}).get(name)
        return None if found is None else found[1]


@dataclass(frozen=True)
class Counts:
    """How many rows each type has, by stable id; answers nothing about values."""

    rows: Mapping[int, int]
    #: Whether a change may lead back from a wider type to the one it was widened from, and to or from a key: whoever asks
    #: sees to the ids of the rows.
    takes_back: bool = False
    backfilled: Backfilled = field(default_factory=Backfilled)

    def count(self, entity: Entity) -> int:
        """How many rows a type has."""
        return self.rows.get(entity.id, 0)

    def nulls(self, was: Entity, entity: Entity, declared: Property) -> Found | None:
        """The rows that will have no value in a property, apart from its default; None: unknown."""
        return None

    def lacking(self, was: Entity, entity: Entity, declared: Property) -> int:
        """How many rows have no value in a property now."""
        return 0

    def outside(self, was: Entity, entity: Entity, declared: Property) -> Outside:
        """The rows whose text in a property is not in its enum."""
        return Outside()

    def unfit(self, was: Entity, entity: Entity, declared: Property) -> Found:
        """The rows whose value in a property does not fit its narrower type."""
        return Found()


#: The type of `look` in comparisons; `stored.StoredRows` reads the tables.
Look = Counts
