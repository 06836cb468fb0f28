"""Lowering of a match block: which rows of bindings it has.

The evaluation model, one part of a block at a time: scans, then traversals and paths, then what is found over blocks, then
filters, then blocks that must or must not match. Bindings joined by traversals form a component; the first declared binding
of a component is scanned and the others are reached by traversal, their inline patterns being conditions on the target.
Components form a cross product. An optional block is joined to the rows of the part before it.

A variable that stands for nodes of several types is lowered once for each of them; the plans are united.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import reduce

from omnigraph.errors import ResourceLimit
from omnigraph.language.literals import TypedValue
from omnigraph.language.query.check import Block, NestedBlock, PathStep, Step
from omnigraph.language.query.check.several import chained_direction, connects, type_names, way_of
from omnigraph.language.query.check.tree import AttachedBlock
from omnigraph.language.query.connect import Link, connect
from omnigraph.language.query.ir import (
    FALSE,
    STRING,
    AntiJoin,
    Attach,
    Column,
    Compare,
    CrossJoin,
    Direction,
    EdgePattern,
    Empty,
    Filter,
    IsNull,
    NodePattern,
    NodeScan,
    OptionalJoin,
    Or,
    Outer,
    Plan,
    Predicate,
    SemiJoin,
    ShortestPaths,
    Tag,
    Union,
    bound_variables,
)
from omnigraph.language.schema.catalog import NodeType

#: How many plans the types of a block's variables may make.
MAX_ALTERNATIVES = 256

#: The types of the variables that are bound so far: one name, or several while it is open which.
Types = Mapping[str, tuple[str, ...]]


def lower_block(block: Block, start: Plan | None, types: Types | None = None) -> Plan:
    """The plan of a block whose rows begin with those of `start`, of which `types` are the types of nodes."""
    return _parts(block, 0, start, dict(types or {}))


def attach(plan: Plan, attached: AttachedBlock, types: Types) -> Plan:
    """The rows of a plan with what is found over the matches of a block."""
    nested = attached.nested
    return Attach(plan, _nested(nested, types), nested.outer, attached.column, attached.call)


def _nested(nested: NestedBlock, types: Types) -> Plan:
    return lower_block(nested.block, Outer(nested.outer), {name: types[name] for name in nested.outer if name in types})


def _parts(block: Block, number: int, plan: Plan | None, types: dict[str, tuple[str, ...]]) -> Plan:
    """The parts of a block from one on, over the rows of those before it."""
    if number:
        optional = block.optionals[number - 1]
        assert plan is not None
        plan = OptionalJoin(plan, _nested(optional.nested, types), optional.nested.outer)
        types |= types_of(optional.nested.block.all_nodes)
    part = block.parts[number]
    types |= types_of(part.nodes)
    open_ = _open(block, number, types)
    found: list[Plan] = []
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
        known = frozenset() if plan is None else bound_variables(plan)
        own = (*block.all_nodes, *block.all_edges)
        return Empty(tuple(dict.fromkeys((*sorted(known), *own))))
    return found[0] if len(found) == 1 else Union(tuple(found), ())


def of_type(plan: Plan, name: str, kind: str, kinds: tuple[str, ...]) -> Plan:
    """The rows in which a variable of several types has one of them.

    What stands for nothing goes with the first of the types, whose steps it does not take.
    """
    column = Column(name, "@type", STRING.as_nullable())
    named: Predicate = Compare(column, "=", TypedValue(kind, STRING))
    return Filter(plan, (Or((named, IsNull(column))) if kind == kinds[0] else named,))


def types_of(nodes: Mapping[str, NodeType]) -> dict[str, tuple[str, ...]]:
    """The names of the types of some variables."""
    return {name: tuple(type_names(kind)) for name, kind in nodes.items()}


def _open(block: Block, number: int, types: Types) -> list[str]:
    """The variables of several types that must be told apart from this part on."""
    part = block.parts[number]
    used = {end for step in (*part.steps, *(path.step for path in part.paths)) for end in (step.source, step.target)}
    inside = [*part.negations, *part.existing, *(attached.nested for attached in part.attached)]
    inside += [optional.nested for optional in block.optionals[number : number + 1]]
    for nested in inside:
        used |= set(nested.outer)
    return [name for name, kinds in types.items() if len(kinds) > 1 and (name in part.nodes or name in used)]


def _assignments(part: Block, open_: list[str], types: Types) -> Iterator[dict[str, str]]:
    """Each way to give the open variables a type, such that the steps of the part can lead somewhere."""
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
    block: Block, number: int, start: Plan | None, types: dict[str, tuple[str, ...]], tags: tuple[tuple[str, str], ...]
) -> Plan:
    """One part of a block, with the types of its variables decided, and the parts behind it."""
    plan = _part(block.parts[number], start, types, tags)
    return plan if number == len(block.optionals) else _parts(block, number + 1, plan, dict(types))


def _part(part: Block, start: Plan | None, types: Types, tags: tuple[tuple[str, str], ...]) -> Plan:
    nodes = {
        name: NodePattern(name, types[name][0], part.patterns.get(name, ()), key=kind.key or ())
        for name, kind in part.nodes.items()
    }
    links = [_link(step, types) for step in part.steps]
    outer = frozenset() if start is None else bound_variables(start)
    bound = set(outer)
    plans = [] if start is None else [connect(start, links, nodes, bound)]
    for variable in (*part.bound, *part.nodes):
        if variable not in bound:
            bound.add(variable)
            plans.append(connect(NodeScan(nodes[variable]), links, nodes, bound))
    plan: Plan = reduce(CrossJoin, plans) if plans else Outer(())
    tags = (*tags, *_edge_tags(part, types))
    if tags:
        plan = Tag(plan, tags)
    for path in part.paths:
        plan = _shortest(plan, path)
    for attached in part.attached:
        plan = attach(plan, attached, types)
    filters = _filters(part, outer, types)
    if filters:
        plan = Filter(plan, filters)
    for nested in part.existing:
        plan = SemiJoin(plan, _nested(nested, types), nested.outer)
    for nested in part.negations:
        plan = AntiJoin(plan, _nested(nested, types), nested.outer)
    return plan


def _filters(part: Block, outer: frozenset[str], types: Types) -> tuple[Predicate, ...]:
    on_outer = (predicate for name, predicates in part.patterns.items() if name in outer for predicate in predicates)
    impossible = any(step.min_hops > 1 and not _chains(step, types) for step in part.steps)
    return (*on_outer, *part.filters, *((FALSE,) if impossible else ()))


# --- steps ------------------------------------------------------------------------------------------------------------


def _shortest(plan: Plan, path: PathStep) -> Plan:
    step = path.step
    edge = EdgePattern(step.edge_type, step.direction, step.min_hops, step.max_hops)
    weight = None if path.weight is None else path.weight.property
    return ShortestPaths(plan, path.variable, step.source, edge, step.target, step.target_type, path.every, weight)


def _link(step: Step, types: Types) -> Link:
    source, target = types[step.source][0], types[step.target][0]
    followed = _followed(step, source, target)
    # An edge between two types leads to a node from which the same edge never goes on.
    bounds = (step.min_hops, step.max_hops) if _chains(step, types) else (1, 1)
    if source != target:
        # Nodes of two types are never the same.
        bounds = (max(bounds[0], 1), bounds[1])
    edge_type, direction = followed[0]
    several = len(followed) > 1 or (step.edges and bounds[1] > 1 and source != target)
    edge = EdgePattern(
        edge_type,
        direction,
        *bounds,
        variable=step.edge_variable,
        alternatives=followed if several else (),
        ends=(source, target) if several else None,
    )
    return Link(step.source, source, edge, step.target, target)


def _followed(step: Step, source: str, target: str) -> tuple[tuple[str, Direction], ...]:
    """The edge types of a step between two node types, each with the way it is followed."""
    if not step.edges:
        return ((step.edge_type, step.direction),)
    if (step.min_hops, step.max_hops) == (1, 1):
        found = [(edge.name, way_of(edge, source, target, step.turning)) for edge in step.edges]
        return tuple((name, direction) for name, direction in found if direction is not None)
    direction = chained_direction(step.edges, source, step.turning)
    return tuple((edge.name, direction) for edge in step.edges)


def _chains(step: Step, types: Types) -> bool:
    """Whether a step may have several hops."""
    return len(step.edges) > 1 or types[step.source] == types[step.target]


def _edge_tags(part: Block, types: Types) -> Iterator[tuple[str, str]]:
    """The types of edge variables that may have several, where the nodes leave only one."""
    for step in part.steps:
        if step.edge_variable is not None and len(step.edges) > 1:
            followed = _followed(step, types[step.source][0], types[step.target][0])
            if len(followed) == 1:
                yield step.edge_variable, followed[0][0]
