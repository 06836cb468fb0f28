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
class _TimeLit:
    """The text of a date, datetime or duration; the type checker validates it."""

    text: str
    span: Span = attribute(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class DateLit(_TimeLit):
    """`date("…")`."""


@dataclass(frozen=True, slots=True)
class DateTimeLit(_TimeLit):
    """`datetime("…")`."""


@dataclass(frozen=True, slots=True)
class DurationLit(_TimeLit):
    """`duration("PT1H30M")`."""


@dataclass(frozen=True, slots=True)
class NullLit:
    """`null`; its type is the type of the value or property that it is compared with or assigned to."""

    span: Span = attribute(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class ListLit:
    items: tuple[Literal, ...]
    span: Span = attribute(default=NOWHERE, compare=False)


Literal = StringLit | IntLit | FloatLit | BoolLit | DateLit | DateTimeLit | DurationLit | NullLit | ListLit

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
    """`$variable.property`, or `$variable.@id`, `@type`, `@src`, `@dst`; the `@` is then part of `property`."""

    variable: str
    property: str
    span: Span = attribute(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Ident:
    """A bare word: a projection's alias in `order` and `having`, a property of the target in a mutation."""

    name: str
    span: Span = attribute(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Aggregate:
    """`function([distinct] argument[, fraction])`; the argument of `count(*)` is None.

    `fraction` is the second argument of `percentile`.
    """

    function: str
    argument: Expr | None
    span: Span = attribute(default=NOWHERE, compare=False)
    distinct: bool = False
    fraction: Expr | None = None


@dataclass(frozen=True, slots=True)
class Call:
    """A function of the registry (`functions`)."""

    function: str
    arguments: tuple[Expr, ...]
    span: Span = attribute(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """`left operator right` with one of + - * / %."""

    left: Expr
    operator: str
    right: Expr
    span: Span = attribute(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Negative:
    """`-operand`; the sign of a number literal is part of the literal."""

    operand: Expr
    span: Span = attribute(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Comparison:
    """`left operator right` with one of = != < <= > >= in, not in, contains, starts_with, ends_with.

    A search call that stands alone as a clause is `call = true`.
    """

    left: Expr
    operator: str
    right: Expr
    span: Span = attribute(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class IsNull:
    """`operand is null`, or `operand is not null`."""

    operand: Expr
    negated: bool = False
    span: Span = attribute(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Logical:
    """Two or more operands joined by `and` or by `or`."""

    operator: str
    operands: tuple[Expr, ...]
    span: Span = attribute(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Not:
    operand: Expr
    span: Span = attribute(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class When:
    """`when condition then value` inside a case."""

    condition: Expr
    value: Expr


@dataclass(frozen=True, slots=True)
class Case:
    """`case when … then … else … end`; the value is null where no condition holds and there is no `else`."""

    branches: tuple[When, ...]
    otherwise: Expr | None = None
    span: Span = attribute(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Item:
    """`items[index]`, counted from 0, from the end when negative; null outside the list."""

    items: Expr
    index: Expr
    span: Span = attribute(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class _TextSearch:
    """A search for the tokens of one text in another text."""

    field: Expr
    query: Expr
    span: Span = attribute(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Search(_TextSearch):
    """`search(field, query)`: any token."""


@dataclass(frozen=True, slots=True)
class MatchText(_TextSearch):
    """`match_text(field, query)`: all tokens, any order."""


@dataclass(frozen=True, slots=True)
class Fuzzy:
    """`fuzzy(field, query[, max_edits])`: a token within some edits."""

    field: Expr
    query: Expr
    max_edits: Expr | None = None
    span: Span = attribute(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Bm25(_TextSearch):
    """`bm25(field, query)`: a relevance score."""


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


@dataclass(frozen=True, slots=True)
class BlockCall:
    """`exists { … }`, `count { … }`, or `function(argument) { … }` with sum, min, max or avg: one value for each row.
    The value is computed over the matches of the clauses for this row.
    """

    function: str
    argument: Expr | None
    clauses: tuple[Clause, ...]
    span: Span = attribute(default=NOWHERE, compare=False)


SearchCall = Nearest | Search | Fuzzy | MatchText | Bm25 | Rrf
Condition = Comparison | IsNull | Logical | Not
Expr = (
    Condition
    | Arithmetic
    | Negative
    | Case
    | Item
    | Call
    | BlockCall
    | SearchCall
    | Aggregate
    | Now
    | Access
    | Variable
    | Ident
    | Literal
)


def parts(expr: Expr) -> tuple[Expr, ...]:
    """The expressions directly inside an expression."""
    match expr:
        case Comparison() | Arithmetic():
            return (expr.left, expr.right)
        case IsNull() | Not() | Negative():
            return (expr.operand,)
        case Logical():
            return expr.operands
        case Case():
            inner = [part for when in expr.branches for part in (when.condition, when.value)]
            return (*inner, *(() if expr.otherwise is None else (expr.otherwise,)))
        case Item():
            return (expr.items, expr.index)
        case Call():
            return expr.arguments
        case Aggregate():
            return tuple(part for part in (expr.argument, expr.fraction) if part is not None)
        case BlockCall():
            return () if expr.argument is None else (expr.argument,)
        case Search() | MatchText() | Bm25() | Nearest():
            return (expr.field, expr.query)
        case Fuzzy():
            return tuple(part for part in (expr.field, expr.query, expr.max_edits) if part is not None)
        case Rrf():
            return tuple(part for part in (expr.left, expr.right, expr.k) if part is not None)
        case _:
            return ()


# --- clauses ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PropertyMatch:
    """`name: value` inside a binding's braces."""

    property: str
    value: Expr
    span: Span = attribute(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Binding:
    """`$variable: Type { … }`; `others` are the further types of `A|B`. A type is a node type, an interface or `*`."""

    variable: str
    type_name: str
    matches: tuple[PropertyMatch, ...] = ()
    span: Span = attribute(default=NOWHERE, compare=False)
    others: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Traversal:
    """`$source [$edge:]word{min,max} $target`; `undirected` for `<word>`; `max_hops` None is an open bound.

    `others` are the further words of `word|word`; the word `*` stands for any edge.
    """

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
    others: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PathMatch:
    """`$variable = shortest(traversal [by $edge.property])`, or `all_shortest(…)`."""

    variable: str
    every: bool
    traversal: Traversal
    weight: Access | None = None
    span: Span = attribute(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Negation:
    """`not { … }`."""

    clauses: tuple[Clause, ...]
    span: Span = attribute(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Optional:
    """`optional { … }`."""

    clauses: tuple[Clause, ...]
    span: Span = attribute(default=NOWHERE, compare=False)


#: An expression among the clauses is a condition: only rows for which it is true are kept.
Clause = Negation | Optional | Binding | Traversal | PathMatch | Expr

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
    """`descending` is None when no direction is written, `nulls_first` None when the place of nulls is not written."""

    expr: Expr
    descending: bool | None = None
    span: Span = attribute(default=NOWHERE, compare=False)
    nulls_first: bool | None = None


@dataclass(frozen=True, slots=True)
class AllProperties:
    """`$variable.*` in a return block."""

    variable: str
    span: Span = attribute(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Read:
    """A match block and its result; `limit` and `offset` are numbers or parameters.
    `before`: the part of the query up to the preceding `with`. The projections of that part are the names after `with`, its
    `having` is the condition after `where`.
    """

    clauses: tuple[Clause, ...]
    projections: tuple[Projection | AllProperties, ...]
    orderings: tuple[Ordering, ...] = ()
    limit: int | Variable | None = None
    distinct: bool = False
    having: Expr | None = None
    offset: int | Variable | None = None
    before: Read | None = None


@dataclass(frozen=True, slots=True)
class Union:
    """`read union { read }`; `keeps_repeats` for `union all`. Order, limit and offset apply to all rows together."""

    left: Read | Union
    right: Read
    keeps_repeats: bool
    orderings: tuple[Ordering, ...] = ()
    limit: int | Variable | None = None
    offset: int | Variable | None = None


@dataclass(frozen=True, slots=True)
class Assignment:
    property: str
    value: Expr
    span: Span = attribute(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Insert:
    type_name: str
    assignments: tuple[Assignment, ...]
    span: Span = attribute(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Upsert:
    """An insert that updates the node if its key exists; properties that are not assigned keep their values."""

    type_name: str
    assignments: tuple[Assignment, ...]
    span: Span = attribute(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Update:
    """An update of a type; in its condition and values, bare words are properties of the type."""

    type_name: str
    assignments: tuple[Assignment, ...]
    condition: Expr
    span: Span = attribute(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Delete:
    type_name: str
    condition: Expr
    span: Span = attribute(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class MatchInsert:
    """`match { … } insert Type { … }`, or upsert: once for each row of the match."""

    clauses: tuple[Clause, ...]
    statement: Insert | Upsert
    span: Span = attribute(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class MatchUpdate:
    """`match { … } update $variable set { … }`: each matched node or edge once."""

    clauses: tuple[Clause, ...]
    variable: Variable
    assignments: tuple[Assignment, ...]
    span: Span = attribute(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class MatchDelete:
    """`match { … } delete $variable`: each matched node or edge once."""

    clauses: tuple[Clause, ...]
    variable: Variable
    span: Span = attribute(default=NOWHERE, compare=False)


Statement = Insert | Upsert | Update | Delete | MatchInsert | MatchUpdate | MatchDelete


@dataclass(frozen=True, slots=True)
class Mutation:
    statements: tuple[Statement, ...]


@dataclass(frozen=True, slots=True)
class Query:
    name: str
    params: tuple[Param, ...]
    body: Read | Union | Mutation
    description: str | None = None
    instruction: str | None = None
    span: Span = attribute(default=NOWHERE, compare=False)

    @property
    def title(self) -> str:
        """The name of the query in messages; a query without a head has an empty `name`."""
        return f"query '{self.name}'" if self.name else "the query"

    @property
    def is_mutation(self) -> bool:
        return isinstance(self.body, Mutation)


@dataclass(frozen=True, slots=True)
class QueryFile:
    """All queries of one source text, in order."""

    queries: tuple[Query, ...]
    source: Source = attribute(default=Source(""), compare=False)
