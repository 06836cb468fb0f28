"""The grammar of `.pg`: tokens, blanks and comments, order of parts, literals, and texts that are no schema at all."""

from __future__ import annotations

import pytest

from omnigraph.errors import LanguageError, ParseError
from omnigraph.language.schema.ast import (
    Annotation,
    Cardinality,
    CheckConstraint,
    Declaration,
    EdgeDecl,
    InterfaceDecl,
    KeyConstraint,
    Name,
    NodeDecl,
    PropertyDecl,
    RangeConstraint,
    UniqueConstraint,
)
from omnigraph.language.schema.build import compile_schema
from omnigraph.language.schema.grammar import parse_type
from omnigraph.language.schema.parser import parse_schema
from omnigraph.language.types import DECLARED, PropType, Scalar
from tests.language.schema.parsing import grammar_refusal, pointed_at, refusal, semantic_refusal

STRING = PropType(Scalar.STRING)
PLAIN_NODE = NodeDecl("N", (), (), (PropertyDecl("a", STRING),), ())


def only(source: str) -> Declaration:
    [declaration] = parse_schema(source).declarations
    return declaration


@pytest.mark.parametrize("source", ["", " \t\r\n", "// nothing", "/* nothing */", "/**/ // x"])
def test_a_text_without_declarations_is_a_schema(source: str) -> None:
    assert parse_schema(source).declarations == ()
    assert compile_schema(source).nodes == {}


@pytest.mark.parametrize(
    "source",
    [
        "node N { a: String }",
        "nodeN{a:String}",
        "node\tN\r\n{\n a\n:\nString\n}",
        "/*x*/node/**/N{a:String}//end",
        "node N { a /* } */ : // :\n String } // the end",
        "node N { /* a /* does not nest */ a: String }",
    ],
)
def test_blanks_and_comments_never_matter(source: str) -> None:
    assert only(source) == PLAIN_NODE


@pytest.mark.parametrize(
    ("source", "properties"),
    [
        ("node N{a:Stringb:I32?c:F64}", {"a": "String", "b": "I32?", "c": "F64"}),
        ("node N{a:Date b:DateTime c:Datetime:Bool}", {"a": "Date", "b": "DateTime", "c": "Date", "time": "Bool"}),
        ("node N{node:I32 edge:I64 interface:Bool implements:U32}", None),
        ("node N{_:I32 _A:I64 aB_9:Bool null:U32 trueness:Bool}", None),
    ],
)
def test_words_need_no_boundary(source: str, properties: dict[str, str] | None) -> None:
    found = {prop.name: str(prop.type) for prop in only(source).properties}
    assert len(found) == source.count(":")
    assert properties is None or found == properties


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("interface I {}", InterfaceDecl("I", ())),
        ("interfaceI{a:String}", InterfaceDecl("I", (PropertyDecl("a", STRING),))),
        ("node A_1z {}", NodeDecl("A_1z", (), (), (), ())),
        ("edge R: A -> B", EdgeDecl("R", "A", "B", Cardinality(), (), (), ())),
        ("edgeR:A->B{}", EdgeDecl("R", "A", "B", Cardinality(), (), (), ())),
        ("edge R:A->B@card(2..7)@x", EdgeDecl("R", "A", "B", Cardinality(2, 7), (Annotation("x"),), (), ())),
        ("edge R: A -> B @card ( 0 .. ) {}", EdgeDecl("R", "A", "B", Cardinality(0, None), (), (), ())),
        ("edge R: A -> B @cardinal(1)", EdgeDecl("R", "A", "B", Cardinality(), (Annotation("cardinal", 1),), (), ())),
        (
            "edge R: A -> B { @key(src, dst) w: String }",
            EdgeDecl("R", "A", "B", Cardinality(), (), (PropertyDecl("w", STRING),), (KeyConstraint(("src", "dst")),)),
        ),
    ],
)
def test_declarations(source: str, expected: Declaration) -> None:
    assert only(source) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        *((scalar.value, PropType(scalar)) for scalar in DECLARED),
        ("I32?", PropType(Scalar.I32, nullable=True)),
        ("[String]", PropType(Scalar.STRING, is_list=True)),
        ("[ DateTime ] ?", PropType(Scalar.DATETIME, is_list=True, nullable=True)),
        ("Vector(3)", PropType(Scalar.VECTOR, dimension=3)),
        ("Vector(2147483647)?", PropType(Scalar.VECTOR, dimension=2147483647, nullable=True)),
        ("Vector(00000000000000000000000003)", PropType(Scalar.VECTOR, dimension=3)),
        ("enum(b, a)", PropType(Scalar.STRING, enum=("a", "b"))),
        ("enum(x-1,_,0,Y)?", PropType(Scalar.STRING, enum=("0", "Y", "_", "x-1"), nullable=True)),
    ],
    ids=str,
)
def test_types(text: str, expected: PropType) -> None:
    assert only(f"node N {{ a: {text} }}").properties[0].type == expected
    assert parse_type(text) == expected
    assert parse_type(str(expected)) == expected


