"""The input of an algorithm: node types, edge types, direction and weight, checked against the schema."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal, get_args

from omnigraph.errors import BadRequest, NotFound
from omnigraph.language.schema.catalog import Catalog, EdgeType, NodeType
from omnigraph.language.source import did_you_mean, nearest_name
from omnigraph.query.scan.entities import Entities, View, open_edges, open_nodes

Direction = Literal["out", "in", "both"]
DIRECTIONS: Final = get_args(Direction)


@dataclass(frozen=True, slots=True)
class Selection:
    """The node types in the order of their names, the edge types between them, and the property with the weights of edges.
    `direction`: "out" follows edges forwards, "in" backwards, "both" in both directions.
    """

    catalog: Catalog
    view: View
    nodes: tuple[NodeType, ...]
    edges: tuple[EdgeType, ...]
    direction: Direction
    weight: str | None

    def node_tables(self) -> list[Entities]:
        """The chosen nodes as tables of the snapshot."""
        return [open_nodes(self.view, self.catalog, node.name) for node in self.nodes]

    def edge_tables(self) -> list[Entities]:
        """The chosen edges as tables of the snapshot."""
        return [open_edges(self.view, self.catalog, edge.name) for edge in self.edges]

    @property
    def node_count(self) -> int:
        return sum(self.view.entry(node.type_key).row_count for node in self.nodes)

    @property
    def edge_count(self) -> int:
        return sum(self.view.entry(edge.type_key).row_count for edge in self.edges)


def select(
    catalog: Catalog,
    view: View,
    nodes: Sequence[str] | None,
    edges: Sequence[str] | None,
    direction: str,
    weight: str | None,
) -> Selection:
    """The selection of the named types.
    Without `nodes`, the node types are the ends of `edges`; without `edges`, the edge types are all types between `nodes`;
    without both it is the whole graph. An edge type with an end outside of the chosen nodes is refused when it is named, else
    left out.
    """
    if direction not in DIRECTIONS:
        raise BadRequest(f"direction is {', '.join(map(repr, DIRECTIONS))}, not {direction!r}")
    named_nodes = None if nodes is None else [_known(name, catalog.nodes, "node") for name in _names(nodes, "nodes")]
    named_edges = None if edges is None else [_known(name, catalog.edges, "edge") for name in _names(edges, "edges")]
    if named_nodes is not None:
        chosen = set(named_nodes)
    elif named_edges is not None:
        chosen = {end for name in named_edges for end in _ends(catalog.edges[name])}
    else:
        chosen = set(catalog.nodes)
    found: list[EdgeType] = []
    for name in sorted(catalog.edges if named_edges is None else set(named_edges)):
        edge = catalog.edges[name]
        outside = [end for end in _ends(edge) if end not in chosen]
        if not outside:
            found.append(edge)
        elif named_edges is not None:
            raise BadRequest(f"edge type '{name}' leads to '{outside[0]}', which is not among nodes; add it there")
    for edge in found:
        _check_weight(edge, weight)
    kinds = tuple(catalog.nodes[name] for name in sorted(chosen))
    return Selection(catalog, view, kinds, tuple(found), direction, weight)  # type: ignore[arg-type]


def _names(given: Sequence[str], argument: str) -> list[str]:
    names = list(given) if not isinstance(given, str) else [given]
    if not names or not all(isinstance(name, str) for name in names):
        raise BadRequest(f"{argument} is a list of names of types, at least one; leave it out to take all")
    return names


def _known(name: str, types: Iterable[str], kind: str) -> str:
    names = list(types)
    if name not in names:
        raise NotFound(f"the schema has no {kind} type '{name}'{did_you_mean(nearest_name(name, names))}")
    return name


def _ends(edge: EdgeType) -> tuple[str, str]:
    return edge.from_type, edge.to_type


def _check_weight(edge: EdgeType, weight: str | None) -> None:
    if weight is None:
        return
    declared = edge.properties.get(weight)
    if declared is None:
        raise NotFound(
            f"edge type '{edge.name}' has no property '{weight}' to weigh by{did_you_mean(nearest_name(weight, edge.properties))}"
        )
    if not declared.type.is_numeric:
        raise BadRequest(f"weight '{edge.name}.{weight}' is a {declared.type}; a weight is a number")
