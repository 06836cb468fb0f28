"""The catalog: what a schema means, and the rules between its declarations."""

from __future__ import annotations

import pytest

from omnigraph.language.schema.ast import Annotation, Cardinality, CheckConstraint, Name, RangeConstraint
from omnigraph.language.schema.build import compile_schema
from omnigraph.language.schema.catalog import Embed, Property
from omnigraph.language.schema.ir import fingerprint
from omnigraph.language.types import PropType, Scalar
from tests.language.schema.parsing import catalog_refusal

REFUSED = [
    ("duplicate-node", "node A { } node A { }", "duplicate node type `A`"),
    ("duplicate-edge", "node A { } edge R: A -> A edge R: A -> A", "duplicate edge type `R`"),
    ("duplicate-interface", "interface I { } interface I { }", "duplicate interface type `I`"),
    ("duplicate-property", "node A { x: String x: I32 }", "duplicate property `x` in A"),
    ("duplicate-property-same", "node A { x: String x: String }", "duplicate property `x` in A"),
    ("duplicate-edge-property", "node A { } edge R: A -> A { x: I32 y: I32 x: I32 }", "duplicate property `x` in R"),
    ("duplicate-interface-property", "interface I { x: I32 x: I32 }", "duplicate property `x` in I"),
    ("unknown-source", "node A { } edge R: B -> A", "unknown endpoint type `B`"),
    ("unknown-target", "node A { } edge R: A -> B", "unknown endpoint type `B`"),
    ("near-endpoint", "node Person { } edge R: Person -> Persn", "did you mean `Person`?"),
    ("interface-endpoint", "interface I { } node A { } edge R: A -> I", "endpoints must be node types"),
    ("edge-endpoint", "node A { } edge R: A -> A edge S: A -> R", "unknown endpoint type `R`"),
    ("case-folding", "node A { } edge KnowsOf: A -> A edge Knowsof: A -> A", "case folding"),
]


@pytest.mark.parametrize(("source", "message"), [pytest.param(*row, id=i) for i, *row in REFUSED])
def test_declarations_that_do_not_fit_together(source: str, message: str) -> None:
    found = catalog_refusal(source)
    assert found.startswith("catalog error: ")
    assert message in found


@pytest.mark.parametrize(
    "source",
    [
        "node A { } node a_ { }".replace("a_", "Aa"),
        "node A { } node AA { } edge A: A -> AA edge AA: AA -> A",
        "node I { } interface I { } edge I: I -> I",
        "edge R: A -> B node B { } node A { }",
        "node Knows { } node KNOWS { }",
        "node A { } edge Not: A -> A edge Note: A -> A",
    ],
)
def test_names_that_may_be_shared(source: str) -> None:
    compile_schema(source)


SOURCE = """
node Paper @rename_from("Article") @owner("me", z=1, a=2) @instruction("read") @description("a paper")
implements Titled {
  year: I32? @default(2000) @description("printed")
  @unique(year, code) @index(title, code)
  vector: Vector(2) @embed(title, model="m") @metric("dot") @index
  code: String @key @beta @alpha(x)
  @range(year, 0..) @range(year, ..9) @range(year, 0..) @check(code, "b") @check(code, "a")
}
edge Cites: Paper -> Paper @card(1..2) @description("why") {
  weight: F64 note: String? a: I32
  @key(src, dst, weight, a) @unique(note, dst, src) @index(note)
}
interface Titled { title: String @unique @tag }
"""


def test_a_node() -> None:
    node = compile_schema(SOURCE).nodes["Paper"]
    assert list(node.properties) == ["code", "title", "vector", "year"]
    assert node.key == ("code",)
    assert node.uniques == (("code", "year"), ("title",))
    assert node.indexes == (("code",), ("code", "title"), ("vector",))
    assert node.ranges == (RangeConstraint("year", 0, None), RangeConstraint("year", None, 9))
    assert node.checks == (CheckConstraint("code", "a"), CheckConstraint("code", "b"))
    assert (node.description, node.instruction) == ("a paper", "read")
    assert node.annotations == (Annotation("owner", "me", (("a", 2), ("z", 1))), Annotation("rename_from", "Article"))
    assert (node.implements, node.id, node.incarnation, node.type_key) == (("Titled",), 0, 0, "node:Paper")


