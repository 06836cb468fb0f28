"""Hints for grammar errors, such as mistakes of people who know other query languages.
A hint is the tail of a message and says what to write. `hint_at` examines the text around the place where the parser failed;
the module `foreign` handles words that fit the grammar and are only unknown.
"""

from __future__ import annotations

import re
from collections.abc import Container

from omnigraph.language.query.foreign import (
    BETWEEN,
    BLOCKS,
    CASE,
    CONDITIONS,
    OPTIONAL,
    POWER,
    TEXT_OPERATORS,
    foreign_function,
)
from omnigraph.language.query.functions import AGGREGATES, FUNCTIONS
from omnigraph.language.source import nearest_name

_TRAVERSAL = r"\$\w+\s+(?:\$\w+\s*:\s*)?<?\s*[a-z_]\w*\s*>?\s*"
_EDGE = "an edge is written `$a knows $b`, or `$a <knows> $b` in either direction"
_NODE = 'a node is written `$p: Person { name: "Ada" }`'
_BOUNDS = "one to three edges away is written `$a knows{1,3} $b`"
_INSERT = 'a node is added with `insert Person { name: "Ada" }`, or with `upsert` to keep what is there'
_SELECT = "a query is written `match { $p: Person } return { $p.name }`"
_ORDER = "rows are put in order with `order { $p.name desc }`"
_SET = "values are set with `update Person set { age: 37 } where …`"
_PARAMETER = "a parameter is written `$who`"
_NAME = "a column is named by a word without quotes that starts with a lower-case letter, as in `as name`"
_UNION = "the other side of a `union` stands in braces: `union { match { … } return { … } }`"
_VALUE = r"(?:[=<>,+*/%]|[a-z_]\w*\s*[:(]|\b(?:in|contains|starts_with|ends_with|and|or|not)|\bin\s*[(\[])"

