"""A `VectorStore` of LangChain: documents are the nodes of one type, with a text, a vector and typed metadata."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.runnables import run_in_executor
from langchain_core.vectorstores import VectorStore
from langchain_core.vectorstores.utils import maximal_marginal_relevance

from omnigraph.client.graph import AnyGraph
from omnigraph.errors import BadRequest
from omnigraph.graph.entry import init
from omnigraph.ids import new_ulid
from omnigraph.integrations.documents import Layout, Search, by_ids, delete, layout_of, search
from omnigraph.integrations.filters import Filter

#: The schema of a store that makes its own graph.
_OWN = """node {type} {{
  document_id: String @key
  text: String @index
  metadata: String?
  vector: Vector({dimension})? @index @metric("{metric}")
}}
"""


class OmnigraphVectorStore(VectorStore):
    """Documents in a graph.

    `type` is a node type whose key is one String, with a text and a Vector property. Metadata whose names are properties of the
    type are stored there, typed, and can be filtered by; others are kept as JSON in `metadata`. `embedding` None: the graph's own
    provider embeds texts, as `@embed` says. `branch`: the branch that is read and written; that of the handle unless given.
    """

    def __init__(
        self,
        graph: AnyGraph,
        embedding: Embeddings | None = None,
        *,
        type: str = "Document",
        text: str | None = None,
        vector: str | None = None,
        metadata: str | None = "metadata",
        branch: str | None = None,
    ) -> None:
        self.graph = graph
        self.branch = branch
        self._embedding = embedding
        self._named = (type, text, vector, metadata)
        # What does not fit is told now, not at the first document.
        if self.layout.vector is None:
            raise BadRequest(f"{type} has no Vector property for the embeddings")

    @classmethod
    def create(
        cls,
        uri: str | os.PathLike[str],
        embedding: Embeddings,
        *,
        type: str = "Document",
        metric: str = "cosine",
        **options: Any,
    ) -> OmnigraphVectorStore:
        """A store in a new graph of its own, with vectors as long as those of the embedding. Takes the options of `init`."""
        dimension = len(embedding.embed_query("dimension"))
        return cls(
            init(uri, _OWN.format(type=type, dimension=dimension, metric=metric), **options), embedding, type=type
        )

    @classmethod
    def from_texts(
        cls,
        texts: list[str],
        embedding: Embeddings,
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: list[str] | None = None,
        graph: AnyGraph | None = None,
        uri: str | os.PathLike[str] | None = None,
        **kwargs: Any,
    ) -> OmnigraphVectorStore:
        """A store with these texts: in `graph`, or in a new graph at `uri`."""
        if (graph is None) == (uri is None):
            raise BadRequest("give `graph` (a graph to write to) or `uri` (the place of a new one)")
        store = cls.create(uri, embedding, **kwargs) if uri is not None else cls(graph, embedding, **kwargs)  # type: ignore[arg-type]
        store.add_texts(texts, metadatas, ids=ids)
        return store

    @property
    def layout(self) -> Layout:
        """Where the parts of documents are kept, by the schema as it is now."""
        type_name, text, vector, rest = self._named
        schema = self.graph.schema() if self.branch is None else self.graph.schema(self.branch)
        return layout_of(schema, type_name, text=text, vector=vector, rest=rest)

    @property
    def embeddings(self) -> Embeddings | None:
        return self._embedding

    # --- writing ----------------------------------------------------------------------------------------------------

    def add_texts(
        self,
        texts: Iterable[str],
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: list[str] | None = None,
        **kwargs: Any,
    ) -> list[str]:
        """Add texts with their metadata and ids, one of each for every text; see `add_documents`."""
        return self.add_documents(_paired(texts, metadatas), ids=ids)

    async def aadd_texts(
        self,
        texts: Iterable[str],
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: list[str] | None = None,
        **kwargs: Any,
    ) -> list[str]:
        return await self.aadd_documents(_paired(texts, metadatas), ids=ids)

    def add_documents(self, documents: list[Document], ids: list[str] | None = None, **kwargs: Any) -> list[str]:
        """Add documents, or replace those of the same id, in one commit; the last of an id counts."""
        texts = [document.page_content for document in documents]
        vectors = self._embedding.embed_documents(texts) if self._embedding is not None and texts else None
        return self._store(documents, ids, vectors)

    async def aadd_documents(self, documents: list[Document], ids: list[str] | None = None, **kwargs: Any) -> list[str]:
        texts = [document.page_content for document in documents]
        vectors = await self._embedding.aembed_documents(texts) if self._embedding is not None and texts else None
        return await run_in_executor(None, self._store, documents, ids, vectors)

    def _store(
        self, documents: list[Document], ids: Sequence[str | None] | None, vectors: list[list[float]] | None
    ) -> list[str]:
        if ids is not None and len(ids) != len(documents):
            raise ValueError(f"{len(ids)} ids for {len(documents)} documents; give one for each")
        if not documents:
            return []
        given = ids or [document.id for document in documents]
        named = [str(one) if one else new_ulid() for one in given]
        layout = self.layout
        rows = [
            layout.row(name, document.page_content, None if vectors is None else vectors[place], document.metadata)
            for place, (name, document) in enumerate(zip(named, documents, strict=True))
        ]
        self.graph.load(rows, "merge", branch=self.branch)
        return named

    def delete(self, ids: list[str] | None = None, **kwargs: Any) -> bool:
        """Delete documents, and the edges that touch them, in one commit; None: all. Ids that are not there are passed over."""
        delete(self.graph, self.layout, ids, self.branch)
        return True

    # --- reading ----------------------------------------------------------------------------------------------------

    def get_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        layout = self.layout
        found = by_ids(self.graph, layout, ids, self.branch)
        return [document(layout, found[name]) for name in dict.fromkeys(map(str, ids)) if name in found]

    def similarity_search(
        self, query: str, k: int = 4, *, filter: Filter | None = None, **kwargs: Any
    ) -> list[Document]:
        """The nearest documents, nearest first. `filter`: `{"year": {"$gt": 1990}}`, or an expression over `$d`."""
        return self._found(self._question(query, self._embedded(query), k, filter, kwargs))

    async def asimilarity_search(
        self, query: str, k: int = 4, *, filter: Filter | None = None, **kwargs: Any
    ) -> list[Document]:
        asked = self._question(query, await self._aembedded(query), k, filter, kwargs)
        return await run_in_executor(None, self._found, asked)

    def similarity_search_with_score(
        self, query: str, k: int = 4, *, filter: Filter | None = None, **kwargs: Any
    ) -> list[tuple[Document, float]]:
        """The nearest documents with their distances, by the metric of the property: small is near."""
        return self._scored(self._question(query, self._embedded(query), k, filter, kwargs))

    async def asimilarity_search_with_score(
        self, query: str, k: int = 4, *, filter: Filter | None = None, **kwargs: Any
    ) -> list[tuple[Document, float]]:
        asked = self._question(query, await self._aembedded(query), k, filter, kwargs)
        return await run_in_executor(None, self._scored, asked)

    def similarity_search_by_vector(
        self, embedding: list[float], k: int = 4, *, filter: Filter | None = None, **kwargs: Any
    ) -> list[Document]:
        return self._found(self._question(None, embedding, k, filter, kwargs))

    async def asimilarity_search_by_vector(self, embedding: list[float], k: int = 4, **kwargs: Any) -> list[Document]:
        return await run_in_executor(None, self.similarity_search_by_vector, embedding, k, **kwargs)

    def max_marginal_relevance_search(
        self, query: str, k: int = 4, fetch_k: int = 20, lambda_mult: float = 0.5, **kwargs: Any
    ) -> list[Document]:
        """Documents that are near and differ from each other: `k` of the `fetch_k` nearest."""
        if self._embedding is None:
            raise BadRequest("a search for documents that differ needs an embedding; give one to the store")
        return self.max_marginal_relevance_search_by_vector(
            self._embedding.embed_query(query), k, fetch_k, lambda_mult, **kwargs
        )

    async def amax_marginal_relevance_search(
        self, query: str, k: int = 4, fetch_k: int = 20, lambda_mult: float = 0.5, **kwargs: Any
    ) -> list[Document]:
        return await run_in_executor(None, self.max_marginal_relevance_search, query, k, fetch_k, lambda_mult, **kwargs)

    def max_marginal_relevance_search_by_vector(
        self,
        embedding: list[float],
        k: int = 4,
        fetch_k: int = 20,
        lambda_mult: float = 0.5,
        *,
        filter: Filter | None = None,
        **kwargs: Any,
    ) -> list[Document]:
        layout = self.layout
        asked = self._question(None, embedding, max(k, fetch_k), filter, kwargs, vectors=True)
        rows = search(self.graph, layout, asked, self.branch)
        if not rows:
            return []
        near = np.array(embedding, dtype=np.float32)
        chosen = maximal_marginal_relevance(near, [row["vector"] for row in rows], lambda_mult=lambda_mult, k=k)
        return [document(layout, rows[place]) for place in chosen]

    def _select_relevance_score_fn(self) -> Callable[[float], float]:
        layout = self.layout
        assert layout.vector is not None
        metric = layout.node.properties[layout.vector].metric
        if metric == "cosine":
            return self._cosine_relevance_score_fn
        # The negative dot product; the other one is for vectors of length 1.
        return (lambda distance: -distance) if metric == "dot" else self._euclidean_relevance_score_fn

    def _question(
        self,
        text: str | None,
        vector: list[float] | None,
        k: int,
        filter: Filter | None,
        others: Mapping[str, Any],
        vectors: bool = False,
    ) -> Search:
        return Search(text, vector, k, filter, others.get("params"), vectors=vectors)

    def _embedded(self, text: str) -> list[float] | None:
        return None if self._embedding is None else self._embedding.embed_query(text)

    async def _aembedded(self, text: str) -> list[float] | None:
        return None if self._embedding is None else await self._embedding.aembed_query(text)

    def _found(self, asked: Search) -> list[Document]:
        layout = self.layout
        return [document(layout, row) for row in search(self.graph, layout, asked, self.branch)]

    def _scored(self, asked: Search) -> list[tuple[Document, float]]:
        layout = self.layout
        return [(document(layout, row), float(row["score"])) for row in search(self.graph, layout, asked, self.branch)]


def _paired(texts: Iterable[str], metadatas: list[dict[str, Any]] | None) -> list[Document]:
    listed = list(texts)
    if metadatas is not None and len(metadatas) != len(listed):
        raise ValueError(f"{len(metadatas)} metadatas for {len(listed)} texts; give one for each")
    return [
        Document(page_content=text, metadata=metadatas[place] if metadatas else {}) for place, text in enumerate(listed)
    ]


def document(layout: Layout, row: Mapping[str, Any], **more: Any) -> Document:
    """A row as a document."""
    return Document(id=row["id"], page_content=row[f"p_{layout.text}"] or "", metadata={**layout.metadata(row), **more})


def documents(layout: Layout, rows: Iterable[Mapping[str, Any]]) -> list[Document]:
    """Rows as documents."""
    return [document(layout, row) for row in rows]
