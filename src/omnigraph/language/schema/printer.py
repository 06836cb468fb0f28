"""Printing a catalog as `.pg` text with the same fingerprint, and printing declarations in their original order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal

from omnigraph.language.layout import HARD, LINE, SOFT, Doc, Group, Mark, Nest, filled, joined, render
from omnigraph.language.schema import ast
from omnigraph.language.schema.catalog import Catalog, EdgeType, EntityType, InterfaceType, NodeType, Property
from omnigraph.language.schema.ir import SchemaIR
from omnigraph.language.types import PropType
from omnigraph.language.written import Written

_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"})


def print_schema(schema: SchemaIR | Catalog) -> str:
    """The schema as text: interfaces, then nodes, then edges, each by name."""
    catalog = schema.catalog if isinstance(schema, SchemaIR) else schema
    declarations = [
        *(print_interface(interface) for interface in catalog.interfaces.values()),
        *(_node(node) for node in catalog.nodes.values()),
        *(_edge(edge) for edge in catalog.edges.values()),
    ]
    return "\n".join(declarations)


def print_type(entity: NodeType | EdgeType) -> str:
    """One type as text."""
    return _edge(entity) if isinstance(entity, EdgeType) else _node(entity)


def print_property(declared: Property) -> str:
    """One property as text, without the constraints of its type that name it."""
    return _property(declared, ())


def print_interface(interface: InterfaceType) -> str:
    """One interface as text."""
    return _block(f"interface {interface.name}", [_property(prop, ()) for prop in interface.properties.values()])


def _node(node: NodeType) -> str:
    implements = f"implements {', '.join(node.implements)}" if node.implements else ""
    return _block(_words(f"node {node.name}", *type_annotations(node), implements), _members(node))


def _edge(edge: EdgeType) -> str:
    header = _words(
        f"edge {edge.name}: {edge.from_type} -> {edge.to_type}",
        print_cardinality(edge.cardinality),
        *type_annotations(edge),
    )
    members = _members(edge)
    return _block(header, members) if members else f"{header}\n"


def _block(header: str, members: Sequence[str]) -> str:
    return "".join([f"{header} {{\n", *(f"  {member}\n" for member in members), "}\n"])


def _words(*words: str) -> str:
    return " ".join(word for word in words if word)


def print_cardinality(cardinality: ast.Cardinality) -> str:
    """`@card(…)`; an empty text for the default."""
    if cardinality == ast.Cardinality():
        return ""
    maximum = "" if cardinality.maximum is None else cardinality.maximum
    return f"@card({cardinality.minimum}..{maximum})"


# --- members ----------------------------------------------------------------------------------------------------------


def _members(entity: NodeType | EdgeType) -> list[str]:
    short: dict[str, list[str]] = {name: [] for name in entity.properties}
    body: list[str] = []
    for keyword, columns in _column_constraints(entity):
        if _has_short_form(keyword, columns, entity):
            short[columns[0]].append(f"@{keyword}")
        else:
            body.append(f"@{keyword}({', '.join(columns)})")
    body += map(print_rule, entity.ranges)
    body += map(print_rule, entity.checks)
    return [*(_property(prop, short[name]) for name, prop in entity.properties.items()), *body]


def print_rule(rule: ast.RangeConstraint | ast.CheckConstraint) -> str:
    """A `@range` or `@check`, as written in the body of a type."""
    if isinstance(rule, ast.RangeConstraint):
        return f"@range({rule.property}, {_bound(rule.low)}..{_bound(rule.high)})"
    return f"@check({rule.property}, {_literal(rule.pattern)})"


def _column_constraints(entity: EntityType) -> Iterator[tuple[str, tuple[str, ...]]]:
    if entity.key:
        yield "key", entity.key
    yield from (("unique", columns) for columns in entity.uniques)
    # A key includes an index.
    key = set(entity.key or ())
    yield from (("index", columns) for columns in entity.indexes if set(columns) != key)


def _has_short_form(keyword: str, columns: tuple[str, ...], entity: EntityType) -> bool:
    """Whether a constraint can be written after its property; required if the name starts with `true` or `false`."""
    if len(columns) != 1 or columns[0] not in entity.properties:
        return False
    prop_type = entity.properties[columns[0]].type
    return not prop_type.is_list and not (prop_type.is_vector and keyword != "index")


def _property(prop: Property, short_constraints: Iterable[str]) -> str:
    return _words(f"{prop.name}: {prop.type}", *short_constraints, *property_annotations(prop))


def property_annotations(prop: Property) -> Iterator[str]:
    """The annotations of a property, except its constraints."""
    if prop.embed:
        model = f", model={_literal(prop.embed.model)}" if prop.embed.model is not None else ""
        yield f"@embed({_literal(prop.embed.source)}{model})"
    if prop.default is not None:
        yield f"@default({_literal(prop.default)})"
    if prop.metric != "l2":
        yield f"@metric({_literal(prop.metric)})"
    if prop.description is not None:
        yield f"@description({_literal(prop.description)})"
    yield from map(_annotation, prop.annotations)


def type_annotations(entity: EntityType) -> Iterator[str]:
    """The annotations of a type."""
    if entity.description is not None:
        yield f"@description({_literal(entity.description)})"
    if entity.instruction is not None:
        yield f"@instruction({_literal(entity.instruction)})"
    yield from map(_annotation, entity.annotations)


def _annotation(annotation: ast.Annotation, written: Written | None = None) -> str:
    if annotation.value is None:
        return f"@{annotation.name}"
    value = annotation.value.text if isinstance(annotation.value, ast.Name) else _literal(annotation.value, written)
    arguments = (f"{key}={_literal(argument, written)}" for key, argument in annotation.arguments)
    return f"@{annotation.name}({', '.join([value, *arguments])})"


# --- declarations as they are written -----------------------------------------------------------------------------------

_KEYWORDS = {ast.KeyConstraint: "key", ast.UniqueConstraint: "unique", ast.IndexConstraint: "index"}


def print_declarations(file: ast.SchemaFile, written: Written) -> str:
    """The declarations of a file in their order, with the comments of the text that they were read from.

    `file` holds the output of the grammar, so inherited properties are not printed.
    """
    docs: list[Doc] = []
    short_before = False
    for declaration in file.declarations:
        is_short = isinstance(declaration, ast.EdgeDecl) and not (declaration.properties or declaration.constraints)
        # Edges without a body may follow each other without an empty line.
        mark = Mark(declaration.span.start, "keep" if is_short and short_before else "always")
        docs.append((mark, _declaration(declaration, written), HARD))
        short_before = is_short
    return render((*docs, Mark(len(file.source.text))), written)


def _declaration(declaration: ast.Declaration, written: Written) -> Doc:
    words: list[Doc] = []
    members: list[tuple[int, Doc]] = [(prop.span.start, _declared(prop, written)) for prop in declaration.properties]
    match declaration:
        case ast.InterfaceDecl():
            head = f"interface {declaration.name}"
        case ast.NodeDecl():
            head = f"node {declaration.name}"
            words = [_word(annotation, written) for annotation in declaration.annotations]
            if declaration.implements:
                words.append((LINE, f"implements {', '.join(declaration.implements)}"))
        case ast.EdgeDecl():
            head = f"edge {declaration.name}: {declaration.from_type} -> {declaration.to_type}"
            if declaration.cardinality != ast.Cardinality():
                words = [(LINE, print_cardinality(declaration.cardinality))]
            words += [_word(annotation, written) for annotation in declaration.annotations]
    if not isinstance(declaration, ast.InterfaceDecl):
        # The constraint of a bare `@key` has the span of its annotation, by which it is recognised and left out.
        sugar = {annotation.span for prop in declaration.properties for annotation in prop.annotations}
        own = [constraint for constraint in declaration.constraints if constraint.span not in sugar]
        members += [(constraint.span.start, _constraint(constraint, written)) for constraint in own]
    header = Group((head, Nest(tuple(words))))
    if not members and isinstance(declaration, ast.EdgeDecl):
        return header
    members.sort(key=lambda member: member[0])
    body = (
        (HARD, Mark(start, "keep" if number else "first"), member) for number, (start, member) in enumerate(members)
    )
    return (header, " {", Nest(tuple(body)), HARD, Mark(declaration.span.end - 1, "close"), "}")


def _declared(prop: ast.PropertyDecl, written: Written) -> Doc:
    words = tuple(_word(annotation, written) for annotation in prop.annotations)
    return Group((f"{prop.name}: ", _type(prop.type, prop.enum_values), Nest(words)))


def _type(kind: PropType, values: Sequence[str]) -> Doc:
    """A type; enum values keep the order in which they are written."""
    if not values:
        return str(kind)
    return (Group(("enum(", Nest((SOFT, filled(values))), SOFT, ")")), "?" if kind.nullable else "")


def _word(annotation: ast.Annotation, written: Written) -> Doc:
    return (LINE, Mark(annotation.span.start), _annotation(annotation, written))


def _constraint(constraint: ast.Constraint, written: Written) -> Doc:
    match constraint:
        case ast.RangeConstraint():
            return print_rule(constraint)
        case ast.CheckConstraint():
            return f"@check({constraint.property}, {_literal(constraint.pattern, written)})"
        case _:
            columns = joined(constraint.properties, (",", LINE))
            return Group((f"@{_KEYWORDS[type(constraint)]}(", Nest((SOFT, columns)), SOFT, ")"))


# --- literals ---------------------------------------------------------------------------------------------------------


def _literal(value: ast.LiteralValue, written: Written | None = None) -> str:
    if isinstance(value, str):
        spelt = written.spelling(value) if written else None
        return spelt or f'"{value.translate(_ESCAPES)}"'
    if isinstance(value, bool):
        return "true" if value else "false"
    return _number(value)


def _bound(value: int | float | None) -> str:
    return "" if value is None else _number(value)


def _number(value: int | float) -> str:
    """A number without an exponent, which the language does not have; a float always has a point."""
    if isinstance(value, int):
        return str(value)
    digits = format(Decimal(repr(value)), "f")
    return digits if "." in digits else f"{digits}.0"
