"""The registry of functions: names, signatures, null rules and help.

The checker, the engines, completion, `omnigraph functions` and docs/functions.md all read it. An engine has one kernel for each
name; a test demands that none is missing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, TypeAlias

from omnigraph.errors import NotFound
from omnigraph.language.source import did_you_mean, nearest_name
from omnigraph.language.types import FLOATS, INTEGERS, PropType, Scalar

STRING = PropType(Scalar.STRING)
BOOL = PropType(Scalar.BOOL)
I64 = PropType(Scalar.I64)
F64 = PropType(Scalar.F64)
DATE = PropType(Scalar.DATE)
DATETIME = PropType(Scalar.DATETIME)
TEXTS = PropType(Scalar.STRING, is_list=True)
INTEGER_LIST = PropType(Scalar.I64, is_list=True)


class Kind(StrEnum):
    """What an argument may be; the value is its name in help texts."""

    TEXT = "text"
    INTEGER = "integer"
    NUMBER = "number"
    BOOL = "condition"
    DATE = "date"
    DATETIME = "datetime"
    LIST = "list"
    TEXT_LIST = "list of texts"
    SCALAR = "value"
    ANY = "any value"


_FITS: dict[Kind, Callable[[PropType], bool]] = {
    Kind.TEXT: lambda kind: kind.is_text,
    Kind.INTEGER: lambda kind: kind.is_numeric and kind.scalar in INTEGERS,
    Kind.NUMBER: lambda kind: kind.is_numeric,
    Kind.BOOL: lambda kind: kind.scalar is Scalar.BOOL and not kind.is_list,
    Kind.DATE: lambda kind: kind.scalar is Scalar.DATE and not kind.is_list,
    Kind.DATETIME: lambda kind: kind.scalar is Scalar.DATETIME and not kind.is_list,
    Kind.LIST: lambda kind: kind.is_list,
    Kind.TEXT_LIST: lambda kind: kind.is_list and kind.scalar is Scalar.STRING,
    Kind.SCALAR: lambda kind: kind.is_plain_scalar,
    Kind.ANY: lambda kind: not kind.is_blob and not kind.is_vector,
}

#: The type that a null literal has where an argument of a kind is asked for.
_NULL_TYPES = {
    Kind.TEXT: STRING,
    Kind.INTEGER: I64,
    Kind.NUMBER: I64,
    Kind.BOOL: BOOL,
    Kind.DATE: DATE,
    Kind.DATETIME: DATETIME,
    Kind.LIST: TEXTS,
    Kind.TEXT_LIST: TEXTS,
}

#: The type of a result, from the types of the arguments.
ResultType = Callable[[Sequence[PropType]], PropType]


@dataclass(frozen=True, slots=True)
class Signature:
    """Arguments of these kinds; the last `optional` of them may be left out, the last one repeated when `repeats`."""

    arguments: tuple[tuple[str, Kind], ...]
    result: PropType | ResultType
    optional: int = 0
    repeats: bool = False

    def takes(self, kinds: Sequence[PropType], nulls: frozenset[int] = frozenset()) -> bool:
        """Whether arguments of these types fit; what stands at the places of `nulls` fits anything."""
        least, most = len(self.arguments) - self.optional, len(self.arguments)
        if len(kinds) < least or (len(kinds) > most and not self.repeats):
            return False
        return all(place in nulls or _FITS[self.wanted(place)](kind) for place, kind in enumerate(kinds))

    def wanted(self, place: int) -> Kind:
        """What the argument at a place may be."""
        return self.arguments[min(place, len(self.arguments) - 1)][1]

    def returns(self, kinds: Sequence[PropType]) -> PropType:
        """The type of the result for arguments of these types, nullability aside."""
        return self.result if isinstance(self.result, PropType) else self.result(kinds)

    def __str__(self) -> str:
        least = len(self.arguments) - self.optional
        names = [name if place < least else f"[{name}]" for place, (name, _) in enumerate(self.arguments)]
        return f"({', '.join([*names, '…'] if self.repeats else names)})"


class NullRule(StrEnum):
    """What a null argument makes of the result."""

    NULL = "null when an argument is null"
    OWN = "treats nulls by its own rule"


@dataclass(frozen=True, slots=True)
class Function:
    """One entry of the registry. `may_be_null`: the result can be null although no argument is."""

    name: str
    group: str
    signatures: tuple[Signature, ...]
    help: str
    nulls: NullRule = NullRule.NULL
    may_be_null: bool = False

    def usage(self) -> str:
        """How it is written, such as `substring(text, start, [length])`."""
        return " or ".join(f"{self.name}{signature}" for signature in self.signatures)

    def signature_for(self, kinds: Sequence[PropType]) -> Signature | None:
        """The first signature that takes arguments of these types, or None."""
        return next((signature for signature in self.signatures if signature.takes(kinds)), None)

    def types_of_nulls(self, kinds: Sequence[PropType], nulls: frozenset[int]) -> dict[int, PropType]:
        """The types that null literals at these places have among arguments of these types; {} where nothing fits."""
        found = next((signature for signature in self.signatures if signature.takes(kinds, nulls)), None)
        if found is None:
            return {}
        return {place: _NULL_TYPES.get(found.wanted(place), kinds[place]).as_nullable() for place in nulls}

    def type_for(self, signature: Signature, kinds: Sequence[PropType]) -> PropType:
        """The type of the result, nullability included."""
        made = signature.returns(kinds)
        nullable = self.may_be_null or (self.nulls is NullRule.NULL and any(kind.nullable for kind in kinds))
        if self.nulls is NullRule.OWN and not self.may_be_null:
            nullable = bool(kinds) and all(kind.nullable for kind in kinds)
        return replace(made, nullable=nullable)


# --- result types -----------------------------------------------------------------------------------------------------


def common_type(kinds: Iterable[PropType]) -> PropType | None:
    """One type that holds the values of all of these, or None: any integer with a float is F64, integers are I64."""
    given = list(kinds)
    first = replace(given[0], nullable=False, enum=None)
    if all(replace(kind, nullable=False, enum=None) == first for kind in given):
        return replace(first, enum=given[0].enum if len({kind.enum for kind in given}) == 1 else None)
    if all(kind.scalar in INTEGERS | FLOATS and kind.is_list == first.is_list for kind in given):
        scalar = Scalar.F64 if any(kind.scalar in FLOATS for kind in given) else Scalar.I64
        return PropType(scalar, is_list=first.is_list)
    return None


def number_type(kinds: Sequence[PropType]) -> PropType:
    """What arithmetic on these numbers gives: I64 for integers, F64 as soon as one is a float."""
    return F64 if any(kind.scalar in FLOATS for kind in kinds) else I64


def _first(kinds: Sequence[PropType]) -> PropType:
    return replace(kinds[0], nullable=False)


def _element(kinds: Sequence[PropType]) -> PropType:
    return kinds[0].element()


def _common(kinds: Sequence[PropType]) -> PropType:
    found = common_type(kinds)
    return replace(kinds[0], nullable=False) if found is None else found


def _list_of(kinds: Sequence[PropType]) -> PropType:
    return replace(_common(kinds), is_list=True, enum=None)


# --- the functions ----------------------------------------------------------------------------------------------------

_TEXT = ("text", Kind.TEXT)
_NUMBER = ("number", Kind.NUMBER)
_LIST = ("list", Kind.LIST)


def _one(*arguments: tuple[str, Kind], to: PropType | ResultType, optional: int = 0) -> tuple[Signature, ...]:
    return (Signature(arguments, to, optional),)


def _moment(result: PropType | ResultType, *before: tuple[str, Kind]) -> tuple[Signature, ...]:
    """One signature for a Date, one for a DateTime, behind the other arguments."""
    return (
        Signature((*before, ("date", Kind.DATE)), result),
        Signature((*before, ("datetime", Kind.DATETIME)), result),
    )


def _text_functions() -> Iterable[Function]:
    group = "text"
    yield Function("lower", group, _one(_TEXT, to=STRING), "The text in lower case.")
    yield Function("upper", group, _one(_TEXT, to=STRING), "The text in upper case.")
    yield Function("trim", group, _one(_TEXT, to=STRING), "The text without blanks at both ends.")
    yield Function("length", group, _one(_TEXT, to=I64), "How many characters a text has, or edges a path.")
    yield Function(
        "substring",
        group,
        _one(_TEXT, ("start", Kind.INTEGER), ("length", Kind.INTEGER), to=STRING, optional=1),
        "The characters from a place on, counted from 0, from the end when negative; all of them without a length.",
    )
    yield Function(
        "replace",
        group,
        _one(_TEXT, ("part", Kind.TEXT), ("with", Kind.TEXT), to=STRING),
        "The text with every occurrence of a part replaced.",
    )
    yield Function(
        "split",
        group,
        _one(_TEXT, ("separator", Kind.TEXT), to=TEXTS),
        "The parts of a text between separators; the separator is not empty.",
    )
    yield Function(
        "join",
        group,
        _one(("texts", Kind.TEXT_LIST), ("separator", Kind.TEXT), to=STRING),
        "The texts of a list as one text, nulls left out.",
    )
    yield Function(
        "reverse_text", group, _one(_TEXT, to=STRING), "The characters of a text from the last to the first."
    )
    yield Function(
        "matches",
        group,
        _one(_TEXT, ("regex", Kind.TEXT), to=BOOL),
        "Whether a regular expression (RE2) matches somewhere in the text; anchor it with ^ and $.",
    )
    yield Function(
        "concat",
        group,
        (Signature((_TEXT,), STRING, repeats=True),),
        "Texts one after the other, nulls left out; `+` gives null instead.",
        NullRule.OWN,
    )


def _number_functions() -> Iterable[Function]:
    group = "numbers"
    yield Function("abs", group, _one(_NUMBER, to=number_type), "The number without its sign.")
    yield Function(
        "round",
        group,
        _one(_NUMBER, ("digits", Kind.INTEGER), to=number_type, optional=1),
        "The number rounded to so many digits behind the point, halves away from zero.",
    )
    yield Function("floor", group, _one(_NUMBER, to=number_type), "The greatest whole number that is not above.")
    yield Function("ceil", group, _one(_NUMBER, to=number_type), "The least whole number that is not below.")
    yield Function("sqrt", group, _one(_NUMBER, to=F64), "The square root; of a negative number an error.")
    yield Function(
        "power", group, _one(_NUMBER, ("exponent", Kind.NUMBER), to=F64), "A number raised to an exponent, as a float."
    )
    yield Function("exp", group, _one(_NUMBER, to=F64), "e raised to the number.")
    yield Function("ln", group, _one(_NUMBER, to=F64), "The natural logarithm; of zero or less an error.")
    yield Function("log10", group, _one(_NUMBER, to=F64), "The decimal logarithm; of zero or less an error.")
    yield Function("sign", group, _one(_NUMBER, to=I64), "-1, 0 or 1 as the number is negative, zero or positive.")
    yield Function(
        "div",
        group,
        _one(("number", Kind.INTEGER), ("divisor", Kind.INTEGER), to=I64),
        "The whole part of a division of integers, rounded towards zero; by zero an error.",
    )
    least = (Signature((("value", Kind.SCALAR), ("value", Kind.SCALAR)), _common, repeats=True),)
    yield Function("least", group, least, "The least of the values that are not null.", NullRule.OWN)
    yield Function("greatest", group, least, "The greatest of the values that are not null.", NullRule.OWN)


def _date_functions() -> Iterable[Function]:
    group = "dates"
    for name, what in (
        ("year", "The year"),
        ("month", "The month, 1 to 12"),
        ("day", "The day of the month, 1 to 31"),
        ("weekday", "The day of the week, 1 for Monday to 7 for Sunday"),
        ("week", "The ISO week of the year, 1 to 53"),
    ):
        yield Function(name, group, _moment(I64), f"{what}, of a date or a datetime in UTC.")
    for name, what in (("hour", "The hour, 0 to 23"), ("minute", "The minute"), ("second", "The second")):
        yield Function(name, group, _one(("datetime", Kind.DATETIME), to=I64), f"{what}, of a datetime in UTC.")
    yield Function(
        "date",
        group,
        (*_one(("datetime", Kind.DATETIME), to=DATE), *_one(_TEXT, to=DATE)),
        'The day of a datetime in UTC, or of a text such as "2026-03-01".',
    )
    yield Function(
        "datetime",
        group,
        (*_one(("date", Kind.DATE), to=DATETIME), *_one(_TEXT, to=DATETIME)),
        "The first moment of a day in UTC, or the moment a text names.",
    )
    yield Function(
        "truncate",
        group,
        _moment(lambda kinds: replace(kinds[1], nullable=False), ("unit", Kind.TEXT)),
        'The first moment of the "year", "quarter", "month", "week", "day", "hour", "minute" or "second".',
    )
    yield Function(
        "add_months",
        group,
        (
            Signature((("date", Kind.DATE), ("months", Kind.INTEGER)), DATE),
            Signature((("datetime", Kind.DATETIME), ("months", Kind.INTEGER)), DATETIME),
        ),
        "So many months later; the last day of a shorter month where the day does not exist.",
    )
    yield Function(
        "days_between",
        group,
        _one(("first", Kind.DATE), ("second", Kind.DATE), to=I64),
        "How many days the second date is after the first.",
    )
    yield Function(
        "epoch_ms", group, _one(("datetime", Kind.DATETIME), to=I64), "Milliseconds since 1970-01-01 in UTC."
    )
    yield Function("today", group, _one(to=DATE), "The day of the query in UTC.")


def _list_functions() -> Iterable[Function]:
    group = "lists"
    yield Function("size", group, _one(_LIST, to=I64), "How many items a list has.")
    yield Function(
        "slice",
        group,
        _one(_LIST, ("start", Kind.INTEGER), ("end", Kind.INTEGER), to=_first, optional=1),
        "The items from a place up to another one, which is left out; counted from 0, from the end when negative.",
    )
    yield Function("distinct_list", group, _one(_LIST, to=_first), "The items, each once, where it stands first.")
    yield Function("sort_list", group, _one(_LIST, to=_first), "The items in ascending order, nulls last.")
    yield Function(
        "range",
        group,
        _one(("start", Kind.INTEGER), ("end", Kind.INTEGER), ("step", Kind.INTEGER), to=INTEGER_LIST, optional=1),
        "The whole numbers from one up to another, which is left out.",
    )
    yield Function(
        "item",
        group,
        _one(_LIST, ("place", Kind.INTEGER), to=_element),
        "`list[place]`: an item counted from 0, from the end when negative; null outside the list.",
        may_be_null=True,
    )
    yield Function(
        "list",
        group,
        (Signature((("value", Kind.SCALAR),), _list_of, repeats=True),),
        "`[a, b, …]`: the values as a list.",
        NullRule.OWN,
    )


def _choice_functions() -> Iterable[Function]:
    group = "choices"
    yield Function(
        "coalesce",
        group,
        (Signature((("value", Kind.ANY),), _common, repeats=True),),
        "The first of the values that is not null.",
        NullRule.OWN,
    )
    yield Function(
        "nullif",
        group,
        _one(("value", Kind.SCALAR), ("other", Kind.SCALAR), to=_first),
        "Null when both are equal, else the first.",
        NullRule.OWN,
        may_be_null=True,
    )
    yield Function(
        "if",
        group,
        _one(("condition", Kind.BOOL), ("value", Kind.ANY), ("otherwise", Kind.ANY), to=lambda k: _common(k[1:])),
        "The first value where the condition is true, else the second; null counts as false.",
        NullRule.OWN,
        may_be_null=True,
    )


def _entity_functions() -> Iterable[Function]:
    variable = (("x", Kind.ANY),)
    yield Function("id", "entities", (Signature(variable, STRING),), "The id of a node or an edge, as `$x.@id`.")
    yield Function("type", "entities", (Signature(variable, STRING),), "The type of a node or an edge, as `$x.@type`.")
    yield Function(
        "object",
        "entities",
        (Signature(variable, PropType(Scalar.OBJECT)),),
        "A node or an edge as one value: its id, its type and its properties.",
    )
    path = (("path", Kind.ANY),)
    texts = replace(STRING, is_list=True)
    yield Function("nodes", "entities", (Signature(path, texts),), "The ids of the nodes of a path, in its order.")
    yield Function("edges", "entities", (Signature(path, texts),), "The ids of the edges of a path, in its order.")


_CONVERSIONS: tuple[tuple[str, tuple[Kind, ...], PropType, str], ...] = (
    ("to_text", (Kind.SCALAR,), STRING, "The value as text."),
    ("to_int", (Kind.TEXT, Kind.NUMBER, Kind.BOOL), I64, "The value as a whole number; fractions are cut off."),
    ("to_float", (Kind.TEXT, Kind.NUMBER, Kind.BOOL), F64, "The value as a float."),
    ("to_date", (Kind.TEXT, Kind.DATE, Kind.DATETIME), DATE, "The value as a date."),
    ("to_datetime", (Kind.TEXT, Kind.DATE, Kind.DATETIME), DATETIME, "The value as a datetime in UTC."),
)


def _conversion_functions() -> Iterable[Function]:
    for name, kinds, result, text in _CONVERSIONS:
        signatures = tuple(Signature((("value", kind),), result) for kind in kinds)
        yield Function(name, "conversions", signatures, f"{text} What can not be converted is an error.")
        yield Function(
            f"try_{name}", "conversions", signatures, f"{text} What can not be converted is null.", may_be_null=True
        )


FUNCTIONS: dict[str, Function] = {
    function.name: function
    for family in (
        _text_functions,
        _number_functions,
        _date_functions,
        _list_functions,
        _choice_functions,
        _conversion_functions,
        _entity_functions,
    )
    for function in family()
}

# --- aggregates -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AggregateFunction:
    """An aggregate: what its argument may be (`wanted` in messages), the type of its result, its help."""

    name: str
    takes: Callable[[PropType], bool]
    wanted: str
    result: Callable[[PropType], PropType]
    help: str
    #: Whether `distinct` before the argument makes a difference that is supported.
    distinct: bool = True


def _ordered(kind: PropType) -> bool:
    return kind.is_plain_scalar


def _sum_type(kind: PropType) -> PropType:
    return I64 if kind.scalar in INTEGERS else F64


AGGREGATES: dict[str, AggregateFunction] = {
    function.name: function
    for function in (
        AggregateFunction("count", lambda kind: True, "any value", lambda kind: I64, "How many values are not null."),
        AggregateFunction(
            "sum", lambda kind: kind.is_numeric, "a number", _sum_type, "The sum, an integer for integers."
        ),
        AggregateFunction("avg", lambda kind: kind.is_numeric, "a number", lambda kind: F64, "The mean."),
        AggregateFunction(
            "min", _ordered, "a number, a text, a date or a truth value", lambda kind: kind, "The least value."
        ),
        AggregateFunction(
            "max", _ordered, "a number, a text, a date or a truth value", lambda kind: kind, "The greatest value."
        ),
        AggregateFunction(
            "collect",
            _ordered,
            "a value that is no list",
            lambda kind: replace(kind, is_list=True, nullable=False, enum=None),
            "The values that are not null as a list, in the order of the rows.",
        ),
        AggregateFunction(
            "stddev", lambda kind: kind.is_numeric, "a number", lambda kind: F64, "The sample standard deviation."
        ),
        AggregateFunction(
            "median", lambda kind: kind.is_numeric, "a number", lambda kind: F64, "The middle value, interpolated."
        ),
        AggregateFunction(
            "percentile",
            lambda kind: kind.is_numeric,
            "a number",
            lambda kind: F64,
            "`percentile(x, p)`: the value below which the fraction p (0 to 1) lies, interpolated.",
        ),
        AggregateFunction("any_value", _ordered, "a value", lambda kind: kind, "One of the values that are not null."),
    )
}


Entry: TypeAlias = Function | AggregateFunction

AGGREGATES_GROUP = "aggregates"


def function_entries(name: str | None = None) -> list[Entry]:
    """All functions in the order of the registry, then the aggregates; or the one of this name."""
    entries: dict[str, Entry] = {**FUNCTIONS, **AGGREGATES}
    if name is None:
        return list(entries.values())
    if name not in entries:
        raise NotFound(f"there is no function '{name}'{did_you_mean(nearest_name(name, entries))}")
    return [entries[name]]


def described_functions(name: str | None = None) -> list[dict[str, Any]]:
    """The entries as plain data: how they are written, what they do, and their arguments."""
    return [_described(entry) for entry in function_entries(name)]


def group_of(entry: Entry) -> str:
    """The group that an entry is listed under."""
    return getattr(entry, "group", AGGREGATES_GROUP)


def usages_of(entry: Entry) -> list[str]:
    """How an entry is written, one text for each of its signatures."""
    signatures: Sequence[Signature] | None = getattr(entry, "signatures", None)
    if signatures is None:
        return [f"{entry.name}(x, p)" if entry.name == "percentile" else f"{entry.name}(x)"]
    return list(dict.fromkeys(f"{entry.name}{signature}" for signature in signatures))


def _described(entry: Entry) -> dict[str, Any]:
    signatures: Sequence[Signature] = getattr(entry, "signatures", ())
    nulls = getattr(entry, "nulls", None)
    return {
        "name": entry.name,
        "group": group_of(entry),
        "usage": usages_of(entry),
        "help": entry.help,
        "aggregate": not signatures,
        **({"nulls": str(nulls)} if nulls is not None else {}),
        "signatures": [
            {
                "arguments": [
                    {
                        "name": name,
                        "kind": str(kind),
                        "optional": place >= len(signature.arguments) - signature.optional,
                    }
                    for place, (name, kind) in enumerate(signature.arguments)
                ],
                "repeats": signature.repeats,
            }
            for signature in signatures
        ],
    }
