"""Bindings `$x: Type { … }` and traversals `$a edge $b`: the clauses that bind variables."""

from __future__ import annotations

from dataclasses import replace
from typing import NoReturn

from omnigraph.language.query.ast import Binding, ListLit, PathMatch, PropertyMatch, Traversal, Variable
from omnigraph.language.query.check.expressions import resolve
from omnigraph.language.query.check.scope import ANONYMOUS, Scope, is_several, property_type
from omnigraph.language.query.check.several import bind_several, joined_edges, joined_nodes, type_names
from omnigraph.language.query.check.tree import PathStep, Step, Turning
from omnigraph.language.query.check.values import declared_parameter, value_for
from omnigraph.language.query.ir import OPEN_END, Column, Compare, Direction, Member, Predicate
from omnigraph.language.schema.catalog import EdgeType, NodeType
from omnigraph.language.source import Place, Span

#: The type name that stands for all node types, or all edge types.
ANY = "*"

# --- bindings ---------------------------------------------------------------------------------------------------------


def check_binding(scope: Scope, clause: Binding) -> tuple[str, tuple[Predicate, ...]]:
    """Bind a node variable; returns its name and the conditions in its braces."""
    node_type = joined_nodes(_node_types(scope, clause))
    variable = scope.name_of(clause.variable)
    if variable in scope.edges:
        scope.error("T23", f"edge variable `${variable}` can not be bound again as a node", clause.span)
    if variable in scope.values or variable in scope.paths:
        scope.error("T32", f"`${variable}` is a value, it can not be bound as a node", clause.span)
    known = scope.nodes.setdefault(variable, node_type)
    if known.name != node_type.name:
        common = [name for name in type_names(known) if name in type_names(node_type)]
        if not common or not is_several(known):
            scope.error(None, f"variable `${variable}` is already bound to type {known.name}", clause.span)
        if variable in scope.outside and len(common) < len(type_names(known)):
            advice = f'ask for one with `${variable}.@type = "{common[0]}"`'
            scope.error(None, f"variable `${variable}` is already bound to type {known.name}; {advice}", clause.span)
        node_type = joined_nodes([scope.catalog.nodes[name] for name in common])
        scope.nodes[variable] = node_type
    return variable, tuple(_condition(scope, variable, node_type, match) for match in clause.matches)


def _node_types(scope: Scope, clause: Binding) -> list[NodeType]:
    """The types that a binding names: node types, the types that implement an interface, or all types."""
    nodes, interfaces = scope.catalog.nodes, scope.catalog.interfaces
    found: dict[str, NodeType] = {}
    for name in (clause.type_name, *clause.others):
        if name == ANY:
            found |= nodes
        elif name in nodes:
            found[name] = nodes[name]
        elif name in interfaces:
            found |= {kind.name: kind for kind in nodes.values() if name in kind.implements}
        else:
            known = (*nodes, *interfaces)
            scope.error("T1", f"unknown node type `{name}`", clause.span, name=name, known=known)
    if not found:
        scope.error("T1", f"no node type implements `{clause.type_name}`", clause.span)
    return list(found.values())


def _condition(scope: Scope, variable: str, node_type: NodeType, match: PropertyMatch) -> Predicate:
    """`property: value`: equality, or membership when the property is a list."""
    target = property_type(node_type, match.property)
    if target is None:
        scope.no_property("T2", node_type, match.property, match.span)
    owner = f"`{node_type.name}.{match.property}`"
    if target.is_blob:
        scope.error("T3", f"blob property {owner} cannot be used in match patterns", match.span)
    column = Column(variable, match.property, target)
    if not target.is_list:
        return Compare(column, "=", value_for(scope, match.value, target, owner, resolve))
    _refuse_list(scope, match, owner)
    return Member(column, value_for(scope, match.value, target.element(), f"an element of {owner}", resolve))


