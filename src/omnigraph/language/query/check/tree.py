"""The output of the checker: clauses with resolved names and typed expressions, grouped by kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from omnigraph.language.query import ir
from omnigraph.language.query.ast import Query
from omnigraph.language.schema.catalog import EdgeType, NodeType
from omnigraph.language.source import Place


class Turning(StrEnum):
    """Whether edges may be followed against their direction."""

    #: Never: neither end is bound before the step.
    NEVER = "never"
    #: Only where the types of the nodes allow no other direction.
    BY_TYPE = "by type"
    #: Both ways: `<edge>`.
    ALWAYS = "always"


@dataclass(frozen=True, slots=True)
class Step:
    """A traversal; `direction` is seen from `source`.
    `edges`: all edge types that it may follow. Given only when there are several, or when an end has several types; the edge
    types
    that connect two node types are then selected for each combination of the ends' types.
    """

    source: str
    source_type: str
    target: str
    target_type: str
    edge_type: str
    direction: ir.Direction
    min_hops: int
    max_hops: int
    edge_variable: str | None
    edges: tuple[EdgeType, ...] = ()
    turning: Turning = Turning.BY_TYPE


@dataclass(frozen=True, slots=True)
class PathStep:
    """A shortest path of a step, or with `every` all; `weight`: the property that is summed (None: each edge counts 1)."""

    variable: str
    step: Step
    every: bool
    weight: ir.Column | None
    #: Where the weight stands in the text.
    place: Place | None


@dataclass(frozen=True, slots=True)
class NestedBlock:
    """A block inside another block, and the outer variables that it uses."""

    block: Block
    outer: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AttachedBlock:
    """An aggregate over the matches of a nested block for each row, and the column from which its value is read.
    The aggregate may be `exists`, which is true where there is a match.
    """

    nested: NestedBlock
    column: ir.Column
    call: ir.AggregateCall


@dataclass(frozen=True, slots=True)
class OptionalPart:
    """An `optional` block, and the clauses that follow it up to the next one."""

    nested: NestedBlock
    rest: Block


@dataclass(frozen=True, slots=True)
class Block:
    """The clauses of a `match`, `not` or other block.
    `nodes`: the node variables that the block introduces with their types, in order of first mention. `bound`: the variables
    with
    a `$x: Type` clause, in the order of these clauses. `patterns`: the conditions in the braces of these clauses.
    `optionals`: the
    optional blocks, each with the clauses after it; the other fields do not include those clauses.
    """

    nodes: Mapping[str, NodeType]
    edges: Mapping[str, EdgeType]
    bound: tuple[str, ...]
    patterns: Mapping[str, tuple[ir.Predicate, ...]]
    steps: tuple[Step, ...]
    filters: tuple[ir.Predicate, ...]
    negations: tuple[NestedBlock, ...]
    existing: tuple[NestedBlock, ...] = ()
    attached: tuple[AttachedBlock, ...] = ()
    paths: tuple[PathStep, ...] = ()
    optionals: tuple[OptionalPart, ...] = ()

    @property
    def parts(self) -> tuple[Block, ...]:
        """This block and the parts after its optional blocks, without the optional blocks themselves."""
        return (self, *(part.rest for part in self.optionals))

    @property
    def nested(self) -> tuple[NestedBlock, ...]:
        """The blocks directly inside this block."""
        inside = [nested for part in self.parts for nested in (*part.negations, *part.existing)]
        inside += [attached.nested for part in self.parts for attached in part.attached]
        return (*inside, *(part.nested for part in self.optionals))

    @property
    def all_nodes(self) -> Mapping[str, NodeType]:
        """The node variables of the rows of this block, including the variables of optional blocks."""
        return {name: kind for part in self._bound_in() for name, kind in part.items()}

    @property
    def all_edges(self) -> Mapping[str, EdgeType]:
        """The edge variables of the rows of this block, including the variables of optional blocks."""
        found = dict(self.edges)
        for part in self.optionals:
            found |= {**part.nested.block.all_edges, **part.rest.all_edges}
        return found

    def _bound_in(self) -> list[Mapping[str, NodeType]]:
        behind = [half.all_nodes for part in self.optionals for half in (part.nested.block, part.rest)]
        return [self.nodes, *behind]


@dataclass(frozen=True, slots=True)
class CheckedRead:
    """A checked read. `aggregates`: the columns, `having` or the order contain an aggregate, so rows are grouped by the others.
    `having`: the conditions that the columns must satisfy. `attached`: blocks over which columns are computed. `before`: the
    part of
    the query up to the preceding `with`. `kinds`: further grouping keys, the types of nodes of several types, since nodes of
    different types may have the same id.
    """

    block: Block
    columns: tuple[ir.OutputColumn, ...]
    order: tuple[ir.OrderKey, ...]
    limit: int | ir.Parameter | None
    aggregates: bool
    distinct: bool = False
    having: tuple[ir.Predicate, ...] = ()
    offset: int | ir.Parameter = 0
    attached: tuple[AttachedBlock, ...] = ()
    before: CheckedWith | None = None
    kinds: tuple[ir.Expr, ...] = ()


@dataclass(frozen=True, slots=True)
class CheckedWith:
    """The part of a query up to a `with`. `nodes`: the variables that hold nodes; `values`: the variables that hold values;
    `listed`: the values that are lists of nodes, with the type of the nodes.
    """

    read: CheckedRead
    nodes: Mapping[str, NodeType]
    values: Mapping[str, ir.Column]
    listed: Mapping[str, NodeType]
    #: The node variables that are null in some rows.
    maybe: frozenset[str]


@dataclass(frozen=True, slots=True)
class CheckedUnion:
    """The rows of two reads with equal columns, one after the other; order, limit and offset apply to all rows together."""

    left: CheckedRead | CheckedUnion
    right: CheckedRead
    keeps_repeats: bool
    columns: tuple[ir.OutputColumn, ...]
    order: tuple[ir.OrderKey, ...]
    limit: int | ir.Parameter | None
    offset: int | ir.Parameter = 0


@dataclass(frozen=True, slots=True)
class CheckedMatch:
    """A mutation statement on matches: the block, and the columns of the matches that the statement reads."""

    block: Block
    columns: tuple[ir.OutputColumn, ...]
    text: str
    #: Makes the statement from the plan of the matches.
    statement: Callable[[ir.Matches], ir.Matched]
    #: The blocks over which columns are computed.
    attached: tuple[AttachedBlock, ...] = ()


@dataclass(frozen=True, slots=True)
class CheckedMutation:
    statements: tuple[ir.Statement | CheckedMatch, ...]


@dataclass(frozen=True, slots=True)
class CheckedQuery:
    """A query that passed the type check."""

    query: Query
    body: CheckedRead | CheckedUnion | CheckedMutation
