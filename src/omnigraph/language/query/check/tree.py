"""What the checker hands on: clauses with resolved names and typed expressions, sorted by kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from omnigraph.language.query import ir
from omnigraph.language.query.ast import Query
from omnigraph.language.schema.catalog import EdgeType, NodeType


class Turning(StrEnum):
    """Whether edges may be followed against their direction."""

    #: As they are written: nothing is known of the nodes before the step.
    NEVER = "never"
    #: Where the types of the nodes leave no other way.
    BY_TYPE = "by type"
    #: Both ways: `<edge>`.
    ALWAYS = "always"


@dataclass(frozen=True, slots=True)
class Step:
    """A traversal; `direction` is seen from `source`.

    `edges` are all types it may follow, given when there are several of them or when an end stands for nodes of several
    types; which of them connect two types then decides each type of its ends.
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
    """The shortest paths of a step, all of them with `every`; `weight` is the number of an edge that is summed, else 1."""

    variable: str
    step: Step
    every: bool
    weight: ir.Column | None


@dataclass(frozen=True, slots=True)
class NestedBlock:
    """A block inside another one and the variables of the surrounding block that it speaks about."""

    block: Block
    outer: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AttachedBlock:
    """What is found over the matches of a nested block for each row, and the column it is then read from.

    `exists` is the aggregate `exists`, which is true where there is a match.
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

    `nodes` are the variables it introduces with their types, in order of first mention; `bound` those among all its
    variables that have a `$x: Type` clause, in the order of these clauses; `patterns` their inline conditions.
    The parts behind optional blocks are in `optionals`; what is said here does not speak about them.
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
        """This block and the parts behind its optional blocks, without these."""
        return (self, *(part.rest for part in self.optionals))

    @property
    def nested(self) -> tuple[NestedBlock, ...]:
        """The blocks directly inside."""
        inside = [nested for part in self.parts for nested in (*part.negations, *part.existing)]
        inside += [attached.nested for part in self.parts for attached in part.attached]
        return (*inside, *(part.nested for part in self.optionals))

    @property
    def all_nodes(self) -> Mapping[str, NodeType]:
        """The node variables that rows of this block have, those of optional blocks included."""
        return {name: kind for part in self._bound_in() for name, kind in part.items()}

    @property
    def all_edges(self) -> Mapping[str, EdgeType]:
        """The edge variables that rows of this block have, those of optional blocks included."""
        found = dict(self.edges)
        for part in self.optionals:
            found |= {**part.nested.block.all_edges, **part.rest.all_edges}
        return found

    def _bound_in(self) -> list[Mapping[str, NodeType]]:
        behind = [half.all_nodes for part in self.optionals for half in (part.nested.block, part.rest)]
        return [self.nodes, *behind]


@dataclass(frozen=True, slots=True)
class CheckedRead:
    """`aggregates`: the columns, their condition or the order hold an aggregate: rows are grouped by the other columns.

    `having` are the conditions that the columns must satisfy. `attached` are blocks that the columns are found over.
    `before`: the part up to the `with` that this one goes on from. `kinds`: the types of nodes of several types that rows are
    grouped by; two of them may have the same id.
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
    """The part of a query up to a `with`. `nodes`: the variables that stay nodes; `values`: the variables that hold a value."""

    read: CheckedRead
    nodes: Mapping[str, NodeType]
    values: Mapping[str, ir.Column]
    #: The nodes that stand for nothing in some rows.
    maybe: frozenset[str]


@dataclass(frozen=True, slots=True)
class CheckedUnion:
    """Two reads with equal columns, whose rows follow each other; order, limit and offset are those of all rows."""

    left: CheckedRead | CheckedUnion
    right: CheckedRead
    keeps_repeats: bool
    columns: tuple[ir.OutputColumn, ...]
    order: tuple[ir.OrderKey, ...]
    limit: int | ir.Parameter | None
    offset: int | ir.Parameter = 0


@dataclass(frozen=True, slots=True)
class CheckedMatch:
    """What a pattern matches for a statement: its block, and the columns that the statement reads."""

    block: Block
    columns: tuple[ir.OutputColumn, ...]
    text: str
    #: Makes the statement of the rows.
    statement: Callable[[ir.Matches], ir.Matched]
    #: The blocks that the columns are found over.
    attached: tuple[AttachedBlock, ...] = ()


@dataclass(frozen=True, slots=True)
class CheckedMutation:
    statements: tuple[ir.Statement | CheckedMatch, ...]


@dataclass(frozen=True, slots=True)
class CheckedQuery:
    """A query that fits the schema."""

    query: Query
    body: CheckedRead | CheckedUnion | CheckedMutation
