"""A retriever of LangChain: hybrid search in a graph, then what the found documents are joined with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import run_in_executor
from pydantic import ConfigDict

from omnigraph.errors import BadRequest
from omnigraph.integrations.documents import Layout, Search, catalog_of, rows_of, search
from omnigraph.integrations.langchain.vector_store import OmnigraphVectorStore, documents
from omnigraph.language.source import did_you_mean, nearest_name


class OmnigraphRetriever(BaseRetriever):
    """Finds the `k` best documents of a store, then follows edges from them.

    `by`: `hybrid` (words and vectors, fused by rank), `vector` or `text`. `filter` is as in the store. `expand`: edges to follow,
    such as `"cites"`, or `"<cites"` against their direction; the nodes at the other ends come after the documents, at most
    `expand_limit` of them, with `via` and `of` (the id of the document) in their metadata.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    store: OmnigraphVectorStore
    k: int = 4
    by: Literal["hybrid", "vector", "text"] = "hybrid"
    filter: Any = None
    params: dict[str, Any] | None = None
    expand: Sequence[str] = ()
    expand_limit: int = 20

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, **kwargs: Any
    ) -> list[Document]:
        embedding = self.store.embeddings
        vector = None if embedding is None or self._by(kwargs) == "text" else embedding.embed_query(query)
        return self._documents(query, vector, kwargs)

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, **kwargs: Any
    ) -> list[Document]:
        embedding = self.store.embeddings
        vector = None if embedding is None or self._by(kwargs) == "text" else await embedding.aembed_query(query)
        return await run_in_executor(None, self._documents, query, vector, kwargs)

    def _by(self, given: dict[str, Any]) -> str:
        return str(given.get("by", self.by))

    def _documents(self, query: str, vector: list[float] | None, given: dict[str, Any]) -> list[Document]:
        layout = self.store.layout
        filter, params = given.get("filter", self.filter), given.get("params", self.params)
        asked = Search(query, vector, int(given.get("k", self.k)), filter, params, self._by(given))
        found = search(self.store.graph, layout, asked, self.store.branch)
        made = documents(layout, found)
        edges = given.get("expand", self.expand)
        return [*made, *self._around(layout, [row["id"] for row in found], edges)] if edges and found else made

    def _around(self, layout: Layout, ids: list[str], edges: Sequence[str]) -> list[Document]:
        """The nodes that edges lead to from these documents, each once, without the documents themselves."""
        graph, branch = self.store.graph, self.store.branch
        declared = catalog_of(graph.schema() if branch is None else graph.schema(branch))
        seen = {(layout.node.name, one) for one in ids}
        made: list[Document] = []
        for word in edges:
            name = word.removeprefix("<")
            edge = declared.edge(name)
            if edge is None:
                hint = did_you_mean(nearest_name(name, declared.edges))
                raise BadRequest(f"the schema has no edge type {name!r}{hint}")
            near, far = (edge.to_type, edge.from_type) if word.startswith("<") else (edge.from_type, edge.to_type)
            if near != layout.node.name:
                told = f"{edge.name} is {edge.from_type} -> {edge.to_type}"
                raise BadRequest(f"{word!r} leads from {near}, not from {layout.node.name}; {told}")
            step = f"$n {edge.name} $d" if word.startswith("<") else f"$d {edge.name} $n"
            step = step.replace(edge.name, edge.name[:1].lower() + edge.name[1:], 1)
            source = (
                f"match {{ $d: {layout.node.name}  $n: {far}  $d.@id in $ids  {step} }} "
                "return { $d.@id as of, object($n) as node } limit $m"
            )
            for row in rows_of(graph, source, {"ids": ids, "m": self.expand_limit + len(ids)}, branch):
                node = row["node"]
                if len(made) < self.expand_limit and (node["type"], node["id"]) not in seen:
                    seen.add((node["type"], node["id"]))
                    made.append(_neighbour(node, layout.text, word, row["of"]))
        return made


def _neighbour(node: dict[str, Any], text: str, via: str, of: str) -> Document:
    """A node as a document: its text, or its properties in words when it has none."""
    values = {name: value for name, value in node["properties"].items() if value is not None}
    told = values.pop(text, None) or "\n".join(
        [f"{node['type']} {node['id']}", *(f"{n}: {v}" for n, v in values.items())]
    )
    metadata = {**values, "type": node["type"], "via": via, "of": of}
    return Document(id=node["id"], page_content=str(told), metadata=metadata)
