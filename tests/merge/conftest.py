"""A graph with FX-MRG and a branch `feature`, for each test its own."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import omnigraph as og
from tests.merge.graphs import merge_graph


@pytest.fixture(scope="session")
def merge_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A graph to copy; it has no branches yet, so it may be copied."""
    return Path(merge_graph(tmp_path_factory.mktemp("template") / "g").uri)


@pytest.fixture
def graph(merge_template: Path, tmp_path: Path) -> og.Graph:
    """FX-MRG with a branch `feature`."""
    shutil.copytree(merge_template, tmp_path / "g")
    opened = og.open(tmp_path / "g")
    opened.create_branch("feature")
    return opened