#: (the text before the failure, the text at it, the tail of the message)
_HINTS = tuple(
    (re.compile(rf"(?:{before})\Z", re.DOTALL), re.compile(at, re.DOTALL), hint)
    for before, at, hint in (
        (r"\bas", r"[A-Z'\"`]", _NAME),
        ("", r"'", "texts are written in double quotes"),
        ("", r"#|--(?!>)", "comments start with `//`"),
        (r"[0-9]", r"_[0-9]", "a number is written without `_`"),
        ("", r"\$[A-Z]", "a variable starts with a lower-case letter"),
        (r"=", r"=", "equality is a single `=`"),
        (r"=", r"~", 'a regular expression is matched with `matches($p.name, "^A")`'),
        (r"<", r">", "inequality is `!=`"),
        ("", r"!=?=|!", "write `!=` for inequality and `not` for the opposite"),
        ("", r"&", "conditions are joined with `and`"),
        (r"return\s*\{[^}]*", r"\|\|", "texts are joined with `+`"),
        ("", r"\|\|", "conditions are joined with `or`"),
        ("", r"\?\?", "a value in the place of null is written `coalesce($p.age, 0)`"),
        (_VALUE, r"[:@][a-z_]|\?|%[s(]|\{\s*\w+\s*\}", _PARAMETER),
        ("", r"\?", "a choice is written `if(condition, value, otherwise)`"),
        ("", r"::", "a value is converted with `to_text`, `to_int`, `to_float`, `to_date` or `to_datetime`"),
        ("", r"\^", POWER),
        (r"\blimit\s*(?:[0-9]+|\$\w+)", r"order", "`order` comes before `limit`"),
        (rf"{_TRAVERSAL}\{{\s*[0-9]+", r"\}", "hop bounds take a comma, as in `{2,2}`"),
        (rf"{_TRAVERSAL}\{{", r",", "hop bounds start with a number, as in `{1,3}`"),
        (r"\$\w+\s+[a-z_]\w*", r"\*", _BOUNDS),
        (r"-\s*\[|-\s*\[\s*\w+|--|<-+\s*", r"[:\]>(]", _EDGE),
        (r"<", r"-", _EDGE),
        ("", r"-\s*\[|-->|<-", _EDGE),
        (r"-", r">", _EDGE),
        (r"match|match\s*\{[^}]*|\(\s*\w*", r"\(\s*\w*\s*:|\(\s*\)|:\s*\w+", _NODE),
        (r"\bmatch", r"\(", _NODE),
        (
            r"\bquery\s+[a-z_]\w*",
            r"\{",
            "parameters stand in parentheses, also when there are none: `query q() { … }`",
        ),
        (r"\bquery", r"[A-Z\"'{(]", "a query has a name that starts with a lower-case letter: `query q() { … }`"),
        (r"\bquery\s+\w+\s*\((?:[^)]*,)?", r"\w+\s*:", "a parameter starts with `$`: `$who: String`"),
        (r"\bquery\s+\w+\s*\([^)]*\$\w+", r"\w", "the type of a parameter stands behind a colon: `$who: String`"),
        (r"[{}]\s*[a-z_]\w*", r":\s*[A-Z]", "a variable starts with `$`, as in `$p: Person`"),
        (r"\bhaving\s+[a-z_]\w*", r"\.", "`having` names a column by its alias, or as it was returned: `$p.name`"),
        (
            r"\b(?:update|delete)\s+[A-Z][^$]*\bwhere\s+[a-z_]\w*",
            r"\.",
            'a property of what is changed stands alone: `where name = "Ada"`',
        ),
        (
            r"(?:[{,(=<>+*/-]|\b(?:where|and|or|not|in|when|then|else|is))\s*[a-z_]\w*",
            r"\.",
            "a variable starts with `$`, as in `$p.name`",
        ),
        (
            r"\$\w+|<",
            r"(?!(?:AND|OR|IN|IS|NOT|CONTAINS|LIKE)\b)[A-Z]",
            "an edge is written with a lower-case first letter, as in `$a knows $b`",
        ),
        (r"\$\w+\.@?\w+", r"\.", "a part of a value is computed by a function, as in `year($p.born)`"),
        (r"\bin\s*\([^)]*", r",", "a list is written `[1, 2]`"),
        (r"\)", r"asc|desc", "`nearest` takes no direction, the best comes first"),
        (
            r"(?:contains|starts_with)\s+\$\w+",
            r"\.",
            "a bare variable before `contains` or `starts_with` reads as a traversal; put a property on the left",
        ),
        (
            r"(?:\breturn(?:\s+distinct)?\s*\{|,)",
            r"\*",
            "all properties are returned by `$p.*`, a node as one value by `object($p)`",
        ),
        (r"(?<![.$\w])case", r"[$\w(]", CASE),
        (r"(?<![.$\w])not", r"\{", "whether a pattern has no match is said by `not exists { … }`"),
        (rf"(?<![.$\w])(?:{'|'.join(AGGREGATES)})", r"\{", BLOCKS),
        (r"\bunion(?:\s+all)?", r"match\b", _UNION),
        (
            r"\bmatch\s*\{(?:[^{}]|\{[^{}]*\})*\}",
            r"match\b",
            "all patterns stand in one `match` block; another one begins behind `with { … }`",
        ),
        (r"\bunion", r"distinct\b", "`union` leaves out repeated rows, `union all` keeps them"),
        (r"\breturn", r"\{", "a `}` is missing before `return`"),
        (r"\breturn", r"(?i:distinct)\b", "repeated rows are left out with `return distinct { … }`"),
        (r"\breturn", r"[$\w]", "what is returned stands in braces: `return { $p.name }`"),
        (r"\border", r"(?i:by)\b|\$", _ORDER),
        (
            r"\b(?:insert|upsert)\s+[A-Z]\w*\s*\{",
            r"\}",
            "at least one property is named; one without a value is null, as in `age: null`",
        ),
        (r"\bset\s*\{", r"\}", "at least one property is set, as in `age: 37`"),
        (r"\bupdate\s+[A-Z]\w*", r"(?i:where)\b", "`where` stands behind `set { … }`"),
        (r"\bset", r"[a-z_$]", "assignments stand in braces: `set { age: 37 }`"),
        (r"[{,]\s*[a-z_]\w*", r"=", "a value is given with a colon, as in `age: 37`"),
        (r"\binsert\s+[A-Z]\w*", r"\(|(?i:values)\b", _INSERT),
        (r"\binsert", r"(?i:into)\b", _INSERT),
        (r"\bdelete", r"(?i:from)\b|\$", 'what is deleted is named first: `delete Person where name = "Ada"`'),
        (r"\b(?:update|delete)\s+[A-Z].*", r"\Z|\}", "to mean all of them write `where true`"),
        ("", r"(?i:select)\b", _SELECT),
        ("", r"(?i:create|merge)\b|INSERT\b", _INSERT),
        ("", r"(?i:unwind|foreach)\b", "the items of a list are compared with `in`: `$p.name in $names`"),
        ("", r"(?i:remove)\b", "a property is cleared with `update Person set { age: null } where …`"),
        ("", r"(?i:detach)\b", "deleting a node deletes its edges: `delete Person where …`"),
        ("", r"(?i:optional)\b", OPTIONAL),
        ("", r"MATCH\b", "a pattern is written `match { … }`"),
        ("", r"(?i:where)\b", CONDITIONS),
        ("", r"(?i:i?like|rlike|regexp|similar)\b", TEXT_OPERATORS),
        ("", r"STARTS(?:\s+WITH)?\b", "the beginning of a text is compared with `starts_with`"),
        ("", r"ENDS(?:\s+WITH)?\b", "the end of a text is compared with `ends_with`"),
        ("", r"(?i:between)\b", BETWEEN),
        ("", r"(?i:group\s+by)\b", "a query with aggregates is grouped by what else it returns"),
        ("", r"(?i:skip)\b", "rows are left out with `offset`"),
        ("", r"(?i:order\s+by)\b", _ORDER),
        ("", r"(?i:current_date|current_timestamp)\b", "the time of the query is `today()` or `now()`"),
        ("", r"(?i:set)\b", _SET),
        ("", r"(?i:returning)\b", "a mutation answers with counts; read with a query"),
        ("", r"DISTINCT\b", "write `return distinct { … }`, or `count(distinct x)`"),
        (r"[{}\w\")\]]", r",\s*\$", "clauses of a match block follow each other without a comma"),
        (r"[\w\")\]]", r";", "a `;` stands only at the end; clauses follow each other without one"),
    )
)
_CAPITALS = re.compile(r"[A-Z]\w*")
_CALLED = re.compile(r"[A-Z]\w*(?=\s*\()")
#: A lower-case word in the place of a type; not the edge of a traversal, which is followed by a variable.
_SMALL_TYPE = re.compile(r"[a-z]\w*+(?!\s*\$)")
#: The words of the language, to recognise them in capitals.
_READING = ("query", "match", "return", "order", "limit", "offset", "distinct", "having", "as", "asc", "desc", "nulls")
_CONDITION = ("and", "or", "not", "in", "is", "null", "true", "false", "contains", "starts_with", "ends_with")
_CHOICE = ("case", "when", "then", "else", "end")
_BLOCKS = ("optional", "exists", "union", "with")
_WRITING = ("insert", "upsert", "update", "delete", "set", "where", "from", "to")
_WORDS = frozenset((*_READING, *_CONDITION, *_CHOICE, *_BLOCKS, *_WRITING))
_BARE_WORD = re.compile(r"(?:\A|[\s{}])([A-Za-z_]\w*)\Z")
_BLOCK_WORDS = ("not", "match", "return", "order", "optional", "exists", "with", "union")
#: How many characters before and after a failure are examined.
_NEAR = 80


