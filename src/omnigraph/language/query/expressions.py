"""Expressions and literals of the query language.

All values and conditions use the same grammar. Precedence, loosest first: `or`, `and`, `not`, one comparison, `+ -`, `* / %`,
unary `-`, then calls, property access, items of lists and parentheses.
A function name is always followed by `(`, so the word and the next character decide. Operator words are matched as whole words:
`order` does not begin with the operator `or`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NoReturn

from omnigraph.language.query import ast
from omnigraph.language.query.foreign import BLOCKS, NOT_BEFORE, foreign_function, negated_operator
from omnigraph.language.query.functions import AGGREGATES, FUNCTIONS
from omnigraph.language.scanner import BLANKS, Mismatch, Scanner
from omnigraph.language.schema.numbers import to_float
from omnigraph.language.source import Span, did_you_mean, nearest_name

#: The nesting limit: deep enough for any real query, shallow enough for every recursive walk over the tree.
MAX_NESTING = 64
#: How many operators of one precedence may follow each other; each one makes the tree one level deeper.
MAX_CHAIN = 64
MAX_I64 = 2**63 - 1

_WORD = re.compile(r"[a-z_][A-Za-z0-9_]*")
_VARIABLE = re.compile(r"\$[a-z_][A-Za-z0-9_]*")
_FLOAT = re.compile(r"[0-9]+(?:\.[0-9]+(?:[eE][+-]?[0-9]+)?|[eE][+-]?[0-9]+)")
_DIGIT = re.compile(r"[0-9]")
_META = re.compile(r"@(?:id|type|src|dst)(?![A-Za-z0-9_])")
#: Fast path for long lists: numbers, and texts without escapes, each followed by a comma.
_PLAIN_ITEM = re.compile(r'(?P<number>-?[0-9]{1,18}+)(?=[ \t\r\n]*+,)|"(?P<text>[^"\\\n]*+)"(?=[ \t\r\n]*+,)')
_PLAIN_ITEMS = re.compile(r'(?:(?:-?[0-9]{1,18}+|"[^"\\\n]*+")[ \t\r\n]*+,[ \t\r\n]*+)++')
_OPERATOR_SYMBOL = re.compile(r">=|<=|!=|[><=+*/%-]")
_CASE = re.compile(rf"case(?![A-Za-z0-9_]){BLANKS}when(?![A-Za-z0-9_])")
_NOT_BEFORE = re.compile(rf"(?:{'|'.join(NOT_BEFORE)})(?![A-Za-z0-9_])(?!\s*[:(])")
#: The rest of a number in a notation of other languages (`1_000`, `0x10`), after its first digits.
_OTHER_NUMBER = re.compile(r"(?:_[0-9][0-9_]*|[xX][0-9A-Fa-f]+|[bBoO][0-7]+)(?![A-Za-z0-9_])(?!\s*[:(])")

#: The aggregates that may be computed over the matches of a block.
BLOCK_AGGREGATES = ("sum", "min", "max", "avg", "count")

#: The operators that are words.
OPERATOR_WORDS = ("and", "or", "in", "is", "not", "contains", "starts_with", "ends_with")
# A word before a colon is not an operator but the next property; properties may be listed without commas.
_OPERATOR_WORD = re.compile(rf"(?:{'|'.join(OPERATOR_WORDS)})(?![A-Za-z0-9_])(?!{BLANKS}:)")


def deeper(scanner: Scanner, depth: int) -> int:
    """The next nesting depth; raises ParseError when there are too many levels."""
    if depth >= MAX_NESTING:
        scanner.source.grammar_error(
            f"nested too deeply, at most {MAX_NESTING} levels are allowed", Span(scanner.at, scanner.at + 1)
        )
    return depth + 1


def parse_variable(scanner: Scanner) -> ast.Variable:
    start = scanner.at
    text = scanner.take_pattern(_VARIABLE, "a variable")
    return ast.Variable(text[1:], scanner.span_from(start))


def parse_integer(scanner: Scanner, largest: int, what: str) -> int:
    """An integer of at most `largest`; `what` names it in the error message."""
    start = scanner.at
    digits = scanner.take_digits().lstrip("0") or "0"
    # The length is checked first, because Python refuses to convert thousands of digits.
    if len(digits) > len(str(largest)) or int(digits) > largest:
        scanner.source.semantic_error(f"{what} is too large, the largest is {largest}", scanner.span_from(start))
    return int(digits)


def word(scanner: Scanner, text: str) -> bool:
    """Take this word if it comes next as a whole word; returns whether it did."""
    return scanner.peek(_WORD) == text and scanner.accept(text)


def expect_word(scanner: Scanner, text: str) -> None:
    """Take this word; raises Mismatch when it does not come next."""
    if not word(scanner, text):
        scanner.fail(f"`{text}`")


#: The precedence levels of operators, loosest first.
_OR, _AND, _NOT, _COMPARISON, _SUM, _PRODUCT = range(6)
_SYMBOL_LEVELS = {"+": _SUM, "-": _SUM, "*": _PRODUCT, "/": _PRODUCT, "%": _PRODUCT}
_WORD_LEVELS = {"or": _OR, "and": _AND}


def parse_expr(scanner: Scanner, depth: int = 0, least: int = _OR) -> ast.Expr:
    """Parse an expression of operators with at least the precedence `least`."""
    start = scanner.at
    # `not` binds looser than a comparison, so after `not …` no operator of comparison level or tighter may follow.
    compared = scanner.peek(_WORD) == "not"
    left = _prefixed(scanner, depth)
    for _ in range(MAX_CHAIN):
        operator, level = _operator(scanner)
        if operator is None or level < least or (compared and level >= _COMPARISON):
            return left
        if level == _COMPARISON:
            compared = True
            found = _compared(scanner, start, left, operator, depth)
            if found is None:
                return left
            left = found
        elif level in (_OR, _AND):
            left = _joined(scanner, start, left, operator, depth)
        else:
            scanner.expect(operator)
            left = ast.Arithmetic(left, operator, parse_expr(scanner, depth, level + 1), scanner.span_from(start))
    return scanner.source.grammar_error(
        f"at most {MAX_CHAIN} operators may follow each other; use parentheses or `join`",
        Span(scanner.at, scanner.at + 1),
    )


def _operator(scanner: Scanner) -> tuple[str | None, int]:
    """The next operator, without taking it, and its precedence; (None, _OR) when no operator comes next."""
    symbol = scanner.peek(_OPERATOR_SYMBOL)
    if symbol is not None:
        return symbol, _SYMBOL_LEVELS.get(symbol, _COMPARISON)
    name = scanner.peek(_OPERATOR_WORD)
    return (None, _OR) if name is None else (name, _WORD_LEVELS.get(name, _COMPARISON))


def _joined(scanner: Scanner, start: int, left: ast.Expr, operator: str, depth: int) -> ast.Logical:
    operands = [left]
    level = _WORD_LEVELS[operator]
    while word(scanner, operator):
        operands.append(parse_expr(scanner, depth, level + 1))
    return ast.Logical(operator, tuple(operands), scanner.span_from(start))


def _compared(scanner: Scanner, start: int, left: ast.Expr, operator: str, depth: int) -> ast.Expr | None:
    """A comparison whose left side is parsed already; None when the word begins the next clause (`not { … }`)."""
    before = scanner.at
    scanner.expect(operator)
    if operator == "is":
        negated = word(scanner, "not")
        expect_word(scanner, "null")
        return ast.IsNull(left, negated, scanner.span_from(start))
    if operator == "not":
        if not word(scanner, "in"):
            _refuse_negated_operator(scanner, left)
            scanner.at = before
            return None
        operator = "not in"
    return ast.Comparison(left, operator, parse_expr(scanner, depth, _SUM), scanner.span_from(start))


def _refuse_negated_operator(scanner: Scanner, left: ast.Expr) -> None:
    """Raise the error for `$p.name not contains "x"`, with which no valid text begins."""
    found = scanner.peek(_NOT_BEFORE)
    if found is None:
        return
    shown = scanner.source.text[left.span.start : left.span.end]
    scanner.source.grammar_error(
        f"`not {found}` is no operator; {negated_operator(found, shown if len(shown) <= 40 else '…')}",
        Span(scanner.at, scanner.at + len(found)),
    )


def _prefixed(scanner: Scanner, depth: int) -> ast.Expr:
    """A primary expression with the signs and the `not` before it."""
    start = scanner.at
    if scanner.looking_at("-"):
        scanner.expect("-")
        if scanner.peek(_DIGIT):
            return _number(scanner, start, negative=True)
        return ast.Negative(_prefixed(scanner, deeper(scanner, depth)), scanner.span_from(start))
    if scanner.peek(_WORD) == "not":
        scanner.expect("not")
        return ast.Not(parse_expr(scanner, deeper(scanner, depth), _NOT), scanner.span_from(start))
    return _postfix(scanner, depth)


def _postfix(scanner: Scanner, depth: int) -> ast.Expr:
    start = scanner.at
    expr = _primary(scanner, depth)
    for _ in range(MAX_CHAIN):
        # The `[` must touch the value: after a blank it may be a list, the next value of a return block without commas.
        if not scanner.touches("["):
            return expr
        scanner.expect("[")
        index = parse_expr(scanner, deeper(scanner, depth))
        scanner.expect("]")
        expr = ast.Item(expr, index, scanner.span_from(start))
    return expr


def _primary(scanner: Scanner, depth: int) -> ast.Expr:
    start = scanner.at
    if scanner.looking_at("$"):
        return _access_or_variable(scanner)
    if scanner.looking_at("("):
        scanner.expect("(")
        inner = parse_expr(scanner, deeper(scanner, depth))
        scanner.expect(")")
        return inner
    if scanner.peek(_META):
        return ast.Ident(scanner.take_pattern(_META, "a name"), scanner.span_from(start))
    name = scanner.peek(_WORD)
    if name is None or name in ("true", "false", "null"):
        return _literal(scanner, depth, "an expression")
    if scanner.peek(_CASE):
        return _case(scanner, start, deeper(scanner, depth))
    scanner.take_ident()
    if name in ("exists", "count") and scanner.looking_at("{"):
        return ast.BlockCall(name, None, _block(scanner, depth), scanner.span_from(start))
    if not scanner.looking_at("("):
        return ast.Ident(name, scanner.span_from(start))
    call = _CALLS.get(name)
    if call is not None:
        found = call(scanner, start, deeper(scanner, depth))
        if isinstance(found, ast.Aggregate) and scanner.looking_at("{"):
            return _block_aggregate(scanner, found, start, depth)
        return found
    if name not in FUNCTIONS:
        _unknown_function(scanner, name, start)
    return _function(scanner, name, start, deeper(scanner, depth))


def _block(scanner: Scanner, depth: int) -> tuple[ast.Clause, ...]:
    """The `{ … }` after `exists`, `count` or an aggregate."""
    # Clauses contain expressions and expressions contain clauses, so the depth counts both.
    from omnigraph.language.query.reads import parse_clauses

    return parse_clauses(scanner, deeper(scanner, depth))


def _block_aggregate(scanner: Scanner, call: ast.Aggregate, start: int, depth: int) -> ast.BlockCall:
    if call.function not in BLOCK_AGGREGATES:
        scanner.source.grammar_error(f"`{call.function}` takes no block; {BLOCKS}", call.span)
    if call.distinct:
        scanner.source.grammar_error(f"`{call.function}` of a block takes no `distinct`", call.span)
    return ast.BlockCall(call.function, call.argument, _block(scanner, depth), scanner.span_from(start))


def _unknown_function(scanner: Scanner, name: str, start: int) -> NoReturn:
    known = (*_CALLS, *FUNCTIONS)
    hint = foreign_function(name)
    suggestion = nearest_name(name, known) if hint is None else None
    scanner.source.grammar_error(
        f"unknown function `{name}`{did_you_mean(suggestion) if hint is None else f'; {hint}'}",
        Span(start, start + len(name)),
        expected=known,
        suggestion=suggestion,
    )


# --- variables and literals -------------------------------------------------------------------------------------------


def _access_or_variable(scanner: Scanner) -> ast.Access | ast.Variable:
    start = scanner.at
    variable = parse_variable(scanner)
    if not scanner.looking_at(".") or scanner.looking_at(".*"):
        return variable
    return _property_of(scanner, variable, start)


def parse_access(scanner: Scanner) -> ast.Access:
    """`$variable.property`."""
    start = scanner.at
    return _property_of(scanner, parse_variable(scanner), start)


def _property_of(scanner: Scanner, variable: ast.Variable, start: int) -> ast.Access:
    scanner.expect(".")
    name = scanner.take_pattern(_META, "a name") if scanner.peek(_META) else scanner.take_ident()
    return ast.Access(variable.name, name, scanner.span_from(start))


def _literal(scanner: Scanner, depth: int, wanted: str) -> ast.Expr:
    start = scanner.at
    if scanner.looking_at("["):
        return _list(scanner, start, deeper(scanner, depth))
    if scanner.looking_at('"'):
        return ast.StringLit(scanner.take_string(), scanner.span_from(start))
    if scanner.peek(_DIGIT):
        return _number(scanner, start, negative=False)
    name = scanner.peek(_WORD)
    if name not in ("true", "false", "null"):
        scanner.fail(wanted)
    scanner.expect(name)
    span = scanner.span_from(start)
    return ast.NullLit(span) if name == "null" else ast.BoolLit(name == "true", span)


def _list(scanner: Scanner, start: int, depth: int) -> ast.ListLit | ast.Call:
    """A list literal, or a call of `list` when an item is not a literal."""
    scanner.expect("[")
    items: list[ast.Expr] = [*_plain_items(scanner)]
    if items or not scanner.looking_at("]"):
        items.append(parse_expr(scanner, depth))
        while scanner.accept(","):
            items.append(parse_expr(scanner, depth))
    scanner.expect("]")
    span = scanner.span_from(start)
    literals = [item for item in items if isinstance(item, ast.Literal)]
    return ast.ListLit(tuple(literals), span) if len(literals) == len(items) else ast.Call("list", tuple(items), span)


def _plain_items(scanner: Scanner) -> Iterator[ast.IntLit | ast.StringLit]:
    """The first items of a list while they are plain and followed by another item: a fast path for long lists."""
    if not scanner.peek(_PLAIN_ITEMS):
        return
    start = scanner.at
    for found in _PLAIN_ITEM.finditer(scanner.take_pattern(_PLAIN_ITEMS, "a value")):
        span = Span(start + found.start(), start + found.end())
        number = found["number"]
        yield ast.StringLit(found["text"], span) if number is None else ast.IntLit(int(number), span)


def _number(scanner: Scanner, start: int, *, negative: bool) -> ast.IntLit | ast.FloatLit:
    sign = "-" if negative else ""
    if scanner.peek(_FLOAT):
        text = sign + scanner.take_pattern(_FLOAT, "a number")
        span = scanner.span_from(start)
        to_float(text, scanner.source, span)
        return ast.FloatLit(text, span)
    value = parse_integer(scanner, MAX_I64 + negative, "an integer literal")
    _refuse_other_number(scanner, start, value)
    return ast.IntLit(-value if negative else value, scanner.span_from(start))


def _refuse_other_number(scanner: Scanner, start: int, value: int) -> None:
    """Raise the error for `1_000` and `0x10`; no valid text has such a word directly after a number."""
    rest = scanner.peek(_OTHER_NUMBER)
    if rest is None or not scanner.touches(rest) or not (rest.startswith("_") or value == 0):
        return
    way = "without `_`" if rest.startswith("_") else "in decimal digits"
    scanner.source.grammar_error(
        f"`{scanner.source.text[start : scanner.at]}{rest}` is no number; numbers are written {way}",
        Span(start, scanner.at + len(rest)),
    )


# --- calls: each function starts at the `(` ---------------------------------------------------------------------------


def _function(scanner: Scanner, name: str, start: int, depth: int) -> ast.Call:
    scanner.expect("(")
    arguments: list[ast.Expr] = []
    if not scanner.looking_at(")"):
        arguments.append(parse_expr(scanner, depth))
        while scanner.accept(","):
            arguments.append(parse_expr(scanner, depth))
    scanner.expect(")")
    return ast.Call(name, tuple(arguments), scanner.span_from(start))


def _case(scanner: Scanner, start: int, depth: int) -> ast.Case:
    expect_word(scanner, "case")
    branches: list[ast.When] = []
    while word(scanner, "when"):
        condition = parse_expr(scanner, depth)
        expect_word(scanner, "then")
        branches.append(ast.When(condition, parse_expr(scanner, depth)))
    otherwise = parse_expr(scanner, depth) if word(scanner, "else") else None
    expect_word(scanner, "end")
    return ast.Case(tuple(branches), otherwise, scanner.span_from(start))


def _now(scanner: Scanner, start: int, depth: int) -> ast.Now:
    scanner.expect("(")
    scanner.expect(")")
    return ast.Now(scanner.span_from(start))


def _text_literal(
    name: str, literal: Callable[[str, Span], ast.Literal], *, function: bool
) -> Callable[[Scanner, int, int], ast.Expr]:
    """A parser of `name("…")`, a literal; with another argument it is a call if `function`, else a mismatch."""

    def parse(scanner: Scanner, start: int, depth: int) -> ast.Expr:
        before = scanner.at
        scanner.expect("(")
        if scanner.looking_at('"') or not function:
            text = scanner.take_string()
            if scanner.accept(")"):
                return literal(text, scanner.span_from(start))
        scanner.at = before
        if not function:
            raise Mismatch
        return _function(scanner, name, start, depth)

    return parse


def _two_arguments(scanner: Scanner, depth: int) -> tuple[ast.Expr, ast.Expr]:
    """Parse `( expr , expr`; the caller parses the rest."""
    scanner.expect("(")
    first = parse_expr(scanner, depth)
    scanner.expect(",")
    return first, parse_expr(scanner, depth)


def _search(scanner: Scanner, start: int, depth: int) -> ast.Search:
    field, query = _two_arguments(scanner, depth)
    scanner.expect(")")
    return ast.Search(field, query, scanner.span_from(start))


def _match_text(scanner: Scanner, start: int, depth: int) -> ast.MatchText:
    field, query = _two_arguments(scanner, depth)
    scanner.expect(")")
    return ast.MatchText(field, query, scanner.span_from(start))


def _fuzzy(scanner: Scanner, start: int, depth: int) -> ast.Fuzzy:
    field, query = _two_arguments(scanner, depth)
    max_edits = parse_expr(scanner, depth) if scanner.accept(",") else None
    scanner.expect(")")
    return ast.Fuzzy(field, query, max_edits, scanner.span_from(start))


def _bm25(scanner: Scanner, start: int, depth: int) -> ast.Bm25:
    field, query = _two_arguments(scanner, depth)
    scanner.expect(")")
    return ast.Bm25(field, query, scanner.span_from(start))


def _nearest(scanner: Scanner, start: int, depth: int) -> ast.Nearest:
    scanner.expect("(")
    field = parse_access(scanner)
    scanner.expect(",")
    query = parse_expr(scanner, depth)
    scanner.expect(")")
    return ast.Nearest(field, query, scanner.span_from(start))


def _rrf(scanner: Scanner, start: int, depth: int) -> ast.Rrf:
    scanner.expect("(")
    left = _rank(scanner, depth)
    scanner.expect(",")
    right = _rank(scanner, depth)
    k = parse_expr(scanner, depth) if scanner.accept(",") else None
    scanner.expect(")")
    return ast.Rrf(left, right, k, scanner.span_from(start))


def _rank(scanner: Scanner, depth: int) -> ast.Nearest | ast.Bm25:
    start = scanner.at
    if scanner.accept("nearest"):
        return _nearest(scanner, start, deeper(scanner, depth))
    scanner.expect("bm25")
    return _bm25(scanner, start, deeper(scanner, depth))


def _aggregate(function: str) -> Callable[[Scanner, int, int], ast.Aggregate]:
    def parse(scanner: Scanner, start: int, depth: int) -> ast.Aggregate:
        scanner.expect("(")
        if function == "count" and scanner.accept("*"):
            scanner.expect(")")
            return ast.Aggregate(function, None, scanner.span_from(start))
        distinct = word(scanner, "distinct")
        argument = parse_expr(scanner, depth)
        fraction = parse_expr(scanner, depth) if function == "percentile" and scanner.accept(",") else None
        scanner.expect(")")
        return ast.Aggregate(function, argument, scanner.span_from(start), distinct, fraction)

    return parse


_CALLS: dict[str, Callable[[Scanner, int, int], ast.Expr]] = {
    "now": _now,
    "nearest": _nearest,
    "search": _search,
    "fuzzy": _fuzzy,
    "match_text": _match_text,
    "bm25": _bm25,
    "rrf": _rrf,
    **{function: _aggregate(function) for function in AGGREGATES},
    "datetime": _text_literal("datetime", ast.DateTimeLit, function=True),
    "date": _text_literal("date", ast.DateLit, function=True),
    "duration": _text_literal("duration", ast.DurationLit, function=False),
}
