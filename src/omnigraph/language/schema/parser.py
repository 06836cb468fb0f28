"""`.pg` text → SchemaFile: the grammar first, then every rule that one declaration can break by itself."""

from __future__ import annotations

from omnigraph.language.schema.annotations import (
    check_embed_sources,
    check_property_annotations,
    check_type_annotations,
)
from omnigraph.language.schema.ast import Declaration, EdgeDecl, InterfaceDecl, NodeDecl, SchemaFile
from omnigraph.language.schema.constraints import check_constraints, property_constraints
from omnigraph.language.schema.grammar import parse_declarations
from omnigraph.language.schema.interfaces import implement
from omnigraph.language.schema.properties import check_property_name
from omnigraph.language.source import Source, Span


def parse_schema(text: str, file: str | None = None, *, accepted: bool = False) -> SchemaFile:
    """Parse a schema; raises ParseError, and CatalogError where two interfaces contradict each other.

    `accepted`: it is the schema of a graph, from a time when patterns were allowed that are refused now.
    """
    source = Source(text, file)
    _refuse_half_characters(source)
    written = parse_declarations(source)
    # Of two interfaces with one name the first counts here; the catalog refuses such a schema.
    interfaces = {decl.name: decl for decl in reversed(written) if isinstance(decl, InterfaceDecl)}
    declarations = tuple(
        implement(decl, interfaces, source) if isinstance(decl, NodeDecl) else decl for decl in written
    )
    for declaration in declarations:
        _check(declaration, source, accepted)
    return SchemaFile(declarations, source)


def _refuse_half_characters(source: Source) -> None:
    """Refuse a text with half a surrogate pair: it could be parsed, but never written to a file."""
    try:
        source.text.encode()
    except UnicodeEncodeError as error:
        source.grammar_error("the text is not valid Unicode", Span(error.start, error.end))


def _check(declaration: Declaration, source: Source, accepted: bool) -> None:
    if isinstance(declaration, NodeDecl | EdgeDecl):
        check_type_annotations(declaration, source)
    for prop in declaration.properties:
        check_property_name(declaration, prop, source)
        check_property_annotations(declaration, prop, source)
    # An interface may leave the source of an `@embed` to the nodes that implement it.
    if isinstance(declaration, NodeDecl):
        check_embed_sources(declaration, source)
    owner = _as_node(declaration) if isinstance(declaration, InterfaceDecl) else declaration
    check_constraints(owner, source, accepted=accepted)


def _as_node(interface: InterfaceDecl) -> NodeDecl:
    """The node that an interface would be: its properties obey the same rules."""
    constraints = tuple(constraint for prop in interface.properties for constraint in property_constraints(prop))
    return NodeDecl(interface.name, (), (), interface.properties, constraints, interface.span)
