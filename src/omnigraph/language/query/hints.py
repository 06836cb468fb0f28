"""What to do about a grammar error: the mistakes people make who come from other query languages.

A hint is the tail of a message and says how the thing is written here. `hint_at` looks at the text around the place where the
parser gave up; `foreign_operator` and `foreign_function` know words that fit the grammar and are only unknown.
"""

from __future__ import annotations

import re

from omnigraph.language.query.functions import AGGREGATES, FUNCTIONS
from omnigraph.language.source import nearest_name

_TRAVERSAL = r"\$\w+\s+(?:\$\w+\s*:\s*)?<?\s*[a-z_]\w*\s*>?\s*"
_TEXT_OPERATORS = "texts are compared with `contains`, `starts_with`, `ends_with` and `matches(text, regex)`"
_CONDITIONS = "conditions stand inside `match { … }`, one after the other"
_EDGE = "an edge is written `$a knows $b`, or `$a <knows> $b` in either direction"
_NODE = 'a node is written `$p: Person { name: "Ada" }`'
_BOUNDS = "one to three edges away is written `$a knows{1,3} $b`"
_INSERT = 'a node is added with `insert Person { name: "Ada" }`, or with `upsert` to keep what is there'
_SELECT = "a query is written `match { $p: Person } return { $p.name }`"
_ORDER = "rows are put in order with `order { $p.name desc }`"
_OPTIONAL = "an optional pattern is a block inside `match`: `optional { $a knows $b }`"
_SET = "values are set with `update Person set { age: 37 } where …`"
_NULL = "nulls are found with `is null` and `is not null`"

