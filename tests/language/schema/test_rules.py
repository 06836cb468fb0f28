"""The rules of properties, constraints, annotations and interfaces: what is accepted and what is refused."""

from __future__ import annotations

import pytest

from omnigraph.language.schema.ast import Constraint, IndexConstraint, KeyConstraint, NodeDecl, UniqueConstraint
from omnigraph.language.schema.build import compile_schema
from omnigraph.language.schema.parser import parse_schema
from tests.language.schema.parsing import catalog_refusal, refusal, semantic_refusal

SYSTEM_COLUMNS = ["_rowid", "_rowaddr", "_rowoffset", "_row_created_at_version", "_row_last_updated_at_version"]
NODE = "node N {{ {} }}"
EDGE = "node A {{ x: String }} edge N: A -> A {{ {} }}"
INTERFACE = "interface N {{ {} }}"
EVERYWHERE = [NODE, EDGE, INTERFACE]


# --- names ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SYSTEM_COLUMNS)
@pytest.mark.parametrize("place", EVERYWHERE)
def test_system_columns_are_reserved(place: str, name: str) -> None:
    message = semantic_refusal(place.format(f"{name}: I64"))
    assert "reserved" in message
    assert f"`{name}`" in message
    assert "exported" in message


@pytest.mark.parametrize(
    ("place", "name"),
    [
        (NODE, "id"),
        (INTERFACE, "id"),
        *((EDGE, name) for name in ("id", "src", "dst", "from", "to")),
    ],
)
def test_columns_that_every_row_has(place: str, name: str) -> None:
    assert f"`{name}`" in semantic_refusal(place.format(f"{name}: String"))


@pytest.mark.parametrize(
    ("place", "name"),
    [
        *((place, name) for place in EVERYWHERE for name in ("_row_id", "_rowid2", "_ROWID", "_rowId", "iD", "ids")),
        *((NODE, name) for name in ("src", "dst", "from", "to")),
        (INTERFACE, "src"),
    ],
)
def test_names_that_only_look_reserved(place: str, name: str) -> None:
    compile_schema(place.format(f"{name}: String"))


# --- constraints ------------------------------------------------------------------------------------------------------

ACCEPTED_CONSTRAINTS = [
    ("key-composite", NODE, "b: U32 a: String @key(b, a)"),
    ("key-of-every-scalar", NODE, "a: String b: Bool c: I32 d: U64 e: F32 f: F64 g: Date h: DateTime i: enum(x) "
     "@key(a, b, c, d, e, f, g, h, i)"),
    ("key-before-property", NODE, "@key(a) a: String"),
    ("unique-list", NODE, "a: [String] @unique(a)"),
    ("unique-vector", NODE, "a: Vector(2) @unique(a)"),
    ("unique-nullable", NODE, "a: String? @unique"),
    ("unique-twice", NODE, "a: String @unique b: String @unique @unique(a, b)"),
    ("unique-source", EDGE, "@unique(src)"),
    ("index-list", NODE, "a: [String] @index(a)"),
    ("index-vector-short", NODE, "a: Vector(2) @index"),
    ("index-edge", EDGE, "a: Date? @index b: I32 @index(a, b)"),
    ("index-and-key", NODE, "a: String @key @index"),
    ("range-nullable", NODE, "a: U32? @range(a, ..9)"),
    ("range-float", NODE, "a: F32 @range(a, -0.5..0.5)"),
    ("range-twice", NODE, "a: I32 @range(a, 0..) @range(a, ..9)"),
    ("check-nullable", NODE, 'a: String? @check(a, "^x")'),
    ("check-enum", NODE, 'a: enum(x, y) @check(a, "x")'),
    ("edge-key", EDGE, "@key(src, dst)"),
    ("edge-key-more", EDGE, "w: I32 v: String @key(src, dst, w, v)"),
]  # fmt: skip


@pytest.mark.parametrize(("place", "body"), [pytest.param(*row, id=i) for i, *row in ACCEPTED_CONSTRAINTS])
def test_accepted_constraints(place: str, body: str) -> None:
    compile_schema(place.format(body))


