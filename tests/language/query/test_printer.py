"""Printing a query and parsing it again gives the same query."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from omnigraph.language.query.ast import Query, QueryFile
from omnigraph.language.query.parser import parse_query_file
from omnigraph.language.query.printer import print_query, print_query_file
from tests.language.query.strategies import queries, query_files

READ = """\
query mentees($h: String, $v: Vector(3)?, $t: [Date]?)
  @description("who \\"learns\\"\\n\\r\\there")
  @instruction("use \\\\ often") {
  match {
    $s: Staff { handle: $h, level: 3 }
    $s $e:<mentors> $m
    $m mentors{1,} $x
    not {
      $x memberOf $_
      $x.level >= 2.50
    }
    search($x.note, "a") = true
  }
  return {
    $m.handle,
    count($x) as total,
    [1, [true], date("2026-01-01")],
    now()
  }
  order { rrf(nearest($x.emb, $v), bm25($x.note, "b"), 60) desc, total asc, alias }
  limit 5
}
"""
MUTATION = """\
query change($h: String) {
  insert Staff { handle: $h, seen: now() }
  update Staff set { level: 3, note: "x" } where handle = $h
  delete Mentors where from != "ada"
}
"""


@pytest.mark.parametrize("text", [READ, MUTATION], ids=["read", "mutation"])
def test_the_printed_form_is_the_canonical_one(text: str) -> None:
    (query,) = parse_query_file(text).queries
    assert print_query(query) == text


def test_queries_of_a_file_are_printed_in_order_with_an_empty_line_between() -> None:
    assert print_query_file(parse_query_file(READ + MUTATION)) == f"{READ}\n{MUTATION}"
    assert print_query_file(parse_query_file("")) == ""


@given(queries)
@settings(max_examples=200, deadline=None)
def test_every_query_survives_the_round_trip(query: Query) -> None:
    assert parse_query_file(print_query(query)).queries == (query,)


@given(query_files)
@settings(max_examples=25, deadline=None)
def test_every_file_survives_the_round_trip(file: QueryFile) -> None:
    assert parse_query_file(print_query_file(file)) == file


@pytest.mark.parametrize("blank", ["\r\n\t ", " // note\n", '/* note " */', "\n/**/ // }\n"], ids=repr)
@given(query=queries)
@settings(max_examples=25, deadline=None)
def test_blanks_and_comments_mean_nothing(query: Query, blank: str) -> None:
    assert parse_query_file(print_query(query).replace("\n", blank)).queries == (query,)
