"""The canonical layout: it means the same, is laid out itself, and has all comments in their order."""

from __future__ import annotations

import random
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omnigraph.errors import LanguageError, ParseError
from omnigraph.language.formatting import Language, format_text
from omnigraph.language.layout import WIDTH
from omnigraph.language.query.ast import Query
from omnigraph.language.query.parser import parse_query_file
from omnigraph.language.query.printer import print_query
from omnigraph.language.schema.grammar import parse_declarations
from omnigraph.language.source import Source
from omnigraph.language.written import Written
from tests.language.fuzzing import QUERIES, SCHEMAS, damaged_sources
from tests.language.query.strategies import queries
from tests.language.schema.strategies import schema_texts

SCHEMA = """\
// first

/* a
   block */
node  Staff @description("who") {   // opened


  handle : String  @key  // the key
  // own line
  kind: enum(low, medium,
     high)?  @default("low")


  @unique( handle , kind ) // last
  // at the end
}
edge A: Staff -> Staff
edge B: Staff -> Staff // b

edge C: Staff -> Staff
// after
"""
LAID_OUT_SCHEMA = """\
// first

/* a
   block */
node Staff @description("who") { // opened
  handle: String @key // the key
  // own line
  kind: enum(low, medium, high)? @default("low")

  @unique(handle, kind) // last
  // at the end
}

edge A: Staff -> Staff
edge B: Staff -> Staff // b

edge C: Staff -> Staff
// after
"""
QUERY = """\
// head
query q( $a:String, // one
  $b: [I64] ) @instruction("x") { // body
  // before match
  match { // opened
    $s:Staff{handle:$a,} // bound
    // before the end

    search($s.note, "x")
    ($s.level = 1 or $s.level in $b // some
      or $s.note is null)
    // last
  }
  // results
  return { $s.handle // h
    , count( * ) as n /* n */ }
  // newest
  order { n desc } // o
  limit 5 // l
  // end
}
// tail
"""
LAID_OUT_QUERY = """\
// head
query q(
  $a: String, // one
  $b: [I64]
)
  @instruction("x") { // body
  // before match
  match { // opened
    $s: Staff { handle: $a } // bound
    // before the end

    search($s.note, "x")
    $s.level = 1
      or $s.level in $b // some
      or $s.note is null
    // last
  }
  // results
  return {
    $s.handle, // h
    count(*) as n /* n */
  }
  // newest
  order { n desc } // o
  limit 5 // l
  // end
}
// tail
"""


def meaning(text: str, language: Language) -> object:
    return parse_declarations(Source(text)) if language == "pg" else parse_query_file(text)


def comments(text: str) -> list[str]:
    return [comment.text for comment in Written(Source(text)).comments]


def assert_laid_out(text: str, language: Language) -> str:
    formatted = format_text(text, language)
    assert meaning(formatted, language) == meaning(text, language)
    assert format_text(formatted, language) == formatted
    assert comments(formatted) == comments(text)
    assert formatted == "" or (formatted.endswith("\n") and not formatted.endswith("\n\n\n"))
    return formatted


@pytest.mark.parametrize(
    ("text", "language", "expected"),
    [(SCHEMA, "pg", LAID_OUT_SCHEMA), (QUERY, "gq", LAID_OUT_QUERY)],
    ids=["schema", "query"],
)
def test_comments_and_empty_lines_stay_where_they_belong(text: str, language: Language, expected: str) -> None:
    assert assert_laid_out(text, language) == expected
    windows = text.replace("\n", "\r\n")
    assert assert_laid_out(windows, language) == expected.replace("\n", "\r\n")


@pytest.mark.parametrize("text", SCHEMAS)
def test_schemas(text: str) -> None:
    assert_laid_out(text, "pg")


@pytest.mark.parametrize("text", QUERIES)
def test_queries(text: str) -> None:
    assert_laid_out(text, "gq")


_GAPS = (" ", "\n", "\n\n\n", "\t\r\n", " // a note\n", "// x\r\n", "/* b */", "\n/* b\n  c */\n", "\n// own\n\n", "\r")
_PLACE = re.compile(r"(?<=[{}(),])|(?=[})])|\n")


def with_comments(text: str, seed: int) -> str:
    """The same text with blanks and comments of all kinds at random places where blanks may stand."""
    rng = random.Random(seed)
    strings = [match.span() for match in re.finditer(r'"(?:[^"\\]|\\.)*"', text, re.DOTALL)]

    def gap(match: re.Match[str]) -> str:
        inside = any(start < match.start() < end for start, end in strings)
        return match.group() if inside or rng.random() < 0.4 else match.group() + rng.choice(_GAPS)

    return _PLACE.sub(gap, text)


@pytest.mark.parametrize("source", [*SCHEMAS, *QUERIES])
def test_comments_at_any_place(source: str) -> None:
    language: Language = "pg" if source in SCHEMAS else "gq"
    accepted = 0
    for seed in range(60):
        text = with_comments(source, seed)
        try:
            meaning(text, language)
        except ParseError:  # nothing may stand inside of `$a.*`, and only blanks between `case` and `when`
            continue
        assert_laid_out(text, language)
        accepted += 1
    assert accepted