REFUSED_CONSTRAINTS = [
    ("key-unknown", NODE, "a: String @key(b)", "unknown property `b`"),
    ("key-list", NODE, "a: [String] @key(a)", "N.a of type [String]"),
    ("key-list-short", NODE, "a: [String] @key", "list property N.a"),
    ("key-vector", NODE, "a: Vector(2) @key(a)", "N.a of type Vector(2)"),
    ("key-vector-short", NODE, "a: Vector(2) @key", "vector property N.a"),
    ("key-blob-short", NODE, "a: Blob @key", "@key is not supported on blob property N.a"),
    ("key-nullable", NODE, "a: String b: I32? @key(a, b)", "N.b can not be nullable"),
    ("key-repeats", NODE, "a: String @key(a, a)", "`a` more than once"),
    ("key-number", NODE, "a: String @key(1)", "must be a property name"),
    ("key-bound", NODE, "a: String @key(a, 1..2)", "must be a property name"),
    ("key-twice", NODE, "a: String b: String @key(a) @key(b)", "multiple @key"),
    ("key-short-and-body", NODE, "a: String @key @key(a)", "multiple @key"),
    ("key-short-twice", NODE, "a: String @key @key", "N.a declares @key multiple times"),
    ("key-interface-nullable", INTERFACE, "a: String? @key", "nullable"),
    ("key-interface-twice", INTERFACE, "a: String @key b: String @key", "multiple @key"),
    ("unique-unknown", NODE, "abc: String @unique(abd)", "did you mean `abc`?"),
    ("unique-endpoint-on-node", NODE, "a: String @unique(src)", "unknown property `src`"),
    ("unique-from-on-edge", EDGE, "@unique(from)", "unknown property `from`"),
    ("unique-list-short", NODE, "a: [String] @unique", "list property N.a"),
    ("unique-vector-short", NODE, "a: Vector(2) @unique", "vector property N.a"),
    ("unique-list-short-edge", EDGE, "a: [String] @unique", "list property N.a"),
    ("unique-blob-short", EDGE, "a: Blob @unique", "@unique is not supported on blob property N.a"),
    ("unique-short-twice", NODE, "a: String @unique @unique", "@unique multiple times"),
    ("index-list-short", NODE, "a: [String] @index", "list property N.a"),
    ("index-unknown", EDGE, "@index(w)", "unknown property `w`"),
    ("index-short-twice", EDGE, "a: String @index @index", "@index multiple times"),
    ("index-blob-interface", INTERFACE, "a: Blob @index", "@index is not supported on blob property N.a"),
    ("range-edge", EDGE, "w: I32 @range(w, 0..1)", "only supported on nodes"),
    ("range-list", NODE, "a: [I32] @range(a, 0..1)", "numeric"),
    ("range-date", NODE, "a: Date @range(a, 0..1)", "numeric"),
    ("range-vector", NODE, "a: Vector(2) @range(a, 0..1)", "numeric"),
    ("range-unknown", NODE, "a: I32 @range(b, 0..1)", "unknown property `b`"),
    ("range-one-argument", NODE, "a: I32 @range(a)", "`@range(property, low..high)`"),
    ("range-no-property", NODE, "a: I32 @range(0..1)", "`@range(property, low..high)`"),
    ("range-number", NODE, "a: I32 @range(a, 5)", "`@range(property, low..high)`"),
    ("range-two-bounds", NODE, "a: I32 @range(a, 0..1, 2..3)", "`@range(property, low..high)`"),
    ("range-upside-down", NODE, "a: I32 @range(a, 9..0)", "exceeds"),
    ("range-bare", NODE, "a: I32 @range", "`@range(property, low..high)`"),
    ("check-edge", EDGE, 'w: String @check(w, "x")', "only supported on nodes"),
    ("check-list", NODE, 'a: [String] @check(a, "x")', "String"),
    ("check-unknown", NODE, 'a: String @check(b, "x")', "unknown property `b`"),
    ("check-one-argument", NODE, "a: String @check(a)", "@check(property"),
    ("check-quoted-property", NODE, 'a: String @check("a", "x")', "@check(property"),
    ("check-bad-regex", NODE, 'a: String @check(a, "[")', "invalid regular expression"),
    ("check-bad-group", NODE, 'a: String @check(a, "(?P<a>x)(?P<a>y)")', "invalid regular expression"),
    ("check-bare", NODE, "a: String @check", "@check(property"),
    ("edge-key-short", EDGE, "w: I32 @key", "`@key(src, dst, …)`"),
    ("edge-key-no-endpoints", EDGE, "w: I32 @key(w)", "`@key(src, dst, …)`"),
    ("edge-key-one-endpoint", EDGE, "w: I32 @key(src, w)", "`@key(src, dst, …)`"),
    ("edge-key-swapped", EDGE, "@key(dst, src)", "`@key(src, dst, …)`"),
    ("edge-key-late-endpoints", EDGE, "w: I32 @key(w, src, dst)", "`@key(src, dst, …)`"),
    ("edge-key-nullable", EDGE, "w: I32? @key(src, dst, w)", "N.w can not be nullable"),
    ("edge-key-list", EDGE, "w: [I32] @key(src, dst, w)", "N.w of type [I32]"),
    ("edge-key-blob", EDGE, "w: Blob @key(src, dst, w)", "@key is not supported on blob property N.w"),
    ("edge-key-twice", EDGE, "@key(src, dst) @key(src, dst)", "multiple @key"),
]


