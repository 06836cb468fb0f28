"""The graph of the server tests, embedded and served."""

from __future__ import annotations

from tests.server.conftest import graph_path, graph_template, reading, served

__all__ = ["graph_path", "graph_template", "reading", "served"]
