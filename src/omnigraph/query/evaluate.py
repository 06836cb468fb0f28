"""What an expression is worth for each row of bindings."""

from __future__ import annotations

import operator as python
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.language.literals import PlainValue, TypedValue
from omnigraph.language.query.ir import (
    AggregateCall,
    AllTokens,
    AnyToken,
    Bm25,
    Column,
    Compare,
    Constant,
    Expr,
    FuzzyToken,
    Member,
    Nearest,
    Now,
    Parameter,
    Predicate,
    Prefix,
    ResultColumn,
    Rrf,
    Substring,
)
from omnigraph.language.types import Scalar
from omnigraph.query.compare import as_mask, compare_columns, compare_constant
from omnigraph.query.membership import holds_item
from omnigraph.query.rows import Mask, Rows
from omnigraph.query.run import Run
from omnigraph.query.search.scores import scores
from omnigraph.query.search.text import matches_text
from omnigraph.values.build import repeated
from omnigraph.values.columns import whole
from omnigraph.values.compare import EXCHANGED, Nothing, coerce


def evaluate(expr: Expr, rows: Rows, run: Run) -> pa.Array:
    """One value for each row, in the Arrow type of the expression."""
    match expr:
        case Column():
            return whole(rows.column(expr.variable, expr.property))
        case ResultColumn():
            return whole(rows.columns[expr.name])
        case TypedValue() | Parameter() | Now():
            return repeated(run.value(expr), expr.type, rows.count)
        case Nearest() | Bm25() | Rrf():
            return scores(expr, rows, run)
        case AggregateCall():
            raise AssertionError("aggregates are computed by Aggregate")
        case _:
            return pa.array(holds(expr, rows, run))


def satisfying(predicates: tuple[Predicate, ...], rows: Rows, run: Run) -> Rows:
    """The rows that satisfy all predicates; each is asked only about the rows that the ones before left."""
    for predicate in predicates:
        mask = holds(predicate, rows, run)
        if not mask.all():
            rows = rows.filter(mask)
    return rows


def holds(predicate: Predicate, rows: Rows, run: Run) -> Mask:
    """For each row whether it satisfies the predicate; null satisfies nothing."""
    match predicate:
        case TypedValue():
            return np.full(rows.count, predicate.value is True)
        case Compare():
            return _compare(predicate, rows, run)
        case Member():
            return _member(predicate, rows, run)
        case Substring():
            return _substring(predicate, rows, run)
        case Prefix():
            return _prefix(predicate, rows, run)
        case AnyToken() | AllTokens() | FuzzyToken():
            return matches_text(predicate, rows, run)


def is_constant(expr: Expr) -> bool:
    """Whether an expression is the same for every row."""
    return isinstance(expr, TypedValue | Parameter | Now)


def constant(expr: Expr) -> Constant:
    """An expression that is known to be constant."""
    assert isinstance(expr, TypedValue | Parameter | Now)
    return expr


def plain(value: PlainValue) -> str | int | float | bool | None:
    """A value that is known to be no list."""
    assert not isinstance(value, tuple)
    return value


_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "=": python.eq,
    "!=": python.ne,
    "<": python.lt,
    "<=": python.le,
    ">": python.gt,
    ">=": python.ge,
}

# --- comparisons ------------------------------------------------------------------------------------------------------


def _compare(compare: Compare, rows: Rows, run: Run) -> Mask:
    left, operator, right = compare.left, compare.operator, compare.right
    if is_constant(left) and is_constant(right):
        return np.full(rows.count, _compare_constants(run, constant(left), operator, constant(right)))
    if is_constant(left):
        left, operator, right = right, EXCHANGED[operator], left
    if left.type.is_vector:
        # Only a pattern compares vectors, and only for equality.
        return _equal_vectors(evaluate(left, rows, run), run.value(constant(right)))
    orders_truth = left.type.scalar is Scalar.BOOL and operator not in ("=", "!=")
    if is_constant(right) and not orders_truth:
        coerced = coerce(left.type, operator, plain(run.value(constant(right))))
        return compare_constant(evaluate(left, rows, run), coerced)
    return compare_columns(evaluate(left, rows, run), operator, evaluate(right, rows, run), left.type, right.type)