@pytest.mark.parametrize(("place", "body", "message"), [pytest.param(*row, id=i) for i, *row in REFUSED_CONSTRAINTS])
def test_refused_constraints(place: str, body: str, message: str) -> None:
    assert message in semantic_refusal(place.format(body))


# --- annotations ------------------------------------------------------------------------------------------------------

ACCEPTED_ANNOTATIONS = [
    ("embed-name", 't: String v: Vector(2) @embed(t, model="m")'),
    ("embed-nullable", 't: String? v: Vector(2)? @embed("t")'),
    ("embed-forward", "v: Vector(2) @embed(t) t: String"),
    ("metric", 'v: Vector(2) @metric("l2") w: Vector(2)? @metric("cosine") x: Vector(2) @metric("dot")'),
    ("description", 'a: String @description("x")'),
    ("rename", 'a: String @rename_from("b") c: String @rename_from(d)'),
    ("anything-else", 'a: String @owner("me", since=2024) @owner @pii(true) @Deprecated'.replace("@Dep", "@dep")),
]


@pytest.mark.parametrize("body", [pytest.param(body, id=i) for i, body in ACCEPTED_ANNOTATIONS])
def test_accepted_annotations(body: str) -> None:
    compile_schema(NODE.format(body))


REFUSED_ANNOTATIONS = [
    ("embed-missing-source", NODE, "v: Vector(2) @embed(t)", "N.t does not exist"),
    ("embed-near-source", NODE, "title: String v: Vector(2) @embed(titel)", "did you mean `title`?"),
    ("embed-empty", NODE, 'v: Vector(2) @embed("")', "requires a source property name"),
    ("embed-blank", NODE, 'v: Vector(2) @embed("  ")', "requires a source property name"),
    ("embed-number", NODE, "v: Vector(2) @embed(7)", "requires a source property name"),
    ("embed-list-source", NODE, "t: [String] v: Vector(2) @embed(t)", "N.t must be String"),
    ("embed-number-source", NODE, "t: I32 v: Vector(2) @embed(t)", "N.t must be String"),
    ("embed-itself", NODE, "v: Vector(2) @embed(v)", "N.v must be String"),
    ("embed-on-string", NODE, "t: String v: String @embed(t)", "only supported on Vector properties"),
    ("embed-on-list", NODE, "t: String v: [F32] @embed(t)", "only supported on Vector properties"),
    ("embed-twice", NODE, "t: String v: Vector(2) @embed(t) @embed(t)", "N.v declares @embed multiple times"),
    ("embed-blank-model", NODE, 't: String v: Vector(2) @embed(t, model=" ")', "model"),
    ("embed-number-model", NODE, "t: String v: Vector(2) @embed(t, model=1)", "model"),
    ("embed-two-models", NODE, 't: String v: Vector(2) @embed(t, model="a", model="b")', "multiple times"),
    ("embed-edge", EDGE, "t: String v: Vector(2) @embed(t)", "not supported on edges"),
    ("embed-interface-form", INTERFACE, "v: Vector(2) @embed", "requires a source property name"),
    ("metric-on-list", NODE, 'a: [F32] @metric("l2")', "only supported on Vector properties"),
    ("metric-unknown", NODE, 'v: Vector(2) @metric("euclid")', '@metric("cosine")'),
    ("metric-name", NODE, "v: Vector(2) @metric(cosine)", '@metric("cosine")'),
    ("metric-none", NODE, "v: Vector(2) @metric", '@metric("cosine")'),
    ("metric-kwarg", NODE, 'v: Vector(2) @metric("l2", p=2)', '@metric("cosine")'),
    ("metric-twice", NODE, 'v: Vector(2) @metric("l2") @metric("dot")', "@metric multiple times"),
    ("description-none", NODE, "a: String @description", "non-blank"),
    ("description-blank", NODE, 'a: String @description(" \n")', "non-blank"),
    ("description-name", NODE, "a: String @description(words)", "non-blank"),
    ("description-number", EDGE, "a: String @description(1)", "non-blank"),
    ("description-kwarg", NODE, 'a: String @description("x", y=1)', "@description"),
    ("description-twice", NODE, 'a: String @description("x") @description("x")', "@description multiple times"),
    ("instruction-edge-property", EDGE, 'a: String @instruction("x")', "only supported on node and edge types"),
    ("instruction-interface", INTERFACE, 'a: String @instruction("x")', "only supported on node and edge types"),
    ("default-none", NODE, "a: String @default", "exactly one literal"),
    ("default-name", NODE, "a: enum(x) @default(x)", "exactly one literal"),
    ("default-kwarg", NODE, "a: I32 @default(1, b=2)", "exactly one literal"),
    ("default-twice", NODE, "a: I32 @default(1) @default(2)", "@default multiple times"),
]


