"""Accepting a schema into a graph: its types and properties get the stable ids of the previous schema, or new ids.
The identity follows the name, or `@rename_from("Old")` when the new name did not exist before and the old name is gone. All
other
types and properties get the next free number; so a type that is dropped and added again is a new type.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import NoReturn, TypeVar

from omnigraph.errors import CatalogError
from omnigraph.language.schema.annotations import read_name
from omnigraph.language.schema.catalog import Catalog, EdgeType, NodeType, Property
from omnigraph.language.schema.ir import SchemaIR

_Entity = TypeVar("_Entity", NodeType, EdgeType)
_Named = TypeVar("_Named", NodeType, EdgeType, Property)

_NOTHING = SchemaIR(Catalog(nodes={}, edges={}, interfaces={}), next_type_id=1, next_property_ids={})


class _Numbers:
    """A counter that gives out numbers from `free` on; `apart`: how many numbers are skipped before the first."""

    def __init__(self, free: int, apart: int) -> None:
        self.free = free
        self._apart = apart

    def take(self) -> int:
        """The next free number."""
        number = self.free + self._apart
        self.free, self._apart = number + 1, 0
        return number


def accept_schema(catalog: Catalog, previous: SchemaIR | None = None, incarnation: int = 0, apart: int = 0) -> SchemaIR:
    """The schema with stable ids: the ids of `previous` where identity continues, else new ids with this incarnation.
    `apart`: how many numbers are skipped before the first new id. Two branches that start from the same schema must not give
    the
    same number to different additions, so each branch skips a different count.
    """
    before = previous or _NOTHING
    type_ids = _Numbers(before.next_type_id, apart)
    next_property_ids: dict[str, int] = {}

    def accept_all(wanted: Mapping[str, _Entity], earlier: Mapping[str, _Entity]) -> dict[str, _Entity]:
        accepted: dict[str, _Entity] = {}
        for name, origin in _origins(wanted, earlier).items():
            entity = wanted[name]
            if origin is None:
                entity = replace(entity, id=type_ids.take(), incarnation=incarnation)
                numbers = _Numbers(1, 0)
            else:
                entity = replace(entity, id=origin.id, incarnation=origin.incarnation)
                numbers = _Numbers(before.next_property_ids[origin.type_key], apart)
            accepted[name] = _accept_properties(entity, origin, numbers)
            next_property_ids[entity.type_key] = numbers.free
        return accepted

    nodes = accept_all(catalog.nodes, before.catalog.nodes)
    edges = accept_all(catalog.edges, before.catalog.edges)
    accepted = Catalog(nodes, edges, catalog.interfaces)
    return SchemaIR(accepted, type_ids.free, next_property_ids, before.aliases)


def _accept_properties(entity: _Entity, origin: _Entity | None, numbers: _Numbers) -> _Entity:
    """The type with numbered properties and its key in identity order."""
    origins = _origins(entity.properties, origin.properties if origin else {})
    properties = {
        name: replace(entity.properties[name], id=before.id if before else numbers.take())
        for name, before in origins.items()
    }
    new_names = {before.name: name for name, before in origins.items() if before}
    key = _continued_key(entity.key, origin.key if origin else None, new_names)
    return replace(entity, properties=properties, key=key)


def _continued_key(
    wanted: tuple[str, ...] | None, earlier: tuple[str, ...] | None, new_names: Mapping[str, str]
) -> tuple[str, ...] | None:
    """The key in its earlier order if it has the same properties, also after renames, so that derived ids stay valid."""
    # The endpoints of an edge are not properties and keep their names.
    renamed = tuple(new_names.get(name, name) for name in earlier or ())
    return renamed if wanted and sorted(wanted) == sorted(renamed) else wanted


def _origins(wanted: Mapping[str, _Named], earlier: Mapping[str, _Named]) -> dict[str, _Named | None]:
    """For each wanted name, in name order, its previous declaration; None when it is new."""
    origins: dict[str, _Named | None] = {}
    claims: dict[str, str] = {}
    for name in sorted(wanted):
        old_name = _old_name(wanted[name])
        if name in earlier and old_name in earlier and _comes_back(name, wanted):
            # It is undecidable whether the swap was done already, and each further apply would swap the data again.
            _refuse(f"{name} and {old_name} can not take each other's names at once; rename one to a third name first")
        if name in earlier or old_name is None or old_name not in earlier:
            origins[name] = earlier.get(name)
            continue
        if old_name in wanted:
            _refuse(f"{name} is renamed from {old_name}, but {old_name} is still declared; drop one of the two")
        if old_name in claims:
            _refuse(f"{claims[old_name]} and {name} are both renamed from {old_name}; only one can be")
        claims[old_name] = name
        origins[name] = earlier[old_name]
    return origins


def _comes_back(name: str, wanted: Mapping[str, _Named]) -> bool:
    """Whether following `@rename_from` from a name leads back to it through other names."""
    seen: set[str] = set()
    at: str | None = name
    while at is not None and at in wanted and at not in seen:
        seen.add(at)
        at = _old_name(wanted[at])
    return at == name and len(seen) > 1


def _old_name(declared: NodeType | EdgeType | Property) -> str | None:
    return next((read_name(a) for a in declared.annotations if a.name == "rename_from"), None)


def _refuse(message: str) -> NoReturn:
    raise CatalogError(f"catalog error: {message}")
