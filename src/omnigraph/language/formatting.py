"""The canonical layout of `.pg` and `.gq` texts; meaning and comments stay the same. Pure."""

from __future__ import annotations

from typing import Literal

from omnigraph.language.query.parser import parse_query_file
from omnigraph.language.query.printer import print_query_file
from omnigraph.language.schema.ast import SchemaFile
from omnigraph.language.schema.grammar import parse_declarations
from omnigraph.language.schema.parser import parse_schema
from omnigraph.language.schema.printer import print_declarations
from omnigraph.language.source import Source
from omnigraph.language.written import Written

Language = Literal["pg", "gq"]


def format_text(text: str, language: Language, file: str | None = None) -> str:
    """The text in its canonical layout; raises ParseError or CatalogError when it can not be read.
    All lines end as the first line does (`\\n`, `\\r\\n`). A text without declarations, queries and comments becomes empty.
    """
    written = Written(Source(text, file))
    if not text:
        return ""
    if language == "pg":
        source = Source(text, file)
        parse_schema(text, file)  # a text that parses but breaks the rules of the schema language is refused too
        formatted = print_declarations(SchemaFile(parse_declarations(source), source), written)
    else:
        formatted = print_query_file(parse_query_file(text, file), written)
    formatted = formatted.replace("\n", written.line_end)
    _refuse_another_meaning(text, formatted, language)
    return formatted


def _refuse_another_meaning(text: str, formatted: str, language: Language) -> None:
    """Raise AssertionError when the formatted text differs in meaning, so that a printer bug never reaches a file."""
    if language == "pg":
        same = parse_declarations(Source(formatted)) == parse_declarations(Source(text))
    else:
        same = parse_query_file(formatted) == parse_query_file(text)
    before = [comment.text for comment in Written(Source(text)).comments]
    if not same or [comment.text for comment in Written(Source(formatted)).comments] != before:
        raise AssertionError(
            "the formatted text would mean something else; nothing is changed, please report this text"
        )