@pytest.mark.parametrize(
    "text",
    [
        "[String?]",
        "[[String]]",
        "[Vector(3)]",
        "[enum(a)]",
        "String??",
        "Vector",
        "Vector()",
        "Vector(-1)",
        "Vector(1.5)",
        "enum()",
        "enum(a,)",
        "enum(a b)",
        'enum("a")',
        "Text",
        "",
        "[]",
        "?",
    ],
)
def test_texts_that_are_no_type(text: str) -> None:
    grammar_refusal(f"node N {{ a: {text} }}")
    with pytest.raises(ParseError):
        parse_type(text)


def test_a_type_ends_where_its_text_ends() -> None:
    with pytest.raises(ParseError, match="the end of the type"):
        parse_type("String b: I32")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[Blob]", "list of Blob"),
        ("Vector(0)", "Vector dimension must be greater than zero"),
        ("Vector(000)", "Vector dimension must be greater than zero"),
        ("Vector(2147483648)", "Vector dimension 2147483648 exceeds maximum supported 2147483647"),
        (f"Vector({'9' * 5000})", "exceeds maximum supported"),
        ("enum(a, a)", "duplicate values"),
    ],
)
def test_types_that_can_not_be(text: str, message: str) -> None:
    assert message in semantic_refusal(f"node N {{ a: {text} }}")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("@x", Annotation("x")),
        ("@ x", Annotation("x")),
        ('@x("v")', Annotation("x", "v")),
        ('@x("")', Annotation("x", "")),
        ('@x("a\nb")', Annotation("x", "a\nb")),
        (r'@x("\"\\\n\r\t")', Annotation("x", '"\\\n\r\t')),
        ('@x("// no comment /*")', Annotation("x", "// no comment /*")),
        ("@x(y)", Annotation("x", Name("y"))),
        ("@x(7)", Annotation("x", 7)),
        ("@x(007)", Annotation("x", 7)),
        ("@x(18446744073709551615)", Annotation("x", 18446744073709551615)),
        ("@x(1.50)", Annotation("x", 1.5)),
        ("@x(true)", Annotation("x", True)),
        ("@x(false)", Annotation("x", False)),
        ("@x(tru)", Annotation("x", Name("tru"))),
        ('@x(y, a="b", c=1.5, d=false)', Annotation("x", Name("y"), (("a", "b"), ("c", 1.5), ("d", False)))),
        ("@keyring(y)", Annotation("keyring", Name("y"))),
        ("@indexed", Annotation("indexed")),
        ("@cards(1)", Annotation("cards", 1)),
    ],
)
def test_annotations(text: str, expected: Annotation) -> None:
    [on_property] = only(f"node N {{ a: String {text} }}").properties[0].annotations
    assert on_property == expected
    assert type(on_property.value) is type(expected.value)
    on_node = only(f"node N {text} {{}}")
    assert isinstance(on_node, NodeDecl)
    assert on_node.annotations == (expected,)


@pytest.mark.parametrize(
    "text",
    [
        "@X",
        "@1",
        "@",
        "@x()",
        "@x(-1)",
        "@x(1e5)",
        "@x(1.)",
        "@x(.5)",
        "@x(1_000)",
        "@x('v')",
        "@x(Name)",
        "@x(trueness)",
        "@x(falsehood)",
        "@x(1, 2)",
        "@x(a=1)",
        "@x(1, a=b)",
        "@x(1, a)",
        "@x(1,)",
        '@x("v"',
        '@x("v)',
        '@x("\\")',
    ],
)
def test_texts_that_are_no_annotation(text: str) -> None:
    grammar_refusal(f"node N {{ a: String {text} }}")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("@x(18446744073709551616)", "64 bits"),
        (f"@x({'1' * 5000})", "64 bits"),
        (f"@x({'1' * 400}.0)", "too large"),
        (r'@x("\q")', "unsupported escape sequence"),
        (r'@x("\u0041")', "unsupported escape sequence"),
        ('@x("\\\n")', "unsupported escape sequence"),
    ],
)
def test_literals_that_can_not_be(text: str, message: str) -> None:
    assert message in semantic_refusal(f"node N {{ a: String {text} }}")


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [
        ("-1000..1000", -1000, 1000),
        ("3..", 3, None),
        ("..9", None, 9),
        ("..-9", None, -9),
        ("0.5..1.25", 0.5, 1.25),
        ("-40.0..60", -40.0, 60),
        ("0 .. 9", 0, 9),
        ("5..5", 5, 5),
        ("..18446744073709551615", None, 18446744073709551615),
        ("-9223372036854775808..", -9223372036854775808, None),
        (f"..{'0' * 5000}7", None, 7),
    ],
)
def test_bounds(text: str, low: float | None, high: float | None) -> None:
    node = only(f"node N {{ a: F64 @range(a, {text}) }}")
    assert isinstance(node, NodeDecl)
    [constraint] = node.constraints
    assert constraint == RangeConstraint("a", low, high)
    assert isinstance(constraint, RangeConstraint)
    assert (type(constraint.low), type(constraint.high)) == (type(low), type(high))


