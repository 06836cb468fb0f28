"""Hypothesis strategies for query trees: every tree the parser can produce, and no other."""

from __future__ import annotations

from typing import TypeVar

from hypothesis import strategies as st

from omnigraph.language.query.ast import (
    Access,
    Aggregate,
    AllProperties,
    Arithmetic,
    Assignment,
    Binding,
    BlockCall,
    Bm25,
    BoolLit,
    Call,
    Case,
    Clause,
    Comparison,
    DateLit,
    DateTimeLit,
    Delete,
    DurationLit,
    Expr,
    FloatLit,
    Fuzzy,
    Ident,
    Insert,
    IntLit,
    IsNull,
    Item,
    ListLit,
    Literal,
    Logical,
    MatchDelete,
    MatchInsert,
    MatchText,
    MatchUpdate,
    Mutation,
    Nearest,
    Negation,
    Negative,
    Not,
    Now,
    NullLit,
    Optional,
    Ordering,
    Param,
    PathMatch,
    Projection,
    PropertyMatch,
    Query,
    QueryFile,
    Read,
    Rrf,
    Search,
    StringLit,
    Traversal,
    Union,
    Update,
    Upsert,
    Variable,
    When,
)
from omnigraph.language.query.expressions import MAX_I64
from omnigraph.language.query.functions import AGGREGATES, FUNCTIONS
from omnigraph.language.query.reads import MAX_U64
from omnigraph.language.types import DECLARED, MAX_VECTOR_DIMENSION, PropType, Scalar

#: A part of a query.
_Node = TypeVar("_Node")
COMPARISONS = ("=", "!=", "<", "<=", ">", ">=", "in", "not in", "contains", "starts_with", "ends_with")

#: Words that mean something elsewhere in the language and are still plain names.
_TELLING_NAMES = ("as", "asc", "desc", "not", "note", "now", "null", "count", "date", "match", "return", "_", "in_x")

names = st.one_of(st.sampled_from(_TELLING_NAMES), st.from_regex(r"[a-z_][A-Za-z0-9_]{0,8}", fullmatch=True))
type_names = st.from_regex(r"[A-Z][A-Za-z0-9_]{0,8}", fullmatch=True)
edge_words = st.one_of(
    st.sampled_from(["contains", "starts_with", "note", "knows"]),
    st.from_regex(r"[a-mo-z_][A-Za-z0-9_]{0,8}", fullmatch=True),
)
bare_words = names.map(lambda name: f"{name}_" if name in ("true", "false", "null", "not") else name)
texts = st.text(max_size=12)


# --- literals and expressions -----------------------------------------------------------------------------------------

floats = st.from_regex(r"-?[0-9]{1,20}\.[0-9]{1,20}([eE][+-]?[0-9]{1,2})?", fullmatch=True).map(FloatLit)
plain_literals: st.SearchStrategy[Literal] = st.one_of(
    texts.map(StringLit),
    st.integers(-MAX_I64 - 1, MAX_I64).map(IntLit),
    floats,
    st.booleans().map(BoolLit),
    texts.map(DateLit),
    texts.map(DateTimeLit),
    texts.map(DurationLit),
    st.just(NullLit()),
)
literals: st.SearchStrategy[Literal] = st.recursive(
    plain_literals, lambda inner: st.lists(inner, max_size=3).map(lambda items: ListLit(tuple(items))), max_leaves=4
)
variables = names.map(Variable)
accesses = st.builds(Access, names, names | st.sampled_from(["@id", "@type", "@src", "@dst"]))
simple_expressions: st.SearchStrategy[Expr] = st.one_of(
    accesses, variables, literals, bare_words.map(Ident), st.just(Now())
)


