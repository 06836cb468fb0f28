"""Mutations: a sequence of statements with resolved types. Values are the same for every row of a statement."""

from __future__ import annotations

from dataclasses import dataclass

from omnigraph.language.query.ir.expressions import Compare, Constant
from omnigraph.language.types import PropType

#: The variable under which a predicate names the columns of the row it is asked about.
ROW = "row"


@dataclass(frozen=True, slots=True)
class Assign:
    """A property and its new value. `type` is the property's; a literal has it exactly, a parameter is compatible."""

    property: str
    value: Constant
    type: PropType


@dataclass(frozen=True, slots=True)
class InsertNode:
    node_type: str
    assignments: tuple[Assign, ...]


@dataclass(frozen=True, slots=True)
class InsertEdge:
    """`source` and `target` are the ids of the two ends."""

    edge_type: str
    source: Constant
    target: Constant
    assignments: tuple[Assign, ...]


@dataclass(frozen=True, slots=True)
class UpdateNodes:
    node_type: str
    assignments: tuple[Assign, ...]
    predicate: Compare


@dataclass(frozen=True, slots=True)
class DeleteNodes:
    """Deleting a node deletes its edges too, of the edge types that touch its type."""

    node_type: str
    predicate: Compare


@dataclass(frozen=True, slots=True)
class DeleteEdges:
    """A predicate on `from` or `to` reads the columns `src` and `dst`."""

    edge_type: str
    predicate: Compare


Statement = InsertNode | InsertEdge | UpdateNodes | DeleteNodes | DeleteEdges


@dataclass(frozen=True, slots=True)
class MutationPlan:
    """The statements in order; each sees what the earlier ones did."""

    statements: tuple[Statement, ...]
