"""The value of an expression for each row of bindings."""

from __future__ import annotations

import operator as python
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.language.literals import PlainValue, TypedValue
from omnigraph.language.query import ir
from omnigraph.language.source import evaluation_error
from omnigraph.language.types import PropType, Scalar
from omnigraph.query.rows import Mask, Rows, Values
from omnigraph.query.run import Run
from omnigraph.query.search.scores import scores
from omnigraph.query.search.text import matches_text
from omnigraph.query.shape.compare import as_mask, compare_columns, compare_constant, holds_item
from omnigraph.query.shape.functions import KERNELS, Arguments, as_type, made_bytes
from omnigraph.values.columns import repeated, whole
from omnigraph.values.compare import EXCHANGED, Nothing, coerce, coerce_items

#: Computing a value for a row, such as a text in lower case, takes about as long as so many steps of a loop.
_STEPS_PER_ROW = 200
#: Characters, or items, of a constant from which its repetitions are counted.
_LONG_CONSTANT = 256

Computed = TypeVar("Computed")


def evaluate(expr: ir.Expr, rows: Rows, run: Run) -> pa.Array:
    """One value for each row, in the Arrow type of the expression."""
    match expr:
        case ir.Column():
            return whole(rows.column(expr.variable, expr.property))
        case ir.ResultColumn():
            return whole(rows.columns[expr.name])
        case TypedValue() | ir.Parameter() | ir.Now():
            return _repeated(run.value(expr), expr.type, rows.count, run)
        case ir.Nearest() | ir.Bm25() | ir.Rrf():
            return scores(expr, rows, run)
        case ir.Call(function="object"):
            return _object(expr, rows, run)
        case ir.Call():
            return _call(expr, rows, run)
        case ir.Conditional():
            return _conditional(expr, rows, run)
        case ir.AggregateCall():
            raise AssertionError("aggregates are computed by Aggregate")
        case ir.AnyToken() | ir.AllTokens() | ir.FuzzyToken():
            return pa.array(matches_text(expr, rows, run))
        case _:
            truth = truth_of(expr, rows, run)
            known = truth.true | truth.false
            return pa.array(truth.true, mask=None if known.all() else ~known)


def evaluated(expr: ir.Expr, rows: Rows, run: Run) -> pa.Array:
    """`evaluate`, in a thread that a stopped run abandons when there is much to compute."""
    return _patiently(expr, rows, run, evaluate)


def satisfying(predicates: tuple[ir.Predicate, ...], rows: Rows, run: Run) -> Rows:
    """The rows that satisfy all predicates; each predicate is evaluated only on the rows that the earlier ones left."""
    for predicate in predicates:
        mask = satisfied(predicate, rows, run)
        if not mask.all():
            rows = rows.filter(mask)
    return rows


def satisfied(predicate: ir.Predicate, rows: Rows, run: Run) -> Mask:
    """`holds`, in a thread that a stopped run abandons when there is much to compute."""
    return _patiently(predicate, rows, run, holds)


def _patiently(expr: ir.Expr, rows: Rows, run: Run, compute: Callable[[ir.Expr, Rows, Run], Computed]) -> Computed:
    steps = _STEPS_PER_ROW * rows.count
    if steps < run.budget.limits.long_work or is_cheap(expr):
        return compute(expr, rows, run)
    return run.budget.patiently(lambda: compute(expr, rows, run), steps)


def is_cheap(expr: ir.Expr) -> bool:
    """Whether an expression only reads and compares columns, which takes milliseconds for millions of rows and never fails."""
    if isinstance(expr, ir.Column | ir.ResultColumn | TypedValue | ir.Parameter | ir.Now):
        return True
    return isinstance(expr, ir.Compare | ir.IsNull | ir.And | ir.Or | ir.Not) and all(map(is_cheap, ir.operands(expr)))


