"""The clauses of `match`: what parses to which tree, and what is refused why."""

from __future__ import annotations

import pytest

from omnigraph.language.query.ast import (
    Access,
    Arithmetic,
    Binding,
    BoolLit,
    Clause,
    Comparison,
    Expr,
    Fuzzy,
    Ident,
    IntLit,
    IsNull,
    ListLit,
    Logical,
    MatchText,
    Negation,
    Not,
    Now,
    NullLit,
    PropertyMatch,
    Search,
    StringLit,
    Traversal,
    Variable,
)
from tests.language.query.parsing import read, refused

S = Binding("s", "Staff")


def hop(source: str, word: str, target: str, *, edge: str | None = None, undirected: bool = False) -> Traversal:
    return Traversal(source, edge, word, undirected, 1, 1, target)


def bounded(source: str, word: str, least: int, most: int | None, target: str, undirected: bool = False) -> Traversal:
    return Traversal(source, None, word, undirected, least, most, target, has_bounds=True)


@pytest.mark.parametrize(
    ("text", "clauses"),
    [
        pytest.param(
            "$s: Staff $s <mentors> $a $s <mentors>{1,3} $b not { $a <mentors> $b }",
            [
                S,
                hop("s", "mentors", "a", undirected=True),
                bounded("s", "mentors", 1, 3, "b", undirected=True),
                Negation((hop("a", "mentors", "b", undirected=True),)),
            ],
            id="QP-04",
        ),
        pytest.param(
            "$s: Staff $s $e:mentors $a $s $f:<mentors> $b",
            [S, hop("s", "mentors", "a", edge="e"), hop("s", "mentors", "b", edge="f", undirected=True)],
            id="QP-05",
        ),
        pytest.param("$s: Staff $s mentors{1,} $a", [S, bounded("s", "mentors", 1, None, "a")], id="QP-06"),
        pytest.param("$s: Staff not { $s memberOf $_ }", [S, Negation((hop("s", "memberOf", "_"),))], id="QP-08"),
        pytest.param("$s mentors { 0 , 2 } $a", [bounded("s", "mentors", 0, 2, "a")], id="hop-bounds-with-blanks"),
        pytest.param("$s mentors{2,2} $a", [bounded("s", "mentors", 2, 2, "a")], id="exact-hop-bounds"),
        pytest.param("$s $e:mentors{1,1} $a", [Traversal("s", "e", "mentors", False, 1, 1, "a", has_bounds=True)],
                     id="edge-binding-with-bounds-parses"),
        pytest.param("not { not { $s: Staff } }", [Negation((Negation((S,)),))], id="nested-negation"),
        pytest.param('$s: Staff { handle: "a", level: 3, }',
                     [Binding("s", "Staff", (PropertyMatch("handle", StringLit("a")),
                                             PropertyMatch("level", IntLit(3))))], id="trailing-comma-in-a-pattern"),
        pytest.param("$s: Staff { at: now() }", [Binding("s", "Staff", (PropertyMatch("at", Now()),))],
                     id="now-in-a-pattern"),
        pytest.param("$q contains $m", [hop("q", "contains", "m")], id="bare-variable-before-contains-is-a-traversal"),
        pytest.param("$q starts_with $m", [hop("q", "starts_with", "m")], id="bare-variable-before-starts_with"),
        pytest.param('$q contains "x"', [Comparison(Variable("q"), "contains", StringLit("x"))],
                     id="bare-variable-contains-a-literal-is-a-filter"),
        pytest.param("$a note $b", [hop("a", "note", "b")], id="an-edge-word-may-start-with-not"),
        pytest.param("$a not1 $b", [hop("a", "not1", "b")], id="a-digit-is-alphanumeric"),
        pytest.param("$a < b", [Comparison(Variable("a"), "<", Ident("b"))], id="less-than-is-not-undirected"),
        pytest.param("$a<b>$c", [hop("a", "b", "c", undirected=True)], id="undirected-without-blanks"),
        pytest.param("$a < b $a > c",
                     [Comparison(Variable("a"), "<", Ident("b")), Comparison(Variable("a"), ">", Ident("c"))],
                     id="less-and-greater"),
        pytest.param("$a.x = $b $e: Staff", [Comparison(Access("a", "x"), "=", Variable("b")), Binding("e", "Staff")],
                     id="a-type-name-makes-it-a-binding"),
        pytest.param("$a $e: staff $b", [hop("a", "staff", "b", edge="e")], id="an-edge-word-makes-it-a-traversal"),
        pytest.param("$a.x = null", [Comparison(Access("a", "x"), "=", NullLit())], id="null"),
        pytest.param("$a.x = -1", [Comparison(Access("a", "x"), "=", IntLit(-1))], id="negative-number"),
        pytest.param("$a.x = 1 and $a.y = 2 or not $a.z is not null", [Logical("or", (
            Logical("and", (Comparison(Access("a", "x"), "=", IntLit(1)), Comparison(Access("a", "y"), "=", IntLit(2)))),
            Not(IsNull(Access("a", "z"), negated=True))))], id="precedence-of-and-or-not"),
        pytest.param("$a.x + 2 * 3 > 1", [Comparison(Arithmetic(
            Access("a", "x"), "+", Arithmetic(IntLit(2), "*", IntLit(3))), ">", IntLit(1))], id="precedence-of-arithmetic"),
        pytest.param("($a.x + 2) * 3 > 1", [Comparison(Arithmetic(
            Arithmetic(Access("a", "x"), "+", IntLit(2)), "*", IntLit(3)), ">", IntLit(1))], id="parentheses"),
        pytest.param("$a.x > 1 not { $a: Staff }", [Comparison(Access("a", "x"), ">", IntLit(1)),
                     Negation((Binding("a", "Staff"),))], id="a-block-behind-a-condition"),
        pytest.param("$a.x not in [1, 2]", [Comparison(Access("a", "x"), "not in", ListLit((IntLit(1), IntLit(2))))],
                     id="not-in"),
        pytest.param("$a.order in $b", [Comparison(Access("a", "order"), "in", Variable("b"))], id="words-are-bounded"),
        pytest.param("$a in $b", [hop("a", "in", "b")], id="two-variables-and-in-are-told-apart-by-the-checker"),
        pytest.param("$a = $b", [Comparison(Variable("a"), "=", Variable("b"))], id="two-nodes"),
        pytest.param("$s: Staff { handle: $t.x }", [Binding("s", "Staff", (PropertyMatch("handle", Access("t", "x")),))],
                     id="access-in-a-pattern"),
        pytest.param("$a . x = 1", [Comparison(Access("a", "x"), "=", IntLit(1))], id="blanks-around-the-dot"),
        *(
            pytest.param(f"$a.x {op} 1", [Comparison(Access("a", "x"), op, IntLit(1))], id=f"operator-{op}")
            for op in ("starts_with", "contains", ">=", "<=", "!=", ">", "<", "=")
        ),
    ],
)  # fmt: skip
def test_clauses(text: str, clauses: list[Clause]) -> None:
    assert read(f"query q() {{ match {{ {text} }} return {{ $a.handle }} }}").clauses == tuple(clauses)


