"""Rule: a component in which some node is looked up starts there instead of at its first declared binding."""

from __future__ import annotations

from omnigraph.language.query.ir import Expand, Filter, NodeScan, Plan, Predicate, holds_rrf, map_children
from omnigraph.language.query.lower import Link, connect
from omnigraph.language.query.rewrite.push_filters import sink


def start_at_lookup(plan: Plan) -> Plan:
    """Scans and traversals are a join, and a join gives the same rows from whichever side it starts.

    Following a link from its other end is right because distance is: the shortest path from a to b along the edges
    is as long as the one from b to a against them.
    """
    if isinstance(plan, Expand | Filter):
        return _restart(plan)
    return map_children(plan, start_at_lookup)


def _restart(plan: Expand | Filter) -> Plan:
    """The chain of traversals and filters from here down to its leaf, started anew where a node is looked up."""
    expands: list[Expand] = []
    filters: list[Predicate] = []
    below: Plan = plan
    while isinstance(below, Expand | Filter):
        if isinstance(below, Expand):
            expands.insert(0, below)
        elif any(map(holds_rrf, below.predicates)):
            break
        else:
            filters[:0] = below.predicates
        below = below.input
    looked_up = [expand.target for expand in expands if expand.target.lookup is not None]
    if not isinstance(below, NodeScan) or below.node.lookup is not None or not looked_up:
        return map_children(plan, start_at_lookup)
    nodes = {expand.target.variable: expand.target for expand in expands if not expand.closing}
    nodes[below.node.variable] = below.node
    links = [_link(expand, nodes[expand.source].node_type) for expand in expands]
    restarted = connect(NodeScan(looked_up[0]), links, nodes, {looked_up[0].variable})
    return sink(restarted, filters)


def _link(expand: Expand, source_type: str) -> Link:
    return Link(expand.source, source_type, expand.edge, expand.target.variable, expand.target.node_type)
