"""`return`, `having`, `order`, `limit` and `offset`; `with` between two match blocks, and `union` between two reads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from omnigraph.language.literals import TypedValue
from omnigraph.language.query import ast, ir
from omnigraph.language.query.check.blocks import check_block, with_blocks
from omnigraph.language.query.check.expressions import condition, resolve
from omnigraph.language.query.check.scope import Scope, is_several, listed_nodes
from omnigraph.language.query.check.tree import AttachedBlock, Block, CheckedRead, CheckedUnion, CheckedWith
from omnigraph.language.query.functions import common_type
from omnigraph.language.query.printer import column_name
from omnigraph.language.schema.catalog import NodeType
from omnigraph.language.source import Place, Span, nearest_name
from omnigraph.language.types import INTEGERS, Scalar

#: A projection as it was written, and its typed column.
Written = tuple[ast.Projection, ir.OutputColumn]


def check_read(scope: Scope, read: ast.Read | ast.Union) -> CheckedRead | CheckedUnion:
    """Check a read and all parts before it. The scope must be empty, and is not to be used afterwards."""
    if isinstance(read, ast.Union):
        return _check_union(scope, read)
    before = None if read.before is None else _check_with(scope, read.before)
    if before is not None:
        scope = _after(scope, before)
    block = check_block(scope, read.clauses)
    return check_results(scope, read, block, before)


def check_results(scope: Scope, read: ast.Read, block: Block, before: CheckedWith | None = None) -> CheckedRead:
    """Check everything after the match block."""
    attached: list[AttachedBlock] = []
    scope = with_blocks(scope.at("result"), attached)
    written = [pair for projection in read.projections for pair in _columns(scope, projection)]
    columns = tuple(column for _, column in written)
    _refuse_no_columns(scope, read, written)
    _refuse_equal_names(scope, written)
    aliases = {
        projection.alias or column.name: column.expr
        for projection, column in written
        if projection.alias is not None or isinstance(projection.expr, ast.Variable)
    }
    having = () if read.having is None else tuple(ir.conjuncts(condition(_named(scope, written), read.having)))
    order = tuple(_order_key(scope, ordering, aliases, columns) for ordering in read.orderings)
    _check_rankings(scope, read, order)
    keys = [key.expr for key in order if not isinstance(key.expr, ir.UnknownAlias)]
    aggregates = any(
        True for expr in (*(column.expr for column in columns), *keys, *having) for _ in ir.aggregates_in(expr)
    )
    kinds = tuple(_kinds(scope, written)) if aggregates else ()
    if aggregates:
        _check_grouping(scope, written)
    if aggregates or read.distinct:
        _refuse_objects(scope, written)
        _check_order_of_groups(scope, read, columns, order, aggregates=aggregates, merged=read.distinct and bool(kinds))
    limit = None if read.limit is None else _row_count(scope, read.limit, "limit")
    offset = 0 if read.offset is None else _row_count(scope, read.offset, "offset")
    return CheckedRead(
        block, columns, order, limit, aggregates, read.distinct, having, offset, tuple(attached), before, kinds
    )


def _kinds(scope: Scope, written: list[Written]) -> Iterator[ir.Expr]:
    """The type expressions of the columns that are nodes of several types."""
    for projection, _ in written:
        variable = projection.expr.name if isinstance(projection.expr, ast.Variable) else None
        entity = None if variable is None else scope.nodes.get(variable)
        if variable is not None and entity is not None and is_several(entity):
            yield scope.type_of(variable, entity)


# --- with and union ---------------------------------------------------------------------------------------------------


def _check_with(scope: Scope, written: ast.Read) -> CheckedWith:
    """The part of a query up to a `with`; only the names after `with` are known to the next part."""
    before = None if written.before is None else _check_with(scope, written.before)
    inside = scope.following() if before is None else _after(scope, before)
    block = check_block(inside, written.clauses)
    for projection in written.projections:
        _require_name(inside, projection)
    read = check_results(inside, written, block, before)
    _refuse_objects(inside, _pairs(written, read))
    nodes: dict[str, NodeType] = {}
    values: dict[str, ir.Column] = {}
    listed: dict[str, NodeType] = {}
    maybe: set[str] = set()
    columns: list[ir.OutputColumn] = []
    for projection, column in zip(written.projections, read.columns, strict=True):
        assert isinstance(projection, ast.Projection)
        name = projection.alias or column.name
        variable = projection.expr.name if isinstance(projection.expr, ast.Variable) else None
        if variable is not None and variable in inside.nodes and isinstance(column.expr, ir.Column):
            nodes[name] = inside.nodes[variable]
            columns.append(ir.OutputColumn(f"{name}.id", column.expr))
            if is_several(nodes[name]):
                columns.append(ir.OutputColumn(f"{name}.@type", inside.type_of(variable, nodes[name])))
            if column.type.nullable:
                maybe.add(name)
        else:
            values[name] = ir.value_column(name, column.type)
            columns.append(ir.OutputColumn(f"{values[name].variable}.{ir.VALUE}", column.expr))
            if (kind := listed_nodes(inside, projection.expr)) is not None:
                listed[name] = kind
    return CheckedWith(replace(read, columns=tuple(columns)), nodes, values, listed, frozenset(maybe))


def _pairs(written: ast.Read, read: CheckedRead) -> list[Written]:
    projections = [each for each in written.projections if isinstance(each, ast.Projection)]
    return list(zip(projections, read.columns, strict=True))


def _require_name(scope: Scope, projection: ast.Projection | ast.AllProperties) -> None:
    if isinstance(projection, ast.AllProperties):
        scope.error("T33", "a `with` names values one by one; `$x` keeps the node", projection.span)
    if projection.alias is None and not isinstance(projection.expr, ast.Variable):
        scope.error("T33", "what a `with` computes needs a name: `… as name`", projection.span)


def _after(scope: Scope, before: CheckedWith) -> Scope:
    """The scope of the part after a `with`."""
    found = scope.following()
    found.nodes |= before.nodes
    found.outside = frozenset(before.nodes)
    found.values |= before.values
    found.listed |= before.listed
    found.maybe |= before.maybe
    for name in before.values:
        if name in found.params:
            found.params = {known: kind for known, kind in found.params.items() if known != name}
    return found


def _check_union(scope: Scope, union: ast.Union) -> CheckedUnion:
    left = check_read(scope.following(), union.left)
    right = check_read(scope.following(), union.right)
    assert isinstance(right, CheckedRead)
    span = _first_span(union.right)
    for side in (left, right):
        if any(column.type.scalar is Scalar.OBJECT for column in side.columns):
            scope.error("T36", "`object(x)` can not be part of a `union`; return its properties", span)
    names = [[column.name for column in side.columns] for side in (left, right)]
    if names[0] != names[1]:
        shown = " and ".join(f"({', '.join(each)})" for each in names)
        scope.error("T34", f"the sides of a `union` have the same columns, not {shown}", span)
    left, right = _with_typed_nulls(left, right.columns), _with_typed_nulls(right, left.columns)
    columns: list[ir.OutputColumn] = []
    for one, other in zip(left.columns, right.columns, strict=True):
        kind = common_type((one.type, other.type))
        if kind is None:
            scope.error("T34", f"column `{one.name}` is {one.type} on one side and {other.type} on the other", span)
        kind = replace(kind, nullable=one.type.nullable or other.type.nullable)
        columns.append(ir.OutputColumn(one.name, ir.ResultColumn(one.name, kind)))
    words = {column.name: column.expr for column in columns}
    order = tuple(_order_key(scope.at("result", words), ordering, words, columns) for ordering in union.orderings)
    limit = None if union.limit is None else _row_count(scope, union.limit, "limit")
    offset = 0 if union.offset is None else _row_count(scope, union.offset, "offset")
    return CheckedUnion(left, right, union.keeps_repeats, tuple(columns), order, limit, offset)


Side = TypeVar("Side", bound=CheckedRead | CheckedUnion)


def _with_typed_nulls(side: Side, others: Sequence[ir.OutputColumn]) -> Side:
    """A column that is only `null` has the type of the other side's."""
    columns = tuple(
        replace(own, expr=TypedValue(None, other.type.as_nullable()))
        if isinstance(own.expr, TypedValue) and own.expr.value is None
        else own
        for own, other in zip(side.columns, others, strict=True)
    )
    return replace(side, columns=columns)


