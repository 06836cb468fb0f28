"""Section 1 of the behaviour table: every row, with its id."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from omnigraph.errors import CatalogError, LanguageError, ParseError
from omnigraph.language.schema.accept import accept_schema
from omnigraph.language.schema.ast import (
    Cardinality,
    EdgeDecl,
    IndexConstraint,
    KeyConstraint,
    NodeDecl,
    RangeConstraint,
    SchemaFile,
    UniqueConstraint,
)
from omnigraph.language.schema.build import build_catalog, compile_schema
from omnigraph.language.schema.catalog import Embed
from omnigraph.language.schema.ir import SchemaIR, catalog_of
from omnigraph.language.schema.parser import parse_schema
from omnigraph.language.types import PropType, Scalar


def node(schema: SchemaFile) -> NodeDecl:
    """The last node of a schema."""
    return [decl for decl in schema.declarations if isinstance(decl, NodeDecl)][-1]


def edge(schema: SchemaFile) -> EdgeDecl:
    """The only edge of a schema."""
    [found] = [decl for decl in schema.declarations if isinstance(decl, EdgeDecl)]
    return found


def annotation_names(schema: SchemaFile) -> dict[str, list[str]]:
    return {prop.name: [annotation.name for annotation in prop.annotations] for prop in node(schema).properties}


def property_types(schema: SchemaFile) -> dict[str, str]:
    return {prop.name: str(prop.type) for prop in node(schema).properties}


def texts(schema: SchemaFile) -> list[object]:
    declared = node(schema)
    return [a.value for a in (*declared.annotations, *declared.properties[0].annotations)]


def embed(schema: SchemaFile) -> Embed | None:
    return build_catalog(schema).nodes["Item"].properties["v"].embed


SCH_01 = """
node Staff { handle: String level: I32? } node Team { code: String }
edge Mentors: Staff -> Staff { began: Date? } edge MemberOf: Staff -> Team { role: String? }
"""
SCH_03 = """
interface Slugged { slug: String @key } interface Titled { title: String blurb: String? }
node Note implements Slugged, Titled { weight: F64 }
"""
SCH_06 = "node Item { a: String @unique b: U64 @key c: String @index }"
AB = "node A { x: String } node B { x: String } "

ACCEPTED: list[tuple[str, str, Callable[[SchemaFile], object], object]] = [
    (
        "SCH-01-order",
        SCH_01,
        lambda s: [decl.name for decl in s.declarations],
        ["Staff", "Team", "Mentors", "MemberOf"],
    ),
    (
        "SCH-01-nullable",
        SCH_01,
        lambda s: [prop.type for prop in s.declarations[0].properties],
        [PropType(Scalar.STRING), PropType(Scalar.I32, nullable=True)],
    ),
    (
        "SCH-01-cardinality",
        SCH_01,
        lambda s: [decl.cardinality for decl in s.declarations if isinstance(decl, EdgeDecl)],
        [Cardinality(0, None), Cardinality(0, None)],
    ),
    (
        "SCH-02",
        "interface Labelled { label: String } node Item implements Labelled { qty: I32? }",
        lambda s: [prop.name for prop in node(s).properties],
        ["qty", "label"],
    ),
    (
        "SCH-03-properties",
        SCH_03,
        property_types,
        {"weight": "F64", "slug": "String", "title": "String", "blurb": "String?"},
    ),
    ("SCH-03-key", SCH_03, lambda s: node(s).constraints, (KeyConstraint(("slug",)),)),
    (
        "SCH-06-constraints",
        SCH_06,
        lambda s: node(s).constraints,
        (UniqueConstraint(("a",)), KeyConstraint(("b",)), IndexConstraint(("c",))),
    ),
    ("SCH-06-annotations", SCH_06, annotation_names, {"a": ["unique"], "b": ["key"], "c": ["index"]}),
    (
        "SCH-08",
        "node Item { a: String b: String @unique(a, b) }",
        lambda s: node(s).constraints,
        (UniqueConstraint(("a", "b")),),
    ),
    (
        "SCH-12",
        "node Item { k: String @key n: I64? @range(n, -1000..1000) }",
        lambda s: [(c, type(c.low), type(c.high)) for c in node(s).constraints if isinstance(c, RangeConstraint)],
        [(RangeConstraint("n", -1000, 1000), int, int)],
    ),
    ("SCH-16", AB + "edge R: A -> B @card(0..1)", lambda s: edge(s).cardinality, Cardinality(0, 1)),
    ("SCH-17", AB + "edge R: A -> B @card(1..)", lambda s: edge(s).cardinality, Cardinality(1, None)),
    (
        "SCH-19",
        "node A { x: String } edge R: A -> A { @unique(src, dst) }",
        lambda s: edge(s).constraints,
        (UniqueConstraint(("src", "dst")),),
    ),
    (
        "SCH-20",
        "node A { x: String } edge R: A -> A { w: I32 @unique since: Date? @index }",
        lambda s: edge(s).constraints,
        (UniqueConstraint(("w",)), IndexConstraint(("since",))),
    ),
    (
        "SCH-29",
        "node Item { v: Vector(3) }",
        lambda s: node(s).properties[0].type,
        PropType(Scalar.VECTOR, dimension=3),
    ),
    ("SCH-31-name", "node Item { t: String v: Vector(3) @embed(t) }", embed, Embed("t", None)),
    ("SCH-31-model", 'node Item { t: String v: Vector(3) @embed("t", model="m/x") }', embed, Embed("t", "m/x")),
    (
        "SCH-40",
        r'node T @description("a\n\"b\"\\c") { s: String @key @description("x\ty") }',
        texts,
        ['a\n"b"\\c', None, "x\ty"],
    ),
    (
        "SCH-52",
        "node Same { x: String } edge Same: Same -> Same { x: String? }",
        lambda s: (list(build_catalog(s).nodes), list(build_catalog(s).edges)),
        (["Same"], ["Same"]),
    ),
]


@pytest.mark.parametrize(("source", "read", "expected"), [pytest.param(*row, id=i) for i, *row in ACCEPTED])
def test_accepted(source: str, read: Callable[[SchemaFile], object], expected: object) -> None:
    assert read(parse_schema(source)) == expected


RENAMES = {
    "none": "@rename_from",
    "no-value": "@rename_from()",
    "empty": '@rename_from("")',
    "blank": '@rename_from("  ")',
    "two": '@rename_from("A", "B")',
    "kwarg": '@rename_from(old="A")',
    "value-and-kwarg": '@rename_from("A", old="B")',
    "repeated": '@rename_from("A") @rename_from("B")',
    "number": "@rename_from(7)",
}
PLACES = {
    "node": "node T {} {{ s: String }}",
    "property": "node T {{ s: String {} }}",
    "edge": "node T {{ s: String }} edge U: T -> T {}",
    "edge-property": "node T {{ s: String }} edge U: T -> T {{ s: String {} }}",
    "interface-property": "interface T {{ s: String {} }}",
}
BLOBS = [
    ("key", "node D { p: Blob @key(p) }", "D.p"),
    ("unique", "node D { p: Blob @unique(p) }", "D.p"),
    ("unique", "node D { n: String p: Blob? @unique(n, p) }", "D.p"),
    ("index", "node D { p: Blob @index(p) }", "D.p"),
    ("embed", "node D { t: String p: Blob @embed(t) }", "D.p"),
]

# (row, source, what the message contains)
REFUSED: list[tuple[str, str, str]] = [
    ("SCH-04", "node Item implements Missing { a: String }", "unknown interface"),
    ("SCH-14", "node Item { a: String @range(a, 0..9) }", "numeric"),
    ("SCH-15", 'node Item { n: I32 @check(n, "[0-9]+") }', "String"),
    ("SCH-21", "node A { x: String } edge R: A -> A { w: I32 @key }", "not supported on edges"),
    ("SCH-22", "node Item { a: U64 @key b: String @key }", "multiple @key"),
    ("SCH-23-unique", 'node Item { a: String @unique("x") }', "must be a property"),
    ("SCH-23-index", 'node Item { a: String @index("x") }', "must be a property"),
    ("SCH-23-key", 'node Item { a: String @key("x") }', "must be a property"),
    ("SCH-24-unique", "node Item @unique { a: String }", "only supported on node properties"),
    ("SCH-24-index", "node Item @index { a: String }", "only supported on node properties"),
    ("SCH-26", "node Item { a: String? @key }", "nullable"),
    ("SCH-28", "node Item { st: enum(open, closed, open) }", "duplicate values"),
    ("SCH-30-zero", "node Item { v: Vector(0) }", "Vector dimension must be greater than zero"),
    ("SCH-30-large", "node Item { v: Vector(2147483648) }", "exceeds maximum supported"),
    ("SCH-32", 'node Item { t: String v: Vector(3) @embed("t", provider="p") }', "only 'model' is supported"),
    ("SCH-33", "node Item { t: String v: Vector(3) @embed }", "requires a source property name"),
    ("SCH-38", "node D { p: Blob v: Vector(3) @embed(p) }", "@embed source property D.p must be String"),
    ("SCH-41", r'node T @description("bad\q") { s: String }', "unsupported escape sequence"),
    (
        "SCH-43",
        'node T { s: String @instruction("x") }',
        "@instruction is only supported on node and edge types",
    ),
]


@pytest.mark.parametrize(("source", "message"), [pytest.param(*row, id=i) for i, *row in REFUSED])
def test_refused(source: str, message: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse_schema(source)
    assert caught.value.semantic
    assert caught.value.message.startswith("parse error: ")
    assert message in caught.value.message
    assert_place(caught.value, source)


@pytest.mark.parametrize(
    ("keyword", "source", "place"),
    [
        *(pytest.param(*row, id=f"SCH-36-{row[0]}-{number}") for number, row in enumerate(BLOBS)),
        pytest.param("unique", "node D { n: String } edge A: D -> D { p: Blob? @unique(src, p) }", "A.p", id="SCH-37"),
    ],
)
def test_blobs_have_no_index(keyword: str, source: str, place: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse_schema(source)
    assert caught.value.message == f"parse error: @{keyword} is not supported on blob property {place}"
    assert caught.value.semantic


@pytest.mark.parametrize(
    "source",
    [
        pytest.param(place.format(rename), id=f"SCH-45-{where}-{case}")
        for where, place in PLACES.items()
        for case, rename in RENAMES.items()
    ],
)
def test_malformed_rename_from(source: str) -> None:
    with pytest.raises(ParseError, match="rename_from") as caught:
        parse_schema(source)
    assert_place(caught.value, source)


@pytest.mark.parametrize("source", [pytest.param("node { }", id="SCH-47")])
def test_grammar_errors_have_a_place(source: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse_schema(source, "s.pg")
    assert not caught.value.semantic
    assert (caught.value.start, caught.value.end) == (5, 6)
    assert (caught.value.file, caught.value.line, caught.value.column) == ("s.pg", 1, 6)
    assert caught.value.source_line == source


@pytest.mark.parametrize(
    "source", [pytest.param("node A { x: String } edge Links: A -> A edge LINKS: A -> A", id="SCH-50")]
)
def test_edges_that_only_differ_in_case(source: str) -> None:
    schema = parse_schema(source)
    with pytest.raises(CatalogError, match="case folding") as caught:
        build_catalog(schema)
    assert_place(caught.value, source)


@pytest.mark.parametrize(
    "source",
    [
        pytest.param(
            'node T @description("d") @instruction("i") { s: String @key @description("p") } '
            'edge U: T -> T @description("e") @instruction("j")',
            id="SCH-44",
        )
    ],
)
def test_texts_persist_in_the_accepted_schema(source: str) -> None:
    stored = accept_schema(compile_schema(source)).to_json()
    catalog = catalog_of(SchemaIR.from_json(stored))
    node_type, edge_type = catalog.nodes["T"], catalog.edges["U"]
    assert (node_type.description, node_type.instruction) == ("d", "i")
    assert node_type.properties["s"].description == "p"
    assert (edge_type.description, edge_type.instruction) == ("e", "j")


def assert_place(error: LanguageError, source: str) -> None:
    """The error points into the source."""
    assert error.start is not None
    assert error.end is not None
    assert 0 <= error.start < error.end <= len(source.encode()) + 1
    assert error.line == 1
    assert error.column == error.start + 1
