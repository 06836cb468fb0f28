"""The predicates that a scan can answer itself, as expressions for which Lance can use indexes.
Values are bound as typed scalars of the column's own type, never written into a text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import EvaluationError
from omnigraph.language.literals import PlainValue, TypedValue
from omnigraph.language.query import ir
from omnigraph.query.run import Run
from omnigraph.query.scan.entities import Entities
from omnigraph.query.shape.evaluate import constant_value, is_constant, listed_values, plain
from omnigraph.storage.tables.table import Filter
from omnigraph.values.compare import EXCHANGED, UNSIGNED, Comparison, Nothing, coerce, condition, scan_filter

NEVER = pc.scalar(False)
#: A scan gets at most so many conditions; the others are evaluated on its rows. Lance's planning time grows with the square
#: of their number: 16 conditions are planned in 1 ms, 200 would take 100 ms.
MOST_PUSHED = 16


@dataclass(frozen=True, slots=True)
class Pushed:
    """`filter`: the condition for the scan. `rest`: the predicates to evaluate on its rows. `never`: no row can match."""

    filter: Filter | None
    rest: tuple[ir.Predicate, ...]
    never: bool = False
    shown: tuple[str, ...] = ()


def push(predicates: tuple[ir.Predicate, ...], entities: Entities, run: Run, *, texts: bool = True) -> Pushed:
    """Split predicates on one variable into a filter for the scan of its table and the remaining predicates.
    Some conditions exist only as text, which can not be combined with expressions. They are pushed only when all conditions
    are texts. `texts=False`: none are pushed, because the scan has an expression of its own.
    """
    conditions = {predicate: _condition(predicate, entities, run) for predicate in predicates}
    if any(condition is NEVER for condition in conditions.values()):
        return Pushed(None, (), never=True)
    answered = {predicate: condition for predicate, condition in conditions.items() if condition is not None}
    as_texts = [condition for condition in answered.values() if isinstance(condition, str)]
    if as_texts and (len(as_texts) < len(answered) or not texts):
        answered = {predicate: found for predicate, found in answered.items() if not isinstance(found, str)}
        as_texts = []
    if len(answered) > MOST_PUSHED:
        answered = {predicate: answered[predicate] for predicate in _most_selective(answered, entities, run)}
        as_texts = list(answered.values()) if as_texts else []
    combined = " and ".join(as_texts) if as_texts else _all(list(answered.values()))
    return Pushed(
        combined,
        tuple(predicate for predicate in predicates if predicate not in answered),
        shown=tuple(map(ir.render_expr, answered)),
    )


def _most_selective(predicates: Iterable[ir.Predicate], entities: Entities, run: Run) -> list[ir.Predicate]:
    """The MOST_PUSHED predicates that help a scan most: those on indexed properties first, then equality before ranges."""
    indexed = {column for index in run.caches.indices(entities.table) for column in index.columns}

    def rank(predicate: ir.Predicate) -> tuple[bool, bool]:
        names = {entities.stored[column.property] for column in ir.columns_of(predicate)}
        return names.isdisjoint(indexed), not (isinstance(predicate, ir.Compare) and predicate.operator == "=")

    return sorted(predicates, key=rank)[:MOST_PUSHED]


def _all(conditions: list[Filter]) -> pc.Expression | None:
    """The conjunction of conditions; None when there are none."""
    return _balanced(conditions, pc.and_kleene) if conditions else None


def _balanced(conditions: list[Filter], join: Callable[[Filter, Filter], pc.Expression]) -> pc.Expression:
    """Conditions joined as a balanced tree, since the size of Arrow's Substrait doubles with every level of nesting."""
    while len(conditions) > 1:
        pairs = zip(conditions[::2], conditions[1::2], strict=False)
        odd = conditions[-1:] if len(conditions) % 2 else []
        conditions = [*(join(left, right) for left, right in pairs), *odd]
    return conditions[0]


def _condition(predicate: ir.Predicate, entities: Entities, run: Run) -> Filter | None:
    """What a scan is asked for a predicate; None for one that it can not answer."""
    try:
        return _answered(predicate, entities, run)
    except EvaluationError:
        # A constant that can not be computed fails where a row asks for it: `$s = "" or $p.born > to_date($s)`.
        return None


