"""Hypothesis strategies for query trees: every tree the parser can produce, and no other."""

from __future__ import annotations

from hypothesis import strategies as st

from omnigraph.language.query.ast import (
    Access,
    Aggregate,
    Assignment,
    Binding,
    Bm25,
    BoolLit,
    Clause,
    Comparison,
    DateLit,
    DateTimeLit,
    Delete,
    Expr,
    FloatLit,
    Fuzzy,
    Ident,
    Insert,
    IntLit,
    ListLit,
    Literal,
    MatchText,
    Mutation,
    Nearest,
    Negation,
    Now,
    Ordering,
    Param,
    Predicate,
    Projection,
    PropertyMatch,
    Query,
    QueryFile,
    Read,
    Rrf,
    Search,
    StringLit,
    Traversal,
    Update,
    Value,
    Variable,
)
from omnigraph.language.query.expressions import MAX_I64
from omnigraph.language.query.reads import FILTER_OPERATORS, MAX_U64
from omnigraph.language.query.statements import COMPARISONS
from omnigraph.language.types import MAX_VECTOR_DIMENSION, PropType, Scalar

#: Words that mean something elsewhere in the language and are still plain names.
_TELLING_NAMES = ("as", "asc", "desc", "not", "note", "now", "null", "count", "date", "match", "return", "_", "in_x")

names = st.one_of(st.sampled_from(_TELLING_NAMES), st.from_regex(r"[a-z_][A-Za-z0-9_]{0,8}", fullmatch=True))
type_names = st.from_regex(r"[A-Z][A-Za-z0-9_]{0,8}", fullmatch=True)
edge_words = st.one_of(
    st.sampled_from(["contains", "starts_with", "note", "knows"]),
    st.from_regex(r"[a-mo-z_][A-Za-z0-9_]{0,8}", fullmatch=True),
)
bare_words = names.filter(lambda name: not name.startswith(("true", "false")))
texts = st.text(max_size=12)


# --- literals and expressions -----------------------------------------------------------------------------------------

floats = st.from_regex(r"[0-9]{1,20}\.[0-9]{1,20}", fullmatch=True).map(FloatLit)
plain_literals: st.SearchStrategy[Literal] = st.one_of(
    texts.map(StringLit),
    st.integers(0, MAX_I64).map(IntLit),
    floats,
    st.booleans().map(BoolLit),
    texts.map(DateLit),
    texts.map(DateTimeLit),
)
literals: st.SearchStrategy[Literal] = st.recursive(
    plain_literals, lambda inner: st.lists(inner, max_size=3).map(lambda items: ListLit(tuple(items))), max_leaves=4
)
variables = names.map(Variable)
accesses = st.builds(Access, names, names)
values: st.SearchStrategy[Value] = st.one_of(literals, variables, st.just(Now()))
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
        st.builds(Aggregate, st.sampled_from(["count", "sum", "avg", "min", "max"]), inner),
    )


expressions: st.SearchStrategy[Expr] = st.recursive(simple_expressions, _calls, max_leaves=4)


# --- clauses ----------------------------------------------------------------------------------------------------------


def _is_a_filter(clause: Comparison) -> bool:
    """A bare variable before `contains $…` reads as a traversal."""
    return not (
        isinstance(clause.left, Variable)
        and clause.operator in ("contains", "starts_with")
        and isinstance(clause.right, Variable | Access)
    )


bindings = st.builds(
    Binding, names, type_names, st.lists(st.builds(PropertyMatch, names, values), max_size=3).map(tuple)
)
filters = st.builds(Comparison, expressions, st.sampled_from(FILTER_OPERATORS), expressions).filter(_is_a_filter)


@st.composite
def traversals(draw: st.DrawFn) -> Traversal:
    has_bounds = draw(st.booleans())
    hops = st.integers(0, 5)
    return Traversal(
        source=draw(names),
        edge_variable=draw(st.none() | names),
        edge_word=draw(edge_words),
        undirected=draw(st.booleans()),
        min_hops=draw(hops) if has_bounds else 1,
        max_hops=draw(st.none() | hops) if has_bounds else 1,
        target=draw(names),
        has_bounds=has_bounds,
    )


clauses: st.SearchStrategy[Clause] = st.recursive(
    st.one_of(bindings, traversals(), filters),
    lambda inner: st.lists(inner, min_size=1, max_size=3).map(lambda items: Negation(tuple(items))),
    max_leaves=4,
)


# --- queries ----------------------------------------------------------------------------------------------------------

_bases = st.sampled_from([scalar for scalar in Scalar if scalar is not Scalar.VECTOR])
param_types = st.one_of(
    st.builds(PropType, _bases, is_list=st.booleans(), nullable=st.booleans()),
    st.builds(
        PropType,
        st.just(Scalar.VECTOR),
        nullable=st.booleans(),
        dimension=st.integers(1, MAX_VECTOR_DIMENSION),
    ),
)


def _ordering(expr: Expr, descending: bool | None) -> Ordering:
    return Ordering(expr, None if isinstance(expr, Nearest) else descending)


def _some(items: st.SearchStrategy[object], least: int = 1) -> st.SearchStrategy[tuple[object, ...]]:
    return st.lists(items, min_size=least, max_size=3).map(tuple)


reads = st.builds(
    Read,
    _some(clauses),
    _some(st.builds(Projection, expressions, st.none() | names)),
    _some(st.builds(_ordering, expressions, st.none() | st.booleans()), least=0),
    st.none() | st.integers(0, MAX_U64),
)
_assignments = _some(st.builds(Assignment, names, values))
_predicates = st.builds(Predicate, names, st.sampled_from(COMPARISONS), values)
mutations = st.builds(
    Mutation,
    _some(
        st.one_of(
            st.builds(Insert, type_names, _assignments),
            st.builds(Update, type_names, _assignments, _predicates),
            st.builds(Delete, type_names, _predicates),
        )
    ),
)
_annotation_texts = st.none() | texts.filter(lambda text: bool(text.strip()))
queries = st.builds(
    Query,
    names,
    _some(st.builds(Param, names, param_types), least=0),
    st.one_of(reads, mutations),
    description=_annotation_texts,
    instruction=_annotation_texts,
)
query_files = _some(queries, least=0).map(lambda items: QueryFile(items))
