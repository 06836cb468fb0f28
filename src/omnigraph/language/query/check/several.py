"""Variables that stand for nodes or edges of several types: `$x: A|B`, `$a knows|likes $b`, interfaces and `*`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from omnigraph.language.query.ast import Traversal
from omnigraph.language.query.check.scope import Scope
from omnigraph.language.query.check.tree import Turning
from omnigraph.language.query.ir import Direction
from omnigraph.language.schema.catalog import EdgeType, EntityType, NodeType, Property
from omnigraph.language.types import PropType


def type_names(entity: EntityType) -> list[str]:
    """The names of the types that a (joined) type stands for."""
    return entity.name.split("|")


def joined_nodes(types: Sequence[NodeType]) -> NodeType:
    """A joined type for nodes of several types; it has the properties that all of them share."""
    if len(types) == 1:
        return types[0]
    return NodeType("|".join(kind.name for kind in types), _common(types))


def joined_edges(types: Sequence[EdgeType]) -> EdgeType:
    """A joined type for edges of several types; it has the properties that all of them share."""
    if len(types) == 1:
        return types[0]
    return EdgeType("|".join(kind.name for kind in types), _common(types))


def _common(types: Sequence[EntityType]) -> dict[str, Property]:
    """The properties that all types have with the same type; nullable when one of them is nullable."""
    found: dict[str, Property] = {}
    for name, declared in types[0].properties.items():
        others = [kind.properties.get(name) for kind in types]
        known = [other.type for other in others if other is not None]
        if len(known) == len(types) and len({_shape(kind) for kind in known}) == 1:
            enum = declared.type.enum if len({kind.enum for kind in known}) == 1 else None
            nullable = any(kind.nullable for kind in known)
            found[name] = replace(declared, type=replace(declared.type, enum=enum, nullable=nullable))
    return found


def _shape(kind: PropType) -> PropType:
    return replace(kind, enum=None, nullable=False)


def way_of(edge: EdgeType, source: str, target: str, turning: Turning) -> Direction | None:
    """The direction in which one edge leads from a type to another; None when it does not connect these types."""
    if (source, target) == (edge.from_type, edge.to_type):
        return Direction.BOTH if turning is Turning.ALWAYS and source == target else Direction.OUT
    turned = (target, source) == (edge.from_type, edge.to_type) and turning is not Turning.NEVER
    return Direction.IN if turned else None


def chained_direction(edges: Sequence[EdgeType], source: str, turning: Turning) -> Direction:
    """The direction of all edges of a multi-hop step: forwards when an edge type begins at the source, else backwards."""
    if turning is Turning.ALWAYS:
        return Direction.BOTH
    written = turning is Turning.NEVER or any(edge.from_type == source for edge in edges)
    return Direction.OUT if written else Direction.IN


def connects(edges: Sequence[EdgeType], source: str, target: str, hops: tuple[int, int], turning: Turning) -> bool:
    """Whether a step may lead from one type to another."""
    least, most = hops
    if most == 1 and least == 1:
        return any(way_of(edge, source, target, turning) is not None for edge in edges)
    if least == 0 and source == target:
        return True
    return target in _reached(edges, source, chained_direction(edges, source, turning))


def _reached(edges: Sequence[EdgeType], source: str, direction: Direction) -> set[str]:
    """The types that one or more edges reach from a type."""
    pairs = {(edge.from_type, edge.to_type) for edge in edges if direction is not Direction.IN}
    pairs |= {(edge.to_type, edge.from_type) for edge in edges if direction is not Direction.OUT}
    found: set[str] = set()
    frontier = {source}
    while frontier:
        frontier = {end for start, end in pairs if start in frontier} - found
        found |= frontier
    return found


def bind_several(
    scope: Scope, clause: Traversal, edges: Sequence[EdgeType], ends: tuple[str, str], max_hops: int
) -> Turning:
    """Bind both ends of a step that may follow several edge types; a new end gets all types that it can have."""
    bound = [type_names(scope.nodes[name]) if name in scope.nodes else None for name in ends]
    hops = (clause.min_hops, max_hops)
    turning = Turning.NEVER if bound == [None, None] else Turning.BY_TYPE
    turning = Turning.ALWAYS if clause.undirected else turning
    every = list(scope.catalog.nodes)
    pairs = [
        (source, target)
        for source in bound[0] or every
        for target in bound[1] or every
        if connects(edges, source, target, hops, turning)
    ]
    if not pairs:
        words = "|".join((clause.edge_word, *clause.others))
        shown = " and ".join(f"`${name}`" for name, types in zip(ends, bound, strict=True) if types is not None)
        scope.error("T5", f"no edge of `{words}` connects {shown or 'its ends'}", clause.span)
    for place, name in enumerate(ends):
        found = sorted({pair[place] for pair in pairs})
        scope.nodes.setdefault(name, joined_nodes([scope.catalog.nodes[kind] for kind in found]))
    return turning
