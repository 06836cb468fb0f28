"""A query as `.gq` text that parses back to the same tree."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from omnigraph.language.query.ast import (
    Access,
    Aggregate,
    Assignment,
    Binding,
    Bm25,
    BoolLit,
    Clause,
    Comparison,
    DateLit,
    DateTimeLit,
    Delete,
    Expr,
    FloatLit,
    Fuzzy,
    Ident,
    Insert,
    IntLit,
    ListLit,
    MatchText,
    Mutation,
    Nearest,
    Negation,
    Now,
    Ordering,
    Param,
    Predicate,
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
    Update,
    Variable,
)

_INDENT = "  "
_ESCAPES = str.maketrans({'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"})


def print_query_file(file: QueryFile) -> str:
    """All queries of a file, with an empty line between them."""
    return "\n".join(print_query(query) for query in file.queries)


def print_query(query: Query) -> str:
    """One query, one clause, projection or assignment per line."""
    params = ", ".join(_param(param) for param in query.params)
    lines = [f"query {query.name}({params})"]
    for name, text in (("description", query.description), ("instruction", query.instruction)):
        if text is not None:
            lines.append(f"{_INDENT}@{name}({_string(text)})")
    lines[-1] += " {"
    lines += _indented(_read(query.body) if isinstance(query.body, Read) else _mutation(query.body))
    return "\n".join([*lines, "}", ""])


def _param(param: Param) -> str:
    return f"${param.name}: {param.type}"


def _indented(lines: Iterable[str]) -> Iterator[str]:
    return (_INDENT + line for line in lines)


def _separated(lines: list[str]) -> list[str]:
    """With a comma behind every line but the last."""
    return [f"{line}," for line in lines[:-1]] + lines[-1:]


# --- bodies -----------------------------------------------------------------------------------------------------------


def _read(read: Read) -> Iterator[str]:
    yield "match {"
    yield from _clauses(read.clauses)
    yield "}"
    yield "return {"
    yield from _indented(_separated([_projection(projection) for projection in read.projections]))
    yield "}"
    if read.orderings:
        yield f"order {{ {', '.join(_ordering(ordering) for ordering in read.orderings)} }}"
    if read.limit is not None:
        yield f"limit {read.limit}"


def _clauses(clauses: Iterable[Clause]) -> Iterator[str]:
    for clause in clauses:
        if isinstance(clause, Negation):
            yield f"{_INDENT}not {{"
            yield from _indented(_clauses(clause.clauses))
            yield f"{_INDENT}}}"
        else:
            yield _INDENT + _simple_clause(clause)


def _simple_clause(clause: Binding | Traversal | Comparison) -> str:
    if isinstance(clause, Comparison):
        return f"{print_expr(clause.left)} {clause.operator} {print_expr(clause.right)}"
    if isinstance(clause, Binding):
        matches = f" {{ {_pairs(clause.matches)} }}" if clause.matches else ""
        return f"${clause.variable}: {clause.type_name}{matches}"
    edge = f"<{clause.edge_word}>" if clause.undirected else clause.edge_word
    binding = f"${clause.edge_variable}:" if clause.edge_variable is not None else ""
    most = "" if clause.max_hops is None else clause.max_hops
    bounds = f"{{{clause.min_hops},{most}}}" if clause.has_bounds else ""
    return f"${clause.source} {binding}{edge}{bounds} ${clause.target}"


def _pairs(pairs: Iterable[PropertyMatch | Assignment]) -> str:
    return ", ".join(f"{pair.property}: {print_expr(pair.value)}" for pair in pairs)


def _projection(projection: Projection) -> str:
    alias = f" as {projection.alias}" if projection.alias is not None else ""
    return print_expr(projection.expr) + alias


def _ordering(ordering: Ordering) -> str:
    direction = {None: "", False: " asc", True: " desc"}[ordering.descending]
    return print_expr(ordering.expr) + direction


def _mutation(mutation: Mutation) -> Iterator[str]:
    return (_statement(statement) for statement in mutation.statements)


def _statement(statement: Statement) -> str:
    match statement:
        case Insert():
            return f"insert {statement.type_name} {{ {_pairs(statement.assignments)} }}"
        case Update():
            assignments = _pairs(statement.assignments)
            return f"update {statement.type_name} set {{ {assignments} }} where {_predicate(statement.predicate)}"
        case Delete():
            return f"delete {statement.type_name} where {_predicate(statement.predicate)}"


def _predicate(predicate: Predicate) -> str:
    return f"{predicate.property} {predicate.operator} {print_expr(predicate.value)}"


# --- expressions ------------------------------------------------------------------------------------------------------


def print_expr(expr: Expr) -> str:
    """One expression or literal."""
    match expr:
        case Now():
            return "now()"
        case Variable():
            return f"${expr.name}"
        case Access():
            return f"${expr.variable}.{expr.property}"
        case Ident():
            return expr.name
        case Aggregate():
            return _call(expr.function, expr.argument)
        case Search():
            return _call("search", expr.field, expr.query)
        case MatchText():
            return _call("match_text", expr.field, expr.query)
        case Fuzzy():
            return _call("fuzzy", expr.field, expr.query, expr.max_edits)
        case Bm25():
            return _call("bm25", expr.field, expr.query)
        case Nearest():
            return _call("nearest", expr.field, expr.query)
        case Rrf():
            return _call("rrf", expr.left, expr.right, expr.k)
        case StringLit():
            return _string(expr.value)
        case DateLit():
            return f"date({_string(expr.text)})"
        case DateTimeLit():
            return f"datetime({_string(expr.text)})"
        case IntLit():
            return str(expr.value)
        case FloatLit():
            return expr.text
        case BoolLit():
            return "true" if expr.value else "false"
        case ListLit():
            return f"[{', '.join(print_expr(item) for item in expr.items)}]"


def _call(function: str, *arguments: Expr | None) -> str:
    return f"{function}({', '.join(print_expr(argument) for argument in arguments if argument is not None)})"


def _string(text: str) -> str:
    return f'"{text.translate(_ESCAPES)}"'
