"""Lowering: a checked query → a plan of operators.
`lower_block` makes the plan of the matches of a block; `lower` adds the operators that make results from these matches.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import reduce

from omnigraph.errors import ResourceLimit
from omnigraph.language.literals import TypedValue
from omnigraph.language.query import ir
from omnigraph.language.query.check import (
    Block,
    CheckedMutation,
    CheckedQuery,
    CheckedRead,
    CheckedUnion,
    NestedBlock,
    PathStep,
    Step,
)
from omnigraph.language.query.check.several import chained_direction, connects, type_names, way_of
from omnigraph.language.query.check.tree import AttachedBlock, CheckedMatch
from omnigraph.language.schema.catalog import NodeType


@dataclass(frozen=True, slots=True)
class Link:
    """Two variables that must be connected; the edge's direction is seen from `source`."""

    source: str
    source_type: str
    edge: ir.EdgePattern
    target: str
    target_type: str


def connect(plan: ir.Plan, links: list[Link], nodes: Mapping[str, ir.NodePattern], bound: set[str]) -> ir.Plan:
    """Add an Expand for every link that can be reached from a bound variable, in the order of the links.
    Used links are removed from `links`; reached variables are added to `bound`. A link may be followed from either end, because
    the pairs of nodes within a distance are the same seen from both ends.
    """
    while True:
        link = next((link for link in links if link.source in bound or link.target in bound), None)
        if link is None:
            return plan
        links.remove(link)
        plan = _expand(plan, link if link.source in bound else _turned(link), nodes, bound)


def _turned(link: Link) -> Link:
    return Link(link.target, link.target_type, link.edge.reversed, link.source, link.source_type)


def _expand(plan: ir.Plan, link: Link, nodes: Mapping[str, ir.NodePattern], bound: set[str]) -> ir.Expand:
    closing = link.target in bound
    bound.add(link.target)
    target = ir.NodePattern(link.target, link.target_type) if closing else nodes[link.target]
    return ir.Expand(plan, link.source, link.edge, target, closing)


#: The most combinations of variable types of a block; each combination becomes a plan.
MAX_ALTERNATIVES = 256

#: The types of each variable bound so far: one type name, or several while it is undecided.
Types = Mapping[str, tuple[str, ...]]


def lower_block(block: Block, start: ir.Plan | None, types: Types | None = None) -> ir.Plan:
    """The plan of a block that extends the rows of `start`; `types` are the node types of the variables in `start`."""
    return _parts(block, 0, start, dict(types or {}))


def attach(plan: ir.Plan, attached: AttachedBlock, types: Types) -> ir.Plan:
    """The rows of a plan with a value computed over the matches of a nested block."""
    nested = attached.nested
    return ir.Attach(plan, _nested(nested, types), nested.outer, attached.column, attached.call)


def _nested(nested: NestedBlock, types: Types) -> ir.Plan:
    return lower_block(
        nested.block, ir.Outer(nested.outer), {name: types[name] for name in nested.outer if name in types}
    )


def _parts(block: Block, number: int, plan: ir.Plan | None, types: dict[str, tuple[str, ...]]) -> ir.Plan:
    """The parts of a block from part `number` on, over the rows (`plan`) of the parts before it."""
    if number:
        optional = block.optionals[number - 1]
        assert plan is not None
        plan = ir.OptionalJoin(plan, _nested(optional.nested, types), optional.nested.outer)
        types |= types_of(optional.nested.block.all_nodes)
    part = block.parts[number]
    types |= types_of(part.nodes)
    open_ = _open(block, number, types)
    found: list[ir.Plan] = []
    for assigned in _assignments(part, open_, types):
        if len(found) == MAX_ALTERNATIVES:
            raise ResourceLimit(
                f"the variables of a block have more than {MAX_ALTERNATIVES} combinations of types; name fewer types",
                resource="combinations of types",
                limit=MAX_ALTERNATIVES,
                actual=MAX_ALTERNATIVES + 1,
            )
        start = plan
        for name, kind in assigned.items():
            if name not in part.nodes and start is not None:
                start = of_type(start, name, kind, types[name])
        tags = tuple((name, kind) for name, kind in assigned.items() if name in part.nodes)
        decided = types | {name: (kind,) for name, kind in assigned.items()}
        found.append(_from(block, number, start, decided, tags))
    if not found:
        known = frozenset() if plan is None else ir.bound_variables(plan)
        own = (*block.all_nodes, *block.all_edges)
        return ir.Empty(tuple(dict.fromkeys((*sorted(known), *own))))
    return found[0] if len(found) == 1 else ir.Union(tuple(found), ())


