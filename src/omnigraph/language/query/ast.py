"""The tree of a `.gq` file, as written."""

from __future__ import annotations

from dataclasses import dataclass
from dataclasses import field as attribute  # some nodes have an attribute called `field`

from omnigraph.language.source import NOWHERE, Source, Span
from omnigraph.language.types import PropType

# --- literals ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class StringLit:
    value: str
    span: Span = attribute(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class IntLit:
    value: int
    span: Span = attribute(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class FloatLit:
    """Keeps the digits as written, so that printing is exact."""

    text: str
    span: Span = attribute(default=NOWHERE, compare=False)

    @property
    def value(self) -> float:
        return float(self.text)


@dataclass(frozen=True, slots=True)
class BoolLit:
    value: bool
    span: Span = attribute(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class DateLit:
    """`date("…")`; the text is judged by the type checker."""

    text: str
    span: Span = attribute(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class DateTimeLit:
    """`datetime("…")`; the text is judged by the type checker."""

    text: str
    span: Span = attribute(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class ListLit:
    items: tuple[Literal, ...]
    span: Span = attribute(default=NOWHERE, compare=False)


Literal = StringLit | IntLit | FloatLit | BoolLit | DateLit | DateTimeLit | ListLit

# --- expressions ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Now:
    span: Span = attribute(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Variable:
    """`$name`, without the dollar sign; `_` is the anonymous variable."""

    name: str
    span: Span = attribute(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Access:
    """`$variable.property`."""

    variable: str
    property: str
    span: Span = attribute(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Ident:
    """A bare word: a reference to a projection's alias."""

    name: str
    span: Span = attribute(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Aggregate:
    """`function` is count, sum, avg, min or max."""

    function: str
    argument: Expr
    span: Span = attribute(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Search:
    """`search(field, query)`: any token."""

    field: Expr
    query: Expr
    span: Span = attribute(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class MatchText:
    """`match_text(field, query)`: all tokens, any order."""

    field: Expr
    query: Expr
    span: Span = attribute(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Fuzzy:
    """`fuzzy(field, query[, max_edits])`: a token within some edits."""

    field: Expr
    query: Expr
    max_edits: Expr | None = None
    span: Span = attribute(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Bm25:
    """`bm25(field, query)`: a relevance score."""

    field: Expr
    query: Expr
    span: Span = attribute(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Nearest:
    """`nearest($n.vector, query)`: a distance."""

    field: Access
    query: Expr
    span: Span = attribute(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Rrf:
    """`rrf(rank, rank[, k])`: reciprocal rank fusion."""

    left: Nearest | Bm25
    right: Nearest | Bm25
    k: Expr | None = None
    span: Span = attribute(default=NOWHERE, compare=False)


Expr = Now | Nearest | Search | Fuzzy | MatchText | Bm25 | Rrf | Aggregate | Access | Variable | Ident | Literal

# --- clauses ----------------------------------------------------------------------------------------------------------

Value = Literal | Variable | Now


@dataclass(frozen=True, slots=True)
class PropertyMatch:
    """`name: value` inside a binding's braces."""

    property: str
    value: Value
    span: Span = attribute(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Binding:
    """`$variable: Type { … }`."""

    variable: str
    type_name: str
    matches: tuple[PropertyMatch, ...] = ()
    span: Span = attribute(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Traversal:
    """`$source [$edge:]word{min,max} $target`; `undirected` for `<word>`; `max_hops` None is an open bound."""

    source: str
    edge_variable: str | None
    edge_word: str
    undirected: bool
    min_hops: int
    max_hops: int | None
    target: str
    span: Span = attribute(default=NOWHERE, compare=False)
    #: Whether `{min,max}` was written; an edge binding refuses even `{1,1}`.
    has_bounds: bool = False


@dataclass(frozen=True, slots=True)
class Comparison:
    """`left operator right`; a text filter is `call = true`."""

    left: Expr
    operator: str
    right: Expr
    span: Span = attribute(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Negation:
    clauses: tuple[Clause, ...]
    span: Span = attribute(default=NOWHERE, compare=False)


Clause = Negation | Binding | Traversal | Comparison

# --- queries ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Param:
    name: str
    type: PropType
    span: Span = attribute(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Projection:
    expr: Expr
    alias: str | None = None
    span: Span = attribute(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Ordering:
    """`descending` None when no direction was written."""

    expr: Expr
    descending: bool | None = None
    span: Span = attribute(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Read:
    clauses: tuple[Clause, ...]
    projections: tuple[Projection, ...]
    orderings: tuple[Ordering, ...] = ()
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class Assignment:
    property: str
    value: Value
    span: Span = attribute(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Predicate:
    property: str
    operator: str
    value: Value
    span: Span = attribute(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Insert:
    type_name: str
    assignments: tuple[Assignment, ...]
    span: Span = attribute(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Update:
    type_name: str
    assignments: tuple[Assignment, ...]
    predicate: Predicate
    span: Span = attribute(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Delete:
    type_name: str
    predicate: Predicate
    span: Span = attribute(default=NOWHERE, compare=False)


Statement = Insert | Update | Delete


@dataclass(frozen=True, slots=True)
class Mutation:
    statements: tuple[Statement, ...]


@dataclass(frozen=True, slots=True)
class Query:
    name: str
    params: tuple[Param, ...]
    body: Read | Mutation
    description: str | None = None
    instruction: str | None = None
    span: Span = attribute(default=NOWHERE, compare=False)

    @property
    def is_mutation(self) -> bool:
        return isinstance(self.body, Mutation)


@dataclass(frozen=True, slots=True)
class QueryFile:
    """All queries of one source text, in order."""

    queries: tuple[Query, ...]
    source: Source = attribute(default=Source(""), compare=False)
