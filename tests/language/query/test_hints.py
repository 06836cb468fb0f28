"""Words of Cypher and SQL: the error says how it is written here, and its caret stands below the spot."""

from __future__ import annotations

import pytest

from omnigraph.errors import LanguageError
from omnigraph.language.query.compile import compile_query
from omnigraph.language.query.foreign import _FUNCTIONS as _FOREIGN_FUNCTIONS
from omnigraph.language.query.functions import AGGREGATES, FUNCTIONS
from omnigraph.language.schema.build import compile_schema

CATALOG = compile_schema(
    "node Person { name: String @key age: I32? active: Bool? } edge Knows: Person -> Person { since: Date? }"
)


def body(clauses: str, rest: str = "return { $p.name }") -> str:
    return f"match {{ $p: Person {clauses} }} {rest}"


def tail(rest: str) -> str:
    return f"match {{ $p: Person }} {rest}"


def shown(value: str) -> str:
    return tail(f"return {{ {value} }}")


CASES = [
    # Conditions.
    (body("WHERE $p.age > 3"), "WHERE", "conditions stand inside `match { … }`"),
    (body("where $p.age > 3"), "where", "conditions stand inside `match { … }`"),
    (tail("where $p.age > 3 return { $p.name }"), "where", "conditions stand inside `match { … }`"),
    (body("$p.age <> 3"), "> 3", "inequality is `!=`"),
    (body("$p.age == 3"), "= 3", "equality is a single `=`"),
    (body("$p.name = 'Ada'"), "'Ada", "texts are written in double quotes"),
    (body("$p.name =~ 1"), "~", "`matches($p.name,"),
    (body('$p.name LIKE "A%"'), "LIKE", "`contains`, `starts_with`, `ends_with` and `matches(text, regex)`"),
    (body('$p.name like "A%"'), "like", "`contains`, `starts_with`, `ends_with` and `matches(text, regex)`"),
    (body('$p.name ILIKE "A%"'), "ILIKE", "`contains`, `starts_with`, `ends_with`"),
    (body('$p.name STARTS WITH "A"'), "STARTS", "`starts_with`"),
    (body('$p.name starts with "A"'), "starts", "`starts_with`"),
    (body('$p.name ENDS WITH "a"'), "ENDS", "`ends_with`"),
    (body('$p.name ends with "a"'), "ends", "`ends_with`"),
    (body('$p.name CONTAINS "a"'), "CONTAINS", "in lower case: `contains`"),
    (body("$p.age > 3 AND $p.age < 9"), "AND", "in lower case: `and`"),
    (body("$p.age > 3 OR $p.age < 9"), "OR", "in lower case: `or`"),
    (body("NOT $p.age > 3"), "NOT", "in lower case: `not`"),
    (body("$p.age > 3 && $p.age < 9"), "&&", "joined with `and`"),
    (body("$p.age > 3 || $p.age < 9"), "||", "joined with `or`"),
    (body("!$p.active"), "!", "`not` for the opposite"),
    (body("$p.age IS NULL"), "IS", "in lower case: `is`"),
    (body("$p.age is NULL"), "NULL", "in lower case: `null`"),
    (body("$p.active = TRUE"), "TRUE", "in lower case: `true`"),
    (body("$p.age BETWEEN 3 AND 9"), "BETWEEN", "`$p.age >= 3 and $p.age <= 9`"),
    (body("$p.age between 3 and 9"), "between", "`$p.age >= 3 and $p.age <= 9`"),
    (body("$p.age in (1, 2)"), ", 2", "a list is written `[1, 2]`"),
    (body("$p.age = 3, $p.active"), ", $p", "without a comma"),
    (body("$p.age = 3; $p.active"), ";", "a `;` stands only at the end"),
    (body("$p.age not between 3 and 9"), "between", "`$p.age < 3 or $p.age > 9`"),
    (body('$p.name not like "A%"'), "like", "`not ($p.name contains …)`"),
    (body('$p.name not contains "A"'), "contains", "`not ($p.name contains …)`"),
    (body('$p.name not starts_with "A"'), "starts_with", "`not ($p.name starts_with …)`"),
    (shown('$p.name not ends_with "a"'), "ends_with", "`not ($p.name ends_with …)`"),
    (tail("return { $p.age as a } having a not between 3 and 9"), "between", "`$p.age < 3 or $p.age > 9`"),
    ("update Person set { age: 3 } where name not contains name", "contains", "`not (name contains …)`"),
    (body("$p.name = :who"), ":who", "a parameter is written `$who`"),
    (body("$p.name = @who"), "@who", "a parameter is written `$who`"),
    (body("$p.name = %s"), "%s", "a parameter is written `$who`"),
    (body("$p.name = {who}"), "{who", "a parameter is written `$who`"),
    (body("$p.name = ?"), "?", "a parameter is written `$who`"),
    (body("$p.name in (?)"), "?", "a parameter is written `$who`"),
    ("match { $p: Person { name: :who } } return { $p.name }", ":who", "a parameter is written `$who`"),
    ("insert Person { name: ? }", "?", "a parameter is written `$who`"),
    (body("$p.age mod 2 = 1"), "mod", "the remainder of a division is `a % b`"),
    (body("$p.age ^ 2 = 1"), "^", "a power is written `power(2, 3)`"),
    (body("$p.age > 1_000"), "1_000", "numbers are written without `_`"),
    (body("$p.age > 0x10"), "0x10", "numbers are written in decimal digits"),
    (body("case $p.age when 36 then true end"), "$p.age", "write `case when $p.age = 36 then … else … end`"),
    # Patterns.
    ("match { $p:person } return { $p.name }", "person", "a type name starts with a capital letter: `Person`"),
    ("match { $p: Person|company } return { $p.name }", "company", "with a capital letter: `Company`"),
    ("MATCH (p:Person) RETURN p.name", "MATCH", "a pattern is written `match { … }`"),
    ("match (p:Person) return p.name", "(p", "a node is written `$p: Person"),
    ("match { (p:Person) } return { p.name }", ":Person", "a node is written `$p: Person"),
    ("match { p: Person } return { p.name }", ": Person", "`$p: Person"),
    (tail("OPTIONAL MATCH { $p knows $f } return { $p.name }"), "OPTIONAL", "`optional { $a knows $b }`"),
    (tail("optional match { $p knows $f } return { $p.name }"), "optional", "`optional { $a knows $b }`"),
    (body("$p -[:KNOWS]-> $f"), ":KNOWS", "an edge is written `$a knows $b`"),
    (body("$p <-[:KNOWS]- $f"), ":KNOWS", "an edge is written `$a knows $b`"),
    (body("$p --> $f"), "> $f", "an edge is written `$a knows $b`"),
    (body("$p KNOWS $f"), "KNOWS", "lower-case first letter, as in `$a knows $b`"),
    (body("$p Knows $f"), "Knows", "lower-case first letter, as in `$a knows $b`"),
    (body("$p knows*1..3 $f"), "*1", "`$a knows{1,3} $b`"),
    (body("$p knows{2} $f"), "} $f", "hop bounds take a comma"),
    # Results.
    (tail("RETURN { $p.name }"), "RETURN", "in lower case: `return`"),
    (tail("return $p.name"), "$p.name", "stands in braces: `return { $p.name }`"),
    (tail("return DISTINCT { $p.name }"), "DISTINCT", "`return distinct { … }`"),
    (shown("DISTINCT $p.name"), "DISTINCT", "`return distinct { … }`"),
    (shown("distinct $p.name"), "distinct", "`return distinct { … }`"),
    (shown("$p.name AS n"), "AS", "in lower case: `as`"),
    (shown("p.name"), ".name", "a variable starts with `$`"),
    (shown('$p.name || "!"'), "||", "texts are joined with `+`"),
    (shown("$p.age ?? 3"), "??", "`coalesce($p.age, 0)`"),
    (shown("$p.age::text"), "::", "converted with `to_text`"),
    (shown("CASE WHEN $p.active THEN 1 END"), "CASE", "in lower case: `case`"),
    (shown("case $p.age when 3 then 1 end"), "case", "write `case when"),
    (shown("COUNT($p)"), "COUNT", "functions are written in lower case: `count(…)`"),
    (shown("CURRENT_DATE"), "CURRENT_DATE", "`today()` or `now()`"),
    (shown("$p.name, count($p)") + " GROUP BY $p.name", "GROUP", "grouped by what else it returns"),
    (shown("$p.name") + " ORDER BY $p.name", "ORDER", "`order { $p.name desc }`"),
    (shown("$p.name") + " order by $p.name", "by", "`order { $p.name desc }`"),
    (shown("$p.name") + " SKIP 3", "SKIP", "rows are left out with `offset`"),
    (shown("$p.name") + " LIMIT 3", "LIMIT", "in lower case: `limit`"),
    (shown("$p.name") + " limit 3 order { $p.name }", "order", "`order` comes before `limit`"),
    (shown("$p.name") + " -- all", "--", "comments start with `//`"),
    (shown("$p.age > 3 ? 1 : 2"), "? 1", "`if(condition, value, otherwise)`"),
    (shown('$p.name like "A%"'), "like", "`like` is no operator; texts are compared with `contains`"),
    (shown("$p.age between 1 and 40"), "between", "`between` is no operator; a range is written"),
    (shown("$p.active xor true"), "xor", "`xor` is no operator; one of two conditions alone is `(a) != (b)`"),
    (shown("$p.age mod 2"), "mod", "`mod` is no operator; the remainder of a division is `a % b`"),
    (shown("mod($p.age, 2)"), "mod", "the remainder of a division is `a % b`"),
    (shown("2 ^ 3"), "^", "a power is written `power(2, 3)`"),
    (shown("1_000"), "1_000", "`1_000` is no number"),
    (shown("-0xff"), "-0xff", "`-0xff` is no number"),
    (shown("$p.name") + " limit 1_000", "_000", "a number is written without `_`"),
    (shown("$p.name n"), "n }", "a column is named by `as n`, two are parted by a comma"),
    (shown("$p.name as Name"), "Name", "by a word without quotes that starts with a lower-case letter"),
    (shown("$p.name as 'name'"), "'name", "by a word without quotes that starts with a lower-case letter"),
    (shown("$p.name as `name`"), "`name", "by a word without quotes that starts with a lower-case letter"),
    (shown('$p.name as "name"'), "as", "by a word without quotes that starts with a lower-case letter"),
    (shown("$p.name as $name"), "as", "by a word without quotes that starts with a lower-case letter"),
    (shown("case $p.age when 3 then 1 end"), "case", "`case` has no value before `when`"),
    (shown("*"), "*", "all properties are returned by `$p.*`"),
    (shown("$p.name, *"), "*", "all properties are returned by `$p.*`"),
    (shown("Upper($p.name)"), "Upper", "functions are written in lower case: `upper(…)`"),
    (shown("Len($p.name)"), "Len", "counted by `length`"),
    (shown("not { $p knows $f } as h"), "{ $p knows", "`not exists { … }`"),
    (shown("collect($f.name) { $p knows $f }"), "collect", "`collect` takes no block; only `count { … }`"),
    (shown("median($f.age) { $p knows $f } as m"), "median", "optional { $p knows $f }"),
    (shown("any_value { $p knows $f } as m"), "{ $p knows", "optional { $p knows $f }"),
    (body("percentile($f.age, 0.5) { $p knows $f } > 3"), "percentile", "`percentile` takes no block"),
    (shown("size($p.name)"), "size", "the characters of a text are counted by `length`"),
    (shown("$p.name") + " having p.name = 3", ".name =", "`having` names a column by its alias"),
    (shown("$p.name") + " having havin > 3 havin", "havin", "expected `order`, `limit`, `offset`, `union`"),
    (shown("$p.name") + " ofset 3", "ofset", "did you mean `offset`?"),
    (shown("$p.name") + " havng 3", "havng", "did you mean `having`?"),
    (shown("$p.name") + " unoin 3", "unoin", "did you mean `union`?"),
    (tail("with { $p } wher $p.age > 3 return { $p.name }"), "wher", "did you mean `where`?"),
    (tail("with { $p } WHERE $p.age > 3 return { $p.name }"), "WHERE", "in lower case: `where`"),
    (shown("$p.name") + " union match { $p: Person } return { $p.name }", "match", "stands in braces: `union {"),
    (shown("$p.name") + " union distinct { match { $p: Person } return { $p.name } }", "distinct", "`union all`"),
    (shown("$p.name") + " UNION { match { $p: Person } return { $p.name } }", "UNION", "in lower case: `union`"),
    # Whole statements.
    (
        'update Person set { age: 3 } WHERE name = "x"',
        "WHERE",
        "expected `where`, found `WHERE`; words of the language",
    ),
    ('delete Person WHERE name = "x"', "WHERE", "expected `where`, found `WHERE`; words of the language"),
    ('update Person where name = "x" set { age: 3 }', "where", "`where` stands behind `set { … }`"),
    ('update Person set { age: 3 } where person.name = "x"', ".name", 'stands alone: `where name = "Ada"`'),
    ('insert person { name: "x" }', "person", "a type name starts with a capital letter: `Person`"),
    ("delete person where true", "person", "a type name starts with a capital letter: `Person`"),
    ("insert Person { }", "}", "at least one property is named; one without a value is null"),
    ("upsert Person {}", "}", "at least one property is named; one without a value is null"),
    ("update Person set { } where true", "}", "at least one property is set"),
    ("SELECT name FROM Person", "SELECT", "`match { $p: Person } return { $p.name }`"),
    ("select name from Person", "select", "`match { $p: Person } return { $p.name }`"),
    ('INSERT INTO Person (name) VALUES ("x")', "INSERT", "`insert Person { name:"),
    ('insert into Person (name) values ("x")', "into", "`insert Person { name:"),
    ('insert Person (name) values ("x")', "(name", "`insert Person { name:"),
    ('CREATE (p:Person {name: "x"})', "CREATE", "`insert Person { name:"),
    ('merge Person { name: "x" }', "merge", "or with `upsert`"),
    ('update Person set age = 3 where name = "x"', "age", "`set { age: 37 }`"),
    ('update Person set { age = 3 } where name = "x"', "= 3", "with a colon, as in `age: 37`"),
    ("delete from Person", "from", '`delete Person where name = "Ada"`'),
    ("delete Person", "", "to mean all of them write `where true`"),
    (tail("SET $p.age = 3"), "SET", "`update Person set { age: 37 } where …`"),
    (tail("DETACH DELETE $p"), "DETACH", "deleting a node deletes its edges"),
    ("UNWIND [1, 2] AS x", "UNWIND", "compared with `in`"),
    # Functions.
    (shown("len($p.name)"), "len", "counted by `length`"),
    (shown("toUpper($p.name)"), "toUpper", "write `upper(text)`"),
    (shown('ends_with($p.name, "a")'), "ends_with", '`$p.name ends_with "a"`'),
    (body("exists($p.age)"), "exists", "`is not null`"),
    (shown("labels($p)"), "labels", "`$p.@type`"),
    (shown("cast($p.age as String)"), "cast", "`to_text`"),
]


