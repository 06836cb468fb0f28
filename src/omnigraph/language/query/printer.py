"""A query as `.gq` text that parses back to the same tree."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from omnigraph.language.query.ast import (
    Access,
    Aggregate,
    AllProperties,
    Arithmetic,
    Assignment,
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
    Delete,
    DurationLit,
    Expr,
    FloatLit,
    Fuzzy,
    Ident,
    Insert,
    IntLit,
    IsNull,
    Item,
    ListLit,
    Logical,
    MatchDelete,
    MatchInsert,
    MatchText,
    MatchUpdate,
    Mutation,
    Nearest,
    Negation,
    Negative,
    Not,
    Now,
    NullLit,
    Optional,
    Ordering,
    Param,
    PathMatch,
    Projection,
    PropertyMatch,
    Query,
    QueryFile,
    Read,
    Rrf,
    Search,
    Statement,
    StringLit,
    Traversal,
    Union,
    Update,
    Upsert,
    Variable,
)

_INDENT = "  "
_ESCAPES = str.maketrans({'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"})


def print_query_file(file: QueryFile) -> str:
    """All queries of a file, with an empty line between them."""
    return "\n".join(print_query(query) for query in file.queries)


def print_query(query: Query) -> str:
    """One query, one clause, projection or assignment per line; one without a name is its body alone."""
    body = _body(query.body)
    if not query.name:
        return "\n".join([*body, ""])
    params = ", ".join(_param(param) for param in query.params)
    lines = [f"query {query.name}({params})"]
    for name, text in (("description", query.description), ("instruction", query.instruction)):
        if text is not None:
            lines.append(f"{_INDENT}@{name}({_string(text)})")
    lines[-1] += " {"
    lines += _indented(body)
    return "\n".join([*lines, "}", ""])


def _param(param: Param) -> str:
    return f"${param.name}: {param.type}"


def _indented(lines: Iterable[str]) -> Iterator[str]:
    return (_INDENT + line for line in lines)


def _separated(lines: list[str]) -> list[str]:
    """With a comma behind every line but the last."""
    return [f"{line}," for line in lines[:-1]] + lines[-1:]


# --- bodies -----------------------------------------------------------------------------------------------------------


def _body(body: Read | Union | Mutation) -> Iterator[str]:
    match body:
        case Read():
            return _read(body)
        case Union():
            return _union(body)
        case Mutation():
            return (line for statement in body.statements for line in _statement(statement))


def _union(union: Union) -> Iterator[str]:
    yield from _body(union.left)
    yield f"union {'all ' if union.keeps_repeats else ''}{{"
    yield from _indented(_read(union.right))
    yield "}"
    yield from _order_and_bounds(union)


def _read(read: Read) -> Iterator[str]:
    if read.before is not None:
        yield from _part(read.before, "with", "where")
    yield from _part(read, "return", "having")


def _part(read: Read, results: str, condition: str) -> Iterator[str]:
    """One match block and what is made of its rows."""
    if results == "with" and read.before is not None:
        yield from _part(read.before, "with", "where")
    if read.clauses:
        yield "match {"
        yield from _clauses(read.clauses)
        yield "}"
    yield f"{results} {'distinct ' if read.distinct else ''}{{"
    yield from _indented(_separated([_projection(projection) for projection in read.projections]))
    yield "}"
    if read.having is not None:
        yield f"{condition} {print_expr(read.having)}"
    yield from _order_and_bounds(read)


def _order_and_bounds(read: Read | Union) -> Iterator[str]:
    if read.orderings:
        yield f"order {{ {', '.join(_ordering(ordering) for ordering in read.orderings)} }}"
    for name, count in (("limit", read.limit), ("offset", read.offset)):
        if count is not None:
            yield f"{name} {count if isinstance(count, int) else print_expr(count)}"


def _clauses(clauses: Iterable[Clause]) -> Iterator[str]:
    for clause in clauses:
        if isinstance(clause, Negation | Optional):
            yield f"{_INDENT}{'not' if isinstance(clause, Negation) else 'optional'} {{"
            yield from _indented(_clauses(clause.clauses))
            yield f"{_INDENT}}}"
        else:
            yield _INDENT + _simple_clause(clause)


def _one_line(clauses: Iterable[Clause]) -> str:
    """Clauses in braces, as they stand inside an expression."""
    return f"{{ {' '.join(line.strip() for line in _clauses(clauses))} }}"


def _simple_clause(clause: Binding | Traversal | PathMatch | Expr) -> str:
    match clause:
        case Binding():
            matches = f" {{ {_pairs(clause.matches)} }}" if clause.matches else ""
            return f"${clause.variable}: {'|'.join((clause.type_name, *clause.others))}{matches}"
        case Traversal():
            return _traversal(clause)
        case PathMatch():
            weight = "" if clause.weight is None else f" by {print_expr(clause.weight)}"
            function = "all_shortest" if clause.every else "shortest"
            return f"${clause.variable} = {function}({_traversal(clause.traversal)}{weight})"
        case _:
            text = print_expr(clause)
            # A sign would go on with the condition before this one.
            return f"({text})" if text.startswith("-") else text


def _traversal(clause: Traversal) -> str:
    words = "|".join((clause.edge_word, *clause.others))
    edge = f"<{words}>" if clause.undirected else words
    binding = f"${clause.edge_variable}:" if clause.edge_variable is not None else ""
    most = "" if clause.max_hops is None else clause.max_hops
    bounds = f"{{{clause.min_hops},{most}}}" if clause.has_bounds else ""
    return f"${clause.source} {binding}{edge}{bounds} ${clause.target}"


def _pairs(pairs: Iterable[PropertyMatch | Assignment]) -> str:
    return ", ".join(f"{pair.property}: {print_expr(pair.value)}" for pair in pairs)


def _projection(projection: Projection | AllProperties) -> str:
    if isinstance(projection, AllProperties):
        return f"${projection.variable}.*"
    alias = f" as {projection.alias}" if projection.alias is not None else ""
    return print_expr(projection.expr) + alias


def _ordering(ordering: Ordering) -> str:
    direction = {None: "", False: " asc", True: " desc"}[ordering.descending]
    nulls = {None: "", False: " nulls last", True: " nulls first"}[ordering.nulls_first]
    return print_expr(ordering.expr) + direction + nulls


def print_statement(statement: Statement) -> str:
    """One statement of a mutation."""
    return "\n".join(_statement(statement))


def _statement(statement: Statement) -> Iterator[str]:
    match statement:
        case Insert() | Upsert():
            verb = type(statement).__name__.lower()
            yield f"{verb} {statement.type_name} {{ {_pairs(statement.assignments)} }}"
        case Update():
            assignments = _pairs(statement.assignments)
            yield f"update {statement.type_name} set {{ {assignments} }} where {print_expr(statement.condition)}"
        case Delete():
            yield f"delete {statement.type_name} where {print_expr(statement.condition)}"
        case MatchInsert() | MatchUpdate() | MatchDelete():
            yield "match {"
            yield from _clauses(statement.clauses)
            yield "}"
            yield from _done_with_matches(statement)


def _done_with_matches(statement: MatchInsert | MatchUpdate | MatchDelete) -> Iterator[str]:
    match statement:
        case MatchInsert():
            yield from _statement(statement.statement)
        case MatchUpdate():
            yield f"update ${statement.variable.name} set {{ {_pairs(statement.assignments)} }}"
        case MatchDelete():
            yield f"delete ${statement.variable.name}"


# --- expressions ------------------------------------------------------------------------------------------------------

#: How tightly each form holds its operands together; what is looser than its place asks for stands in parentheses.
_OR, _AND, _NOT, _COMPARISON, _SUM, _PRODUCT, _SIGN, _PRIMARY = range(8)


def print_expr(expr: Expr) -> str:
    """One expression or literal."""
    return _Printer("$", _string).text(expr)


def column_name(expr: Expr) -> str:
    """The name of a result column without an alias: `$s.level` is `s.level`, `count($m)` is `count(m)`."""
    return _Printer("", '"{}"'.format).text(expr)


class _Printer:
    """How variables begin and how texts are quoted."""

    def __init__(self, dollar: str, string: Callable[[str], str]) -> None:
        self._dollar = dollar
        self._string = string

    def text(self, expr: Expr, least: int = _OR) -> str:
        """The expression, in parentheses when it is looser than `least`."""
        tightness, text = self._parts(expr)
        return text if tightness >= least else f"({text})"

    def _parts(self, expr: Expr) -> tuple[int, str]:
        match expr:
            case Logical():
                own = _OR if expr.operator == "or" else _AND
                return own, f" {expr.operator} ".join(self.text(operand, own + 1) for operand in expr.operands)
            case Not():
                return _NOT, f"not {self.text(expr.operand, _NOT)}"
            case Comparison():
                return _COMPARISON, f"{self.text(expr.left, _SUM)} {expr.operator} {self.text(expr.right, _SUM)}"
            case IsNull():
                return _COMPARISON, f"{self.text(expr.operand, _SUM)} is {'not ' if expr.negated else ''}null"
            case Arithmetic():
                own = _SUM if expr.operator in "+-" else _PRODUCT
                return own, f"{self.text(expr.left, own)} {expr.operator} {self.text(expr.right, own + 1)}"
            case Negative():
                # The sign of a number literal is part of the literal.
                number = isinstance(expr.operand, IntLit | FloatLit)
                inner = f"({self.text(expr.operand)})" if number else self.text(expr.operand, _SIGN)
                return _SIGN, f"-{inner}"
            case IntLit():
                return _SIGN if expr.value < 0 else _PRIMARY, str(expr.value)
            case FloatLit():
                return _SIGN if expr.text.startswith("-") else _PRIMARY, expr.text
            case _:
                return _PRIMARY, self._primary(expr)

    def _primary(self, expr: Expr) -> str:
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
                argument = "" if expr.argument is None else f"({self.text(expr.argument)})"
                return f"{expr.function}{argument} {_one_line(expr.clauses)}"
            case Call(function="list"):
                return f"[{self._list(expr.arguments)}]"
            case Call():
                return f"{expr.function}({self._list(expr.arguments)})"
            case Item():
                return f"{self.text(expr.items, _PRIMARY)}[{self.text(expr.index)}]"
            case Case():
                return self._case(expr)
            case Search():
                return f"search({self._list((expr.field, expr.query))})"
            case MatchText():
                return f"match_text({self._list((expr.field, expr.query))})"
            case Fuzzy():
                return f"fuzzy({self._list((expr.field, expr.query, expr.max_edits))})"
            case Bm25():
                return f"bm25({self._list((expr.field, expr.query))})"
            case Nearest():
                return f"nearest({self._list((expr.field, expr.query))})"
            case Rrf():
                return f"rrf({self._list((expr.left, expr.right, expr.k))})"
            case StringLit():
                return self._string(expr.value)
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
                return f"[{self._list(expr.items)}]"
            case _:
                raise AssertionError(f"{type(expr).__name__} has a precedence of its own")

    def _aggregate(self, expr: Aggregate) -> str:
        if expr.argument is None:
            return f"{expr.function}(*)"
        distinct = "distinct " if expr.distinct else ""
        return f"{expr.function}({distinct}{self._list((expr.argument, expr.fraction))})"

    def _case(self, expr: Case) -> str:
        branches = (f"when {self.text(when.condition)} then {self.text(when.value)} " for when in expr.branches)
        otherwise = "" if expr.otherwise is None else f"else {self.text(expr.otherwise)} "
        return f"case {''.join(branches)}{otherwise}end"

    def _list(self, items: Iterable[Expr | None]) -> str:
        return ", ".join(self.text(item) for item in items if item is not None)


def _string(text: str) -> str:
    return f'"{text.translate(_ESCAPES)}"'
