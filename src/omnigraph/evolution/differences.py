"""The differences between the schemas of two states, as steps from one to the other. Pure: no rows are read.

Types and properties are matched by number. If two branches added the same thing separately, it has two numbers: a merge has
recorded that they are the same, or else equal names are matched.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TypeVar

from omnigraph.changes.filter import Filter
from omnigraph.evolution.compare import compare
from omnigraph.evolution.look import Counts
from omnigraph.evolution.steps import RenameType, Step, UnsupportedChange
from omnigraph.language.schema.catalog import EdgeType, NodeType, Property
from omnigraph.language.schema.ir import SchemaIR
from omnigraph.language.schema.sameness import sameness

_Numbered = TypeVar("_Numbered", NodeType, EdgeType, Property)
_Entity = TypeVar("_Entity", NodeType, EdgeType)


def schema_differences(before: SchemaIR, after: SchemaIR, wanted: Filter) -> tuple[Step, ...]:
    """The steps from one schema to the other, for the types in the filter."""
    if before is after:
        return ()
    steps = compare(before, _aligned(before, after), Counts({}, takes_back=True), "soft")
    return tuple(step for step in steps if _is_wanted(step, wanted))


def _aligned(before: SchemaIR, after: SchemaIR) -> SchemaIR:
    """The later schema, renumbered with the numbers of the earlier one."""
    same = sameness([before, after])

    def entities(old: Mapping[str, _Entity], new: Mapping[str, _Entity]) -> dict[str, _Entity]:
        found = _numbered(old, new, lambda entity: same.type(entity.id))
        origins = {entity.id: entity for entity in old.values()}
        return {name: properties(origins.get(entity.id), new[name].id, entity) for name, entity in found.items()}

    def properties(was: _Entity | None, number: int, entity: _Entity) -> _Entity:
        if was is None:
            return entity
        if same.type(number) != was.id:
            # Added separately under one name, so their property numbers do not correspond; match by name.
            return replace(entity, properties=_named(was.properties, entity.properties))
        found = _numbered(was.properties, entity.properties, lambda declared: same.property(number, declared.id))
        return replace(entity, properties=found)

    nodes = entities(before.catalog.nodes, after.catalog.nodes)
    edges = entities(before.catalog.edges, after.catalog.edges)
    return replace(after, catalog=replace(after.catalog, nodes=nodes, edges=edges))


def _numbered(
    old: Mapping[str, _Numbered], new: Mapping[str, _Numbered], number_of: Callable[[_Numbered], int]
) -> dict[str, _Numbered]:
    """The later items with the numbers of the earlier ones: matched by known number, else by name."""
    numbers = {name: number_of(each) for name, each in new.items()}
    left = {each.id for each in old.values()} - set(numbers.values())
    for name, each in old.items():
        if name in numbers and each.id in left and numbers[name] not in {one.id for one in old.values()}:
            numbers[name] = each.id
    return {name: replace(each, id=numbers[name]) for name, each in new.items()}


def _named(old: Mapping[str, Property], new: Mapping[str, Property]) -> dict[str, Property]:
    """The later properties with the numbers of earlier ones of the same name; the others get new numbers."""
    beyond = max((declared.id for declared in old.values()), default=0) + 1
    return {
        name: replace(declared, id=old[name].id if name in old else beyond + place)
        for place, (name, declared) in enumerate(new.items())
    }


def _is_wanted(step: Step, wanted: Filter) -> bool:
    if isinstance(step, UnsupportedChange):
        kind, _, name = step.entity.partition(":")
        return wanted.wants_type(kind, [name.partition(".")[0]])
    kind = str(getattr(step, "type_kind"))  # noqa: B009 - every other step has one
    names = (step.old, step.new) if isinstance(step, RenameType) else (_type_name(step),)
    return wanted.wants_type(kind, names)


def _type_name(step: Step) -> str:
    """The name of the type that a step is about; steps about a whole type call it `name`."""
    return str(getattr(step, "type_name", None) or getattr(step, "name", ""))
