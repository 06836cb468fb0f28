"""What to do about a grammar error: the mistakes people make who come from other query languages."""

from __future__ import annotations

import re

from omnigraph.language.suggest import nearest_name

_TRAVERSAL = r"\$\w+\s+(?:\$\w+\s*:\s*)?<?\s*[a-z_]\w*\s*>?\s*"

#: (what stands before the failure, what stands at it, the tail of the message)
_HINTS = tuple(
    (re.compile(rf"(?:{before})\Z", re.DOTALL), re.compile(at, re.DOTALL), hint)
    for before, at, hint in (
        ("", r"'", "texts are written in double quotes"),
        ("", r"#|--", "comments start with `//`"),
        ("", r"\$[A-Z]", "a variable starts with a lower-case letter"),
        (r"=", r"=", "equality is a single `=`"),
        (r"<", r">", "inequality is `!=`"),
        (r"\blimit\s*[0-9]+", r"order", "`order` comes before `limit`"),
        (rf"{_TRAVERSAL}\{{\s*[0-9]+", r"\}", "hop bounds take a comma, as in `{2,2}`"),
        (rf"{_TRAVERSAL}\{{", r",", "hop bounds start with a number, as in `{1,3}`"),
        (r"\$\w+|<", r"[A-Z]", "an edge is written with a lower-case first letter"),
        (r"\)", r"asc|desc", "`nearest` takes no direction, the best comes first"),
        (
            r"(?:contains|starts_with)\s+\$\w+",
            r"\.",
            "a bare variable before `contains` or `starts_with` reads as a traversal; put a property on the left",
        ),
        (r"\breturn", r"\{", "a `}` is missing before `return`"),
        ("", r"(?:AND|OR|NOT|IN|IS|NULL)\b", "words of the language are written in lower case"),
        ("", r"(?:OPTIONAL\s+)?MATCH\b", "a pattern is written `match { … }`"),
        ("", r"WHERE\b|where\b", "conditions stand inside `match { … }`, one after the other"),
        ("", r"LIKE\b|like\b", "texts are compared with `contains`, `starts_with`, `ends_with` and `matches`"),
        ("", r"GROUP\s+BY\b|group\s+by\b", "a query with aggregates is grouped by what else it returns"),
        ("", r"SKIP\b|skip\b", "rows are left out with `offset`"),
        ("", r"-\[", "an edge is written `$a knows $b`"),
    )
)
_BARE_WORD = re.compile(r"(?:\A|[\s{}])([A-Za-z_]\w*)\Z")
_BLOCK_WORDS = ("not", "match", "return", "order")
_LOOK_BACK = 80


def hint_at(text: str, at: int) -> str:
    """The tail of the message for a grammar error at this place, or nothing."""
    before = _before(text, at)
    for before_pattern, at_pattern, hint in _HINTS:
        if at_pattern.match(text, at) and before_pattern.search(before):
            return f"; {hint}"
    return ""


def misspelt_block_word(text: str, at: int) -> str | None:
    """The keyword that was meant when an unknown bare word stands before a `{`."""
    word = _BARE_WORD.search(_before(text, at))
    if word is None or not text.startswith("{", at) or word.group(1) in _BLOCK_WORDS:
        return None
    return nearest_name(word.group(1), _BLOCK_WORDS)


def _before(text: str, at: int) -> str:
    """The few characters before a place, without the blanks between."""
    return text[max(0, at - _LOOK_BACK) : at].rstrip()
