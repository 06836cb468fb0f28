"""The type checker: behaviours.md section 3, every code of languages.md 2.4, and what the tables of 2.2 and 2.3 accept."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from omnigraph.errors import BadRequest, LanguageError, TypecheckError
from omnigraph.language.query.check import CheckedQuery, CheckedRead, check_query
from omnigraph.language.query.compile import compile_query
from omnigraph.language.query.ir import Direction, InsertNode, Member, MutationPlan
from omnigraph.language.query.parser import find_query, parse_query_file
from omnigraph.language.schema.catalog import Catalog
from tests.language.query.catalogs import BOOKS, DOC, EVENT, KINDS, ORG, PAGE, SAME


def checked(catalog: Catalog, text: str) -> CheckedQuery:
    parsed = parse_query_file(text)
    return check_query(find_query(parsed), catalog, parsed.source)


def refused(catalog: Catalog, text: str) -> TypecheckError:
    with pytest.raises(TypecheckError) as caught:
        compile_query(text, None, catalog)
    return caught.value


def book(clauses: str = "", returns: str = "$b.isbn", tail: str = "", params: str = "") -> str:
    """A read over `$b: Book`."""
    return f"query q({params}) {{ match {{ $b: Book {clauses} }} return {{ {returns} }} {tail} }}"


def kind(assignments: str, params: str = "") -> str:
    """An insert of a Kind."""
    return f'query q({params}) {{ insert Kind {{ k: "x" {assignments} }} }}'


class Bad(NamedTuple):
    """A refused query: its code, and fragments of the message."""

    id: str
    catalog: Catalog
    text: str
    code: str | None
    fragments: tuple[str, ...] = ()


class Good(NamedTuple):
    """An accepted query."""

    id: str
    catalog: Catalog
    text: str


BLOB = "type error: T24: Blob property `{}` is not available as a .gq read value; Blob values require a dedicated API"
ENDS = "query q({}) {{ match {{ {} }} return {{ $b.x }} }}"

REFUSED = [
    # --- section 3 of behaviours.md
    Bad("QT-01", BOOKS, "query q() { match { $b: Novel } return { $b.isbn } }", "T1", ("Novel",)),
    Bad("QT-02", BOOKS, "query q() { match { $b: Book { weight: 3 } } return { $b.isbn } }", "T2", ("weight", "Book")),
    Bad("QT-03 string for a number", BOOKS, "query q() { match { $b: Book { pages: \"x\" } } return { $b.isbn } }", "T3"),
    Bad("QT-03 number for a string", BOOKS, "query q() { match { $b: Book { isbn: 3 } } return { $b.isbn } }", "T3"),
    Bad(
        "QT-05",
        BOOKS,
        'query q() { match { $b: Book { tags: ["rust"] } } return { $b.isbn } }',
        "T3",
        ("list equality is not supported", "membership"),
    ),
    Bad("QT-08", BOOKS, book("$b.isbn contains 42"), "T7", ("string contains requires a String right operand",)),
    Bad("QT-09 list in list", BOOKS, book('$b.tags contains ["a"]'), "T7"),
    Bad("QT-10 number in list of strings", BOOKS, book("$b.tags contains 3"), "T7"),
    Bad("QT-10 number as the left side", BOOKS, book("$b.pages contains 3"), "T7"),
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
    Bad("QT-17", BOOKS, book('$b.pages > "x"'), "T7", ("I32?", "String")),
    Bad("QT-18", BOOKS, book("$b != 5"), "T7", ("scalar operands",)),
    Bad("QT-19", BOOKS, book("$b.pages = null"), "T7", ("scalar operands",)),
    Bad("QT-20", BOOKS, book("$b cites{3,1} $c", "$c.isbn"), "T15"),
    Bad("QT-21", BOOKS, book("$b cites{1,} $c", "$c.isbn"), "T15", ("unbounded traversal is disabled",)),
    Bad("QT-22", BOOKS, book("$b cites{0,2} $c", "$c.isbn"), "T15", ("minimum", "1")),
    Bad("QT-24", BOOKS, book("$b <soldAt> $s", "$s.city"), "T22", ("SoldAt",)),
    Bad("QT-26 sum of text", BOOKS, book("", "sum($b.isbn) as n"), "T8"),
    Bad("QT-27 unrelated negation", BOOKS, book("not { $s: Shop }"), "T9"),
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
    Bad("QT-37 edge variable as an endpoint", SAME, ENDS.format("", "$a $w:same $b $w same $c"), "T23"),
    Bad("QT-38 bare edge variable", BOOKS, book("$b $e:cites $c", "$e"), "T23", ("$e",)),
    Bad("QT-39", BOOKS, book('$b $e:cites $c search($e.note, "x")'), "T23", ("search", "node properties")),
    Bad(
        "QT-40",
        BOOKS,
        book("$b $e:cites $c", "$c.isbn", 'order { nearest($e.note, "x") } limit 5'),
        "T23",
        ("node properties",),
    ),
    Bad("QT-42 dimension", BOOKS, book("", tail="order { nearest($b.emb, $v) } limit 3", params="$v: Vector(2)"), "T15"),
    Bad("QT-43 without limit", BOOKS, book("", tail="order { nearest($b.emb, $v) }", params="$v: Vector(3)"), "T17"),
    Bad(
        "QT-45",
        BOOKS,
        book("", "$b.isbn as s", "order { nearest($b.emb, $v), s desc } limit 5", "$v: Vector(3)"),
        "T18",
    ),
    Bad(
        "QT-46 rrf without limit",
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
    Bad("QT-49 search with a number", BOOKS, book("search($b.isbn, 3)"), "T19"),
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
        Bad(f"QT-52 {use}", BOOKS, book("", *tail, params="$p: Blob"), "T24", ("Blob parameter `$p`",))
        for use, tail in {
            "projection": ("$p",),
            "alias": ("$p as x",),
            "order": ("$b.isbn", "order { $p }"),
            "count": ("count($p) as n",),
        }.items()
    ),
    Bad(
        "QT-53 pattern",
        BOOKS,
        "query q($p: Blob) { match { $b: Book { cover: $p } } return { $b.isbn } }",
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
    Bad("QT-55 literal for a Blob", KINDS, kind('bytes: "base64:AQID"'), "T3", ("Kind.bytes",)),
    Bad("QT-56", DOC, "query q($s: String) { insert Doc { slug: $s } }", "T12", ("emb", "body")),
    Bad("QT-57", ORG, "query q($n: I32) { insert Staff { level: $n } }", "T12", ("handle",)),
    Bad("QT-58", ORG, "query q($a: String) { insert Mentors { from: $a } }", "T12", ("`to`",)),
    Bad("QT-59 insert", ORG, 'query q() { insert Staff { handle: "x", levle: 3 } }', "T11", ("levle", "Staff", "level")),
    Bad("QT-60", ORG, "query q($h: String) { delete Nobody where handle = $h }", "T10", ("Nobody",)),
    Bad("QT-60 second", ORG, 'query q() { insert Staff { handle: "x" } insert Nobody { handle: "x" } }', "T10"),
    Bad("QT-60 second is a delete", ORG, 'query q() { insert Staff { handle: "x" } delete Nobody where a = "x" }', "T10"),
    Bad("QT-61", ORG, 'query q($a: String) { update Mentors set { began: date("2020-01-01") } where from = $a }', "T16"),
    Bad("QT-62", EVENT, 'query q() { update Ev set { day: now() } where slug = "x" }', "T7", ("DateTime", "day")),
    Bad("QT-64 twice", ORG, 'query q($h: String) { insert Staff { handle: $h, handle: "x" } }', "T13", ("handle",)),
    Bad("QT-64 undeclared", ORG, "query q() { insert Staff { handle: $zz } }", "T14", ("$zz",)),
    Bad(
        "QT-65",
        BOOKS,
        'query q() { match { $b: Book { kind: "drama" } } return { $b.isbn } }',
        "T3",
        ("essay", "novel", "poetry"),
    ),
    Bad(
        "MUT-09",
        ORG,
        "query q($h: String, $n: String) { update Staff set { handle: $n } where handle = $h }",
        None,
        ("@key", "handle"),
    ),
    # --- T2, T3: patterns
    Bad("T2 second binding", BOOKS, book("$b: Book { nope: 1 }"), "T2"),
    Bad("T3 vector length", BOOKS, "query q() { match { $b: Book { emb: [1.0, 2.0] } } return { $b.isbn } }", "T3", ("3",)),
    Bad("T3 vector of texts", BOOKS, 'query q() { match { $b: Book { emb: ["a"] } } return { $b.isbn } }', "T3"),
    Bad("T3 list for a scalar", BOOKS, "query q() { match { $b: Book { pages: [1] } } return { $b.isbn } }", "T3"),
    Bad("T3 element of a list", BOOKS, "query q() { match { $b: Book { tags: 3 } } return { $b.isbn } }", "T3"),
    Bad("T3 Date for DateTime", BOOKS, 'query q() { match { $b: Book { seen: date("2024-01-01") } } return { $b.isbn } }', "T3"),
    Bad("T3 String for Date", BOOKS, 'query q() { match { $b: Book { outday: "2024-01-01" } } return { $b.isbn } }', "T3"),
    Bad("T3 Blob and a literal", BOOKS, 'query q() { match { $b: Book { cover: "x" } } return { $b.isbn } }', "T3"),
    Bad("T3 enum in a filter", BOOKS, book('$b.kind = "drama"'), "T3", ("essay, novel, poetry",)),
    Bad("T3 enum on the right", BOOKS, book('"drama" != $b.kind'), "T3"),
    Bad("T7 pattern parameter", BOOKS, "query q($p: String) { match { $b: Book { pages: $p } } return { $b.isbn } }", "T7"),
    Bad(
        "T7 list parameter as list equality",
        BOOKS,
        "query q($t: [String]) { match { $b: Book { tags: $t } } return { $b.isbn } }",
        "T7",
        ("list equality is not supported", "membership"),
    ),
    Bad("T7 now in a pattern", BOOKS, "query q() { match { $b: Book { outday: now() } } return { $b.isbn } }", "T7", ("DateTime",)),
    Bad("T7 vector parameter", BOOKS, "query q($v: Vector(2)) { match { $b: Book { emb: $v } } return { $b.isbn } }", "T7"),
    Bad("pattern value is a bound variable", BOOKS, book("$c: Book { isbn: $b }"), None, ("$b", "declared parameter")),
    Bad("pattern value is unknown", BOOKS, "query q() { match { $b: Book { isbn: $zz } } return { $b.isbn } }", None, ("$zz",)),
    Bad("list pattern value is unknown", BOOKS, "query q() { match { $b: Book { tags: $zz } } return { $b.isbn } }", None, ("$zz",)),
    # --- T4, T5, T15, T22: traversals
    Bad("T4 contains is an edge word", BOOKS, book("$q contains $m"), "T4", ("contains",)),
    Bad("T4 in a negation", BOOKS, book("not { $b likes $c }"), "T4"),
    Bad("T5 target", BOOKS, book("$s: Shop $b cites $s"), "T5", ("$s", "Shop")),
    Bad("T5 only the target bound", BOOKS, "query q() { match { $s: Shop $x cites $s } return { $s.city } }", "T5"),
    Bad("T5 both at the same end", BOOKS, book("$c: Book $b soldAt $c"), "T5"),
    Bad("T5 one variable at both ends", BOOKS, "query q() { match { $a soldAt $a } return { $a.isbn } }", "T5"),
    Bad("T15 bounds in a negation", BOOKS, book("not { $b cites{0,1} $c }"), "T15"),
    # --- T6
    Bad("T6 unbound", BOOKS, book("$zz.isbn = \"x\""), "T6", ("$zz",)),
    Bad("T6 projection", BOOKS, book("", "$b.nope"), "T6"),
    Bad("T6 order", BOOKS, book("", tail="order { $b.nope }"), "T6"),
    Bad("T6 aggregate", BOOKS, book("", "count($b.nope) as n"), "T6"),
    Bad("T6 search", BOOKS, book('search($b.nope, "x")'), "T6"),
    Bad("T6 a parameter has no properties", BOOKS, book("$p.isbn = \"x\"", params="$p: String"), "T6"),
    Bad("T6 anonymous", BOOKS, book("$b cites $_ $_.isbn = \"x\""), "T6"),
    Bad("T6 name from a negation", BOOKS, book("not { $b soldAt $s }", "$s.city"), "T6", ("$s",)),
    Bad("T6 filter before its binding", BOOKS, 'query q() { match { $b.isbn = "x" $b: Book } return { $b.isbn } }', "T6"),
    # --- T7: filters
    Bad("T7 Date and DateTime", BOOKS, book("$b.outday = $b.seen"), "T7"),
    Bad("T7 Date and String", BOOKS, book('$b.outday = "2024-01-01"'), "T7"),
    Bad("T7 Bool and number", BOOKS, book("$b.pages = true"), "T7"),
    Bad("T7 parameter", BOOKS, book("$b.pages = $p", params="$p: String"), "T7"),
    Bad("T7 lists", BOOKS, book("$b.tags = $b.tags"), "T7", ("list",)),
    Bad("T7 list parameter", BOOKS, book("$b.isbn = $t", params="$t: [String]"), "T7"),
    Bad("T7 list literal", BOOKS, book("$b.pages = [1]"), "T7"),
    Bad("T7 vectors", BOOKS, book("$b.emb = $v", params="$v: Vector(3)"), "T7", ("vector",)),
    Bad("T7 one Blob parameter", BOOKS, book("$b.isbn = $p", params="$p: Blob"), "T7"),
    Bad("T7 now", BOOKS, book("$b.outday < now()"), "T7", ("DateTime",)),
    Bad("T7 now on the left", BOOKS, book("now() = $b.isbn"), "T7"),
    Bad("T7 aggregate", BOOKS, book("count($b) > 3"), "T7", ("scalar operands",)),
    Bad("T7 bare word", BOOKS, book("$b.isbn = title"), "T7", ("scalar operands",)),
    Bad("T7 two nodes", BOOKS, book("$c: Book $b = $c"), "T7", ("scalar operands",)),
    Bad("T7 contains on a vector", BOOKS, book("$b.emb contains 1.0"), "T7"),
    Bad("T7 starts_with on a list", BOOKS, book('$b.tags starts_with "a"'), "T7"),
    Bad("T7 Bool search", BOOKS, book('search($b.isbn, "x") = 1'), "T7"),
    Bad("T7 order by a list", BOOKS, book("", tail="order { $b.tags }"), "T7"),
    Bad("T7 order by an alias of a vector", BOOKS, book("", "$b.emb as v", tail="order { v }"), "T7"),
    # --- T8, T9: aggregates
    Bad("T8 avg of a Date", BOOKS, book("", "avg($b.outday) as n"), "T8"),
    Bad("T8 min of a Date", BOOKS, book("", "min($b.outday) as n"), "T8"),
    Bad("T8 max of a list", BOOKS, book("", "max($b.tags) as n"), "T8"),
    Bad("T8 sum of a node", BOOKS, book("", "sum($b) as n"), "T8"),
    Bad("T8 min of a node", BOOKS, book("", "min($b) as n"), "T8"),
    Bad("T8 nested", BOOKS, book("", "count(count($b)) as n"), "T8"),
    Bad("T8 alias", BOOKS, book("", "$b.pages as p, sum(p) as n"), "T8"),
    Bad("T9a parameter only", BOOKS, book('not { $p = "x" }', params="$p: String"), "T9"),
    Bad("T9a bound later", BOOKS, "query q() { match { not { $b soldAt $_ } $b: Book } return { $b.isbn } }", "T9"),
    Bad("T9b now", BOOKS, book("", "count($b) as n, now() as t"), "T9"),
    Bad("T9b score", BOOKS, book("", 'count($b) as n, bm25($b.isbn, "x") as s'), "T9"),
    Bad("T9b literal list", BOOKS, book("", "count($b) as n, [1] as l"), "T9"),
    Bad("T9b order by what is not returned", BOOKS, book("", "$b.isbn, count($b) as n", "order { $b.pages }"), "T9"),
    # --- T10 … T16: mutations
    Bad("T10 update", ORG, 'query q() { update Nobody set { a: 1 } where b = "x" }', "T10"),
    Bad("T10 edge words are not types", ORG, 'query q() { delete Mentor where from = "x" }', "T10", ("Mentors",)),
    Bad("T11 update", ORG, 'query q() { update Staff set { nope: 1 } where handle = "x" }', "T11"),
    Bad("T11 update where", ORG, 'query q() { update Staff set { level: 1 } where nope = "x" }', "T11"),
    Bad("T11 delete", ORG, 'query q() { delete Staff where nope = "x" }', "T11"),
    Bad("T11 edge property", ORG, 'query q() { insert Mentors { from: "a", to: "b", nope: 1 } }', "T11"),
    Bad("T11 edge columns are not written", ORG, 'query q() { insert Mentors { src: "a", dst: "b" } }', "T11"),
    Bad("T11 src in where", ORG, 'query q() { delete Mentors where src = "a" }', "T11"),
    Bad("T11 from on a node", ORG, 'query q() { delete Staff where from = "a" }', "T11"),
    Bad("T11 id can not be assigned", ORG, 'query q() { insert Staff { handle: "x", id: "y" } }', "T11"),
    Bad("T12 from", ORG, 'query q() { insert Mentors { to: "a" } }', "T12", ("`from`",)),
    Bad("T12 edge property", KINDS, 'query q() { insert Pair { from: "a", to: "b" } }', "T12", ("`n`",)),
    Bad("T13 update", ORG, 'query q() { update Staff set { level: 1, level: 2 } where handle = "x" }', "T13"),
    Bad("T13 endpoint", ORG, 'query q() { insert Mentors { from: "a", from: "b", to: "c" } }', "T13"),
    Bad("T14 where", ORG, "query q() { delete Staff where handle = $zz }", "T14"),
    Bad("T14 Blob", KINDS, kind("bytes: $zz"), "T14"),
    Bad("T3 assignment", ORG, 'query q() { insert Staff { handle: "x", level: "high" } }', "T3", ("Staff.level",)),
    Bad("T3 fraction for an integer", KINDS, kind("i: 2.7"), "T3", ("whole",)),
    Bad("T3 beyond I32", KINDS, kind("i: 3000000000"), "T3", ("range",)),
    Bad("T3 beyond U32", KINDS, kind("u: 4294967296"), "T3", ("range",)),
    Bad("T3 beyond F32", KINDS, kind("f: 400000000000000000000000000000000000000.0"), "T3", ("range",)),
    Bad("T3 list element beyond I32", KINDS, kind("is: [1, 3000000000]"), "T3", ("range",)),
    Bad("T3 enum assignment", KINDS, kind('e: "ajar"'), "T3", ("open, shut",)),
    Bad("T3 vector assignment", KINDS, kind("v: [1.0]"), "T3", ("2",)),
    Bad("T3 scalar for a list", KINDS, kind('ss: "a"'), "T3"),
    Bad("T3 list of other elements", KINDS, kind("ss: [1]"), "T3"),
    Bad("T3 empty list is a list of strings", KINDS, kind("is: []"), "T3"),
    Bad("T3 endpoint", ORG, 'query q() { insert Mentors { from: 3, to: "b" } }', "T3"),
    Bad("T7 assignment parameter", ORG, 'query q($n: String) { insert Staff { handle: "x", level: $n } }', "T7"),
    Bad("T7 endpoint parameter", ORG, 'query q($n: I32) { insert Mentors { from: $n, to: "b" } }', "T7"),
    Bad("T7 Blob parameter for text", KINDS, kind("s: $p", "$p: Blob"), "T7"),
    Bad("T7 number for a Blob", KINDS, kind("bytes: $p", "$p: I32"), "T7"),
    Bad("T7 vector of another length", KINDS, kind("v: $p", "$p: Vector(3)"), "T7"),
    Bad("T7 list for a vector", KINDS, kind("v: $p", "$p: [F32]"), "T7"),
    Bad("T7 now for text", KINDS, kind("s: now()"), "T7"),
    Bad("T7 where literal", ORG, 'query q() { delete Staff where level = "x" }', "T7"),
    Bad("T7 where parameter", ORG, "query q($p: String) { delete Staff where level = $p }", "T7"),
    Bad("T7 where now", ORG, "query q() { delete Staff where handle = now() }", "T7"),
    Bad("T7 where list", KINDS, 'query q() { delete Kind where ss = "a" }', "T7"),
    Bad("T7 where vector", KINDS, "query q($v: Vector(2)) { delete Kind where v = $v }", "T7"),
    Bad("T7 where endpoint", ORG, "query q() { delete Mentors where from = 3 }", "T7"),
    Bad("T3 where enum", KINDS, 'query q() { delete Kind where e = "ajar" }', "T3"),
    Bad("T16 before its assignments", ORG, 'query q() { update Mentors set { nope: 1 } where from = "x" }', "T16"),
    # --- T15, T17 … T21: search
    Bad("T15 unbound", BOOKS, book("", tail='order { nearest($zz.emb, "x") } limit 1'), "T15"),
    Bad("T15 unknown property", BOOKS, book("", tail='order { nearest($b.nope, "x") } limit 1'), "T15"),
    Bad("T15 not a vector", BOOKS, book("", tail='order { nearest($b.isbn, "x") } limit 1'), "T15"),
    Bad("T15 Blob", BOOKS, book("", tail='order { nearest($b.cover, "x") } limit 1'), "T15"),
    Bad("T15 list length", BOOKS, book("", tail="order { nearest($b.emb, [1.0, 2.0]) } limit 1"), "T15", ("3",)),
    Bad("T15 list of texts", BOOKS, book("", tail='order { nearest($b.emb, ["a", "b", "c"]) } limit 1'), "T15"),
    Bad("T15 number", BOOKS, book("", tail="order { nearest($b.emb, 3) } limit 1"), "T15"),
    Bad("T15 list parameter", BOOKS, book("", tail="order { nearest($b.emb, $v) } limit 1", params="$v: [F32]"), "T15"),
    Bad("T15 query from a row", BOOKS, book("$c: Book", tail="order { nearest($b.emb, $c.emb) } limit 1"), "T15"),
    Bad("T15 node as query", BOOKS, book("", tail="order { nearest($b.emb, $b) } limit 1"), "T15"),
    Bad("nearest with an unknown variable", BOOKS, book("", tail="order { nearest($b.emb, $zz) } limit 1"), None, ("$zz",)),
    Bad("T18 the alias first", BOOKS, book("", "$b.isbn as s", 'order { s, nearest($b.emb, "x") } limit 5'), "T18"),
    Bad("T19 search field", BOOKS, book('search($b.pages, "x")'), "T19"),
    Bad("T19 search on a list", BOOKS, book('search($b.tags, "x")'), "T19"),
    Bad("T19 search on a literal", BOOKS, book('search("text", "x")'), "T19"),
    Bad("T19 search on a node", BOOKS, book('search($b, "x")'), "T19"),
    Bad("T19 search parameter", BOOKS, book("search($b.isbn, $x)", params="$x: [String]"), "T19"),
    Bad("T19 search for a column", BOOKS, book("search($b.isbn, $b.isbn)"), "T19"),
    Bad("T19 fuzzy query", BOOKS, book("fuzzy($b.isbn, 3)"), "T19"),
    Bad("T19 fuzzy edits", BOOKS, book('fuzzy($b.isbn, "x", "two")'), "T19"),
    Bad("T19 fuzzy fraction", BOOKS, book('fuzzy($b.isbn, "x", 1.5)'), "T19"),
    Bad("T20 match_text field", BOOKS, book('match_text($b.pages, "x")'), "T20"),
    Bad("T20 match_text query", BOOKS, book("match_text($b.isbn, true)"), "T20"),
    Bad("T20 bm25 field", BOOKS, book("", 'bm25($b.pages, "x") as s'), "T20"),
    Bad("T23 bm25 on an edge", BOOKS, book("$b $e:cites $c", 'bm25($e.note, "x") as s'), "T23"),
    Bad("T23 fuzzy on an edge", BOOKS, book('$b $e:cites $c fuzzy($e.note, "x")'), "T23"),
    Bad("T24 search on a Blob", BOOKS, book('search($b.cover, "x")'), "T24"),
    Bad("T24 contains on a Blob", BOOKS, book('$b.cover contains "x"'), "T24"),
    Bad("T24 Blob parameter in contains", BOOKS, book("$b.isbn contains $p", params="$p: Blob"), "T24"),
    Bad(
        "T21 k is text",
        BOOKS,
        book("", tail='order { rrf(bm25($b.isbn, "x"), bm25($b.isbn, "y"), "k") } limit 5'),
        "T21",
    ),
    Bad(
        "T21 k is a fraction",
        BOOKS,
        book("", tail='order { rrf(bm25($b.isbn, "x"), bm25($b.isbn, "y"), 1.5) } limit 5'),
        "T21",
    ),
    Bad("T15 inside rrf", BOOKS, book("", tail='order { rrf(bm25($b.isbn, "x"), nearest($b.isbn, "y")) } limit 5'), "T15"),
    Bad("T20 inside rrf", BOOKS, book("", tail='order { rrf(bm25($b.pages, "x"), nearest($b.emb, "y")) } limit 5'), "T20"),
    # --- T23: edge bindings
    Bad("T23 even {1,1}", BOOKS, book("$b $e:cites{1,1} $c"), "T23"),
    Bad("T23 equal to the target", BOOKS, book("$b $c:cites $c"), "T23", ("endpoint", "distinct names")),
    Bad("T23 bound as an edge before", BOOKS, book("$b $e:cites $c $c $e:cites $d"), "T23"),
    Bad("T23 bound as a node before", BOOKS, book("$s: Shop $b $s:cites $c"), "T23"),
    Bad("T23 as a target", SAME, "query q() { match { $a $w:same $b $a same $w } return { $b.x } }", "T23"),
    Bad("T23 bare in a filter", BOOKS, book("$b $e:cites $c $e = 3"), "T23"),
    Bad("T23 bare in count", BOOKS, book("$b $e:cites $c", "count($e) as n"), "T23"),
    Bad("T23 bare in order", BOOKS, book("$b $e:cites $c", tail="order { $e }"), "T23"),
    Bad("T22 in a negation", BOOKS, book("not { $b <soldAt> $s }"), "T22"),
    # --- uncoded
    Bad("reserved parameter", BOOKS, book(params="$__now: DateTime"), None, ("reserved", "__now")),
    Bad("anonymous parameter", BOOKS, book(params="$_: String"), None, ("reserved",)),
    Bad("parameter twice", BOOKS, book(params="$a: String, $a: I32"), None, ("$a", "twice")),
    Bad("list of Blobs", BOOKS, book(params="$a: [Blob]"), None, ("[Blob]",)),
    Bad("mixed list", BOOKS, book("", '[1, "a"] as l'), None, ("I64", "String")),
    Bad("nested list", BOOKS, book("", "[[1], [2]] as l"), None, ("list",)),
    Bad("mixed list in a pattern", BOOKS, 'query q() { match { $b: Book { emb: [1, "a", 2] } } return { $b.isbn } }', None),
    Bad("no such date", BOOKS, book('$b.outday = date("2024-02-30")'), None, ("2024-02-30",)),
    Bad("no such date in a pattern", BOOKS, 'query q() { match { $b: Book { outday: date("soon") } } return { $b.isbn } }', None),
    Bad("datetime finer than a millisecond", BOOKS, book('$b.seen = datetime("2024-01-01T00:00:00.0001Z")'), None, ("finer",)),
    Bad("no such datetime in an assignment", EVENT, 'query q() { update Ev set { at: datetime("x") } where slug = "x" }', None),
    Bad("unbound in count", BOOKS, book("", "count($zz) as n"), None, ("$zz",)),
    Bad("unbound in order", BOOKS, book("", tail="order { $zz }"), None, ("$zz",)),
    Bad("anonymous bare", BOOKS, book("$b cites $_", "$_"), None),
    Bad("bare word returned", BOOKS, book("", "isbn"), None, ("isbn",)),
    Bad("bound again by a traversal", BOOKS, "query q() { match { $b soldAt $s $s: Book } return { $b.isbn } }", None, ("Shop",)),
    Bad("two columns of one name", BOOKS, book("", "$b.isbn as x, $b.pages as x"), None, ("`x`", "alias")),
    Bad("two equal columns", BOOKS, book("", "$b.isbn, $b.isbn"), None, ("b.isbn",)),
    Bad("part of a composite key", KINDS, 'query q() { update Kind set { k: "y" } where s = "x" }', None, ("@key",)),
]

ACCEPTED = [
    Good("QT-04 literal", BOOKS, 'query q() { match { $b: Book { tags: "rust" } } return { $b.isbn } }'),
    Good("QT-04 parameter", BOOKS, "query q($t: String) { match { $b: Book { tags: $t } } return { $b.isbn } }"),
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
    Good("QT-55 String parameter for a Blob", KINDS, kind("bytes: $p", "$p: String")),
    Good("QT-55 Blob parameter for a Blob", KINDS, kind("bytes: $p", "$p: Blob?")),
    Good("QT-56 accepted", DOC, "query q($s: String, $t: String) { insert Doc { slug: $s body: $t } }"),
    Good("QT-56 vector given", DOC, "query q($s: String, $v: Vector(3)) { insert Doc { slug: $s emb: $v } }"),
    Good("QT-62 accepted", EVENT, 'query q() { update Ev set { at: now() } where slug = "x" }'),
    Good("QT-65 parameter", BOOKS, "query q($k: String) { match { $b: Book { kind: $k } } return { $b.isbn } }"),
    # --- patterns
    Good("enum literal", BOOKS, 'query q() { match { $b: Book { kind: "novel" } } return { $b.isbn } }'),
    Good("enum may be ordered by any text", BOOKS, book('$b.kind > "m"')),
    Good("enum prefix", BOOKS, book('$b.kind starts_with "no"')),
    Good("int for a float", BOOKS, "query q() { match { $b: Book { price: 3 } } return { $b.isbn } }"),
    Good("fraction for an integer", BOOKS, "query q() { match { $b: Book { pages: 2.7 } } return { $b.isbn } }"),
    Good("beyond the column's range", BOOKS, "query q() { match { $b: Book { pages: 3000000000 } } return { $b.isbn } }"),
    Good("now in a pattern", BOOKS, "query q() { match { $b: Book { seen: now() } } return { $b.isbn } }"),
    Good("vector in a pattern", BOOKS, "query q() { match { $b: Book { emb: [1, 2.5, 3] } } return { $b.isbn } }"),
    Good("vector parameter in a pattern", BOOKS, "query q($v: Vector(3)) { match { $b: Book { emb: $v } } return { $b.isbn } }"),
    Good("nullable parameter in a pattern", BOOKS, "query q($p: String?) { match { $b: Book { isbn: $p } } return { $b.isbn } }"),
    Good("id in a pattern", ORG, 'query q() { match { $s: Staff { id: "ada" } } return { $s.id } }'),
    Good("bound again to the same type", BOOKS, book("$b: Book { pages: 3 }")),
    Good("anonymous bindings are all different", BOOKS, book("$_: Shop $_: Book")),
    # --- filters
    Good("numbers of different types", BOOKS, book("$b.pages < $b.price $b.pages = 2.5 $b.price >= 3")),
    Good("literals only", BOOKS, book("1 = 1")),
    Good("literal on the left", BOOKS, book('"x" contains $b.isbn "x" starts_with $b.isbn')),
    Good("literal list contains a column", BOOKS, book('["a", "b"] contains $b.isbn')),
    Good("parameters only", BOOKS, book("$p = $r", params="$p: I32, $r: F64?")),
    Good("now", BOOKS, book("$b.seen <= now() now() > $b.seen")),
    Good("search compared", BOOKS, book('search($b.isbn, "x") = false')),
    Good("score compared", BOOKS, book('bm25($b.isbn, "x") > 0.5 nearest($b.emb, "y") < 3')),
    Good("fuzzy with a parameter", BOOKS, book("fuzzy($b.isbn, $x, $n)", params="$x: String, $n: I32")),
    Good("match_text on an enum", BOOKS, book('match_text($b.kind, "novel")')),
    Good("edge columns", BOOKS, book("$b $e:cites $c", "$e.id, $e.src, $e.dst")),
    Good("list contains by number", KINDS, "query q() { match { $k: Kind $k.is contains 2.5 } return { $k.k } }"),
    # --- names
    Good("a parameter wins over a binding", BOOKS, book('$b = "x"', "$b", params="$b: String")),
    Good("edge by its exact name in lower case", SAME, "query q() { match { $a same $b } return { $b.x } }"),
    Good("neither end bound", BOOKS, "query q() { match { $b soldAt $s } return { $b.isbn, $s.city } }"),
    Good("reverse from a bound source", BOOKS, "query q() { match { $s: Shop $s soldAt $b } return { $b.isbn } }"),
    Good("anonymous ends", BOOKS, book("$b cites $_ $_ cites $b $_ cites $_")),
    Good("anonymous edge", BOOKS, book("$b $_:cites $c $c $_:cites $d")),
    Good("names of a negation are free outside", BOOKS, book("not { $b soldAt $s } $s: Shop", "$s.city")),
    Good("nested negations reach the outer variable", BOOKS, book('not { not { $b.isbn = "x" } }')),
    # --- results
    Good("scores returned and ordered", BOOKS, book("", 'bm25($b.isbn, "x") as s', "order { s asc, $b.isbn }")),
    Good("distance through an alias", BOOKS, book("", 'nearest($b.emb, "x") as d', "order { d desc }")),
    Good("nearest and a further key", BOOKS, book("", tail='order { nearest($b.emb, "x"), $b.isbn desc } limit 5')),
    Good("numeric list literal", BOOKS, book("", tail="order { nearest($b.emb, [1, 2, 3]) } limit 1")),
    Good("rrf with a parameter k", BOOKS, book("", tail='order { rrf(bm25($b.isbn, "x"), bm25($b.isbn, "y"), $k) } limit 5', params="$k: I32")),
    Good("unknown alias is left to execution", BOOKS, book("", tail="order { nobody desc }")),
    Good("node variable and literals", BOOKS, book("", '$b, "x" as t, now() as at, 3 as n, [1, 2.5] as l, [] as none')),
    Good("order by a node", BOOKS, book("", tail="order { $b desc }")),
    Good("min and max of text", BOOKS, book("", "min($b.isbn) as lo, max($b.kind) as hi")),
    Good("count of anything", BOOKS, book("", "count($b.tags) as a, count($b.emb) as b, count($b) as c, count($p) as d", params="$p: I32")),
    Good("group by a parameter", BOOKS, book("", "$p, count($b) as n", params="$p: I32")),
    Good("order by an aggregate", BOOKS, book("", "$b.kind", "order { count($b) desc }")),
    Good("order by a property of a returned node", BOOKS, book("", "$b, count($b.tags) as n", "order { $b.pages }")),
    Good("order by a returned property under an alias", BOOKS, book("", "$b.kind as k, count($b) as n", "order { $b.kind }")),
    # --- mutations
    Good("defaults need no value", KINDS, kind("")),
    Good("every literal", KINDS, kind('s: "a", b: true, i: 2.0, l: 5, u: 4294967295, w: 7, f: 0.1, d: 3, e: "open"')),
    Good("dates", KINDS, kind('day: date("2024-01-01"), at: datetime("2024-01-01T00:00:00Z"), days: [date("2024-01-01")]')),
    Good("lists and vectors", KINDS, kind('ss: ["a"], is: [1, 2], v: [1, 2.5]')),
    Good("empty list of strings", KINDS, kind("ss: []")),
    Good("list parameter", KINDS, kind("is: $p", "$p: [I64]")),
    Good("nullable parameter for a required property", KINDS, kind("need: $p", "$p: I32?")),
    Good("edge with a property", KINDS, 'query q() { insert Pair { from: "a", to: "b", n: 3 } }'),
    Good("delete edges by endpoint and property", ORG, 'query q() { delete Mentors where to = "a" delete Mentors where began < date("2024-01-01") }'),
    Good("delete by id", ORG, 'query q() { delete Mentors where id = "x" delete Staff where id != "y" }'),
    Good("where by another numeric type", ORG, "query q() { delete Staff where level >= 2.5 }"),
    Good("where now", EVENT, "query q() { delete Ev where at < now() }"),
]  # fmt: skip


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.id)
def test_refused(case: Bad) -> None:
    error = refused(case.catalog, case.text)
    assert error.code == case.code, error.message
    assert error.message.startswith(f"type error: {case.code}: " if case.code else "type error: ")
    for fragment in case.fragments:
        assert fragment in error.message


@pytest.mark.parametrize("case", ACCEPTED, ids=lambda case: case.id)
def test_accepted(case: Good) -> None:
    assert compile_query(case.text, None, case.catalog).query.name == "q"


def test_case_ids_are_unique() -> None:
    ids = [case.id for case in (*REFUSED, *ACCEPTED)]
    assert len(ids) == len(set(ids))


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


def test_a_node_type_wins_over_an_edge_type() -> None:
    """QT-63."""
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
            ["I64?", "F64?", "F64?", "enum(essay, novel, poetry)?", "I32?"],
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
        pytest.param(
            book("", "$b.isbn as s", 'order { nearest($b.emb, "x"), s }'), "T17", id="T17 before T18"
        ),
        pytest.param(
            book("", 'count($b) as s, "x" as t', 'order { nearest($b.emb, "x"), s } limit 3'),
            "T18",
            id="T18 before T9",
        ),
        pytest.param(book("", 'count($b) as s, "x" as t', 'order { nearest($b.emb, "x") }'), "T17", id="T17 before T9"),
        pytest.param(book("not { $s: Shop $s.nope = 1 }"), "T6", id="inner clauses before T9"),
        pytest.param(book('search($b.nope, 3)'), "T6", id="arguments in textual order"),
        pytest.param('query q() { insert Staff { levle: "x" } }', "T10", id="T10 before assignments"),
        pytest.param("query q($__now: I32) { match { $b: Nope } return { $b.x } }", None, id="parameters first"),
    ],
)  # fmt: skip
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
        (ORG, 'query q($handle: String) { insert Staff { handle: $hnadle } }', "handle"),
    ],
)  # fmt: skip
def test_near_misses_are_named(catalog: Catalog, text: str, suggestion: str) -> None:
    error = refused(catalog, text)
    assert error.suggestion == suggestion
    assert "did you mean" in error.message
    assert suggestion in error.message


def test_an_error_knows_its_place() -> None:
    text = 'query q() {\n  match {\n    $b: Book\n    $b.weigth > 1 // é\n  }\n  return { $b.isbn }\n}\n'  # fmt: skip
    parsed = parse_query_file(text, "books.gq")
    with pytest.raises(TypecheckError) as caught:
        check_query(find_query(parsed), BOOKS, parsed.source)
    error = caught.value
    assert (error.file, error.line, error.column) == ("books.gq", 4, 5)
    assert text.encode()[error.start : error.end] == b"$b.weigth"
    assert error.source_line == "    $b.weigth > 1 // é"