def _first_span(read: ast.Read) -> Span:
    return read.projections[0].span


def _columns(scope: Scope, projection: ast.Projection | ast.AllProperties) -> Iterator[Written]:
    """The columns of a projection; `$x.*` gives one column for each property that is not a Blob."""
    if isinstance(projection, ast.Projection):
        name = projection.alias or column_name(projection.expr)
        yield projection, ir.OutputColumn(name, resolve(scope, projection.expr))
        return
    entity = scope.entity(projection.variable)
    if entity is None:
        scope.unbound("T6", projection.variable, projection.span)
    for name, declared in entity.properties.items():
        if not declared.type.is_blob:
            access = ast.Access(projection.variable, name, projection.span)
            yield from _columns(scope, ast.Projection(access, None, projection.span))


def _refuse_no_columns(scope: Scope, read: ast.Read, written: list[Written]) -> None:
    """Refuse a result without columns, since it could not show that there are rows."""
    if written:
        return
    first = read.projections[0]
    assert isinstance(first, ast.AllProperties)
    why = f"`${first.variable}.*` gives no column, there is no property to show; return `${first.variable}.@id`"
    scope.error(None, why, first.span)


def _refuse_equal_names(scope: Scope, written: list[Written]) -> None:
    seen: set[str] = set()
    for projection, column in written:
        if column.name in seen:
            scope.error(None, f"two columns are named `{column.name}`; give one an alias with `as`", projection.span)
        seen.add(column.name)