def holds(predicate: ir.Predicate, rows: Rows, run: Run) -> Mask:
    """For each row whether it satisfies the predicate; null satisfies nothing."""
    if not rows.count:
        # Nothing is computed for no rows, constants neither: `$n = 0 or 10 / $n > 2`.
        return np.zeros(0, np.bool_)
    match predicate:
        case TypedValue():
            return np.full(rows.count, predicate.value is True)
        case ir.Compare():
            return _compare(predicate, rows, run)
        case ir.Member():
            return _member(predicate, rows, run)
        case ir.Substring():
            return _substring(predicate, rows, run)
        case ir.Prefix():
            return _prefix(predicate, rows, run)
        case ir.Suffix():
            return _suffix(predicate, rows, run)
        case ir.AnyToken() | ir.AllTokens() | ir.FuzzyToken():
            return matches_text(predicate, rows, run)
        case ir.And() | ir.Or() | ir.Not() | ir.IsNull():
            return truth_of(predicate, rows, run).true
        case _:
            return as_mask(evaluate(predicate, rows, run))


# --- three-valued logic -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Truth:
    """Masks of the rows where a condition is true and where it is false; where neither is set, it is null."""

    true: Mask
    false: Mask


def truth_of(condition: ir.Expr, rows: Rows, run: Run) -> Truth:
    """What a condition is for each row."""
    if not rows.count:
        return Truth(np.zeros(0, np.bool_), np.zeros(0, np.bool_))
    match condition:
        case TypedValue():
            return Truth(np.full(rows.count, condition.value is True), np.full(rows.count, condition.value is False))
        case ir.Not():
            opposite = truth_of(condition.operand, rows, run)
            return Truth(opposite.false, opposite.true)
        case ir.And():
            return _joined(condition.operands, rows, run, decided_by=False)
        case ir.Or():
            return _joined(condition.operands, rows, run, decided_by=True)
        case ir.IsNull():
            known = _known(condition.operand, rows, run)
            return Truth(~known, known)
        case ir.AnyToken() | ir.AllTokens() | ir.FuzzyToken():
            found = matches_text(condition, rows, run)
            return Truth(found, ~found)
        case ir.Compare() | ir.Substring() | ir.Prefix() | ir.Suffix():
            condition, rows = _with_values(condition, rows, run)
            true = holds(condition, rows, run)
            known = np.ones(rows.count, np.bool_)
            for operand in ir.operands(condition):
                known &= _known(operand, rows, run)
            return Truth(true, known & ~true)
        case ir.Member():
            condition, rows = _with_values(condition, rows, run)
            assert isinstance(condition, ir.Member)
            true = holds(condition, rows, run)
            known = _known(condition.item, rows, run) & _known(condition.items, rows, run)
            return Truth(true, known & ~true & ~_holds_null(condition.items, rows, run))
        case _:
            values = evaluate(condition, rows, run)
            return Truth(as_mask(values), as_mask(pc.invert(values)))


def _with_values(condition: ir.Expr, rows: Rows, run: Run) -> tuple[ir.Predicate, Rows]:
    """A condition over columns in the place of what it compares, so that each is computed once, however deep it is."""
    computed: dict[str, Values] = {}
    read: list[ir.Expr] = []
    for operand in ir.operands(condition):
        if not ir.operands(operand) or is_constant(operand):
            read.append(operand)
            continue
        name = f"#operand {len(read)}"
        computed[name] = evaluate(operand, rows, run)
        read.append(ir.ResultColumn(name, operand.type))
    if not computed:
        return condition, rows
    return ir.with_operands(condition, tuple(read)), replace(rows, columns={**rows.columns, **computed})