@pytest.mark.parametrize(("place", "body", "message"), [pytest.param(*row, id=i) for i, *row in REFUSED_ANNOTATIONS])
def test_refused_annotations(place: str, body: str, message: str) -> None:
    assert message in semantic_refusal(place.format(body))


REFUSED_ON_TYPES = [
    *(
        (f"{where}-{name}", header.format(f"@{name}"), message)
        for where, header, message in (
            ("node", "node N {} {{ a: String }}", "only supported on node properties"),
            ("edge", "node A {{ a: String }} edge N: A -> A {}", "not supported on edges"),
        )
        for name in ("key", "unique", "index", "embed", "embed(a)")
    ),
    ("node-default", "node N @default(1) { }", "only supported on properties"),
    ("node-metric", 'node N @metric("l2") { }', "only supported on properties"),
    ("node-range", "node N @range { }", "@range(property"),
    ("node-description-blank", 'node N @description("") { }', "non-blank"),
    ("node-description-twice", 'node N @description("a") @description("b") { }', "@description multiple times"),
    ("node-instruction-none", "node N @instruction { }", "non-blank"),
    ("edge-instruction-twice", 'edge N: A -> A @instruction("a") @instruction("a")', "@instruction multiple times"),
    ("edge-instruction-kwarg", 'edge N: A -> A @instruction("a", b=1)', "@instruction"),
]


@pytest.mark.parametrize(("source", "message"), [pytest.param(*row, id=i) for i, *row in REFUSED_ON_TYPES])
def test_refused_annotations_of_types(source: str, message: str) -> None:
    assert message in semantic_refusal(source)


# --- interfaces -------------------------------------------------------------------------------------------------------


def implemented(source: str) -> tuple[dict[str, str], tuple[Constraint, ...]]:
    """The properties and constraints of the only node."""
    [node] = [decl for decl in parse_schema(source).declarations if isinstance(decl, NodeDecl)]
    return {prop.name: str(prop.type) for prop in node.properties}, node.constraints


