"""Graphs for the tests of the commit layer."""

from __future__ import annotations

from pathlib import Path

import pytest

from omnigraph.commit.context import CommitContext
from omnigraph.storage.root import Root
from tests.commit.org import STAFF, TEAM, insert, load_org, new_graph, staff, team
from tests.commit.scenarios import fill


@pytest.fixture
def graph(tmp_path: Path) -> CommitContext:
    """An empty graph on local disk."""
    return new_graph(str(tmp_path / "graph"))


@pytest.fixture
def small(graph: CommitContext) -> CommitContext:
    """One member of staff and one team, on local disk."""
    insert(graph, {STAFF: staff(["ada"]), TEAM: team(["core"])})
    return graph


@pytest.fixture(scope="session")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A graph with some history, to be copied: without branches it may be."""
    place = tmp_path_factory.mktemp("filled") / "graph"
    fill(new_graph(str(place)))
    return place


@pytest.fixture
def shared_graph(shared_root: Root) -> CommitContext:
    """An empty graph on each kind of store."""
    return new_graph(shared_root.uri, storage_options=shared_root.storage_options)


@pytest.fixture
def org(shared_graph: CommitContext) -> CommitContext:
    """FX-ORG on each kind of store."""
    load_org(shared_graph)
    return shared_graph
