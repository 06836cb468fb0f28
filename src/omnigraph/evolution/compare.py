"""Compares the accepted schema with the wanted one: the ordered steps from one to the other. Pure.

Both have stable ids, so types and properties are matched whatever their names. Order: renamed and new types, then changes
within types, then dropped types, edges before the nodes they join.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from omnigraph.evolution.look import Entity, Look
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
    Backfill,
    DropMode,
    DropProperty,
    DropType,
    ExtendEnum,
    FillNulls,
    Narrow,
    NarrowEnum,
    Rekey,
    RemoveConstraint,
    RenameProperty,
    RenameType,
    Step,
    TypeKind,
    UnsupportedChange,
    UpdatePropertyMetadata,
    UpdateTypeMetadata,
    Widen,
)
from omnigraph.language.schema.catalog import Catalog, EdgeType, Embed, NodeType, Property
from omnigraph.language.schema.ir import SchemaIR
from omnigraph.language.schema.printer import property_annotations, type_annotations
from omnigraph.language.types import PropType, Scalar, widens, widens_in_steps


def compare(before: SchemaIR, after: SchemaIR, look: Look, mode: DropMode) -> Iterator[Step]:
    """The steps from the accepted schema to the wanted one. `look`: answers questions about the stored rows."""
    old, new = entities(before.catalog), entities(after.catalog)
    kept = [(old[id_], entity) for id_, entity in new.items() if id_ in old]
    for was, entity in kept:
        if was.name != entity.name:
            yield RenameType(kind_of(entity), was.name, entity.name)
    yield from (AddType(kind_of(entity), entity.name) for id_, entity in new.items() if id_ not in old)
    yield from _interfaces(before.catalog, after.catalog)
    for was, entity in kept:
        yield from _within(was, entity, look, mode)
        if isinstance(was, EdgeType) and isinstance(entity, EdgeType):
            yield from _endpoints(was, entity, before.catalog, after.catalog)
    dropped = [entity for id_, entity in old.items() if id_ not in new]
    for entity in sorted(dropped, key=lambda entity: (kind_of(entity), entity.name)):
        yield DropType(kind_of(entity), entity.name, mode, DROPPED_TYPE[kind_of(entity)])


def entities(catalog: Catalog) -> dict[int, Entity]:
    """The types of an accepted schema by stable id, nodes first."""
    listed: list[Entity] = [*catalog.nodes.values(), *catalog.edges.values()]
    return {entity.id: entity for entity in listed}


def kind_of(entity: Entity) -> TypeKind:
    return "edge" if isinstance(entity, EdgeType) else "node"


def kept_names(was: Entity, entity: Entity) -> dict[str, str]:
    """The new names of kept properties, by their old names."""
    now = {declared.id: name for name, declared in entity.properties.items()}
    return {name: now[declared.id] for name, declared in was.properties.items() if declared.id in now}


# --- within a type ----------------------------------------------------------------------------------------------------


def _within(was: Entity, entity: Entity, look: Look, mode: DropMode) -> Iterator[Step]:
    names, kind = kept_names(was, entity), kind_of(entity)
    known = {declared.id for declared in was.properties.values()}
    for old, new in names.items():
        if old != new:
            yield RenameProperty(kind, entity.name, old, new)
    for declared in entity.properties.values():
        if declared.id not in known:
            yield _added(was, entity, declared, look)
            yield from _backfill(was, entity, declared, look)
    for old, new in names.items():
        yield from _backfill(was, entity, entity.properties[new], look)
        yield from _retyped(was, entity, was.properties[old].type, entity.properties[new], look)
    yield from _key(was, entity, names, look)
    yield from _rules(was, entity, names)
    yield from _metadata(was, entity, names)
    for name in was.properties:
        if name not in names:
            yield DropProperty(kind, entity.name, name, mode)


def _added(was: Entity, entity: Entity, declared: Property, look: Look) -> Step:
    rows, text = look.count(entity), look.backfilled.text(entity, declared.name)
    if text is not None and rows and not declared.type.nullable and declared.default is None:
        missing = look.nulls(was, entity, declared)
        if missing is not None and missing.count:
            reason = f"it is required, and `{text}` is null in {missing} of {entity.name}; give it @default(…) too"
            return _refused(entity, declared.name, reason, REQUIRED_WITHOUT_DEFAULT)
    elif not declared.type.nullable and declared.default is None and rows and not look.takes_back:
        held = f"{entity.name} has {rows} row{'' if rows == 1 else 's'}"
        return _refused(
            entity,
            declared.name,
            f"it is required and {held}; give it @default(…) or a backfill, or make it {declared.type.as_nullable()}",
            REQUIRED_WITHOUT_DEFAULT,
        )
    return AddProperty(kind_of(entity), entity.name, declared.name, str(declared.type), declared.default)


def _backfill(was: Entity, entity: Entity, declared: Property, look: Look) -> Iterator[Step]:
    text = look.backfilled.text(entity, declared.name)
    rows = 0 if text is None else look.lacking(was, entity, declared)
    if text is not None and rows:
        yield Backfill(kind_of(entity), entity.name, declared.name, text, rows)


def _retyped(was: Entity, entity: Entity, before: PropType, declared: Property, look: Look) -> Iterator[Step]:
    old, new = replace(before, nullable=False), replace(declared.type, nullable=False)
    if old != new:
        yield from _other_type(was, entity, declared, old, new, look)
    if before.nullable and not declared.type.nullable:
        yield from _required(was, entity, declared, look)
    if not before.nullable and declared.type.nullable:
        yield RemoveConstraint(kind_of(entity), entity.name, f"required {declared.name}")


def _required(was: Entity, entity: Entity, declared: Property, look: Look) -> Iterator[Step]:
    """A nullable property becomes required: rows without a value get the default; without a default there must be none."""
    missing, kind = look.nulls(was, entity, declared), kind_of(entity)
    if declared.default is not None:
        if missing is None or missing.count:
            yield FillNulls(
                kind, entity.name, declared.name, declared.default, None if missing is None else missing.count
            )
    elif missing is not None and missing.count:
        reason = (
            f"it is null in {missing} of {entity.name}; give it @default(…) or a backfill, or fill those rows first"
        )
        yield _refused(entity, declared.name, reason, NULLABLE_TO_REQUIRED)
        return
    yield AddConstraint(kind, entity.name, f"required {declared.name}")


def _other_type(
    was: Entity, entity: Entity, declared: Property, old: PropType, new: PropType, look: Look
) -> Iterator[Step]:
    place = kind_of(entity), entity.name, declared.name
    # What lies between two states may be several changes.
    is_wider = widens_in_steps if look.takes_back else widens
    if is_wider(old, new):
        yield Widen(*place, str(old), str(new))
    elif look.takes_back and is_wider(new, old):
        unfit = look.unfit(was, entity, declared)
        if unfit.count:
            reason = f"{unfit} of {entity.name} do not fit {new}; change them first"
            yield _refused(entity, declared.name, reason, TYPE_CHANGED)
        else:
            yield Narrow(*place, str(old), str(new))
    elif new.enum is not None and _is_text(old, new):
        yield from _other_values(was, entity, declared, old, new, look)
    elif look.takes_back and old.enum is not None and _is_text(old, new):
        yield RemoveConstraint(kind_of(entity), entity.name, f"{old} {declared.name}")
    else:
        reason = f"its type can not change from {old} to {new}; add another property and drop this one"
        yield _refused(entity, declared.name, reason, TYPE_CHANGED)


def _is_text(old: PropType, new: PropType) -> bool:
    return old.scalar is new.scalar is Scalar.STRING and not old.is_list and not new.is_list


def _other_values(
    was: Entity, entity: Entity, declared: Property, old: PropType, new: PropType, look: Look
) -> Iterator[Step]:
    """A text becomes an enum, or the values of an enum change: allowed if every row has one of the new values."""
    assert new.enum is not None
    place = kind_of(entity), entity.name, declared.name
    lost = [value for value in old.enum or () if value not in new.enum]
    if lost or old.enum is None:
        outside = look.outside(was, entity, declared)
        if outside.rows:
            kept = f"; {', '.join(new.enum)} are allowed" if old.enum is None else ""
            reason = f"{outside} of {entity.name} {'has' if outside.rows == 1 else 'have'} other values{kept}; change them first"
            yield _refused(entity, declared.name, reason, TYPE_CHANGED)
            return
    if old.enum is None:
        yield AddConstraint(kind_of(entity), entity.name, f"{new} {declared.name}")
        return
    if lost:
        yield NarrowEnum(*place, tuple(lost))
    added = tuple(value for value in new.enum if value not in old.enum)
    if added:
        yield ExtendEnum(*place, added)


def needs_other_ids(was: Entity, entity: Entity, names: Mapping[str, str] | None = None) -> bool:
    """Whether the key makes other ids than the rows have: the type has a key now, or its numbers are written differently.

    `names`: what its properties are called now, where that is not told by their numbers.
    """
    if not entity.key:
        return False
    return not was.key or any(
        was.properties[old].type.scalar is Scalar.F32 and entity.properties[new].type.scalar is Scalar.F64
        for old, new in (kept_names(was, entity) if names is None else names).items()
        if new in entity.key
    )


def same_key(was: Entity, entity: Entity, names: Mapping[str, str]) -> bool:
    """Whether the key is of the same properties."""
    # The endpoints of an edge are not properties and keep their names.
    return {names.get(name, name) for name in was.key or ()} == set(entity.key or ())


def _key(was: Entity, entity: Entity, names: Mapping[str, str], look: Look) -> Iterator[Step]:
    same, kind = same_key(was, entity, names), kind_of(entity)
    if look.takes_back:
        if not same:
            added = AddConstraint(kind, entity.name, shown_key(entity))
            yield added if entity.key else RemoveConstraint(kind, entity.name, shown_key(was))
    elif not was.key and entity.key:
        yield AddConstraint(kind, entity.name, shown_key(entity))
        if look.count(entity):
            yield Rekey(kind, entity.name, entity.key)
    elif same and needs_other_ids(was, entity):
        if look.count(entity):
            yield Rekey(kind, entity.name, entity.key or ())
    elif not same:
        yield _refused(
            entity,
            None,
            f"its key can not change from {shown_key(was)} to {shown_key(entity)}, ids are made of it; "
            "add another type and load the rows into it",
            KEY_CHANGED,
        )


def shown_key(entity: Entity) -> str:
    return f"@key({', '.join(entity.key)})" if entity.key else "no key"


def _rules(was: Entity, entity: Entity, names: Mapping[str, str]) -> Iterator[Step]:
    kind, gone = kind_of(entity), set(was.properties) - set(names)
    old, new = rules_of(was, names), rules_of(entity)
    for text, rule in old.items():
        # Rules that name a dropped property are dropped with it.
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
    """The annotations without `@rename_from`, which describes a change and not the schema."""
    return (text for text in annotations if not text.startswith("@rename_from"))


def _interfaces(before: Catalog, after: Catalog) -> Iterator[Step]:
    """The steps for interfaces. They have no rows; effects on implementing nodes are separate steps."""
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
