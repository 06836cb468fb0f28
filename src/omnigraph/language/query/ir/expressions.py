"""Typed expressions, which a plan computes for each row. Every node knows the type of its result."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar, TypeAlias

from omnigraph.language.literals import TypedValue
from omnigraph.language.source import Place
from omnigraph.language.types import PropType, Scalar

STRING = PropType(Scalar.STRING)
BOOL = PropType(Scalar.BOOL)
I64 = PropType(Scalar.I64)
F64 = PropType(Scalar.F64)
DATE = PropType(Scalar.DATE)
DATETIME = PropType(Scalar.DATETIME)

TRUE = TypedValue(True, BOOL)
FALSE = TypedValue(False, BOOL)

#: The property name of a variable that holds a value instead of a node or an edge: a value named by a `with`, an aggregate over
#: the matches of a block, or a part of a path.
VALUE = "#value"

# --- values -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Column:
    """A property of a bound variable, or its implicit `id` (and `src`, `dst` of an edge).

    `@type` is the type of a variable that stands for nodes or edges of several types.
    """

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
    """The time of the query; the same value everywhere in one run."""

    type: ClassVar[PropType] = DATETIME


def value_column(name: str, type: PropType) -> Column:
    """The column of a variable that holds a value. The `=` keeps its name distinct from all names in a query text."""
    return Column(f"={name}", VALUE, type)


def is_value(variable: str) -> bool:
    """Whether a variable holds a value instead of a node or an edge."""
    return variable.startswith("=")


#: Expressions with the same value for every row of one run.
Constant = TypedValue | Parameter | Now

# --- search: predicates, scores and ranks -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AnyToken:
    """`search`: the text contains at least one of the query's tokens."""

    field: Column
    query: Constant
    type: ClassVar[PropType] = BOOL


@dataclass(frozen=True, slots=True)
class AllTokens:
    """`match_text`: the text contains all of the query's tokens, in any order."""

    field: Column
    query: Constant
    type: ClassVar[PropType] = BOOL


@dataclass(frozen=True, slots=True)
class FuzzyToken:
    """`fuzzy`: the text contains a token within `max_edits` edits of a query token; None: the token's length decides."""

    field: Column
    query: Constant
    max_edits: Constant | None = None
    type: ClassVar[PropType] = BOOL


@dataclass(frozen=True, slots=True)
class Bm25:
    """The bm25 score of a text for the query; larger is better."""

    field: Column
    query: Constant
    type: ClassVar[PropType] = F64