def of_type(plan: ir.Plan, name: str, kind: str, kinds: tuple[str, ...]) -> ir.Plan:
    """The rows in which a variable of several types (`kinds`) has the type `kind`.
    Rows in which the variable is null belong to the first type; they take no steps from it.
    """
    column = ir.Column(name, "@type", ir.STRING.as_nullable())
    named: ir.Predicate = ir.Compare(column, "=", TypedValue(kind, ir.STRING))
    return ir.Filter(plan, (ir.Or((named, ir.IsNull(column))) if kind == kinds[0] else named,))


def types_of(nodes: Mapping[str, NodeType]) -> dict[str, tuple[str, ...]]:
    """The type names of each variable."""
    return {name: tuple(type_names(kind)) for name, kind in nodes.items()}


def _open(block: Block, number: int, types: Types) -> list[str]:
    """The variables of several types whose type must be decided in this part of the block."""
    part = block.parts[number]
    used = {end for step in (*part.steps, *(path.step for path in part.paths)) for end in (step.source, step.target)}
    inside = [*part.negations, *part.existing, *(attached.nested for attached in part.attached)]
    inside += [optional.nested for optional in block.optionals[number : number + 1]]
    for nested in inside:
        used |= set(nested.outer)
    return [name for name, kinds in types.items() if len(kinds) > 1 and (name in part.nodes or name in used)]


def _assignments(part: Block, open_: list[str], types: Types) -> Iterator[dict[str, str]]:
    """Each assignment of types to the open variables with which all steps of the part are possible."""
    steps = [*part.steps, *(path.step for path in part.paths)]

    def fits(assigned: Mapping[str, str]) -> bool:
        for step in steps:
            ends = [
                assigned.get(end) or (types[end][0] if end not in open_ else None) for end in (step.source, step.target)
            ]
            if not step.edges or ends[0] is None or ends[1] is None:
                continue
            if not connects(step.edges, ends[0], ends[1], (step.min_hops, step.max_hops), step.turning):
                return False
        return True

    def extend(assigned: dict[str, str], left: list[str]) -> Iterator[dict[str, str]]:
        if not left:
            yield assigned
            return
        for kind in types[left[0]]:
            longer = assigned | {left[0]: kind}
            if fits(longer):
                yield from extend(longer, left[1:])

    if fits({}):
        yield from extend({}, open_)


def _from(
    block: Block,
    number: int,
    start: ir.Plan | None,
    types: dict[str, tuple[str, ...]],
    tags: tuple[tuple[str, str], ...],
) -> ir.Plan:
    """One part of a block, with the types of its variables decided, and the parts after it."""
    plan = _part(block.parts[number], start, types, tags)
    return plan if number == len(block.optionals) else _parts(block, number + 1, plan, dict(types))


def _part(part: Block, start: ir.Plan | None, types: Types, tags: tuple[tuple[str, str], ...]) -> ir.Plan:
    nodes = {
        name: ir.NodePattern(name, types[name][0], part.patterns.get(name, ()), key=kind.key or ())
        for name, kind in part.nodes.items()
    }
    links = [_link(step, types) for step in part.steps]
    outer = frozenset() if start is None else ir.bound_variables(start)
    bound = set(outer)
    plans = [] if start is None else [connect(start, links, nodes, bound)]
    for variable in (*part.bound, *part.nodes):
        if variable not in bound:
            bound.add(variable)
            plans.append(connect(ir.NodeScan(nodes[variable]), links, nodes, bound))
    plan: ir.Plan = reduce(ir.CrossJoin, plans) if plans else ir.Outer(())
    tags = (*tags, *_edge_tags(part, types))
    if tags:
        plan = ir.Tag(plan, tags)
    for path in part.paths:
        plan = _shortest(plan, path)
    for attached in part.attached:
        plan = attach(plan, attached, types)
    filters = _filters(part, outer, types)
    if filters:
        plan = ir.Filter(plan, filters)
    for nested in part.existing:
        plan = ir.SemiJoin(plan, _nested(nested, types), nested.outer)
    for nested in part.negations:
        plan = ir.AntiJoin(plan, _nested(nested, types), nested.outer)
    return plan