def _joined(parts: tuple[ir.Expr, ...], rows: Rows, run: Run, *, decided_by: bool) -> Truth:
    """`and` is decided by a false operand, `or` by a true one; computed operands are evaluated for undecided rows only."""
    decided = np.zeros(rows.count, np.bool_)
    otherwise = np.ones(rows.count, np.bool_)
    for part in parts:
        if _computes(part) and decided.any():
            # A computation may fail for decided rows: `$x.n = 0 or 10 / $x.n > 2`.
            open_ = np.flatnonzero(~decided)
            some = truth_of(part, rows.take(open_), run)
            truth = Truth(np.zeros(rows.count, np.bool_), np.zeros(rows.count, np.bool_))
            truth.true[open_], truth.false[open_] = some.true, some.false
        else:
            truth = truth_of(part, rows, run)
        deciding, other = (truth.true, truth.false) if decided_by else (truth.false, truth.true)
        decided = decided | deciding
        otherwise = otherwise & other
    return Truth(decided, otherwise) if decided_by else Truth(otherwise, decided)


def _computes(expr: ir.Expr) -> bool:
    """Whether an expression contains a function, an operator or an `if`, which may fail for some rows."""
    return isinstance(expr, ir.Call | ir.Conditional) or any(map(_computes, ir.operands(expr)))


def _known(expr: ir.Expr, rows: Rows, run: Run) -> Mask:
    """A mask of the rows where a value is not null."""
    if is_constant(expr):
        return np.full(rows.count, constant_value(expr, run) is not None)
    if isinstance(expr, ir.Column) and not expr.type.nullable:
        return np.ones(rows.count, np.bool_)
    return as_mask(evaluate(expr, rows, run).is_valid())


def _holds_null(items: ir.Expr, rows: Rows, run: Run) -> Mask:
    """A mask of the rows whose list contains a null."""
    if is_constant(items):
        listed = constant_value(items, run)
        return np.full(rows.count, isinstance(listed, tuple) and None in listed)
    return holds_item(evaluate(items, rows, run), lambda values, _: ~as_mask(values.is_valid()))


# --- computed values --------------------------------------------------------------------------------------------------


def _object(call: ir.Call, rows: Rows, run: Run) -> pa.Array:
    """Nodes or edges as structs of id, type, ends and properties; null where a variable is not bound.
    The first argument is the list of property names; the last arguments are their values.
    """
    names = constant_value(call.arguments[0], run)
    assert isinstance(names, tuple)
    columns = [evaluate(part, rows, run) for part in call.arguments[1:]]
    own, values = columns[: len(columns) - len(names)], columns[len(columns) - len(names) :]
    properties = pa.array([{}] * rows.count, pa.struct([]))
    if names:
        properties = pa.StructArray.from_arrays(values, names=list(map(str, names)))
    shown = ["id", "type", "from", "to"][: len(own)]
    return pa.StructArray.from_arrays([*own, properties], names=[*shown, "properties"], mask=own[0].is_null())


def _call(call: ir.Call, rows: Rows, run: Run) -> pa.Array:
    columns = [evaluate(argument, rows, run) for argument in call.arguments]
    constants: dict[int, PlainValue] = {}
    if rows.count:
        # What no row takes can not fail: `if($n = 0, "-", to_text(10 / $n))`.
        parts = enumerate(call.arguments)
        constants = {at: plain_values(columns[at][:1], part.type)[0] for at, part in parts if is_constant(part)}
    types = [argument.type for argument in call.arguments]
    given = Arguments(columns, types, constants, call.type, rows.count, run.now)
    held = 0
    try:
        held = run.budget.charge(made_bytes(call.function, given))
        return whole(KERNELS[call.function](given))
    except (ValueError, OverflowError, pa.ArrowException) as problem:
        raise evaluation_error(f"{_reason(problem)} in `{_written(call)}`", call.place) from None
    finally:
        run.budget.release(held)


def _repeated(value: PlainValue, kind: PropType, count: int, run: Run) -> pa.Array:
    """A constant for every row; a long text or list is charged, because it is there so many times."""
    size = len(value) if isinstance(value, str | bytes | tuple) else 0
    if size < _LONG_CONSTANT:
        return repeated(value, kind, count)
    held = run.budget.charge(size * count)
    try:
        return repeated(value, kind, count)
    finally:
        run.budget.release(held)