SEARCHES = "search($b.isbn, $x) fuzzy($b.isbn, $x, 2) match_text($b.isbn, $x)"


def test_QP_17_a_text_call_alone_is_a_filter() -> None:
    field, query = Access("b", "isbn"), Variable("x")
    assert read(f"query q($x: String) {{ match {{ $b: Book {SEARCHES} }} return {{ $b.isbn }} }}").clauses == (
        Binding("b", "Book"),
        Comparison(Search(field, query), "=", BoolLit(True)),
        Comparison(Fuzzy(field, query, IntLit(2)), "=", BoolLit(True)),
        Comparison(MatchText(field, query), "=", BoolLit(True)),
    )


@pytest.mark.parametrize(
    ("text", "operator", "right"),
    [
        pytest.param("search($b.x, $q) = false", "=", BoolLit(False), id="compared-with-false"),
        pytest.param("search($b.x, $q) != $p", "!=", Variable("p"), id="compared-with-a-parameter"),
    ],
)
def test_a_text_call_may_be_compared_like_any_expression(text: str, operator: str, right: Expr) -> None:
    clause = Comparison(Search(Access("b", "x"), Variable("q")), operator, right)
    assert read(f"query q() {{ match {{ {text} }} return {{ $b }} }}").clauses == (clause,)


