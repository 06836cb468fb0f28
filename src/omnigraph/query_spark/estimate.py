"""Whether a plan would hold more in this process than it may: what `engine="auto"` decides by.

Counts of rows come from the tables, of a step from its edges; conditions are taken to keep a tenth. What is held is what an
operator needs whole: rows that are sorted or returned, groups, and the adjacency of traversed edges.
"""

from __future__ import annotations

from omnigraph.language.query import ir
from omnigraph.language.query.compile import CompiledQuery
from omnigraph.query.execute import read_plan
from omnigraph.query.run import Run

#: The share of the rows of a scan that one more condition keeps.
_KEPT = 0.1
#: Bytes of a value, and of an edge in adjacency: its two positions and its share of the ids.
_PER_VALUE = 32
_PER_EDGE = 24
#: No estimate is larger: products of products would be no numbers any more.
_MOST = 1e18


def exceeds_memory(compiled: CompiledQuery, run: Run) -> bool:
    """Whether the local engine is expected to refuse the query."""
    plan = read_plan(compiled.plan_for(run.params), compiled)
    return held_bytes(plan, run) > run.budget.limits.memory


def held_bytes(plan: ir.Plan, run: Run) -> float:
    """Bytes that the plan is expected to hold at the same time."""
    own = 0.0
    match plan:
        case ir.Project():
            own = _PER_VALUE * len(plan.columns) * _rows(plan, run)
        case ir.Order():
            own = _PER_VALUE * (len(plan.keys) + len(plan.ties)) * _rows(plan, run)
        case ir.Aggregate() if plan.keys:
            own = _PER_VALUE * (len(plan.keys) + len(plan.aggregates)) * _rows(plan, run)
        case ir.Expand():
            own = _PER_EDGE * _edges(plan.edge.alternatives or ((plan.edge.edge_type, None),), run)
        case ir.ShortestPaths():
            own = _PER_EDGE * _edges(((plan.edge.edge_type, None),), run)
        case ir.CountPaths():
            own = sum(_hop_bytes(hop, run) for hop in plan.hops)
    return min(own + sum(held_bytes(child, run) for child in ir.children(plan)), _MOST)


def _hop_bytes(hop: ir.Hop, run: Run) -> float:
    return _PER_EDGE * run.edges(hop.edge.edge_type).rows + sum(_hop_bytes(then, run) for then in hop.then)


def _edges(alternatives: tuple[tuple[str, object], ...], run: Run) -> float:
    return float(sum(run.edges(name).rows for name, _ in alternatives))


def _rows(plan: ir.Plan, run: Run) -> float:
    """About how many rows an operator makes."""
    match plan:
        case ir.NodeScan() | ir.RankedScan() | ir.FusedScan():
            found = _fitting(plan.node, run)
            return found if isinstance(plan, ir.NodeScan) else min(found, plan.limit)
        case ir.Outer():
            return 1.0
        case ir.Empty():
            return 0.0
        case ir.CrossJoin():
            return min(_rows(plan.left, run) * _rows(plan.right, run), _MOST)
        case ir.Expand():
            return _expanded(plan, run)
        case ir.Union():
            return sum(_rows(child, run) for child in plan.inputs)
        case ir.Aggregate():
            return _rows(plan.input, run) if plan.keys else 1.0
        case ir.Order():
            found = _rows(plan.input, run)
            return found if plan.limit is None else min(found, plan.limit)
        case ir.Limit():
            found = _rows(plan.input, run)
            return min(found, plan.count) if isinstance(plan.count, int) else found
        case ir.OptionalJoin():
            return min(_rows(plan.input, run) * max(1.0, _rows(plan.inner, run)), _MOST)
        case ir.AntiJoin() | ir.SemiJoin() | ir.Attach() | ir.CountRows():
            return _rows(plan.input, run)
        case _:
            return _rows(plan.input, run)


def _fitting(node: ir.NodePattern, run: Run) -> float:
    if node.lookup is not None:
        return 1.0
    return run.nodes(node.node_type).rows * float(_KEPT ** len(node.predicates))


def _expanded(plan: ir.Expand, run: Run) -> float:
    """The rows below times the neighbours that a node has on average, for each hop; at most all nodes for each row."""
    below = _rows(plan.input, run)
    nodes = run.nodes(plan.target.node_type).rows
    edges = _edges(plan.edge.alternatives or ((plan.edge.edge_type, None),), run)
    if plan.closing or not nodes:
        return below
    reached = min((edges / nodes) ** min(plan.edge.max_hops, 8), float(nodes)) if edges else 0.0
    share = _fitting(plan.target, run) / nodes
    return min(below * reached * share, _MOST)
