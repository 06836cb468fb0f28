"""The type checker: every row of behaviours.md section 3 and its neighbours, and which error comes first."""

from __future__ import annotations

import pytest

from omnigraph.errors import BadRequest, LanguageError, TypecheckError
from omnigraph.language.query.check import CheckedQuery, CheckedRead, check_query
from omnigraph.language.query.compile import compile_query
from omnigraph.language.query.ir import Direction, InsertNode, Member, MutationPlan
from omnigraph.language.query.parser import find_query, parse_query_file
from omnigraph.language.schema.catalog import Catalog
from tests.language.query.catalogs import BOOKS, DOC, EVENT, KINDS, ORG, PAGE, SAME
from tests.language.query.typecheck_cases import Bad, Good, all_different, book, check_case, kind, pattern, refused


def checked(catalog: Catalog, text: str) -> CheckedQuery:
    parsed = parse_query_file(text)
    return check_query(find_query(parsed), catalog, parsed.source)


BLOB = "type error: T24: Blob property `{}` is not available as a .gq read value; Blob values require a dedicated API"
ENDS = "query q({}) {{ match {{ {} }} return {{ $b.x }} }}"

CASES = all_different(
    Bad("QT-01", BOOKS, "query q() { match { $b: Novel } return { $b.isbn } }", "T1", ("Novel",)),
    Bad("QT-02", BOOKS, pattern("weight: 3"), "T2", ("weight", "Book")),
    Bad("T3 string for a number", BOOKS, pattern('pages: "x"'), "T3"),
    Bad("T3 number for a string", BOOKS, pattern("isbn: 3"), "T3"),
    Bad(
        "QT-05",
        BOOKS,
        pattern('tags: ["rust"]'),
        "T3",
        ("list equality is not supported", "membership"),
    ),
    Bad("QT-08", BOOKS, book("$b.isbn contains 42"), "T7", ("string contains requires a String right operand",)),
    Bad("T7 list in list", BOOKS, book('$b.tags contains ["a"]'), "T7"),
    Bad("T7 number in list of strings", BOOKS, book("$b.tags contains 3"), "T7"),
    Bad("T7 number as the left side", BOOKS, book("$b.pages contains 3"), "T7"),
    Bad(
        "QT-12 left",
        BOOKS,
        book('$b.pages starts_with "4"'),
        "T7",
        ("starts_with requires a String property on the left",),
    ),
    Bad("QT-12 right", BOOKS, book("$b.isbn starts_with 4"), "T7", ("starts_with requires a String right operand",)),
    Bad("QT-14", BOOKS, book("$b likes $c"), "T4", ("likes",)),
    Bad("QT-15", BOOKS, "query q() { match { $s: Shop $s cites $x } return { $s.city } }", "T5", ("Shop", "Cites")),
    Bad("QT-16", BOOKS, book("$b.weight > 1"), "T6", ("weight", "Book")),
    Bad("T7 number and text", BOOKS, book('$b.pages > "x"'), "T7", ("I32?", "String")),
    Bad("QT-18", BOOKS, book("$b != 5"), "T7", ("scalar operands",)),
    Bad("QT-20", BOOKS, book("$b cites{3,1} $c", "$c.isbn"), "T15"),
    Good("QT-21 an open end", BOOKS, book("$b cites{1,} $c", "$c.isbn")),
    Good("QT-22 no hop", BOOKS, book("$b cites{0,2} $c", "$c.isbn")),
    Bad("QT-24", BOOKS, book("$b <soldAt> $s", "$s.city"), "T22", ("SoldAt",)),
    Bad("T8 sum of text", BOOKS, book("", "sum($b.isbn) as n"), "T8"),
    Bad("T9 unrelated negation", BOOKS, book("not { $s: Shop }"), "T9"),
    Bad("QT-28", BOOKS, book("", 'count($b) as n, "x"'), "T9"),
    Bad("QT-29", BOOKS, book("", "$zz"), None, ("$zz", "not bound")),
    Bad("QT-30", BOOKS, book("$b: Shop", "$b.city"), None, ("already bound to type", "Book")),
    Bad("QT-32", BOOKS, book("$b $e:cites $c", "$e.nope"), "T6", ("Cites", "nope")),
    Bad("QT-33", BOOKS, book("$b $e:cites{1,3} $c", "$c.isbn"), "T23", ("multi-hop", "not one edge")),
    Bad("QT-34", BOOKS, book("$b $b:cites $c", "$c.isbn"), "T23"),
    Bad("QT-35 source", SAME, ENDS.format("", "$w $w:same $b"), "T23", ("endpoint", "distinct names")),
    Bad(
        "QT-35 target",
        SAME,
        "query q() { match { $a $w:same $w } return { $a.x } }",
        "T23",
        ("endpoint", "distinct names"),
    ),
    Bad("QT-36", SAME, "query q() { match { $a: Same $a $w:same $b $w: Same } return { $w.x } }", "T23"),
    Bad("T23 edge variable as an endpoint", SAME, ENDS.format("", "$a $w:same $b $w same $c"), "T23"),
    Bad("T23 bare edge variable", BOOKS, book("$b $e:cites $c", "$e"), "T23", ("$e",)),
    Bad("QT-39", BOOKS, book('$b $e:cites $c search($e.note, "x")'), "T23", ("search", "node properties")),
    Bad(
        "QT-40",
        BOOKS,
        book("$b $e:cites $c", "$c.isbn", 'order { nearest($e.note, "x") } limit 5'),
        "T23",
        ("node properties",),
    ),
    Bad("T15 dimension", BOOKS, book("", tail="order { nearest($b.emb, $v) } limit 3", params="$v: Vector(2)"), "T15"),
    Bad("T17 without limit", BOOKS, book("", tail="order { nearest($b.emb, $v) }", params="$v: Vector(3)"), "T17"),
    Bad(
        "QT-45",
        BOOKS,
        book("", "$b.isbn as s", "order { nearest($b.emb, $v), s desc } limit 5", "$v: Vector(3)"),
        "T18",
    ),
    Bad(
        "T21 rrf without limit",
        BOOKS,
        book("", tail="order { rrf(nearest($b.emb, $v), bm25($b.isbn, $x)) }", params="$v: Vector(3), $x: String"),
        "T21",
    ),
    Bad(
        "QT-47",
        BOOKS,
        book(
            "",
            "$b.isbn, rrf(nearest($b.emb, $v), bm25($b.isbn, $x)) as sc",
            "order { sc desc }",
            "$v: Vector(3), $x: String",
        ),
        "T21",
    ),
    Bad(
        "QT-48",
        BOOKS,
        book(
            "",
            tail="order { rrf(nearest($b.emb, $v), bm25($b.isbn, $x), 0) } limit 5",
            params="$v: Vector(3), $x: String",
        ),
        "T21",
    ),
    Bad("T19 search with a number", BOOKS, book("search($b.isbn, 3)"), "T19"),
    Bad("QT-50", BOOKS, book("", "bm25($b.isbn, $x) as sc", params="$x: I64"), "T20"),
    *(
        Bad(f"QT-51 {use}", BOOKS, book("", *tail), "T24", (BLOB.format("$b.cover"),))
        for use, tail in {
            "projection": ("$b.cover",),
            "alias": ("$b.cover as c",),
            "order": ("$b.isbn", "order { $b.cover }"),
            **{function: (f"{function}($b.cover) as n",) for function in ("count", "sum", "avg", "min", "max")},
        }.items()
    ),
    Bad("QT-51 filter", BOOKS, book('$b.cover = "x"'), "T24", (BLOB.format("$b.cover"),)),
    Bad("QT-51 edge", BOOKS, book("$b $e:cites $c", "$e.scan"), "T24", (BLOB.format("$e.scan"),)),
    Bad("QT-51 edge count", BOOKS, book("$b $e:cites $c", "count($e.scan) as n"), "T24", (BLOB.format("$e.scan"),)),
    *(
        Bad(f"QT-52 {use}", BOOKS, book("", returns, tail, "$p: Blob"), "T24", ("Blob parameter `$p`",))
        for use, (returns, tail) in {
            "projection": ("$p", ""),
            "alias": ("$p as x", ""),
            "order": ("$b.isbn", "order { $p }"),
            "count": ("count($p) as n", ""),
        }.items()
    ),
    Bad(
        "QT-53 pattern",
        BOOKS,
        pattern("cover: $p", "$p: Blob"),
        "T3",
        ("blob property `Book.cover` cannot be used in match patterns",),
    ),
    Bad(
        "QT-53 comparison",
        BOOKS,
        book("$p = $r", params="$p: Blob, $r: Blob"),
        "T7",
        ("blob comparisons in filters are not supported",),
    ),
    *(
        Bad(f"QT-54 {name}", BOOKS, f"query q($p: {param}) {{ delete {target} }}", "T11", (fragment,))
        for name, param, target, fragment in (
            ("String", "String", "Book where cover = $p", "blob property `cover` cannot be used in WHERE predicates"),
            ("Blob", "Blob", "Book where cover = $p", "blob property `cover` cannot be used in WHERE predicates"),
            ("edge", "String", "Cites where scan = $p", "blob property `scan` cannot be used in WHERE predicates"),
        )
    ),
    Bad("T3 literal for a Blob", KINDS, kind('bytes: "base64:AQID"'), "T3", ("Kind.bytes",)),
    Bad("QT-56", DOC, "query q($s: String) { insert Doc { slug: $s } }", "T12", ("emb", "body")),
    Bad("QT-57", ORG, "query q($n: I32) { insert Staff { level: $n } }", "T12", ("handle",)),
    Bad("QT-58", ORG, "query q($a: String) { insert Mentors { from: $a } }", "T12", ("`to`",)),
    Bad("T11 insert", ORG, 'query q() { insert Staff { handle: "x", levle: 3 } }', "T11", ("levle", "Staff", "level")),
    Bad("QT-60", ORG, "query q($h: String) { delete Nobody where handle = $h }", "T10", ("Nobody",)),
    Bad("QT-60 second", ORG, 'query q() { insert Staff { handle: "x" } insert Nobody { handle: "x" } }', "T10"),
    Bad(
        "QT-60 second is a delete", ORG, 'query q() { insert Staff { handle: "x" } delete Nobody where a = "x" }', "T10"
    ),
    Bad("QT-61", ORG, 'query q($a: String) { update Mentors set { from: "b" } where from = $a }', "T16"),
    Bad("QT-62", EVENT, 'query q() { update Ev set { day: now() } where slug = "x" }', "T7", ("DateTime", "day")),
    Bad("QT-64 twice", ORG, 'query q($h: String) { insert Staff { handle: $h, handle: "x" } }', "T13", ("handle",)),
    Bad("QT-64 undeclared", ORG, "query q() { insert Staff { handle: $zz } }", "T14", ("$zz",)),
    Bad(
        "QT-65",
        BOOKS,
        pattern('kind: "drama"'),
        "T3",
        ("invalid enum value 'drama'", "essay", "novel", "poetry"),
    ),
    Bad(
        "MUT-09",
        ORG,
        "query q($h: String, $n: String) { update Staff set { handle: $n } where handle = $h }",
        None,
        ("@key", "handle"),
    ),
    Good("QT-04 literal", BOOKS, pattern('tags: "rust"')),
    Good("QT-04 parameter", BOOKS, pattern("tags: $t", "$t: String")),
    Good("QT-06", BOOKS, book("$b.tags contains $t", params="$t: String")),
    Good("QT-07", BOOKS, book('$b.isbn contains "97"')),
    Good("QT-11", BOOKS, book("$b.isbn starts_with $x", params="$x: String")),
    Good("QT-13", BOOKS, book('$b.tags contains "x"', "$b.tags, $t, $d", params="$t: [String], $d: [Date]?")),
    Good("QT-23", BOOKS, book("$b <cites> $c", "$c.isbn")),
    Good("QT-25", BOOKS, "query q() { match { $s: Shop $b soldAt $s } return { $b.isbn } }"),
    Good("QT-31", BOOKS, book('$b $e:cites $c $e.year >= date("2020-01-01")', "$c.isbn, $e.year")),
    Good("QT-41", BOOKS, book("$b $e:cites $c", "$c.isbn, count($e.year) as n")),
    Good("QT-44", BOOKS, book("", tail="order { nearest($b.emb, $v) } limit 3", params="$v: String")),
    Good(
        "QT-47 with a limit",
        BOOKS,
        book(
            "",
            "$b.isbn, rrf(nearest($b.emb, $v), bm25($b.isbn, $x)) as sc",
            "order { sc desc } limit 5",
            "$v: Vector(3), $x: String",
        ),
    ),
    Good("QT-51 other property of the edge", BOOKS, book("$b $e:cites $c", "$e.note")),
    Good("String parameter for a Blob", KINDS, kind("bytes: $p", "$p: String")),
    Good("Blob parameter for a Blob", KINDS, kind("bytes: $p", "$p: Blob?")),
    Good("QT-56 accepted", DOC, "query q($s: String, $t: String) { insert Doc { slug: $s body: $t } }"),
    Good("QT-56 vector given", DOC, "query q($s: String, $v: Vector(3)) { insert Doc { slug: $s emb: $v } }"),
    Good("QT-62 accepted", EVENT, 'query q() { update Ev set { at: now() } where slug = "x" }'),
    Good("QT-65 parameter", BOOKS, pattern("kind: $k", "$k: String")),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_section_3(case: Bad | Good) -> None:
    check_case(case)


@pytest.mark.parametrize(
    ("text", "fragments"),
    [
        pytest.param(
            "query q($h: String, $n: I32, $o: String) "
            "{ insert Staff { handle: $h, level: $n } delete Staff where handle = $o }",
            (
                "mutation 'q' mixes inserts/updates and deletes; split into separate mutations: "
                "(1) inserts and updates, then (2) deletes",
                "branch",
                "merge",
            ),
            id="MUT-14",
        ),
        pytest.param(
            'query w() { delete Staff where handle = "a" update Staff set { level: 1 } where handle = "b" }',
            ("mutation 'w' mixes inserts/updates and deletes",),
            id="MUT-14 delete first",
        ),
    ],
)
def test_writing_and_deleting_in_one_query(text: str, fragments: tuple[str, ...]) -> None:
    with pytest.raises(BadRequest) as caught:
        compile_query(text, None, ORG)
    assert not isinstance(caught.value, TypecheckError)
    assert isinstance(caught.value, LanguageError)
    assert caught.value.line == 1
    for fragment in fragments:
        assert fragment in caught.value.message


# --- what the checker finds out ---------------------------------------------------------------------------------------


def block_of(catalog: Catalog, text: str) -> CheckedRead:
    body = checked(catalog, text).body
    assert isinstance(body, CheckedRead)
    return body


@pytest.mark.parametrize(
    ("clauses", "types", "direction"),
    [
        pytest.param("$b: Book $b <cites> $c", {"b": "Book", "c": "Book"}, Direction.BOTH, id="QT-23"),
        pytest.param("$s: Shop $b soldAt $s", {"s": "Shop", "b": "Book"}, Direction.OUT, id="QT-25"),
        pytest.param("$b: Book $b soldAt $s", {"b": "Book", "s": "Shop"}, Direction.OUT, id="bound source"),
        pytest.param("$s: Shop $s soldAt $b", {"s": "Shop", "b": "Book"}, Direction.IN, id="source is the `to` end"),
        pytest.param("$b: Book $s soldAt $b", {"b": "Book", "s": "Shop"}, Direction.IN, id="target is the `from` end"),
        pytest.param("$x soldAt $y", {"x": "Book", "y": "Shop"}, Direction.OUT, id="neither bound"),
        pytest.param("$b: Book $c cites $b", {"b": "Book", "c": "Book"}, Direction.OUT, id="same types keep the order"),
    ],
)
def test_direction_comes_from_the_bound_end(clauses: str, types: dict[str, str], direction: Direction) -> None:
    block = block_of(BOOKS, f"query q() {{ match {{ {clauses} }} return {{ 1 as x }} }}").block
    assert {name: node.name for name, node in block.nodes.items()} == types
    assert block.steps[0].direction is direction


def test_scalar_against_list_is_membership() -> None:
    """QT-04."""
    block = block_of(BOOKS, 'query q() { match { $b: Book { tags: "rust" } } return { $b.isbn } }').block
    assert isinstance(block.patterns["b"][0], Member)


@pytest.mark.row("QT-63")
def test_a_node_type_wins_over_an_edge_type() -> None:
    plan = compile_query('query q() { insert Same { x: "n" } }', None, SAME).plan
    assert isinstance(plan, MutationPlan)
    assert isinstance(plan.statements[0], InsertNode)


@pytest.mark.parametrize(
    ("returns", "names", "types"),
    [
        ("$b.isbn, $b.pages as n", ["b.isbn", "n"], ["String", "I32?"]),
        pytest.param("$b", ["b"], ["String"], id="QA-21"),
        pytest.param(
            "count($b), sum($b.pages), avg($b.price), min($b.kind), max($b.pages)",
            ["count(b)", "sum(b.pages)", "avg(b.price)", "min(b.kind)", "max(b.pages)"],
            ["I64?", "I64?", "F64?", "enum(essay, novel, poetry)?", "I32?"],
            id="unaliased aggregates",
        ),
        (
            'now(), "x", 3, 1.50, true, [1, 2.5], date("2024-01-01"), datetime("2024-01-01T00:00:00Z")',
            ["now()", '"x"', "3", "1.50", "true", "[1, 2.5]", 'date("2024-01-01")', 'datetime("2024-01-01T00:00:00Z")'],
            ["DateTime", "String", "I64", "F64", "Bool", "[F64]", "Date", "DateTime"],
        ),
        (
            'search($b.isbn, "x"), match_text($b.isbn, "x"), fuzzy($b.isbn, "x", 1), bm25($b.isbn, "x")',
            ['search(b.isbn, "x")', 'match_text(b.isbn, "x")', 'fuzzy(b.isbn, "x", 1)', 'bm25(b.isbn, "x")'],
            ["Bool", "Bool", "Bool", "F64"],
        ),
        (
            'nearest($b.emb, $v), rrf(nearest($b.emb, $v), bm25($b.isbn, "x"), 9)',
            ["nearest(b.emb, v)", 'rrf(nearest(b.emb, v), bm25(b.isbn, "x"), 9)'],
            ["F64?", "F64"],
        ),
        ("$v, $t", ["v", "t"], ["Vector(3)", "[String]?"]),
    ],
)
def test_result_columns(returns: str, names: list[str], types: list[str]) -> None:
    read = block_of(BOOKS, book("", returns, params="$v: Vector(3), $t: [String]?"))
    assert [column.name for column in read.columns] == names
    assert [str(column.type) for column in read.columns] == types


@pytest.mark.parametrize(
    ("order", "descending", "nulls_first"),
    [
        ("$p.slug", False, True),
        ("$p.slug asc", False, True),
        ("$p.slug desc", True, False),
        ("s", False, True),
        ("s desc", True, False),
        pytest.param('nearest($p.emb, "x")', False, False, id="nearest: best first"),
        pytest.param('bm25($p.head, "x")', True, False, id="bm25: best first"),
        pytest.param('bm25($p.head, "x") asc', False, True, id="bm25 asc"),
        pytest.param('rrf(bm25($p.head, "x"), bm25($p.body, "x"))', True, False, id="rrf: best first"),
        pytest.param('rrf(bm25($p.head, "x"), bm25($p.body, "x")) asc', False, True, id="rrf asc"),
        ("nobody desc", True, False),
    ],
)
def test_order(order: str, descending: bool, nulls_first: bool) -> None:
    alias = "" if "nearest" in order else ', bm25($p.head, "x") as s'
    text = f"query q() {{ match {{ $p: Page }} return {{ $p.slug {alias} }} order {{ {order} }} limit 5 }}"
    key = block_of(PAGE, text).order[0]
    assert (key.descending, key.nulls_first) == (descending, nulls_first)


# --- which error comes first ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "code"),
    [
        pytest.param(book("$b likes $c $b.weight > 1"), "T4", id="clauses in textual order"),
        pytest.param(book("$b.weight > 1 $b likes $c"), "T6", id="clauses in textual order, the other way"),
        pytest.param(book("$b.weight > 1", "$zz"), "T6", id="clauses before projections"),
        pytest.param(book("", "sum($b.isbn) as n", "order { $b.nope }"), "T8", id="projections before orderings"),
        pytest.param(
            book("", '$b.isbn, rrf(bm25($b.isbn, "x"), bm25($b.isbn, "y")) as s', 'order { nearest($b.emb, "x"), s }'),
            "T21",
            id="T21 before T17",
        ),
        pytest.param(book("", "$b.isbn as s", 'order { nearest($b.emb, "x"), s }'), "T17", id="T17 before T18"),
        pytest.param(
            book("", 'count($b) as s, "x" as t', 'order { nearest($b.emb, "x"), s } limit 3'),
            "T18",
            id="T18 before T9",
        ),
        pytest.param(book("", 'count($b) as s, "x" as t', 'order { nearest($b.emb, "x") }'), "T17", id="T17 before T9"),
        pytest.param(book("not { $s: Shop $s.nope = 1 }"), "T6", id="inner clauses before T9"),
        pytest.param(book("search($b.nope, 3)"), "T6", id="arguments in textual order"),
        pytest.param('query q() { insert Staff { levle: "x" } }', "T10", id="T10 before assignments"),
        pytest.param("query q($__now: I32) { match { $b: Nope } return { $b.x } }", None, id="parameters first"),
    ],
)
def test_check_order(text: str, code: str | None) -> None:
    assert refused(BOOKS, text).code == code