def _equal_vectors(column: pa.FixedSizeListArray, wanted: PlainValue) -> Mask:
    mask = np.zeros(len(column), np.bool_)
    if isinstance(wanted, tuple):
        given = column.is_valid()
        vectors = column.filter(given).flatten().to_numpy(zero_copy_only=False).reshape(-1, len(wanted))
        mask[as_mask(given)] = (vectors == np.array(wanted, np.float32)).all(axis=1)
    return mask


def _compare_constants(run: Run, left: Constant, operator: str, right: Constant) -> bool:
    values: list[Any] = [run.value(left), run.value(right)]
    if None in values:
        return False
    one, other = values
    return bool(_OPERATORS[operator](one, other))


# --- lists ------------------------------------------------------------------------------------------------------------


def _member(member: Member, rows: Rows, run: Run) -> Mask:
    items, item = member.items, member.item
    if is_constant(items):
        listed = run.value(constant(items))
        if listed is None:
            return np.zeros(rows.count, np.bool_)
        assert isinstance(listed, tuple)
        return _is_one_of(item, listed, rows, run)
    column = evaluate(items, rows, run)
    if is_constant(item):
        coerced = coerce(items.type.element(), "=", plain(run.value(constant(item))))
        if isinstance(coerced, Nothing):
            return np.zeros(rows.count, np.bool_)
        return holds_item(column, lambda values, _: compare_constant(values, coerced))
    wanted = evaluate(item, rows, run)
    element = items.type.element()
    return holds_item(
        column, lambda values, owners: compare_columns(values, "=", wanted.take(owners), element, item.type)
    )


def _is_one_of(item: Expr, listed: tuple[PlainValue, ...], rows: Rows, run: Run) -> Mask:
    mask = np.zeros(rows.count, np.bool_)
    if is_constant(item):
        mask[:] = run.value(constant(item)) in listed
        return mask
    column = evaluate(item, rows, run)
    for value in listed:
        mask |= compare_constant(column, coerce(item.type, "=", plain(value)))
    return mask


# --- text -------------------------------------------------------------------------------------------------------------


def _substring(substring: Substring, rows: Rows, run: Run) -> Mask:
    if is_constant(substring.part) and not is_constant(substring.text):
        part = run.value(constant(substring.part))
        if part is None:
            return np.zeros(rows.count, np.bool_)
        return as_mask(pc.match_substring(evaluate(substring.text, rows, run), part))
    text, part, known = _texts(substring.text, substring.part, rows, run)
    return np.asarray(np.strings.find(text, part) >= 0) & known


def _prefix(prefix: Prefix, rows: Rows, run: Run) -> Mask:
    if is_constant(prefix.prefix) and not is_constant(prefix.text):
        start = run.value(constant(prefix.prefix))
        if start is None:
            return np.zeros(rows.count, np.bool_)
        return as_mask(pc.starts_with(evaluate(prefix.text, rows, run), start))
    text, start, known = _texts(prefix.text, prefix.prefix, rows, run)
    return np.asarray(np.strings.startswith(text, start)) & known


def _texts(left: Expr, right: Expr, rows: Rows, run: Run) -> tuple[Any, Any, Mask]:
    """Two columns of text as numpy has them, and where both are known."""
    columns = [evaluate(left, rows, run), evaluate(right, rows, run)]
    known = as_mask(pc.and_(pc.is_valid(columns[0]), pc.is_valid(columns[1])))
    texts = [np.array(pc.fill_null(column, "").to_pylist(), np.dtypes.StringDType()) for column in columns]
    return texts[0], texts[1], known
