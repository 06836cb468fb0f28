"""LangChain's classes over a graph (extra `langchain`): a vector store, a retriever, a graph store."""

from __future__ import annotations

from omnigraph.integrations.langchain.graph_store import OmnigraphGraphStore
from omnigraph.integrations.langchain.retriever import OmnigraphRetriever
from omnigraph.integrations.langchain.vector_store import OmnigraphVectorStore

__all__ = ["OmnigraphGraphStore", "OmnigraphRetriever", "OmnigraphVectorStore"]
