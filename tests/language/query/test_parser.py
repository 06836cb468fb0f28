"""Query files: heads, bodies, mutations, diagnostics and lookup by name."""

from __future__ import annotations

import pytest

from omnigraph.errors import BadRequest, ParseError
from omnigraph.language.query.ast import (
    Access,
    AllProperties,
    Assignment,
    Binding,
    BoolLit,
    Clause,
    Comparison,
    Delete,
    Ident,
    Insert,
    IntLit,
    ListLit,
    Mutation,
    Negation,
    Now,
    Param,
    Projection,
    PropertyMatch,
    Query,
    Read,
    Statement,
    StringLit,
    Update,
    Variable,
)
from omnigraph.language.query.parser import find_query, parse_query_file
from omnigraph.language.types import PropType, Scalar
from tests.language.query.parsing import one, read, refused

# --- heads ------------------------------------------------------------------------------------------------------------


def test_QP_01_name_parameters_and_annotations_are_kept() -> None:
    query = one(
        'query q($n: String) @description("find") @instruction("use often") '
        "{ match { $s: Staff { handle: $n } } return { $s.handle } }"
    )
    assert query == Query(
        "q",
        (Param("n", PropType(Scalar.STRING)),),
        Read((Binding("s", "Staff", (PropertyMatch("handle", Variable("n")),)),), (Projection(Access("s", "handle")),)),
        description="find",
        instruction="use often",
    )
    assert not query.is_mutation


def test_annotations_come_in_any_order() -> None:
    query = one('query q() @instruction("i") @description("d") { match { $s: Staff } return { $s } }')
    assert (query.description, query.instruction) == ("d", "i")


@pytest.mark.parametrize(
    ("written", "type_"),
    [
        pytest.param("[String]", PropType(Scalar.STRING, is_list=True), id="QP-13-list"),
        pytest.param("[Date]?", PropType(Scalar.DATE, is_list=True, nullable=True), id="QP-13-nullable-list"),
        pytest.param(
            "Vector( 3 ) ?", PropType(Scalar.VECTOR, dimension=3, nullable=True), id="QP-13-vector-with-blanks"
        ),
        pytest.param("DateTime", PropType(Scalar.DATETIME), id="QP-13-datetime-before-date"),
        pytest.param("Vector(2147483647)", PropType(Scalar.VECTOR, dimension=2147483647), id="largest-vector"),
        pytest.param("Vector(007)", PropType(Scalar.VECTOR, dimension=7), id="leading-zeros"),
        *(
            pytest.param(name, PropType(Scalar(name)), id=name)
            for name in ("String", "Blob", "Bool", "I32", "I64", "U32", "U64", "F32", "F64", "Date")
        ),
    ],
)
def test_parameter_types(written: str, type_: PropType) -> None:
    (param,) = one(f"query q($p: {written}) {{ match {{ $s: Staff }} return {{ $s }} }}").params
    assert param == Param("p", type_)


def test_QP_13_all_parameters_of_the_row() -> None:
    query = one(
        "query q($t: [String], $d: [Date]?, $v: Vector( 3 ) ?, $w: DateTime) { match { $b: Book } return { $b.isbn } }"
    )
    assert [f"{param.name}: {param.type}" for param in query.params] == [
        "t: [String]",
        "d: [Date]?",
        "v: Vector(3)?",
        "w: DateTime",
    ]


