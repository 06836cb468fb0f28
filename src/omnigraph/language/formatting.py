"""The canonical layout of `.pg` and `.gq` texts: text → text of the same meaning with the same comments. Pure."""

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
    """The text in its canonical layout; raises ParseError or CatalogError for a text that can not be read.

    The line ends are those of the first line. A text without declarations, queries and comments becomes empty.
    """
    written = Written(Source(text, file))
    if not text:
        return ""
    if language == "pg":
        source = Source(text, file)
        parse_schema(text, file)  # what only the rules of the language refuse is not laid out either
        formatted = print_declarations(SchemaFile(parse_declarations(source), source), written)
    else:
        formatted = print_query_file(parse_query_file(text, file), written)
    formatted = formatted.replace("\n", written.line_end)
    _refuse_another_meaning(text, formatted, language)
    return formatted


def _refuse_another_meaning(text: str, formatted: str, language: Language) -> None:
    """A mistake of the printer must never reach a file."""
    if language == "pg":
        same = parse_declarations(Source(formatted)) == parse_declarations(Source(text))
    else:
        same = parse_query_file(formatted) == parse_query_file(text)
    before = [comment.text for comment in Written(Source(text)).comments]
    if not same or [comment.text for comment in Written(Source(formatted)).comments] != before:
        raise AssertionError(
            "the formatted text would mean something else; nothing is changed, please report this text"
        )
