"""The memory estimate of a plan, by which `engine="auto"` chooses between this process and Spark.
Row counts come from the tables and edges; a condition is assumed to keep a tenth of the rows. Counted is the memory that
operators hold as a whole: sorted or returned rows, groups, and the adjacency of traversed edges.
"""

from __future__ import annotations

from omnigraph.language.query import ir
from omnigraph.language.query.compile import CompiledQuery
from omnigraph.query.execute import read_plan
from omnigraph.query.run import Run

#: The assumed share of rows that each condition of a scan keeps.
_KEPT = 0.1
#: Bytes per value, and per edge in adjacency (two positions and its share of the ids).
_PER_VALUE = 32
_PER_EDGE = 24
#: The upper bound of an estimate, so that products of products do not overflow.
_MOST = 1e18


def exceeds_memory(compiled: CompiledQuery, run: Run) -> bool:
    """Whether the local engine would probably exceed its memory limit."""
    plan = read_plan(compiled.plan_for(run.params), compiled)
    return held_bytes(plan, run) > run.budget.limits.memory


def held_bytes(plan: ir.Plan, run: Run) -> float:
    """The estimated bytes that the plan holds at the same time."""
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
    """The estimated number of rows of an operator."""
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
    """The estimated rows of a step: the input rows times the average number of neighbours per hop, at most all nodes."""
    below = _rows(plan.input, run)
    nodes = run.nodes(plan.target.node_type).rows
    edges = _edges(plan.edge.alternatives or ((plan.edge.edge_type, None),), run)
    if plan.closing or not nodes:
        return below
    reached = min((edges / nodes) ** min(plan.edge.max_hops, 8), float(nodes)) if edges else 0.0
    share = _fitting(plan.target, run) / nodes
    return min(below * reached * share, _MOST)
