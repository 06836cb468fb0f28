"""A `PropertyGraphStore` of LlamaIndex (extra `llama-index`) in two types of a graph.

LlamaIndex gives nodes and relations free labels and properties. Here they are nodes of one type and edges of another, with the
label as a property, the properties as JSON, and one text per property (`facts`) to find them by. Other types may stand beside.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import orjson
from llama_index.core.graph_stores.types import (
    ChunkNode,
    EntityNode,
    LabelledNode,
    PropertyGraphStore,
    Relation,
    Triplet,
)
from llama_index.core.prompts import PromptTemplate
from llama_index.core.vector_stores.types import FilterCondition, FilterOperator, MetadataFilters, VectorStoreQuery

from omnigraph.client.graph import AnyGraph
from omnigraph.errors import BadRequest
from omnigraph.graph.entry import init
from omnigraph.integrations.documents import catalog_of
from omnigraph.language.query.parser import parse_query_file

NODE, EDGE = "LlamaNode", "LlamaRelation"
_TYPES = """node LlamaNode {{
  node_id: String @key
  kind: enum(chunk, entity)
  label: String @index
  name: String?
  text: String? @index
  facts: [String]
  properties: String
  vector: Vector({dimension})? @metric("cosine") @index
}}
edge LlamaRelation: LlamaNode -> LlamaNode {{
  label: String
  facts: [String]
  properties: String
  @key(src, dst, label)
}}
"""
#: Facts of longer values hold a digest instead.
_LONGEST_FACT = 200
_MOST_FOUND = 10_000
_TEMPLATE = PromptTemplate(
    "Answer the question with one query in OmniGraph's language, and nothing else. The schema:\n{schema}\n"
    'Form: match {{ $a: LlamaNode {{ label: "person" }}  $a $r: llamaRelation $b  $r.label = "KNOWS" }} '
    "return {{ $a.name, $b.name }} limit 10\nQuestion: {question}\n"
)


class OmnigraphPropertyGraphStore(PropertyGraphStore):
    """Entities, chunks and relations of LlamaIndex in a graph that has the types of `declarations`."""

    supports_structured_queries = True
    supports_vector_queries = True
    text_to_cypher_template = _TEMPLATE

    def __init__(self, graph: AnyGraph, *, branch: str | None = None) -> None:
        self._graph = graph
        self._where: dict[str, Any] = {} if branch is None else {"branch": branch}
        declared = catalog_of(graph.schema(**self._where))
        if NODE not in declared.nodes or EDGE not in declared.edges:
            raise BadRequest(
                f"the graph has no types {NODE} and {EDGE}; make one with OmnigraphPropertyGraphStore.create, or add "
                "OmnigraphPropertyGraphStore.declarations(dimension) to its schema with apply_schema"
            )
        self._dimension = declared.nodes[NODE].properties["vector"].type.dimension

    @staticmethod
    def declarations(dimension: int) -> str:
        """The two types as `.pg` text, with embeddings of so many numbers; for a graph of one's own types."""
        return _TYPES.format(dimension=int(dimension))

    @classmethod
    def create(cls, uri: str | os.PathLike[str], dimension: int, **options: Any) -> OmnigraphPropertyGraphStore:
        """A store in a new graph. Takes the options of `init`."""
        return cls(init(uri, cls.declarations(dimension), **options))

    @property
    def client(self) -> AnyGraph:
        """The graph."""
        return self._graph

    # --- writing ----------------------------------------------------------------------------------------------------

    def upsert_nodes(self, nodes: Sequence[LabelledNode]) -> None:
        """Write nodes in one commit; a node of the same id is replaced, the last of an id counts."""
        rows = [{"type": NODE, "data": self._row(node)} for node in nodes]
        if rows:
            self._graph.load(rows, "merge", **self._where)

    def upsert_relations(self, relations: Sequence[Relation]) -> None:
        """Write relations in one commit, with entities for ends that are not there. One per source, label and target."""
        if not relations:
            return
        ends = dict.fromkeys(end for one in relations for end in (one.source_id, one.target_id))
        known = {node["id"] for node in self._nodes("$n.@id in $ids", {"ids": list(ends)})}
        rows: list[dict[str, Any]] = [
            {"type": NODE, "data": self._row(EntityNode(name=end)) | {"node_id": end}}
            for end in ends
            if end not in known
        ]
        for one in relations:
            data = {"label": one.label, "facts": _facts(one.properties), "properties": _json(one.properties)}
            rows.append({"edge": EDGE, "from": one.source_id, "to": one.target_id, "data": data})
        self._graph.load(rows, "merge", **self._where)

    def delete(
        self,
        entity_names: list[str] | None = None,
        relation_names: list[str] | None = None,
        properties: dict[str, Any] | None = None,
        ids: list[str] | None = None,
    ) -> None:
        """Delete, in one commit, entities by name, relations by label, nodes by properties and by id. Nothing given: nothing."""
        steps: list[tuple[str, None, dict[str, Any]]] = []
        for condition, wanted in (("$n.name in $ids", entity_names), ("$n.@id in $ids", ids)):
            if wanted:
                steps.append((f"match {{ $n: {NODE}  {condition} }} delete $n", None, {"ids": list(wanted)}))
        if properties:
            condition, params = _matching("n", properties)
            steps.append((f"match {{ $n: {NODE}  {condition} }} delete $n", None, params))
        if relation_names:
            source = f"delete {EDGE} where label in $names"
            steps.append((source, None, {"names": list(relation_names)}))
        if steps:
            self._graph.mutate_many(steps, **self._where)

    # --- reading ----------------------------------------------------------------------------------------------------

    def get(self, properties: dict[str, Any] | None = None, ids: list[str] | None = None) -> list[LabelledNode]:
        """Nodes that have all of these properties, and one of these ids; all nodes when neither is given."""
        conditions: list[str] = []
        params: dict[str, Any] = {}
        if properties:
            condition, params = _matching("n", properties)
            conditions.append(condition)
        if ids is not None:
            if not ids:
                return []
            conditions.append("$n.@id in $ids")
            params["ids"] = list(ids)
        return [_node(found) for found in self._nodes("  ".join(conditions), params)]

    def get_triplets(
        self,
        entity_names: list[str] | None = None,
        relation_names: list[str] | None = None,
        properties: dict[str, Any] | None = None,
        ids: list[str] | None = None,
    ) -> list[Triplet]:
        """Triplets that meet all that is given: a name or id at one end, a label, properties of a part; without any, none."""
        ways: list[list[str]] = []
        params: dict[str, Any] = {}
        if entity_names:
            ways.append(["$a.@id in $entities", "$b.@id in $entities"])
            params["entities"] = [name.replace('"', " ") for name in entity_names]
        if ids:
            ways.append(["$a.@id in $ids", "$b.@id in $ids"])
            params["ids"] = list(ids)
        if properties:
            held = [_matching(part, properties) for part in ("a", "r", "b")]
            ways.append([condition for condition, _ in held])
            params |= held[0][1]
        if relation_names:
            ways.append(["$r.label in $labels"])
            params["labels"] = list(relation_names)
        return self._triplets(ways, params) if ways else []

    def get_rel_map(
        self,
        graph_nodes: list[LabelledNode],
        depth: int = 2,
        limit: int = 30,
        ignore_rels: list[str] | None = None,
    ) -> list[Triplet]:
        """The triplets within `depth` steps of nodes, in both directions, nearest first, at most `limit`."""
        found: dict[tuple[str, str, str], Triplet] = {}
        seen = {node.id for node in graph_nodes}
        edge = list(seen)
        ignored = "" if not ignore_rels else "$r.label not in $ignored"
        for _ in range(depth):
            if not edge or len(found) >= limit:
                break
            params: dict[str, Any] = {"ids": edge} | ({"ignored": list(ignore_rels)} if ignore_rels else {})
            ways = [["$a.@id in $ids", "$b.@id in $ids"], *([[ignored]] if ignored else [])]
            reached: list[str] = []
            for triplet in self._triplets(ways, params):
                found.setdefault((triplet[0].id, triplet[1].label, triplet[2].id), triplet)
                reached += [end.id for end in (triplet[0], triplet[2]) if end.id not in seen]
            edge = list(dict.fromkeys(reached))
            seen.update(edge)
        return list(found.values())[:limit]

    def structured_query(self, query: str, param_map: Mapping[str, Any] | None = None) -> Any:
        """Run a query and return its rows, or a mutation and return its counts."""
        if any(one.is_mutation for one in parse_query_file(query).queries):
            done = self._graph.mutate(query, params=param_map or {}, **self._where)
            return {"affected_nodes": done.affected_nodes, "affected_edges": done.affected_edges}
        return list(self._graph.query(query, params=param_map or {}, **self._where).rows)

    def vector_query(self, query: VectorStoreQuery, **kwargs: Any) -> tuple[list[LabelledNode], list[float]]:
        """The nearest nodes that have an embedding, and their cosine similarities. Filters know ==, !=, in and not in."""
        if query.query_embedding is None:
            raise BadRequest("a vector query needs `query_embedding`")
        if len(query.query_embedding) != self._dimension:
            raise BadRequest(f"the store has embeddings of {self._dimension} numbers, not {len(query.query_embedding)}")
        params: dict[str, Any] = {"near": list(query.query_embedding), "k": min(query.similarity_top_k, _MOST_FOUND)}
        condition = "" if query.filters is None else _filtered(query.filters, params)
        near = "nearest($n.vector, $near)"
        source = (
            f"match {{ $n: {NODE}  {condition} }} return {{ object($n) as n, {near} as d }} order {{ {near} }} limit $k"
        )
        rows = [row for row in self._graph.query(source, params=params, **self._where).rows if row["d"] is not None]
        return [_node(row["n"]) for row in rows], [1.0 - float(row["d"]) for row in rows]

    def get_schema(self, refresh: bool = False) -> str:
        """The schema of the graph as `.pg` text."""
        return str(self._graph.schema(**self._where))

    def _row(self, node: LabelledNode) -> dict[str, Any]:
        row: dict[str, Any] = {
            "node_id": node.id,
            "label": node.label,
            "facts": _facts(node.properties),
            "properties": _json(node.properties),
        }
        if isinstance(node, ChunkNode):
            row |= {"kind": "chunk", "text": node.text}
        elif isinstance(node, EntityNode):
            row |= {"kind": "entity", "name": node.name}
        else:
            raise BadRequest(f"a {type(node).__name__} can not be stored; the store holds EntityNode and ChunkNode")
        if node.embedding is not None:
            if len(node.embedding) != self._dimension:
                raise BadRequest(
                    f"node {node.id!r} has an embedding of {len(node.embedding)} numbers, and the store is for {self._dimension}"
                )
            row["vector"] = list(node.embedding)
        return row

    def _nodes(self, condition: str, params: Mapping[str, Any]) -> list[dict[str, Any]]:
        source = f"match {{ $n: {NODE}  {condition} }} return {{ object($n) as n }}"
        return [row["n"] for row in self._graph.query(source, params=params, **self._where).rows]

    def _triplets(self, ways: Sequence[Sequence[str]], params: Mapping[str, Any]) -> list[Triplet]:
        """Triplets that meet one condition of each way; one query for each condition of the first, which indexes answer."""
        first, *others = ways
        rest = "  ".join(f"({' or '.join(way)})" for way in others)
        found: dict[str, Triplet] = {}
        for condition in first:
            source = (
                f"match {{ $a: {NODE}  $b: {NODE}  $a $r: llamaRelation $b  {condition}  {rest} }} "
                "return { object($a) as a, object($r) as r, object($b) as b }"
            )
            for row in self._graph.query(source, params=params, **self._where).rows:
                kind = Relation(
                    label=row["r"]["properties"]["label"],
                    source_id=row["r"]["from"],
                    target_id=row["r"]["to"],
                    properties=orjson.loads(row["r"]["properties"]["properties"]),
                )
                found.setdefault(row["r"]["id"], (_node(row["a"]), kind, _node(row["b"])))
        return list(found.values())

    # --- the same, awaited: in a thread, so that nothing else waits --------------------------------------------------

    async def aget(self, properties: dict[str, Any] | None = None, ids: list[str] | None = None) -> list[LabelledNode]:
        return await asyncio.to_thread(self.get, properties, ids)

    async def aget_triplets(self, *args: Any, **kwargs: Any) -> list[Triplet]:
        return await asyncio.to_thread(self.get_triplets, *args, **kwargs)

    async def aget_rel_map(self, *args: Any, **kwargs: Any) -> list[Triplet]:
        return await asyncio.to_thread(self.get_rel_map, *args, **kwargs)

    async def aupsert_nodes(self, nodes: list[LabelledNode]) -> None:
        await asyncio.to_thread(self.upsert_nodes, nodes)

    async def aupsert_relations(self, relations: list[Relation]) -> None:
        await asyncio.to_thread(self.upsert_relations, relations)

    async def adelete(self, *args: Any, **kwargs: Any) -> None:
        await asyncio.to_thread(self.delete, *args, **kwargs)

    async def adelete_llama_nodes(self, *args: Any, **kwargs: Any) -> None:
        await asyncio.to_thread(self.delete_llama_nodes, *args, **kwargs)

    async def astructured_query(self, query: str, param_map: dict[str, Any] | None = None) -> Any:
        return await asyncio.to_thread(self.structured_query, query, param_map)

    async def avector_query(self, query: VectorStoreQuery, **kwargs: Any) -> tuple[list[LabelledNode], list[float]]:
        return await asyncio.to_thread(self.vector_query, query)

    async def aget_schema(self, refresh: bool = False) -> str:
        return await asyncio.to_thread(self.get_schema)