@pytest.mark.parametrize(("text", "spot", "hint"), CASES, ids=[text for text, _, _ in CASES])
@pytest.mark.parametrize("named", [False, True], ids=["nameless", "named"])
def test_the_right_way_to_write_it(text: str, spot: str, hint: str, named: bool) -> None:
    # Inside braces the end of the text is the closing one.
    source = f"query q() {{\n  {text}\n}}" if named else text
    with pytest.raises(LanguageError) as caught:
        compile_query(source, None, CATALOG, "q.gq")
    error = caught.value
    assert hint in error.message
    column = (text.rindex(spot) if spot else len(text)) + 1
    if named:
        assert (error.line, error.column) == ((2, column + 2) if spot else (3, 1))
    else:
        assert (error.line, error.column) == (1, column)
    first, line, caret = str(error).split("\n")
    assert first == f"q.gq:{error.line}:{error.column}: {error.message}"
    assert caret.index("^") - len(f"  {error.line} | ") == (error.column or 0) - 1
    assert line.endswith(source.split("\n")[(error.line or 1) - 1])


def test_what_stands_for_all_is_legal() -> None:
    for text in ("delete Person where true", "update Person set { age: 3 } where true"):
        assert compile_query(text, None, CATALOG).query.is_mutation


@pytest.mark.parametrize(
    ("text", "suggestion"),
    [
        (body('$p.name ends_wiht "a"'), "ends_with"),
        (body('$p.name end_with "a"'), "ends_with"),
        (body('$p.name start_with "a"'), "starts_with"),
        (shown("lenght($p.name)"), "length"),
        (body("$p knwos $f"), "knows"),
        ("match { $p: Persn } return { $p.name }", "Person"),
        # An edge type is no node type, a node type no edge, a property of another type no property.
        ("match { $p: Know } return { $p.name }", None),
        (body("$p person $f"), None),
        (body("$p.sinc = 1"), None),
        ("SELECT 1", None),
    ],
)
def test_suggestions_are_of_the_same_kind(text: str, suggestion: str | None) -> None:
    with pytest.raises(LanguageError) as caught:
        compile_query(text, None, CATALOG)
    assert caught.value.suggestion == suggestion


