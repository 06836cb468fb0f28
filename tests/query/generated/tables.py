"""What a generator makes, and the names, tables and columns of the worlds it asks about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import TypeVar

T = TypeVar("T")

#: The properties of each kind of variable, by the kind of their values. Those that are numbers have the types of the world.
PROPERTIES: dict[str, dict[str, str]] = {
    "Staff": {
        "handle": "text",
        "level": "number",
        "label": "text",
        "note": "text",
        "born": "date",
        "seen": "datetime",
        "active": "bool",
        "tags": "list",
    },
    "Team": {"code": "text", "size": "number", "label": "text"},
    "Staff|Team": {"label": "text"},
    "Mentors": {"weight": "number", "since": "date"},
    "Likes": {"weight": "number"},
    "Mentors|Likes": {"weight": "number"},
    "MemberOf": {},
}


@dataclass(frozen=True)
class Typed:
    """An expression in both languages; `kind` is text, integer, float, date, datetime or bool."""

    gq: str
    sql: str
    kind: str


@dataclass(frozen=True)
class Variable:
    """A bound variable and the alias of the relation its columns are read from; a value has the kind of it."""

    name: str
    kind: str
    alias: str

    def sql(self, column: str) -> str:
        return f'{self.alias}."{self.name}_{column}"'


@dataclass
class Question:
    """A query in both languages; `sql` is None where SQL has no plain form of it."""

    gq: str
    sql: str | None
    ordered: bool


@dataclass
class Relation:
    """Clauses so far: their text, their SQL and what they bind."""

    clauses: list[str] = field(default_factory=list)
    sql: str = "select 1 as one"
    variables: list[Variable] = field(default_factory=list)
    outer: list[Variable] = field(default_factory=list)
    has_sql: bool = True

    @property
    def scope(self) -> list[Variable]:
        return [*self.variables, *self.outer]


@dataclass
class Tables:
    """Names and tables of worlds whose numbers have these types: `Staff.level`, `Team.size` and `weight`."""

    random: Random
    types: Mapping[str, str]
    _count: int = 0

    # --- names --------------------------------------------------------------------------------------------------------

    def new(self, prefix: str) -> str:
        self._count += 1
        return f"{prefix}{self._count}"

    def often(self, share: float) -> bool:
        return self.random.random() < share

    def one(self, items: Sequence[T]) -> T:
        return self.random.choice(items)

    # --- tables -------------------------------------------------------------------------------------------------------

    def table(self, kind: str) -> str:
        """The rows of a kind of node, as SQL."""
        if kind == "Staff|Team":
            parts = (f"select id, '{name}' as \"@type\", label from {name}" for name in ("Staff", "Team"))
            return f"({' union all '.join(parts)})"
        return f"(select *, '{kind}' as \"@type\" from {kind})"

    def exported(self, variable: Variable, alias: str) -> str:
        """The columns of a table as those of a variable."""
        ends = ["src", "dst"] if variable.kind in ("Mentors", "Likes", "Mentors|Likes", "MemberOf") else []
        columns = ["id", "@type", *ends, *PROPERTIES[variable.kind]]
        return ", ".join(f'{alias}."{column}" as "{variable.name}_{column}"' for column in columns)

    def edges(self, words: tuple[str, ...]) -> str:
        """The edges of some types, with the types of their ends."""
        ends = {"Mentors": "Staff", "Likes": "Staff", "MemberOf": "Team"}
        plain = {
            "Mentors": "weight, since",
            "Likes": "weight, null as since",
            "MemberOf": "null as weight, null as since",
        }
        parts = (
            f"select id, src, dst, '{word}' as \"@type\", '{ends[word]}' as far, {plain[word]} from {word}"
            for word in words
        )
        return f"({' union all '.join(parts)})"