def hint_at(text: str, at: int, wanted: Container[str] = ()) -> str:
    """The hint for a grammar error at offset `at`, where the parser expected `wanted`; empty when there is none."""
    # Patterns see only the nearby text, so that no text makes them slow.
    before, after = _before(text, at), text[at : at + _NEAR]
    if "`where`" in wanted and after.startswith("WHERE"):
        return _lower_case(after)
    for before_pattern, at_pattern, hint in _HINTS:
        if at_pattern.match(after) and before_pattern.search(before):
            return f"; {hint}"
    small = _SMALL_TYPE.match(after)
    if "a type name" in wanted and small is not None:
        word = small.group()
        return f"; a type name starts with a capital letter: `{word[0].upper()}{word[1:]}`"
    return _lower_case(after)


def _lower_case(after: str) -> str:
    """The hint for a word or function written in capitals; empty when there is none."""
    found = _CAPITALS.match(after)
    if found is None:
        return ""
    written = found.group().lower()
    called = _CALLED.match(after) is not None
    if called and (written in FUNCTIONS or written in AGGREGATES):
        return f"; functions are written in lower case: `{written}(…)`"
    if written in _WORDS and found.group().isupper():
        return f"; words of the language are written in lower case: `{written}`"
    foreign = foreign_function(written) if called else None
    return "" if foreign is None else f"; {foreign}"


def misspelt_block_word(text: str, at: int) -> str | None:
    """The keyword nearest to an unknown bare word before a `{`; None when there is none."""
    word = _BARE_WORD.search(_before(text, at))
    if word is None or not text.startswith("{", at) or word.group(1) in _BLOCK_WORDS:
        return None
    return nearest_name(word.group(1), _BLOCK_WORDS)


def _before(text: str, at: int) -> str:
    """The last characters before an offset, without trailing blanks."""
    return text[max(0, at - _NEAR) : at].rstrip()
