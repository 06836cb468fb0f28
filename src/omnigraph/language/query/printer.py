"""Printing a query as `.gq` text that parses to the same tree; given the original text, its comments are kept."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from omnigraph.language.layout import HARD, LINE, NOTHING, SOFT, Doc, Group, Mark, Nest, filled, flat, joined, render
from omnigraph.language.query import ast
from omnigraph.language.source import Span
from omnigraph.language.written import NOTHING_WRITTEN, Written

#: The beginnings of clauses that would be parsed differently without parentheses.
_READS_ON = re.compile(r"-|\$[a-z_][A-Za-z0-9_]* (?:contains|starts_with|ends_with) ")
_ESCAPES = str.maketrans({'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"})

#: The precedence levels, loosest first; an expression looser than its place requires is put in parentheses.
_OR, _AND, _NOT, _COMPARISON, _SUM, _PRODUCT, _SIGN, _PRIMARY = range(8)


def quoted(text: str) -> str:
    """A text as a string literal of both languages."""
    return f'"{text.translate(_ESCAPES)}"'


def print_expr(expr: ast.Expr) -> str:
    """One expression or literal, on one line."""
    return flat(ExprPrinter().doc(expr))


def column_name(expr: ast.Expr) -> str:
    """The name of a result column without an alias: `$s.level` is `s.level`, `count($m)` is `count(m)`."""
    return flat(ExprPrinter(dollar="", string='"{}"'.format).doc(expr))


class ExprPrinter:
    """A printer of expressions and clauses; options: the sign of variables, the quoting of texts, the original text."""

    def __init__(
        self, written: Written = NOTHING_WRITTEN, dollar: str = "$", string: Callable[[str], str] = quoted
    ) -> None:
        self._written = written
        self._dollar = dollar
        self._string = string

    def string(self, text: str) -> str:
        """A string literal; a literal that was written over several lines keeps its spelling."""
        return self._written.spelling(text) or self._string(text)

    def at(self, offset: int, doc: Doc, *, first: bool = False) -> Doc:
        """A document at the beginning of a line; `offset` is its place in the original text."""
        return (Mark(offset, "first" if first else "keep"), doc) if self._written else doc

    def closing(self, offset: int, bracket: str) -> Doc:
        """A closing bracket at the beginning of a line; `offset` is its place in the original text."""
        return (Mark(offset, "close"), bracket) if self._written else bracket

    def bracketed(self, opening: str, items: Sequence[tuple[int, Doc]], closing: tuple[int, str], edge: Doc) -> Doc:
        """Items separated by commas between brackets, on one line if they fit; each with its offset in the original text.
        `edge` is the line break directly inside of the brackets.
        """
        if not items:
            return (opening, closing[1])
        docs = [self.at(offset, doc, first=not number) for number, (offset, doc) in enumerate(items)]
        return Group((opening, Nest((edge, joined(docs, (",", LINE)))), edge, self.closing(*closing)))

    # --- clauses ------------------------------------------------------------------------------------------------------

    def clauses(self, clauses: Sequence[ast.Clause], between: Doc) -> Doc:
        """Clauses, each with the line break `between` before it."""
        return tuple(
            (between, self.at(clause.span.start, self._clause(clause, between), first=not number))
            for number, clause in enumerate(clauses)
        )

    def block(self, word: str, clauses: Sequence[ast.Clause], end: int, between: Doc) -> Doc:
        """`word { clauses }`; `end` is the offset of the closing brace in the original text."""
        return (word, " {", Nest(self.clauses(clauses, between)), between, self.closing(end, "}"))

    def _clause(self, clause: ast.Clause, between: Doc) -> Doc:
        match clause:
            case ast.Negation() | ast.Optional():
                word = "not" if isinstance(clause, ast.Negation) else "optional"
                found = self.block(word, clause.clauses, clause.span.end - 1, between)
                return found if between is HARD else Group(found)
            case ast.Binding():
                types = "|".join((clause.type_name, *clause.others))
                pairs = [(pair.span.start, self.pair(pair.property, pair.value)) for pair in clause.matches]
                end = clause.span.end - 1
                matches = (" ", self.bracketed("{", pairs, (end, "}"), LINE)) if pairs else NOTHING
                return (f"${clause.variable}: {types}", matches)
            case ast.Traversal():
                return _traversal(clause)
            case ast.PathMatch():
                weight = "" if clause.weight is None else f" by {print_expr(clause.weight)}"
                function = "all_shortest" if clause.every else "shortest"
                return f"${clause.variable} = {function}({_traversal(clause.traversal)}{weight})"
            case ast.Comparison(left=ast.Search() | ast.Fuzzy() | ast.MatchText() as call) if (
                clause.right.span == clause.span
            ):
                return self.doc(call)  # `= true` is not written
            case _:
                doc = self.doc(clause)
                # A leading `-` would continue the previous condition, and a variable before a word would begin a traversal.
                return ("(", doc, ")") if _READS_ON.match(print_expr(clause)) else doc

    def pair(self, name: str, value: ast.Expr) -> Doc:
        """`name: value`."""
        return (f"{name}: ", self.doc(value))

    # --- operators ----------------------------------------------------------------------------------------------------

    def doc(self, expr: ast.Expr, least: int = _OR) -> Doc:
        """The expression, in parentheses when its precedence is looser than `least`."""
        tightness, doc = self._parts(expr)
        return doc if tightness >= least else Group(("(", Nest((SOFT, doc)), SOFT, ")"))

    def _parts(self, expr: ast.Expr) -> tuple[int, Doc]:
        match expr:
            case ast.Logical():
                own = _OR if expr.operator == "or" else _AND
                first, *others = ((operand.span.start, self.doc(operand, own + 1)) for operand in expr.operands)
                rest = tuple((LINE, self.at(start, (f"{expr.operator} ", operand))) for start, operand in others)
                return own, Group((first[1], Nest(rest)))
            case ast.Not():
                return _NOT, ("not ", self.doc(expr.operand, _NOT))
            case ast.Comparison():
                right = self.doc(expr.right, _SUM)
                return _COMPARISON, (self.doc(expr.left, _SUM), Group(Nest((LINE, f"{expr.operator} ", right))))
            case ast.IsNull():
                return _COMPARISON, (self.doc(expr.operand, _SUM), f" is {'not ' if expr.negated else ''}null")
            case ast.Arithmetic():
                own = _SUM if expr.operator in "+-" else _PRODUCT
                right = self.doc(expr.right, own + 1)
                return own, (self.doc(expr.left, own), Group(Nest((LINE, f"{expr.operator} ", right))))
            case ast.Negative():
                operand = self.doc(expr.operand, _SIGN)
                # A sign directly before digits would become part of the literal.
                return _SIGN, ("-", ("(", operand, ")") if flat(operand)[:1].isdigit() else operand)
            case ast.IntLit():
                return _SIGN if expr.value < 0 else _PRIMARY, str(expr.value)
            case ast.FloatLit():
                return _SIGN if expr.text.startswith("-") else _PRIMARY, expr.text
            case _:
                return _PRIMARY, self._primary(expr)

    # --- primaries ----------------------------------------------------------------------------------------------------

    def _primary(self, expr: ast.Expr) -> Doc:
        match expr:
            case ast.Now():
                return "now()"
            case ast.Variable():
                return f"{self._dollar}{expr.name}"
            case ast.Access():
                return f"{self._dollar}{expr.variable}.{expr.property}"
            case ast.Ident():
                return expr.name
            case ast.Aggregate():
                return self._aggregate(expr)
            case ast.BlockCall():
                argument = NOTHING if expr.argument is None else ("(", self.doc(expr.argument), ")")
                return (expr.function, argument, Group(self.block("", expr.clauses, expr.span.end - 1, LINE)))
            case ast.Call(function="list"):
                items = [(item.span.start, self.doc(item)) for item in expr.arguments]
                return self.bracketed("[", items, (expr.span.end - 1, "]"), SOFT)
            case ast.Call():
                return self._call(expr.function, expr.arguments, expr.span)
            case ast.Item():
                return (self.doc(expr.items, _PRIMARY), "[", self.doc(expr.index), "]")
            case ast.Case():
                return self._case(expr)
            case ast.Search():
                return self._call("search", (expr.field, expr.query), expr.span)
            case ast.MatchText():
                return self._call("match_text", (expr.field, expr.query), expr.span)
            case ast.Fuzzy():
                return self._call("fuzzy", (expr.field, expr.query, expr.max_edits), expr.span)
            case ast.Bm25():
                return self._call("bm25", (expr.field, expr.query), expr.span)
            case ast.Nearest():
                return self._call("nearest", (expr.field, expr.query), expr.span)
            case ast.Rrf():
                return self._call("rrf", (expr.left, expr.right, expr.k), expr.span)
            case ast.StringLit():
                return self.string(expr.value)
            case ast.DateLit():
                return f"date({self._string(expr.text)})"
            case ast.DateTimeLit():
                return f"datetime({self._string(expr.text)})"
            case ast.DurationLit():
                return f"duration({self._string(expr.text)})"
            case ast.BoolLit():
                return "true" if expr.value else "false"
            case ast.NullLit():
                return "null"
            case ast.ListLit():
                literals = filled([self.at(item.span.start, self.doc(item)) for item in expr.items])
                return Group(("[", Nest((SOFT, literals)), SOFT, self.closing(expr.span.end - 1, "]")))
            case _:
                raise AssertionError(f"{type(expr).__name__} has a precedence of its own")

    def _call(self, function: str, arguments: Iterable[ast.Expr | None], span: Span) -> Doc:
        items = [(argument.span.start, self.doc(argument)) for argument in arguments if argument is not None]
        return self.bracketed(f"{function}(", items, (span.end - 1, ")"), SOFT)

    def _aggregate(self, expr: ast.Aggregate) -> Doc:
        if expr.argument is None:
            return f"{expr.function}(*)"
        distinct = "distinct " if expr.distinct else ""
        argument = (expr.argument.span.start, (distinct, self.doc(expr.argument)))
        fraction = () if expr.fraction is None else ((expr.fraction.span.start, self.doc(expr.fraction)),)
        return self.bracketed(f"{expr.function}(", (argument, *fraction), (expr.span.end - 1, ")"), SOFT)

    def _case(self, expr: ast.Case) -> Doc:
        # No comment is put between `case` and its first `when`, because the parser reads them as one token.
        branches: list[Doc] = []
        for when in expr.branches:
            doc: Doc = ("when ", self.doc(when.condition), " then ", self.doc(when.value))
            branches.append((LINE, self.at(when.condition.span.start, doc) if branches else doc))
        if expr.otherwise is not None:
            branches.append((LINE, self.at(expr.otherwise.span.start, ("else ", self.doc(expr.otherwise)))))
        return Group(("case", Nest(tuple(branches)), LINE, self.closing(expr.span.end - len("end"), "end")))


def _traversal(clause: ast.Traversal) -> str:
    words = "|".join((clause.edge_word, *clause.others))
    edge = f"<{words}>" if clause.undirected else words
    binding = f"${clause.edge_variable}:" if clause.edge_variable is not None else ""
    most = "" if clause.max_hops is None else clause.max_hops
    bounds = f"{{{clause.min_hops},{most}}}" if clause.has_bounds else ""
    return f"${clause.source} {binding}{edge}{bounds} ${clause.target}"


__all__ = ["column_name", "print_expr", "print_query", "print_query_file", "print_statement"]


def print_query_file(file: ast.QueryFile, written: Written = NOTHING_WRITTEN) -> str:
    """All queries of a file, with an empty line between them, and with the comments of the original text."""
    printer = _Printer(written)
    queries = ((Mark(query.span.start, "always"), printer.query(query), HARD) for query in file.queries)
    return render((*queries, Mark(len(file.source.text)) if written else NOTHING), written)


def print_query(query: ast.Query) -> str:
    """One query, with one clause, projection or assignment per line; a query without a name prints as its body only."""
    return render(_Printer(NOTHING_WRITTEN).query(query), NOTHING_WRITTEN)


def print_statement(statement: ast.Statement) -> str:
    """One statement of a mutation."""
    return render(_Printer(NOTHING_WRITTEN).statement(statement), NOTHING_WRITTEN).removesuffix("\n")


class _Printer:
    """A printer of queries, reads and statements that keeps the comments of a text. Generators yield documents line by line."""

    def __init__(self, written: Written) -> None:
        self._written = written
        self._exprs = ExprPrinter(written)

    def query(self, query: ast.Query) -> Doc:
        body = joined(self._body(query.body), HARD)
        if not query.name:
            return body
        params = [(param.span.start, f"${param.name}: {param.type}") for param in query.params]
        end = self._written.next(query.params[-1].span.end) if params else 0
        head: list[Doc] = [self._exprs.bracketed(f"query {query.name}(", params, (end, ")"), SOFT)]
        for name, text in (("description", query.description), ("instruction", query.instruction)):
            if text is not None:
                head.append(Nest((HARD, f"@{name}({self._exprs.string(text)})")))
        return (*head, " {", Nest((HARD, body)), HARD, self._exprs.closing(query.span.end - 1, "}"))

    # --- places in the text -------------------------------------------------------------------------------------------

    def _after(self, offset: int) -> int:
        """The offset in the original text of the token after an item; 0 without an original text."""
        return self._written.after(offset) if self._written else 0

    def _at(self, offset: int, word: str, doc: Doc, *, first: bool = False) -> Doc:
        """A document that begins with `word`, whose place in the original text is the last such word before `offset`."""
        return self._exprs.at(self._written.before(offset, word), doc, first=first) if self._written else doc

    # --- reads --------------------------------------------------------------------------------------------------------

    def _body(self, body: ast.Read | ast.Union | ast.Mutation) -> Iterator[Doc]:
        match body:
            case ast.Read():
                yield from self._read(body, first=True)
            case ast.Union():
                yield from self._body(body.left)
                keyword = f"union {'all ' if body.keeps_repeats else ''}{{"
                right = joined(self._read(body.right, first=True), HARD)
                begin = _first_part(body.right).clauses[0].span.start
                yield self._at(begin, "union", (keyword, Nest((HARD, right)), HARD, "}"))
                yield from self._order_and_bounds(body, None)
            case ast.Mutation():
                for number, statement in enumerate(body.statements):
                    yield self._marked(statement, first=not number)

    def _read(self, read: ast.Read, *, first: bool) -> Iterator[Doc]:
        if read.before is not None:
            yield from self._part(read.before, "with", "where", first=first)
        yield from self._part(read, "return", "having", first=first and read.before is None)

    def _part(self, read: ast.Read, results: str, condition: str, *, first: bool) -> Iterator[Doc]:
        """One match block and its results: a `with` or a `return`."""
        if results == "with" and read.before is not None:
            yield from self._part(read.before, "with", "where", first=first)
            first = False
        if read.clauses:
            yield self._match(read.clauses, first=first)
        items = [
            self._exprs.at(item.span.start, self._projection(item), first=item is read.projections[0])
            for item in read.projections
        ]
        end = self._after(read.projections[-1].span.end)
        keyword = f"{results} {'distinct ' if read.distinct else ''}{{"
        block = (keyword, Nest((HARD, joined(items, (",", HARD)))), HARD, self._exprs.closing(end, "}"))
        yield self._at(read.projections[0].span.start, results, block)
        if read.having is not None:
            having = (f"{condition} ", Nest(self._exprs.doc(read.having)))
            yield self._at(read.having.span.start, condition, having)
            end = read.having.span.end - 1
        yield from self._order_and_bounds(read, end)

    def _match(self, clauses: Sequence[ast.Clause], *, first: bool) -> Doc:
        block = self._exprs.block("match", clauses, self._after(clauses[-1].span.end), HARD)
        return self._at(clauses[0].span.start, "match", block, first=first)

    def _order_and_bounds(self, read: ast.Read | ast.Union, end: int | None) -> Iterator[Doc]:
        """Order, limit and offset. `end`: the offset in the source after the last token printed before; None if unknown."""
        if read.orderings:
            items = [(ordering.span.start, self._ordering(ordering)) for ordering in read.orderings]
            end = self._after(read.orderings[-1].span.end)
            order = self._exprs.bracketed("order {", items, (end, "}"), LINE)
            yield self._at(read.orderings[0].span.start, "order", order)
        for name, count in (("limit", read.limit), ("offset", read.offset)):
            if count is not None:
                doc = f"{name} {count if isinstance(count, int) else print_expr(count)}"
                yield doc if end is None or not self._written else self._exprs.at(self._after(end + 1), doc)
                end = None

    def _projection(self, projection: ast.Projection | ast.AllProperties) -> Doc:
        if isinstance(projection, ast.AllProperties):
            return f"${projection.variable}.*"
        alias = f" as {projection.alias}" if projection.alias is not None else ""
        return (self._exprs.doc(projection.expr), alias)

    def _ordering(self, ordering: ast.Ordering) -> Doc:
        direction = {None: "", False: " asc", True: " desc"}[ordering.descending]
        nulls = {None: "", False: " nulls last", True: " nulls first"}[ordering.nulls_first]
        return (self._exprs.doc(ordering.expr), direction + nulls)

    # --- statements ---------------------------------------------------------------------------------------------------

    def _marked(self, statement: ast.Statement, *, first: bool) -> Doc:
        """A statement at the beginning of a line."""
        doc = self.statement(statement)
        if isinstance(statement, ast.MatchInsert | ast.MatchUpdate | ast.MatchDelete):
            return self._at(statement.clauses[0].span.start, "match", doc, first=first)
        return self._exprs.at(statement.span.start, doc, first=first)

    def statement(self, statement: ast.Statement) -> Doc:
        match statement:
            case ast.Insert() | ast.Upsert():
                verb = type(statement).__name__.lower()
                return (f"{verb} {statement.type_name} ", self._assignments(statement.assignments))
            case ast.Update():
                values = self._assignments(statement.assignments)
                condition = Nest(self._exprs.doc(statement.condition))
                return (f"update {statement.type_name} set ", values, " where ", condition)
            case ast.Delete():
                return (f"delete {statement.type_name} where ", Nest(self._exprs.doc(statement.condition)))
            case ast.MatchInsert() | ast.MatchUpdate() | ast.MatchDelete():
                end = self._after(statement.clauses[-1].span.end)
                block = self._exprs.block("match", statement.clauses, end, HARD)
                done = self._done_with_matches(statement)
                return (block, HARD, self._exprs.at(self._after(end + 1), done) if self._written else done)

    def _done_with_matches(self, statement: ast.MatchInsert | ast.MatchUpdate | ast.MatchDelete) -> Doc:
        match statement:
            case ast.MatchInsert():
                return self.statement(statement.statement)
            case ast.MatchUpdate():
                return (f"update ${statement.variable.name} set ", self._assignments(statement.assignments))
            case ast.MatchDelete():
                return f"delete ${statement.variable.name}"

    def _assignments(self, assignments: Sequence[ast.Assignment]) -> Doc:
        pairs = [(pair.span.start, self._exprs.pair(pair.property, pair.value)) for pair in assignments]
        return self._exprs.bracketed("{", pairs, (self._after(assignments[-1].span.end), "}"), LINE)


def _first_part(read: ast.Read) -> ast.Read:
    """The first part of a read, before all `with`."""
    while read.before is not None:
        read = read.before
    return read