def _filters(part: Block, outer: frozenset[str], types: Types) -> tuple[ir.Predicate, ...]:
    on_outer = (predicate for name, predicates in part.patterns.items() if name in outer for predicate in predicates)
    impossible = any(step.min_hops > 1 and not _chains(step, types) for step in part.steps)
    return (*on_outer, *part.filters, *((ir.FALSE,) if impossible else ()))


# --- steps ------------------------------------------------------------------------------------------------------------


def _shortest(plan: ir.Plan, path: PathStep) -> ir.Plan:
    step = path.step
    edge = ir.EdgePattern(step.edge_type, step.direction, step.min_hops, step.max_hops)
    weight = None if path.weight is None else path.weight.property
    ends = (step.source, edge, step.target, step.target_type)
    return ir.ShortestPaths(plan, path.variable, *ends, path.every, weight, place=path.place)


def _link(step: Step, types: Types) -> Link:
    source, target = types[step.source][0], types[step.target][0]
    followed = _followed(step, source, target)
    # An edge between two different types can not be followed twice in a row.
    bounds = (step.min_hops, step.max_hops) if _chains(step, types) else (1, 1)
    if source != target:
        # Zero hops are impossible between nodes of different types.
        bounds = (max(bounds[0], 1), bounds[1])
    edge_type, direction = followed[0]
    several = len(followed) > 1 or (step.edges and bounds[1] > 1 and source != target)
    edge = ir.EdgePattern(
        edge_type,
        direction,
        *bounds,
        variable=step.edge_variable,
        alternatives=followed if several else (),
        ends=(source, target) if several else None,
    )
    return Link(step.source, source, edge, step.target, target)


def _followed(step: Step, source: str, target: str) -> tuple[tuple[str, ir.Direction], ...]:
    """The edge types of a step between two node types, each with its direction."""
    if not step.edges:
        return ((step.edge_type, step.direction),)
    if (step.min_hops, step.max_hops) == (1, 1):
        found = [(edge.name, way_of(edge, source, target, step.turning)) for edge in step.edges]
        return tuple((name, direction) for name, direction in found if direction is not None)
    direction = chained_direction(step.edges, source, step.turning)
    return tuple((edge.name, direction) for edge in step.edges)


def _chains(step: Step, types: Types) -> bool:
    """Whether the edges of a step can be followed several times in a row."""
    return len(step.edges) > 1 or types[step.source] == types[step.target]


def _edge_tags(part: Block, types: Types) -> Iterator[tuple[str, str]]:
    """Tags for edge variables of several types where the types of the nodes leave only one edge type."""
    for step in part.steps:
        if step.edge_variable is not None and len(step.edges) > 1:
            followed = _followed(step, types[step.source][0], types[step.target][0])
            if len(followed) == 1:
                yield step.edge_variable, followed[0][0]


# From the matches of a block to results.


#: Plans are walked recursively, so their depth is bounded. Filters add no depth.
MAX_OPERATORS = 128
#: The largest row count; a larger `limit` is cut to it.
MOST_ROWS = 2**63 - 1


def lower(checked: CheckedQuery) -> ir.Plan | ir.MutationPlan:
    """The plan of a checked query."""
    if isinstance(checked.body, CheckedMutation):
        return ir.MutationPlan(tuple(map(_lower_statement, checked.body.statements)))
    return _lower_union(checked.body) if isinstance(checked.body, CheckedUnion) else _lower_read(checked.body)


def _lower_statement(statement: ir.Statement | CheckedMatch) -> ir.Statement:
    if not isinstance(statement, CheckedMatch):
        return statement
    _refuse_too_many_operators(statement.block)
    plan = lower_block(statement.block, None)
    for attached in statement.attached:
        plan = attach(plan, attached, types_of(statement.block.all_nodes))
    # The order by ids makes the effect independent of the order in which tables are read.
    keys = tuple(
        ir.OrderKey(id_, False, True) for id_ in _ids((*statement.block.all_nodes, *statement.block.all_edges))
    )
    plan = ir.Order(plan, keys, ()) if keys else plan
    return statement.statement(ir.Matches(ir.Project(plan, statement.columns), statement.text))


