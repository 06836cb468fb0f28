"""Typed expressions: what a plan computes for one row. Every node knows the type of its result."""

from __future__ import annotations

from dataclasses import dataclass

from omnigraph.language.literals import TypedValue
from omnigraph.language.types import PropType, Scalar

STRING = PropType(Scalar.STRING)
BOOL = PropType(Scalar.BOOL)
I64 = PropType(Scalar.I64)
F64 = PropType(Scalar.F64)
DATETIME = PropType(Scalar.DATETIME)

TRUE = TypedValue(True, BOOL)
FALSE = TypedValue(False, BOOL)

# --- values -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Column:
    """A property of a bound variable, or its implicit `id` (and `src`, `dst` of an edge)."""

    variable: str
    property: str
    type: PropType


@dataclass(frozen=True, slots=True)
class Parameter:
    """The value of a declared parameter, known when the query runs."""

    name: str
    type: PropType


@dataclass(frozen=True, slots=True)
class Now:
    """The instant of the query: one value, however often it is used."""

    @property
    def type(self) -> PropType:
        return DATETIME


#: What is the same for every row of one run.
Constant = TypedValue | Parameter | Now

# --- search: predicates, scores and ranks -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AnyToken:
    """`search`: the text holds at least one of the query's tokens."""

    field: Column
    query: Constant

    @property
    def type(self) -> PropType:
        return BOOL


@dataclass(frozen=True, slots=True)
class AllTokens:
    """`match_text`: the text holds all of the query's tokens, in any order."""

    field: Column
    query: Constant

    @property
    def type(self) -> PropType:
        return BOOL


@dataclass(frozen=True, slots=True)
class FuzzyToken:
    """`fuzzy`: the text holds a token within some edits of one of the query's; None lets the token's length decide."""

    field: Column
    query: Constant
    max_edits: Constant | None = None

    @property
    def type(self) -> PropType:
        return BOOL


@dataclass(frozen=True, slots=True)
class Bm25:
    """How well a text answers the query; larger is better."""

    field: Column
    query: Constant

    @property
    def type(self) -> PropType:
        return F64


@dataclass(frozen=True, slots=True)
class Nearest:
    """The distance of a vector from the query; smaller is better.

    A String query is embedded first; `model` is the one the property's vectors were made with, when it is recorded.
    """

    field: Column
    query: Constant
    metric: str
    dimension: int
    model: str | None = None

    @property
    def type(self) -> PropType:
        return PropType(Scalar.F64, nullable=self.field.type.nullable)


@dataclass(frozen=True, slots=True)
class Rrf:
    """Reciprocal rank fusion: Σ 1/(k + rank), ranks counted from 1; larger is better."""

    left: Nearest | Bm25
    right: Nearest | Bm25
    k: Constant

    @property
    def type(self) -> PropType:
        return F64


TextMatch = AnyToken | AllTokens | FuzzyToken
Ranking = Nearest | Bm25 | Rrf

# --- predicates -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Compare:
    """`left operator right` by value, with one of = != < <= > >=; null never satisfies it.

    The two types are compatible but need not be equal: an integer column may meet a float.
    """

    left: Expr
    operator: str
    right: Expr

    @property
    def type(self) -> PropType:
        return BOOL


@dataclass(frozen=True, slots=True)
class Member:
    """`items contains item`: a list holds a value."""

    items: Expr
    item: Expr

    @property
    def type(self) -> PropType:
        return BOOL


@dataclass(frozen=True, slots=True)
class Substring:
    """`text contains part`."""

    text: Expr
    part: Expr

    @property
    def type(self) -> PropType:
        return BOOL


@dataclass(frozen=True, slots=True)
class Prefix:
    """`text starts_with prefix`."""

    text: Expr
    prefix: Expr

    @property
    def type(self) -> PropType:
        return BOOL


#: What a row either satisfies or not. A TypedValue here is TRUE or FALSE, from folding.
Predicate = Compare | Member | Substring | Prefix | TextMatch | TypedValue

# --- results ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AggregateCall:
    """`function` over the rows of a group. An argument of None counts the rows themselves."""

    function: str
    argument: Expr | None
    type: PropType


@dataclass(frozen=True, slots=True)
class ResultColumn:
    """A column of an Aggregate below, by name."""

    name: str
    type: PropType


@dataclass(frozen=True, slots=True)
class UnknownAlias:
    """`order { name }` where no projection has this alias: running the query is an error."""

    name: str


Expr = Column | Constant | TextMatch | Ranking | Compare | Member | Substring | Prefix | AggregateCall | ResultColumn

# --- walking ----------------------------------------------------------------------------------------------------------


def operands(expr: Expr | UnknownAlias) -> tuple[Expr, ...]:
    """The expressions directly inside an expression."""
    match expr:
        case AnyToken() | AllTokens() | Bm25() | Nearest():
            return (expr.field, expr.query)
        case FuzzyToken():
            edits = () if expr.max_edits is None else (expr.max_edits,)
            return (expr.field, expr.query, *edits)
        case Rrf():
            return (expr.left, expr.right, expr.k)
        case Compare():
            return (expr.left, expr.right)
        case Member():
            return (expr.items, expr.item)
        case Substring():
            return (expr.text, expr.part)
        case Prefix():
            return (expr.text, expr.prefix)
        case AggregateCall():
            return () if expr.argument is None else (expr.argument,)
        case _:
            return ()


def columns_of(expr: Expr | UnknownAlias) -> frozenset[Column]:
    """Every column an expression reads."""
    if isinstance(expr, Column):
        return frozenset((expr,))
    return frozenset().union(*(columns_of(operand) for operand in operands(expr)))


def variables_of(expr: Expr | UnknownAlias) -> frozenset[str]:
    """Every variable an expression reads."""
    return frozenset(column.variable for column in columns_of(expr))


def holds_rrf(expr: Expr) -> bool:
    """Whether a fused rank is inside: its value depends on which other rows there are."""
    return isinstance(expr, Rrf) or any(holds_rrf(operand) for operand in operands(expr))