@pytest.mark.parametrize("text", ["..", "-..", "1...2", "1..2..3", "- 1..2", "+1..2", "1e3..", ".5..1", "-1", "a..b"])
def test_texts_that_are_no_bound(text: str) -> None:
    grammar_refusal(f"node N {{ a: F64 @range(a, {text}) }}")


@pytest.mark.parametrize("text", [f"..{'9' * 5000}", f"-{'9' * 21}..", "..18446744073709551616", f"{'9' * 400}.0.."])
def test_bounds_that_are_too_large(text: str) -> None:
    semantic_refusal(f"node N {{ a: F64 @range(a, {text}) }}")


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("node N { a: String @key(a) }", KeyConstraint(("a",))),
        ("node N { a: String @ key ( a ) }", KeyConstraint(("a",))),
        ("node N { @unique(a) a: String }", UniqueConstraint(("a",))),
        ('node N { a: String @check(a, "^x") }', CheckConstraint("a", "^x")),
    ],
)
def test_a_constraint_is_never_an_annotation(source: str, expected: object) -> None:
    node = only(source)
    assert isinstance(node, NodeDecl)
    assert node.constraints == (expected,)
    assert node.properties[0].annotations == ()


# (what is wrong, source, what the message says about it)
BROKEN = [
    ("comma", "node N { a: String, b: I32 }", "not separated by commas"),
    ("semicolon", "node N { a: String; }", "`;`"),
    ("no-colon", "node N { a String }", "`:`"),
    ("no-type", "node N { a: }", "`String`"),
    ("capital-property", "node N { A: String }", "a name"),
    ("small-type-name", "node n { }", "a type name"),
    ("no-body", "node N", "`{`"),
    ("open-body", "node N { a: String", "the end of the text"),
    ("second-close", "node N { } }", "`}`"),
    ("hash", "node N { } # no comment", "`#`"),
    ("open-comment", "node N { } /* open", "unterminated block comment"),
    ("open-comment-inside", "node N { a: /* open", "unterminated block comment"),
    ("open-string", 'node N @d("open', "unterminated string"),
    ("single-quotes", "node N @d('x') { }", "`'`"),
    ("interface-annotation", "interface I @x { }", "can not be annotated"),
    ("interface-constraint", "interface I { a: String @key(a) }", "properties only"),
    ("interface-first-constraint", "interface I { @unique(a) a: String }", "properties only"),
    ("interface-implements", "interface I implements J { }", "`{`"),
    ("edge-implements", "edge R: A -> B implements I { }", "found `implements`"),
    ("late-annotation", 'interface I {} node N implements I @description("d") { }', "before `implements`"),
    ("implements-nothing", "node N implements { }", "a type name"),
    ("implements-comma", "node N implements I, { }", "a type name"),
    ("edge-one-end", "edge R: A", "`->`"),
    ("edge-split-arrow", "edge R: A - > B", "`->`"),
    ("edge-no-colon", "edge R A -> B", "`:`"),
    ("header-key", "node N @key(a) { a: String }", "only supported on node properties"),
    ("edge-header-unique", "edge R: A -> A @unique(src)", "not supported on edges"),
    ("body-annotation", 'node N { @description("x") a: String }', "`unique`"),
    ("empty-constraint", "node N { a: String @key() }", "a name"),
    ("bool-prefix", "node N { trueness: Bool @unique(trueness) }", "found `ness`"),
    ("half-character", "node N { } \ud800", "not valid Unicode"),
]


@pytest.mark.parametrize(("source", "message"), [pytest.param(*row, id=i) for i, *row in BROKEN])
def test_texts_that_are_no_schema(source: str, message: str) -> None:
    assert message in grammar_refusal(source)


CARD_CASES = [
    "edge R: A -> B @card(1)",
    "edge R: A -> B @card",
    "edge R: A -> B @card()",
    "edge R: A -> B @card(..2)",
    "edge R: A -> B @card(-1..2)",
    "edge R: A -> B @card(1.5..2)",
    "edge R: A -> B @card(0..1) @card(0..1)",
    'edge R: A -> B @description("d") @card(0..1)',
    "edge R: A -> B { @card(0..1) }",
    "edge R: A -> B { w: I32 @card(0..1) }",
    "node A @card(0..1) { x: String }",
    "node A { x: String @card(0..1) }",
    "node A { @card(1) x: String }",
]