def row_count_parameters(plan: ir.Plan) -> list[str]:
    """The names of the parameters in `limit` and `offset`."""
    own = (
        [count.name for count in (plan.count, plan.offset) if isinstance(count, ir.Parameter)]
        if isinstance(plan, ir.Limit)
        else []
    )
    return own + [name for child in ir.children(plan) for name in row_count_parameters(child)]


def bind_row_counts(plan: ir.Plan, counts: Mapping[str, int | None]) -> ir.Plan:
    """The plan with numbers in place of the parameters of `limit` and `offset`; a null limit means no limit."""

    def bound(operator: ir.Plan) -> ir.Plan:
        if not isinstance(operator, ir.Limit):
            return operator
        count, offset = operator.count, operator.offset
        return replace(
            operator,
            count=counts[count.name] if isinstance(count, ir.Parameter) else count,
            offset=(counts[offset.name] or 0) if isinstance(offset, ir.Parameter) else offset,
        )

    return ir.transform(plan, bound)


def _lower_read(read: CheckedRead) -> ir.Plan:
    _refuse_too_many_operators(read.block)
    start: ir.Plan | None = None
    before = read.before
    if before is not None:
        values = (column.variable for column in before.values.values())
        start = ir.With(_lower_read(before.read), (*before.nodes, *values))
        for name, kinds in types_of(before.nodes).items():
            start = _fetched(start, name, kinds)
    types = {} if before is None else types_of(before.nodes)
    matched = lower_block(read.block, start, types)
    types |= types_of(read.block.all_nodes)
    for attached in read.attached:
        matched = attach(matched, attached, types)
    return _lower_results(read, matched)


def _fetched(plan: ir.Plan, name: str, kinds: tuple[str, ...]) -> ir.Plan:
    """The rows of a `with`, which hold only the ids of a node (and its type, if it has several), with its properties."""
    if len(kinds) == 1:
        return ir.Fetch(plan, ir.NodePattern(name, kinds[0]))
    return ir.Union(tuple(ir.Fetch(of_type(plan, name, kind, kinds), ir.NodePattern(name, kind)) for kind in kinds), ())


def _refuse_too_many_operators(block: Block) -> None:
    actual = _operators(block)
    if actual > MAX_OPERATORS:
        raise ResourceLimit(
            f"a query matches at most {MAX_OPERATORS} bindings, traversals and negations, this one {actual}; split it",
            resource="match clauses",
            limit=MAX_OPERATORS,
            actual=actual,
        )


def _operators(block: Block) -> int:
    own = sum(len(part.bound) + len(part.steps) + len(part.paths) for part in block.parts)
    return own + sum(1 + _operators(nested.block) for nested in block.nested)


# --- results ----------------------------------------------------------------------------------------------------------


def _lower_results(read: CheckedRead, matched: ir.Plan) -> ir.Plan:
    if read.aggregates:
        return _lower_groups(read, matched)
    if read.having:
        matched = ir.Filter(matched, read.having)
    if read.distinct:
        return _lower_distinct(read, matched, {})
    return ir.Project(_ordered(matched, read.order, _ties(read), read), read.columns)


def _ties(read: CheckedRead) -> tuple[ir.Column, ...]:
    """The tie-breakers of an order: the ids of nodes and edges, and the values named by a `with`."""
    block = read.block
    own = _ids((*block.all_nodes, *block.all_edges))
    if read.before is None:
        return own
    values = (column for column in read.before.values.values() if column.type.is_plain_scalar)
    return (*_ids(read.before.nodes), *values, *own)


def _lower_union(union: CheckedUnion) -> ir.Plan:
    left = _lower_union(union.left) if isinstance(union.left, CheckedUnion) else _lower_read(union.left)
    types = tuple(column.type for column in union.columns)
    plan: ir.Plan = ir.Union((left, _lower_read(union.right)), None, types)
    if not union.keeps_repeats:
        plan = ir.Aggregate(plan, union.columns, ())
    ties = tuple(ir.ResultColumn(column.name, column.type) for column in union.columns if column.type.is_plain_scalar)
    return ir.Project(_ordered(plan, union.order, ties, union), union.columns)