@pytest.mark.parametrize(
    ("clause", "fragment"),
    [
        pytest.param("$s mentors{2} $a", "hop bounds take a comma", id="QP-07"),
        pytest.param("$s mentors{,3} $a", "hop bounds start with a number", id="open-least-bound"),
        pytest.param("$s mentors{} $a", "expected an integer", id="empty-hop-bounds"),
        pytest.param("$s mentors{1,2,3} $a", "expected `}`", id="three-hop-bounds"),
        pytest.param("$s mentors{-1,3} $a", "expected an integer", id="negative-hop-bound"),
        pytest.param("$x starts_with $s.handle", "reads as a traversal", id="QP-26"),
        pytest.param("$x contains $s.handle", "reads as a traversal", id="QP-26-contains"),
        pytest.param("$s Mentors $a", "lower-case first letter", id="upper-case-edge-word"),
        pytest.param("$s <Mentors> $a", "lower-case first letter", id="upper-case-undirected-edge-word"),
        pytest.param("$s not $a", "an edge name", id="edge-named-not"),
        pytest.param("$s not_here $a", "an edge name", id="edge-named-not-and-an-underscore"),
        pytest.param("$s <not> $a", "found `>`", id="undirected-edge-named-not"),
        pytest.param("$s <mentors $a", "found `}`", id="unclosed-undirected-is-less-than-and-then-nothing"),
        pytest.param("$s $e mentors $a", "expected `:`", id="edge-binding-without-colon"),
        pytest.param("$s mentors", "expected `|`, `{` or a variable", id="traversal-without-target"),
        pytest.param("$s: Staff {}", "expected a name", id="empty-pattern"),
        pytest.param("$s: Staff { handle = 3 }", "expected `:`", id="equals-in-a-pattern"),
        pytest.param("$s: staff", "expected a type name", id="lower-case-type"),
        pytest.param("$Foo: Staff", "a variable starts with a lower-case letter", id="upper-case-variable"),
        pytest.param("$ s: Staff", "a variable", id="blank-inside-a-variable"),
        pytest.param("not { }", "or an expression", id="empty-negation"),
        pytest.param("not { $s: Staff", "a `}` is missing before `return`", id="unclosed-negation"),
        pytest.param("", "expected `not` or an expression", id="empty-match"),
        pytest.param("bm25($b.isbn, $x)", "an operator such as `=`", id="bm25-is-no-clause"),
        pytest.param("nearest($b.emb, $v)", "an operator such as `=`", id="nearest-is-no-clause"),
        pytest.param("rrf(bm25($b.x, $y), bm25($b.x, $y))", "an operator such as `=`", id="rrf-is-no-clause"),
        pytest.param("$s.x == 1", "equality is a single `=`", id="double-equals"),
        pytest.param("$s.x <> 1", "inequality is `!=`", id="angle-brackets"),
        pytest.param("$s.x = 'a'", "double quotes", id="single-quotes"),
        pytest.param("$s.x = 1_000", "`1_000` is no number", id="underscores-in-numbers"),
        pytest.param("$s: Staff, $t: Team", "found `,`", id="comma-between-clauses"),
        pytest.param("$s: Staff # note", "comments start with `//`", id="hash-comment"),
        pytest.param("$s.X = 1", "expected a name", id="upper-case-property"),
    ],
)
def test_refused_clauses(clause: str, fragment: str) -> None:
    error = refused(f"query q() {{ match {{ {clause} }} return {{ $s.handle }} }}")
    assert fragment in error.message
    assert error.semantic is False
