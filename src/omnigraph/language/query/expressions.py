"""Expressions and literals of the query language.

A function name is always followed by `(`, so one look at the word and the character behind it decides; only `true` and
`false` are taken as bare prefixes, before any name.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NoReturn

from omnigraph.language.query.ast import (
    Access,
    Aggregate,
    Bm25,
    BoolLit,
    DateLit,
    DateTimeLit,
    Expr,
    FloatLit,
    Fuzzy,
    Ident,
    IntLit,
    ListLit,
    Literal,
    MatchText,
    Nearest,
    Now,
    Rrf,
    Search,
    StringLit,
    Value,
    Variable,
)
from omnigraph.language.scanner import Scanner
from omnigraph.language.schema.numbers import to_float
from omnigraph.language.source import Span
from omnigraph.language.suggest import did_you_mean, nearest_name

#: Deep enough for any query a person or a program writes, shallow enough for every recursive walk over the tree.
MAX_NESTING = 64
MAX_I64 = 2**63 - 1

_WORD = re.compile(r"[a-z_][A-Za-z0-9_]*")
_VARIABLE = re.compile(r"\$[a-z_][A-Za-z0-9_]*")
_FLOAT = re.compile(r"[0-9]+\.[0-9]+")
_DIGIT = re.compile(r"[0-9]")


def deeper(scanner: Scanner, depth: int) -> int:
    """The next nesting depth, or a ParseError when there are too many levels."""
    if depth >= MAX_NESTING:
        scanner.source.grammar_error(
            f"nested too deeply, at most {MAX_NESTING} levels are allowed", Span(scanner.at, scanner.at + 1)
        )
    return depth + 1


def parse_variable(scanner: Scanner) -> Variable:
    start = scanner.at
    text = scanner.take_pattern(_VARIABLE, "a variable")
    return Variable(text[1:], scanner.span_from(start))


def parse_integer(scanner: Scanner, largest: int, what: str) -> int:
    """Digits as a number that is at most `largest`; `what` names it in the message."""
    start = scanner.at
    digits = scanner.take_digits().lstrip("0") or "0"
    # The length is looked at first: Python refuses to convert thousands of digits.
    if len(digits) > len(str(largest)) or int(digits) > largest:
        scanner.source.semantic_error(f"{what} is too large, the largest is {largest}", scanner.span_from(start))
    return int(digits)


def parse_value(scanner: Scanner) -> Value:
    """What a pattern or an assignment takes: a literal, a variable or `now()`."""
    if scanner.looking_at("$"):
        return parse_variable(scanner)
    if scanner.peek(_WORD) == "now":
        start = scanner.at
        scanner.expect("now")
        return _now(scanner, start, 0)
    return _literal(scanner, 0, "a value")


def parse_expr(scanner: Scanner, depth: int = 0) -> Expr:
    start = scanner.at
    if scanner.looking_at("$"):
        return _access_or_variable(scanner)
    word = scanner.peek(_WORD)
    if word is None or word.startswith(("true", "false")):
        return _literal(scanner, depth, "an expression")
    scanner.take_ident()
    if not scanner.looking_at("("):
        return Ident(word, scanner.span_from(start))
    call = _CALLS.get(word)
    if call is None:
        _unknown_function(scanner, word, start)
    return call(scanner, start, deeper(scanner, depth))


def _unknown_function(scanner: Scanner, word: str, start: int) -> NoReturn:
    suggestion = nearest_name(word, _CALLS)
    scanner.source.grammar_error(
        f"unknown function `{word}`{did_you_mean(suggestion)}",
        Span(start, start + len(word)),
        expected=tuple(_CALLS),
        suggestion=suggestion,
    )


# --- variables and literals -------------------------------------------------------------------------------------------


def _access_or_variable(scanner: Scanner) -> Access | Variable:
    start = scanner.at
    variable = parse_variable(scanner)
    if not scanner.accept("."):
        return variable
    return Access(variable.name, scanner.take_ident(), scanner.span_from(start))


def _access(scanner: Scanner) -> Access:
    start = scanner.at
    variable = parse_variable(scanner)
    scanner.expect(".")
    return Access(variable.name, scanner.take_ident(), scanner.span_from(start))


def _literal(scanner: Scanner, depth: int, wanted: str) -> Literal:
    start = scanner.at
    if scanner.looking_at("["):
        return _list(scanner, start, deeper(scanner, depth))
    if scanner.looking_at('"'):
        return StringLit(scanner.take_string(), scanner.span_from(start))
    if scanner.peek(_FLOAT):
        return _float(scanner, start)
    if scanner.peek(_DIGIT):
        return IntLit(parse_integer(scanner, MAX_I64, "an integer literal"), scanner.span_from(start))
    for text, value in (("true", True), ("false", False)):
        if scanner.looking_at(text):
            scanner.expect(text)
            return BoolLit(value, scanner.span_from(start))
    word = scanner.peek(_WORD)
    if word != "date" and word != "datetime":
        scanner.fail(wanted)
    scanner.expect(word)
    return _date(scanner, start, depth) if word == "date" else _datetime(scanner, start, depth)


def _list(scanner: Scanner, start: int, depth: int) -> ListLit:
    scanner.expect("[")
    items: list[Literal] = []
    if not scanner.looking_at("]"):
        items.append(_literal(scanner, depth, "a literal"))
        while scanner.accept(","):
            items.append(_literal(scanner, depth, "a literal"))
    scanner.expect("]")
    return ListLit(tuple(items), scanner.span_from(start))


def _float(scanner: Scanner, start: int) -> FloatLit:
    text = scanner.take_float_text()
    span = scanner.span_from(start)
    to_float(text, scanner.source, span)
    return FloatLit(text, span)


# --- calls: each is entered at its `(` --------------------------------------------------------------------------------


def _now(scanner: Scanner, start: int, depth: int) -> Now:
    scanner.expect("(")
    scanner.expect(")")
    return Now(scanner.span_from(start))


def _date(scanner: Scanner, start: int, depth: int) -> DateLit:
    return DateLit(_string_argument(scanner), scanner.span_from(start))


def _datetime(scanner: Scanner, start: int, depth: int) -> DateTimeLit:
    return DateTimeLit(_string_argument(scanner), scanner.span_from(start))


def _string_argument(scanner: Scanner) -> str:
    scanner.expect("(")
    text = scanner.take_string()
    scanner.expect(")")
    return text


def _two_arguments(scanner: Scanner, depth: int) -> tuple[Expr, Expr]:
    """`( expr , expr`; what follows is the caller's."""
    scanner.expect("(")
    first = parse_expr(scanner, depth)
    scanner.expect(",")
    return first, parse_expr(scanner, depth)


