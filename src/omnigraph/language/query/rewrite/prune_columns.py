"""Rule: a scan or traversal reads only the columns that something above it uses."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from omnigraph.language.query.ir import (
    STRING,
    Aggregate,
    AntiJoin,
    Bm25,
    Column,
    CountPaths,
    CrossJoin,
    Expand,
    Expr,
    Filter,
    Hop,
    Limit,
    Nearest,
    NodeScan,
    Order,
    Outer,
    Plan,
    Project,
    RankedScan,
    UnknownAlias,
    columns_of,
    expressions_in,
)

Needed = frozenset[Column]


def prune_columns(plan: Plan) -> Plan:
    """Going down, each operator adds the columns it reads to those that are needed above it.

    Conditions inside a pattern are answered where it is matched, so their columns are not counted. A rank that a
    RankedScan has computed is not computed again, so its vector or text is not read for it.
    """
    return _prune(plan, frozenset(), _ranking(plan))


def _ranking(plan: Plan) -> Nearest | Bm25 | None:
    """The rank that the scan at the bottom of a plan hands up with its rows."""
    while isinstance(plan, Project | Order):
        plan = plan.input
    return plan.ranking if isinstance(plan, RankedScan) else None


def _prune(plan: Plan, needed: Needed, ranking: Nearest | Bm25 | None = None) -> Plan:
    match plan:
        case Project():
            below = _read((column.expr for column in plan.columns), ranking)
        case Aggregate():
            below = _read(key.expr for key in plan.keys) | _read(column.call for column in plan.aggregates)
        case Order():
            below = needed | _read((*(key.expr for key in plan.keys), *plan.ties), ranking)
        case Limit():
            below = needed
        case Filter():
            below = needed | _read(plan.predicates)
        case CountPaths():
            hops = tuple(map(_without_columns, plan.hops))
            below = needed | {_id(hop.source) for hop in hops}
            return replace(plan, input=_prune(plan.input, below), hops=hops)
        case AntiJoin():
            inner = _prune(plan.inner, frozenset())
            below = needed | {_id(name) for name in plan.on} | _read(expressions_in(inner), among=plan.on)
            return replace(plan, input=_prune(plan.input, below), inner=inner)
        case CrossJoin():
            return CrossJoin(_prune(plan.left, needed), _prune(plan.right, needed))
        case Expand():
            return _prune_expand(plan, needed)
        case NodeScan() | RankedScan():
            return replace(plan, node=replace(plan.node, columns=_names(plan.node.variable, needed)))
        case Outer():
            return plan
    return replace(plan, input=_prune(plan.input, below, ranking))


def _prune_expand(plan: Expand, needed: Needed) -> Expand:
    below = needed | {_id(plan.source)} | ({_id(plan.target.variable)} if plan.closing else frozenset())
    edge = replace(plan.edge, columns=_names(plan.edge.variable, needed))
    target = plan.target if plan.closing else replace(plan.target, columns=_names(plan.target.variable, needed))
    return replace(plan, input=_prune(plan.input, below), edge=edge, target=target)


def _without_columns(hop: Hop) -> Hop:
    """Nobody reads what a counted path leads through."""
    edge, target = replace(hop.edge, columns=()), replace(hop.target, columns=())
    return Hop(hop.source, edge, target, tuple(map(_without_columns, hop.then)))


def _id(variable: str) -> Column:
    return Column(variable, "id", STRING)


def _read(
    exprs: Iterable[Expr | UnknownAlias], ranking: Nearest | Bm25 | None = None, among: tuple[str, ...] | None = None
) -> Needed:
    """The columns some expressions read, of all variables or only `among` some."""
    columns = frozenset().union(*(columns_of(expr) for expr in exprs if expr != ranking))
    return columns if among is None else frozenset(column for column in columns if column.variable in among)


def _names(variable: str | None, needed: Needed) -> tuple[str, ...]:
    return tuple(sorted({column.property for column in needed if column.variable == variable}))