def _calls(inner: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
    nearest = st.builds(Nearest, accesses, inner)
    bm25 = st.builds(Bm25, inner, inner)
    rank = st.one_of(nearest, bm25)
    return st.one_of(
        nearest,
        bm25,
        st.builds(Search, inner, inner),
        st.builds(MatchText, inner, inner),
        st.builds(Fuzzy, inner, inner, st.none() | inner),
        st.builds(Rrf, rank, rank, st.none() | inner),
        st.builds(_aggregate, st.sampled_from(sorted(AGGREGATES)), inner, st.booleans()),
        st.just(Aggregate("count", None)),
        st.builds(Arithmetic, inner, st.sampled_from("+-*/%"), inner),
        st.builds(Negative, inner),
        st.builds(Call, st.sampled_from(sorted(FUNCTIONS.keys() - {"date", "datetime", "list"})), _some(inner, 0)),
        st.builds(Case, _some(st.builds(When, inner, inner), 1), st.none() | inner),
        st.builds(Item, inner, inner),
        _conditions(inner, inner),
        _block_calls(inner),
    )


def _block_calls(inner: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
    """Values found over the matches of a block."""
    block = st.deferred(lambda: _some(plain_clauses))
    return st.one_of(
        st.builds(BlockCall, st.sampled_from(["exists", "count"]), st.none(), block),
        st.builds(BlockCall, st.sampled_from(["sum", "min", "max", "avg"]), inner, block),
    )


def _aggregate(function: str, argument: Expr, distinct: bool) -> Aggregate:
    return Aggregate(function, argument, distinct=distinct, fraction=argument if function == "percentile" else None)


def _some(items: st.SearchStrategy[_Node], least: int = 1) -> st.SearchStrategy[tuple[_Node, ...]]:
    return st.lists(items, min_size=least, max_size=3).map(tuple)


def _conditions(first: st.SearchStrategy[Expr], inner: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
    """Conditions whose first operand comes from `first`, or that begin with `not`."""
    return st.one_of(_conditions_on(first, inner), st.builds(Not, inner))


def _conditions_on(first: st.SearchStrategy[Expr], inner: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
    """Conditions that begin with an operand from `first`."""
    return st.one_of(
        st.builds(Comparison, first, st.sampled_from(COMPARISONS), inner),
        st.builds(IsNull, first, st.booleans()),
        st.builds(_logical, st.sampled_from(["and", "or"]), st.builds(IsNull, first), inner),
    )


def _logical(operator: str, left: Expr, right: Expr) -> Expr:
    """`a and (b and c)` is one chain to the parser."""
    parts = [part for side in (left, right) for part in _chain(operator, side)]
    return Logical(operator, tuple(parts))


def _chain(operator: str, side: Expr) -> tuple[Expr, ...]:
    return side.operands if isinstance(side, Logical) and side.operator == operator else (side,)


expressions: st.SearchStrategy[Expr] = st.recursive(simple_expressions, _calls, max_leaves=5)


# --- clauses ----------------------------------------------------------------------------------------------------------


@st.composite
def bindings(draw: st.DrawFn) -> Binding:
    type_name, *others = draw(st.just(["*"]) | st.lists(type_names, min_size=1, max_size=3))
    matches = draw(st.lists(st.builds(PropertyMatch, names, expressions), max_size=3).map(tuple))
    return Binding(draw(names), type_name, matches, others=tuple(others))


# A clause that begins with a bare word or a variable could be read as the end of the clause before it.
filters = _conditions_on(accesses, expressions)


@st.composite
def traversals(draw: st.DrawFn) -> Traversal:
    has_bounds = draw(st.booleans())
    hops = st.integers(0, 5)
    edge_word, *others = draw(st.just(["*"]) | st.lists(edge_words, min_size=1, max_size=3))
    return Traversal(
        source=draw(names),
        edge_variable=draw(st.none() | names),
        edge_word=edge_word,
        undirected=draw(st.booleans()),
        min_hops=draw(hops) if has_bounds else 1,
        max_hops=draw(st.none() | hops) if has_bounds else 1,
        target=draw(names),
        has_bounds=has_bounds,
        others=tuple(others),
    )


paths = st.builds(PathMatch, names, st.booleans(), traversals(), st.none() | st.builds(Access, names, names))
plain_clauses: st.SearchStrategy[Clause] = st.one_of(bindings(), traversals(), paths, filters)
clauses: st.SearchStrategy[Clause] = st.recursive(
    st.one_of(plain_clauses, _block_calls(simple_expressions).map(lambda call: Comparison(call, "=", IntLit(1)))),
    lambda inner: st.lists(inner, min_size=1, max_size=3).flatmap(
        lambda items: st.sampled_from([Negation(tuple(items)), Optional(tuple(items))])
    ),
    max_leaves=4,
)


# --- queries ----------------------------------------------------------------------------------------------------------

_bases = st.sampled_from(DECLARED)
param_types = st.one_of(
    st.builds(PropType, _bases, is_list=st.booleans(), nullable=st.booleans()),
    st.builds(
        PropType,
        st.just(Scalar.VECTOR),
        nullable=st.booleans(),
        dimension=st.integers(1, MAX_VECTOR_DIMENSION),
    ),
)


def _ordering(expr: Expr, descending: bool | None, nulls_first: bool | None) -> Ordering:
    return Ordering(expr, None if isinstance(expr, Nearest) else descending, nulls_first=nulls_first)


_row_counts = st.none() | st.integers(0, MAX_U64) | variables
_orderings = _some(st.builds(_ordering, expressions, st.none() | st.booleans(), st.none() | st.booleans()), least=0)


def _reads(block: st.SearchStrategy[object], before: st.SearchStrategy[Read | None]) -> st.SearchStrategy[Read]:
    """Reads whose clauses come from `block` and that go on from `before`."""
    return st.builds(
        Read,
        block,
        _some(st.builds(Projection, expressions, st.none() | names) | st.builds(AllProperties, names)),
        _orderings,
        _row_counts,
        st.booleans(),
        st.none() | expressions,
        _row_counts,
        before,
    )


_first_reads = _reads(_some(clauses), st.none())
reads = st.one_of(_first_reads, _reads(_some(clauses, least=0), _first_reads))
unions = st.recursive(
    reads,
    lambda left: st.builds(Union, left, reads, st.booleans(), _orderings, _row_counts, _row_counts),
    max_leaves=3,
)
_assignments = _some(st.builds(Assignment, names, expressions))
mutations = st.builds(
    Mutation,
    _some(
        st.one_of(
            st.builds(Insert, type_names, _assignments),
            st.builds(Upsert, type_names, _assignments),
            st.builds(Update, type_names, _assignments, expressions),
            st.builds(Delete, type_names, expressions),
            st.builds(MatchInsert, _some(clauses), st.builds(Insert, type_names, _assignments)),
            st.builds(MatchInsert, _some(clauses), st.builds(Upsert, type_names, _assignments)),
            st.builds(MatchUpdate, _some(clauses), variables, _assignments),
            st.builds(MatchDelete, _some(clauses), variables),
        )
    ),
)
_annotation_texts = st.none() | texts.map(lambda text: text if text.strip() else f"{text}x")
queries = st.builds(
    Query,
    names,
    _some(st.builds(Param, names, param_types), least=0),
    st.one_of(unions, mutations),
    description=_annotation_texts,
    instruction=_annotation_texts,
)
query_files = _some(queries, least=0).map(lambda items: QueryFile(items))
