"""A node type that holds documents: which property is the text, the vector, the rest; and the queries over it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import orjson

from omnigraph.client.graph import AnyGraph
from omnigraph.errors import BadRequest
from omnigraph.integrations.filters import Conditions, Filter
from omnigraph.language.schema.build import compile_schema
from omnigraph.language.schema.catalog import Catalog, NodeType
from omnigraph.language.source import did_you_mean, nearest_name
from omnigraph.language.types import Scalar

#: What one query may return.
MOST_ROWS = 10_000


@lru_cache(maxsize=16)
def catalog_of(schema: str) -> Catalog:
    """The catalog of a schema's text."""
    return compile_schema(schema)


@dataclass(frozen=True)
class Layout:
    """Where the parts of a document are kept. `rest` is the text that holds, as JSON, what has no property of its own."""

    node: NodeType
    key: str
    text: str
    vector: str | None
    rest: str | None

    @property
    def own(self) -> list[str]:
        """The properties that are metadata of a document, without vectors and blobs."""
        taken = {self.key, self.text, self.vector, self.rest}
        return [
            name
            for name, declared in self.node.properties.items()
            if name not in taken and not declared.type.is_vector and not declared.type.is_blob
        ]

    def row(
        self, doc_id: str, text: str, vector: Sequence[float] | None, metadata: Mapping[str, Any]
    ) -> dict[str, Any]:
        """A document as a row of a load."""
        own = set(self.own)
        data: dict[str, Any] = {name: value for name, value in metadata.items() if name in own}
        rest = {name: value for name, value in metadata.items() if name not in own}
        if rest:
            if self.rest is None:
                listed = ", ".join(sorted(map(str, rest)))
                raise BadRequest(
                    f"{self.node.name} has no property for {listed} and none that keeps other metadata; declare them, or a "
                    "`metadata: String?`"
                )
            data[self.rest] = _as_json(rest)
        data |= {self.key: doc_id, self.text: text}
        if vector is not None:
            if self.vector is None:
                raise BadRequest(f"{self.node.name} has no Vector property for the embeddings")
            data[self.vector] = list(vector)
        return {"type": self.node.name, "data": data}

    def columns(self, variable: str = "d") -> str:
        """What a query returns so that `metadata` and the text can be made of its rows."""
        names = [self.text, *self.own, *([self.rest] if self.rest else [])]
        return ", ".join([f"${variable}.@id as id", *(f"${variable}.{name} as p_{name}" for name in names)])

    def metadata(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """The metadata of a document of a row: declared properties that have a value, and the others from JSON."""
        found = {name: row[f"p_{name}"] for name in self.own if row[f"p_{name}"] is not None}
        rest = row[f"p_{self.rest}"] if self.rest else None
        return {**(orjson.loads(rest) if rest else {}), **found}


def _as_json(values: Mapping[str, Any]) -> str:
    try:
        return orjson.dumps(values, option=orjson.OPT_SERIALIZE_NUMPY).decode()
    except (TypeError, orjson.JSONEncodeError) as error:
        raise BadRequest(
            f"metadata that has no property of its own is kept as JSON, which it can not be: {error}"
        ) from None


def layout_of(
    schema: str, type_name: str, *, text: str | None = None, vector: str | None = None, rest: str | None = "metadata"
) -> Layout:
    """The layout of a node type; BadRequest when it can not hold documents."""
    nodes = catalog_of(schema).nodes
    node = nodes.get(type_name)
    if node is None:
        raise BadRequest(f"the schema has no node type {type_name!r}{did_you_mean(nearest_name(type_name, nodes))}")
    if node.key is None or len(node.key) != 1 or node.properties[node.key[0]].type.scalar is not Scalar.STRING:
        raise BadRequest(f"{type_name} needs a key that is one String, which holds the ids of documents")
    texts = [name for name, declared in node.properties.items() if declared.type.is_text and name != node.key[0]]
    if text is None:
        text = "text" if "text" in texts else next((name for name in texts if name != rest), None)
    if text is None or text not in texts:
        raise BadRequest(
            f"{type_name} has no text property {text or ''!r}{did_you_mean(nearest_name(text or '', texts))}"
        )
    vectors = [name for name, declared in node.properties.items() if declared.type.is_vector]
    if vector is None:
        vector = next((name for name in vectors), None)
    elif vector not in vectors:
        raise BadRequest(f"{type_name} has no Vector property {vector!r}{did_you_mean(nearest_name(vector, vectors))}")
    kept = rest if rest in texts and rest != text else None
    return Layout(node, node.key[0], text, vector, kept)


@dataclass(frozen=True)
class Search:
    """A question for documents. `vector` is that of the text, or None: then the provider of the graph embeds the text."""

    text: str | None
    vector: Sequence[float] | None
    k: int
    filter: Filter | None = None
    params: Mapping[str, Any] | None = None
    #: `vector`, `text` or `hybrid`.
    by: str = "vector"
    vectors: bool = False


def search(graph: AnyGraph, layout: Layout, asked: Search, branch: str | None) -> list[dict[str, Any]]:
    """The best documents as rows, best first; by vector with their distance as `score`, and `vector` on request."""
    if asked.k <= 0:
        return []
    conditions = Conditions(layout.node, "d")
    condition = conditions.text(asked.filter)
    params: dict[str, Any] = {**(asked.params or {}), **conditions.params, "k": min(asked.k, MOST_ROWS)}
    rank, direction = _rank(layout, asked, params)
    shown = layout.columns()
    if asked.by == "vector":
        shown += f", {rank} as score"
    if asked.vectors:
        shown += f", $d.{layout.vector} as vector"
    source = (
        f"match {{ $d: {layout.node.name}  {condition} }} return {{ {shown} }} order {{ {rank}{direction} }} limit $k"
    )
    found = rows_of(graph, source, params, branch)
    # Documents without a vector come last, at no distance.
    return [row for row in found if row["score"] is not None] if asked.by == "vector" else found


def _rank(layout: Layout, asked: Search, params: dict[str, Any]) -> tuple[str, str]:
    if asked.by not in ("vector", "text", "hybrid"):
        raise BadRequest(f"documents are found by vector, text or hybrid, not by {asked.by!r}")
    if asked.by == "text":
        params["words"] = asked.text
        return f"bm25($d.{layout.text}, $words)", " desc"
    if layout.vector is None:
        raise BadRequest(f"{layout.node.name} has no Vector property; search by text")
    dimension = layout.node.properties[layout.vector].type.dimension
    if asked.vector is not None and len(asked.vector) != dimension:
        raise BadRequest(
            f"{layout.node.name}.{layout.vector} has {dimension} numbers and the embedding of the question {len(asked.vector)}"
        )
    params["near"] = list(asked.vector) if asked.vector is not None else asked.text
    near = f"nearest($d.{layout.vector}, $near)"
    if asked.by == "vector":
        return near, ""
    params["words"] = asked.text
    return f"rrf({near}, bm25($d.{layout.text}, $words))", " desc"


def rows_of(graph: AnyGraph, source: str, params: Mapping[str, Any], branch: str | None) -> list[dict[str, Any]]:
    """The rows of a query on a branch (None: that of the handle)."""
    return list(graph.query(source, params=params, branch=branch).rows)


def by_ids(graph: AnyGraph, layout: Layout, ids: Iterable[str], branch: str | None) -> dict[str, dict[str, Any]]:
    """The stored documents among these ids, as rows by id."""
    wanted = list(dict.fromkeys(str(one) for one in ids))
    if not wanted:
        return {}
    source = f"match {{ $d: {layout.node.name}  $d.@id in $ids }} return {{ {layout.columns()} }}"
    return {row["id"]: row for row in rows_of(graph, source, {"ids": wanted}, branch)}


def delete(graph: AnyGraph, layout: Layout, ids: Sequence[str] | None, branch: str | None) -> None:
    """Delete documents with the edges that touch them; None: all of the type."""
    if ids is None:
        graph.mutate(f"match {{ $d: {layout.node.name} }} delete $d", params={}, branch=branch)
    elif ids:
        wanted = [str(one) for one in ids]
        graph.mutate(
            f"match {{ $d: {layout.node.name}  $d.@id in $ids }} delete $d", params={"ids": wanted}, branch=branch
        )
