"""Graphs that hold the shared fixtures; read-only, so one of each serves a whole test run."""

from __future__ import annotations

import pytest

import omnigraph as og
from tests.query.fixtures import LIT, LIT_ROWS, ORG, ORG_ROWS
from tests.query.loading import graph_with


@pytest.fixture(scope="session")
def org(tmp_path_factory: pytest.TempPathFactory) -> og.Graph:
    """FX-ORG."""
    return graph_with(tmp_path_factory.mktemp("org") / "graph", ORG, ORG_ROWS)


@pytest.fixture(scope="session")
def lit(tmp_path_factory: pytest.TempPathFactory) -> og.Graph:
    """FX-LIT."""
    return graph_with(tmp_path_factory.mktemp("lit") / "graph", LIT, LIT_ROWS)


@pytest.fixture(scope="session")
def empty_org(tmp_path_factory: pytest.TempPathFactory) -> og.Graph:
    """The schema of FX-ORG without rows."""
    return og.init(tmp_path_factory.mktemp("empty") / "graph", ORG)


@pytest.fixture(params=["indexed", "csr", "auto"])
def mode(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Each way to traverse."""
    monkeypatch.setenv("OMNIGRAPH_TRAVERSAL_MODE", request.param)
    value: str = request.param
    return value
