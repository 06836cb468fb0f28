"""The catalog as a JSON document and back. Defaults are left out, so that each catalog has exactly one document."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from omnigraph.errors import ParseError
from omnigraph.language.schema import ast
from omnigraph.language.schema.catalog import (
    Catalog,
    EdgeType,
    Embed,
    EntityType,
    InterfaceType,
    NodeType,
    Property,
)
from omnigraph.language.schema.grammar import parse_type

Document = dict[str, object]

_HEX_ID = re.compile(r"[0-9a-f]{16}")
_V = TypeVar("_V")
_Entity = TypeVar("_Entity", NodeType, EdgeType)


class Malformed(ValueError):
    """The document is not a valid catalog; the message names the place."""


def hex_id(number: int) -> str:
    """A type id or an incarnation as 16 hex digits."""
    return f"{number:016x}"


# --- catalog → document -----------------------------------------------------------------------------------------------


def catalog_to_document(catalog: Catalog) -> Document:
    """The catalog as plain JSON values."""
    return {
        "nodes": {name: _write_node(node) for name, node in catalog.nodes.items()},
        "edges": {name: _write_edge(edge) for name, edge in catalog.edges.items()},
        "interfaces": {
            name: {"properties": _write_properties(interface.properties)}
            for name, interface in catalog.interfaces.items()
        },
    }


def _write_node(node: NodeType) -> Document:
    return _write_entity(node) | _said(implements=list(node.implements))


def _write_edge(edge: EdgeType) -> Document:
    cardinality = _said(min=edge.cardinality.minimum, max=edge.cardinality.maximum)
    return _write_entity(edge) | {"from": edge.from_type, "to": edge.to_type, "cardinality": cardinality}


def _write_entity(entity: EntityType) -> Document:
    return _said(
        id=hex_id(entity.id),
        incarnation=hex_id(entity.incarnation),
        properties=_write_properties(entity.properties),
        key=list(entity.key or ()),
        uniques=[list(columns) for columns in entity.uniques],
        indexes=[list(columns) for columns in entity.indexes],
        ranges=[_said(property=r.property, low=r.low, high=r.high) for r in entity.ranges],
        checks=[_said(property=c.property, pattern=c.pattern) for c in entity.checks],
        description=entity.description,
        instruction=entity.instruction,
        annotations=_write_annotations(entity.annotations),
    )


def _write_properties(properties: Mapping[str, Property]) -> Document:
    return {name: _write_property(prop) for name, prop in properties.items()}


def _write_property(prop: Property) -> Document:
    return _said(
        id=prop.id or None,
        type=str(prop.type),
        embed=_said(source=prop.embed.source, model=prop.embed.model) if prop.embed else None,
        default=prop.default,
        metric=prop.metric if prop.metric != "l2" else None,
        description=prop.description,
        annotations=_write_annotations(prop.annotations),
    )


def _write_annotations(annotations: Iterable[ast.Annotation]) -> list[Document]:
    return [
        _said(
            name=annotation.name,
            value={"name": annotation.value.text} if isinstance(annotation.value, ast.Name) else annotation.value,
            arguments=[list(argument) for argument in annotation.arguments],
        )
        for annotation in annotations
    ]


def _said(**fields: object) -> Document:
    """The fields that are not None and not an empty list or object; false, 0 and an empty text are kept."""
    return {name: value for name, value in fields.items() if value is not None and value != [] and value != {}}


# --- document → catalog -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Fields:
    """A JSON object that is being read; `place` is its path in the document."""

    values: Mapping[str, object]
    place: str

    def get(self, name: str, kind: type[_V]) -> _V:
        """The value of a required field; raises Malformed when it is missing."""
        value = self.find(name, kind)
        if value is None:
            raise Malformed(f"{self.place} has no `{name}`")
        return value

    def find(self, name: str, kind: type[_V]) -> _V | None:
        """The value of an optional field; None when it is missing."""
        value = self.values.get(name)
        if value is None:
            return None
        return _of_kind(value, kind, f"{self.place}.{name}")

    def hex(self, name: str) -> int:
        text = self.get(name, str)
        if not _HEX_ID.fullmatch(text):
            raise Malformed(f"{self.place}.{name} is not 16 hex digits")
        return int(text, 16)

    def names(self, name: str) -> tuple[str, ...]:
        return _names(self.find(name, list) or [], f"{self.place}.{name}")

    def name_lists(self, name: str) -> tuple[tuple[str, ...], ...]:
        place = f"{self.place}.{name}"
        return tuple(_names(_of_kind(item, list, place), place) for item in self.find(name, list) or [])

    def integers(self, name: str) -> dict[str, int]:
        """The value of a field that is an object of integers."""
        place = f"{self.place}.{name}"
        return {key: _of_kind(value, int, place) for key, value in (self.find(name, dict) or {}).items()}

    def objects(self, name: str) -> dict[str, Fields]:
        """The value of a field that is an object of objects."""
        place = f"{self.place}.{name}"
        found = self.find(name, dict) or {}
        return {key: Fields(_of_kind(value, dict, f"{place}.{key}"), f"{place}.{key}") for key, value in found.items()}

    def rows(self, name: str) -> list[Fields]:
        """The value of a field that is a list of objects."""
        place = f"{self.place}.{name}"
        return [Fields(_of_kind(item, dict, place), place) for item in self.find(name, list) or []]


def catalog_from_document(document: Fields) -> Catalog:
    """The catalog that a document describes; raises Malformed."""
    return Catalog(
        nodes={name: _read_node(name, fields) for name, fields in sorted(document.objects("nodes").items())},
        edges={name: _read_edge(name, fields) for name, fields in sorted(document.objects("edges").items())},
        interfaces={
            name: InterfaceType(name, _read_properties(fields))
            for name, fields in sorted(document.objects("interfaces").items())
        },
    )


def _read_node(name: str, fields: Fields) -> NodeType:
    return replace(_read_entity(NodeType, name, fields), implements=fields.names("implements"))


def _read_edge(name: str, fields: Fields) -> EdgeType:
    cardinality = Fields(fields.get("cardinality", dict), f"{fields.place}.cardinality")
    return replace(
        _read_entity(EdgeType, name, fields),
        from_type=fields.get("from", str),
        to_type=fields.get("to", str),
        cardinality=ast.Cardinality(cardinality.get("min", int), cardinality.find("max", int)),
    )


def _read_entity(kind: type[_Entity], name: str, fields: Fields) -> _Entity:
    return kind(
        name=name,
        properties=_read_properties(fields),
        key=fields.names("key") or None,
        uniques=fields.name_lists("uniques"),
        indexes=fields.name_lists("indexes"),
        ranges=tuple(
            ast.RangeConstraint(row.get("property", str), _read_bound(row, "low"), _read_bound(row, "high"))
            for row in fields.rows("ranges")
        ),
        checks=tuple(
            ast.CheckConstraint(row.get("property", str), row.get("pattern", str)) for row in fields.rows("checks")
        ),
        id=fields.hex("id"),
        incarnation=fields.hex("incarnation"),
        description=fields.find("description", str),
        instruction=fields.find("instruction", str),
        annotations=_read_annotations(fields),
    )


def _read_bound(row: Fields, name: str) -> int | float | None:
    bound = _read_literal(row.values.get(name), f"{row.place}.{name}")
    if isinstance(bound, str | bool):
        raise Malformed(f"{row.place}.{name} is not a number")
    return bound


def _read_properties(fields: Fields) -> dict[str, Property]:
    return {name: _read_property(name, prop) for name, prop in sorted(fields.objects("properties").items())}


def _read_property(name: str, fields: Fields) -> Property:
    try:
        prop_type = parse_type(fields.get("type", str))
    except ParseError as error:
        raise Malformed(f"{fields.place}.type: {error}") from None
    embed = fields.find("embed", dict)
    return Property(
        name=name,
        type=prop_type,
        id=fields.find("id", int) or 0,
        embed=_read_embed(Fields(embed, f"{fields.place}.embed")) if embed else None,
        default=_read_literal(fields.values.get("default"), f"{fields.place}.default"),
        metric=fields.find("metric", str) or "l2",
        description=fields.find("description", str),
        annotations=_read_annotations(fields),
    )


def _read_embed(fields: Fields) -> Embed:
    return Embed(fields.get("source", str), fields.find("model", str))


def _read_annotations(fields: Fields) -> tuple[ast.Annotation, ...]:
    return tuple(_read_annotation(row) for row in fields.rows("annotations"))


def _read_annotation(fields: Fields) -> ast.Annotation:
    written = fields.values.get("value")
    if isinstance(written, dict):
        value: ast.LiteralValue | ast.Name | None = ast.Name(Fields(written, f"{fields.place}.value").get("name", str))
    else:
        value = _read_literal(written, f"{fields.place}.value")
    return ast.Annotation(fields.get("name", str), value, tuple(_read_arguments(fields)))


def _read_arguments(fields: Fields) -> Iterator[tuple[str, ast.LiteralValue]]:
    place = f"{fields.place}.arguments"
    for argument in fields.find("arguments", list) or []:
        match argument:
            case [str(key), value] if (literal := _read_literal(value, place)) is not None:
                yield key, literal
            case _:
                raise Malformed(f"{place} is not a list of pairs of a name and a literal")


def _read_literal(value: object, place: str) -> ast.LiteralValue | None:
    if value is None or isinstance(value, str | int | float | bool):
        return value
    raise Malformed(f"{place} is not a literal")


def _of_kind(value: object, kind: type[_V], place: str) -> _V:
    # The exact type is compared, because `isinstance(True, int)` is true.
    if type(value) is not kind:
        raise Malformed(f"{place} is not of type {kind.__name__}")
    return value


def _names(values: list[object], place: str) -> tuple[str, ...]:
    return tuple(_of_kind(value, str, place) for value in values)
