"""Plans of read queries: an immutable tree of operators; rows flow from the leaves to the root.
Below Aggregate and Project a row is a set of bindings: each variable stands for one node or one edge. These operators never
change a binding; they only add variables, multiply rows and drop rows.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum

from omnigraph.language.query.ir.expressions import (
    STRING,
    AggregateCall,
    Bm25,
    Column,
    Constant,
    Expr,
    Nearest,
    Parameter,
    Predicate,
    ResultColumn,
    Rrf,
    UnknownAlias,
    value_column,
)
from omnigraph.language.source import Place
from omnigraph.language.types import PropType


class Direction(StrEnum):
    """The direction in which an edge is followed, seen from the variable at which the step starts."""

    OUT = "out"
    IN = "in"
    BOTH = "both"

    @property
    def reversed(self) -> Direction:
        """The same edges seen from the other end."""
        return {Direction.OUT: Direction.IN, Direction.IN: Direction.OUT, Direction.BOTH: Direction.BOTH}[self]


#: The parts of a path that can be read.
PATH_PARTS = ("length", "nodes", "edges")
#: The most hops of a step without an upper bound: no graph has a shortest path of so many edges.
OPEN_END = 2**40

# --- what is matched --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class NodePattern:
    """A variable for nodes of one type that satisfy all predicates (on this variable alone).
    `lookup`: one value for each property of `key`, in that order; only the node with this key matches. With `lookup_by_id` it
    is a
    single value, the id. A null value matches no node.
    `columns`: the properties that operators above read; None means all. `distances`: the vector distances that operators above
    read; the scan computes them, so that vectors need not be passed on.
    """

    variable: str
    node_type: str
    predicates: tuple[Predicate, ...] = ()
    key: tuple[str, ...] = ()
    lookup: tuple[Constant, ...] | None = None
    lookup_by_id: bool = False
    columns: tuple[str, ...] | None = None
    distances: tuple[Nearest, ...] = ()


@dataclass(frozen=True, slots=True)
class EdgePattern:
    """The edges of one step: of one type, followed `min_hops` to `max_hops` times.
    Without a variable each pair (source, target) matches once, if the shortest distance of the target is within the bounds.
    With a
    variable (always one hop) each edge matches once, and `predicates` are conditions on the edge.
    `alternatives`: all edge types that may be followed, each with its direction, when there are several; `ends` are then the
    types
    of the two nodes. A pair that several edge types connect still matches once.
    """

    edge_type: str
    direction: Direction
    min_hops: int = 1
    max_hops: int = 1
    variable: str | None = None
    predicates: tuple[Predicate, ...] = ()
    columns: tuple[str, ...] | None = None
    alternatives: tuple[tuple[str, Direction], ...] = ()
    ends: tuple[str, str] | None = None

    @property
    def reversed(self) -> EdgePattern:
        """The same edges seen from the other end."""
        return replace(
            self,
            direction=self.direction.reversed,
            alternatives=tuple((name, direction.reversed) for name, direction in self.alternatives),
            ends=None if self.ends is None else (self.ends[1], self.ends[0]),
        )


# --- operators that make rows of bindings -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class NodeScan:
    """One row for each node that matches the pattern."""

    node: NodePattern


@dataclass(frozen=True, slots=True)
class RankedScan:
    """The best `limit` rows of a NodeScan by a ranking, and every row that ties with the last of them.
    Rows without a vector come after all others. When operators above leave too few rows, the Order asks for more.
    """

    node: NodePattern
    ranking: Nearest | Bm25
    limit: int


@dataclass(frozen=True, slots=True)
class FusedScan:
    """The rows of a NodeScan that can be among the best `limit` rows by two fused rankings.
    Ranks compare only the nodes that are left by operators between the scan and its Order, so the Order decides when enough
    rows
    were read.
    """

    node: NodePattern
    ranking: Rrf
    limit: int


@dataclass(frozen=True, slots=True)
class Outer:
    """The leaf of a nested plan: one row for each distinct combination of these variables in the outer rows.
    Without variables it is one row without bindings.
    """

    variables: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Empty:
    """No rows, but with these variables. `columns` are the columns of them that operators above read."""

    variables: tuple[str, ...]
    columns: tuple[Column, ...] = ()


@dataclass(frozen=True, slots=True)
class CrossJoin:
    """Every row of the left with every row of the right."""

    left: Plan
    right: Plan


@dataclass(frozen=True, slots=True)
class Expand:
    """Each row with each matching target reached from `source`; adds the target and the edge variable.
    `closing`: the target is bound already; the step keeps the rows whose two ends are connected (with an edge variable, once
    per
    connecting edge).
    """

    input: Plan
    source: str
    edge: EdgePattern
    target: NodePattern
    closing: bool = False


@dataclass(frozen=True, slots=True)
class Filter:
    """The rows that satisfy all predicates."""

    input: Plan
    predicates: tuple[Predicate, ...]


@dataclass(frozen=True, slots=True)
class AntiJoin:
    """The rows for which the inner plan, started with the row's values of the `on` variables, has no rows."""

    input: Plan
    inner: Plan
    on: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SemiJoin:
    """The rows for which the inner plan, started with the row's values of the `on` variables, has rows."""

    input: Plan
    inner: Plan
    on: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class OptionalJoin:
    """Each row with each row that the inner plan has for its values of the `on` variables.
    A row without a match is kept once, with nulls for the variables of the inner plan. The rows keep their order.
    """

    input: Plan
    inner: Plan
    on: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Attach:
    """Each row with one more column: an aggregate over the rows that the inner plan has for it.

    `call` is `exists`, or an aggregate; `weighted` as in Aggregate.
    """

    input: Plan
    inner: Plan
    on: tuple[str, ...]
    column: Column
    call: AggregateCall
    weighted: bool = False


