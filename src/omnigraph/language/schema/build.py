"""SchemaFile → Catalog: the meaning of a schema in canonical order, and the rules between declarations.
Two texts with the same meaning give equal catalogs, whatever the order of declarations, properties, constraints and
annotations,
and whether `@key` is written after a property or in the body.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from omnigraph.language.schema import ast
from omnigraph.language.schema.annotations import read_embed
from omnigraph.language.schema.catalog import Catalog, EdgeType, InterfaceType, NodeType, Property
from omnigraph.language.schema.constraints import ENDPOINTS
from omnigraph.language.schema.defaults import fit_default
from omnigraph.language.schema.parser import parse_schema
from omnigraph.language.source import Source, did_you_mean, nearest_name

# Annotations that have their own field in the catalog.
_TYPE_FIELDS = frozenset({"description", "instruction"})
_INTERFACE_PROPERTY_FIELDS = frozenset({"embed", "default", "metric", "description"})
_PROPERTY_FIELDS = _INTERFACE_PROPERTY_FIELDS | {"key", "unique", "index"}

_Declared = TypeVar("_Declared", ast.InterfaceDecl, ast.NodeDecl, ast.EdgeDecl)
_Entity = TypeVar("_Entity", NodeType, EdgeType)
_ValueConstraint = TypeVar("_ValueConstraint", ast.RangeConstraint, ast.CheckConstraint)
_ColumnConstraint = ast.KeyConstraint | ast.UniqueConstraint | ast.IndexConstraint
_ColumnKinds = type[_ColumnConstraint] | tuple[type[_ColumnConstraint], ...]


def compile_schema(text: str, file: str | None = None, *, accepted: bool = False) -> Catalog:
    """Parse a schema and build its catalog."""
    return build_catalog(parse_schema(text, file, accepted=accepted))


def build_catalog(schema: ast.SchemaFile) -> Catalog:
    """The catalog of a parsed schema; raises CatalogError where its declarations do not fit together."""
    source = schema.source
    interfaces = _by_name("interface", _of(ast.InterfaceDecl, schema.declarations), source)
    nodes = _by_name("node", _of(ast.NodeDecl, schema.declarations), source)
    edges = _by_name("edge", _of(ast.EdgeDecl, schema.declarations), source)
    for declaration in schema.declarations:
        _refuse_duplicate_properties(declaration, source)
    for edge in edges.values():
        _check_endpoints(edge, nodes, interfaces, source)
    _refuse_folded_duplicates(edges.values(), source)
    return Catalog(
        nodes={name: _node_type(nodes[name]) for name in sorted(nodes)},
        edges={name: _edge_type(edges[name]) for name in sorted(edges)},
        interfaces={name: _interface_type(interfaces[name]) for name in sorted(interfaces)},
    )


# --- rules between declarations ---------------------------------------------------------------------------------------


def _of(kind: type[_Declared], declarations: Iterable[ast.Declaration]) -> list[_Declared]:
    return [declaration for declaration in declarations if isinstance(declaration, kind)]


def _by_name(kind: str, declarations: Iterable[_Declared], source: Source) -> dict[str, _Declared]:
    found: dict[str, _Declared] = {}
    for declaration in declarations:
        if declaration.name in found:
            source.catalog_error(f"duplicate {kind} type `{declaration.name}`", declaration.span)
        found[declaration.name] = declaration
    return found


def _refuse_duplicate_properties(declaration: ast.Declaration, source: Source) -> None:
    seen: set[str] = set()
    for prop in declaration.properties:
        if prop.name in seen:
            source.catalog_error(f"duplicate property `{prop.name}` in {declaration.name}", prop.span)
        seen.add(prop.name)


def _check_endpoints(
    edge: ast.EdgeDecl, nodes: Mapping[str, ast.NodeDecl], interfaces: Mapping[str, ast.InterfaceDecl], source: Source
) -> None:
    for endpoint in (edge.from_type, edge.to_type):
        if endpoint in nodes:
            continue
        if endpoint in interfaces:
            source.catalog_error(
                f"edge {edge.name} has endpoint `{endpoint}`, which is an interface; endpoints must be node types",
                edge.span,
            )
        suggestion = nearest_name(endpoint, nodes)
        source.catalog_error(
            f"edge {edge.name} has an unknown endpoint type `{endpoint}`{did_you_mean(suggestion)}",
            edge.span,
            suggestion=suggestion,
        )


def _refuse_folded_duplicates(edges: Iterable[ast.EdgeDecl], source: Source) -> None:
    seen: dict[str, str] = {}
    for edge in edges:
        other = seen.setdefault(edge.name.lower(), edge.name)
        if other != edge.name:
            source.catalog_error(
                f"edges {other} and {edge.name} have one name after case folding; queries could not tell them apart",
                edge.span,
            )


# --- types ------------------------------------------------------------------------------------------------------------


def _node_type(node: ast.NodeDecl) -> NodeType:
    return replace(_entity_type(NodeType, node), implements=tuple(sorted(node.implements)))


def _edge_type(edge: ast.EdgeDecl) -> EdgeType:
    return replace(
        _entity_type(EdgeType, edge), from_type=edge.from_type, to_type=edge.to_type, cardinality=edge.cardinality
    )


def _entity_type(kind: type[_Entity], declared: ast.NodeDecl | ast.EdgeDecl) -> _Entity:
    return kind(
        name=declared.name,
        properties=_properties(declared.properties, _PROPERTY_FIELDS),
        key=next(iter(_columns(ast.KeyConstraint, declared)), None),
        uniques=_columns(ast.UniqueConstraint, declared),
        indexes=_columns((ast.IndexConstraint, ast.KeyConstraint), declared),
        ranges=_distinct(c for c in declared.constraints if isinstance(c, ast.RangeConstraint)),
        checks=_distinct(c for c in declared.constraints if isinstance(c, ast.CheckConstraint)),
        description=_text(declared.annotations, "description"),
        instruction=_text(declared.annotations, "instruction"),
        annotations=_metadata(declared.annotations, _TYPE_FIELDS),
    )


def _interface_type(interface: ast.InterfaceDecl) -> InterfaceType:
    return InterfaceType(interface.name, _properties(interface.properties, _INTERFACE_PROPERTY_FIELDS))


def _columns(kinds: _ColumnKinds, owner: ast.NodeDecl | ast.EdgeDecl) -> tuple[tuple[str, ...], ...]:
    """The distinct column sets of some constraints, each in identity order. A key is an index too."""
    # On a node, `src` is an ordinary property name.
    endpoints = ENDPOINTS if isinstance(owner, ast.EdgeDecl) else ()
    found = {_identity_order(c.properties, endpoints) for c in owner.constraints if isinstance(c, kinds)}
    return tuple(sorted(found))


def _identity_order(columns: Iterable[str], endpoints: Sequence[str] = ()) -> tuple[str, ...]:
    """Columns in identity order: endpoints first, then the others by name."""
    columns = set(columns)
    return (*(e for e in endpoints if e in columns), *sorted(columns.difference(endpoints)))


def _distinct(constraints: Iterable[_ValueConstraint]) -> tuple[_ValueConstraint, ...]:
    by_spelling = {ast.spelling(constraint): constraint for constraint in constraints}
    return tuple(by_spelling[key] for key in sorted(by_spelling))


# --- properties and annotations ---------------------------------------------------------------------------------------


def _properties(declared: Iterable[ast.PropertyDecl], fields: frozenset[str]) -> dict[str, Property]:
    return {prop.name: _property(prop, fields) for prop in sorted(declared, key=lambda prop: prop.name)}


def _property(prop: ast.PropertyDecl, fields: frozenset[str]) -> Property:
    embed = _find(prop.annotations, "embed")
    return Property(
        name=prop.name,
        type=prop.type,
        embed=read_embed(embed) if embed else None,
        default=_default(prop),
        metric=_text(prop.annotations, "metric") or "l2",
        description=_text(prop.annotations, "description"),
        annotations=_metadata(prop.annotations, fields),
    )


def _default(prop: ast.PropertyDecl) -> ast.LiteralValue | None:
    annotation = _find(prop.annotations, "default")
    if annotation is None or annotation.value is None or isinstance(annotation.value, ast.Name):
        return None
    return fit_default(prop.type, annotation.value)


def _metadata(annotations: Iterable[ast.Annotation], fields: frozenset[str]) -> tuple[ast.Annotation, ...]:
    """The annotations without their own field in the catalog, in canonical order."""
    kept = (replace(a, arguments=tuple(sorted(a.arguments, key=repr))) for a in annotations if a.name not in fields)
    return tuple(sorted(kept, key=ast.spelling))


def _text(annotations: Iterable[ast.Annotation], name: str) -> str | None:
    annotation = _find(annotations, name)
    return None if annotation is None else str(annotation.value)


def _find(annotations: Iterable[ast.Annotation], name: str) -> ast.Annotation | None:
    return next((annotation for annotation in annotations if annotation.name == name), None)
