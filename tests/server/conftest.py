"""Servers for the tests on the wire: one that is shared by tests that only read, and fresh ones."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.server.serving import Served, make_graph, serving, settings_of


@pytest.fixture(scope="session")
def graph_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The graph, made once; a graph without branches may be copied."""
    return make_graph(tmp_path_factory.mktemp("template"))


@pytest.fixture(scope="session")
def reading(graph_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server that tests only read from."""
    folder = tmp_path_factory.mktemp("reading")
    shutil.copytree(graph_template, folder / "people.omni")
    with serving(settings_of(folder / "people.omni")) as served:
        yield served


@pytest.fixture
def graph_path(graph_template: Path, tmp_path: Path) -> Path:
    """A copy of the graph."""
    return Path(shutil.copytree(graph_template, tmp_path / "people.omni"))


@pytest.fixture
def served(graph_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    """A server of a copy of the graph, for tests that write; also large loads run in its process."""
    monkeypatch.setenv("OMNIGRAPH_INLINE_LOAD_BYTES", "1000000000")
    with serving(settings_of(graph_path)) as running:
        yield running
