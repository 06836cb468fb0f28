"""The name of a result column that has no alias."""

from __future__ import annotations

from omnigraph.language.query import ast


def column_name(expr: ast.Expr) -> str:
    """`$s.level` → `s.level`, `count($m)` → `count(m)`: the expression as written, without dollar signs."""
    match expr:
        case ast.Access():
            return f"{expr.variable}.{expr.property}"
        case ast.Variable() | ast.Ident():
            return expr.name
        case ast.Now():
            return "now()"
        case ast.Aggregate():
            return _call(expr.function, expr.argument)
        case ast.Search():
            return _call("search", expr.field, expr.query)
        case ast.MatchText():
            return _call("match_text", expr.field, expr.query)
        case ast.Fuzzy():
            return _call("fuzzy", expr.field, expr.query, expr.max_edits)
        case ast.Bm25():
            return _call("bm25", expr.field, expr.query)
        case ast.Nearest():
            return _call("nearest", expr.field, expr.query)
        case ast.Rrf():
            return _call("rrf", expr.left, expr.right, expr.k)
        case ast.BoolLit():
            return str(expr.value).lower()
        case ast.StringLit():
            return f'"{expr.value}"'
        case ast.IntLit():
            return str(expr.value)
        case ast.FloatLit():
            return expr.text
        case ast.DateLit():
            return f'date("{expr.text}")'
        case ast.DateTimeLit():
            return f'datetime("{expr.text}")'
        case ast.ListLit():
            return f"[{', '.join(map(column_name, expr.items))}]"


def _call(function: str, *arguments: ast.Expr | None) -> str:
    return f"{function}({', '.join(column_name(argument) for argument in arguments if argument is not None)})"
