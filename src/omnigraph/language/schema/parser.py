"""`.pg` text → SchemaFile: the grammar first, then all rules about single declarations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from omnigraph.language.schema import ast
from omnigraph.language.schema.annotations import (
    check_embed_sources,
    check_property_annotations,
    check_type_annotations,
)
from omnigraph.language.schema.constraints import check_constraints, property_constraints
from omnigraph.language.schema.grammar import parse_declarations
from omnigraph.language.source import Source, Span, did_you_mean, nearest_name
from omnigraph.language.types import PropType


def implement(node: ast.NodeDecl, interfaces: Mapping[str, ast.InterfaceDecl], source: Source) -> ast.NodeDecl:
    """The node with the inherited properties that it does not declare itself, and their short constraints."""
    own = {prop.name: prop for prop in node.properties}
    inherited: dict[str, tuple[ast.InterfaceDecl, ast.PropertyDecl]] = {}
    for interface in _implemented(node, interfaces, source):
        for prop in interface.properties:
            if prop.name in own:
                _refuse_other_type(node, own[prop.name], interface, prop, source)
            elif prop.name not in inherited:
                inherited[prop.name] = (interface, prop)
            elif _meaning(inherited[prop.name][1]) != _meaning(prop):
                first = inherited[prop.name][0].name
                source.catalog_error(
                    f"interfaces {first} and {interface.name} give {node.name} different properties `{prop.name}`; "
                    f"declare `{prop.name}` in {node.name} or make the two the same",
                    node.span,
                )
    added = tuple(prop for _, prop in inherited.values())
    constraints = tuple(constraint for prop in added for constraint in property_constraints(prop))
    return replace(node, properties=node.properties + added, constraints=node.constraints + constraints)


def _meaning(prop: ast.PropertyDecl) -> tuple[PropType, list[str]]:
    """The part of a property declaration that must be equal in two interfaces: type and annotations."""
    return prop.type, sorted(map(ast.spelling, prop.annotations))


def _implemented(
    node: ast.NodeDecl, interfaces: Mapping[str, ast.InterfaceDecl], source: Source
) -> list[ast.InterfaceDecl]:
    for name, times in Counter(node.implements).items():
        if name not in interfaces:
            suggestion = nearest_name(name, interfaces)
            source.semantic_error(
                f"node {node.name} implements unknown interface `{name}`{did_you_mean(suggestion)}",
                node.span,
                suggestion=suggestion,
            )
        if times > 1:
            source.semantic_error(f"node {node.name} implements {name} more than once", node.span)
    return [interfaces[name] for name in node.implements]


def _refuse_other_type(
    node: ast.NodeDecl, own: ast.PropertyDecl, interface: ast.InterfaceDecl, prop: ast.PropertyDecl, source: Source
) -> None:
    if own.type != prop.type:
        source.semantic_error(
            f"property {node.name}.{own.name} is {own.type}, but {interface.name}.{prop.name} is {prop.type}; "
            f"a node declares a property of its interface with the identical type",
            own.span,
        )


# Columns that the storage format adds to rows that it returns. The match is exact: `_ROWID` is allowed.
SYSTEM_COLUMNS = frozenset(
    {"_rowid", "_rowaddr", "_rowoffset", "_row_created_at_version", "_row_last_updated_at_version"}
)
NODE_COLUMNS = frozenset({"id"})
EDGE_COLUMNS = frozenset({"id", "src", "dst", "from", "to"})


def check_property_name(owner: ast.Declaration, prop: ast.PropertyDecl, source: Source) -> None:
    """Raise an error for a property name that is the name of a built-in column or field of every row."""
    if prop.name in SYSTEM_COLUMNS:
        source.semantic_error(
            f"property name `{prop.name}` of {owner.name} is reserved: "
            "it would clash with a system column of exported rows; choose another name",
            prop.span,
        )
    taken = EDGE_COLUMNS if isinstance(owner, ast.EdgeDecl) else NODE_COLUMNS
    if prop.name in taken:
        kind = "edge" if isinstance(owner, ast.EdgeDecl) else "node"
        source.semantic_error(
            f"property name `{prop.name}` of {owner.name} is reserved: every {kind} already has one; rename it",
            prop.span,
        )


def parse_schema(text: str, file: str | None = None, *, accepted: bool = False) -> ast.SchemaFile:
    """Parse a schema; raises ParseError, and CatalogError where two interfaces contradict each other.
    `accepted`: a graph has this schema already; it may contain patterns that new schemas may not.
    """
    source = Source(text, file)
    _refuse_half_characters(source)
    written = parse_declarations(source)
    # Of two interfaces with the same name the first is used here; the catalog refuses such a schema.
    interfaces = {decl.name: decl for decl in reversed(written) if isinstance(decl, ast.InterfaceDecl)}
    declarations = tuple(
        implement(decl, interfaces, source) if isinstance(decl, ast.NodeDecl) else decl for decl in written
    )
    for declaration in declarations:
        _check(declaration, source, accepted)
    return ast.SchemaFile(declarations, source)


def _refuse_half_characters(source: Source) -> None:
    """Raise an error for a text with half a surrogate pair, which can be parsed but not written to a file."""
    try:
        source.text.encode()
    except UnicodeEncodeError as error:
        source.grammar_error("the text is not valid Unicode", Span(error.start, error.end))


def _check(declaration: ast.Declaration, source: Source, accepted: bool) -> None:
    if isinstance(declaration, ast.NodeDecl | ast.EdgeDecl):
        check_type_annotations(declaration, source)
    for prop in declaration.properties:
        check_property_name(declaration, prop, source)
        check_property_annotations(declaration, prop, source)
    # An interface may leave the source of an `@embed` to the nodes that implement it.
    if isinstance(declaration, ast.NodeDecl):
        check_embed_sources(declaration, source)
    owner = _as_node(declaration) if isinstance(declaration, ast.InterfaceDecl) else declaration
    check_constraints(owner, source, accepted=accepted)


def _as_node(interface: ast.InterfaceDecl) -> ast.NodeDecl:
    """The interface as a node, so that the same rules check its properties."""
    constraints = tuple(constraint for prop in interface.properties for constraint in property_constraints(prop))
    return ast.NodeDecl(interface.name, (), (), interface.properties, constraints, interface.span)
