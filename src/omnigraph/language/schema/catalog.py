"""The catalog: the types, properties and rules of a schema by name, for the query checker, the writers and the engines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from omnigraph.language.schema.ast import Annotation, Cardinality, CheckConstraint, LiteralValue, RangeConstraint
from omnigraph.language.types import PropType


@dataclass(frozen=True)
class Embed:
    """`@embed(source, model=…)`: this vector is computed from a text property."""

    source: str
    model: str | None = None


@dataclass(frozen=True)
class Property:
    """One declared property. `id` is its stable identity, 0 until the schema is accepted by a graph."""

    name: str
    type: PropType
    id: int = 0
    embed: Embed | None = None
    default: LiteralValue | None = None
    metric: str = "l2"
    description: str | None = None
    annotations: tuple[Annotation, ...] = ()


@dataclass(frozen=True)
class EntityType:
    """The common fields of node and edge types. Properties are in name order; `key` is in identity order."""

    name: str
    properties: Mapping[str, Property]
    key: tuple[str, ...] | None = None
    uniques: tuple[tuple[str, ...], ...] = ()
    indexes: tuple[tuple[str, ...], ...] = ()
    ranges: tuple[RangeConstraint, ...] = ()
    checks: tuple[CheckConstraint, ...] = ()
    id: int = 0
    incarnation: int = 0
    description: str | None = None
    instruction: str | None = None
    annotations: tuple[Annotation, ...] = ()


@dataclass(frozen=True)
class NodeType(EntityType):
    implements: tuple[str, ...] = ()

    @property
    def type_key(self) -> str:
        return f"node:{self.name}"


@dataclass(frozen=True)
class EdgeType(EntityType):
    from_type: str = ""
    to_type: str = ""
    cardinality: Cardinality = field(default_factory=Cardinality)

    @property
    def type_key(self) -> str:
        return f"edge:{self.name}"


@dataclass(frozen=True)
class InterfaceType:
    name: str
    properties: Mapping[str, Property]


@dataclass(frozen=True)
class Catalog:
    """All types of one schema, by name. Nodes and edges are separate namespaces."""

    nodes: Mapping[str, NodeType]
    edges: Mapping[str, EdgeType]
    interfaces: Mapping[str, InterfaceType]

    @cached_property
    def _edges_by_folded_name(self) -> dict[str, EdgeType]:
        return {name.lower(): edge for name, edge in self.edges.items()}

    def edge(self, word: str) -> EdgeType | None:
        """The edge type of this exact name, else the edge type that matches ignoring case (`knows` for `Knows`), else None."""
        return self.edges.get(word) or self._edges_by_folded_name.get(word.lower())
