"""Mutations: a sequence of statements with resolved types.

Values and predicates of an update read the columns of its rows under the variable ROW; the values of an insert are constants.
"""

from __future__ import annotations

from dataclasses import dataclass

from omnigraph.language.query.ir.expressions import Expr
from omnigraph.language.query.ir.plan import Plan
from omnigraph.language.types import PropType

#: The variable under which a predicate reads the columns of the row to which it is applied.
ROW = "row"


@dataclass(frozen=True, slots=True)
class Assign:
    """A property and its new value. `type`: the property's type, which a literal has exactly; other values are compatible."""

    property: str
    value: Expr
    type: PropType


@dataclass(frozen=True, slots=True)
class InsertNode:
    node_type: str
    assignments: tuple[Assign, ...]


@dataclass(frozen=True, slots=True)
class InsertEdge:
    """`source` and `target` are the ids of the two ends."""

    edge_type: str
    source: Expr
    target: Expr
    assignments: tuple[Assign, ...]


@dataclass(frozen=True, slots=True)
class UpdateNodes:
    node_type: str
    assignments: tuple[Assign, ...]
    predicate: Expr


@dataclass(frozen=True, slots=True)
class UpdateEdges:
    """Changes properties of edges; their ends can not change."""

    edge_type: str
    assignments: tuple[Assign, ...]
    predicate: Expr


@dataclass(frozen=True, slots=True)
class UpsertNode:
    """Updates the assigned properties of the node with the assigned key; inserts the node when there is none."""

    node_type: str
    assignments: tuple[Assign, ...]


@dataclass(frozen=True, slots=True)
class DeleteNodes:
    """Deletes nodes, and their edges of all edge types that connect the node type."""

    node_type: str
    predicate: Expr


@dataclass(frozen=True, slots=True)
class DeleteEdges:
    """A predicate on `from` or `to` reads the columns `src` and `dst`."""

    edge_type: str
    predicate: Expr


@dataclass(frozen=True, slots=True)
class Matches:
    """The matches that a statement works on: the plan of the columns that it reads, one row for each match.
    `text` is the statement as it is written in a query, for messages.
    """

    rows: Plan
    text: str


@dataclass(frozen=True, slots=True)
class InsertMatched:
    """Carries out the statement once for each match; its values are columns of the matches."""

    matches: Matches
    statement: InsertNode | InsertEdge | UpsertNode


@dataclass(frozen=True, slots=True)
class UpdateMatched:
    """Updates nodes or edges of one type by id, each once; the values are columns of the matches."""

    matches: Matches
    type_key: str
    assignments: tuple[Assign, ...]


@dataclass(frozen=True, slots=True)
class DeleteMatched:
    """Deletes nodes (with their edges) or edges of one type by id."""

    matches: Matches
    type_key: str


Matched = InsertMatched | UpdateMatched | DeleteMatched
Statement = InsertNode | InsertEdge | UpsertNode | UpdateNodes | UpdateEdges | DeleteNodes | DeleteEdges | Matched


@dataclass(frozen=True, slots=True)
class MutationPlan:
    """The statements in order; each sees the effects of the earlier statements."""

    statements: tuple[Statement, ...]