def _reason(problem: Exception) -> str:
    """The first line of an error message of a kernel or of Arrow."""
    return str(problem).split("\n", 1)[0]


def _written(expr: ir.Call | ir.Conditional) -> str:
    """An expression as it stands in the text; one that was made up as a plan shows it."""
    return ir.render_expr(expr) if expr.place is None else expr.place.written


def _conditional(expr: ir.Conditional, rows: Rows, run: Run) -> pa.Array:
    """The value of an `if`; each branch is computed only for the rows that take it."""

    def computed(value: ir.Expr, some: Rows) -> pa.Array:
        try:
            return as_type(evaluate(value, some, run), expr.type)
        except ValueError as problem:
            raise evaluation_error(f"{problem} in `{_written(expr)}`", expr.place) from None

    open_ = np.arange(rows.count)
    places, parts = [], []
    for condition, value in zip(expr.conditions, expr.values, strict=True):
        some = rows.take(open_)
        taken = holds(condition, some, run)
        places.append(open_[taken])
        parts.append(computed(value, some.filter(taken)))
        open_ = open_[~taken]
    places.append(open_)
    parts.append(computed(expr.otherwise, rows.take(open_)))
    return pa.concat_arrays(parts).take(pa.array(np.argsort(np.concatenate(places), kind="stable")))


def constant_value(expr: ir.Expr, run: Run) -> PlainValue:
    """The plain value of an expression that is the same for every row."""
    if isinstance(expr, TypedValue | ir.Parameter | ir.Now):
        return run.value(expr)
    return plain_values(evaluate(expr, Rows(1), run), expr.type)[0]


def plain_values(column: pa.Array, kind: PropType) -> list[PlainValue]:
    """The values of a column in the form of literals: a date as days, a datetime as milliseconds since 1970."""
    if kind.scalar is Scalar.DATE:
        column = column.cast(pa.list_(pa.int32()) if kind.is_list else pa.int32())
    elif kind.scalar is Scalar.DATETIME:
        column = column.cast(pa.list_(pa.int64()) if kind.is_list else pa.int64())
    return [tuple(value) if isinstance(value, list) else value for value in column.to_pylist()]


def is_constant(expr: ir.Expr) -> bool:
    """Whether an expression is the same for every row."""
    if isinstance(expr, TypedValue | ir.Parameter | ir.Now):
        return True
    return isinstance(expr, ir.Call | ir.Conditional) and all(map(is_constant, ir.operands(expr)))


def plain(value: PlainValue) -> str | int | float | bool | None:
    """A value that is known not to be a list."""
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


def _compare(compare: ir.Compare, rows: Rows, run: Run) -> Mask:
    left, operator, right = compare.left, compare.operator, compare.right
    if is_constant(left) and is_constant(right):
        return np.full(rows.count, _compare_constants(constant_value(left, run), operator, constant_value(right, run)))
    if is_constant(left):
        left, operator, right = right, EXCHANGED[operator], left
    if left.type.is_vector:
        # Only a pattern compares vectors, and only by equality.
        return _equal_vectors(evaluate(left, rows, run), constant_value(right, run))
    orders_truth = left.type.scalar is Scalar.BOOL and operator not in ("=", "!=")
    if is_constant(right) and not orders_truth:
        coerced = coerce(left.type, operator, plain(constant_value(right, run)))
        return compare_constant(evaluate(left, rows, run), coerced)
    return compare_columns(evaluate(left, rows, run), operator, evaluate(right, rows, run), left.type, right.type)


def _equal_vectors(column: pa.FixedSizeListArray, wanted: PlainValue) -> Mask:
    mask = np.zeros(len(column), np.bool_)
    if isinstance(wanted, tuple):
        given = column.is_valid()
        vectors = column.filter(given).flatten().to_numpy(zero_copy_only=False).reshape(-1, len(wanted))
        mask[as_mask(given)] = (vectors == np.array(wanted, np.float32)).all(axis=1)
    return mask


def _compare_constants(left: Any, operator: str, right: Any) -> bool:
    return left is not None and right is not None and bool(_OPERATORS[operator](left, right))


