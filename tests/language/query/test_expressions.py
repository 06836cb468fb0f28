"""Expressions and literals, alone and in `return`, `order` and `limit`."""

from __future__ import annotations

import pytest

from omnigraph.language.query.ast import (
    Access,
    Aggregate,
    Bm25,
    BoolLit,
    Comparison,
    DateLit,
    DateTimeLit,
    Expr,
    FloatLit,
    Fuzzy,
    Ident,
    IntLit,
    ListLit,
    MatchText,
    Nearest,
    Now,
    Ordering,
    Projection,
    Read,
    Rrf,
    Search,
    StringLit,
    Variable,
)
from omnigraph.language.query.parser import parse_query_file
from tests.language.query.parsing import read, refused

EMB, ISBN = Access("b", "emb"), Access("b", "isbn")


@pytest.mark.parametrize(
    ("text", "expr"),
    [
        pytest.param('"x\\n\\"y\\"\\t\\\\"', StringLit('x\n"y"\t\\'), id="QP-10"),
        pytest.param('"\\r"', StringLit("\r"), id="carriage-return"),
        pytest.param('"a\nb // no comment /* */"', StringLit("a\nb // no comment /* */"), id="raw-newline"),
        pytest.param('"åß漢🙂"', StringLit("åß漢🙂"), id="unicode"),
        pytest.param('""', StringLit(""), id="empty-string"),
        pytest.param('date("2026-02-14")', DateLit("2026-02-14"), id="QP-12-date"),
        pytest.param('datetime ( "2026-02-14T10:00:00Z" )', DateTimeLit("2026-02-14T10:00:00Z"), id="QP-12-datetime"),
        pytest.param('date("nonsense")', DateLit("nonsense"), id="the-text-of-a-date-is-not-judged-here"),
        pytest.param("now()", Now(), id="QP-12-now"),
        pytest.param("now ( )", Now(), id="now-with-blanks"),
        pytest.param("0", IntLit(0), id="zero"),
        pytest.param("007", IntLit(7), id="leading-zeros"),
        pytest.param("9223372036854775807", IntLit(2**63 - 1), id="largest-integer"),
        pytest.param("0" * 5000 + "1", IntLit(1), id="very-many-leading-zeros"),
        pytest.param("1.50", FloatLit("1.50"), id="float-keeps-its-digits"),
        pytest.param("true", BoolLit(True), id="true"),
        pytest.param("false", BoolLit(False), id="false"),
        pytest.param("[]", ListLit(()), id="empty-list"),
        pytest.param('[1, 2.0, "a", [true], date("d")]',
                     ListLit((IntLit(1), FloatLit("2.0"), StringLit("a"), ListLit((BoolLit(True),)), DateLit("d"))),
                     id="mixed-and-nested-lists-parse"),
        pytest.param("$x", Variable("x"), id="variable"),
        pytest.param("$_", Variable("_"), id="anonymous-variable"),
        pytest.param("$b.isbn", ISBN, id="access"),
        pytest.param("total", Ident("total"), id="bare-word"),
        pytest.param("nowhere", Ident("nowhere"), id="a-word-that-starts-with-now"),
        pytest.param("counter", Ident("counter"), id="a-word-that-starts-with-count"),
        pytest.param("count", Ident("count"), id="count-without-parentheses-is-a-word"),
        pytest.param("dates", Ident("dates"), id="a-word-that-starts-with-date"),
        pytest.param("count($b)", Aggregate("count", Variable("b")), id="count"),
        pytest.param("sum ( $b.n )", Aggregate("sum", Access("b", "n")), id="sum"),
        pytest.param("avg(min(max(1)))", Aggregate("avg", Aggregate("min", Aggregate("max", IntLit(1)))), id="nested"),
        pytest.param("search($b.isbn, $x)", Search(ISBN, Variable("x")), id="search"),
        pytest.param("match_text($b.isbn, \"a b\")", MatchText(ISBN, StringLit("a b")), id="match_text"),
        pytest.param("fuzzy($b.isbn, $x)", Fuzzy(ISBN, Variable("x")), id="fuzzy-without-edits"),
        pytest.param("fuzzy($b.isbn, $x, $n)", Fuzzy(ISBN, Variable("x"), Variable("n")), id="fuzzy-with-edits"),
        pytest.param("bm25($b.isbn, $x)", Bm25(ISBN, Variable("x")), id="bm25"),
        pytest.param("nearest($b.emb, [1.0, 2])", Nearest(EMB, ListLit((FloatLit("1.0"), IntLit(2)))), id="nearest"),
        pytest.param("rrf(nearest($b.emb, $v), nearest($b.emb, $v))",
                     Rrf(Nearest(EMB, Variable("v")), Nearest(EMB, Variable("v"))), id="rrf-without-k"),
    ],
)  # fmt: skip
def test_expressions(text: str, expr: Expr) -> None:
    body = read(f"query q() {{ match {{ $b.x = {text} }} return {{ {text} as a, {text} }} order {{ {text} }} }}")
    assert body.clauses == (Comparison(Access("b", "x"), "=", expr),)
    assert body.projections == (Projection(expr, "a"), Projection(expr))
    assert body.orderings == (Ordering(expr),)