def test_its_properties() -> None:
    properties = compile_schema(SOURCE).nodes["Paper"].properties
    assert properties["year"] == Property(
        "year", PropType(Scalar.I32, nullable=True), default=2000, description="printed"
    )
    assert properties["vector"] == Property(
        "vector", PropType(Scalar.VECTOR, dimension=2), embed=Embed("title", "m"), metric="dot"
    )
    assert properties["code"].annotations == (Annotation("alpha", Name("x")), Annotation("beta"))
    assert properties["title"].annotations == (Annotation("tag"),)
    assert properties["title"].metric == "l2"


def test_an_edge() -> None:
    edge = compile_schema(SOURCE).edges["Cites"]
    assert (edge.from_type, edge.to_type, edge.cardinality) == ("Paper", "Paper", Cardinality(1, 2))
    assert edge.key == ("src", "dst", "a", "weight")
    assert edge.uniques == (("src", "dst", "note"),)
    assert edge.indexes == (("note",), ("src", "dst", "a", "weight"))
    assert (edge.description, edge.instruction, edge.type_key) == ("why", None, "edge:Cites")


def test_an_interface_keeps_its_short_constraints() -> None:
    [title] = compile_schema(SOURCE).interfaces["Titled"].properties.values()
    assert title.annotations == (Annotation("tag"), Annotation("unique"))


def test_a_node_key_is_in_name_order_even_if_it_is_called_like_an_endpoint() -> None:
    node = compile_schema("node N { src: String dst: String a: String @key(src, dst, a) }").nodes["N"]
    assert node.key == ("a", "dst", "src")


def test_edges_are_found_by_folded_name() -> None:
    catalog = compile_schema("node A { } edge MemberOf: A -> A")
    assert catalog.edge("memberOf") is catalog.edges["MemberOf"]
    assert catalog.edge("members") is None


SAME_MEANING = [
    ("short-key", "node A { x: String @key }", "node A { x: String @key(x) }"),
    ("short-unique", "node A { x: String @unique }", "node A { @unique(x) x: String }"),
    ("key-is-indexed", "node A { x: String @key }", "node A { x: String @key @index }"),
    ("column-order", "node A { x: I32 y: I32 @unique(x, y) }", "node A { y: I32 x: I32 @unique(y, x) }"),
    ("repeated", "node A { x: I32 @unique }", "node A { x: I32 @unique @unique(x) }"),
    (
        "int-or-float",
        "node A { x: F64 @range(x, 0..) @range(x, 0.0..) }",
        "node A { x: F64 @range(x, 0.0..) @range(x, 0..) }",
    ),
    ("argument-order", 'node A @m(1, a=1, a="x", b=true) { }', 'node A @m(1, b=true, a="x", a=1) { }'),
    ("enum-order", "node A { x: enum(b, a) }", "node A { x: enum(a, b) }"),
    ("default-card", "node A { } edge R: A -> A", "node A { } edge R: A -> A @card(0..) { }"),
    ("default-metric", "node A { v: Vector(1) }", 'node A { v: Vector(1) @metric("l2") }'),
    ("default-spelling", "node A { x: F64 @default(1) }", "node A { x: F64 @default(1.0) }"),
    ("date-spelling", 'node A { x: Date @default("1970-01-02") }', "node A { x: Date @default(1) }"),
    ("embed-quotes", "node A { t: String v: Vector(1) @embed(t) }", 'node A { t: String v: Vector(1) @embed("t") }'),
    (
        "inherited",
        "interface I { x: I32 @unique } node A implements I { }",
        "interface I { x: I32 @unique } node A implements I { x: I32 @unique }",
    ),
    (
        "implements-order",
        "interface I { } interface J { } node A implements I, J { }",
        "interface J { } interface I { } node A implements J, I { }",
    ),
]


@pytest.mark.parametrize(("left", "right"), [pytest.param(*row, id=i) for i, *row in SAME_MEANING])
def test_one_meaning_is_one_catalog(left: str, right: str) -> None:
    assert compile_schema(left) == compile_schema(right)
    assert fingerprint(compile_schema(left)) == fingerprint(compile_schema(right))
