"""The tree of a `.pg` file: declarations and properties keep their order, inherited properties come last."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from omnigraph.language.source import NOWHERE, Source, Span
from omnigraph.language.types import PropType

LiteralValue = str | int | float | bool


@dataclass(frozen=True, slots=True)
class Name:
    """A bare identifier where a literal would be possible too, as in `@embed(title)`."""

    text: str


@dataclass(frozen=True, slots=True)
class Annotation:
    """`@name`, `@name(value)` or `@name(value, key=literal, …)`."""

    name: str
    value: LiteralValue | Name | None = None
    arguments: tuple[tuple[str, LiteralValue], ...] = ()
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class KeyConstraint:
    properties: tuple[str, ...]
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class UniqueConstraint:
    properties: tuple[str, ...]
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class IndexConstraint:
    properties: tuple[str, ...]
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class RangeConstraint:
    """`@range(p, low..high)`, inclusive; an end that is None is open."""

    property: str
    low: int | float | None
    high: int | float | None
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class CheckConstraint:
    """`@check(p, "regex")`: an unanchored search."""

    property: str
    pattern: str
    span: Span = field(default=NOWHERE, compare=False)


Constraint = KeyConstraint | UniqueConstraint | IndexConstraint | RangeConstraint | CheckConstraint


def spelling(value: Annotation | Constraint) -> str:
    """A text to sort and compare by, which differs where `==` does not (`1`, `1.0` and `true`)."""
    return repr(replace(value, span=NOWHERE))


@dataclass(frozen=True, slots=True)
class Cardinality:
    """How many edges of a type each source must and may have; `maximum` None is unbounded."""

    minimum: int = 0
    maximum: int | None = None


@dataclass(frozen=True, slots=True)
class PropertyDecl:
    """A property; `enum_values` are the enum values of its type in the order in which they are written."""

    name: str
    type: PropType
    annotations: tuple[Annotation, ...] = ()
    span: Span = field(default=NOWHERE, compare=False)
    enum_values: tuple[str, ...] = field(default=(), compare=False)


@dataclass(frozen=True, slots=True)
class InterfaceDecl:
    name: str
    properties: tuple[PropertyDecl, ...]
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class NodeDecl:
    """A node; after parsing, `properties` and `constraints` include those of its interfaces."""

    name: str
    annotations: tuple[Annotation, ...]
    implements: tuple[str, ...]
    properties: tuple[PropertyDecl, ...]
    constraints: tuple[Constraint, ...]
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class EdgeDecl:
    name: str
    from_type: str
    to_type: str
    cardinality: Cardinality
    annotations: tuple[Annotation, ...]
    properties: tuple[PropertyDecl, ...]
    constraints: tuple[Constraint, ...]
    span: Span = field(default=NOWHERE, compare=False)


Declaration = InterfaceDecl | NodeDecl | EdgeDecl


@dataclass(frozen=True, slots=True)
class SchemaFile:
    """All declarations in source order."""

    declarations: tuple[Declaration, ...]
    source: Source = field(default=Source(""), compare=False)