def test_foreign_functions_are_foreign() -> None:
    assert not _FOREIGN_FUNCTIONS.keys() & {*FUNCTIONS, *AGGREGATES}


@pytest.mark.parametrize(
    "text", ["match ( " + " " * 200_000, "match { " + "$a knows " * 20_000, "<-[" * 50_000, "( " * 50_000]
)
def test_long_texts_are_looked_at_nearby(text: str) -> None:
    """Patterns that saw all of it would never come to an end."""
    with pytest.raises(LanguageError):
        compile_query(text, None, CATALOG)


@pytest.mark.parametrize(
    ("text", "spot", "hint"),
    [
        (
            "query q { match { $p: Person } return { $p.name } }",
            "{ match",
            "also when there are none: `query q() { … }`",
        ),
        ("query Q() { match { $p: Person } return { $p.name } }", "Q", "a name that starts with a lower-case letter"),
        (
            'query "q"() { match { $p: Person } return { $p.name } }',
            '"q',
            "a name that starts with a lower-case letter",
        ),
        ("query q(x: String) { match { $p: Person } return { $p.name } }", "x:", "a parameter starts with `$`"),
        (
            "query q($a: I32, x: String) { match { $p: Person } return { $p.name } }",
            "x:",
            "a parameter starts with `$`",
        ),
        ("query q($x String) { match { $p: Person } return { $p.name } }", "String", "stands behind a colon"),
    ],
)
def test_the_head_of_a_query(text: str, spot: str, hint: str) -> None:
    with pytest.raises(LanguageError) as caught:
        compile_query(text, None, CATALOG)
    assert hint in caught.value.message
    assert (caught.value.line, caught.value.column) == (1, text.index(spot) + 1)


@pytest.mark.parametrize(
    "text",
    [
        "update Log set { like: not like between: 0 _2: 0x1: 3 } where true",
        "update Log set { x1: 1_2: 3 } where not like and between > 1",
        "match { $l: Log not $l.like $l.not } return { $l.between as between } having between > 1",
        "match { $l: Log } return { $l.like as like } having not like order { like }",
    ],
)
def test_words_of_other_languages_are_names_too(text: str) -> None:
    catalog = compile_schema("node Log { like: Bool? not: Bool? between: I32? x1: I64? _2: I64? }")
    compile_query(text, None, catalog)
