"""Deciding which types and properties of several schemas are the same, although they may have different numbers.
A number never means two different things, since branches give out different numbers. Two numbers can mean the same type or
property when two branches added it alike: the merge that unified them recorded it in `SchemaIR.aliases`, where later merges
read it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from omnigraph.language.schema.catalog import EdgeType, NodeType
from omnigraph.language.schema.ir import SchemaIR

Entity = NodeType | EdgeType
#: A type as (its number), or a property as (the number of its type, its own number).
Thing = tuple[int, ...]


def types_of(ir: SchemaIR) -> list[Entity]:
    """The types of a schema, nodes first."""
    return [*ir.catalog.nodes.values(), *ir.catalog.edges.values()]


def type_text(entity: Entity) -> str:
    """The text of a type in `SchemaIR.aliases`."""
    return f"{entity.id:016x}-{entity.incarnation:016x}"


def _thing(text: str) -> Thing:
    owner, _, number = text.partition("/")
    type_number = int(owner.partition("-")[0], 16)
    return (type_number, int(number, 16)) if number else (type_number,)


@dataclass
class Sameness:
    """Sets of numbers with the same meaning; one member represents each set."""

    _chosen: dict[Thing, Thing] = field(default_factory=dict)

    def type(self, number: int) -> int:
        """The representative number of a type."""
        return self._find((number,))[0]

    def property(self, type_number: int, number: int) -> int:
        """The representative number of a property; `type_number` is the number of its type in the property's own schema."""
        return self._find((type_number, number))[1]

    def join(self, stays: Thing, other: Thing) -> None:
        """Record that two things are the same; the representative of `stays` is kept."""
        kept, gone = self._find(stays), self._find(other)
        if kept != gone:
            self._chosen[gone] = kept

    def _find(self, thing: Thing) -> Thing:
        while thing in self._chosen:
            thing = self._chosen[thing]
        return thing


def sameness(schemas: Iterable[SchemaIR]) -> Sameness:
    """The sameness recorded in the aliases of some schemas; the number that the earliest schema uses represents a set."""
    found, listed = Sameness(), list(schemas)
    used = {thing: place for place, ir in reversed(list(enumerate(listed))) for thing in _used(ir)}
    for group in _groups(listed):
        first, *others = sorted(group, key=lambda thing: (used.get(thing, len(listed)), thing))
        for other in others:
            found.join(first, other)
    return found


def _groups(schemas: list[SchemaIR]) -> list[set[Thing]]:
    groups: list[set[Thing]] = []
    for ir in schemas:
        for pair in ir.aliases.items():
            joined = {_thing(text) for text in pair}
            for group in [group for group in groups if group & joined]:
                groups.remove(group)
                joined |= group
            groups.append(joined)
    return groups


def _used(ir: SchemaIR) -> Iterator[Thing]:
    for entity in types_of(ir):
        yield (entity.id,)
        yield from ((entity.id, declared.id) for declared in entity.properties.values())


def aliases_of(schemas: Iterable[SchemaIR], merged: Iterable[Entity], same: Sameness) -> Mapping[str, str]:
    """The aliases of a merged schema: each other number of its types and properties → the number that it uses."""
    known = {entity.id: entity for entity in merged}
    found: dict[str, str] = {}

    def note(text: str) -> None:
        thing = _thing(text)
        entity = known.get(same.type(thing[0]))
        if entity is None:
            return
        if len(thing) == 1:
            if thing[0] != entity.id:
                found[text] = type_text(entity)
            return
        number = same.property(*thing)
        if number != thing[1] and number in {declared.id for declared in entity.properties.values()}:
            found[text] = f"{type_text(entity)}/{number:016x}"

    for ir in schemas:
        for text in ir.aliases:
            note(text)
        for entity in types_of(ir):
            note(type_text(entity))
            for declared in entity.properties.values():
                note(f"{type_text(entity)}/{declared.id:016x}")
    return dict(sorted(found.items()))
