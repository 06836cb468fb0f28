"""`return`, `order` and `limit`."""

from __future__ import annotations

from collections.abc import Mapping

from omnigraph.language.query import ast
from omnigraph.language.query.check.expressions import resolve
from omnigraph.language.query.check.names import column_name
from omnigraph.language.query.check.scope import Scope
from omnigraph.language.query.check.tree import Block, CheckedRead
from omnigraph.language.query.ir import (
    AggregateCall,
    Bm25,
    Column,
    Expr,
    OrderKey,
    OutputColumn,
    Rrf,
    UnknownAlias,
)


def check_results(scope: Scope, read: ast.Read, block: Block) -> CheckedRead:
    """Check everything behind the match block."""
    columns = tuple(_column(scope, projection) for projection in read.projections)
    _refuse_equal_names(scope, read, columns)
    aliases = {
        projection.alias: column.expr
        for projection, column in zip(read.projections, columns, strict=True)
        if projection.alias is not None
    }
    order = tuple(_order_key(scope, ordering, aliases) for ordering in read.orderings)
    _check_rankings(scope, read, order)
    exprs = [column.expr for column in columns] + [key.expr for key in order if not isinstance(key.expr, UnknownAlias)]
    aggregates = any(isinstance(expr, AggregateCall) for expr in exprs)
    if aggregates:
        _check_grouping(scope, read, columns, order)
    return CheckedRead(block, columns, order, read.limit, aggregates)


def _column(scope: Scope, projection: ast.Projection) -> OutputColumn:
    return OutputColumn(projection.alias or column_name(projection.expr), resolve(scope, projection.expr))


def _refuse_equal_names(scope: Scope, read: ast.Read, columns: tuple[OutputColumn, ...]) -> None:
    seen: set[str] = set()
    for projection, column in zip(read.projections, columns, strict=True):
        if column.name in seen:
            scope.error(None, f"two columns are named `{column.name}`; give one an alias with `as`", projection.span)
        seen.add(column.name)


def _order_key(scope: Scope, ordering: ast.Ordering, aliases: Mapping[str, Expr]) -> OrderKey:
    """Nulls first ascending, last descending; a bare ranking without a direction has the best first."""
    written = ordering.expr
    if isinstance(written, ast.Ident):
        aliased = aliases.get(written.name)
        if aliased is None:
            return OrderKey(UnknownAlias(written.name), bool(ordering.descending), not ordering.descending)
        expr = aliased
    else:
        expr = resolve(scope, written)
    if not expr.type.is_plain_scalar:
        scope.error("T7", f"values of type {expr.type} have no order", ordering.span)
    if ordering.descending is None and isinstance(written, ast.Nearest | ast.Bm25 | ast.Rrf):
        # What has no rank is never the best.
        return OrderKey(expr, descending=isinstance(expr, Bm25 | Rrf), nulls_first=False)
    return OrderKey(expr, bool(ordering.descending), not ordering.descending)


def _check_rankings(scope: Scope, read: ast.Read, order: tuple[OrderKey, ...]) -> None:
    """T21, T17, T18: what a ranking in the order asks for."""
    pairs = list(zip(read.orderings, order, strict=True))
    if read.limit is None:
        for ordering, key in pairs:
            if isinstance(key.expr, Rrf):
                scope.error("T21", "ordering by `rrf` needs a `limit`", ordering.span)
        for ordering, _ in pairs:
            if isinstance(ordering.expr, ast.Nearest):
                scope.error("T17", "ordering by `nearest` needs a `limit`", ordering.span)
    if any(isinstance(ordering.expr, ast.Nearest) for ordering in read.orderings):
        for ordering in read.orderings:
            if isinstance(ordering.expr, ast.Ident):
                scope.error("T18", "ordering by `nearest` can not be combined with ordering by an alias", ordering.span)


def _check_grouping(
    scope: Scope, read: ast.Read, columns: tuple[OutputColumn, ...], order: tuple[OrderKey, ...]
) -> None:
    """T9: an aggregate query returns aggregates and grouping keys, and is ordered by what it returns."""
    for projection in read.projections:
        if not isinstance(projection.expr, ast.Aggregate | ast.Access | ast.Variable):
            scope.error("T9", "beside aggregates a query returns only property accesses and variables", projection.span)
    returned = {column.expr for column in columns}
    # Whatever belongs to a returned node is the same in all rows of its group.
    whole = {expr.variable for expr in returned if isinstance(expr, Column) and expr.property == "id"}
    for ordering, key in zip(read.orderings, order, strict=True):
        expr = key.expr
        if isinstance(expr, AggregateCall | UnknownAlias) or expr in returned:
            continue
        if not (isinstance(expr, Column) and expr.variable in whole):
            scope.error("T9", "an aggregate query can be ordered only by what it returns or aggregates", ordering.span)
