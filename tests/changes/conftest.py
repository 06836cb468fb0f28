"""Fixtures of the tests about changes."""

from __future__ import annotations

from pathlib import Path

import pytest

from omnigraph.commit.context import CommitContext
from tests.commit.org import new_graph


@pytest.fixture
def context(tmp_path: Path) -> CommitContext:
    """An empty graph that tables can be put into by hand."""
    return new_graph(str(tmp_path / "graph"))
