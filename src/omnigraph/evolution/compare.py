"""The accepted schema and the wanted one, compared: the ordered steps from one to the other. Pure.

Both have stable ids, so what belongs together is known, whatever it is called. Order: renamed and new types first, then
what changes within a type, then what goes, edges before the nodes they join.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from omnigraph.evolution.rules import rules_of
from omnigraph.evolution.steps import (
    DROPPED_TYPE,
    ENDPOINT_CHANGED,
    KEY_CHANGED,
    NULLABLE_TO_REQUIRED,
    REQUIRED_WITHOUT_DEFAULT,
    TYPE_CHANGED,
    AddConstraint,
    AddProperty,
    AddType,
    DropMode,
    DropProperty,
    DropType,
    ExtendEnum,
    RemoveConstraint,
    RenameProperty,
    RenameType,
    Step,
    TypeKind,
    UnsupportedChange,
    UpdatePropertyMetadata,
    UpdateTypeMetadata,
)
from omnigraph.language.schema.catalog import Catalog, EdgeType, Embed, NodeType, Property
from omnigraph.language.schema.ir import SchemaIR
from omnigraph.language.schema.printer import property_annotations, type_annotations
from omnigraph.language.types import PropType

Entity = NodeType | EdgeType
#: How many rows a type has, by its stable id.
RowCounts = Mapping[int, int]


def compare(before: SchemaIR, after: SchemaIR, rows: RowCounts, mode: DropMode) -> Iterator[Step]:
    """The steps that lead from the accepted schema to the wanted one."""
    old, new = entities(before.catalog), entities(after.catalog)
    kept = [(old[id_], entity) for id_, entity in new.items() if id_ in old]
    for was, entity in kept:
        if was.name != entity.name:
            yield RenameType(kind_of(entity), was.name, entity.name)
    yield from (AddType(kind_of(entity), entity.name) for id_, entity in new.items() if id_ not in old)
    yield from _interfaces(before.catalog, after.catalog)
    for was, entity in kept:
        yield from _within(was, entity, rows.get(entity.id, 0), mode)
        if isinstance(was, EdgeType) and isinstance(entity, EdgeType):
            yield from _endpoints(was, entity, before.catalog, after.catalog)
    dropped = [entity for id_, entity in old.items() if id_ not in new]
    for entity in sorted(dropped, key=lambda entity: (kind_of(entity), entity.name)):
        yield DropType(kind_of(entity), entity.name, mode, DROPPED_TYPE[kind_of(entity)])


def entities(catalog: Catalog) -> dict[int, Entity]:
    """The types of an accepted schema by their stable id, nodes first."""
    listed: list[Entity] = [*catalog.nodes.values(), *catalog.edges.values()]
    return {entity.id: entity for entity in listed}


def kind_of(entity: Entity) -> TypeKind:
    return "edge" if isinstance(entity, EdgeType) else "node"


def kept_names(was: Entity, entity: Entity) -> dict[str, str]:
    """What the properties that stay were called, and what they are called now."""
    now = {declared.id: name for name, declared in entity.properties.items()}
    return {name: now[declared.id] for name, declared in was.properties.items() if declared.id in now}


# --- within a type ----------------------------------------------------------------------------------------------------


def _within(was: Entity, entity: Entity, rows: int, mode: DropMode) -> Iterator[Step]:
    names, kind = kept_names(was, entity), kind_of(entity)
    known = {declared.id for declared in was.properties.values()}
    for old, new in names.items():
        if old != new:
            yield RenameProperty(kind, entity.name, old, new)
    for declared in entity.properties.values():
        if declared.id not in known:
            yield _added(entity, declared, rows)
    for old, new in names.items():
        yield from _retyped(entity, was.properties[old].type, entity.properties[new])
    yield from _key(was, entity, names)
    yield from _rules(was, entity, names)
    yield from _metadata(was, entity, names)
    for name in was.properties:
        if name not in names:
            yield DropProperty(kind, entity.name, name, mode)


def _added(entity: Entity, declared: Property, rows: int) -> Step:
    if not declared.type.nullable and declared.default is None and rows:
        held = f"{entity.name} has {rows} row{'' if rows == 1 else 's'}"
        return _refused(
            entity,
            declared.name,
            f"it is required and {held}; give it @default(…), or make it {declared.type.as_nullable()}",
            REQUIRED_WITHOUT_DEFAULT,
        )
    return AddProperty(kind_of(entity), entity.name, declared.name, str(declared.type), declared.default)


def _retyped(entity: Entity, was: PropType, declared: Property) -> Iterator[Step]:
    old, new = replace(was, nullable=False), replace(declared.type, nullable=False)
    if old != new:
        yield _other_type(entity, declared, old, new)
    if was.nullable and not declared.type.nullable:
        reason = f"it may be null; fill its nulls and keep it {was}, or add a new required property with @default(…)"
        yield _refused(entity, declared.name, reason, NULLABLE_TO_REQUIRED)
    if not was.nullable and declared.type.nullable:
        yield RemoveConstraint(kind_of(entity), entity.name, f"required {declared.name}")


def _other_type(entity: Entity, declared: Property, old: PropType, new: PropType) -> Step:
    if old.enum is not None and new.enum is not None:
        lost = [value for value in old.enum if value not in new.enum]
        if not lost:
            added = tuple(value for value in new.enum if value not in old.enum)
            return ExtendEnum(kind_of(entity), entity.name, declared.name, added)
        listed = ", ".join(f"'{value}'" for value in lost)
        reason = f"an enum keeps its values, {listed} would go; add the new ones and keep the old"
        return _refused(entity, declared.name, reason, TYPE_CHANGED)
    reason = f"its type can not change from {old} to {new}; add another property and drop this one"
    return _refused(entity, declared.name, reason, TYPE_CHANGED)


def _key(was: Entity, entity: Entity, names: Mapping[str, str]) -> Iterator[Step]:
    # The endpoints of an edge are not properties and keep their names.
    if {names.get(name, name) for name in was.key or ()} != set(entity.key or ()):
        yield _refused(
            entity,
            None,
            f"its key can not change from {_shown_key(was)} to {_shown_key(entity)}, ids are made of it; "
            "add another type and load the rows into it",
            KEY_CHANGED,
        )


def _shown_key(entity: Entity) -> str:
    return f"@key({', '.join(entity.key)})" if entity.key else "no key"


def _rules(was: Entity, entity: Entity, names: Mapping[str, str]) -> Iterator[Step]:
    kind, gone = kind_of(entity), set(was.properties) - set(names)
    old, new = rules_of(was, names), rules_of(entity)
    for text, rule in old.items():
        # What names a dropped property goes with it.
        if text not in new and not gone & set(rule.columns):
            yield RemoveConstraint(kind, entity.name, text)
    yield from (AddConstraint(kind, entity.name, text) for text in new if text not in old)


def _endpoints(was: EdgeType, edge: EdgeType, before: Catalog, after: Catalog) -> Iterator[Step]:
    for old, new in ((was.from_type, edge.from_type), (was.to_type, edge.to_type)):
        if before.nodes[old].id != after.nodes[new].id:
            reason = (
                f"its endpoint can not change from {old} to {new}; add another edge type and load the edges into it"
            )
            yield _refused(edge, None, reason, ENDPOINT_CHANGED)


def _refused(entity: Entity, name: str | None, reason: str, code: str) -> UnsupportedChange:
    return UnsupportedChange(entity.type_key if name is None else f"{entity.type_key}.{name}", reason, code)


# --- metadata ---------------------------------------------------------------------------------------------------------


def _metadata(was: Entity, entity: Entity, names: Mapping[str, str]) -> Iterator[Step]:
    kind = kind_of(entity)
    if _about_type(was) != _about_type(entity):
        yield UpdateTypeMetadata(kind, entity.name, _about_type(entity))
    for old, new in names.items():
        before = was.properties[old]
        if before.embed is not None:
            source = names.get(before.embed.source, before.embed.source)
            before = replace(before, embed=Embed(source, before.embed.model))
        if _about_property(before) != _about_property(entity.properties[new]):
            yield UpdatePropertyMetadata(kind, entity.name, new, _about_property(entity.properties[new]))


def _about_type(entity: Entity) -> tuple[str, ...]:
    implements = (f"implements {name}" for name in entity.implements) if isinstance(entity, NodeType) else ()
    return (*_lasting(type_annotations(entity)), *implements)


def _about_property(declared: Property) -> tuple[str, ...]:
    return tuple(_lasting(property_annotations(declared)))


def _lasting(annotations: Iterator[str]) -> Iterator[str]:
    """`@rename_from` says how to get somewhere, not what is there."""
    return (text for text in annotations if not text.startswith("@rename_from"))


def _interfaces(before: Catalog, after: Catalog) -> Iterator[Step]:
    """Interfaces have no rows; what they mean for the nodes that implement them shows there."""
    for name, interface in after.interfaces.items():
        if name not in before.interfaces:
            yield AddType("interface", name)
        elif _members(before.interfaces[name].properties) != _members(interface.properties):
            yield UpdateTypeMetadata("interface", name, _members(interface.properties))
    for name in before.interfaces:
        if name not in after.interfaces:
            yield DropType("interface", name, "soft")


def _members(properties: Mapping[str, Property]) -> tuple[str, ...]:
    return tuple(
        " ".join([f"{name}: {declared.type}", *_about_property(declared)]) for name, declared in properties.items()
    )
