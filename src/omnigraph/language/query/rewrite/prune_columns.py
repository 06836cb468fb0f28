"""Rule: a scan or traversal reads only the columns that something above it uses."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from omnigraph.language.query.ir import (
    STRING,
    VALUE,
    Aggregate,
    AntiJoin,
    Attach,
    Bm25,
    Column,
    CountPaths,
    CountRows,
    CrossJoin,
    Empty,
    Expand,
    Expr,
    Fetch,
    Filter,
    FusedScan,
    Hop,
    Limit,
    Nearest,
    NodePattern,
    NodeScan,
    OptionalJoin,
    Order,
    Outer,
    Plan,
    Project,
    RankedScan,
    Ranking,
    Rrf,
    SemiJoin,
    ShortestPaths,
    Tag,
    Union,
    UnknownAlias,
    With,
    bound_variables,
    children,
    columns_of,
    expressions_in,
    is_value,
    operands,
    render_expr,
)

Needed = frozenset[Column]
Ranks = frozenset[Ranking]


def prune_columns(plan: Plan) -> Plan:
    """Going down, each operator adds the columns it reads to the columns that are needed above it.

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
    if isinstance(plan, With | Union):
        # What a scan below these has computed is not handed on.
        return {}
    nested = isinstance(plan, AntiJoin | SemiJoin | OptionalJoin | Attach)
    below = (plan.input,) if nested else children(plan)  # type: ignore[union-attr]
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
        case AntiJoin() | SemiJoin():
            inner = _prune(plan.inner, frozenset(), frozenset())
            return replace(plan, input=_prune(plan.input, needed | _asked(plan.on, inner), ranks), inner=inner)
        case OptionalJoin():
            own = bound_variables(plan.inner) - frozenset(plan.on)
            inner = _prune(plan.inner, frozenset(column for column in needed if column.variable in own), frozenset())
            below = frozenset(column for column in needed if column.variable not in own) | _asked(plan.on, inner)
            return replace(plan, input=_prune(plan.input, below, ranks), inner=inner)
        case Attach():
            return _prune_attach(plan, needed, ranks)
        case ShortestPaths():
            parts = frozenset(plan.columns.values())
            below = frozenset(column for column in needed if column.variable not in parts)
            below |= {_id(plan.source), _id(plan.target)}
            read = tuple(part for part, name in plan.columns.items() if any(name == c.variable for c in needed))
            return replace(plan, input=_prune(plan.input, below, ranks), reading=read)
        case Fetch():
            # The type of a node of several types is known before it is fetched.
            mine = (column for column in needed if column.variable == plan.node.variable)
            fetched = frozenset(column for column in mine if column.property != "@type")
            names = tuple(name for name in _names(plan.node.variable, fetched) if name != "id")
            input_ = _prune(plan.input, (needed - fetched) | {_id(plan.node.variable)}, ranks)
            return Fetch(input_, replace(plan.node, columns=names)) if names else input_
        case With():
            return replace(plan, input=prune_columns(plan.input))
        case Tag():
            types = tuple((name, kind) for name, kind in plan.types if _type_of(name) in needed)
            input_ = _prune(plan.input, needed - {_type_of(name) for name, _ in plan.types}, ranks)
            return Tag(input_, types) if types else input_
        case Union():
            if plan.columns is None:
                return replace(plan, inputs=tuple(map(prune_columns, plan.inputs)))
            columns = _in_order(column for column in needed if column.variable in bound_variables(plan))
            return replace(
                plan, inputs=tuple(_prune(below, needed, frozenset()) for below in plan.inputs), columns=columns
            )
        case Empty():
            return replace(plan, columns=_in_order(column for column in needed if column.variable in plan.variables))
        case CrossJoin():
            return CrossJoin(_prune(plan.left, needed, ranks), _prune(plan.right, needed, ranks))
        case Expand():
            return _prune_expand(plan, needed, ranks)
        case NodeScan() | RankedScan() | FusedScan():
            return replace(plan, node=_scan(plan.node, needed, ranks))
        case Outer():
            return plan
    return replace(plan, input=_prune(plan.input, below, ranks))


def _asked(on: tuple[str, ...], inner: Plan) -> Needed:
    """What a nested plan needs of the rows it is started with: who their variables are, and what it reads of them."""
    return frozenset(map(_identity, on)) | _read(expressions_in(inner), among=on)


def _prune_attach(plan: Attach, needed: Needed, ranks: Ranks) -> Plan:
    if plan.column not in needed:
        return _prune(plan.input, needed, ranks)
    inner = _prune(plan.inner, _read((plan.call,)), frozenset())
    below = (needed - {plan.column}) | _asked(plan.on, inner) | _read((plan.call,), among=plan.on)
    return replace(plan, input=_prune(plan.input, below, ranks), inner=inner)


def _in_order(columns: Iterable[Column]) -> tuple[Column, ...]:
    """Each column once, whatever is said about its nulls."""
    found = {(column.variable, column.property): column for column in columns}
    return tuple(found[key] for key in sorted(found))


def _identity(variable: str) -> Column:
    """The column that says which node, edge or value a variable stands for."""
    return Column(variable, VALUE, STRING) if is_value(variable) else _id(variable)


def _type_of(variable: str) -> Column:
    return Column(variable, "@type", STRING)


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


def _plain(column: Column) -> Column:
    """Ids and types are the same columns whether they may be null or not."""
    return Column(column.variable, column.property, STRING) if column.property in ("id", "@type") else column


def _read(
    exprs: Iterable[Expr | UnknownAlias], ranks: Ranks = frozenset(), among: tuple[str, ...] | None = None
) -> Needed:
    """The columns some expressions read, of all variables or only `among` some."""
    columns = frozenset(map(_plain, frozenset().union(*(_columns(expr, ranks) for expr in exprs))))
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
