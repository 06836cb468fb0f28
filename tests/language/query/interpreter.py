"""A naive interpreter of plans, which shows that lowering and every rule keep the meaning of a query.

What a query means is said by `tests.naive.reads`, on the tree as it was parsed; values are computed by the same operators and
functions here.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from itertools import product
from typing import Any

from omnigraph.language.literals import TypedValue
from omnigraph.language.query import ir
from omnigraph.language.query.ir import OPEN_END, VALUE, Direction
from tests.naive import values
from tests.naive.graph import Entity, World, plain
from tests.naive.reads import Reading

#: What the variables of a row stand for, or the columns of a result.
Row = dict[str, Any]
Params = Mapping[str, Any]

#: The entry of a row that says how many paths it stands for.
WEIGHT = "#weight"


# --- expressions ------------------------------------------------------------------------------------------------------


def evaluate(expr: ir.Expr | ir.UnknownAlias, row: Row, params: Params) -> Any:
    """The value of an expression for a row."""

    def value(operand: ir.Expr) -> Any:
        return evaluate(operand, row, params)

    match expr:
        case ir.Column():
            entity = row[expr.variable]
            if entity is None or expr.property == VALUE:
                return entity
            # A node that a `with` hands on is its id, as long as nothing else is read of it.
            return entity.read(expr.property) if isinstance(entity, Entity) else entity
        case ir.ResultColumn():
            return row[expr.name]
        case TypedValue():
            return plain(expr.value, expr.type)
        case ir.Parameter():
            return params[expr.name]
        case ir.Compare():
            return values.compare(value(expr.left), expr.operator, value(expr.right))
        case ir.Prefix():
            return values.compare(value(expr.text), "starts_with", value(expr.prefix))
        case ir.Suffix():
            return values.compare(value(expr.text), "ends_with", value(expr.suffix))
        case ir.Substring():
            text = value(expr.text)
            return None if text is None else values.compare(text, "contains", value(expr.part))
        case ir.Member():
            return values.member(value(expr.item), value(expr.items))
        case ir.IsNull():
            return value(expr.operand) is None
        case ir.Not():
            return values.negate(value(expr.operand))
        case ir.And():
            return _joined(expr.operands, row, params, decided=False)
        case ir.Or():
            return _joined(expr.operands, row, params, decided=True)
        case ir.Call():
            return _called(expr, [value(argument) for argument in expr.arguments])
        case ir.Conditional():
            pairs = zip(expr.conditions, expr.values, strict=True)
            return value(next((chosen for asked, chosen in pairs if value(asked) is True), expr.otherwise))
        case ir.AnyToken():
            return Reading.search(value(expr.field), value(expr.query))
        case ir.Nearest():
            vector = value(expr.field)
            return None if vector is None else math.dist(vector, value(expr.query))
    raise NotImplementedError(expr)


def _joined(operands: Iterable[ir.Expr], row: Row, params: Params, *, decided: bool) -> bool | None:
    truths = []
    for operand in operands:
        truths.append(evaluate(operand, row, params))
        if truths[-1] is decided:
            break
    return values.any_of(truths) if decided else values.all_of(truths)


def _called(expr: ir.Call, arguments: list[Any]) -> Any:
    if expr.function == "negative":
        return None if arguments[0] is None else values.bounded(-arguments[0])
    if expr.function not in ("+", "-", "*", "/", "%"):
        return values.call(expr.function, arguments)
    left, right = arguments
    if isinstance(left, datetime) and isinstance(right, int):
        right = timedelta(milliseconds=right)
    return values.arithmetic(left, expr.function, right)


def _holds(predicates: Iterable[ir.Predicate], row: Row, params: Params) -> bool:
    return all(evaluate(predicate, row, params) is True for predicate in predicates)


# --- plans ------------------------------------------------------------------------------------------------------------


def _best(limit: int, part: ir.Plan) -> ir.Plan:
    """A best-first scan with another limit; other operators as they are."""
    return replace(part, limit=limit) if isinstance(part, ir.RankedScan) else part


def _operators(plan: ir.Plan) -> Iterator[ir.Plan]:
    yield plan
    for child in ir.children(plan):
        yield from _operators(child)


@dataclass
class _Run:
    world: World
    params: Params
    outer: Row

    def rows(self, plan: ir.Plan) -> list[Row]:
        match plan:
            case ir.NodeScan():
                return [{plan.node.variable: node} for node in self.matching(plan.node)]
            case ir.RankedScan():
                return self.ranked(plan)
            case ir.Outer():
                return [{name: self.outer[name] for name in plan.variables}]
            case ir.Empty():
                return []
            case ir.CrossJoin():
                return [{**left, **right} for left, right in product(self.rows(plan.left), self.rows(plan.right))]
            case ir.Expand():
                return [expanded for row in self.rows(plan.input) for expanded in self.expand(plan, row)]
            case ir.Filter():
                return [row for row in self.rows(plan.input) if _holds(plan.predicates, row, self.params)]
            case ir.AntiJoin():
                return [row for row in self.rows(plan.input) if not self.inside(plan.inner, row)]
            case ir.SemiJoin():
                return [row for row in self.rows(plan.input) if self.inside(plan.inner, row)]
            case ir.OptionalJoin():
                return [joined for row in self.rows(plan.input) for joined in self.optional(plan, row)]
            case ir.Attach():
                return [{**row, plan.column.variable: self.attached(plan, row)} for row in self.rows(plan.input)]
            case ir.ShortestPaths():
                return [found for row in self.rows(plan.input) for found in self.shortest(plan, row)]
            case ir.With():
                return [self.named(plan, row) for row in self.rows(plan.input)]
            case ir.Fetch():
                return [fetched for row in self.rows(plan.input) for fetched in self.fetch(plan.node, row)]
            case ir.Tag():
                return self.rows(plan.input)
            case ir.Union():
                return self.united(plan)
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
                start, most = self.number(plan.offset) or 0, self.number(plan.count)
                return self.rows(plan.input)[start : None if most is None else start + most]
            case ir.Project():
                return [project(plan.columns, row, self.params) for row in self.rows(plan.input)]
        raise NotImplementedError(plan)

    def number(self, written: int | ir.Parameter | None) -> int | None:
        found: int | None = self.params[written.name] if isinstance(written, ir.Parameter) else written
        return found

    def inside(self, inner: ir.Plan, row: Row) -> list[Row]:
        """The rows of a nested plan for a row."""
        return _Run(self.world, self.params, row).rows(inner)

    def optional(self, plan: ir.OptionalJoin, row: Row) -> list[Row]:
        found = [{**row, **inner} for inner in self.inside(plan.inner, row)]
        return found or [{**dict.fromkeys(ir.bound_variables(plan.inner)), **row}]

    def attached(self, plan: ir.Attach, row: Row) -> Any:
        found = self.inside(plan.inner, row)
        return bool(found) if plan.call.function == "exists" else aggregate(plan.call, found, self.params)

    def shortest(self, plan: ir.ShortestPaths, row: Row) -> list[Row]:
        ends = (row[plan.source], row[plan.target])
        if None in ends:
            return []
        known = self.world.nodes[plan.node_type]
        source, target = (end if isinstance(end, Entity) else known[end] for end in ends)
        edge = self.world.catalog.edges[plan.edge.edge_type]
        most = None if plan.edge.max_hops == OPEN_END else plan.edge.max_hops
        way = str(plan.edge.direction)
        found = self.world.paths(edge, (source, target), plan.edge.min_hops, most, way, plan.weight)
        return [
            {
                **row,
                plan.columns["length"]: len(path.edges),
                plan.columns["nodes"]: tuple(node.id for node in path.nodes),
                plan.columns["edges"]: tuple(step.id for step in path.edges),
            }
            for path in (found if plan.every else found[:1])
        ]

    def named(self, plan: ir.With, row: Row) -> Row:
        """What a `with` names; a node is its id until it is fetched."""
        return {name: row[f"{name}.{VALUE if ir.is_value(name) else 'id'}"] for name in plan.variables}

    def fetch(self, node: ir.NodePattern, row: Row) -> list[Row]:
        id_ = row[node.variable]
        if id_ is None:
            return [] if node.predicates or node.lookup is not None else [row]
        entity = id_ if isinstance(id_, Entity) else self.world.nodes[node.node_type][id_]
        return [{**row, node.variable: entity}] if self.fits(node, entity) else []

    def united(self, plan: ir.Union) -> list[Row]:
        found = [row for part in plan.inputs for row in self.rows(part)]
        if plan.columns is None:
            return found
        names = frozenset().union(*map(ir.bound_variables, plan.inputs))
        return [{**dict.fromkeys(names), **row} for row in found]

    def enough(self, plan: ir.Order) -> list[Row]:
        """A best-first scan is asked for more when too few of its rows are left."""
        below, rows = plan.input, self.rows(plan.input)
        scans = [part for part in _operators(below) if isinstance(part, ir.RankedScan)]
        if plan.limit is None or not scans:
            return rows
        for limit in range(plan.limit, len(self.world.nodes[scans[0].node.node_type]) + 1):
            below = ir.transform(below, partial(_best, limit))
            rows = self.rows(below)
            if len(rows) >= plan.limit:
                break
        return rows

    def matching(self, node: ir.NodePattern) -> list[Entity]:
        return [entity for entity in self.world.of_types((node.node_type,)) if self.fits(node, entity)]

    def fits(self, node: ir.NodePattern, entity: Entity) -> bool:
        if node.lookup is not None:
            wanted = [evaluate(value, {}, self.params) for value in node.lookup]
            names = ("id",) if node.lookup_by_id else node.key
            if wanted != [entity.read(name) for name in names]:
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
        source = row[plan.source]
        if source is None:
            return
        if not isinstance(source, Entity):
            source = self.world.nodes[self.starting_type(plan.edge)][source]
        for edge, end in self.steps(plan.edge, source):
            added: Row = {} if plan.edge.variable is None else {plan.edge.variable: edge}
            if not _holds(plan.edge.predicates, added, self.params):
                continue
            if plan.closing:
                if row[plan.target.variable] in (end, end.id):
                    yield {**row, **added}
            elif end.type == plan.target.node_type and self.fits(plan.target, end):
                yield {**row, **added, plan.target.variable: end}

    def starting_type(self, edge: ir.EdgePattern) -> str:
        """The type of the nodes that a step starts from."""
        declared = self.world.catalog.edges[edge.edge_type]
        if edge.ends is not None:
            return edge.ends[0]
        return declared.to_type if edge.direction is Direction.IN else declared.from_type

    def steps(self, edge: ir.EdgePattern, start: Entity) -> Iterator[tuple[Entity | None, Entity]]:
        """The ends of a step, each once; with an edge variable once for each edge."""
        followed = edge.alternatives or ((edge.edge_type, edge.direction),)

        def next_to(node: Entity) -> list[tuple[Entity, Entity]]:
            edges = self.world.catalog.edges
            return [found for name, way in followed for found in self.world.following(edges[name], node, _way(way))]

        if edge.variable is not None:
            yield from next_to(start)
            return
        distance = {start: 0}
        frontier = [start]
        if edge.min_hops == 1 and any(end == start for _, end in next_to(start)):
            distance[start] = 1
        seen = {start}
        hops = 0
        while frontier and hops < edge.max_hops:
            hops += 1
            reached = dict.fromkeys(end for node in frontier for _, end in next_to(node))
            frontier = [node for node in reached if node not in seen]
            seen.update(frontier)
            distance |= dict.fromkeys(frontier, hops)
        for node, far in distance.items():
            if edge.min_hops <= far <= edge.max_hops:
                yield None, node

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


def _way(direction: Direction) -> str:
    return str(direction)


def aggregate(call: ir.AggregateCall, rows: list[Row], params: Params) -> Any:
    """An aggregate over rows, each of which counts as often as it says."""
    weights = [row.get(WEIGHT, 1) for row in rows]
    if call.argument is None:
        return sum(weights)
    found = [evaluate(call.argument, row, params) for row in rows]
    if call.counts_rows:
        return sum(weight for value, weight in zip(found, weights, strict=True) if value is not None)
    assert call.distinct or all(weight == 1 for weight in weights), "only counts are weighted"
    fraction = None if call.fraction is None else evaluate(call.fraction, {}, params)
    return values.aggregate(call.function, found, distinct=call.distinct, fraction=fraction)


def project(columns: Iterable[ir.OutputColumn], row: Row, params: Params) -> Row:
    return {column.name: evaluate(column.expr, row, params) for column in columns}


def order(
    rows: list[Row], keys: tuple[ir.OrderKey, ...], ties: tuple[ir.Column | ir.ResultColumn, ...], params: Params
) -> list[Row]:
    """Sort by the last key first; each sort is stable."""
    for key in reversed((*keys, *(ir.OrderKey(tie, descending=False, nulls_first=True) for tie in ties))):
        rows = _sorted(rows, key, params)
    return rows


def _sorted(rows: list[Row], key: ir.OrderKey, params: Params) -> list[Row]:
    found = [(evaluate(key.expr, row, params), row) for row in rows]
    unknown = [row for value, row in found if value is None]
    known = sorted((pair for pair in found if pair[0] is not None), key=lambda pair: pair[0], reverse=key.descending)
    ordered = [row for _, row in known]
    return [*unknown, *ordered] if key.nulls_first else [*ordered, *unknown]


def run_plan(plan: ir.Plan, world: World, params: Params) -> list[Row]:
    """The result of a plan."""
    return _Run(world, params, {}).rows(plan)