@pytest.mark.parametrize(
    ("head", "fragment", "semantic"),
    [
        pytest.param('q() @description("a") @description("b")', "duplicate @description", True, id="QP-02"),
        pytest.param('q() @instruction("a") @instruction("a")', "duplicate @instruction", True, id="instruction-twice"),
        pytest.param('q() @description("")', "@description", True, id="empty-description"),
        pytest.param('q() @instruction(" \\n")', "@instruction", True, id="blank-instruction"),
        pytest.param('q() @rename_from("a")', "expected `@description`", False, id="other-annotation"),
        pytest.param("q() @description", "expected `(`", False, id="annotation-without-text"),
        pytest.param("q() @description(x)", "expected a string", False, id="annotation-with-a-name"),
        pytest.param("q($a: String,)", "expected a variable", False, id="trailing-comma"),
        pytest.param("q($a String)", "expected `:`", False, id="no-colon"),
        pytest.param("q(a: String)", "expected `)` or a variable", False, id="no-dollar"),
        pytest.param("q($A: String)", "expected `)` or a variable", False, id="upper-case-variable"),
        pytest.param("Q()", "expected a name", False, id="upper-case-query-name"),
        pytest.param("q", "expected `(`", False, id="no-parentheses"),
        pytest.param("q($a: enum(x, y))", "unknown parameter type `enum`", False, id="enum-type"),
        pytest.param("q($a: Person)", "unknown parameter type `Person`", False, id="unknown-type"),
        pytest.param("q($a: Strings)", "unknown parameter type `Strings`", False, id="longer-than-a-type"),
        pytest.param("q($a: string)", "did you mean `String`?", False, id="lower-case-type"),
        pytest.param("q($a: [Vector(3)])", "a list can not hold vectors", False, id="list-of-vectors"),
        pytest.param("q($a: [[String]])", "expected a parameter type", False, id="list-of-lists"),
        pytest.param("q($a: [String?])", "expected `]`", False, id="list-of-nullable"),
        pytest.param("q($a: String??)", "expected `,` or `)`", False, id="nullable-twice"),
        pytest.param("q($a: Vector)", "expected `(`", False, id="vector-without-dimension"),
        pytest.param("q($a: Vector(0))", "Vector dimension must be greater than zero", True, id="vector-of-nothing"),
        pytest.param("q($a: Vector(2147483648))", "exceeds maximum supported", True, id="vector-too-large"),
        pytest.param(f"q($a: Vector({'9' * 5000}))", "exceeds maximum supported", True, id="vector-far-too-large"),
    ],
)
def test_refused_heads(head: str, fragment: str, semantic: bool) -> None:
    error = refused(f"query {head} {{ match {{ $s: Staff }} return {{ $s.handle }} }}")
    assert fragment in error.message
    assert error.message.startswith("parse error: ")
    assert error.semantic is semantic


@pytest.mark.parametrize(
    ("body", "fragment"),
    [
        pytest.param("match { $s: Staff } return { }", "expected an expression", id="empty-return"),
        pytest.param("match { $s: Staff }", "expected `with` or `return`", id="no-return"),
        pytest.param("return { $s }", "expected `match`, `insert`, `upsert`, `update` or `delete`", id="no-match"),
        pytest.param("", "expected `match`, `insert`, `upsert`, `update` or `delete`", id="empty-body"),
        pytest.param("match { $s: Staff return { $s }", "a `}` is missing before `return`", id="match-not-closed"),
        pytest.param("match { $s: Staff } return { $s } insert Staff { a: 1 }", "expected", id="read-then-mutation"),
        pytest.param("insert Staff { a: 1 } match { $s: Staff } return { $s }", "expected", id="mutation-then-read"),
    ],
)
def test_refused_bodies(body: str, fragment: str) -> None:
    error = refused(f"query q() {{ {body} }}")
    assert fragment in error.message
    assert error.semantic is False


# --- mutations --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "statements"),
    [
        pytest.param("insert Staff { handle: $h, level: $n } delete Staff where handle = $o",
                     [Insert("Staff", (Assignment("handle", Variable("h")), Assignment("level", Variable("n")))),
                      Delete("Staff", Comparison(Ident("handle"), "=", Variable("o")))], id="QP-20"),
        pytest.param('insert Staff { handle: "a" level: 3 at: now(), }',
                     [Insert("Staff", (Assignment("handle", StringLit("a")), Assignment("level", IntLit(3)),
                                       Assignment("at", Now())))], id="commas-are-optional"),
        pytest.param("update Staff set { tags: [] } where handle != $h",
                     [Update("Staff", (Assignment("tags", ListLit(())),), Comparison(Ident("handle"), "!=", Variable("h")))],
                     id="update"),
        pytest.param("insertStaff{a:true}deleteStaff wherea=1",
                     [Insert("Staff", (Assignment("a", BoolLit(True)),)),
                      Delete("Staff", Comparison(Ident("a"), "=", IntLit(1)))], id="no-blanks"),
        *(
            pytest.param(f"delete Staff where at {op} now()", [Delete("Staff", Comparison(Ident("at"), op, Now()))], id=op)
            for op in (">=", "<=", "!=", ">", "<", "=")
        ),
    ],
)  # fmt: skip
def test_mutations(text: str, statements: list[Statement]) -> None:
    query = one(f"query q() {{ {text} }}")
    assert query.body == Mutation(tuple(statements))
    assert query.is_mutation


