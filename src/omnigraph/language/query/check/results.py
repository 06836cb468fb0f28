"""`return`, `having`, `order`, `limit` and `offset`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from omnigraph.language.query import ast
from omnigraph.language.query.check.expressions import condition, resolve
from omnigraph.language.query.check.scope import Scope
from omnigraph.language.query.check.tree import Block, CheckedRead
from omnigraph.language.query.ir import (
    Bm25,
    Column,
    Expr,
    Nearest,
    OrderKey,
    OutputColumn,
    Parameter,
    Rrf,
    TextMatch,
    UnknownAlias,
    aggregates_in,
    columns_of,
    conjuncts,
    operands,
    outside_groups,
)
from omnigraph.language.query.printer import column_name
from omnigraph.language.source import Span
from omnigraph.language.types import INTEGERS

#: A column as it was written, and what it is.
Written = tuple[ast.Projection, OutputColumn]


def check_results(scope: Scope, read: ast.Read, block: Block) -> CheckedRead:
    """Check everything behind the match block."""
    scope = scope.at("result")
    written = [pair for projection in read.projections for pair in _columns(scope, projection)]
    columns = tuple(column for _, column in written)
    _refuse_equal_names(scope, written)
    aliases = {projection.alias: column.expr for projection, column in written if projection.alias is not None}
    having = () if read.having is None else tuple(conjuncts(condition(_named(scope, written), read.having)))
    order = tuple(_order_key(scope, ordering, aliases) for ordering in read.orderings)
    _check_rankings(scope, read, order)
    keys = [key.expr for key in order if not isinstance(key.expr, UnknownAlias)]
    aggregates = any(
        True for expr in (*(column.expr for column in columns), *keys, *having) for _ in aggregates_in(expr)
    )
    if aggregates:
        _check_grouping(scope, written)
    if aggregates or read.distinct:
        _check_order_of_groups(scope, read, columns, order, aggregates=aggregates)
    limit = None if read.limit is None else _row_count(scope, read.limit, "limit")
    offset = 0 if read.offset is None else _row_count(scope, read.offset, "offset")
    return CheckedRead(block, columns, order, limit, aggregates, read.distinct, having, offset)


def _columns(scope: Scope, projection: ast.Projection | ast.AllProperties) -> Iterator[Written]:
    """The column of a projection; `$x.*` is one for each property that can be shown."""
    if isinstance(projection, ast.Projection):
        name = projection.alias or column_name(projection.expr)
        yield projection, OutputColumn(name, resolve(scope, projection.expr))
        return
    entity = scope.entity(projection.variable)
    if entity is None:
        scope.unbound("T6", projection.variable, projection.span)
    for name, declared in entity.properties.items():
        if not declared.type.is_blob:
            access = ast.Access(projection.variable, name, projection.span)
            yield from _columns(scope, ast.Projection(access, None, projection.span))


def _refuse_equal_names(scope: Scope, written: list[Written]) -> None:
    seen: set[str] = set()
    for projection, column in written:
        if column.name in seen:
            scope.error(None, f"two columns are named `{column.name}`; give one an alias with `as`", projection.span)
        seen.add(column.name)


def _named(scope: Scope, written: list[Written]) -> Scope:
    """The scope of `having`: bare words are the columns."""
    words = {column.name: column.expr for _, column in written}

    def no_word(name: str, span: Span) -> None:
        scope.error("T29", f"no column of the result is named `{name}`", span, name=name, known=words)

    return scope.at("result", words, no_word)  # type: ignore[arg-type]  # it never returns


def _order_key(scope: Scope, ordering: ast.Ordering, aliases: Mapping[str, Expr]) -> OrderKey:
    """Nulls first ascending, last descending; a bare ranking without a direction has the best first."""
    written = ordering.expr
    nulls_first = ordering.nulls_first
    if isinstance(written, ast.Ident):
        aliased = aliases.get(written.name)
        if aliased is None:
            return OrderKey(UnknownAlias(written.name), bool(ordering.descending), not ordering.descending)
        expr = aliased
    else:
        expr = resolve(scope.at("result", aliases), written)
    if not expr.type.is_plain_scalar:
        scope.error("T7", f"values of type {expr.type} have no order", ordering.span)
    if ordering.descending is None and isinstance(written, ast.Nearest | ast.Bm25 | ast.Rrf):
        # What has no rank is never the best.
        return OrderKey(expr, descending=isinstance(expr, Bm25 | Rrf), nulls_first=bool(nulls_first))
    descending = bool(ordering.descending)
    return OrderKey(expr, descending, not descending if nulls_first is None else nulls_first)


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


def _row_count(scope: Scope, written: int | ast.Variable, what: str) -> int | Parameter:
    """What `limit` or `offset` says: a number, or an integer parameter."""
    if isinstance(written, int):
        return written
    declared = scope.params.get(written.name)
    if declared is None:
        scope.error(
            "T28", f"`{what}` takes a number or a parameter", written.span, name=written.name, known=scope.params
        )
    if declared.is_list or declared.scalar not in INTEGERS:
        scope.error("T28", f"`{what}` takes an integer parameter, `${written.name}` is {declared}", written.span)
    return Parameter(written.name, declared)


# --- groups -----------------------------------------------------------------------------------------------------------


def _check_grouping(scope: Scope, written: list[Written]) -> None:
    """T9: beside aggregates stand values of the rows, which are what the groups are made by."""
    keys = frozenset(column.expr for _, column in written if not _holds_aggregate(column.expr))
    whole = _whole(keys)
    for projection, column in written:
        if _holds_aggregate(column.expr):
            if any(part.variable not in whole for part in outside_groups(column.expr, keys)):
                scope.error(
                    "T9", "what stands beside an aggregate in one expression must be returned too", projection.span
                )
        elif _holds_rank(column.expr) or not (isinstance(projection.expr, ast.Variable) or columns_of(column.expr)):
            scope.error("T9", "beside aggregates a query returns only values of the matched rows", projection.span)


def _check_order_of_groups(
    scope: Scope,
    read: ast.Read,
    columns: tuple[OutputColumn, ...],
    order: tuple[OrderKey, ...],
    *,
    aggregates: bool,
) -> None:
    """T9: groups, or distinct rows, are ordered by what is returned or aggregated."""
    returned = frozenset(column.expr for column in columns)
    whole = _whole(returned) if aggregates else frozenset()
    for ordering, key in zip(read.orderings, order, strict=True):
        expr = key.expr
        if isinstance(expr, UnknownAlias) or expr in returned:
            continue
        if not aggregates and _holds_aggregate(expr):
            scope.error("T9", "distinct rows can be ordered only by what is returned", ordering.span)
        if any(part.variable not in whole for part in outside_groups(expr, returned)):
            what = "an aggregate query" if aggregates else "distinct rows"
            scope.error("T9", f"{what} can be ordered only by what is returned or aggregated", ordering.span)


def _holds_aggregate(expr: Expr) -> bool:
    return any(True for _ in aggregates_in(expr))


def _holds_rank(expr: Expr) -> bool:
    return isinstance(expr, Nearest | Bm25 | Rrf | TextMatch) or any(map(_holds_rank, operands(expr)))


def _whole(exprs: frozenset[Expr]) -> frozenset[str]:
    """The variables whose id is returned: whatever belongs to such a node is the same in all rows of its group."""
    return frozenset(expr.variable for expr in exprs if isinstance(expr, Column) and expr.property == "id")