@pytest.mark.parametrize("source", CARD_CASES)
def test_a_wrong_cardinality_shows_the_right_form(source: str) -> None:
    assert "@card(0..1)" in grammar_refusal(source)
    assert "@card(min..max)" in grammar_refusal(source)


@pytest.mark.parametrize("card", ["2..1", "10..9"])
def test_a_cardinality_upside_down(card: str) -> None:
    assert "exceeds" in semantic_refusal(f"node A {{ x: String }} edge R: A -> A @card({card})")


def test_a_cardinality_that_is_too_large() -> None:
    assert "64 bits" in semantic_refusal(f"node A {{ x: String }} edge R: A -> A @card(0..{'9' * 5000})")


@pytest.mark.parametrize(
    ("source", "suggestion"),
    [
        ("nod N { }", "node"),
        ("egde R: A -> B", "edge"),
        ("interfaces { }", None),
        ("Interface I { }", "interface"),
        ("node N { a: Strng }", "String"),
        ("node N { a: string }", "String"),
        ("node N { a: [Boll] }", "Bool"),
        ("node N { a: vector(3) }", "Vector"),
        ("node N { a: Datetime }", None),
        ("node N { @uniqe(a) a: String }", "unique"),
        ("node N implments I { }", "implements"),
        ("node N { a: Xyzzy }", None),
    ],
)
def test_near_misses_of_keywords(source: str, suggestion: str | None) -> None:
    error = refusal(source)
    assert error.suggestion == suggestion
    assert (f"did you mean `{suggestion}`?" in error.message) == (suggestion is not None)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        # A grammar error points at the token that does not fit.
        ("node N { a: Strng }", "Strng"),
        ("node Né { }", "é"),
        # A semantic error points at the declaration that breaks a rule: a constraint, a property or a type.
        ("node N { b: I32 a: String? @key }", "@key"),
        ("node N { a: String // c\n @range(a, 0..1) }", "@range(a, 0..1)"),
        ("node N { b: I32 v: Vector(0) c: I32 }", "v: Vector(0)"),
        ('node N { b: I32 a: String @instruction("é") c: I32 }', 'a: String @instruction("é")'),
        ("node M { } node N @key { } // c", "node N @key { }"),
        ("node M { } node N implements X { }", "node N implements X { }"),
        ("node A { } edge R: A -> X @x edge S: A -> A", "edge R: A -> X @x"),
        ("node A { x: String x: I32 @foo }", "x: I32 @foo"),
    ],
)
def test_what_an_error_points_at(source: str, expected: str) -> None:
    assert pointed_at(source) == expected


def test_lines_and_columns() -> None:
    error = refusal("node N {\n  é: String\n}")
    assert (error.line, error.column, error.source_line) == (2, 3, "  é: String")
    assert (error.start, error.end) == (11, 13)


MEGABYTE = 1_000_000
HUGE = {
    "braces": "{" * 10 * MEGABYTE,
    "nodes": "node A {" * MEGABYTE,
    "lists": "node A { a: " + "[" * MEGABYTE,
    "calls": "node A { a: String " + "@a(" * MEGABYTE,
    "dots": "node A { a: I32 @range(a, " + "." * MEGABYTE,
    "digits": "node A { a: I32 @range(a, " + "1" * MEGABYTE + "..) }",
    "dimension": "node A { a: Vector(" + "9" * MEGABYTE + ") }",
    "values": "node A { a: enum(" + "a," * 100_000 + "a) }",
    "comments": "/* */" * MEGABYTE + "x",
    "open-comment": "/*" + "*" * MEGABYTE,
    "open-string": 'node A @d("' + "a" * MEGABYTE,
    "escapes": 'node A @d("' + "\\n" * MEGABYTE,
    "name": "node a" + "a" * MEGABYTE,
    "unknown-name": "node A implements B" + "b" * MEGABYTE + " { }",
    "regex": 'node A { s: String @check(s, "' + "(" * 100_000 + '") }',
    "regex-repeat": 'node A { s: String @check(s, "a{99999999999999}") }',
    "annotations": "node A " + "@x" * 20_000 + ";",
    "properties": "node A { " + " ".join(f"a{i}: String" for i in range(20_000)) + ";",
    "interfaces": "node A implements I" + ", I" * 100_000 + "{ }",
}


@pytest.mark.parametrize("source", [pytest.param(source, id=name) for name, source in HUGE.items()])
def test_huge_and_deep_texts_are_one_error(source: str) -> None:
    with pytest.raises(LanguageError):
        compile_schema(source)
