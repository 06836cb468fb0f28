"""Syntax colours for both languages: Pygments lexers, and the coloured source line of an error on a terminal."""

from __future__ import annotations

from pygments import highlight
from pygments.formatters import TerminalFormatter
from pygments.lexer import RegexLexer, bygroups, include, words
from pygments.token import (
    Comment,
    Keyword,
    Name,
    Number,
    Operator,
    Punctuation,
    String,
    Whitespace,
)

from omnigraph.language.types import DECLARED, Scalar

_TYPES = words([*(scalar.value for scalar in DECLARED), Scalar.VECTOR.value], suffix=r"\b")

#: The lexical rules that both languages share.
_LEXICAL = {
    "common": [
        include("blanks"),
        include("literals"),
        (r"@[a-z_]\w*", Name.Decorator),
    ],
    "blanks": [
        (r"[ \t\r\n]+", Whitespace),
        (r"//[^\n]*", Comment.Single),
        (r"/\*", Comment.Multiline, "comment"),
    ],
    "comment": [
        (r"\*/", Comment.Multiline, "#pop"),
        (r"[^*]+|\*", Comment.Multiline),
    ],
    "literals": [
        (r'"', String, "string"),
        (r"[0-9]+\.[0-9]+", Number.Float),
        (r"[0-9]+", Number.Integer),
        (r"(?:true|false)\b", Keyword.Constant),
    ],
    "string": [
        (r'"', String, "#pop"),
        (r'\\["\\nrt]', String.Escape),
        (r'[^"\\]+|\\', String),
    ],
}


class PgLexer(RegexLexer):  # type: ignore[misc]  # Pygments has no types
    """Schemas, `.pg`."""

    name = "OmniGraph schema"
    aliases = ("omnigraph-pg", "pg")
    filenames = ("*.pg",)
    url = ""
    version_added = ""

    tokens = _LEXICAL | {
        "root": [
            include("common"),
            (r"(?:interface|node|edge|implements)\b", Keyword.Declaration),
            (r"enum\b", Keyword.Type),
            (_TYPES, Keyword.Type),
            (r"([a-z_]\w*)(\s*)(:)", bygroups(Name.Property, Whitespace, Punctuation)),
            (r"[A-Z]\w*", Name.Class),
            (r"[a-z_][\w-]*", Name),
            (r"->|\.\.|[?=-]", Operator),
            (r"[{}()\[\],:]", Punctuation),
        ],
    }


class GqLexer(RegexLexer):  # type: ignore[misc]  # Pygments has no types
    """Queries, `.gq`."""

    name = "OmniGraph query"
    aliases = ("omnigraph-gq", "gq")
    filenames = ("*.gq",)
    url = ""
    version_added = ""

    tokens = _LEXICAL | {
        "root": [
            include("common"),
            (r"(query)(\s+)([a-z_]\w*)", bygroups(Keyword.Declaration, Whitespace, Name.Function)),
            (
                r"(?:match|return|order|limit|offset|not|optional|exists|with|union|all|having|distinct|insert|upsert|update"
                r"|delete|set|where|as|asc|desc|nulls|by|case|when|then|else|end|null)\b",
                Keyword,
            ),
            (r"(?:contains|starts_with|ends_with|and|or|in|is)\b", Operator.Word),
            (r"[a-z_]\w*(?=\s*\()", Name.Builtin),
            (_TYPES, Keyword.Type),
            (r"\$[a-z_]\w*", Name.Variable),
            (r"(\.)(\s*)([a-z_]\w*)", bygroups(Punctuation, Whitespace, Name.Property)),
            (r"([a-z_]\w*)(\s*)(:)", bygroups(Name.Property, Whitespace, Punctuation)),
            (r"[A-Z]\w*", Name.Class),
            (r"[a-z_]\w*", Name),
            (r">=|<=|!=|[<>=?+\-*/%|]", Operator),
            (r"[{}()\[\],:.]", Punctuation),
        ],
    }


def highlight_line(line: str, language: str) -> str:
    """One source line in terminal colours; `language` is `pg` or `gq`."""
    lexer = (PgLexer if language == "pg" else GqLexer)(stripnl=False, ensurenl=False)
    return str(highlight(line, lexer, TerminalFormatter()))
