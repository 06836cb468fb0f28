"""Words of other query languages that the grammar accepts but that have no meaning here, and what to write instead."""

from __future__ import annotations

import re

from omnigraph.language.types import PropType, Scalar

TEXT_OPERATORS = "texts are compared with `contains`, `starts_with`, `ends_with` and `matches(text, regex)`"
CONDITIONS = "conditions stand inside `match { … }`, one after the other"
OPTIONAL = "an optional pattern is a block inside `match`: `optional { $a knows $b }`"
BETWEEN = "a range is written `$p.age >= 3 and $p.age <= 9`"
POWER = "a power is written `power(2, 3)`"
CASE = "each `when` has a condition of its own: write `case when $p.age = 36 then … else … end`"
BLOCKS = (
    "only `count { … }`, `sum(x) { … }`, `avg`, `min` and `max` take a block; for the others write "
    "`match { $p: Person optional { $p knows $f } } return { $p, collect($f.name) }`"
)
_NULL = "nulls are found with `is null` and `is not null`"
_COLUMN = "a column is named by a word without quotes that starts with a lower-case letter, as in `as name`"

#: Infix operators of other languages; the grammar takes such a word for the next value.
_OPERATORS = {
    **dict.fromkeys(("like", "ilike", "rlike", "regexp", "similar"), TEXT_OPERATORS),
    "between": BETWEEN,
    "where": CONDITIONS,
    "starts": "the beginning of a text is compared with `starts_with`",
    "ends": "the end of a text is compared with `ends_with`",
    "equals": "equality is `=`",
    "isnull": _NULL,
    "notnull": _NULL,
    "xor": "one of two conditions alone is `(a) != (b)`",
    "mod": "the remainder of a division is `a % b`",
    "div": "whole numbers are divided by `div(a, b)`",
    "optional": OPTIONAL,
}


def foreign_operator(word: str) -> str | None:
    """How an operator of another language is written here, or None."""
    return _OPERATORS.get(word.lower())


#: Functions of other languages that have another name here, or are operators or other forms here.
_FUNCTIONS = {
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
    "mod": "the remainder of a division is `a % b`",
    "last": "the last item of a list is `list[-1]`",
    **dict.fromkeys(("stdev", "std"), "write `stddev(x)`"),
    "shortestpath": "a path is bound in `match`: `$p = shortest($a knows{1,6} $b)`",
    "reverse": "write `reverse_text(text)`",
}


def foreign_function(name: str) -> str | None:
    """How a function of another language is written here, or None."""
    return _FUNCTIONS.get(name.lower())


#: Operators of this and other languages before which no `not` may stand.
NOT_BEFORE = (
    "contains",
    "starts_with",
    "ends_with",
    "like",
    "ilike",
    "rlike",
    "regexp",
    "similar",
    "between",
    "matches",
)


def negated_operator(word: str, left: str) -> str:
    """The hint for `left not word …`."""
    if word == "between":
        return "what lies outside of a range is written `$p.age < 3 or $p.age > 9`"
    if word in ("contains", "starts_with", "ends_with"):
        return f"`not` stands before the whole condition: `not ({left} {word} …)`"
    return f"{TEXT_OPERATORS}, and `not` stands before the whole condition: `not ({left} contains …)`"


_AFTER_A_VALUE = re.compile(r"[\w\")\]]\s*\Z")


def bare_word(name: str, before: str) -> str:
    """The message about a bare word that is not a value. `before` is the text in front of it."""
    operator = foreign_operator(name)
    if name == "distinct":
        return "`distinct` is not a value; write `return distinct { … }`, or `count(distinct x)`"
    if name == "case":
        return f"`case` has no value before `when`; {CASE}"
    if name.startswith("@"):
        return f"`{name}` stands behind a variable: `$p.{name}`"
    if name == "as":
        return f"`as` is followed by a name; {_COLUMN}"
    if operator is not None:
        return f"`{name}` is no operator; {operator}"
    if _AFTER_A_VALUE.search(before):
        return (
            f"`{name}` is not a value; a column is named by `as {name}`, two are parted by a comma, and a variable is written "
            f"`${name}`"
        )
    return f"`{name}` is not a value; a variable is written `${name}`"


def other_function(name: str, kinds: list[PropType]) -> str:
    """The hint at another function that takes values of these types; empty when there is none."""
    first = kinds[0] if kinds else None
    if first is None:
        return ""
    if name == "size" and first.is_text:
        return "; the characters of a text are counted by `length`"
    if name == "item" and first.is_text:
        return "; the characters of a text are taken by `substring`"
    if name == "length" and first.is_list:
        return "; the items of a list are counted by `size`"
    if first.scalar is Scalar.DATE and name in ("hour", "minute", "second", "epoch_ms"):
        return "; `datetime(d)` is the first moment of a day"
    if name == "days_between" and any(kind.scalar is Scalar.DATETIME for kind in kinds):
        return "; `date(t)` is the day of a moment"
    return ""


def of_two_dates(left: PropType, right: PropType) -> str:
    """The hint for a Date combined with a DateTime; empty for other types."""
    if {left.scalar, right.scalar} != {Scalar.DATE, Scalar.DATETIME} or left.is_list or right.is_list:
        return ""
    return "; `datetime(d)` is the first moment of a day, `date(t)` the day of a moment"
