"""Rules about single rows: required properties, elements, enums, ranges, patterns, finite vectors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import ValidationError
from omnigraph.language.schema.ast import CheckConstraint, RangeConstraint
from omnigraph.language.schema.catalog import EdgeType, NodeType, Property
from omnigraph.language.schema.patterns import UnsupportedPattern, compile_check
from omnigraph.values.compare import coerce, matches


@dataclass(frozen=True, slots=True)
class Violation:
    """One broken rule. `row`: the position in the checked batch; None for rules about many rows."""

    kind: str
    type_key: str
    message: str
    property: str | None = None
    row: int | None = None
    entity_id: str | None = None

    def to_error(self) -> ValidationError:
        """The error that a single write raises for it."""
        return ValidationError(
            self.message, kind=self.kind, type_key=self.type_key, property=self.property, entity_id=self.entity_id
        )


Entity = NodeType | EdgeType


def check_rows(entity: Entity, table: pa.Table) -> Iterator[Violation]:
    """All violations of row rules in a table of this type, in the order of rules, then rows."""
    for declared in entity.properties.values():
        yield from _property(entity, declared, table)
    for bounds in entity.ranges:
        yield from _range(entity, bounds, table)
    for pattern in entity.checks:
        yield from _check(entity, pattern, table)


def _property(entity: Entity, declared: Property, table: pa.Table) -> Iterator[Violation]:
    column = table[declared.name]
    if not declared.type.nullable and column.null_count:
        message = f"property '{declared.name}' of {entity.name} is required and has null or invalid values"
        yield from _at(entity, table, pc.is_null(column), "required", declared.name, message)
    if declared.type.is_list:
        message = f"{entity.name}.{declared.name} ({declared.type}): null is not accepted as an element"
        yield from _at(entity, table, _holding(column, pc.is_null), "element", declared.name, message)
    if declared.type.enum is not None:
        allowed = pc.is_in(column, value_set=pa.array(declared.type.enum, pa.string()))
        wrong = pc.and_not(pc.is_valid(column), allowed)
        for row in _rows(wrong):
            value = column[row].as_py()
            listed = ", ".join(declared.type.enum)
            message = f"invalid enum value '{value}' for {entity.name}.{declared.name}; allowed are {listed}"
            yield _violation(entity, table, row, "enum", declared.name, message)
    if declared.type.is_vector:
        message = f"vector '{declared.name}' of {entity.name} has an element that is not a finite number"
        yield from _at(entity, table, _holding(column, _not_finite), "vector", declared.name, message)


def _holding(lists: pa.ChunkedArray, wrong: Callable[[pa.ChunkedArray], pa.ChunkedArray]) -> pa.ChunkedArray:
    """Which lists contain a wrong element, by `wrong`."""
    found = wrong(pc.list_flatten(lists)).to_numpy(zero_copy_only=False)
    mask = np.zeros(len(lists), np.bool_)
    if found.any():
        # Not `list_parent_indices`, which counts elements hidden below null lists that `list_flatten` leaves out.
        lengths = pc.fill_null(pc.list_value_length(lists), 0).to_numpy()
        mask[np.repeat(np.arange(len(lists)), lengths)[found]] = True
    return pa.chunked_array([pa.array(mask)])


def _not_finite(elements: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.invert(pc.fill_null(pc.is_finite(elements), False))


def _range(entity: Entity, rule: RangeConstraint, table: pa.Table) -> Iterator[Violation]:
    column = table[rule.property]
    if pa.types.is_floating(column.type):
        message = f"@range violation on {entity.name}.{rule.property}: NaN lies in no range"
        yield from _at(entity, table, pc.is_nan(column), "range", rule.property, message)
    kind = entity.properties[rule.property].type
    for bound, operator in ((rule.low, "<"), (rule.high, ">")):
        if bound is None:
            continue
        for row in _rows(matches(column, coerce(kind, operator, bound))):
            value, low, high = column[row].as_py(), _shown(rule.low), _shown(rule.high)
            message = f"@range violation on {entity.name}.{rule.property}: {value} is not in {low}..{high}"
            yield _violation(entity, table, row, "range", rule.property, message)


def _shown(bound: int | float | None) -> str:
    return "" if bound is None else str(bound)


def _check(entity: Entity, rule: CheckConstraint, table: pa.Table) -> Iterator[Violation]:
    column = table[rule.property]
    try:
        matches_pattern = compile_check(rule.pattern)
    except UnsupportedPattern as reason:
        # Schemas accepted before patterns had to be RE2 can be read, but their patterns can not be evaluated.
        raise ValidationError(
            f"@check on {entity.name}.{rule.property} can not be evaluated: {reason}; "
            f"apply a schema whose pattern says it in another way than {rule.pattern!r}",
            kind="check",
            type_key=entity.type_key,
            property=rule.property,
        ) from None
    # Each distinct text is matched once.
    encoded = pc.dictionary_encode(column).combine_chunks()
    misses = [not matches_pattern(value) for value in encoded.dictionary.cast(pa.binary()).to_pylist()]
    wrong = pc.take(pa.array(misses, pa.bool_()), encoded.indices)
    for row in _rows(pa.chunked_array([wrong])):
        value = column[row].as_py()
        message = f"@check violation on {entity.name}.{rule.property}: {value!r} does not match {rule.pattern!r}"
        yield _violation(entity, table, row, "check", rule.property, message)


def _rows(mask: pa.ChunkedArray) -> list[int]:
    found: list[int] = pc.indices_nonzero(pc.fill_null(mask, False)).to_pylist()
    return found


def _at(
    entity: Entity, table: pa.Table, mask: pa.ChunkedArray, kind: str, name: str, message: str
) -> Iterator[Violation]:
    for row in _rows(mask):
        yield _violation(entity, table, row, kind, name, message)


def _violation(entity: Entity, table: pa.Table, row: int, kind: str, name: str, message: str) -> Violation:
    entity_id = table["id"][row].as_py() if "id" in table.column_names else None
    return Violation(kind, entity.type_key, message, property=name, row=row, entity_id=entity_id)
