"""The three-way merge of schemas: changes of one side and equal changes of both are taken, other changes clash. Pure.
Types and properties are compared by their stable numbers (`sameness`). Names, endpoints and the columns of rules are replaced
by
numbers first, so that a rename on one side does not hide a use on the other. Types or properties that both sides added under
the
same name are unified when they are declared alike. The merged schema is printed and compiled like any other, so that it obeys
every rule of the language.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from omnigraph.errors import LanguageError
from omnigraph.language.schema.accept import accept_schema
from omnigraph.language.schema.ast import CheckConstraint, RangeConstraint
from omnigraph.language.schema.build import compile_schema
from omnigraph.language.schema.catalog import Catalog, EdgeType, Embed, InterfaceType, NodeType, Property
from omnigraph.language.schema.ir import SchemaIR
from omnigraph.language.schema.printer import print_interface, print_property, print_schema, print_type
from omnigraph.language.schema.sameness import Entity, Sameness, aliases_of, sameness, types_of
from omnigraph.language.schema.shapes import (
    ABSENT,
    CLASH,
    Column,
    Shape,
    columns_of,
    declared_in,
    key_of,
    keyed,
    kind_of,
    meaning,
    merged_fact,
    merged_set,
    property_meaning,
    property_text,
    shapes_of,
    texts_of,
    without_column,
)

Side = Literal["ours", "theirs"]
#: A type as (its number), or a property as (the number of its type, its own number).
Thing = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Clash:
    """Two changes that contradict each other, with the declarations of all sides; None where a side has none."""

    type_key: str
    #: The property of the clash; None when it concerns the type itself.
    property: str | None
    message: str
    base: str | None = None
    ours: str | None = None
    theirs: str | None = None


@dataclass(frozen=True, slots=True)
class Drop:
    """A type or property that one side dropped and the other left unchanged; the other side may have new data in it."""

    by: Side
    thing: Thing
    type_key: str
    property: str | None = None


@dataclass(frozen=True)
class Merged:
    """The merged schema. With clashes it is only a proposal, which follows ours and keeps what one side dropped."""

    ir: SchemaIR
    same: Sameness
    clashes: tuple[Clash, ...] = ()
    #: Clashes that the preferred side decided.
    decided: tuple[Clash, ...] = ()
    drops: tuple[Drop, ...] = ()


def merge_schemas(
    base: SchemaIR,
    ours: SchemaIR,
    theirs: SchemaIR,
    *,
    incarnation: int = 0,
    prefer: Side | None = None,
    keep: frozenset[Thing] = frozenset(),
) -> Merged:
    """Merge two schemas by the changes that each made since the base.
    `incarnation`: the incarnation of types that only theirs has; their tables are created new. `prefer`: the side that decides
    clashes; None: no side does. `keep`: types and properties that stay although one side dropped them.
    """
    met: tuple[Clash, ...] = ()
    while True:
        work = _Work(base, ours, theirs, incarnation, prefer, set(keep))
        merged = work.merged()
        if work.keep == keep:
            if prefer is None:
                return replace(merged, clashes=(*met, *merged.clashes))
            return replace(merged, decided=(*met, *merged.decided))
        # A kept type or rule needs a type or property that was to be dropped: merge again and keep that too.
        keep, met = frozenset(work.keep), (*met, *work.needed)


# --- the merge --------------------------------------------------------------------------------------------------------


@dataclass
class _Work:
    base: SchemaIR
    ours: SchemaIR
    theirs: SchemaIR
    incarnation: int
    prefer: Side | None
    keep: set[Thing]
    clashes: list[Clash] = field(default_factory=list)
    decided: list[Clash] = field(default_factory=list)
    drops: list[Drop] = field(default_factory=list)
    #: Clashes because of which something is kept; the next round does not find them again.
    needed: list[Clash] = field(default_factory=list)

    def merged(self) -> Merged:
        same = sameness([self.ours, self.theirs, self.base])
        self._join_added(same)
        self.shapes = [shapes_of(ir, same) for ir in (self.base, self.ours, self.theirs)]
        merged: dict[int, Shape] = {}
        for number in dict.fromkeys(number for shapes in (self.shapes[1], self.shapes[2]) for number in shapes):
            shape = self._type(number)
            if shape is not None:
                merged[number] = shape
        self._names(merged)
        self._require_ends(merged)
        self._require_columns(merged)
        interfaces = self._interfaces(merged)
        self._require_members(merged, interfaces)
        raw = self._raw(merged, interfaces, same)
        return Merged(self._checked(raw), same, tuple(self.clashes), tuple(self.decided), tuple(self.drops))

    # --- what both have added -----------------------------------------------------------------------------------------

    def _join_added(self, same: Sameness) -> None:
        """Unify types and properties that both sides added under one name; different declarations clash later."""
        known = {same.type(entity.id) for entity in types_of(self.base)}
        of_ours = {entity.type_key: entity for entity in types_of(self.ours) if same.type(entity.id) not in known}
        for entity in types_of(self.theirs):
            twin = of_ours.get(entity.type_key)
            if twin is None or same.type(entity.id) in known or same.type(entity.id) == same.type(twin.id):
                continue
            same.join((twin.id,), (entity.id,))
            free = self.ours.next_property_ids[twin.type_key]
            for name, declared in entity.properties.items():
                # Both sides number properties from 1: a property that ours lacks gets a number that ours has not used.
                number = twin.properties[name].id if name in twin.properties else free + declared.id
                same.join((twin.id, number), (entity.id, declared.id))
        mine = {same.type(entity.id): entity for entity in types_of(self.ours)}
        old = {
            same.type(entity.id): {same.property(entity.id, declared.id) for declared in entity.properties.values()}
            for entity in types_of(self.base)
        }
        for entity in types_of(self.theirs):
            twin = mine.get(same.type(entity.id))
            for name, declared in entity.properties.items() if twin is not None else ():
                added = twin.properties.get(name) if twin is not None else None
                if twin is None or added is None:
                    continue
                numbers = same.property(twin.id, added.id), same.property(entity.id, declared.id)
                if numbers[0] != numbers[1] and not {*numbers} & old.get(same.type(entity.id), set()):
                    same.join((twin.id, added.id), (entity.id, declared.id))

    # --- one type -----------------------------------------------------------------------------------------------------

    def _type(self, number: int) -> Shape | None:
        base, ours, theirs = (shapes.get(number) for shapes in self.shapes)
        if ours is None or theirs is None:
            there = ours or theirs
            assert there is not None
            if base is None:
                return there
            return self._one_sided(number, base, there, "theirs" if theirs is None else "ours")
        return self._both(number, base, ours, theirs)

    def _one_sided(self, number: int, base: Shape, there: Shape, dropped_by: Side) -> Shape | None:
        """The merge of a type that one side dropped; None when it is dropped from the result."""
        key = there.entity.type_key
        if (number,) in self.keep:
            return there
        if meaning(base) == meaning(there):
            self.drops.append(Drop(dropped_by, (number,), key))
            return None
        message = f"{key} was dropped on one side and changed on the other"
        texts = {"base": print_type(base.entity), _other(dropped_by): print_type(there.entity)}
        gone = self._clash(Clash(key, None, message, **texts)) == dropped_by
        return None if gone else there

    def _both(self, number: int, base: Shape | None, ours: Shape, theirs: Shape) -> Shape:
        key = ours.entity.type_key
        if base is None and (ours.entity.id != theirs.entity.id) and meaning(ours) != meaning(theirs):
            clash = Clash(
                key, None, f"{key} was added on both sides with different declarations", *texts_of(None, ours, theirs)
            )
            if keyed(ours) != keyed(theirs):
                # Ids derive from the key, so rows of one declaration can not become rows of the other.
                self.clashes.append(clash)
                return ours
            return theirs if self._clash(clash) == "theirs" else ours
        facts = self._facts(
            {} if base is None else base.facts,
            ours.facts,
            theirs.facts,
            lambda what: Clash(key, None, f"{key}: {what}", *texts_of(base, ours, theirs)),
        )
        sets = {
            name: merged_set({} if base is None else base.sets, ours.sets, theirs.sets, name)
            for name in {**ours.sets, **theirs.sets}
        }
        properties: dict[int, Mapping[str, Any]] = {}
        declared: dict[int, Property] = {}
        for found in dict.fromkeys((*ours.properties, *theirs.properties)):
            merged = self._property(number, found, base, ours, theirs)
            if merged is not None:
                properties[found] = merged
                declared[found] = ours.declared.get(found) or theirs.declared[found]
        return Shape(ours.entity, facts, sets, properties, declared)

    def _property(
        self, number: int, found: int, base: Shape | None, ours: Shape, theirs: Shape
    ) -> Mapping[str, Any] | None:
        was, mine, other = (None if s is None else s.properties.get(found) for s in (base, ours, theirs))
        there = ours if found in ours.declared else theirs
        key, name = ours.entity.type_key, there.declared[found].name
        texts = [
            None if shape is None or found not in shape.declared else print_property(shape.declared[found])
            for shape in (base, ours, theirs)
        ]
        label = f"{ours.entity.name}.{name}"
        if mine is not None and other is not None:
            return self._facts(was or {}, mine, other, lambda what: Clash(key, name, f"{label}: {what}", *texts))
        facts = mine if mine is not None else other
        assert facts is not None
        if was is None or (number, found) in self.keep:
            return facts
        dropped_by: Side = "theirs" if other is None else "ours"
        if property_meaning(was) == property_meaning(facts):
            self.drops.append(Drop(dropped_by, (number, found), key, name))
            return None
        clash = Clash(key, name, f"{label} was dropped on one side and changed on the other", *texts)
        return None if self._clash(clash) == dropped_by else facts

    def _facts(
        self, base: Mapping[Any, Any], ours: Mapping[Any, Any], theirs: Mapping[Any, Any], clash: Callable[[str], Clash]
    ) -> dict[Any, Any]:
        merged: dict[Any, Any] = {}
        clashing: list[str] = []
        open_facts: list[Any] = []
        for name in dict.fromkeys((*ours, *theirs)):
            value = merged_fact(name, *(side.get(name, ABSENT) for side in (base, ours, theirs)))
            if value is CLASH:
                open_facts.append(name)
                clashing.append(name if isinstance(name, str) else f"@{name[0]}")
            elif value is not ABSENT:
                merged[name] = value
        if open_facts:
            verb = "declared" if not base else "changed"
            found = clash(f"{' and '.join(clashing)} {verb} differently on both sides")
            if {"key", "ends"} & {*open_facts}:
                # Ids and rows depend on the key and the end types, so no side can adopt the other's.
                self.clashes.append(found)
                side = None
            else:
                side = self._clash(found)
            for name in open_facts:
                value = (theirs if side == "theirs" else ours).get(name, ABSENT)
                if value is not ABSENT:
                    merged[name] = value
        return merged

    def _clash(self, clash: Clash) -> Side | None:
        """Record a clash; returns the side that decides it, None when no side is preferred."""
        (self.clashes if self.prefer is None else self.decided).append(clash)
        return self.prefer

    # --- what has to fit together -------------------------------------------------------------------------------------

    def _names(self, merged: dict[int, Shape]) -> None:
        """Resolve equal names of different types or properties: the deciding side's type or property keeps the name."""
        seen: dict[str, int] = {}
        for number in list(merged):
            shape = merged[number]
            key = key_of(shape)
            if key in seen:
                self._same_name(merged, key, seen[key], number)
            else:
                seen[key] = number
        for number, shape in merged.items():
            self._property_names(number, shape, merged)

    def _same_name(self, merged: dict[int, Shape], key: str, first: int, second: int) -> None:
        texts = {
            side: print_type(shapes[number].entity)
            for side, shapes in (("ours", self.shapes[1]), ("theirs", self.shapes[2]))
            for number in (first, second)
            if number in shapes and shapes[number].entity.type_key == key
        }
        side = self._clash(Clash(key, None, f"{key} is the name of different types on both sides", **texts)) or "ours"
        chosen = self.shapes[1 if side == "ours" else 2]
        loser = second if first in chosen and chosen[first].entity.type_key == key else first
        if loser in chosen:
            named = {name: chosen[loser].facts[name] for name in ("name", "annotations")}
            facts = {**merged[loser].facts, **named}
            merged[loser] = replace(merged[loser], facts=facts)
        else:
            del merged[loser]

    def _property_names(self, number: int, shape: Shape, merged: dict[int, Shape]) -> None:
        seen: dict[str, int] = {}
        for found, facts in list(shape.properties.items()):
            name = facts["name"]
            if name not in seen:
                seen[name] = found
                continue
            key = key_of(shape)
            message = f"{key.partition(':')[2]}.{name} is the name of different properties on both sides"
            texts = [property_text(side.get(number), name) for side in self.shapes]
            side = self._clash(Clash(key, name, message, *texts)) or "ours"
            chosen = self.shapes[1 if side == "ours" else 2].get(number)
            of_side = {} if chosen is None else chosen.properties
            loser = found if of_side.get(seen[name], {}).get("name") == name else seen[name]
            properties = dict(merged[number].properties)
            if loser in of_side:
                named_so = {fact: of_side[loser][fact] for fact in ("name", "annotations")}
                properties[loser] = {**properties[loser], **named_so}
            else:
                del properties[loser]
            merged[number] = replace(merged[number], properties=properties)

    def _require_ends(self, merged: dict[int, Shape]) -> None:
        """Find edge types whose node type the other side dropped: a clash, which drops the edge type or keeps the node type."""
        for number, shape in list(merged.items()):
            for end in shape.facts.get("ends", ()):
                if end in merged or (end,) in self.keep:
                    continue
                dropped_by: Side = "ours" if end not in self.shapes[1] else "theirs"
                node = next(shapes[end].entity for shapes in self.shapes if end in shapes)
                message = f"{key_of(shape)} joins {node.name}, which was dropped on the other side"
                texts = {_other(dropped_by): print_type(shape.entity)}
                clash = Clash(key_of(shape), None, message, **texts)
                if self._clash(clash) == dropped_by:
                    merged.pop(number, None)
                    break
                self.keep.add((end,))
                self.needed.append(clash)

    def _require_columns(self, merged: dict[int, Shape]) -> None:
        """Find rules about a property that one side dropped: a clash, which drops the rule or keeps the property."""
        for number, shape in list(merged.items()):
            there = {*shape.properties, "src", "dst"}
            for column in {name for name in columns_of(shape) if name not in there}:
                dropped_by = self._dropper(number, column)
                name = next(
                    declared_in(s, number)[column].name for s in self.shapes if column in declared_in(s, number)
                )
                message = f"{key_of(shape)} has a rule about {name}, which was dropped on the other side"
                clash = Clash(key_of(shape), name, message, *texts_of(*(side.get(number) for side in self.shapes)))
                if self._clash(clash) == dropped_by:
                    shape = merged[number] = without_column(merged[number], column)
                else:
                    self.keep.add((number, int(column)))
                    self.needed.append(clash)

    def _require_members(self, merged: dict[int, Shape], interfaces: Mapping[str, InterfaceType]) -> None:
        """A property that an interface of a type asks for, and that the other side has dropped or renamed.

        Left to the language, the type would get a new property under that name, without the values of the old one.
        """
        sides: tuple[tuple[Side, Mapping[int, Shape]], ...] = (("ours", self.shapes[1]), ("theirs", self.shapes[2]))
        for number in merged:
            for side, shapes in sides:
                there = shapes.get(number)
                for name in sorted(there.sets.get("implements", ())) if there is not None else ():
                    if name not in interfaces or name not in merged[number].sets["implements"]:
                        continue
                    for wanted in interfaces[name].properties:
                        self._require_member(merged, number, side, name, wanted)

    def _require_member(self, merged: dict[int, Shape], number: int, side: Side, interface: str, wanted: str) -> None:
        shape, there = merged[number], self.shapes[1 if side == "ours" else 2][number]
        found = next((column for column, declared in there.declared.items() if declared.name == wanted), None)
        if found is None or any(facts["name"] == wanted for facts in shape.properties.values()):
            return
        change = "renamed" if found in shape.properties else "dropped"
        message = f"{key_of(shape)}: interface {interface} asks for {wanted}, which was {change} on the other side"
        clash = Clash(key_of(shape), wanted, message, *texts_of(*(shapes.get(number) for shapes in self.shapes)))
        if self._clash(clash) == _other(side):
            sets = {**shape.sets, "implements": shape.sets["implements"] - {interface}}
            merged[number] = replace(shape, sets=sets)
        elif change == "renamed":
            named_so = {fact: there.properties[found][fact] for fact in ("name", "annotations")}
            properties = {**shape.properties, found: {**shape.properties[found], **named_so}}
            merged[number] = replace(shape, properties=properties)
        else:
            self.keep.add((number, found))
            self.needed.append(clash)

    def _dropper(self, number: int, column: Column) -> Side:
        return "ours" if column not in declared_in(self.shapes[1], number) else "theirs"

    def _interfaces(self, merged: Mapping[int, Shape]) -> dict[str, InterfaceType]:
        sides = [ir.catalog.interfaces for ir in (self.base, self.ours, self.theirs)]
        needed = {name for shape in merged.values() for name in shape.sets.get("implements", ())}
        found: dict[str, InterfaceType] = {}
        for name in dict.fromkeys((*sides[1], *sides[2])):
            base, ours, theirs = (side.get(name, ABSENT) for side in sides)
            value = merged_fact(name, base, ours, theirs)
            if value is CLASH:
                texts = [None if found is ABSENT else print_interface(found) for found in (base, ours, theirs)]
                side = self._clash(Clash(f"interface:{name}", None, f"interface {name} differs on both sides", *texts))
                value = theirs if side == "theirs" else ours
            if value is ABSENT and name in needed:
                value = ours if ours is not ABSENT else theirs
            if value is not ABSENT:
                found[name] = value
        return found

    # --- the schema ---------------------------------------------------------------------------------------------------

    def _raw(self, merged: Mapping[int, Shape], interfaces: dict[str, InterfaceType], same: Sameness) -> SchemaIR:
        names = {number: shape.facts["name"] for number, shape in merged.items()}
        built = [self._entity(number, shape, names) for number, shape in merged.items() if self._whole(shape, merged)]
        nodes = {e.name: e for e in sorted(built, key=lambda e: e.name) if isinstance(e, NodeType)}
        edges = {e.name: e for e in sorted(built, key=lambda e: e.name) if isinstance(e, EdgeType)}
        free: dict[str, int] = {}
        for entity in built:
            counted = [
                ir.next_property_ids[twin.type_key]
                for ir in (self.ours, self.theirs, self.base)
                for twin in types_of(ir)
                if same.type(twin.id) == entity.id
            ]
            free[entity.type_key] = max([1, *counted, *(p.id + 1 for p in entity.properties.values())])
        irs = (self.ours, self.theirs, self.base)
        next_type = max([ir.next_type_id for ir in irs] + [entity.id + 1 for entity in built])
        aliases = aliases_of(irs, built, same)
        return SchemaIR(Catalog(nodes, edges, dict(sorted(interfaces.items()))), next_type, free, aliases)

    def _whole(self, shape: Shape, merged: Mapping[int, Shape]) -> bool:
        return all(end in merged for end in shape.facts.get("ends", ()))

    def _entity(self, number: int, shape: Shape, names: Mapping[int, str]) -> Entity:
        column_names: dict[Column, str] = {found: facts["name"] for found, facts in shape.properties.items()}

        def named(columns: Iterable[Column]) -> tuple[str, ...]:
            return tuple(column_names.get(column, str(column)) for column in columns)

        def known(columns: Iterable[Column]) -> bool:
            return all(column in column_names or isinstance(column, str) for column in columns)

        ours = self.shapes[1].get(number)
        properties = {
            facts["name"]: _declared_property(self._number(number, found, facts), facts, column_names)
            for found, facts in shape.properties.items()
        }
        facts = shape.facts
        common: dict[str, Any] = {
            "name": facts["name"],
            "properties": dict(sorted(properties.items())),
            "key": None if facts["key"] is None else named(facts["key"]),
            "uniques": tuple(sorted(named(columns) for columns in shape.sets["uniques"] if known(columns))),
            "indexes": tuple(sorted(named(columns) for columns in shape.sets["indexes"] if known(columns))),
            "ranges": tuple(
                RangeConstraint(named([name[1]])[0], *value)
                for name, value in facts.items()
                if isinstance(name, tuple) and known([name[1]])
            ),
            "checks": tuple(
                CheckConstraint(named([column])[0], pattern)
                for column, pattern in sorted(shape.sets["checks"], key=str)
                if known([column])
            ),
            "id": number,
            # A type that ours does not have gets a new table.
            "incarnation": self.incarnation if ours is None else ours.entity.incarnation,
            "description": facts["description"],
            "instruction": facts["instruction"],
            "annotations": facts["annotations"],
        }
        if isinstance(shape.entity, EdgeType):
            from_type, to_type = (names[end] for end in facts["ends"])
            return EdgeType(**common, from_type=from_type, to_type=to_type, cardinality=facts["cardinality"])
        return NodeType(**common, implements=tuple(sorted(shape.sets["implements"])))

    def _number(self, number: int, found: int, facts: Mapping[str, Any]) -> int:
        """The number of a merged property; a new number when its kind of values differs from ours, since the column differs."""
        mine, other = (declared_in(shapes, number).get(found) for shapes in self.shapes[1:])
        if mine is None or other is None or kind_of(mine.type) == kind_of(facts["type"]) or other.id == mine.id:
            return found
        theirs = self.shapes[2][number].entity
        # For a type that both sides added, theirs counts property numbers independently of ours.
        same_type = theirs.id == self.shapes[1][number].entity.id
        return other.id if same_type else self.ours.next_property_ids[self.shapes[1][number].entity.type_key] + other.id

    def _checked(self, raw: SchemaIR) -> SchemaIR:
        """The merged schema, printed and compiled; when that fails, the error is a clash that no side decides."""
        try:
            return accept_schema(compile_schema(print_schema(raw)), raw)
        except LanguageError as error:
            if not self.clashes:
                way_out = "give the schema of the result, or change one side"
                message = f"both schemas together are not valid: {error.message}; {way_out}"
                texts = (print_schema(ir) for ir in (self.base, self.ours, self.theirs))
                self.clashes.append(Clash("schema:", None, message, *texts))
            return raw


def _declared_property(number: int, facts: Mapping[str, Any], names: Mapping[Column, str]) -> Property:
    embed = facts["embed"]
    return Property(
        name=facts["name"],
        type=facts["type"],
        id=number,
        embed=None if embed is None or embed[0] not in names else Embed(names[embed[0]], embed[1]),
        default=facts["default"],
        metric=facts["metric"],
        description=facts["description"],
        annotations=facts["annotations"],
    )


def _other(side: Side) -> Side:
    return "theirs" if side == "ours" else "ours"