def _refuse_list(scope: Scope, match: PropertyMatch, owner: str) -> None:
    value = match.value
    if isinstance(value, ListLit):
        code = "T3"
    elif isinstance(value, Variable) and declared_parameter(scope, value, None).type.is_list:
        code = "T7"
    else:
        return
    message = f"list equality is not supported for {owner}; give one element to test membership"
    scope.error(code, message, value.span)


# --- traversals -------------------------------------------------------------------------------------------------------


def check_traversal(scope: Scope, clause: Traversal) -> Step:
    """Check a traversal and bind its ends and its edge variable if they are new."""
    edges = _edge_types(scope, clause)
    max_hops = _max_hops(scope, clause)
    _check_edge_variable(scope, clause)
    step = _step(scope, clause, edges, max_hops)
    if step.edge_variable is not None:
        scope.edges[step.edge_variable] = joined_edges(edges)
    return step


def check_path(scope: Scope, clause: PathMatch) -> PathStep:
    """Check a `shortest` or `all_shortest` between two nodes and bind the path variable."""
    traversal = clause.traversal
    if clause.variable != ANONYMOUS and scope.is_bound(clause.variable):
        scope.error("T32", f"`${clause.variable}` is already bound; give the path a name of its own", clause.span)
    edges = _edge_types(scope, traversal)
    max_hops = _max_hops(scope, traversal)
    for end in (traversal.source, traversal.target):
        if end not in scope.nodes:
            scope.error("T32", f"`shortest` connects two nodes that are bound; give `${end}: Type` first", clause.span)
    step = _step(scope, replace(traversal, edge_variable=None), edges, max_hops)
    if len(edges) > 1 or is_several(scope.nodes[step.source]) or step.source_type != step.target_type:
        scope.error("T32", "`shortest` follows edges of one type between nodes of one type", traversal.span)
    variable = scope.name_of(clause.variable)
    scope.paths[variable] = scope.nodes[step.source]
    place = None if clause.weight is None else Place(scope.source, clause.weight.span)
    return PathStep(variable, step, clause.every, _weight(scope, clause, edges[0]), place)


def _weight(scope: Scope, clause: PathMatch, edge: EdgeType) -> Column | None:
    """The property named by `by $e.cost`; None without `by`."""
    weight = clause.weight
    if weight is None:
        return None
    if clause.every:
        scope.error("T32", "`all_shortest` counts edges; only `shortest` takes a weight", weight.span)
    own = clause.traversal.edge_variable
    if own is not None and weight.variable != own:
        scope.error("T32", f"the weight is a property of the edge `${own}`", weight.span)
    if own is None and scope.is_bound(weight.variable):
        message = (
            f"the weight is a property of the edge, `${weight.variable}` is something else; give the edge a free name"
        )
        scope.error("T32", message, weight.span)
    kind = property_type(edge, weight.property)
    if kind is None:
        scope.no_property("T6", edge, weight.property, weight.span)
    if not kind.is_numeric:
        scope.error("T32", f"a weight is a number, `{edge.name}.{weight.property}` is {kind}", weight.span)
    return Column(weight.variable, weight.property, kind)


def _edge_types(scope: Scope, clause: Traversal) -> list[EdgeType]:
    """The edge types that a traversal names."""
    if clause.edge_word == ANY:
        if not scope.catalog.edges:
            scope.error("T4", "the schema has no edges", clause.span)
        return list(scope.catalog.edges.values())
    found: dict[str, EdgeType] = {}
    for word in (clause.edge_word, *clause.others):
        edge = scope.catalog.edge(word)
        if edge is None:
            words = [_as_word(name) for name in scope.catalog.edges]
            scope.error("T4", f"unknown edge `{word}`", clause.span, name=word, known=words)
        found[edge.name] = edge
    return list(found.values())