#: (the text before the failure, the text at it, the tail of the message)
_HINTS = tuple(
    (re.compile(rf"(?:{before})\Z", re.DOTALL), re.compile(at, re.DOTALL), hint)
    for before, at, hint in (
        ("", r"'", "texts are written in double quotes"),
        ("", r"#|--(?!>)", "comments start with `//`"),
        ("", r"\$[A-Z]", "a variable starts with a lower-case letter"),
        (r"=", r"=", "equality is a single `=`"),
        (r"=", r"~", 'a regular expression is matched with `matches($p.name, "^A")`'),
        (r"<", r">", "inequality is `!=`"),
        ("", r"!=?=|!", "write `!=` for inequality and `not` for the opposite"),
        ("", r"&", "conditions are joined with `and`"),
        (r"return\s*\{[^}]*", r"\|\|", "texts are joined with `+`"),
        ("", r"\|\|", "conditions are joined with `or`"),
        ("", r"\?\?", "a value in the place of null is written `coalesce($p.age, 0)`"),
        ("", r"\?", "a choice is written `if(condition, value, otherwise)`"),
        ("", r"::", "a value is converted with `to_text`, `to_int`, `to_float`, `to_date` or `to_datetime`"),
        (r"\blimit\s*(?:[0-9]+|\$\w+)", r"order", "`order` comes before `limit`"),
        (rf"{_TRAVERSAL}\{{\s*[0-9]+", r"\}", "hop bounds take a comma, as in `{2,2}`"),
        (rf"{_TRAVERSAL}\{{", r",", "hop bounds start with a number, as in `{1,3}`"),
        (r"\$\w+\s+[a-z_]\w*", r"\*", _BOUNDS),
        (r"-\s*\[|-\s*\[\s*\w+|--|<-+\s*", r"[:\]>(]", _EDGE),
        (r"<", r"-", _EDGE),
        ("", r"-\s*\[|-->|<-", _EDGE),
        (r"match|match\s*\{[^}]*|\(\s*\w*", r"\(\s*\w*\s*:|\(\s*\)|:\s*\w+", _NODE),
        (r"\bmatch", r"\(", _NODE),
        (r"[{}]\s*[a-z_]\w*", r":\s*[A-Z]", "a variable starts with `$`, as in `$p: Person`"),
        (r"[{,(=<>+*/-]\s*[a-z_]\w*", r"\.", "a variable starts with `$`, as in `$p.name`"),
        (
            r"\$\w+|<",
            r"(?!(?:AND|OR|IN|IS|NOT|CONTAINS|LIKE)\b)[A-Z]",
            "an edge is written with a lower-case first letter, as in `$a knows $b`",
        ),
        (r"\bin\s*\([^)]*", r",", "a list is written `[1, 2]`"),
        (r"\)", r"asc|desc", "`nearest` takes no direction, the best comes first"),
        (
            r"(?:contains|starts_with)\s+\$\w+",
            r"\.",
            "a bare variable before `contains` or `starts_with` reads as a traversal; put a property on the left",
        ),
        (r"\breturn", r"\{", "a `}` is missing before `return`"),
        (r"\breturn", r"(?i:distinct)\b", "repeated rows are left out with `return distinct { … }`"),
        (r"\breturn", r"[$\w]", "what is returned stands in braces: `return { $p.name }`"),
        (r"\border", r"(?i:by)\b|\$", _ORDER),
        (r"\bset", r"[a-z_$]", "assignments stand in braces: `set { age: 37 }`"),
        (r"[{,]\s*[a-z_]\w*", r"=", "a value is given with a colon, as in `age: 37`"),
        (r"\binsert\s+[A-Z]\w*", r"\(|(?i:values)\b", _INSERT),
        (r"\binsert", r"(?i:into)\b", _INSERT),
        (r"\bdelete", r"(?i:from)\b|\$", 'what is deleted is named first: `delete Person where name = "Ada"`'),
        (r"\b(?:update|delete)\s+[A-Z].*", r"\Z|\}", "to mean all of them write `where true`"),
        ("", r"(?i:select)\b", _SELECT),
        ("", r"(?i:create|merge)\b|INSERT\b", _INSERT),
        ("", r"(?i:unwind|foreach)\b", "the items of a list are compared with `in`: `$p.name in $names`"),
        ("", r"(?i:detach)\b", "deleting a node deletes its edges: `delete Person where …`"),
        ("", r"(?i:optional)\b", _OPTIONAL),
        ("", r"MATCH\b", "a pattern is written `match { … }`"),
        ("", r"(?i:where)\b", _CONDITIONS),
        ("", r"(?i:i?like|rlike|regexp|similar)\b", _TEXT_OPERATORS),
        ("", r"STARTS(?:\s+WITH)?\b", "the beginning of a text is compared with `starts_with`"),
        ("", r"ENDS(?:\s+WITH)?\b", "the end of a text is compared with `ends_with`"),
        ("", r"(?i:between)\b", "a range is written `$p.age >= 3 and $p.age <= 9`"),
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
_CAPITALS = re.compile(r"[A-Z][A-Z_]+(?!\w)")
#: The words of the language, for those who write them in capitals.
_READING = ("query", "match", "return", "order", "limit", "offset", "distinct", "having", "as", "asc", "desc", "nulls")
_CONDITION = ("and", "or", "not", "in", "is", "null", "true", "false", "contains", "starts_with", "ends_with")
_CHOICE = ("case", "when", "then", "else", "end")
_BLOCKS = ("optional", "exists", "union", "with")
_WRITING = ("insert", "upsert", "update", "delete", "set", "where", "from", "to")
_WORDS = frozenset((*_READING, *_CONDITION, *_CHOICE, *_BLOCKS, *_WRITING))
_BARE_WORD = re.compile(r"(?:\A|[\s{}])([A-Za-z_]\w*)\Z")
_BLOCK_WORDS = ("not", "match", "return", "order", "optional", "exists", "with", "union")
#: How many characters before and behind a failure are looked at.
_NEAR = 80


def hint_at(text: str, at: int) -> str:
    """The tail of the message for a grammar error at this place, or nothing."""
    # Patterns only see what is near, so that no text makes them slow.
    before, after = _before(text, at), text[at : at + _NEAR]
    for before_pattern, at_pattern, hint in _HINTS:
        if at_pattern.match(after) and before_pattern.search(before):
            return f"; {hint}"
    return _lower_case(after)


def _lower_case(after: str) -> str:
    """The hint for a word or a function of the language in capitals."""
    found = _CAPITALS.match(after)
    if found is None:
        return ""
    written = found.group().lower()
    if written in _WORDS:
        return f"; words of the language are written in lower case: `{written}`"
    if written in FUNCTIONS or written in AGGREGATES:
        return f"; functions are written in lower case: `{written}(…)`"
    return ""


#: Words that other languages have between two values; the grammar takes them for the next value.
_FOREIGN_OPERATORS = {
    **dict.fromkeys(("like", "ilike", "rlike", "regexp", "similar"), _TEXT_OPERATORS),
    "between": "a range is written `$p.age >= 3 and $p.age <= 9`",
    "where": _CONDITIONS,
    "starts": "the beginning of a text is compared with `starts_with`",
    "ends": "the end of a text is compared with `ends_with`",
    "equals": "equality is `=`",
    "isnull": _NULL,
    "notnull": _NULL,
    "xor": "either of two conditions is `a != b`",
    "optional": _OPTIONAL,
}


def foreign_operator(word: str) -> str | None:
    """How an operator of another language is written here, or None."""
    return _FOREIGN_OPERATORS.get(word.lower())


#: Functions of other languages whose name here is another one; operators and forms that are functions elsewhere.
_FOREIGN_FUNCTIONS = {
    **dict.fromkeys(
        ("len", "char_length", "strlen"), "the characters of a text are counted by `length`, items by `size`"
    ),
    **dict.fromkeys(("endswith", "ends_with"), 'it is an operator: `$p.name ends_with "a"`'),
    **dict.fromkeys(("startswith", "starts_with"), 'it is an operator: `$p.name starts_with "a"`'),
    "contains": 'it is an operator: `$p.name contains "a"`',
    "exists": "a property is there when it `is not null`, a pattern when `exists { … }`",
    **dict.fromkeys(("isnull", "is_null"), _NULL),
    **dict.fromkeys(("ifnull", "nvl"), "write `coalesce(value, other)`"),
    **dict.fromkeys(("cast", "convert"), "write `to_text`, `to_int`, `to_float`, `to_date` or `to_datetime`"),
    **dict.fromkeys(("tostring", "str"), "write `to_text(x)`"),
    **dict.fromkeys(("tointeger", "toint", "int"), "write `to_int(x)`"),
    **dict.fromkeys(("tofloat", "float"), "write `to_float(x)`"),
    **dict.fromkeys(("labels", "label"), "the type of a node is `$p.@type`"),
    **dict.fromkeys(("elementid", "startnode", "endnode"), "ids are `$p.@id`, and `$e.@src` and `$e.@dst` of an edge"),
    **dict.fromkeys(("properties", "keys"), "all properties are returned by `$p.*`"),
    **dict.fromkeys(
        ("array_agg", "list_agg", "group_concat", "string_agg"), "write `collect(x)`, and `join` for a text of it"
    ),
    **dict.fromkeys(("current_date", "curdate", "getdate"), "write `today()`, or `now()` for the moment"),
    **dict.fromkeys(("date_trunc", "trunc"), 'write `truncate("month", d)`'),
    **dict.fromkeys(("datediff", "date_diff"), "write `days_between(a, b)`, or `b - a`"),
    **dict.fromkeys(("dateadd", "date_add"), "write `d + 7` for days, `add_months(d, 1)` for months"),
    "timestamp": 'write `datetime("2026-01-31T12:00:00Z")`',
    **dict.fromkeys(("extract", "date_part"), "write `year(d)`, `month(d)`, `day(d)`, `hour(t)` …"),
    "ceiling": "write `ceil(x)`",
    **dict.fromkeys(("pow", "pwr"), "write `power(x, y)`"),
    "log": "write `ln(x)` or `log10(x)`",
    **dict.fromkeys(("regexp_matches", "regexp_like", "regex"), "write `matches(text, regex)`"),
    **dict.fromkeys(("toupper", "ucase"), "write `upper(text)`"),
    **dict.fromkeys(("tolower", "lcase"), "write `lower(text)`"),
    **dict.fromkeys(("head", "first"), "the first item of a list is `list[0]`"),
    "last": "the last item of a list is `list[-1]`",
    **dict.fromkeys(("stdev", "std"), "write `stddev(x)`"),
    "shortestpath": "a path is bound in `match`: `$p = shortest($a knows{1,6} $b)`",
    "reverse": "write `reverse_text(text)`",
}


def foreign_function(name: str) -> str | None:
    """How a function of another language is written here, or None."""
    return _FOREIGN_FUNCTIONS.get(name.lower())


def bare_word(name: str) -> str:
    """What to write in the place of a bare word that stands for no value."""
    if name == "distinct":
        return "write `return distinct { … }`, or `count(distinct x)`"
    if name == "case":
        return "write `case when $p.age > 3 then … else … end`"
    return f"a variable is written `${name}`"


def misspelt_block_word(text: str, at: int) -> str | None:
    """The keyword that was meant by an unknown bare word in front of a `{`."""
    word = _BARE_WORD.search(_before(text, at))
    if word is None or not text.startswith("{", at) or word.group(1) in _BLOCK_WORDS:
        return None
    return nearest_name(word.group(1), _BLOCK_WORDS)


def _before(text: str, at: int) -> str:
    """The few characters before a place, without the blanks between."""
    return text[max(0, at - _NEAR) : at].rstrip()
