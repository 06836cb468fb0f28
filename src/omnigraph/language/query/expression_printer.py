"""Expressions as `.gq` text that parses back to the same tree, and the names of result columns.

What stands between brackets may be broken over lines; everything else stands on the line where it begins.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from omnigraph.language.layout import HARD, LINE, NOTHING, SOFT, Doc, Group, Mark, Nest, filled, flat, joined
from omnigraph.language.query.ast import (
    Access,
    Aggregate,
    Arithmetic,
    Binding,
    BlockCall,
    Bm25,
    BoolLit,
    Call,
    Case,
    Clause,
    Comparison,
    DateLit,
    DateTimeLit,
    DurationLit,
    Expr,
    FloatLit,
    Fuzzy,
    Ident,
    IntLit,
    IsNull,
    Item,
    ListLit,
    Logical,
    MatchText,
    Nearest,
    Negation,
    Negative,
    Not,
    Now,
    NullLit,
    Optional,
    PathMatch,
    Rrf,
    Search,
    StringLit,
    Traversal,
    Variable,
)
from omnigraph.language.source import Span
from omnigraph.language.written import NOTHING_WRITTEN, Written

_ESCAPES = str.maketrans({'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"})

#: How tightly each form holds its operands together; what is looser than its place asks for stands in parentheses.
_OR, _AND, _NOT, _COMPARISON, _SUM, _PRODUCT, _SIGN, _PRIMARY = range(8)


def quoted(text: str) -> str:
    """A text as a string literal of both languages."""
    return f'"{text.translate(_ESCAPES)}"'


def print_expr(expr: Expr) -> str:
    """One expression or literal, on one line."""
    return flat(ExprPrinter().doc(expr))


def column_name(expr: Expr) -> str:
    """The name of a result column without an alias: `$s.level` is `s.level`, `count($m)` is `count(m)`."""
    return flat(ExprPrinter(dollar="", string='"{}"'.format).doc(expr))


class ExprPrinter:
    """Expressions and clauses: how variables begin, how texts are quoted, and the text whose comments are kept."""

    def __init__(
        self, written: Written = NOTHING_WRITTEN, dollar: str = "$", string: Callable[[str], str] = quoted
    ) -> None:
        self._written = written
        self._dollar = dollar
        self._string = string

    def string(self, text: str) -> str:
        """A string literal; one that is written over several lines stays so."""
        return self._written.spelling(text) or self._string(text)

    def at(self, offset: int, doc: Doc, *, first: bool = False) -> Doc:
        """A document behind a line break that stood at this offset of the text."""
        return (Mark(offset, "first" if first else "keep"), doc) if self._written else doc

    def closing(self, offset: int, bracket: str) -> Doc:
        """A closing bracket behind a line break that stood at this offset of the text."""
        return (Mark(offset, "close"), bracket) if self._written else bracket

    def bracketed(self, opening: str, items: Sequence[tuple[int, Doc]], closing: tuple[int, str], edge: Doc) -> Doc:
        """Items with commas between brackets, on one line if they fit; each with the offset where it stood.

        `edge` is the line break inside of the brackets.
        """
        if not items:
            return (opening, closing[1])
        docs = [self.at(offset, doc, first=not number) for number, (offset, doc) in enumerate(items)]
        return Group((opening, Nest((edge, joined(docs, (",", LINE)))), edge, self.closing(*closing)))

    # --- clauses ------------------------------------------------------------------------------------------------------

    def clauses(self, clauses: Sequence[Clause], between: Doc) -> Doc:
        """Clauses, each with the line break `between` before it."""
        return tuple(
            (between, self.at(clause.span.start, self._clause(clause, between), first=not number))
            for number, clause in enumerate(clauses)
        )

    def block(self, word: str, clauses: Sequence[Clause], end: int, between: Doc) -> Doc:
        """`word { clauses }`; `end` is where the closing brace stood."""
        return (word, " {", Nest(self.clauses(clauses, between)), between, self.closing(end, "}"))

    def _clause(self, clause: Clause, between: Doc) -> Doc:
        match clause:
            case Negation() | Optional():
                word = "not" if isinstance(clause, Negation) else "optional"
                found = self.block(word, clause.clauses, clause.span.end - 1, between)
                return found if between is HARD else Group(found)
            case Binding():
                types = "|".join((clause.type_name, *clause.others))
                pairs = [(pair.span.start, self.pair(pair.property, pair.value)) for pair in clause.matches]
                end = clause.span.end - 1
                matches = (" ", self.bracketed("{", pairs, (end, "}"), LINE)) if pairs else NOTHING
                return (f"${clause.variable}: {types}", matches)
            case Traversal():
                return _traversal(clause)
            case PathMatch():
                weight = "" if clause.weight is None else f" by {print_expr(clause.weight)}"
                function = "all_shortest" if clause.every else "shortest"
                return f"${clause.variable} = {function}({_traversal(clause.traversal)}{weight})"
            case Comparison(left=Search() | Fuzzy() | MatchText() as call) if clause.right.span == clause.span:
                return self.doc(call)  # `= true` is not written
            case _:
                doc = self.doc(clause)
                # A sign would go on with the condition before this one.
                return ("(", doc, ")") if print_expr(clause).startswith("-") else doc

    def pair(self, name: str, value: Expr) -> Doc:
        """`name: value`."""
        return (f"{name}: ", self.doc(value))

    # --- operators ----------------------------------------------------------------------------------------------------

    def doc(self, expr: Expr, least: int = _OR) -> Doc:
        """The expression, in parentheses when it is looser than `least`."""
        tightness, doc = self._parts(expr)
        return doc if tightness >= least else Group(("(", Nest((SOFT, doc)), SOFT, ")"))

    def _parts(self, expr: Expr) -> tuple[int, Doc]:
        match expr:
            case Logical():
                own = _OR if expr.operator == "or" else _AND
                first, *others = ((operand.span.start, self.doc(operand, own + 1)) for operand in expr.operands)
                rest = tuple((LINE, self.at(start, (f"{expr.operator} ", operand))) for start, operand in others)
                return own, Group((first[1], Nest(rest)))
            case Not():
                return _NOT, ("not ", self.doc(expr.operand, _NOT))
            case Comparison():
                right = self.doc(expr.right, _SUM)
                return _COMPARISON, (self.doc(expr.left, _SUM), Group(Nest((LINE, f"{expr.operator} ", right))))
            case IsNull():
                return _COMPARISON, (self.doc(expr.operand, _SUM), f" is {'not ' if expr.negated else ''}null")
            case Arithmetic():
                own = _SUM if expr.operator in "+-" else _PRODUCT
                right = self.doc(expr.right, own + 1)
                return own, (self.doc(expr.left, own), Group(Nest((LINE, f"{expr.operator} ", right))))
            case Negative():
                operand = self.doc(expr.operand, _SIGN)
                # A sign in front of digits would be part of the literal.
                return _SIGN, ("-", ("(", operand, ")") if flat(operand)[:1].isdigit() else operand)
            case IntLit():
                return _SIGN if expr.value < 0 else _PRIMARY, str(expr.value)
            case FloatLit():
                return _SIGN if expr.text.startswith("-") else _PRIMARY, expr.text
            case _:
                return _PRIMARY, self._primary(expr)

    # --- primaries ----------------------------------------------------------------------------------------------------

    def _primary(self, expr: Expr) -> Doc:
        match expr:
            case Now():
                return "now()"
            case Variable():
                return f"{self._dollar}{expr.name}"
            case Access():
                return f"{self._dollar}{expr.variable}.{expr.property}"
            case Ident():
                return expr.name
            case Aggregate():
                return self._aggregate(expr)
            case BlockCall():
                argument = NOTHING if expr.argument is None else ("(", self.doc(expr.argument), ")")
                return (expr.function, argument, Group(self.block("", expr.clauses, expr.span.end - 1, LINE)))
            case Call(function="list"):
                items = [(item.span.start, self.doc(item)) for item in expr.arguments]
                return self.bracketed("[", items, (expr.span.end - 1, "]"), SOFT)
            case Call():
                return self._call(expr.function, expr.arguments, expr.span)
            case Item():
                return (self.doc(expr.items, _PRIMARY), "[", self.doc(expr.index), "]")
            case Case():
                return self._case(expr)
            case Search():
                return self._call("search", (expr.field, expr.query), expr.span)
            case MatchText():
                return self._call("match_text", (expr.field, expr.query), expr.span)
            case Fuzzy():
                return self._call("fuzzy", (expr.field, expr.query, expr.max_edits), expr.span)
            case Bm25():
                return self._call("bm25", (expr.field, expr.query), expr.span)
            case Nearest():
                return self._call("nearest", (expr.field, expr.query), expr.span)
            case Rrf():
                return self._call("rrf", (expr.left, expr.right, expr.k), expr.span)
            case StringLit():
                return self.string(expr.value)
            case DateLit():
                return f"date({self._string(expr.text)})"
            case DateTimeLit():
                return f"datetime({self._string(expr.text)})"
            case DurationLit():
                return f"duration({self._string(expr.text)})"
            case BoolLit():
                return "true" if expr.value else "false"
            case NullLit():
                return "null"
            case ListLit():
                literals = filled([self.at(item.span.start, self.doc(item)) for item in expr.items])
                return Group(("[", Nest((SOFT, literals)), SOFT, self.closing(expr.span.end - 1, "]")))
            case _:
                raise AssertionError(f"{type(expr).__name__} has a precedence of its own")

    def _call(self, function: str, arguments: Iterable[Expr | None], span: Span) -> Doc:
        items = [(argument.span.start, self.doc(argument)) for argument in arguments if argument is not None]
        return self.bracketed(f"{function}(", items, (span.end - 1, ")"), SOFT)

    def _aggregate(self, expr: Aggregate) -> Doc:
        if expr.argument is None:
            return f"{expr.function}(*)"
        distinct = "distinct " if expr.distinct else ""
        argument = (expr.argument.span.start, (distinct, self.doc(expr.argument)))
        fraction = () if expr.fraction is None else ((expr.fraction.span.start, self.doc(expr.fraction)),)
        return self.bracketed(f"{expr.function}(", (argument, *fraction), (expr.span.end - 1, ")"), SOFT)

    def _case(self, expr: Case) -> Doc:
        # No comment is put between `case` and its first `when`: they are read as one.
        branches: list[Doc] = []
        for when in expr.branches:
            doc: Doc = ("when ", self.doc(when.condition), " then ", self.doc(when.value))
            branches.append((LINE, self.at(when.condition.span.start, doc) if branches else doc))
        if expr.otherwise is not None:
            branches.append((LINE, self.at(expr.otherwise.span.start, ("else ", self.doc(expr.otherwise)))))
        return Group(("case", Nest(tuple(branches)), LINE, self.closing(expr.span.end - len("end"), "end")))


def _traversal(clause: Traversal) -> str:
    words = "|".join((clause.edge_word, *clause.others))
    edge = f"<{words}>" if clause.undirected else words
    binding = f"${clause.edge_variable}:" if clause.edge_variable is not None else ""
    most = "" if clause.max_hops is None else clause.max_hops
    bounds = f"{{{clause.min_hops},{most}}}" if clause.has_bounds else ""
    return f"${clause.source} {binding}{edge}{bounds} ${clause.target}"
