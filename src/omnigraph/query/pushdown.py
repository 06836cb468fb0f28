"""Which predicates a scan can answer by itself, as expressions Lance understands and finds indexes for.

Values are bound as typed scalars of the column's own type, never written into a text.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.language.literals import TypedValue
from omnigraph.language.query.ir import Column, Compare, Predicate, Prefix, Substring, render_expr
from omnigraph.language.types import FLOATS
from omnigraph.query.entities import Entities
from omnigraph.query.evaluate import constant, is_constant, plain
from omnigraph.query.run import Run
from omnigraph.values.compare import EXCHANGED, Comparison, Nothing, coerce, condition

NEVER = pc.scalar(False)


@dataclass(frozen=True, slots=True)
class Pushed:
    """`filter` is what the scan answers, `rest` what is asked of its rows; `never`: no row can fit."""

    filter: pc.Expression | None
    rest: tuple[Predicate, ...]
    never: bool
    shown: tuple[str, ...] = ()
    columns: frozenset[str] = frozenset()


def push(predicates: tuple[Predicate, ...], entities: Entities, run: Run) -> Pushed:
    """Split predicates on one variable into those a scan of its table answers and the rest."""
    conditions: list[pc.Expression] = []
    rest: list[Predicate] = []
    shown: list[str] = []
    columns: set[str] = set()
    for predicate in predicates:
        pushed = _condition(predicate, entities, run)
        if pushed is NEVER:
            return Pushed(None, (), never=True)
        if pushed is None:
            rest.append(predicate)
            continue
        conditions.append(pushed)
        shown.append(render_expr(predicate))
        columns |= {column.property for column in _columns(predicate)}
        if _needs_another_look(predicate):
            rest.append(predicate)
    combined = reduce(lambda one, other: one & other, conditions) if conditions else None
    return Pushed(combined, tuple(rest), never=False, shown=tuple(shown), columns=frozenset(columns))


def _columns(predicate: Predicate) -> tuple[Column, ...]:
    match predicate:
        case Compare():
            sides = (predicate.left, predicate.right)
        case Prefix():
            sides = (predicate.text,)
        case Substring():
            sides = (predicate.text,)
        case _:
            return ()
    return tuple(side for side in sides if isinstance(side, Column))


def _needs_another_look(predicate: Predicate) -> bool:
    """Lance orders NaN above and -0 below all it compares with; by value NaN is not ordered and -0 is 0."""
    return any(column.type.scalar in FLOATS for column in _columns(predicate))


def _condition(predicate: Predicate, entities: Entities, run: Run) -> pc.Expression | None:
    match predicate:
        case TypedValue():
            return None if predicate.value is True else NEVER
        case Compare(left=Column() as column, right=right) if is_constant(right):
            return _comparison(column, predicate.operator, run.value(constant(right)), entities)
        case Compare(left=left, right=Column() as column) if is_constant(left):
            return _comparison(column, EXCHANGED[predicate.operator], run.value(constant(left)), entities)
        case Prefix(text=Column() as column, prefix=prefix) if is_constant(prefix):
            return _starts_with(column, run.value(constant(prefix)), entities)
        case Substring(text=Column() as column, part=part) if is_constant(part):
            return _contains(column, run.value(constant(part)), entities)
        case _:
            return None


def _comparison(column: Column, operator: str, value: object, entities: Entities) -> pc.Expression | None:
    name = entities.stored[column.property]
    coerced = coerce(column.type, operator, plain(value))  # type: ignore[arg-type]
    if name is None or isinstance(coerced, Nothing):
        return NEVER
    if isinstance(coerced, Comparison) and column.type.scalar in FLOATS:
        return _float_condition(name, coerced)
    return condition(name, coerced)


def _float_condition(name: str, coerced: Comparison) -> pc.Expression:
    """At least the rows that fit by value: an index tells 0 from -0, so both are asked for."""
    if coerced.value.as_py() != 0:
        return condition(name, coerced)
    zero, minus = (pa.scalar(number, coerced.value.type) for number in (0.0, -0.0))
    match coerced.operator:
        case "=":
            return condition(name, Comparison("=", zero)) | condition(name, Comparison("=", minus))
        case "!=":
            return pc.field(name).is_valid()
        case ">=" | "<":
            return condition(name, Comparison(coerced.operator, minus))
        case _:
            return condition(name, Comparison(coerced.operator, zero))


def _starts_with(column: Column, prefix: object, entities: Entities) -> pc.Expression:
    """A range, which a BTREE answers: from the prefix up to the next text that does not start with it."""
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


def _contains(column: Column, part: object, entities: Entities) -> pc.Expression:
    name = entities.stored[column.property]
    if name is None or part is None:
        return NEVER
    assert isinstance(part, str)
    return pc.match_substring(pc.field(name), part)
