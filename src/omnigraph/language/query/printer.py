"""A query as `.gq` text that parses back to the same tree; with the text it was read from, its comments are kept."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from omnigraph.language.layout import HARD, LINE, NOTHING, SOFT, Doc, Mark, Nest, joined, render
from omnigraph.language.query.ast import (
    AllProperties,
    Assignment,
    Clause,
    Delete,
    Insert,
    MatchDelete,
    MatchInsert,
    MatchUpdate,
    Mutation,
    Ordering,
    Projection,
    Query,
    QueryFile,
    Read,
    Statement,
    Union,
    Update,
    Upsert,
)
from omnigraph.language.query.expression_printer import ExprPrinter, column_name, print_expr
from omnigraph.language.written import NOTHING_WRITTEN, Written

__all__ = ["column_name", "print_expr", "print_query", "print_query_file", "print_statement"]


def print_query_file(file: QueryFile, written: Written = NOTHING_WRITTEN) -> str:
    """All queries of a file, with an empty line between them, and with the comments of the text they were read from."""
    printer = _Printer(written)
    queries = ((Mark(query.span.start, "always"), printer.query(query), HARD) for query in file.queries)
    return render((*queries, Mark(len(file.source.text)) if written else NOTHING), written)


def print_query(query: Query) -> str:
    """One query, one clause, projection or assignment per line; one without a name is its body alone."""
    return render(_Printer(NOTHING_WRITTEN).query(query), NOTHING_WRITTEN)


def print_statement(statement: Statement) -> str:
    """One statement of a mutation."""
    return render(_Printer(NOTHING_WRITTEN).statement(statement), NOTHING_WRITTEN).removesuffix("\n")


class _Printer:
    """Queries, reads and statements, with the comments of a text. A generator gives the lines of what it prints."""

    def __init__(self, written: Written) -> None:
        self._written = written
        self._exprs = ExprPrinter(written)

    def query(self, query: Query) -> Doc:
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
        """Where the token behind an item stood."""
        return self._written.after(offset) if self._written else 0

    def _at(self, offset: int, word: str, doc: Doc, *, first: bool = False) -> Doc:
        """A document that begins with a word, which stood before this offset of the text."""
        return self._exprs.at(self._written.before(offset, word), doc, first=first) if self._written else doc

    # --- reads --------------------------------------------------------------------------------------------------------

    def _body(self, body: Read | Union | Mutation) -> Iterator[Doc]:
        match body:
            case Read():
                yield from self._read(body, first=True)
            case Union():
                yield from self._body(body.left)
                keyword = f"union {'all ' if body.keeps_repeats else ''}{{"
                right = joined(self._read(body.right, first=True), HARD)
                begin = _first_part(body.right).clauses[0].span.start
                yield self._at(begin, "union", (keyword, Nest((HARD, right)), HARD, "}"))
                yield from self._order_and_bounds(body, None)
            case Mutation():
                for number, statement in enumerate(body.statements):
                    yield self._marked(statement, first=not number)

    def _read(self, read: Read, *, first: bool) -> Iterator[Doc]:
        if read.before is not None:
            yield from self._part(read.before, "with", "where", first=first)
        yield from self._part(read, "return", "having", first=first and read.before is None)

    def _part(self, read: Read, results: str, condition: str, *, first: bool) -> Iterator[Doc]:
        """One match block and what is made of its rows."""
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

    def _match(self, clauses: Sequence[Clause], *, first: bool) -> Doc:
        block = self._exprs.block("match", clauses, self._after(clauses[-1].span.end), HARD)
        return self._at(clauses[0].span.start, "match", block, first=first)

    def _order_and_bounds(self, read: Read | Union, end: int | None) -> Iterator[Doc]:
        """`end` is where the last token of what stands before stood, None when that is not known."""
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

    def _projection(self, projection: Projection | AllProperties) -> Doc:
        if isinstance(projection, AllProperties):
            return f"${projection.variable}.*"
        alias = f" as {projection.alias}" if projection.alias is not None else ""
        return (self._exprs.doc(projection.expr), alias)

    def _ordering(self, ordering: Ordering) -> Doc:
        direction = {None: "", False: " asc", True: " desc"}[ordering.descending]
        nulls = {None: "", False: " nulls last", True: " nulls first"}[ordering.nulls_first]
        return (self._exprs.doc(ordering.expr), direction + nulls)

    # --- statements ---------------------------------------------------------------------------------------------------

    def _marked(self, statement: Statement, *, first: bool) -> Doc:
        """A statement behind a line break."""
        doc = self.statement(statement)
        if isinstance(statement, MatchInsert | MatchUpdate | MatchDelete):
            return self._at(statement.clauses[0].span.start, "match", doc, first=first)
        return self._exprs.at(statement.span.start, doc, first=first)

    def statement(self, statement: Statement) -> Doc:
        match statement:
            case Insert() | Upsert():
                verb = type(statement).__name__.lower()
                return (f"{verb} {statement.type_name} ", self._assignments(statement.assignments))
            case Update():
                values = self._assignments(statement.assignments)
                condition = Nest(self._exprs.doc(statement.condition))
                return (f"update {statement.type_name} set ", values, " where ", condition)
            case Delete():
                return (f"delete {statement.type_name} where ", Nest(self._exprs.doc(statement.condition)))
            case MatchInsert() | MatchUpdate() | MatchDelete():
                end = self._after(statement.clauses[-1].span.end)
                block = self._exprs.block("match", statement.clauses, end, HARD)
                done = self._done_with_matches(statement)
                return (block, HARD, self._exprs.at(self._after(end + 1), done) if self._written else done)

    def _done_with_matches(self, statement: MatchInsert | MatchUpdate | MatchDelete) -> Doc:
        match statement:
            case MatchInsert():
                return self.statement(statement.statement)
            case MatchUpdate():
                return (f"update ${statement.variable.name} set ", self._assignments(statement.assignments))
            case MatchDelete():
                return f"delete ${statement.variable.name}"

    def _assignments(self, assignments: Sequence[Assignment]) -> Doc:
        pairs = [(pair.span.start, self._exprs.pair(pair.property, pair.value)) for pair in assignments]
        return self._exprs.bracketed("{", pairs, (self._after(assignments[-1].span.end), "}"), LINE)


def _first_part(read: Read) -> Read:
    """The part of a read that its text begins with."""
    while read.before is not None:
        read = read.before
    return read
