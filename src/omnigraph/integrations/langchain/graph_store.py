"""A graph store in the shape LangChain's packages share: `add_graph_documents`, `query`, `get_schema`, `refresh_schema`.

LangChain publishes the shape with `langchain-community` (`GraphStore`, `GraphDocument`); what is given is only looked at by its
fields, so that package is not needed here.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import orjson

from omnigraph.client.graph import AnyGraph
from omnigraph.errors import BadRequest
from omnigraph.integrations.documents import catalog_of
from omnigraph.integrations.names import Names
from omnigraph.integrations.observed import fitted
from omnigraph.integrations.proposal import Seen, propose_edge, propose_node
from omnigraph.language.query.parser import parse_query_file
from omnigraph.language.schema.catalog import Catalog, EdgeType, NodeType, Property
from omnigraph.language.schema.printer import print_schema
from omnigraph.language.types import Scalar

#: The key of a type that is made, the type of sources, and the edges from a source to what it mentions.
KEY, SOURCE, MENTIONS = "entity_id", "SourceDocument", "MENTIONS"


class OmnigraphGraphStore:
    """Graph documents, such as those a language model extracts from texts, in a typed graph.

    Types, properties and edges that the schema lacks are added to it (`evolve`), or refused. `branch`: what is read and written.
    """

    def __init__(self, graph: AnyGraph, *, branch: str | None = None, evolve: bool = True) -> None:
        self.graph = graph
        self.branch = branch
        self.evolve = evolve

    @property
    def get_schema(self) -> str:
        """The schema as `.pg` text, as it is now."""
        return str(self.graph.schema() if self.branch is None else self.graph.schema(self.branch))

    @property
    def get_structured_schema(self) -> dict[str, Any]:
        """The schema as data: `node_props`, `rel_props` and `relationships`."""
        catalog = catalog_of(self.get_schema)

        def told(entity: NodeType | EdgeType) -> list[dict[str, str]]:
            return [{"property": name, "type": str(held.type)} for name, held in entity.properties.items()]

        return {
            "node_props": {name: told(node) for name, node in catalog.nodes.items()},
            "rel_props": {name: told(edge) for name, edge in catalog.edges.items()},
            "relationships": [
                {"start": edge.from_type, "type": name, "end": edge.to_type} for name, edge in catalog.edges.items()
            ],
        }

    def refresh_schema(self) -> None:
        """Nothing to do: the schema is always that of the graph."""

    def query(self, query: str, params: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
        """The rows of a query; a mutation is carried out and gives one row of counts."""
        if any(one.is_mutation for one in parse_query_file(query).queries):
            done = self.graph.mutate(query, params=params or {}, branch=self.branch)
            return [{"affected_nodes": done.affected_nodes, "affected_edges": done.affected_edges}]
        return list(self.graph.query(query, params=params or {}, branch=self.branch).rows)

    def add_graph_documents(self, graph_documents: Sequence[Any], include_source: bool = False) -> None:
        """Write nodes and relationships in one commit, after one that extends the schema where it has to be.

        A node that exists keeps properties that are not given; between two nodes an edge type that is made has one edge. With
        `include_source`, each source is a `SourceDocument` with `MENTIONS` edges.
        """
        found = _Found()
        for document in graph_documents:
            found.add(document, include_source)
        if not found.nodes:
            return
        catalog = catalog_of(self.get_schema)
        extended = _Extension(catalog)
        rows = extended.rows(found)
        if extended.added:
            if not self.evolve:
                raise BadRequest(
                    f"the schema has no {', '.join(extended.added)}; declare them, or let the store do it with evolve"
                )
            self.graph.apply_schema(print_schema(extended.catalog()), branch=self.branch)
        self.graph.load(rows, "update", branch=self.branch)


@dataclass
class _Found:
    """What documents hold: properties of nodes by label and id, and of edges by type and ends; later ones win."""

    nodes: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    edges: dict[tuple[str, tuple[str, str], tuple[str, str]], dict[str, Any]] = field(default_factory=dict)

    def add(self, document: Any, include_source: bool) -> None:
        places = [self._node(node) for node in document.nodes]
        for one in document.relationships:
            start, end = self._node(one.source), self._node(one.target)
            places += [start, end]
            self.edges.setdefault((str(one.type), start, end), {}).update(one.properties or {})
        if include_source and document.source is not None:
            text = document.source.page_content
            own = document.source.id or hashlib.sha256(text.encode()).hexdigest()
            about = orjson.dumps(document.source.metadata, default=str).decode()
            self.nodes[(SOURCE, own)] = {"text": text, "metadata": about}
            for place in dict.fromkeys(places):
                self.edges.setdefault((MENTIONS, (SOURCE, own), place), {})

    def _node(self, node: Any) -> tuple[str, str]:
        place = (str(node.type), str(node.id))
        self.nodes.setdefault(place, {}).update(node.properties or {})
        return place


class _Extension:
    """A schema with what documents need beside, and the documents as rows of a load with it."""

    def __init__(self, catalog: Catalog) -> None:
        self._nodes = dict(catalog.nodes)
        self._edges = dict(catalog.edges)
        self._given = catalog
        #: What the schema lacks, for messages.
        self.added: list[str] = []

    def catalog(self) -> Catalog:
        return Catalog(dict(sorted(self._nodes.items())), dict(sorted(self._edges.items())), self._given.interfaces)

    def rows(self, found: _Found) -> list[dict[str, Any]]:
        types = {
            label: self._node_type(label, _seen(found.nodes, label))
            for label in sorted({one for one, _ in found.nodes})
        }
        made: list[dict[str, Any]] = []
        for (label, own), values in found.nodes.items():
            node = self._nodes[types[label]]
            assert node.key is not None
            made.append({"type": node.name, "data": {node.key[0]: own, **_data(node, values)}})
        pairs: dict[tuple[str, str, str], Seen] = {}
        for (label, start, end), values in found.edges.items():
            _count(pairs.setdefault((label, types[start[0]], types[end[0]]), Seen()), values, label)
        labels = [label for label, _, _ in pairs]
        names = {key: self._edge_type(*key, pairs[key], alone=labels.count(key[0]) == 1) for key in sorted(pairs)}
        for (label, start, end), values in found.edges.items():
            edge = self._edges[names[(label, types[start[0]], types[end[0]])]]
            made.append({"edge": edge.name, "from": start[1], "to": end[1], "data": _data(edge, values)})
        return made

    def _node_type(self, label: str, seen: Seen) -> str:
        name = Names().type_name(label)
        declared = self._nodes.get(name)
        if declared is None:
            _, self._nodes[name], _ = propose_node(name, seen, KEY, labels=False, dates=False)
            self.added.append(f"node type {name}")
            return name
        if (
            declared.key is None
            or len(declared.key) != 1
            or declared.properties[declared.key[0]].type.scalar is not Scalar.STRING
        ):
            raise BadRequest(f"{name} needs a key that is one String, which holds the ids of nodes")
        self._nodes[name] = replace(declared, properties=self._with(declared, seen))
        return name

    def _edge_type(self, label: str, start: str, end: str, seen: Seen, *, alone: bool) -> str:
        plain = Names().type_name(label, "Edge")
        for name in (plain, f"{plain}_{start}_{end}"):
            declared = next((edge for edge in self._edges.values() if edge.name.lower() == name.lower()), None)
            if declared is not None and (declared.from_type, declared.to_type) == (start, end):
                self._edges[declared.name] = replace(declared, properties=self._with(declared, seen))
                return declared.name
            if declared is None and (alone or name != plain):
                _, made, _ = propose_edge(name, start, end, seen, dates=False)
                self._edges[name] = replace(made, key=("src", "dst"))
                self.added.append(f"edge type {name}")
                return name
        raise BadRequest(f"there is no name for an edge type {label!r} from {start} to {end}")

    def _with(self, declared: NodeType | EdgeType, seen: Seen) -> Mapping[str, Property]:
        properties = dict(declared.properties)
        for name, observed in seen.properties.items():
            given = _name(declared, name)
            if given not in properties:
                properties[given] = Property(given, observed.settle(dates=False)[0])
                self.added.append(f"property {declared.name}.{given}")
        return dict(sorted(properties.items()))


def _name(entity: NodeType | EdgeType, name: str) -> str:
    """What a property of a document is called in a type: the key is never meant by it."""
    return Names(entity.key or () if isinstance(entity, NodeType) else ()).property_name(name)


def _data(entity: NodeType | EdgeType, values: Mapping[str, Any]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for name, value in values.items():
        given = _name(entity, name)
        made[given] = fitted(value, entity.properties[given].type)
    return made


def _seen(nodes: Mapping[tuple[str, str], Mapping[str, Any]], label: str) -> Seen:
    seen = Seen()
    for (one, own), values in nodes.items():
        if one == label:
            _count(seen, values, f"node {own!r}")
    return seen


def _count(seen: Seen, values: Mapping[str, Any], told: str) -> None:
    try:
        seen.add(values)
    except TypeError as error:
        raise BadRequest(f"{told}: {error}") from None