def _named(scope: Scope, written: list[Written]) -> Scope:
    """The scope of `having`, in which bare words are columns of the result."""
    words = {column.name: column.expr for _, column in written}
    values = {projection.alias or column.name: column.expr for projection, column in written}

    def no_word(name: str, span: Span) -> None:
        scope.error("T29", f"no column of the result is named `{name}`", span, name=name, known=words)

    named = {name: expr for name, expr in values.items() if not scope.is_bound(name)}
    inside = scope.at("result", words, no_word)  # type: ignore[arg-type]  # it never returns
    # A block in `having` would have to become another grouping key.
    return replace(inside, named=named, block_value=None)


def _order_key(
    scope: Scope, ordering: ast.Ordering, aliases: Mapping[str, ir.Expr], columns: Sequence[ir.OutputColumn]
) -> ir.OrderKey:
    """A typed order key. By default nulls come first ascending and last descending; a bare ranking puts the best first."""
    written = ordering.expr
    nulls_first = ordering.nulls_first
    if isinstance(written, ast.Ident):
        aliased = aliases.get(written.name)
        if aliased is None:
            properties = [column.name for column in columns if column.name.endswith(f".{written.name}")]
            suggestion = f"${properties[0]}" if properties else nearest_name(written.name, aliases)
            unknown = ir.UnknownAlias(written.name, suggestion, Place(scope.source, written.span))
            return ir.OrderKey(unknown, bool(ordering.descending), not ordering.descending)
        expr = aliased
    else:
        expr = resolve(scope.at("result", aliases), written)
    if not expr.type.is_plain_scalar:
        scope.error("T7", f"values of type {expr.type} have no order", ordering.span)
    if ordering.descending is None and isinstance(written, ast.Nearest | ast.Bm25 | ast.Rrf):
        # Rows without a rank come last by default.
        return ir.OrderKey(expr, descending=isinstance(expr, ir.Bm25 | ir.Rrf), nulls_first=bool(nulls_first))
    descending = bool(ordering.descending)
    return ir.OrderKey(expr, descending, not descending if nulls_first is None else nulls_first)