@dataclass(frozen=True, slots=True)
class ShortestPaths:
    """Each row with the shortest path from `source` to `target`, both bound; with `every`, once for each shortest path.
    Rows whose ends are not connected by a path within the hop bounds are dropped. Of equally short paths the smallest by the ids
    of its nodes is taken. `weight`: a property of the edges, whose sum is then the length of a path. The path is bound as its
    parts `length`, `nodes` and `edges`.
    """

    input: Plan
    path: str
    source: str
    edge: EdgePattern
    target: str
    node_type: str
    every: bool = False
    weight: str | None = None
    #: The parts of the path that operators above read.
    reading: tuple[str, ...] = PATH_PARTS
    #: The place for the error when an edge has a weight that no path can have.
    place: Place | None = field(default=None, compare=False, repr=False)

    @property
    def columns(self) -> dict[str, str]:
        """The variable of each part of the path."""
        return {part: value_column(f"{self.path}:{part}", STRING).variable for part in PATH_PARTS}


@dataclass(frozen=True, slots=True)
class Fetch:
    """Adds properties of a node whose id the rows have; the properties are null where the id is null."""

    input: Plan
    node: NodePattern


@dataclass(frozen=True, slots=True)
class With:
    """The rows of a result as bindings: its columns are ids of nodes (`n.id`) or values.
    Operators above know none of the variables below, except `variables`.
    """

    input: Plan
    variables: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Tag:
    """Adds type columns for variables that sibling plans of a Union bind to nodes of other types."""

    input: Plan
    types: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Union:
    """The rows of several plans, one plan after the other.
    For plans that bind variables, `columns` are the columns that operators above read. For results with equal columns,
    `columns` is
    None and `types` are the types of the columns.
    """

    inputs: tuple[Plan, ...]
    columns: tuple[Column, ...] | None = None
    types: tuple[PropType, ...] = ()


@dataclass(frozen=True, slots=True)
class Hop:
    """One step of counted paths; `then` are the steps that continue from its target."""

    source: str
    edge: EdgePattern
    target: NodePattern
    then: tuple[Hop, ...] = ()


@dataclass(frozen=True, slots=True)
class CountPaths:
    """The rows with at least one path along every hop, each weighted with its number of paths, without enumerating them.
    The number of a row is the product over its hops. The number of a hop is the sum, over its matching targets (or its edges,
    when
    the edge has a variable), of the numbers of `then`. A hop without `then` counts its targets.
    """

    input: Plan
    hops: tuple[Hop, ...]


@dataclass(frozen=True, slots=True)
class CountRows:
    """The rows of a plan, each weighted with the product of the row counts of the `counted` plans.
    It replaces a CrossJoin when operators above read no variable of the counted plans.
    """

    input: Plan
    counted: tuple[Plan, ...]


# --- operators that make results --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class OutputColumn:
    """A named column of a result."""

    name: str
    expr: Expr

    @property
    def type(self) -> PropType:
        return self.expr.type


@dataclass(frozen=True, slots=True)
class AggregateColumn:
    """A named aggregate of a group."""

    name: str
    call: AggregateCall


@dataclass(frozen=True, slots=True)
class Aggregate:
    """One row per group of rows with equal keys; without keys, one row even when there is no input.

    `weighted`: the input is a CountPaths or CountRows, and a row counts as often as it says.
    """

    input: Plan
    keys: tuple[OutputColumn, ...]
    aggregates: tuple[AggregateColumn, ...]
    weighted: bool = False


@dataclass(frozen=True, slots=True)
class OrderKey:
    """An expression to order by. NaN comes after all numbers; text is ordered by code point."""

    expr: Expr | UnknownAlias
    descending: bool
    nulls_first: bool


@dataclass(frozen=True, slots=True)
class Order:
    """The rows ordered by the keys, then by the ties (ascending); only the first `limit` rows when it is given."""

    input: Plan
    keys: tuple[OrderKey, ...]
    ties: tuple[Column | ResultColumn, ...]
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class Limit:
    """At most `count` rows after the first `offset` rows; both may be parameters; a count of None means no bound."""

    input: Plan
    count: int | Parameter | None
    offset: int | Parameter = 0


@dataclass(frozen=True, slots=True)
class Project:
    """The result: the given columns of each row, in order."""

    input: Plan
    columns: tuple[OutputColumn, ...]


Plan = (
    NodeScan
    | RankedScan
    | FusedScan
    | Outer
    | Empty
    | CrossJoin
    | Expand
    | Filter
    | AntiJoin
    | SemiJoin
    | OptionalJoin
    | Attach
    | ShortestPaths
    | Fetch
    | With
    | Tag
    | Union
    | CountPaths
    | CountRows
    | Aggregate
    | Order
    | Limit
    | Project
)