def _search(scanner: Scanner, start: int, depth: int) -> Search:
    field, query = _two_arguments(scanner, depth)
    scanner.expect(")")
    return Search(field, query, scanner.span_from(start))


def _match_text(scanner: Scanner, start: int, depth: int) -> MatchText:
    field, query = _two_arguments(scanner, depth)
    scanner.expect(")")
    return MatchText(field, query, scanner.span_from(start))


def _fuzzy(scanner: Scanner, start: int, depth: int) -> Fuzzy:
    field, query = _two_arguments(scanner, depth)
    max_edits = parse_expr(scanner, depth) if scanner.accept(",") else None
    scanner.expect(")")
    return Fuzzy(field, query, max_edits, scanner.span_from(start))


def _bm25(scanner: Scanner, start: int, depth: int) -> Bm25:
    field, query = _two_arguments(scanner, depth)
    scanner.expect(")")
    return Bm25(field, query, scanner.span_from(start))


def _nearest(scanner: Scanner, start: int, depth: int) -> Nearest:
    scanner.expect("(")
    field = _access(scanner)
    scanner.expect(",")
    query = parse_expr(scanner, depth)
    scanner.expect(")")
    return Nearest(field, query, scanner.span_from(start))


def _rrf(scanner: Scanner, start: int, depth: int) -> Rrf:
    scanner.expect("(")
    left = _rank(scanner, depth)
    scanner.expect(",")
    right = _rank(scanner, depth)
    k = parse_expr(scanner, depth) if scanner.accept(",") else None
    scanner.expect(")")
    return Rrf(left, right, k, scanner.span_from(start))


def _rank(scanner: Scanner, depth: int) -> Nearest | Bm25:
    start = scanner.at
    if scanner.accept("nearest"):
        return _nearest(scanner, start, deeper(scanner, depth))
    scanner.expect("bm25")
    return _bm25(scanner, start, deeper(scanner, depth))


def _aggregate(function: str) -> Callable[[Scanner, int, int], Aggregate]:
    def parse(scanner: Scanner, start: int, depth: int) -> Aggregate:
        scanner.expect("(")
        argument = parse_expr(scanner, depth)
        scanner.expect(")")
        return Aggregate(function, argument, scanner.span_from(start))

    return parse


_CALLS: dict[str, Callable[[Scanner, int, int], Expr]] = {
    "now": _now,
    "nearest": _nearest,
    "search": _search,
    "fuzzy": _fuzzy,
    "match_text": _match_text,
    "bm25": _bm25,
    "rrf": _rrf,
    **{function: _aggregate(function) for function in ("count", "sum", "avg", "min", "max")},
    "datetime": _datetime,
    "date": _date,
}