def test_QP_12_dates_and_now_in_filter_and_return() -> None:
    body = read(
        'query q() { match { $b: Book $b.outday = date("2026-02-14") $b.seen >= datetime("2026-02-14T10:00:00Z") '
        "$b.seen <= now() } return { now() as ts } }"
    )
    assert body.clauses[1:] == (
        Comparison(Access("b", "outday"), "=", DateLit("2026-02-14")),
        Comparison(Access("b", "seen"), ">=", DateTimeLit("2026-02-14T10:00:00Z")),
        Comparison(Access("b", "seen"), "<=", Now()),
    )
    assert body.projections == (Projection(Now(), "ts"),)


@pytest.mark.parametrize(
    ("text", "fragment", "semantic"),
    [
        pytest.param('"x\\q"', "unsupported escape sequence", True, id="QP-11"),
        pytest.param('"\\u0041"', "unsupported escape sequence", True, id="unicode-escape"),
        pytest.param('date("\\d")', "unsupported escape sequence", True, id="escape-in-a-date"),
        pytest.param('"open', "unterminated string", False, id="unterminated-string"),
        pytest.param("9223372036854775808", "too large", True, id="integer-beyond-i64"),
        pytest.param("9" * 100_000, "too large", True, id="integer-of-very-many-digits"),
        pytest.param("9" * 400 + ".0", "too large", True, id="float-beyond-f64"),
        pytest.param("1.", "found `.`", False, id="float-without-fraction"),
        pytest.param(".5", "expected", False, id="float-without-integer-part"),
        pytest.param("[1,]", "expected an expression", False, id="trailing-comma-in-a-list"),
        pytest.param("[1", "expected `,` or `]`", False, id="unclosed-list"),
        pytest.param("now(1)", "expected `)`", False, id="now-with-an-argument"),
        pytest.param("count()", "or an expression", False, id="count-of-nothing"),
        pytest.param("count($a, $b)", "expected `)`, found `,`", False, id="count-of-two"),
        pytest.param("search($b.x)", "expected `,`", False, id="search-with-one-argument"),
        pytest.param("search($b.x, $y, $z)", "expected `)`, found `,`", False, id="search-with-three-arguments"),
        pytest.param("nearest($b, $v)", "expected `.`", False, id="nearest-of-a-variable"),
        pytest.param('nearest("x", $v)', "expected a variable", False, id="nearest-of-a-literal"),
        pytest.param("rrf(bm25($b.x, $y), search($b.x, $y), 60)", "expected `nearest` or `bm25`", False, id="QP-19"),
        pytest.param("rrf(bm25($b.x, $y))", "expected `,`", False, id="rrf-of-one"),
        pytest.param("rrf($a, $b)", "expected `nearest` or `bm25`", False, id="rrf-of-variables"),
        pytest.param("$b.x.y", "found `.`", False, id="access-of-an-access"),
        pytest.param("serach($b.x, $y)", "unknown function `serach`; did you mean `search`?", False, id="misspelt"),
    ],
)
def test_refused_expressions(text: str, fragment: str, semantic: bool) -> None:
    error = refused(f"query q() {{ match {{ $b: Book }} return {{ {text} }} }}")
    assert fragment in error.message
    assert error.semantic is semantic