def _node(found: Mapping[str, Any]) -> LabelledNode:
    held = found["properties"]
    properties = orjson.loads(held["properties"])
    if held["kind"] == "chunk":
        return ChunkNode(id_=found["id"], text=held["text"] or "", label=held["label"], properties=properties)
    return EntityNode(name=held["name"] or found["id"], label=held["label"], properties=properties)


def _json(properties: Mapping[str, Any]) -> str:
    try:
        return orjson.dumps(properties).decode()
    except (TypeError, orjson.JSONEncodeError) as error:
        raise BadRequest(f"properties are kept as JSON, which these can not be: {error}") from None


def _facts(properties: Mapping[str, Any]) -> list[str]:
    return [_fact(name, value) for name, value in properties.items()]


def _fact(name: str, value: Any) -> str:
    """A property and its value as one text, by which it is found."""
    told = _json({"": value})
    if len(told) > _LONGEST_FACT:
        told = hashlib.sha256(told.encode()).hexdigest()
    return f"{name}={told}"


def _matching(variable: str, properties: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """The condition that an entity has all of these properties."""
    params = {f"fact{place}": _fact(name, value) for place, (name, value) in enumerate(properties.items())}
    return "(" + " and ".join(f"${variable}.facts contains ${name}" for name in params) + ")", params


def _filtered(filters: MetadataFilters, params: dict[str, Any]) -> str:
    parts: list[str] = []
    for one in filters.filters:
        if isinstance(one, MetadataFilters):
            parts.append(_filtered(one, params))
            continue
        values: Iterable[Any] = one.value if isinstance(one.value, list) else [one.value]
        negated = one.operator in (FilterOperator.NE, FilterOperator.NIN)
        if one.operator not in (FilterOperator.EQ, FilterOperator.NE, FilterOperator.IN, FilterOperator.NIN):
            raise BadRequest(
                f"a filter compares properties with ==, !=, in or not in here, not with {one.operator.value!r}"
            )
        told = []
        for value in [one.value] if one.operator in (FilterOperator.EQ, FilterOperator.NE) else values:
            name = f"held{len(params)}"
            params[name] = _fact(one.key, value)
            told.append(f"$n.facts contains ${name}")
        condition = f"({' or '.join(told)})" if told else "(true = false)"
        parts.append(f"(not {condition})" if negated else condition)
    if not parts:
        return ""
    if filters.condition == FilterCondition.NOT:
        return f"(not ({' or '.join(parts)}))"
    return f"({f' {(filters.condition or FilterCondition.AND).value} '.join(parts)})"
