"""Rule: a scan or traversal reads only the columns that operators above it use."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from omnigraph.language.query import ir

Needed = frozenset[ir.Column]
Ranks = frozenset[ir.Ranking]


def prune_columns(plan: ir.Plan) -> ir.Plan:
    """From the root down, each operator adds the columns that it reads to the columns that are needed above it.
    Conditions inside a pattern are evaluated by the scan, so their columns are not added. A rank that a scan computes is
    passed up
    with its rows, so its vector or text is not needed above.
    """
    scanned = _scanned(plan)
    best = frozenset(scan.ranking for scan in scanned.values() if isinstance(scan, ir.RankedScan | ir.FusedScan))
    asked = frozenset(_ranks(plan, best))
    near = frozenset(rank for rank in asked if isinstance(rank, ir.Nearest) and rank.field.variable in scanned)
    return _prune(plan, frozenset(), near | (asked & best))


def _ranks(plan: ir.Plan, best: Ranks) -> Iterator[ir.Ranking]:
    """The rankings in the result and its order; the parts of a fusion only when no scan computes the fusion."""
    while isinstance(plan, ir.Project | ir.Order | ir.Limit):
        match plan:
            case ir.Project():
                yield from (rank for column in plan.columns for rank in _ranks_in(column.expr, best))
            case ir.Order():
                yield from (rank for key in plan.keys for rank in _ranks_in(key.expr, best))
        plan = plan.input


def _ranks_in(expr: ir.Expr | ir.UnknownAlias, best: Ranks) -> Iterator[ir.Ranking]:
    if isinstance(expr, ir.Nearest | ir.Bm25 | ir.Rrf):
        yield expr
        if expr in best:
            return
    for operand in ir.operands(expr):
        yield from _ranks_in(operand, best)


def _scanned(plan: ir.Plan) -> dict[str, ir.NodeScan | ir.RankedScan | ir.FusedScan]:
    """The scans whose rows reach the result, by variable; scans in nested plans do not."""
    if isinstance(plan, ir.NodeScan | ir.RankedScan | ir.FusedScan):
        return {plan.node.variable: plan}
    if isinstance(plan, ir.With | ir.Union):
        # These operators do not pass on the scores computed by scans below them.
        return {}
    nested = isinstance(plan, ir.AntiJoin | ir.SemiJoin | ir.OptionalJoin | ir.Attach)
    below = (plan.input,) if nested else ir.children(plan)  # type: ignore[union-attr]
    return {variable: scan for child in below for variable, scan in _scanned(child).items()}


def _prune(plan: ir.Plan, needed: Needed, ranks: Ranks) -> ir.Plan:
    match plan:
        case ir.Project():
            below = _read((column.expr for column in plan.columns), ranks)
        case ir.Aggregate():
            below = _read(key.expr for key in plan.keys) | _read(column.call for column in plan.aggregates)
        case ir.Order():
            below = needed | _read((*(key.expr for key in plan.keys), *plan.ties), ranks)
        case ir.Limit():
            below = needed
        case ir.Filter():
            below = needed | _read(plan.predicates)
        case ir.CountPaths():
            hops = tuple(map(_without_columns, plan.hops))
            below = needed | {_id(hop.source) for hop in hops}
            return replace(plan, input=_prune(plan.input, below, ranks), hops=hops)
        case ir.CountRows():
            counted = tuple(_prune(other, frozenset(), frozenset()) for other in plan.counted)
            return replace(plan, input=_prune(plan.input, needed, ranks), counted=counted)
        case ir.AntiJoin() | ir.SemiJoin():
            on, inner, asked = _started(plan.on, _prune(plan.inner, frozenset(), frozenset()))
            return replace(plan, input=_prune(plan.input, needed | asked, ranks), inner=inner, on=on)
        case ir.OptionalJoin():
            own = ir.bound_variables(plan.inner) - frozenset(plan.on)
            inner = _prune(plan.inner, frozenset(column for column in needed if column.variable in own), frozenset())
            on, inner, asked = _started(plan.on, inner)
            below = frozenset(column for column in needed if column.variable not in own) | asked
            return replace(plan, input=_prune(plan.input, below, ranks), inner=inner, on=on)
        case ir.Attach():
            return _prune_attach(plan, needed, ranks)
        case ir.ShortestPaths():
            parts = frozenset(plan.columns.values())
            below = frozenset(column for column in needed if column.variable not in parts)
            below |= {_id(plan.source), _id(plan.target)}
            read = tuple(part for part, name in plan.columns.items() if any(name == c.variable for c in needed))
            return replace(plan, input=_prune(plan.input, below, ranks), reading=read)
        case ir.Fetch():
            # `@type` is a column of the rows already and is not fetched.
            mine = (column for column in needed if column.variable == plan.node.variable)
            fetched = frozenset(column for column in mine if column.property != "@type")
            names = tuple(name for name in _names(plan.node.variable, fetched) if name != "id")
            input_ = _prune(plan.input, (needed - fetched) | {_id(plan.node.variable)}, ranks)
            return ir.Fetch(input_, replace(plan.node, columns=names)) if names else input_
        case ir.With():
            return replace(plan, input=prune_columns(plan.input))
        case ir.Tag():
            types = tuple((name, kind) for name, kind in plan.types if _type_of(name) in needed)
            input_ = _prune(plan.input, needed - {_type_of(name) for name, _ in plan.types}, ranks)
            return ir.Tag(input_, types) if types else input_
        case ir.Union():
            if plan.columns is None:
                return replace(plan, inputs=tuple(map(prune_columns, plan.inputs)))
            columns = _in_order(column for column in needed if column.variable in ir.bound_variables(plan))
            return replace(
                plan, inputs=tuple(_prune(below, needed, frozenset()) for below in plan.inputs), columns=columns
            )
        case ir.Empty():
            return replace(plan, columns=_in_order(column for column in needed if column.variable in plan.variables))
        case ir.CrossJoin():
            return ir.CrossJoin(_prune(plan.left, needed, ranks), _prune(plan.right, needed, ranks))
        case ir.Expand():
            return _prune_expand(plan, needed, ranks)
        case ir.NodeScan() | ir.RankedScan() | ir.FusedScan():
            return replace(plan, node=_scan(plan.node, needed, ranks))
        case ir.Outer():
            return plan
    return replace(plan, input=_prune(plan.input, below, ranks))


def _started(on: tuple[str, ...], inner: ir.Plan, *calls: ir.Expr) -> tuple[tuple[str, ...], ir.Plan, Needed]:
    """The variables by whose combinations a nested plan starts, the plan, and the columns that it needs of the outer rows.
    The needed columns are the ids of nodes and edges, and the columns that the plan and the calls over its matches read. A
    value
    that is not read is removed: rows that differ only in it have the same matches, so the plan starts once for all of them.
    """
    read = _read((*ir.expressions_in(inner), *calls), among=on)
    named = {column.variable for column in read}
    unread = {variable for variable in on if ir.is_value(variable) and variable not in named}
    kept = tuple(variable for variable in on if variable not in unread)
    asked = read | {_id(variable) for variable in kept if not ir.is_value(variable)}
    return kept, ir.transform(inner, lambda leaf: _without(leaf, unread)) if unread else inner, asked


def _without(plan: ir.Plan, variables: set[str]) -> ir.Plan:
    """A leaf without these variables; any other operator unchanged."""
    if isinstance(plan, ir.Outer | ir.Empty) and not variables.isdisjoint(plan.variables):
        return replace(plan, variables=tuple(name for name in plan.variables if name not in variables))
    return plan


def _prune_attach(plan: ir.Attach, needed: Needed, ranks: Ranks) -> ir.Plan:
    if plan.column not in needed:
        return _prune(plan.input, needed, ranks)
    on, inner, asked = _started(plan.on, _prune(plan.inner, _read((plan.call,)), frozenset()), plan.call)
    return replace(plan, input=_prune(plan.input, (needed - {plan.column}) | asked, ranks), inner=inner, on=on)


def _in_order(columns: Iterable[ir.Column]) -> tuple[ir.Column, ...]:
    """The columns sorted, each once, even when it occurs with different nullability."""
    found = {(column.variable, column.property): column for column in columns}
    return tuple(found[key] for key in sorted(found))


def _type_of(variable: str) -> ir.Column:
    return ir.Column(variable, "@type", ir.STRING)


def _scan(node: ir.NodePattern, needed: Needed, ranks: Ranks) -> ir.NodePattern:
    distances = {rank for rank in ranks if isinstance(rank, ir.Nearest) and rank.field.variable == node.variable}
    return replace(node, columns=_names(node.variable, needed), distances=tuple(sorted(distances, key=ir.render_expr)))


def _prune_expand(plan: ir.Expand, needed: Needed, ranks: Ranks) -> ir.Expand:
    below = needed | {_id(plan.source)} | ({_id(plan.target.variable)} if plan.closing else frozenset())
    edge = replace(plan.edge, columns=_names(plan.edge.variable, needed))
    target = plan.target if plan.closing else replace(plan.target, columns=_names(plan.target.variable, needed))
    return replace(plan, input=_prune(plan.input, below, ranks), edge=edge, target=target)


def _without_columns(hop: ir.Hop) -> ir.Hop:
    """A hop that reads no columns, since a counted path needs none."""
    edge, target = replace(hop.edge, columns=()), replace(hop.target, columns=())
    return ir.Hop(hop.source, edge, target, tuple(map(_without_columns, hop.then)))


def _id(variable: str) -> ir.Column:
    return ir.Column(variable, "id", ir.STRING)


def _plain(column: ir.Column) -> ir.Column:
    """Ids and types in one form, so that their nullability does not make two columns of one."""
    return ir.Column(column.variable, column.property, ir.STRING) if column.property in ("id", "@type") else column


def _read(
    exprs: Iterable[ir.Expr | ir.UnknownAlias], ranks: Ranks = frozenset(), among: tuple[str, ...] | None = None
) -> Needed:
    """The columns that expressions read, of all variables or only of the variables `among`."""
    columns = frozenset(map(_plain, frozenset().union(*(_columns(expr, ranks) for expr in exprs))))
    return columns if among is None else frozenset(column for column in columns if column.variable in among)


def _columns(expr: ir.Expr | ir.UnknownAlias, ranks: Ranks) -> Needed:
    if not ranks:
        return ir.columns_of(expr)
    if expr in ranks:
        return frozenset()
    if isinstance(expr, ir.Rrf):
        return _columns(expr.left, ranks) | _columns(expr.right, ranks)
    return ir.columns_of(expr)


def _names(variable: str | None, needed: Needed) -> tuple[str, ...]:
    return tuple(sorted({column.property for column in needed if column.variable == variable}))
