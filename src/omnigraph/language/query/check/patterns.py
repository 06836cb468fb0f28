"""Bindings `$x: Type { … }` and traversals `$a edge $b`: the clauses that bind variables."""

from __future__ import annotations

from typing import NoReturn

from omnigraph.language.query.ast import Binding, ListLit, PropertyMatch, Traversal, Variable
from omnigraph.language.query.check.expressions import resolve
from omnigraph.language.query.check.scope import ANONYMOUS, Scope, property_type
from omnigraph.language.query.check.tree import Step
from omnigraph.language.query.check.values import declared_parameter, value_for
from omnigraph.language.query.ir import Column, Compare, Direction, Member, Predicate
from omnigraph.language.schema.catalog import EdgeType, NodeType
from omnigraph.language.source import Span

# --- bindings ---------------------------------------------------------------------------------------------------------


def check_binding(scope: Scope, clause: Binding) -> tuple[str, tuple[Predicate, ...]]:
    """Bind a node variable; gives its name and the conditions of its braces."""
    node_type = scope.catalog.nodes.get(clause.type_name)
    if node_type is None:
        scope.error(
            "T1",
            f"unknown node type `{clause.type_name}`",
            clause.span,
            name=clause.type_name,
            known=scope.catalog.nodes,
        )
    variable = scope.name_of(clause.variable)
    if variable in scope.edges:
        scope.error("T23", f"edge variable `${variable}` can not be bound again as a node", clause.span)
    known = scope.nodes.setdefault(variable, node_type)
    if known is not node_type:
        scope.error(None, f"variable `${variable}` is already bound to type {known.name}", clause.span)
    return variable, tuple(_condition(scope, variable, node_type, match) for match in clause.matches)


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
    """Check a traversal and bind the ends and the edge variable that are new."""
    edge = scope.catalog.edge(clause.edge_word)
    if edge is None:
        words = [_as_word(name) for name in scope.catalog.edges]
        scope.error("T4", f"unknown edge `{clause.edge_word}`", clause.span, name=clause.edge_word, known=words)
    max_hops = _max_hops(scope, clause)
    if clause.undirected and edge.from_type != edge.to_type:
        scope.error(
            "T22",
            f"edge {edge.name} connects {edge.from_type} to {edge.to_type}; only an edge within one type can be "
            "followed both ways",
            clause.span,
        )
    _check_edge_variable(scope, clause)
    source, target, direction = _bind_ends(scope, clause, edge)
    edge_variable = None
    if clause.edge_variable is not None:
        edge_variable = scope.name_of(clause.edge_variable)
        scope.edges[edge_variable] = edge
    return Step(
        source=source,
        source_type=scope.nodes[source].name,
        target=target,
        target_type=scope.nodes[target].name,
        edge_type=edge.name,
        direction=direction,
        min_hops=clause.min_hops,
        max_hops=max_hops,
        edge_variable=edge_variable,
    )


def _as_word(edge_name: str) -> str:
    """How an edge is written in a traversal."""
    return edge_name[:1].lower() + edge_name[1:]


def _max_hops(scope: Scope, clause: Traversal) -> int:
    if clause.min_hops < 1:
        scope.error("T15", "the minimum of hop bounds is 1", clause.span)
    if clause.max_hops is None:
        scope.error("T15", "unbounded traversal is disabled; give a maximum, as in `{1,3}`", clause.span)
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


def _bind_ends(scope: Scope, clause: Traversal, edge: EdgeType) -> tuple[str, str, Direction]:
    """Bind both ends; the end that is bound already says which way the edge is followed."""
    for variable in (clause.source, clause.target):
        if variable in scope.edges:
            scope.error("T23", f"edge variable `${variable}` can not be the endpoint of a traversal", clause.span)
    source, target = scope.name_of(clause.source), scope.name_of(clause.target)
    forward = _is_forward(scope, source, target, edge, clause.span)
    types = (edge.from_type, edge.to_type) if forward else (edge.to_type, edge.from_type)
    for variable, type_name in zip((source, target), types, strict=True):
        bound = scope.nodes.setdefault(variable, scope.catalog.nodes[type_name])
        if bound.name != type_name:
            _not_an_end(scope, variable, bound, edge, clause.span)
    if clause.undirected:
        return source, target, Direction.BOTH
    return source, target, Direction.OUT if forward else Direction.IN


def _is_forward(scope: Scope, source: str, target: str, edge: EdgeType, span: Span) -> bool:
    """Whether the written source is the edge's `from`. With both types equal the written order always is."""
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
