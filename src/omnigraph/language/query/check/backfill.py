"""A backfill, `Person.slug = lower(name)`: an expression over existing rows, for a property of the wanted schema."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NoReturn

from omnigraph.language.query import ast
from omnigraph.language.query.check.mutations import assigned_value, row_words
from omnigraph.language.query.check.scope import Scope
from omnigraph.language.query.expressions import parse_expr
from omnigraph.language.query.hints import hint_at
from omnigraph.language.query.ir import ROW, Assign, Column, Expr
from omnigraph.language.scanner import Mismatch, Scanner
from omnigraph.language.schema.catalog import Catalog, EdgeType, NodeType, Property
from omnigraph.language.source import Source, Span

Entity = NodeType | EdgeType

#: The file name in the place of an error in a backfill.
NAME = "backfill"


@dataclass(frozen=True, slots=True)
class Backfill:
    """The value that one property of a type gets in rows without a value. `text`: the expression as it was written."""

    entity: Entity
    assign: Assign
    text: str


#: The properties that a schema change drops from a type, by their old names.
Dropped = Callable[[Entity], Mapping[str, Property]]


def check_backfill(text: str, catalog: Catalog, dropped: Dropped) -> Backfill:
    """Parse and check a backfill against the wanted schema; errors point at their place in the text.

    The expression reads the properties of the row by their new names, and dropped properties by their old names.
    """
    source = Source(text, NAME)
    scope = Scope(source, catalog, params={})
    assignment, type_name, at_type, written = _parse(source)
    target = catalog.nodes.get(type_name) or catalog.edges.get(type_name)
    if target is None:
        known = (*catalog.nodes, *catalog.edges)
        scope.error("T10", f"unknown type `{type_name}`", at_type, name=type_name, known=known)
    declared = target.properties.get(assignment.property)
    if declared is None:
        scope.error(
            "T11",
            f"no property `{assignment.property}` on {target.name}",
            assignment.span,
            name=assignment.property,
            known=target.properties,
        )
    if declared.type.is_blob:
        scope.error("T35", f"Blob property `{assignment.property}` can not be backfilled", assignment.span)
    words: dict[str, Expr] = {
        name: Column(ROW, name, old.type) for name, old in dropped(target).items() if not old.type.is_blob
    }
    words |= row_words(target)
    inner = scope.at("mutation", words, _no_word(scope, target, words))
    owner = f"`{target.name}.{assignment.property}`"
    value = assigned_value(inner, assignment, declared.type, owner)
    return Backfill(target, Assign(assignment.property, value, declared.type), written)


def _parse(source: Source) -> tuple[ast.Assignment, str, Span, str]:
    """The assignment, the name of the type and its place, and the text of the expression."""
    scanner = Scanner(source)
    try:
        start = scanner.at
        type_name = scanner.take_type_name()
        at_type = scanner.span_from(start)
        scanner.expect(".")
        start = scanner.at
        name = scanner.take_ident()
        named = scanner.span_from(start)
        scanner.expect("=")
        begin = scanner.at
        value = parse_expr(scanner)
        if not scanner.at_end():
            scanner.fail("the end")
    except Mismatch:
        scanner.grammar_error(hint_at(source.text, scanner.furthest))
    return ast.Assignment(name, value, named), type_name, at_type, source.text[begin:].strip()


def _no_word(scope: Scope, target: Entity, words: Mapping[str, Expr]) -> Callable[[str, Span], NoReturn]:
    def refuse(name: str, span: Span) -> NoReturn:
        known = [word for word in words if not word.startswith("@")]
        scope.error("T11", f"no property `{name}` on {target.name}", span, name=name, known=known)

    return refuse
