"""Rule: a scan or traversal reads only the columns that something above it uses."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from omnigraph.language.query.ir import (
    STRING,
    Aggregate,
    AntiJoin,
    Bm25,
    Column,
    CountPaths,
    CountRows,
    CrossJoin,
    Expand,
    Expr,
    Filter,
    FusedScan,
    Hop,
    Limit,
    Nearest,
    NodePattern,
    NodeScan,
    Order,
    Outer,
    Plan,
    Project,
    RankedScan,
    Ranking,
    Rrf,
    UnknownAlias,
    children,
    columns_of,
    expressions_in,
    operands,
    render_expr,
)

Needed = frozenset[Column]
Ranks = frozenset[Ranking]


def prune_columns(plan: Plan) -> Plan:
    """Going down, each operator adds the columns it reads to those that are needed above it.

    Conditions inside a pattern are answered where it is matched, so their columns are not counted. A rank that a scan
    computes is handed up with its rows, so its vector or text is not read for it.
    """
    scanned = _scanned(plan)
    best = frozenset(scan.ranking for scan in scanned.values() if isinstance(scan, RankedScan | FusedScan))
    asked = frozenset(_ranks(plan, best))
    near = frozenset(rank for rank in asked if isinstance(rank, Nearest) and rank.field.variable in scanned)
    return _prune(plan, frozenset(), near | (asked & best))


def _ranks(plan: Plan, best: Ranks) -> Iterator[Ranking]:
    """The ranks that the result or its order asks for; those inside a fusion only when no scan knows the fusion."""
    while isinstance(plan, Project | Order | Limit):
        match plan:
            case Project():
                yield from (rank for column in plan.columns for rank in _ranks_in(column.expr, best))
            case Order():
                yield from (rank for key in plan.keys for rank in _ranks_in(key.expr, best))
        plan = plan.input


def _ranks_in(expr: Expr | UnknownAlias, best: Ranks) -> Iterator[Ranking]:
    if isinstance(expr, Nearest | Bm25 | Rrf):
        yield expr
        if expr in best:
            return
    for operand in operands(expr):
        yield from _ranks_in(operand, best)


def _scanned(plan: Plan) -> dict[str, NodeScan | RankedScan | FusedScan]:
    """The scans whose rows reach the result, by variable; those of a negation do not."""
    if isinstance(plan, NodeScan | RankedScan | FusedScan):
        return {plan.node.variable: plan}
    below = (plan.input,) if isinstance(plan, AntiJoin) else children(plan)
    return {variable: scan for child in below for variable, scan in _scanned(child).items()}


def _prune(plan: Plan, needed: Needed, ranks: Ranks) -> Plan:
    match plan:
        case Project():
            below = _read((column.expr for column in plan.columns), ranks)
        case Aggregate():
            below = _read(key.expr for key in plan.keys) | _read(column.call for column in plan.aggregates)
        case Order():
            below = needed | _read((*(key.expr for key in plan.keys), *plan.ties), ranks)
        case Limit():
            below = needed
        case Filter():
            below = needed | _read(plan.predicates)
        case CountPaths():
            hops = tuple(map(_without_columns, plan.hops))
            below = needed | {_id(hop.source) for hop in hops}
            return replace(plan, input=_prune(plan.input, below, ranks), hops=hops)
        case CountRows():
            counted = tuple(_prune(other, frozenset(), frozenset()) for other in plan.counted)
            return replace(plan, input=_prune(plan.input, needed, ranks), counted=counted)
        case AntiJoin():
            inner = _prune(plan.inner, frozenset(), frozenset())
            below = needed | {_id(name) for name in plan.on} | _read(expressions_in(inner), among=plan.on)
            return replace(plan, input=_prune(plan.input, below, ranks), inner=inner)
        case CrossJoin():
            return CrossJoin(_prune(plan.left, needed, ranks), _prune(plan.right, needed, ranks))
        case Expand():
            return _prune_expand(plan, needed, ranks)
        case NodeScan() | RankedScan() | FusedScan():
            return replace(plan, node=_scan(plan.node, needed, ranks))
        case Outer():
            return plan
    return replace(plan, input=_prune(plan.input, below, ranks))


def _scan(node: NodePattern, needed: Needed, ranks: Ranks) -> NodePattern:
    distances = {rank for rank in ranks if isinstance(rank, Nearest) and rank.field.variable == node.variable}
    return replace(node, columns=_names(node.variable, needed), distances=tuple(sorted(distances, key=render_expr)))


def _prune_expand(plan: Expand, needed: Needed, ranks: Ranks) -> Expand:
    below = needed | {_id(plan.source)} | ({_id(plan.target.variable)} if plan.closing else frozenset())
    edge = replace(plan.edge, columns=_names(plan.edge.variable, needed))
    target = plan.target if plan.closing else replace(plan.target, columns=_names(plan.target.variable, needed))
    return replace(plan, input=_prune(plan.input, below, ranks), edge=edge, target=target)


def _without_columns(hop: Hop) -> Hop:
    """Nobody reads what a counted path leads through."""
    edge, target = replace(hop.edge, columns=()), replace(hop.target, columns=())
    return Hop(hop.source, edge, target, tuple(map(_without_columns, hop.then)))


def _id(variable: str) -> Column:
    return Column(variable, "id", STRING)


def _read(
    exprs: Iterable[Expr | UnknownAlias], ranks: Ranks = frozenset(), among: tuple[str, ...] | None = None
) -> Needed:
    """The columns some expressions read, of all variables or only `among` some."""
    columns = frozenset().union(*(_columns(expr, ranks) for expr in exprs))
    return columns if among is None else frozenset(column for column in columns if column.variable in among)


def _columns(expr: Expr | UnknownAlias, ranks: Ranks) -> Needed:
    if not ranks:
        return columns_of(expr)
    if expr in ranks:
        return frozenset()
    if isinstance(expr, Rrf):
        return _columns(expr.left, ranks) | _columns(expr.right, ranks)
    return columns_of(expr)


def _names(variable: str | None, needed: Needed) -> tuple[str, ...]:
    return tuple(sorted({column.property for column in needed if column.variable == variable}))
