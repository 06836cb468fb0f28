"""The Pygments lexers know every token of both languages, and one line can be coloured by itself."""

from __future__ import annotations

import re

import pytest
from pygments.lexers import get_lexer_for_filename
from pygments.token import Error, Keyword, Name, String

from omnigraph.language.highlight import GqLexer, PgLexer, highlight_line
from tests.language.fuzzing import QUERIES, SCHEMAS

ANSI = re.compile(r"\x1b\[[0-9;]*m")


@pytest.mark.parametrize(
    ("lexer", "text"),
    [(PgLexer, text) for text in SCHEMAS] + [(GqLexer, text) for text in QUERIES],
    ids=["schema-1", "schema-2", "queries-1", "queries-2", "queries-3"],
)
def test_a_valid_source_has_no_unknown_token(lexer: type[PgLexer | GqLexer], text: str) -> None:
    tokens = list(lexer(stripnl=False, ensurenl=False).get_tokens(text))
    assert [value for kind, value in tokens if kind in Error] == []
    assert "".join(value for _, value in tokens) == text


@pytest.mark.parametrize(
    ("lexer", "text", "kind", "value"),
    [
        pytest.param(PgLexer, "node Staff { }", Keyword.Declaration, "node", id="pg-keyword"),
        pytest.param(PgLexer, "node Staff { }", Name.Class, "Staff", id="pg-type-name"),
        pytest.param(PgLexer, "level: I32?", Name.Property, "level", id="pg-property"),
        pytest.param(PgLexer, "level: I32?", Keyword.Type, "I32", id="pg-base-type"),
        pytest.param(PgLexer, "a: String @key", Name.Decorator, "@key", id="pg-annotation"),
        pytest.param(GqLexer, "query q() {", Name.Function, "q", id="gq-name"),
        pytest.param(GqLexer, "match { $s: Staff }", Keyword, "match", id="gq-keyword"),
        pytest.param(GqLexer, "match { $s: Staff }", Name.Variable, "$s", id="gq-variable"),
        pytest.param(GqLexer, "count($s)", Name.Builtin, "count", id="gq-function"),
        pytest.param(GqLexer, "$s.level", Name.Property, "level", id="gq-property"),
        pytest.param(GqLexer, '"a\\n"', String.Escape, "\\n", id="gq-escape"),
        pytest.param(GqLexer, "= 'a'", Error, "'", id="gq-unknown"),
    ],
)
def test_tokens(lexer: type[PgLexer | GqLexer], text: str, kind: object, value: str) -> None:
    assert (kind, value) in list(lexer().get_tokens(text))


@pytest.mark.parametrize(("file", "lexer"), [("schema.pg", PgLexer), ("queries.gq", GqLexer)])
def test_pygments_finds_the_lexers_by_file_name(file: str, lexer: type[PgLexer | GqLexer]) -> None:
    assert type(get_lexer_for_filename(file)) is lexer


@pytest.mark.parametrize(
    ("line", "language"),
    [
        pytest.param("  node Staff {  ", "pg", id="pg"),
        pytest.param('  $s.handle = "open', "gq", id="gq-with-an-open-string"),
        pytest.param("/* open", "gq", id="gq-with-an-open-comment"),
    ],
)
def test_a_coloured_line_is_the_same_line(line: str, language: str) -> None:
    coloured = highlight_line(line, language)
    assert coloured != line
    assert ANSI.sub("", coloured) == line


def test_the_two_languages_are_coloured_differently() -> None:
    assert highlight_line("node match", "pg") != highlight_line("node match", "gq")