# --- return, order, limit ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "projections"),
    [
        pytest.param("$s.a $s.b", [Projection(Access("s", "a")), Projection(Access("s", "b"))], id="no-commas"),
        pytest.param("$s.a, $s.b,", [Projection(Access("s", "a")), Projection(Access("s", "b"))], id="trailing-comma"),
        pytest.param("$s as x $s as y", [Projection(Variable("s"), "x"), Projection(Variable("s"), "y")], id="aliases"),
        pytest.param("$s.aasx", [Projection(Access("s", "aasx"))], id="a-name-is-taken-whole"),
        pytest.param("1asx", [Projection(IntLit(1), "x")], id="as-needs-no-blanks"),
        pytest.param("$s asc", [Projection(Variable("s"), "c")], id="asc-is-as-c"),
        pytest.param("$s as", [Projection(Variable("s")), Projection(Ident("as"))], id="as-without-a-name-is-a-word"),
        pytest.param("true_name", [Projection(Ident("true_name"))], id="words-are-bounded"),
    ],
)
def test_projections(text: str, projections: list[Projection]) -> None:
    assert read(f"query q() {{ match {{ $s: Staff }} return {{ {text} }} }}").projections == tuple(projections)


RRF = Rrf(Nearest(EMB, Variable("v")), Bm25(ISBN, Variable("x")), IntLit(60))


@pytest.mark.parametrize(
    ("text", "orderings", "limit"),
    [
        pytest.param("order { rrf(nearest($b.emb, $v), bm25($b.isbn, $x), 60) desc } limit 5",
                     [Ordering(RRF, True)], 5, id="QP-18"),
        pytest.param("order { $b.isbn asc, total desc, $b }",
                     [Ordering(ISBN, False), Ordering(Ident("total"), True), Ordering(Variable("b"))], None,
                     id="directions"),
        pytest.param("order { nearest($b.emb, $v), $b.isbn desc } limit 1",
                     [Ordering(Nearest(EMB, Variable("v"))), Ordering(ISBN, True)], 1, id="nearest-first"),
        pytest.param("order{$b.isbn}limit5", [Ordering(ISBN)], 5, id="no-blanks"),
        pytest.param("limit 0", [], 0, id="limit-without-order"),
        pytest.param("limit 18446744073709551615", [], 2**64 - 1, id="largest-limit"),
    ],
)  # fmt: skip
def test_order_and_limit(text: str, orderings: list[Ordering], limit: int | None) -> None:
    body = read(f"query q() {{ match {{ $b: Book }} return {{ $b.isbn }} {text} }}")
    assert (body.orderings, body.limit) == (tuple(orderings), limit)


@pytest.mark.parametrize(
    ("tail", "fragment", "semantic"),
    [
        pytest.param("order { nearest($b.emb, $v) desc } limit 5", "takes no direction", False, id="QP-16"),
        pytest.param("limit 5 order { $s.handle }", "`order` comes before `limit`", False, id="QP-25"),
        pytest.param("order { }", "expected an expression", False, id="empty-order"),
        pytest.param("order { $s.a $s.b }", "expected `asc`, `desc`, `,` or `}`", False, id="order-needs-commas"),
        pytest.param("order { $s.a, }", "expected an expression", False, id="trailing-comma"),
        pytest.param("order { $s.a asc desc }", "expected `,` or `}`", False, id="two-directions"),
        pytest.param("order $s.a", "expected `{`", False, id="order-without-braces"),
        pytest.param("limit 5.5", "found `.`", False, id="limit-by-float"),
        pytest.param("limit 18446744073709551616", "too large", True, id="limit-beyond-u64"),
        pytest.param("limit 5 limit 5", "expected `offset`, `union` or `}`", False, id="two-limits"),
    ],
)
def test_refused_order_and_limit(tail: str, fragment: str, semantic: bool) -> None:
    error = refused(f"query q() {{ match {{ $b: Book }} return {{ $b.isbn }} {tail} }}")
    assert fragment in error.message
    assert error.semantic is semantic


def test_plain_items_of_a_list_keep_their_places() -> None:
    """Numbers and texts at the beginning of a list are read at once; what they are and where they stand is the same."""
    text = 'query q() { match { $p: P $p.x in [1, "a, 2,", -30 , "", 4.5, 6, "\\n", null, 7] } return { $p.x } }'
    body = parse_query_file(text).queries[0].body
    assert isinstance(body, Read)
    condition = body.clauses[1]
    assert isinstance(condition, Comparison)
    items = condition.right
    assert isinstance(items, ListLit)
    shown = [text[item.span.start : item.span.end] for item in items.items]
    assert shown == ["1", '"a, 2,"', "-30", '""', "4.5", "6", '"\\n"', "null", "7"]
    values = [item.value for item in items.items if isinstance(item, IntLit | StringLit | FloatLit)]
    assert values == [1, "a, 2,", -30, "", 4.5, 6, "\n", 7]