def _step(scope: Scope, clause: Traversal, edges: list[EdgeType], max_hops: int) -> Step:
    for variable in (clause.source, clause.target):
        if variable in scope.edges:
            scope.error("T23", f"edge variable `${variable}` can not be the endpoint of a traversal", clause.span)
        if variable in scope.values or variable in scope.paths:
            scope.error("T32", f"`${variable}` is a value, it can not be the endpoint of a traversal", clause.span)
    source, target = scope.name_of(clause.source), scope.name_of(clause.target)
    edge_variable = None if clause.edge_variable is None else scope.name_of(clause.edge_variable)
    if clause.undirected and len(edges) == 1 and edges[0].from_type != edges[0].to_type:
        scope.error(
            "T22",
            f"edge {edges[0].name} connects {edges[0].from_type} to {edges[0].to_type}; only an edge within one type can be "
            "followed both ways",
            clause.span,
        )
    several = len(edges) > 1 or any(name in scope.nodes and is_several(scope.nodes[name]) for name in (source, target))
    turning = Turning.BY_TYPE
    if several:
        turning = bind_several(scope, clause, edges, (source, target), max_hops)
        direction = Direction.BOTH if clause.undirected else Direction.OUT
    else:
        direction = _bind_ends(scope, clause, edges[0], source, target)
    return Step(
        source=source,
        source_type=scope.nodes[source].name,
        target=target,
        target_type=scope.nodes[target].name,
        edge_type=edges[0].name,
        direction=direction,
        min_hops=clause.min_hops,
        max_hops=max_hops,
        edge_variable=edge_variable,
        edges=tuple(edges) if several else (),
        turning=turning,
    )


def _as_word(edge_name: str) -> str:
    """The name of an edge type as it is written in a traversal."""
    return edge_name[:1].lower() + edge_name[1:]


def _max_hops(scope: Scope, clause: Traversal) -> int:
    if clause.max_hops is None:
        return OPEN_END
    if clause.max_hops < clause.min_hops:
        scope.error("T15", f"hop bounds {{{clause.min_hops},{clause.max_hops}}} end before they start", clause.span)
    return clause.max_hops


def _check_edge_variable(scope: Scope, clause: Traversal) -> None:
    name = clause.edge_variable
    if name is None:
        return
    if clause.has_bounds:
        scope.error(
            "T23",
            f"edge variable `${name}` takes no hop bounds: a multi-hop match is a path, not one edge",
            clause.span,
        )
    if name == ANONYMOUS:
        return
    if name in (clause.source, clause.target):
        scope.error(
            "T23",
            f"`${name}` is the edge variable and an endpoint of the same traversal; give them distinct names",
            clause.span,
        )
    if scope.is_bound(name):
        scope.error("T23", f"edge variable `${name}` is already bound; give it a name of its own", clause.span)


def _bind_ends(scope: Scope, clause: Traversal, edge: EdgeType, source: str, target: str) -> Direction:
    """Bind both ends; an end that is bound already determines the direction in which the edge is followed."""
    forward = _is_forward(scope, source, target, edge, clause.span)
    types = (edge.from_type, edge.to_type) if forward else (edge.to_type, edge.from_type)
    for variable, type_name in zip((source, target), types, strict=True):
        bound = scope.nodes.setdefault(variable, scope.catalog.nodes[type_name])
        if bound.name != type_name:
            _not_an_end(scope, variable, bound, edge, clause.span)
    if clause.undirected:
        return Direction.BOTH
    return Direction.OUT if forward else Direction.IN


def _is_forward(scope: Scope, source: str, target: str, edge: EdgeType, span: Span) -> bool:
    """Whether the written source is the `from` end of the edge; always true when both ends have the same type."""
    for variable, own_end, other_end in (
        (source, edge.from_type, edge.to_type),
        (target, edge.to_type, edge.from_type),
    ):
        bound = scope.nodes.get(variable)
        if bound is not None:
            if bound.name not in (own_end, other_end):
                _not_an_end(scope, variable, bound, edge, span)
            return bound.name == own_end
    return True


def _not_an_end(scope: Scope, variable: str, bound: NodeType, edge: EdgeType, span: Span) -> NoReturn:
    ends = f"edge {edge.name} connects {edge.from_type} to {edge.to_type}"
    scope.error("T5", f"`${variable}` is a {bound.name}, but {ends}", span)
