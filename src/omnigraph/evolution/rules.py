"""The rules of a type in a form in which two schemas can be compared, even if property names differ."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from omnigraph.language.schema.ast import Cardinality, CheckConstraint, RangeConstraint
from omnigraph.language.schema.catalog import EdgeType, NodeType
from omnigraph.language.schema.printer import print_cardinality, print_rule

RuleKind = Literal["unique", "index", "range", "check", "card"]


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule. Two rules are the same when their texts are equal; `columns` are sorted by name."""

    kind: RuleKind
    text: str
    columns: tuple[str, ...]
    rule: RangeConstraint | CheckConstraint | Cardinality | None = None


def rules_of(entity: NodeType | EdgeType, names: Mapping[str, str] | None = None) -> dict[str, Rule]:
    """The rules of a type by text. `names`: the names of its properties in the schema to compare with."""
    renamed = names or {}
    found = [*_column_rules(entity, renamed), *_value_rules((*entity.ranges, *entity.checks), renamed)]
    if isinstance(entity, EdgeType) and entity.cardinality != Cardinality():
        found.append(Rule("card", print_cardinality(entity.cardinality), ("src",), entity.cardinality))
    return {rule.text: rule for rule in found}


def _column_rules(entity: NodeType | EdgeType, names: Mapping[str, str]) -> Iterator[Rule]:
    key = set(entity.key or ())
    kinds: tuple[tuple[RuleKind, tuple[tuple[str, ...], ...]], ...] = (
        ("unique", entity.uniques),
        # A key implies an index.
        ("index", tuple(columns for columns in entity.indexes if set(columns) != key)),
    )
    for kind, sets in kinds:
        for columns in sets:
            listed = tuple(sorted(names.get(column, column) for column in columns))
            yield Rule(kind, f"@{kind}({', '.join(listed)})", listed)


def _value_rules(rules: Iterable[RangeConstraint | CheckConstraint], names: Mapping[str, str]) -> Iterator[Rule]:
    for rule in rules:
        rule = replace(rule, property=names.get(rule.property, rule.property))
        yield Rule("range" if isinstance(rule, RangeConstraint) else "check", print_rule(rule), (rule.property,), rule)