def _check_rankings(scope: Scope, read: ast.Read, order: tuple[ir.OrderKey, ...]) -> None:
    """Raise T21, T17 or T18 when a ranking in the order lacks a `limit` or is combined with an alias."""
    pairs = list(zip(read.orderings, order, strict=True))
    if read.limit is None:
        for ordering, key in pairs:
            if isinstance(key.expr, ir.Rrf):
                scope.error("T21", "ordering by `rrf` needs a `limit`", ordering.span)
        for ordering, _ in pairs:
            if isinstance(ordering.expr, ast.Nearest):
                scope.error("T17", "ordering by `nearest` needs a `limit`", ordering.span)
    if any(isinstance(ordering.expr, ast.Nearest) for ordering in read.orderings):
        for ordering in read.orderings:
            if isinstance(ordering.expr, ast.Ident):
                scope.error("T18", "ordering by `nearest` can not be combined with ordering by an alias", ordering.span)


def _row_count(scope: Scope, written: int | ast.Variable, what: str) -> int | ir.Parameter:
    """The value of `limit` or `offset`: a number, or an integer parameter."""
    if isinstance(written, int):
        return written
    declared = scope.params.get(written.name)
    if declared is None:
        scope.error(
            "T28", f"`{what}` takes a number or a parameter", written.span, name=written.name, known=scope.params
        )
    if declared.is_list or declared.scalar not in INTEGERS:
        scope.error("T28", f"`{what}` takes an integer parameter, `${written.name}` is {declared}", written.span)
    return ir.Parameter(written.name, declared)


def _refuse_objects(scope: Scope, written: list[Written]) -> None:
    """Raise T36 for an object among grouped or distinct columns, since objects can not be compared."""
    for projection, column in written:
        if column.type.scalar is Scalar.OBJECT:
            scope.error(
                "T36", "`object(x)` can not be compared; return it without aggregates or `distinct`", projection.span
            )


# --- groups -----------------------------------------------------------------------------------------------------------


def _check_grouping(scope: Scope, written: list[Written]) -> None:
    """Raise T9 for a column beside aggregates that is not a value of the matched rows, by which they are grouped."""
    keys = frozenset(column.expr for _, column in written if not _holds_aggregate(column.expr))
    whole = _whole(keys)
    for projection, column in written:
        if _holds_aggregate(column.expr):
            if any(part.variable not in whole for part in ir.outside_groups(column.expr, keys)):
                scope.error(
                    "T9", "what stands beside an aggregate in one expression must be returned too", projection.span
                )
        elif _holds_rank(column.expr) or not (
            isinstance(projection.expr, ast.Variable | ast.Access) or ir.columns_of(column.expr)
        ):
            scope.error("T9", "beside aggregates a query returns only values of the matched rows", projection.span)


def _check_order_of_groups(
    scope: Scope,
    read: ast.Read,
    columns: tuple[ir.OutputColumn, ...],
    order: tuple[ir.OrderKey, ...],
    *,
    aggregates: bool,
    merged: bool,
) -> None:
    """Raise T9 when groups or distinct rows are ordered by a value that is neither returned nor aggregated.

    `merged`: several groups may show one row, so that only a returned value says where it stands.
    """
    returned = frozenset(column.expr for column in columns)
    whole = _whole(returned) if aggregates and not merged else frozenset()
    for ordering, key in zip(read.orderings, order, strict=True):
        expr = key.expr
        if isinstance(expr, ir.UnknownAlias) or expr in returned:
            continue
        hidden = any(call not in returned for call in ir.aggregates_in(expr))
        if hidden and (merged or not aggregates):
            scope.error("T9", "distinct rows can be ordered only by what is returned", ordering.span)
        if any(part.variable not in whole for part in ir.outside_groups(expr, returned)):
            what = "an aggregate query" if aggregates else "distinct rows"
            scope.error("T9", f"{what} can be ordered only by what is returned or aggregated", ordering.span)


def _holds_aggregate(expr: ir.Expr) -> bool:
    return any(True for _ in ir.aggregates_in(expr))


def _holds_rank(expr: ir.Expr) -> bool:
    return isinstance(expr, ir.Nearest | ir.Bm25 | ir.Rrf | ir.TextMatch) or any(map(_holds_rank, ir.operands(expr)))


def _whole(exprs: frozenset[ir.Expr]) -> frozenset[str]:
    """The variables whose id is returned: all properties of such a node are equal in all rows of a group."""
    return frozenset(expr.variable for expr in exprs if isinstance(expr, ir.Column) and expr.property == "id")