@pytest.mark.parametrize(
    ("source", "properties", "constraints"),
    [
        pytest.param(
            "node N implements I { b: I32 } interface I { a: String? @unique @index }",
            {"b": "I32", "a": "String?"},
            (UniqueConstraint(("a",)), IndexConstraint(("a",))),
            id="declared-later",
        ),
        pytest.param(
            "interface I { a: String @key } node N implements I { a: String }", {"a": "String"}, (), id="own-wins"
        ),
        pytest.param(
            "interface I { a: String } node N implements I { a: String @key }",
            {"a": "String"},
            (KeyConstraint(("a",)),),
            id="own-key",
        ),
        pytest.param(
            "interface I { a: String @index } interface J { a: String @index } node N implements I, J { }",
            {"a": "String"},
            (IndexConstraint(("a",)),),
            id="same-from-two",
        ),
        pytest.param(
            "interface I { a: I32 @x @y(1) } interface J { a: I32 @y(1) @x } node N implements I, J { }",
            {"a": "I32"},
            (),
            id="same-in-another-order",
        ),
        pytest.param(
            "interface I { a: String @key } interface J { a: String } node N implements I, J { a: String }",
            {"a": "String"},
            (),
            id="own-settles-two",
        ),
        pytest.param(
            "interface I { a: I32 b: I32 } node N implements I { @unique(a, b) @range(a, 0..1) c: I32 }",
            {"c": "I32", "a": "I32", "b": "I32"},
            None,
            id="body-names-inherited",
        ),
        pytest.param(
            "interface I { v: Vector(2) @embed(t) } node N implements I { t: String }",
            {"t": "String", "v": "Vector(2)"},
            (),
            id="embed-source-in-node",
        ),
    ],
)
def test_implements(source: str, properties: dict[str, str], constraints: tuple[Constraint, ...] | None) -> None:
    found, found_constraints = implemented(source)
    assert found == properties
    assert constraints is None or found_constraints == constraints


@pytest.mark.parametrize(
    ("source", "fragments"),
    [
        pytest.param(
            "interface I { a: String } node N implements I { a: String? }",
            ["N.a", "String?", "I.a", "String"],
            id="nullability",
        ),
        pytest.param(
            "interface I { a: enum(x, y) } node N implements I { a: enum(x) }",
            ["enum(x)", "enum(x, y)"],
            id="enum",
        ),
        pytest.param(
            "interface Named { } node N implements Nmaed { }", ["unknown interface", "did you mean `Named`?"], id="near"
        ),
        pytest.param("node M { } node N implements M { }", ["unknown interface"], id="node-is-no-interface"),
        pytest.param("interface I { } node N implements I, I { }", ["more than once"], id="twice"),
        pytest.param(
            "interface I { a: String @key } node N implements I { b: String @key }", ["multiple @key"], id="two-keys"
        ),
        pytest.param(
            "interface I { v: Vector(2) @embed(t) } node N implements I { }", ["N.t does not exist"], id="no-source"
        ),
    ],
)
def test_implements_refused(source: str, fragments: list[str]) -> None:
    message = semantic_refusal(source)
    assert [fragment for fragment in fragments if fragment not in message] == []


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("a: String", "a: I32"),
        ("a: String", "a: String?"),
        ("a: String @key", "a: String"),
        ("a: String @m(1)", "a: String @m(true)"),
        ("a: String @key", "a: String? @unique"),
        ('a: String @description("x")', 'a: String @description("y")'),
    ],
)
def test_interfaces_that_contradict_each_other(first: str, second: str) -> None:
    source = f"interface I {{ {first} }} interface J {{ {second} }} node N implements I, J {{ b: Bool }}"
    message = catalog_refusal(source)
    assert [word for word in ("I", "J", "`a`") if word not in message] == []


# --- suggestions ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "suggestion"),
    [
        ("interface Named { } node N implements Nmaed { }", "Named"),
        ("node N { label: String @key(lable) }", "label"),
        ("node N { text: String v: Vector(2) @embed(txt) }", "text"),
        ('node N { v: Vector(2) @metric("cosin") }', "cosine"),
        ("node Person { } edge R: Person -> Persn", "Person"),
        ("node Person { } edge R: Xyzzy -> Person", None),
    ],
)
def test_near_misses_of_names(source: str, suggestion: str | None) -> None:
    assert refusal(source).suggestion == suggestion