@pytest.mark.parametrize(
    ("text", "fragment"),
    [
        pytest.param("delete Staff", "expected `where`", id="delete-without-where"),
        pytest.param("update Staff set { a: 1 }", "expected `where`", id="update-without-where"),
        pytest.param("update Staff { a: 1 } where b = 1", "expected `set`", id="update-without-set"),
        pytest.param("update Staff set { } where b = 1", "expected a name", id="update-of-nothing"),
        pytest.param("insert Staff { }", "expected a name", id="insert-of-nothing"),
        pytest.param("insert staff { a: 1 }", "expected a type name", id="lower-case-type"),
        pytest.param("delete Staff where a == 1", "equality is a single `=`", id="double-equals"),
    ],
)
def test_refused_mutations(text: str, fragment: str) -> None:
    error = refused(f"query q() {{ {text} }}")
    assert fragment in error.message
    assert error.semantic is False


# --- files ------------------------------------------------------------------------------------------------------------

TWO = "query a() { match { $s: Staff } return { $s } } query b() { delete Staff where x = 1 }"


@pytest.mark.parametrize("text", ["", " \n\t\r", "// only a comment", "/* only */ // comments\n"])
def test_a_file_may_be_empty(text: str) -> None:
    assert parse_query_file(text).queries == ()


def test_a_file_holds_several_queries_in_order() -> None:
    file = parse_query_file(TWO, "two.gq")
    assert [query.name for query in file.queries] == ["a", "b"]
    assert (file.source.text, file.source.file) == (TWO, "two.gq")


def test_blanks_are_never_needed() -> None:
    text = 'queryq($n:String)@description("d"){match{$s:Staff{handle:$n}not{$s memberOf$_}}return{$s.handle}limit5}'
    assert one(text) == one(
        'query q ( $n : String ) @description ( "d" ) { match { $s : Staff { handle : $n } not { $s memberOf $_ } } '
        "return { $s . handle } limit 5 }"
    )


@pytest.mark.parametrize(
    ("text", "fragment"),
    [
        pytest.param("/* open", "unterminated block comment", id="open-comment"),
        pytest.param("query q() { /* a /* b */ */ }", "found `*`", id="comments-do-not-nest"),
        pytest.param("{", "expected `query`", id="brace"),
        pytest.param("Query q() { }", "did you mean `query`?", id="upper-case-keyword"),
        pytest.param("quer q() { }", "did you mean `query`?", id="misspelt-query"),
        pytest.param("query q() { macth { } }", "did you mean `match`?", id="misspelt-match"),
        pytest.param("query q() { match { $s: Staff } retrun { } }", "did you mean `return`?", id="misspelt-return"),
        pytest.param("query q() { match { nto { $s: Staff } } }", "did you mean `not`?", id="misspelt-not"),
        pytest.param('query q() @descripton("x") { }', "did you mean `@description`?", id="misspelt-annotation"),
        pytest.param("query q() { delte Staff where a = 1 }", "did you mean `delete`?", id="misspelt-delete"),
        pytest.param('query q() { match { $s.a contian "x" } }', "did you mean `contains`?", id="misspelt-operator"),
        pytest.param("query q() {", "the end of the text", id="the-end"),
        pytest.param('query q() { delete A where a = "\ud800" }', "not valid Unicode", id="half-a-surrogate-pair"),
    ],
)
def test_refused_files(text: str, fragment: str) -> None:
    assert fragment in refused(text).message


