"""Mutations: a sequence of statements with resolved types.

Values and predicates of an update read the columns of its rows under the variable ROW; those of an insert are constants.
"""

from __future__ import annotations

from dataclasses import dataclass

from omnigraph.language.query.ir.expressions import Expr
from omnigraph.language.query.ir.plan import Plan
from omnigraph.language.types import PropType

#: The variable under which a predicate names the columns of the row it is asked about.
ROW = "row"


@dataclass(frozen=True, slots=True)
class Assign:
    """A property and its new value. `type` is the property's; a literal has it exactly, other values are compatible."""

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
    """The ends of an edge do not change."""

    edge_type: str
    assignments: tuple[Assign, ...]
    predicate: Expr


@dataclass(frozen=True, slots=True)
class UpsertNode:
    """Changes the node with the assigned key, which keeps what is not assigned; inserts it where there is none."""

    node_type: str
    assignments: tuple[Assign, ...]


@dataclass(frozen=True, slots=True)
class DeleteNodes:
    """Deleting a node deletes its edges too, of the edge types that touch its type."""

    node_type: str
    predicate: Expr


@dataclass(frozen=True, slots=True)
class DeleteEdges:
    """A predicate on `from` or `to` reads the columns `src` and `dst`."""

    edge_type: str
    predicate: Expr


@dataclass(frozen=True, slots=True)
class Matches:
    """What a pattern matches before a statement: the columns that the statement reads, one row for each match.

    `text` is the pattern and the columns as they are written in a query; it says what was asked for.
    """

    rows: Plan
    text: str


@dataclass(frozen=True, slots=True)
class InsertMatched:
    """The statement once for each row; its values are columns of the rows."""

    matches: Matches
    statement: InsertNode | InsertEdge | UpsertNode


@dataclass(frozen=True, slots=True)
class UpdateMatched:
    """Nodes or edges of one type by their id, each once; values are columns of the rows."""

    matches: Matches
    type_key: str
    assignments: tuple[Assign, ...]


@dataclass(frozen=True, slots=True)
class DeleteMatched:
    """Nodes, with their edges, or edges of one type by their id."""

    matches: Matches
    type_key: str


Matched = InsertMatched | UpdateMatched | DeleteMatched
Statement = InsertNode | InsertEdge | UpsertNode | UpdateNodes | UpdateEdges | DeleteNodes | DeleteEdges | Matched


@dataclass(frozen=True, slots=True)
class MutationPlan:
    """The statements in order; each sees what the earlier ones did."""

    statements: tuple[Statement, ...]
