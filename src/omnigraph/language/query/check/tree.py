"""What the checker hands on: clauses with resolved names and typed expressions, sorted by kind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from omnigraph.language.query.ast import Query
from omnigraph.language.query.ir import Direction, OrderKey, OutputColumn, Parameter, Predicate, Statement
from omnigraph.language.schema.catalog import EdgeType, NodeType


@dataclass(frozen=True, slots=True)
class Step:
    """A traversal; `direction` is seen from `source`."""

    source: str
    source_type: str
    target: str
    target_type: str
    edge_type: str
    direction: Direction
    min_hops: int
    max_hops: int
    edge_variable: str | None


@dataclass(frozen=True, slots=True)
class NegatedBlock:
    """A `not` block and the variables of the surrounding block it speaks about."""

    block: Block
    outer: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Block:
    """The clauses of a `match` or `not` block.

    `nodes` are the variables it introduces with their types, in order of first mention; `bound` those among all its
    variables that have a `$x: Type` clause, in the order of these clauses; `patterns` their inline conditions.
    """

    nodes: Mapping[str, NodeType]
    edges: Mapping[str, EdgeType]
    bound: tuple[str, ...]
    patterns: Mapping[str, tuple[Predicate, ...]]
    steps: tuple[Step, ...]
    filters: tuple[Predicate, ...]
    negations: tuple[NegatedBlock, ...]


@dataclass(frozen=True, slots=True)
class CheckedRead:
    """`aggregates`: the columns, their condition or the order hold an aggregate: rows are grouped by the other columns.

    `having` are the conditions that the columns must satisfy.
    """

    block: Block
    columns: tuple[OutputColumn, ...]
    order: tuple[OrderKey, ...]
    limit: int | Parameter | None
    aggregates: bool
    distinct: bool = False
    having: tuple[Predicate, ...] = ()
    offset: int | Parameter = 0


@dataclass(frozen=True, slots=True)
class CheckedMutation:
    statements: tuple[Statement, ...]


@dataclass(frozen=True, slots=True)
class CheckedQuery:
    """A query that fits the schema."""

    query: Query
    body: CheckedRead | CheckedMutation
