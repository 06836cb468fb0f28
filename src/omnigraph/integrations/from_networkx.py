"""`from_networkx`: a graph made of a graph of NetworkX, with a proposed schema, in one commit."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omnigraph.errors import BadRequest
from omnigraph.graph.entry import init
from omnigraph.graph.graph import Graph
from omnigraph.graph.lifecycle import discard
from omnigraph.graph.sources import read_source
from omnigraph.integrations.names import Names
from omnigraph.integrations.observed import fitted
from omnigraph.integrations.proposal import Note, Seen, Target, propose_edge, propose_node, schema_text
from omnigraph.language.json_values import unwrapped
from omnigraph.language.schema.build import compile_schema
from omnigraph.language.schema.catalog import Catalog
from omnigraph.load.model import LoadResult
from omnigraph.shown import Shown

if TYPE_CHECKING:
    import networkx as nx

_TYPE, _EDGE = "Node", "Edge"
_Place = tuple[str, str]


@dataclass(frozen=True)
class FromNetworkX(Shown):
    """A graph that was made of one of NetworkX: its schema, what was changed, and the report of the one load."""

    graph: Graph
    schema: str
    notes: tuple[Note, ...]
    load: LoadResult

    def to_dict(self) -> dict[str, Any]:
        loaded = {"nodes_loaded": self.load.nodes_loaded, "edges_loaded": self.load.edges_loaded}
        return {"uri": self.graph.uri, "schema": self.schema, "notes": [n.to_dict() for n in self.notes], **loaded}


def from_networkx(
    graph: nx.Graph[Any],
    uri: str | os.PathLike[str],
    *,
    type_attribute: str = "type",
    schema: str | Path | None = None,
    **options: Any,
) -> FromNetworkX:
    """Make a graph at `uri` of any graph of NetworkX: types from `type_attribute`, properties from attributes.

    Nodes that are `(type, id)` and edges with such keys, as `to_networkx` makes them, keep both; then the schema of the graph
    they came from is used, unless `schema` is given. Other nodes have the text of what they are as their id; `Node` and `Edge`
    are the types of those without `type_attribute`. An edge of an undirected graph goes from its first to its second node.
    Takes the options of `init`.
    """
    own = graph.graph.get("omnigraph_schema") if schema is None else read_source(schema, ".pg")[0]
    given = _Given(graph, type_attribute)
    notes: list[Note] = []
    if own is not None:
        source, lines = str(own), _declared(given, compile_schema(str(own)))
    else:
        source, notes, lines = _proposed(given)
    # Everything that can not be stored is found before there is a graph.
    rows = list(lines)
    made = init(uri, source, **options)
    try:
        result = made.load(rows, "append")
    except BaseException:
        discard(made._context)
        made.close()
        raise
    return FromNetworkX(made, source, tuple(notes), result)


@dataclass(frozen=True)
class _Given:
    """A graph of NetworkX: its nodes by type and id, its edges by type, with their attributes as plain values."""

    graph: nx.Graph[Any]
    type_attribute: str

    def nodes(self) -> Iterator[tuple[_Place, dict[str, Any]]]:
        for node, values in self.graph.nodes(data=True):
            yield self.place(node), self._plain(values, f"node {node!r}", keep=_is_place(node))

    def edges(self) -> Iterator[tuple[str, str | None, _Place, _Place, dict[str, Any]]]:
        keys = {"keys": True} if self.graph.is_multigraph() else {}
        for edge in self.graph.edges(data=True, **keys):
            start, end, values = edge[0], edge[1], edge[-1]
            key = edge[2] if keys else None
            ours = _is_place(key)
            name, own = key if ours and key is not None else (values.get(self.type_attribute, _EDGE), None)
            told = f"edge {start!r} -> {end!r}"
            if not isinstance(name, str):
                raise BadRequest(f"{told}: its attribute {self.type_attribute!r} is no text, so it names no type")
            yield name, own, self.place(start), self.place(end), self._plain(values, told, keep=ours)

    def place(self, node: Any) -> _Place:
        """The type and the id of a node."""
        if _is_place(node):
            return (node[0], node[1])
        name = self.graph.nodes[node].get(self.type_attribute, _TYPE)
        if not isinstance(name, str):
            raise BadRequest(f"node {node!r}: its attribute {self.type_attribute!r} is no text, so it names no type")
        return name, _id_of(node)

    def _plain(self, values: Mapping[Any, Any], told: str, *, keep: bool) -> dict[str, Any]:
        made: dict[str, Any] = {}
        for name, value in values.items():
            if not isinstance(name, str):
                raise BadRequest(f"{told}: the attribute {name!r} has no name that is a text; rename it")
            if name == self.type_attribute and not keep:
                continue
            made[name] = _value(value)
        return made


def _is_place(node: Any) -> bool:
    return isinstance(node, tuple) and len(node) == 2 and all(isinstance(part, str) for part in node)


def _id_of(node: Any) -> str:
    plain = unwrapped(node)
    if isinstance(plain, str):
        return plain
    if isinstance(plain, int | float) and not isinstance(plain, bool):
        return repr(plain)
    if getattr(type(node), "__repr__", None) is object.__repr__:
        raise BadRequest(
            f"a node is an object of class {type(node).__name__}, which has no text that would find it again; relabel the "
            "nodes with networkx.relabel_nodes first"
        )
    return repr(node)


def _value(value: Any) -> Any:
    """A value without the wrapping of NumPy and pandas; sets are lists."""
    plain = unwrapped(value)
    if isinstance(plain, set | frozenset):
        return sorted(plain, key=repr)
    if hasattr(plain, "tolist"):
        return plain.tolist()
    return [unwrapped(one) for one in plain] if isinstance(plain, list | tuple) else plain


def _proposed(given: _Given) -> tuple[str, list[Note], Iterator[dict[str, Any]]]:
    """A schema for the attributes, and the rows of a load with it."""
    nodes: dict[str, Seen] = {}
    edges: dict[tuple[str, str, str], Seen] = {}
    places: set[_Place] = set()
    for place, values in given.nodes():
        places.add(place)
        _count(nodes.setdefault(place[0], Seen()), values, f"node {place[1]!r}")
    if len(places) != given.graph.number_of_nodes():
        raise BadRequest(
            "two nodes have the same type and the same id as texts, such as 1 and '1'; relabel them with "
            "networkx.relabel_nodes first"
        )
    for name, _, start, end, values in given.edges():
        _count(edges.setdefault((name, start[0], end[0]), Seen()), values, f"edge {start[1]!r} -> {end[1]!r}")
    notes: list[Note] = []
    names, node_types = Names(), []
    node_targets: dict[str, Target] = {}
    for label in sorted(nodes):
        name = names.type_name(label, _TYPE)
        target, declared, told = propose_node(name, nodes[label], "node_id", labels=False, dates=False)
        node_targets[label] = target
        node_types.append(declared)
        notes += told if name == label else [Note(name, f"is the type {label!r} in the source"), *told]
    names, edge_types = Names(), []
    edge_targets: dict[tuple[str, str, str], Target] = {}
    pairs = [key[0] for key in edges]
    for key in sorted(edges):
        label, near, far = key
        first, second = node_targets[near].name, node_targets[far].name
        name = names.type_name(label if pairs.count(label) == 1 else f"{label}_{first}_{second}", _EDGE)
        target, edge_type, told = propose_edge(name, first, second, edges[key], dates=False)
        edge_targets[key] = target
        edge_types.append(edge_type)
        notes += told if name == label else [Note(name, f"is {label!r} from {near} to {far} in the source"), *told]

    def lines() -> Iterator[dict[str, Any]]:
        for (label, own), values in given.nodes():
            target = node_targets[label]
            assert target.key is not None
            yield {"type": target.name, "data": {target.key: own, **_data(target, values)}}
        for kind, _, start, end, values in given.edges():
            target = edge_targets[(kind, start[0], end[0])]
            yield {"edge": target.name, "from": start[1], "to": end[1], "data": _data(target, values)}

    return schema_text(node_types, edge_types), notes, lines()


def _count(seen: Seen, values: Mapping[str, Any], told: str) -> None:
    try:
        seen.add(values)
    except TypeError as error:
        raise BadRequest(f"{told}: {error}; change it to a text, a number, a date or a list of these") from None


def _data(target: Target, values: Mapping[str, Any]) -> dict[str, Any]:
    made = {}
    for name, value in values.items():
        given, kind = target.properties[name]
        try:
            made[given] = fitted(value, kind)
        except (TypeError, ValueError) as error:
            raise BadRequest(f"{target.name}.{given}: {error}") from None
    return made


def _declared(given: _Given, catalog: Catalog) -> Iterator[dict[str, Any]]:
    """The rows of a load with a schema that is given; the load refuses what does not fit."""
    for (name, own), values in given.nodes():
        node = catalog.nodes.get(name)
        if node is None:
            raise BadRequest(f"the schema has no node type {name!r}, which the node {own!r} has")
        kinds = {prop: held.type for prop, held in node.properties.items()}
        data = {prop: fitted(value, kinds[prop]) if prop in kinds else value for prop, value in values.items()}
        if node.key is None:
            data["id"] = own
        elif len(node.key) == 1:
            data.setdefault(node.key[0], own)
        yield {"type": name, "data": data}
    for name, _, start, end, values in given.edges():
        edge = catalog.edge(name)
        if edge is None:
            raise BadRequest(f"the schema has no edge type {name!r}")
        kinds = {prop: held.type for prop, held in edge.properties.items()}
        data = {prop: fitted(value, kinds[prop]) if prop in kinds else value for prop, value in values.items()}
        yield {"edge": edge.name, "from": start[1], "to": end[1], "data": data}
