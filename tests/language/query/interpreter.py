"""Two naive ways to run a query over a graph in memory, to compare plans by what they mean.

`run_plan` executes a plan operator by operator. `run_clauses` does not know about plans: it tries every combination of
nodes and edges against the checked clauses.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

from omnigraph.language.literals import TypedValue
from omnigraph.language.query import ir
from omnigraph.language.query.check import Block, CheckedRead, Step

Entity = Mapping[str, Any]
Row = dict[str, Any]
Params = Mapping[str, Any]

#: The entry of a row that says how many paths it stands for.
WEIGHT = "#weight"


@dataclass
class Graph:
    """Nodes and edges by type; each is its properties with `id` (and `src`, `dst`)."""

    nodes: dict[str, list[Entity]] = field(default_factory=dict)
    edges: dict[str, list[Entity]] = field(default_factory=dict)

    def node(self, type_name: str, node_id: str) -> Entity:
        return next(node for node in self.nodes[type_name] if node["id"] == node_id)

    def neighbours(self, edge: str, direction: ir.Direction, node_id: str) -> Iterator[tuple[Entity, str]]:
        """Each edge at a node, once, with the id of its other end."""
        for row in self.edges.get(edge, []):
            if row["src"] == node_id and direction is not ir.Direction.IN:
                yield row, row["dst"]
            elif row["dst"] == node_id and direction is not ir.Direction.OUT:
                yield row, row["src"]

    def reached(self, edge: str, direction: ir.Direction, least: int, most: int, start: str) -> list[str]:
        """The ids whose shortest distance lies within the bounds; the start only through a self-loop."""
        distance = {start: 0}
        frontier = [start]
        found: list[str] = []
        loops = any(end == start for _, end in self.neighbours(edge, direction, start))
        if loops and least == 1:
            found.append(start)
        for hops in range(1, most + 1):
            frontier = list(
                dict.fromkeys(
                    end for node in frontier for _, end in self.neighbours(edge, direction, node) if end not in distance
                )
            )
            distance.update(dict.fromkeys(frontier, hops))
            found += frontier if hops >= least else []
        return found


# --- expressions ------------------------------------------------------------------------------------------------------

_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "=": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


def evaluate(expr: ir.Expr | ir.UnknownAlias, row: Row, params: Params) -> Any:
    def value(operand: ir.Expr) -> Any:
        return evaluate(operand, row, params)

    match expr:
        case ir.Column():
            return row[expr.variable][expr.property]
        case ir.ResultColumn():
            return row[expr.name]
        case TypedValue():
            return expr.value
        case ir.Parameter():
            return params[expr.name]
        case ir.Compare():
            return _known(_COMPARE[expr.operator], value(expr.left), value(expr.right))
        case ir.Prefix():
            return _known(str.startswith, value(expr.text), value(expr.prefix))
        case ir.Substring():
            return _known(str.__contains__, value(expr.text), value(expr.part))
        case ir.Member():
            return _known(tuple.__contains__, value(expr.items), value(expr.item))
        case ir.AnyToken():
            return _known(lambda text, query: bool({*text.split()} & {*query.split()}), *map(value, ir.operands(expr)))
        case ir.Nearest():
            vector = value(expr.field)
            return None if vector is None else math.dist(vector, value(expr.query))
    raise NotImplementedError(expr)


def _known(test: Callable[[Any, Any], bool], left: Any, right: Any) -> bool:
    """Null satisfies nothing."""
    return left is not None and right is not None and test(left, right)


def _holds(predicates: Iterable[ir.Predicate], row: Row, params: Params) -> bool:
    return all(evaluate(predicate, row, params) for predicate in predicates)


# --- plans ------------------------------------------------------------------------------------------------------------


def _operators(plan: ir.Plan) -> Iterator[ir.Plan]:
    yield plan
    for child in ir.children(plan):
        yield from _operators(child)


@dataclass
class _Run:
    graph: Graph
    params: Params
    outer: list[Row]

    def rows(self, plan: ir.Plan) -> list[Row]:
        match plan:
            case ir.NodeScan():
                return [{plan.node.variable: node} for node in self.matching(plan.node)]
            case ir.RankedScan():
                return self.ranked(plan)
            case ir.Outer():
                return self.outer if plan.variables else [{}]
            case ir.CrossJoin():
                return [{**left, **right} for left, right in product(self.rows(plan.left), self.rows(plan.right))]
            case ir.Expand():
                return [expanded for row in self.rows(plan.input) for expanded in self.expand(plan, row)]
            case ir.Filter():
                return [row for row in self.rows(plan.input) if _holds(plan.predicates, row, self.params)]
            case ir.AntiJoin():
                return [row for row in self.rows(plan.input) if not self.inner_rows(plan, row)]
            case ir.CountPaths():
                counted = [
                    {**row, WEIGHT: row.get(WEIGHT, 1) * self.paths(plan.hops, row)} for row in self.rows(plan.input)
                ]
                return [row for row in counted if row[WEIGHT]]
            case ir.CountRows():
                others = math.prod(sum(row.get(WEIGHT, 1) for row in self.rows(counted)) for counted in plan.counted)
                return [{**row, WEIGHT: row.get(WEIGHT, 1) * others} for row in self.rows(plan.input) if others]
            case ir.Aggregate():
                return self.groups(plan)
            case ir.Order():
                return order(self.enough(plan), plan.keys, plan.ties, self.params)[: plan.limit]
            case ir.Limit():
                return self.rows(plan.input)[: plan.count]
            case ir.Project():
                return [project(plan.columns, row, self.params) for row in self.rows(plan.input)]

    def enough(self, plan: ir.Order) -> list[Row]:
        """A best-first scan is asked for more when too few of its rows are left."""
        below, rows = plan.input, self.rows(plan.input)
        scans = [part for part in _operators(below) if isinstance(part, ir.RankedScan)]
        if plan.limit is None or not scans:
            return rows
        for limit in range(plan.limit, len(self.graph.nodes[scans[0].node.node_type]) + 1):
            below = ir.transform(
                below, lambda part, limit=limit: replace(part, limit=limit) if isinstance(part, ir.RankedScan) else part
            )
            rows = self.rows(below)
            if len(rows) >= plan.limit:
                break
        return rows

    def inner_rows(self, plan: ir.AntiJoin, row: Row) -> list[Row]:
        return _Run(self.graph, self.params, [{name: row[name] for name in plan.on}]).rows(plan.inner)

    def matching(self, node: ir.NodePattern) -> list[Entity]:
        return [entity for entity in self.graph.nodes[node.node_type] if self.fits(node, entity)]

    def fits(self, node: ir.NodePattern, entity: Entity) -> bool:
        if node.lookup is not None:
            wanted = [evaluate(value, {}, self.params) for value in node.lookup]
            names = ("id",) if node.lookup_by_id else node.key
            if wanted != [entity[name] for name in names]:
                return False
        return _holds(node.predicates, {node.variable: entity}, self.params)

    def ranked(self, plan: ir.RankedScan) -> list[Row]:
        rows = [{plan.node.variable: node} for node in self.matching(plan.node)]

        def distance(row: Row) -> float:
            value = evaluate(plan.ranking, row, self.params)
            return math.inf if value is None else value

        rows.sort(key=distance)
        last = distance(rows[plan.limit - 1]) if 0 < plan.limit <= len(rows) else math.inf
        return [row for row in rows if distance(row) <= last] if plan.limit else []

    def expand(self, plan: ir.Expand, row: Row) -> Iterator[Row]:
        for edge, end in self.steps(plan.edge, row[plan.source]["id"]):
            added: Row = {} if plan.edge.variable is None else {plan.edge.variable: edge}
            if not _holds(plan.edge.predicates, added, self.params):
                continue
            if plan.closing:
                if row[plan.target.variable]["id"] == end:
                    yield {**row, **added}
            else:
                target = self.graph.node(plan.target.node_type, end)
                if self.fits(plan.target, target):
                    yield {**row, **added, plan.target.variable: target}

    def steps(self, edge: ir.EdgePattern, start: str) -> Iterator[tuple[Entity, str]]:
        if edge.variable is not None:
            yield from self.graph.neighbours(edge.edge_type, edge.direction, start)
            return
        for end in self.graph.reached(edge.edge_type, edge.direction, edge.min_hops, edge.max_hops, start):
            yield {}, end

    def paths(self, hops: tuple[ir.Hop, ...], row: Row) -> int:
        total = 1
        for hop in hops:
            expand = ir.Expand(ir.Outer(()), hop.source, hop.edge, hop.target)
            total *= sum(self.paths(hop.then, reached) for reached in self.expand(expand, row))
        return total

    def groups(self, plan: ir.Aggregate) -> list[Row]:
        groups: dict[tuple[Any, ...], list[Row]] = {} if plan.keys else {(): []}
        for row in self.rows(plan.input):
            key = tuple(evaluate(column.expr, row, self.params) for column in plan.keys)
            groups.setdefault(key, []).append(row)
        return [
            {column.name: value for column, value in zip(plan.keys, key, strict=True)}
            | {column.name: aggregate(column.call, rows, self.params) for column in plan.aggregates}
            for key, rows in groups.items()
        ]


def aggregate(call: ir.AggregateCall, rows: list[Row], params: Params) -> Any:
    if call.argument is None:
        return sum(row.get(WEIGHT, 1) for row in rows)
    argument = call.argument
    values = [(evaluate(argument, row, params), row.get(WEIGHT, 1)) for row in rows]
    known = [(value, weight) for value, weight in values if value is not None]
    if call.function == "count":
        return sum(weight for _, weight in known)
    if not known:
        return None
    assert all(weight == 1 for _, weight in known), "only counts are weighted"
    numbers = [value for value, _ in known]
    total = {"sum": sum, "min": min, "max": max, "avg": lambda values: sum(values) / len(values)}
    return total[call.function](numbers)


def project(columns: Iterable[ir.OutputColumn], row: Row, params: Params) -> Row:
    return {column.name: evaluate(column.expr, row, params) for column in columns}


def order(
    rows: list[Row], keys: tuple[ir.OrderKey, ...], ties: tuple[ir.Column | ir.ResultColumn, ...], params: Params
) -> list[Row]:
    """Sort by the last key first; each sort is stable."""
    for tie in reversed(ties):
        rows = _sorted(rows, ir.OrderKey(tie, descending=False, nulls_first=True), params)
    for key in reversed(keys):
        rows = _sorted(rows, key, params)
    return rows


def _sorted(rows: list[Row], key: ir.OrderKey, params: Params) -> list[Row]:
    known = [row for row in rows if evaluate(key.expr, row, params) is not None]
    unknown = [row for row in rows if evaluate(key.expr, row, params) is None]
    known = sorted(known, key=lambda row: evaluate(key.expr, row, params), reverse=False)
    if key.descending:
        # `reverse=True` keeps equal rows in place, which is what is wanted here.
        known = sorted(known, key=lambda row: evaluate(key.expr, row, params), reverse=True)
    return unknown + known if key.nulls_first else known + unknown


def run_plan(plan: ir.Plan, graph: Graph, params: Params) -> list[Row]:
    """The result of a plan."""
    return _Run(graph, params, [{}]).rows(plan)


# --- clauses ----------------------------------------------------------------------------------------------------------


def run_clauses(read: CheckedRead, graph: Graph, params: Params) -> list[Row]:
    """The result of checked clauses, by trying everything."""
    rows = list(_assignments(read.block, graph, params, {}))
    if not read.aggregates:
        named = [name for name in (*read.block.nodes, *read.block.edges) if name.isidentifier()]
        ties = tuple(ir.Column(name, "id", ir.STRING) for name in named)
        if read.order:
            rows = order(rows, read.order, ties, params)
        return [project(read.columns, row, params) for row in rows[: read.limit]]
    keys = [column for column in read.columns if not isinstance(column.expr, ir.AggregateCall)]
    groups: dict[tuple[Any, ...], list[Row]] = {} if keys else {(): []}
    for row in rows:
        groups.setdefault(tuple(evaluate(column.expr, row, params) for column in keys), []).append(row)
    return [
        {
            column.name: aggregate(column.expr, members, params)
            if isinstance(column.expr, ir.AggregateCall)
            else evaluate(column.expr, members[0], params)
            for column in read.columns
        }
        for members in groups.values()
    ]


def _assignments(block: Block, graph: Graph, params: Params, outer: Row) -> Iterator[Row]:
    names = (*block.nodes, *block.edges)
    choices = [graph.nodes[kind.name] for kind in block.nodes.values()]
    choices += [graph.edges.get(kind.name, []) for kind in block.edges.values()]
    for chosen in product(*choices):
        row = {**outer, **dict(zip(names, chosen, strict=True))}
        if (
            all(_holds(predicates, row, params) for predicates in block.patterns.values())
            and all(_connects(step, graph, row) for step in block.steps)
            and _holds(block.filters, row, params)
            and not any(
                any(True for _ in _assignments(negated.block, graph, params, row)) for negated in block.negations
            )
        ):
            yield row


def _connects(step: Step, graph: Graph, row: Row) -> bool:
    source, target = row[step.source]["id"], row[step.target]["id"]
    if step.edge_variable is not None:
        edge = row[step.edge_variable]
        return any(
            found["id"] == edge["id"] and end == target
            for found, end in graph.neighbours(step.edge_type, step.direction, source)
        )
    if step.source_type != step.target_type:
        # Ids of different types may be equal texts; one hop is all such an edge has.
        return step.min_hops == 1 and any(
            end == target for _, end in graph.neighbours(step.edge_type, step.direction, source)
        )
    return target in graph.reached(step.edge_type, step.direction, step.min_hops, step.max_hops, source)
