"""The names in a `.gq` text: variables, types, edges, properties, functions, results and the queries themselves."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from omnigraph.language.names import Kind, Occurrence, named
from omnigraph.language.query import ast
from omnigraph.language.schema.catalog import Catalog
from omnigraph.language.source import Span
from omnigraph.language.written import Written

Types = dict[str, tuple[str, ...]]


def query_names(file: ast.QueryFile, catalog: Catalog) -> list[Occurrence]:
    """All names of a parsed file, in no particular order."""
    written = Written(file.source)
    found: list[Occurrence] = []
    for query in file.queries:
        found += _Names(query, catalog, written).all()
    return found


class _Names:
    """The names of one query."""

    def __init__(self, query: ast.Query, catalog: Catalog, written: Written) -> None:
        self._query = query
        self._catalog = catalog
        self._written = written
        self._types: Types = {}
        #: The names given by the `with` whose condition and order are being read.
        self._given: set[str] = set()

    def all(self) -> Iterator[Occurrence]:
        query = self._query
        self._types = variable_types(query, self._catalog)
        if query.name:
            head = self._written.within(query.span)[:2]
            at = named(head[1:] if head[0].text == "query" else head, query.name)
            if at is not None:
                yield Occurrence("query", query.name, at, declares=True)
        for param in query.params:
            yield self._variable(param.name, param.span.start, declares=True)
        yield from self._body(query.body)

    def _variable(self, name: str, start: int, *, declares: bool = False) -> Occurrence:
        span = Span(start, start + len(name) + 1)
        return Occurrence("variable", name, span, declares, self._types.get(name, ()), self._query.span)

    def _body(self, body: ast.Read | ast.Union | ast.Mutation, *, is_with: bool = False) -> Iterator[Occurrence]:
        match body:
            case ast.Union():
                yield from self._body(body.left)
                yield from self._body(body.right)
            case ast.Read():
                if body.before is not None:
                    yield from self._body(body.before, is_with=True)
                yield from self._clauses(body.clauses)
                for item in body.projections:
                    if isinstance(item, ast.AllProperties):
                        yield self._variable(item.variable, item.span.start)
                        continue
                    yield from self._expr(item.expr)
                    if item.alias is not None:
                        at = Span(item.span.end - len(item.alias), item.span.end)
                        # A name given by a `with` is a variable in the parts after it.
                        kind: Kind = "variable" if is_with else "alias"
                        yield Occurrence(kind, item.alias, at, declares=True, scope=self._query.span)
                        self._given |= {item.alias} if is_with else set()
                yield from self._exprs([body.having] if body.having is not None else [])
            case ast.Mutation():
                for statement in body.statements:
                    yield from self._statement(statement)
        if not isinstance(body, ast.Mutation):
            yield from self._exprs(ordering.expr for ordering in body.orderings)
            self._given = set()
            yield from self._exprs(count for count in (body.limit, body.offset) if isinstance(count, ast.Variable))

    def _statement(self, statement: ast.Statement) -> Iterator[Occurrence]:
        match statement:
            case ast.MatchInsert():
                yield from self._clauses(statement.clauses)
                yield from self._statement(statement.statement)
            case ast.MatchUpdate():
                yield from self._clauses(statement.clauses)
                yield self._variable(statement.variable.name, statement.variable.span.start)
                yield from self._assigned(statement.assignments, self._types.get(statement.variable.name, ()), ())
            case ast.MatchDelete():
                yield from self._clauses(statement.clauses)
                yield self._variable(statement.variable.name, statement.variable.span.start)
            case ast.Insert() | ast.Upsert() | ast.Update() | ast.Delete():
                kind = "node" if statement.type_name in self._catalog.nodes else "edge"
                owners = (f"{kind}:{statement.type_name}",)
                at = named(self._written.within(statement.span)[:2], statement.type_name)
                if at is not None:
                    yield Occurrence("node" if kind == "node" else "edge", statement.type_name, at)
                if not isinstance(statement, ast.Delete):
                    yield from self._assigned(statement.assignments, owners, owners)
                if isinstance(statement, ast.Update | ast.Delete):
                    yield from self._expr(statement.condition, owners)

    def _assigned(
        self, assignments: Iterable[ast.Assignment], owners: tuple[str, ...], words: tuple[str, ...]
    ) -> Iterator[Occurrence]:
        """The names in assignments. `words`: the types whose properties the values may name as bare words."""
        for pair in assignments:
            at = Span(pair.span.start, pair.span.start + len(pair.property))
            yield Occurrence("property", pair.property, at, owners=owners)
            yield from self._expr(pair.value, words)

    # --- clauses and expressions --------------------------------------------------------------------------------------

    def _clauses(self, clauses: Iterable[ast.Clause]) -> Iterator[Occurrence]:
        for clause in clauses:
            match clause:
                case ast.Negation() | ast.Optional():
                    yield from self._clauses(clause.clauses)
                case ast.Binding():
                    yield from self._binding(clause)
                case ast.Traversal():
                    yield from self._traversal(clause)
                case ast.PathMatch():
                    yield self._variable(clause.variable, clause.span.start, declares=True)
                    yield from self._traversal(clause.traversal)
                    yield from self._exprs([clause.weight] if clause.weight is not None else [])
                case _:
                    yield from self._expr(clause)

    def _binding(self, clause: ast.Binding) -> Iterator[Occurrence]:
        yield self._variable(clause.variable, clause.span.start, declares=True)
        start = clause.span.start + len(clause.variable) + 1
        names = (clause.type_name, *clause.others)
        for name in names:
            at = named(self._written.within(Span(start, clause.span.end)), name)
            if at is not None and name != "*":
                yield Occurrence("node", name, at)
                start = at.end
        owners = tuple(f"node:{name}" for name in names)
        for pair in clause.matches:
            at = Span(pair.span.start, pair.span.start + len(pair.property))
            yield Occurrence("property", pair.property, at, owners=owners)
            yield from self._expr(pair.value)

    def _traversal(self, clause: ast.Traversal) -> Iterator[Occurrence]:
        yield self._variable(clause.source, clause.span.start)
        yield self._variable(clause.target, clause.span.end - len(clause.target) - 1)
        inner = self._written.within(clause.span)[1:-1]
        for token in inner:
            if token.text.startswith("$"):
                yield self._variable(token.text[1:], token.start, declares=True)
            elif token.text in (clause.edge_word, *clause.others) and token.text != "*":
                edge = self._catalog.edge(token.text)
                yield Occurrence("edge", edge.name if edge else token.text, token.span)

    def _exprs(self, exprs: Iterable[ast.Expr], words: tuple[str, ...] = ()) -> Iterator[Occurrence]:
        for expr in exprs:
            yield from self._expr(expr, words)

    def _expr(self, expr: ast.Expr, words: tuple[str, ...] = ()) -> Iterator[Occurrence]:
        match expr:
            case ast.Variable():
                yield self._variable(expr.name, expr.span.start)
            case ast.Access():
                yield self._variable(expr.variable, expr.span.start)
                if not expr.property.startswith("@"):
                    at = Span(expr.span.end - len(expr.property), expr.span.end)
                    yield Occurrence("property", expr.property, at, owners=self._types.get(expr.variable, ()))
            case ast.Ident() if words and not expr.name.startswith("@"):
                yield Occurrence("property", expr.name, expr.span, owners=words)
            case ast.Ident():
                kind: Kind = "variable" if expr.name in self._given else "alias"
                yield Occurrence(kind, expr.name, expr.span, scope=self._query.span)
            case ast.Call() if expr.function != "list":
                yield Occurrence("function", expr.function, Span(expr.span.start, expr.span.start + len(expr.function)))
            case ast.Aggregate() | ast.BlockCall():
                yield Occurrence("function", expr.function, Span(expr.span.start, expr.span.start + len(expr.function)))
            case _:
                pass
        if isinstance(expr, ast.BlockCall):
            yield from self._clauses(expr.clauses)
        yield from self._exprs(ast.parts(expr), words)


# --- the types of variables -------------------------------------------------------------------------------------------


def variable_types(query: ast.Query, catalog: Catalog) -> Types:
    """The types of the variables of a query, as far as its patterns show them: `{"s": ("node:Staff",)}`."""
    clauses = list(_patterns(query.body))
    found: Types = {}
    for clause in clauses:
        if isinstance(clause, ast.Binding) and "*" not in (clause.type_name, *clause.others):
            found[clause.variable] = tuple(f"node:{name}" for name in (clause.type_name, *clause.others))
    for clause in clauses:
        if isinstance(clause, ast.Traversal):
            _traversed(clause, catalog, found)
    return found


def _traversed(clause: ast.Traversal, catalog: Catalog, found: Types) -> None:
    edges = [catalog.edge(word) for word in (clause.edge_word, *clause.others)]
    if clause.edge_variable is not None:
        found[clause.edge_variable] = tuple(f"edge:{edge.name}" for edge in edges if edge is not None)
    if len(edges) != 1 or edges[0] is None:
        return
    start, end = (f"node:{edges[0].from_type}",), (f"node:{edges[0].to_type}",)
    if found.get(clause.source) == end != start or (
        clause.source not in found and found.get(clause.target) == start != end
    ):
        start, end = end, start
    found.setdefault(clause.source, start)
    found.setdefault(clause.target, end)


def _patterns(body: ast.Read | ast.Union | ast.Mutation) -> Iterator[ast.Clause]:
    """All bindings and traversals of a query, including nested blocks."""
    match body:
        case ast.Union():
            yield from _patterns(body.left)
            yield from _patterns(body.right)
        case ast.Read():
            if body.before is not None:
                yield from _patterns(body.before)
            yield from _flat(body.clauses)
            for item in body.projections:
                if not isinstance(item, ast.AllProperties):
                    yield from _inside(item.expr)
        case ast.Mutation():
            for statement in body.statements:
                if isinstance(statement, ast.MatchInsert | ast.MatchUpdate | ast.MatchDelete):
                    yield from _flat(statement.clauses)


def _flat(clauses: Iterable[ast.Clause]) -> Iterator[ast.Clause]:
    for clause in clauses:
        match clause:
            case ast.Negation() | ast.Optional():
                yield from _flat(clause.clauses)
            case ast.PathMatch():
                yield clause.traversal
            case ast.Binding() | ast.Traversal():
                yield clause
            case _:
                yield from _inside(clause)


def _inside(expr: ast.Expr) -> Iterator[ast.Clause]:
    if isinstance(expr, ast.BlockCall):
        yield from _flat(expr.clauses)
    for part in ast.parts(expr):
        yield from _inside(part)
