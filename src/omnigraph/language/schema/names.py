"""The names in a `.pg` text: declarations of types and properties, and where they are used."""

from __future__ import annotations

from collections.abc import Iterator

from omnigraph.language.names import Occurrence, named
from omnigraph.language.schema.ast import Declaration, EdgeDecl, InterfaceDecl, NodeDecl
from omnigraph.language.schema.grammar import parse_declarations
from omnigraph.language.source import Source, Span
from omnigraph.language.written import Written


def type_key(declaration: Declaration) -> str:
    """The type key of a declaration, such as `node:Staff`; an interface counts as a node."""
    return f"{'edge' if isinstance(declaration, EdgeDecl) else 'node'}:{declaration.name}"


def schema_names(text: str) -> list[Occurrence]:
    """All names of types and properties; raises ParseError."""
    source = Source(text)
    written = Written(source)
    found: list[Occurrence] = []
    for declaration in parse_declarations(source):
        found += _of(declaration, written)
    return found


def _of(declaration: Declaration, written: Written) -> Iterator[Occurrence]:
    tokens = written.within(declaration.span)
    is_edge = isinstance(declaration, EdgeDecl)
    name = named(tokens, declaration.name)
    if name is not None:
        yield Occurrence("edge" if is_edge else "node", declaration.name, name, declares=True)
    if isinstance(declaration, EdgeDecl) and name is not None:
        # The end types, after `:` and `->`.
        start = name.end
        for end in (declaration.from_type, declaration.to_type):
            at = named(written.within(Span(start, declaration.span.end)), end)
            if at is not None:
                yield Occurrence("node", end, at)
                start = at.end
    if isinstance(declaration, NodeDecl) and declaration.implements:
        first = min([member.span.start for member in declaration.properties], default=declaration.span.end)
        start = written.before(first, "implements")
        for interface in declaration.implements:
            at = named(written.within(Span(start, first)), interface)
            if at is not None:
                yield Occurrence("node", interface, at)
    owners = (type_key(declaration),)
    for prop in declaration.properties:
        at = Span(prop.span.start, prop.span.start + len(prop.name))
        yield Occurrence("property", prop.name, at, declares=True, owners=owners)
    if not isinstance(declaration, InterfaceDecl):
        own = {prop.name for prop in declaration.properties}
        for constraint in declaration.constraints:
            yield from _used(written, constraint.span, own, owners)
    for prop in declaration.properties:
        for annotation in prop.annotations:
            if annotation.name == "embed":
                yield from _used(written, annotation.span, {other.name for other in declaration.properties}, owners)


def _used(written: Written, span: Span, names: set[str], owners: tuple[str, ...]) -> Iterator[Occurrence]:
    """The property names inside of a constraint or of `@embed`; a name may also be written as a string."""
    inside = False
    for token in written.within(span):
        inside = inside or token.text == "("
        bare = token.text.strip('"')
        quotes = (len(token.text) - len(bare)) // 2
        if inside and bare in names:
            yield Occurrence("property", bare, Span(token.start + quotes, token.span.end - quotes), owners=owners)