def _ids(variables: Iterable[str]) -> tuple[ir.Column, ...]:
    """The ids of the named variables; anonymous variables do not matter, since no result can show them."""
    return tuple(ir.Column(name, "id", ir.STRING) for name in variables if name.isidentifier())


def _ordered(
    plan: ir.Plan,
    order: tuple[ir.OrderKey, ...],
    ties: tuple[ir.Column | ir.ResultColumn, ...],
    read: CheckedRead | CheckedUnion,
) -> ir.Plan:
    if order:
        plan = ir.Order(plan, order, ties)
    if read.limit is None and read.offset == 0:
        return plan
    return ir.Limit(plan, _at_most(read.limit), _at_most(read.offset) or 0)


def _at_most(count: int | ir.Parameter | None) -> int | ir.Parameter | None:
    return min(count, MOST_ROWS) if isinstance(count, int) else count


def _lower_groups(read: CheckedRead, matched: ir.Plan) -> ir.Plan:
    """Group by all columns without aggregates; columns, conditions and order then read the columns of the groups."""
    named: dict[ir.Expr, str] = {}
    for column in read.columns:
        if isinstance(column.expr, ir.AggregateCall) or not _holds_aggregate(column.expr):
            named.setdefault(column.expr, column.name)
    keys = frozenset(expr for expr in named if not isinstance(expr, ir.AggregateCall))
    ordered = (key.expr for key in read.order if not isinstance(key.expr, ir.UnknownAlias))
    for expr in (*(column.expr for column in read.columns), *read.having, *ordered):
        parts: list[ir.Expr] = [*ir.aggregates_in(expr), *ir.outside_groups(expr, keys)]
        for part in parts:
            # The `#` keeps the name distinct from names in a text: the column is computed for others, not returned.
            named.setdefault(part, f"#{len(named)}")
    for kind in read.kinds:
        named.setdefault(kind, f"#{len(named)}")
    grouped = tuple(
        ir.OutputColumn(name, expr) for expr, name in named.items() if not isinstance(expr, ir.AggregateCall)
    )
    calls = tuple(ir.AggregateColumn(name, expr) for expr, name in named.items() if isinstance(expr, ir.AggregateCall))
    results: dict[ir.Expr, ir.Expr] = {expr: ir.ResultColumn(name, expr.type) for expr, name in named.items()}
    plan: ir.Plan = ir.Aggregate(matched, grouped, calls)
    if read.having:
        plan = ir.Filter(plan, tuple(ir.substituted(predicate, results) for predicate in read.having))
    if read.distinct and read.kinds:
        # Other groups show different rows already; nodes of several types may share an id.
        return _lower_distinct(read, plan, results)
    ties = tuple(ir.ResultColumn(key.name, key.type) for key in grouped if key.type.is_plain_scalar)
    plan = _ordered(plan, _reading(read.order, results), ties, read)
    return ir.Project(
        plan, tuple(ir.OutputColumn(column.name, ir.substituted(column.expr, results)) for column in read.columns)
    )


def _lower_distinct(read: CheckedRead, plan: ir.Plan, results: Mapping[ir.Expr, ir.Expr]) -> ir.Plan:
    """Distinct rows, as groups by all columns."""
    columns = tuple(ir.OutputColumn(column.name, ir.substituted(column.expr, results)) for column in read.columns)
    shown: dict[ir.Expr, ir.Expr] = {}
    for column in columns:
        shown.setdefault(column.expr, ir.ResultColumn(column.name, column.type))
    order = _reading(_reading(read.order, results), shown)
    ties = tuple(ir.ResultColumn(column.name, column.type) for column in columns if column.type.is_plain_scalar)
    plan = _ordered(ir.Aggregate(plan, columns, ()), order, ties, read)
    return ir.Project(
        plan, tuple(ir.OutputColumn(column.name, ir.ResultColumn(column.name, column.type)) for column in columns)
    )


def _reading(order: tuple[ir.OrderKey, ...], results: Mapping[ir.Expr, ir.Expr]) -> tuple[ir.OrderKey, ...]:
    """The order keys with the expressions in `results` replaced by their columns."""
    return tuple(
        key if isinstance(key.expr, ir.UnknownAlias) else replace(key, expr=ir.substituted(key.expr, results))
        for key in order
    )


def _holds_aggregate(expr: ir.Expr) -> bool:
    return any(True for _ in ir.aggregates_in(expr))