@dataclass(frozen=True, slots=True)
class Nearest:
    """The distance of a vector from the query; smaller is better.

    A String query is embedded first; `model` is the model of the property's vectors if the schema records it, else None.
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
    type: ClassVar[PropType] = F64


TextMatch = AnyToken | AllTokens | FuzzyToken
Ranking = Nearest | Bm25 | Rrf

# --- conditions: true, false or null ----------------------------------------------------------------------------------


def _truth(*operands: Expr) -> PropType:
    """Bool, nullable when one of the operands is nullable."""
    return BOOL.as_nullable() if any(operand.type.nullable for operand in operands) else BOOL


@dataclass(frozen=True, slots=True)
class Compare:
    """`left operator right` by value, with one of = != < <= > >=; null where a side is null.

    The two types are compatible but need not be equal: an integer column may meet a float.
    """

    left: Expr
    operator: str
    right: Expr

    @property
    def type(self) -> PropType:
        return _truth(self.left, self.right)


@dataclass(frozen=True, slots=True)
class Member:
    """`items contains item`, or `item in items`: a list contains a value.
    Null where the list or the item is null, or where the item is not found in a list that contains a null.
    """

    items: Expr
    item: Expr

    @property
    def type(self) -> PropType:
        holds_null = (
            isinstance(self.items, TypedValue) and isinstance(self.items.value, tuple) and None in self.items.value
        )
        return BOOL.as_nullable() if holds_null else _truth(self.items, self.item)


@dataclass(frozen=True, slots=True)
class Substring:
    """`text contains part`."""

    text: Expr
    part: Expr

    @property
    def type(self) -> PropType:
        return _truth(self.text, self.part)


@dataclass(frozen=True, slots=True)
class Prefix:
    """`text starts_with prefix`."""

    text: Expr
    prefix: Expr

    @property
    def type(self) -> PropType:
        return _truth(self.text, self.prefix)


@dataclass(frozen=True, slots=True)
class Suffix:
    """`text ends_with suffix`."""

    text: Expr
    suffix: Expr

    @property
    def type(self) -> PropType:
        return _truth(self.text, self.suffix)


@dataclass(frozen=True, slots=True)
class IsNull:
    """Whether a value is null; never null itself."""

    operand: Expr
    type: ClassVar[PropType] = BOOL


@dataclass(frozen=True, slots=True)
class And:
    """False where an operand is false, else null where one is null; later operands are evaluated only where needed."""

    operands: tuple[Expr, ...]

    @property
    def type(self) -> PropType:
        return _truth(*self.operands)


@dataclass(frozen=True, slots=True)
class Or:
    """True where an operand is true, else null where one is null; later operands are evaluated only where needed."""

    operands: tuple[Expr, ...]

    @property
    def type(self) -> PropType:
        return _truth(*self.operands)


@dataclass(frozen=True, slots=True)
class Not:
    """The opposite; null where the operand is null."""

    operand: Expr

    @property
    def type(self) -> PropType:
        return _truth(self.operand)


#: Any Bool expression; only rows for which it is true are kept. A TypedValue here is TRUE or FALSE, from constant folding.
Predicate: TypeAlias = "Expr"

# --- computed values --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Call:
    """A function of the registry, or an operator: + - * / % and `negative`."""

    function: str
    arguments: tuple[Expr, ...]
    type: PropType
    #: The place for the error when the call fails for a row.
    place: Place | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Conditional:
    """The value of the first branch whose condition is true, else `otherwise`; each value is computed only where taken."""

    conditions: tuple[Expr, ...]
    values: tuple[Expr, ...]
    otherwise: Expr
    type: PropType
    place: Place | None = field(default=None, compare=False, repr=False)


# --- results ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AggregateCall:
    """`function` over the rows of a group. An argument of None counts the rows themselves.

    `distinct`: each value counts once. `fraction` is the second argument of `percentile`.
    """

    function: str
    argument: Expr | None
    type: PropType
    distinct: bool = False
    fraction: Constant | None = None
    #: The place for the error when the aggregate fails for a group.
    place: Place | None = field(default=None, compare=False, repr=False)

    @property
    def counts_rows(self) -> bool:
        """Whether this is a `count` without `distinct`."""
        return self.function == "count" and not self.distinct


@dataclass(frozen=True, slots=True)
class ResultColumn:
    """A column of an Aggregate below, by name."""

    name: str
    type: PropType


@dataclass(frozen=True, slots=True)
class UnknownAlias:
    """`order { name }` where no projection has this alias; it is an error when the query runs.
    `suggestion`: the name that was probably meant, as it is written; None when no name is close.
    """

    name: str
    suggestion: str | None = None
    place: Place | None = field(default=None, compare=False, repr=False)


Condition = Compare | Member | Substring | Prefix | Suffix | IsNull | And | Or | Not
Expr = Column | Constant | TextMatch | Ranking | Condition | Call | Conditional | AggregateCall | ResultColumn

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
        case Suffix():
            return (expr.text, expr.suffix)
        case IsNull() | Not():
            return (expr.operand,)
        case And() | Or():
            return expr.operands
        case Call():
            return expr.arguments
        case Conditional():
            return (*expr.conditions, *expr.values, expr.otherwise)
        case AggregateCall():
            return () if expr.argument is None else (expr.argument,)
        case _:
            return ()


def with_operands(expr: Expr, operands: tuple[Expr, ...]) -> Expr:
    """A condition or a computed value over other operands, in the order of `operands`."""
    match expr:
        case Compare():
            return replace(expr, left=operands[0], right=operands[1])
        case Member():
            return Member(*operands)
        case Substring():
            return Substring(*operands)
        case Prefix():
            return Prefix(*operands)
        case Suffix():
            return Suffix(*operands)
        case IsNull():
            return IsNull(*operands)
        case Not():
            return Not(*operands)
        case And():
            return And(operands)
        case Or():
            return Or(operands)
        case Call():
            return replace(expr, arguments=operands)
        case Conditional():
            count = len(expr.conditions)
            return Conditional(operands[:count], operands[count:-1], operands[-1], expr.type, expr.place)
        case AggregateCall() if operands:
            return replace(expr, argument=operands[0])
        case _:
            return expr


def substituted(expr: Expr, values: Mapping[Expr, Expr]) -> Expr:
    """The expression with every part that is a key of `values` replaced by its value."""
    found = values.get(expr)
    if found is not None:
        return found
    parts = operands(expr)
    changed = tuple(substituted(part, values) for part in parts)
    return expr if changed == parts else with_operands(expr, changed)


def aggregates_in(expr: Expr | UnknownAlias) -> Iterator[AggregateCall]:
    """The aggregates inside an expression."""
    if isinstance(expr, AggregateCall):
        yield expr
    else:
        for operand in operands(expr):
            yield from aggregates_in(operand)


def outside_groups(expr: Expr, keys: frozenset[Expr]) -> Iterator[Column]:
    """The columns that an expression reads outside of aggregates and of grouping keys."""
    if expr in keys or isinstance(expr, AggregateCall):
        return
    if isinstance(expr, Column):
        yield expr
    for operand in operands(expr):
        yield from outside_groups(operand, keys)


def conjuncts(condition: Expr) -> Iterator[Expr]:
    """The operands of a (nested) `and`, or the condition itself."""
    if isinstance(condition, And):
        for operand in condition.operands:
            yield from conjuncts(operand)
    else:
        yield condition


#: Operators and functions that may have no value for some row. `+`, `-` and `*` overflow, except on texts.
_FAILING = frozenset(
    {
        *("+", "-", "*", "/", "%", "negative", "div", "abs", "round", "sqrt", "power", "exp", "ln", "log10", "sign"),
        *("to_int", "to_float", "to_date", "to_datetime", "date", "datetime", "truncate", "add_months"),
        *("split", "matches", "range"),
    }
)


def may_fail(expr: Expr) -> bool:
    """Whether something inside may have no value for some row."""
    fails = isinstance(expr, Call) and expr.function in _FAILING and expr.type.scalar is not Scalar.STRING
    return fails or any(map(may_fail, operands(expr)))


def filters_of(condition: Expr) -> Iterator[Expr]:
    """The conditions that must all hold, which may be asked one by one in any order.

    `and` is lazy: where a condition that may fail could be asked before one that stands before it, the whole of them is
    asked in order, too.
    """
    parts = tuple(conjuncts(condition))
    variables = [variables_of(part) for part in parts]
    # The conditions before the first place where the variables change speak about the same ones.
    alike = next((at for at, own in enumerate(variables) if own != variables[0]), len(parts))
    guarded = {at for at, part in enumerate(parts) if at >= alike and may_fail(part)}
    for at, part in enumerate(parts):
        if at not in guarded:
            yield part
    if guarded:
        yield And(parts)


def columns_of(expr: Expr | UnknownAlias) -> frozenset[Column]:
    """Every column an expression reads."""
    if isinstance(expr, Column):
        return frozenset((expr,))
    if isinstance(expr, Constant):
        return frozenset()
    return frozenset().union(*map(columns_of, operands(expr)))


def variables_of(expr: Expr | UnknownAlias) -> frozenset[str]:
    """Every variable an expression reads."""
    return frozenset(column.variable for column in columns_of(expr))


def holds_rrf(expr: Expr) -> bool:
    """Whether an expression contains a fused rank, whose value depends on the other rows."""
    return isinstance(expr, Rrf) or any(holds_rrf(operand) for operand in operands(expr))