@given(queries, st.integers(0, 2**32))
@settings(max_examples=25, deadline=None)
def test_generated_queries(query: Query, seed: int) -> None:
    text = print_query(query)
    assert parse_query_file(assert_laid_out(text, "gq")).queries == (query,)
    commented = with_comments(text, seed)
    try:
        parse_query_file(commented)
    except ParseError:
        return
    assert_laid_out(commented, "gq")


@given(schema_texts(), st.integers(0, 2**32))
@settings(max_examples=25, deadline=None)
def test_generated_schemas(text: str, seed: int) -> None:
    assert_laid_out(text, "pg")
    assert_laid_out(with_comments(text, seed), "pg")


@pytest.mark.parametrize("seed", range(4))
def test_damaged_sources_are_laid_out_or_refused_as_they_are(seed: int) -> None:
    for text in damaged_sources(seed, 150):
        for language in ("pg", "gq"):
            try:
                meaning(text, language)
                format_text(text, language)
            except LanguageError:
                continue
            assert_laid_out(text, language)


LONG = "a" * 30
WIDE = {
    "or": "match { $s: Staff " + " or ".join(f'$s.{LONG} = "{n}"' for n in range(9)) + " } return { $s }",
    "list": f"match {{ $s: Staff $s.n in [{', '.join(map(str, range(1000, 1200)))}] }} return {{ $s }}",
    "call": f"match {{ $s: Staff }} return {{ coalesce({', '.join(f'$s.{LONG}' for _ in range(6))}) as x }}",
    "parameters": "query q(" + ", ".join(f"${LONG}{n}: String" for n in range(5)) + ") { delete A where a = 1 }",
    "sum": "match { $s: Staff } return { " + " + ".join(f"$s.{LONG}" for _ in range(9)) + " as x }",
    "insert": "insert Staff { " + ", ".join(f'{LONG}{n}: "{LONG}"' for n in range(5)) + " }",
    "block": "match { $s: Staff count { "
    + " ".join(f"$s knows $x{n} $x{n}.{LONG} > 1" for n in range(5))
    + " } > 1 } return { $s }",
    "case": "match { $s: Staff } return { case "
    + "".join(f"when $s.{LONG} then {n} " for n in range(6))
    + "end as x }",
}


@pytest.mark.parametrize("form", WIDE)
def test_what_is_too_wide_is_broken(form: str) -> None:
    formatted = assert_laid_out(WIDE[form], "gq")
    assert max(map(len, formatted.splitlines())) <= WIDTH


def test_a_wide_schema_is_broken() -> None:
    values = ", ".join(f"value_{number}" for number in range(60))
    text = f'node A @description("{LONG * 3}") @instruction("{LONG * 3}") {{ k: enum({values})? @index }}'
    assert max(map(len, assert_laid_out(text, "pg").splitlines())) <= WIDTH


@pytest.mark.parametrize("line_end", ["\n", "\r\n"], ids=repr)
def test_a_text_over_several_lines_stays_one(line_end: str) -> None:
    text = f'query q() @description("one{line_end}two") {{{line_end} delete A where a = "x{line_end}y" }}'
    formatted = assert_laid_out(text, "gq")
    assert f'@description("one{line_end}two")' in formatted
    assert f'"x{line_end}y"' in formatted


def test_line_ends_inside_of_a_text_that_differ_from_the_others_are_escaped() -> None:
    formatted = assert_laid_out('query q() {\n delete A where a = "x\r\ny" }', "gq")
    assert r'"x\r\ny"' in formatted


def test_long_and_deep_sources() -> None:
    deep = "(" * 60 + "$s.a = 1" + ")" * 60
    assert_laid_out(f"match {{ $s: Staff {deep} }} return {{ $s }}", "gq")
    many = "".join(f"query q{number}() {{ match {{ $s: S }} return {{ $s }} }} // {number}\n" for number in range(500))
    assert_laid_out(many, "gq")
    assert_laid_out(f"delete A where a in [{'1, ' * 20_000}2]", "gq")


@pytest.mark.parametrize("text", ["", " \r\n", "// only\n", "/* a */ // b"])
@pytest.mark.parametrize("language", ["pg", "gq"])
def test_texts_without_declarations(text: str, language: Language) -> None:
    assert_laid_out(text, language)


@pytest.mark.parametrize("condition", ["$x contains $y", "$x starts_with $p.k", "$x ends_with $y", "-1 < $p.n"])
def test_a_condition_that_would_read_as_something_else_keeps_its_parentheses(condition: str) -> None:
    text = f"query q($x: String, $y: String) {{ match {{ $p: P ({condition}) }} return {{ $p.k }} }}"
    assert f"({condition})" in format_text(text, "gq")