def _answered(predicate: ir.Predicate, entities: Entities, run: Run) -> Filter | None:
    if entities.retyped and any(column.property in entities.retyped for column in ir.columns_of(predicate)):
        # The table holds values of another type; they are compared after they are read and converted.
        return None
    match predicate:
        case TypedValue():
            return None if predicate.value is True else NEVER
        case ir.Compare(left=ir.Column() as column) if column.type.is_vector:
            return None
        case ir.Compare(left=ir.Column() as column, right=right) if is_constant(right):
            return _comparison(column, predicate.operator, constant_value(right, run), entities)
        case ir.Compare(left=left, right=ir.Column() as column) if is_constant(left):
            return _comparison(column, EXCHANGED[predicate.operator], constant_value(left, run), entities)
        case ir.Prefix(text=ir.Column() as column, prefix=prefix) if is_constant(prefix):
            return _starts_with(column, constant_value(prefix, run), entities)
        case ir.Substring(text=ir.Column() as column, part=part) if is_constant(part):
            return _contains(column, constant_value(part, run), entities)
        case ir.Member(items=items, item=ir.Column() as column) if is_constant(items) and column.type.is_plain_scalar:
            return _one_of(column, constant_value(items, run), entities)
        case ir.IsNull(operand=ir.Column() as column) | ir.Not(operand=ir.IsNull(operand=ir.Column() as column)) if (
            column.type.is_vector
        ):
            # Lance leaves vectors out of the columns that a condition may name.
            return None
        case ir.IsNull(operand=ir.Column() as column):
            return _is_null(column, entities)
        case ir.Not(operand=ir.IsNull(operand=ir.Column() as column)):
            return _is_valid(column, entities)
        case ir.Or():
            return _any(predicate, entities, run)
        case ir.And():
            return _every(predicate, entities, run)
        case _:
            return None


def _any(predicate: ir.Or, entities: Entities, run: Run) -> Filter | None:
    """The filter of an `or`; None unless the scan can answer every alternative."""
    parts = [_condition(part, entities, run) for part in predicate.operands]
    conditions = [part for part in parts if part is not NEVER]
    if not conditions:
        return NEVER
    if len(conditions) > MOST_PUSHED or any(part is None or isinstance(part, str) for part in conditions):
        return None
    return _balanced(conditions, pc.or_kleene)


def _every(predicate: ir.And, entities: Entities, run: Run) -> Filter | None:
    parts = [_condition(part, entities, run) for part in predicate.operands]
    if any(part is NEVER for part in parts):
        return NEVER
    if len(parts) > MOST_PUSHED or any(part is None or isinstance(part, str) for part in parts):
        return None
    return _balanced(parts, pc.and_kleene)


def _one_of(column: ir.Column, listed: PlainValue, entities: Entities) -> Filter | None:
    """The filter of `column in list`, which an index can answer; None for unsigned columns."""
    name = entities.stored[column.property]
    values = None if not isinstance(listed, tuple) else listed_values(column.type, listed)
    if name is None or not values:
        return NEVER
    if pa.types.is_unsigned_integer(values.type):
        return None
    if pa.types.is_floating(values.type) and pc.any(pc.equal(values, 0)).as_py():
        # An index distinguishes -0 from 0, so both are asked for.
        values = pa.concat_arrays([values, pa.array([-0.0], values.type)])
    return pc.field(name).isin(values)


def _is_null(column: ir.Column, entities: Entities) -> Filter | None:
    name = entities.stored[column.property]
    if name is None:
        return None
    # Lance reads expressions as Substrait, which has no unsigned integers.
    return f"`{name}` is null" if column.type.scalar in UNSIGNED else pc.field(name).is_null()


def _is_valid(column: ir.Column, entities: Entities) -> Filter | None:
    name = entities.stored[column.property]
    if name is None:
        return NEVER
    return f"`{name}` is not null" if column.type.scalar in UNSIGNED else pc.field(name).is_valid()


def _comparison(column: ir.Column, operator: str, value: PlainValue, entities: Entities) -> Filter | None:
    name = entities.stored[column.property]
    coerced = coerce(column.type, operator, plain(value))
    if name is None or isinstance(coerced, Nothing):
        return NEVER
    return scan_filter(name, column.type, coerced)


def _starts_with(column: ir.Column, prefix: PlainValue, entities: Entities) -> pc.Expression:
    """`starts_with` as a range, which a BTREE answers: from the prefix up to the next text without this prefix."""
    name = entities.stored[column.property]
    if name is None or prefix is None:
        return NEVER
    assert isinstance(prefix, str)
    if not prefix:
        return pc.field(name).is_valid()
    at_least = condition(name, Comparison(">=", pa.scalar(prefix)))
    end = after_prefix(prefix)
    return at_least if end is None else at_least & condition(name, Comparison("<", pa.scalar(end)))


_LAST = 0x10FFFF
_SURROGATES = range(0xD800, 0xE000)


def after_prefix(prefix: str) -> str | None:
    """The least text, by code point, above every text with this prefix; None when there is none."""
    for end in range(len(prefix), 0, -1):
        point = ord(prefix[end - 1]) + 1
        if point <= _LAST:
            return prefix[: end - 1] + chr(_SURROGATES.stop if point in _SURROGATES else point)
    return None


def _contains(column: ir.Column, part: PlainValue, entities: Entities) -> pc.Expression:
    name = entities.stored[column.property]
    if name is None or part is None:
        return NEVER
    assert isinstance(part, str)
    return pc.match_substring(pc.field(name), part)