# --- places and suggestions -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("catalog", "text", "suggestion"),
    [
        (BOOKS, "query q() { match { $b: Bok } return { $b.isbn } }", "Book"),
        (BOOKS, book("", "$b.isbm"), "isbn"),
        (BOOKS, "query q() { match { $b: Book { pagse: 3 } } return { $b.isbn } }", "pages"),
        (BOOKS, book("$b cits $c"), "cites"),
        (BOOKS, book("$b sold_at $c"), "soldAt"),
        (BOOKS, book("$book: Book", "$bok.isbn"), "book"),
        (ORG, 'query q() { delete Staf where handle = "x" }', "Staff"),
        (ORG, 'query q() { delete Mentors where form = "x" }', "from"),
        (ORG, "query q($handle: String) { insert Staff { handle: $hnadle } }", "handle"),
    ],
)
def test_near_misses_are_named(catalog: Catalog, text: str, suggestion: str) -> None:
    error = refused(catalog, text)
    assert error.suggestion == suggestion
    assert "did you mean" in error.message
    assert suggestion in error.message


def test_an_error_knows_its_place() -> None:
    text = "query q() {\n  match {\n    $b: Book\n    $b.weigth > 1 // é\n  }\n  return { $b.isbn }\n}\n"
    parsed = parse_query_file(text, "books.gq")
    with pytest.raises(TypecheckError) as caught:
        check_query(find_query(parsed), BOOKS, parsed.source)
    error = caught.value
    assert (error.file, error.line, error.column) == ("books.gq", 4, 5)
    assert text.encode()[error.start : error.end] == b"$b.weigth"
    assert error.source_line == "    $b.weigth > 1 // é"
