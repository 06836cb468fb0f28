"""Rules that start a chain of traversals at another node than its first declared binding.
A chain of scans and traversals is a join, which gives the same rows from any starting node.
"""

from __future__ import annotations

from dataclasses import replace

from omnigraph.language.query import ir
from omnigraph.language.query.lower import Link, connect
from omnigraph.language.query.rewrite.push_filters import sink


def start_at_lookup(plan: ir.Plan) -> ir.Plan:
    """Start a chain of traversals at a node with a lookup, if it has one.
    A link may be followed from its other end: the shortest path from a to b along the edges is as long as the shortest path
    from b
    to a against them.
    """
    if isinstance(plan, ir.Expand | ir.Filter):
        return _at_lookup(plan)
    return ir.map_children(plan, start_at_lookup)


def _at_lookup(plan: ir.Expand | ir.Filter) -> ir.Plan:
    """The chain of traversals and filters from here down to its leaf, restarted at a node with a lookup."""
    expands: list[ir.Expand] = []
    filters: list[ir.Predicate] = []
    below: ir.Plan = plan
    while isinstance(below, ir.Expand | ir.Filter):
        if isinstance(below, ir.Expand):
            expands.insert(0, below)
        elif any(map(ir.holds_rrf, below.predicates)):
            break
        else:
            filters[:0] = below.predicates
        below = below.input
    looked_up = [expand.target for expand in expands if expand.target.lookup is not None]
    if not isinstance(below, ir.NodeScan) or below.node.lookup is not None or not looked_up:
        return ir.map_children(plan, start_at_lookup)
    nodes = {expand.target.variable: expand.target for expand in expands if not expand.closing}
    nodes[below.node.variable] = below.node
    links = [_link(expand, nodes[expand.source].node_type) for expand in expands]
    restarted = connect(ir.NodeScan(looked_up[0]), links, nodes, {looked_up[0].variable})
    return sink(restarted, filters)


def start_at_read(plan: ir.Plan) -> ir.Plan:
    """Start a grouped count at the nodes by which it groups, so that the other nodes are only counted.
    Started at a node that is read, the chain's traversals lead to nodes that are not read and need not be enumerated. A scan
    with
    conditions or a lookup stays the start, since it has few rows.
    """
    return ir.transform(plan, _at_read)


def _at_read(plan: ir.Plan) -> ir.Plan:
    if not isinstance(plan, ir.Aggregate) or not all(column.call.counts_rows for column in plan.aggregates):
        return plan
    expands: list[ir.Expand] = []
    filters: list[ir.Predicate] = []
    below = plan.input
    while isinstance(below, ir.Expand | ir.Filter):
        if isinstance(below, ir.Expand):
            expands.insert(0, below)
        else:
            filters[:0] = below.predicates
        below = below.input
    read = frozenset().union(
        *(ir.variables_of(key.expr) for key in plan.keys), *(_read(plan)), *map(ir.variables_of, filters)
    )
    if not isinstance(below, ir.NodeScan) or not _can_move(below, expands, filters) or below.node.variable in read:
        return plan
    nodes = {expand.target.variable: expand.target for expand in expands if not expand.closing}
    start = next((node for name, node in nodes.items() if name in read), None)
    if start is None:
        return plan
    nodes[below.node.variable] = below.node
    links = [_link(expand, nodes[expand.source].node_type) for expand in expands]
    restarted = connect(ir.NodeScan(start), links, nodes, {start.variable})
    return replace(plan, input=sink(restarted, filters))


def _read(plan: ir.Aggregate) -> list[frozenset[str]]:
    return [ir.variables_of(column.call) for column in plan.aggregates]


def _can_move(scan: ir.NodeScan, expands: list[ir.Expand], filters: list[ir.Predicate]) -> bool:
    if scan.node.lookup is not None or scan.node.predicates:
        return False
    return not any(expand.target.lookup is not None for expand in expands) and not any(map(ir.holds_rrf, filters))


def _link(expand: ir.Expand, source_type: str) -> Link:
    return Link(expand.source, source_type, expand.edge, expand.target.variable, expand.target.node_type)
