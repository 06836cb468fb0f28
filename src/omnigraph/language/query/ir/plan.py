"""Plans of read queries: an immutable tree of operators, leaves first in time.

Up to Aggregate or Project a row is a set of bindings: each variable stands for one node or one edge. Operators below
never change what a variable stands for; they only make, multiply and drop rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
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
from omnigraph.language.types import PropType


class Direction(StrEnum):
    """Which way an edge is followed, seen from the variable the step starts at."""

    OUT = "out"
    IN = "in"
    BOTH = "both"

    @property
    def reversed(self) -> Direction:
        """The same edges seen from the other end."""
        return {Direction.OUT: Direction.IN, Direction.IN: Direction.OUT, Direction.BOTH: Direction.BOTH}[self]


#: What is known of a path.
PATH_PARTS = ("length", "nodes", "edges")
#: The most hops of a step without an upper bound: no graph has a shortest path of so many edges.
OPEN_END = 2**40

# --- what is matched --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class NodePattern:
    """A variable that stands for nodes of one type which satisfy all predicates (on this variable alone).

    `lookup` holds one value for each property of `key`, in that order: only the node with that key fits. A single
    value with `lookup_by_id` is the id itself. A null value fits nothing.
    `columns` are the properties read by operators above; None means any of them. `distances` are those operators above
    ask for and a scan hands up instead of the vectors.
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

    Without a variable each (source, target) pair fits once; the target's shortest distance lies within the bounds.
    With a variable (always one hop) each edge fits once, and `predicates` are on the edge.
    `alternatives`, when there are several, are all edge types that may be followed, each with its direction; `ends` are then
    the types of the two nodes. A pair that several of them connect still fits once.
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
    """One row for each node that fits the pattern."""

    node: NodePattern


@dataclass(frozen=True, slots=True)
class RankedScan:
    """The rows of a NodeScan that can be among the `limit` best: those, and every row that ties with the last one.

    Rows without a vector come after all others. An order above that is left with too few rows asks for more.
    """

    node: NodePattern
    ranking: Nearest | Bm25
    limit: int


@dataclass(frozen=True, slots=True)
class FusedScan:
    """The rows of a NodeScan that can be among the `limit` best by two ranks of its nodes.

    Ranks compare the nodes that steps between the scan and its order leave, so the order decides when there are enough.
    """

    node: NodePattern
    ranking: Rrf
    limit: int


@dataclass(frozen=True, slots=True)
class Outer:
    """Leaf of a negated plan: each distinct combination of these variables in the rows that are tested.

    Without variables it is one row that binds nothing.
    """

    variables: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Empty:
    """No rows, of these variables. `columns` are what is read of them above."""

    variables: tuple[str, ...]
    columns: tuple[Column, ...] = ()


@dataclass(frozen=True, slots=True)
class CrossJoin:
    """Every row of the left with every row of the right."""

    left: Plan
    right: Plan


@dataclass(frozen=True, slots=True)
class Expand:
    """Each row with each fitting target reached from `source`; adds the target and the edge variable.

    `closing`: the target is bound already, so the step only keeps rows whose two ends are connected (with an edge
    variable: once per connecting edge).
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
    """The rows for which the inner plan, started with their values of the `on` variables, has no row."""

    input: Plan
    inner: Plan
    on: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SemiJoin:
    """The rows for which the inner plan, started with their values of the `on` variables, has a row."""

    input: Plan
    inner: Plan
    on: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class OptionalJoin:
    """Each row with each row that the inner plan has for its values of the `on` variables; alone where there is none.

    What the inner plan binds is null then. The rows keep their order.
    """

    input: Plan
    inner: Plan
    on: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Attach:
    """Each row with one more value: an aggregate over the rows that the inner plan has for it.

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
    """Each row with the shortest path from `source` to `target`, both bound; with `every` once for each of them.

    Rows whose ends no path connects within the bounds are dropped. Of equally short paths the smallest by the ids of its
    nodes is taken. `weight` is a property of the edges; a path is as long as their sum. The path is bound as its parts,
    `length`, `nodes` and `edges`.
    """

    input: Plan
    path: str
    source: str
    edge: EdgePattern
    target: str
    node_type: str
    every: bool = False
    weight: str | None = None
    #: The parts of the path that are read above.
    reading: tuple[str, ...] = PATH_PARTS

    @property
    def columns(self) -> dict[str, str]:
        """The variable of each part of the path."""
        return {part: value_column(f"{self.path}:{part}", STRING).variable for part in PATH_PARTS}


@dataclass(frozen=True, slots=True)
class Fetch:
    """Rows in which the id of a node is known, with properties of that node; null where the id is null."""

    input: Plan
    node: NodePattern


@dataclass(frozen=True, slots=True)
class With:
    """The rows of a result as bindings: its columns are named as variables have them, `n.id` or a value.

    Nothing that was bound below is known above, except what is named here.
    """

    input: Plan
    variables: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Tag:
    """Rows with the types of some variables, which other plans beside this one bind to nodes of other types."""

    input: Plan
    types: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Union:
    """The rows of several plans, one plan after the other.

    `columns` are what is read of them above, when they bind variables; None when they are results with equal columns, whose
    types are then `types`.
    """

    inputs: tuple[Plan, ...]
    columns: tuple[Column, ...] | None = None
    types: tuple[PropType, ...] = ()


@dataclass(frozen=True, slots=True)
class Hop:
    """One step of counted paths; `then` are the steps that go on from its target."""

    source: str
    edge: EdgePattern
    target: NodePattern
    then: tuple[Hop, ...] = ()


@dataclass(frozen=True, slots=True)
class CountPaths:
    """The rows from which every hop leads somewhere, each with its number of paths, which are not enumerated.

    The paths of a row are the product over its hops; the paths of a hop are the sum, over its fitting targets (its
    edges, when the edge has a variable), of the paths of `then`. A hop without `then` counts its targets.
    """

    input: Plan
    hops: tuple[Hop, ...]


@dataclass(frozen=True, slots=True)
class CountRows:
    """The rows of a plan, each as often as the `counted` plans have rows together: a product that is not enumerated.

    Nothing above reads what the counted plans bind.
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
    """One row per group of rows with equal keys; without keys, one row even over nothing.

    `weighted`: the input is a CountPaths or CountRows, and a row counts as often as it says.
    """

    input: Plan
    keys: tuple[OutputColumn, ...]
    aggregates: tuple[AggregateColumn, ...]
    weighted: bool = False


@dataclass(frozen=True, slots=True)
class OrderKey:
    """NaN comes after all numbers; text is ordered by code point."""

    expr: Expr | UnknownAlias
    descending: bool
    nulls_first: bool


@dataclass(frozen=True, slots=True)
class Order:
    """The rows in order of the keys, then of the ties, which are ascending; at most `limit` of them."""

    input: Plan
    keys: tuple[OrderKey, ...]
    ties: tuple[Column | ResultColumn, ...]
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class Limit:
    """At most `count` rows behind the first `offset`; either may be a parameter, and a count of None is no bound."""

    input: Plan
    count: int | Parameter | None
    offset: int | Parameter = 0


@dataclass(frozen=True, slots=True)
class Project:
    """The result: these columns of each row, in this order."""

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