# --- lists ------------------------------------------------------------------------------------------------------------


def _member(member: ir.Member, rows: Rows, run: Run) -> Mask:
    items, item = member.items, member.item
    if is_constant(items):
        listed = constant_value(items, run)
        if listed is None:
            return np.zeros(rows.count, np.bool_)
        assert isinstance(listed, tuple)
        return _is_one_of(item, listed, rows, run)
    column = evaluate(items, rows, run)
    if is_constant(item):
        coerced = coerce(items.type.element(), "=", plain(constant_value(item, run)))
        if isinstance(coerced, Nothing):
            return np.zeros(rows.count, np.bool_)
        return holds_item(column, lambda values, _: compare_constant(values, coerced))
    wanted = evaluate(item, rows, run)
    element = items.type.element()
    return holds_item(
        column, lambda values, owners: compare_columns(values, "=", wanted.take(owners), element, item.type)
    )


def _is_one_of(item: ir.Expr, listed: tuple[PlainValue, ...], rows: Rows, run: Run) -> Mask:
    mask = np.zeros(rows.count, np.bool_)
    if is_constant(item):
        value = constant_value(item, run)
        mask[:] = value is not None and value in listed
        return mask
    column = evaluate(item, rows, run)
    wanted = listed_values(item.type, listed)
    if pa.types.is_floating(column.type):
        # Adding 0 turns -0 into 0: they are equal by value.
        column = pc.add(column, pa.scalar(0, column.type))
    return as_mask(pc.is_in(column, value_set=wanted, skip_nulls=True))


def listed_values(kind: PropType, listed: tuple[PlainValue, ...]) -> pa.Array:
    """The items of a list that a column of this type can be equal to, as an array of the column's type."""
    return coerce_items(kind, [plain(value) for value in listed])


# --- text -------------------------------------------------------------------------------------------------------------


def _substring(substring: ir.Substring, rows: Rows, run: Run) -> Mask:
    if is_constant(substring.part) and not is_constant(substring.text):
        part = constant_value(substring.part, run)
        if part is None:
            return np.zeros(rows.count, np.bool_)
        return as_mask(pc.match_substring(evaluate(substring.text, rows, run), part))
    text, part, known = _texts(substring.text, substring.part, rows, run)
    return np.asarray(np.strings.find(text, part) >= 0) & known


def _prefix(prefix: ir.Prefix, rows: Rows, run: Run) -> Mask:
    if is_constant(prefix.prefix) and not is_constant(prefix.text):
        start = constant_value(prefix.prefix, run)
        if start is None:
            return np.zeros(rows.count, np.bool_)
        return as_mask(pc.starts_with(evaluate(prefix.text, rows, run), start))
    text, start, known = _texts(prefix.text, prefix.prefix, rows, run)
    return np.asarray(np.strings.startswith(text, start)) & known


def _suffix(suffix: ir.Suffix, rows: Rows, run: Run) -> Mask:
    if is_constant(suffix.suffix) and not is_constant(suffix.text):
        end = constant_value(suffix.suffix, run)
        if end is None:
            return np.zeros(rows.count, np.bool_)
        return as_mask(pc.ends_with(evaluate(suffix.text, rows, run), end))
    text, end, known = _texts(suffix.text, suffix.suffix, rows, run)
    return np.asarray(np.strings.endswith(text, end)) & known


def _texts(left: ir.Expr, right: ir.Expr, rows: Rows, run: Run) -> tuple[Any, Any, Mask]:
    """Two columns of text as NumPy strings, and a mask of the rows where both are not null."""
    columns = [evaluate(left, rows, run), evaluate(right, rows, run)]
    known = as_mask(pc.and_(pc.is_valid(columns[0]), pc.is_valid(columns[1])))
    texts = [np.array(pc.fill_null(column, "").to_pylist(), np.dtypes.StringDType()) for column in columns]
    return texts[0], texts[1], known