def test_a_suggestion_is_also_data() -> None:
    assert refused("quer q() { }").suggestion == "query"
    assert refused("query q() { match { nto { $s: Staff } } }").suggestion == "not"
    assert refused("query q($a: strin) { }").suggestion == "String"


def test_an_error_knows_its_place_and_what_was_expected() -> None:
    text = 'query q() {\n  // ünicode\n  match { $s: Staff $s.name = "ü" $s.x ! 3 }'
    with pytest.raises(ParseError) as caught:
        parse_query_file(text, "q.gq")
    error = caught.value
    assert (error.file, error.line, error.column) == ("q.gq", 3, 40)
    assert error.source_line == text.split("\n")[2]
    assert error.start == len(text[: text.index("! 3")].encode())
    assert error.end == error.start + 1
    assert error.expected == ("`}`", "`not`", "an expression")


def test_spans_cover_what_was_written_without_what_follows() -> None:
    text = "query q() { match { $s: Staff /* c */ $s.a = 1 // c\n } return { $s.a as x , } } "
    query = one(text)
    body = query.body
    assert isinstance(body, Read)

    def shown(node: Query | Clause | Projection | AllProperties) -> str:
        return text[node.span.start : node.span.end]

    assert shown(query) == text.strip()
    assert [shown(clause) for clause in body.clauses] == ["$s: Staff", "$s.a = 1"]
    assert [shown(projection) for projection in body.projections] == ["$s.a as x"]


DEEP = 100_000


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("match { " + "not { " * DEEP, id="negations"),
        pytest.param("match { $s.x = " + "[" * DEEP, id="lists"),
        pytest.param("match { $s: Staff { x: " + "[" * DEEP, id="lists-in-a-pattern"),
        pytest.param("match { $s: Staff } return { " + "count(" * DEEP, id="aggregates"),
        pytest.param("match { $s: Staff } return { " + "search($s.x, " * DEEP, id="searches"),
        pytest.param("match { $s: Staff } return { " + "nearest($s.x, " * DEEP, id="nearest"),
        pytest.param("match { $s: Staff } return { " + "rrf(bm25(" * DEEP, id="ranks"),
        pytest.param("insert Staff { x: " + "[" * DEEP, id="lists-in-an-assignment"),
    ],
)
def test_deep_nesting_is_refused(text: str) -> None:
    assert "nested too deeply" in refused(f"query q() {{ {text}").message


def test_nesting_has_room_for_any_real_query() -> None:
    text = "not { " * 60 + "$s: Staff" + " }" * 60
    (clause,) = read(f"query q() {{ match {{ {text} }} return {{ {'[' * 60}{']' * 60} }} }}").clauses
    for _ in range(60):
        assert isinstance(clause, Negation)
        (clause,) = clause.clauses
    assert clause == Binding("s", "Staff")


# --- looking a query up -----------------------------------------------------------------------------------------------


def test_the_first_query_of_a_name_is_found() -> None:
    file = parse_query_file("query a($x: I32) { delete S where b = 1 } query a() { delete T where b = 1 }")
    assert find_query(file, "a").params == (Param("x", PropType(Scalar.I32)),)


def test_a_single_query_needs_no_name() -> None:
    assert find_query(parse_query_file("query a() { delete S where b = 1 }")).name == "a"


@pytest.mark.parametrize(
    ("text", "name", "message"),
    [
        pytest.param(TWO, "c", "query 'c' not found", id="missing"),
        pytest.param(TWO, "A", "query 'A' not found; did you mean `a`?", id="names-are-case-sensitive"),
        pytest.param("", "c", "query 'c' not found", id="missing-in-an-empty-file"),
        pytest.param(TWO, None, "query file contains multiple queries; pass a name", id="no-name-and-several"),
        pytest.param("", None, "query file contains no queries", id="no-name-and-none"),
    ],
)
def test_lookups_that_fail(text: str, name: str | None, message: str) -> None:
    with pytest.raises(BadRequest) as caught:
        find_query(parse_query_file(text), name)
    assert caught.value.message == message
