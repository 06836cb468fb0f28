"""Table storage runs on local disk and on S3."""

from __future__ import annotations

from pathlib import Path

import pytest

from omnigraph.storage.root import Root
from omnigraph.storage.tables.handles import Tables


@pytest.fixture
def tables(tmp_path: Path) -> Tables:
    """Tables on local disk."""
    return Tables(Root.parse(tmp_path / "graph"))


@pytest.fixture
def backend(shared_root: Root) -> Tables:
    """Tables on each kind of store."""
    return Tables(shared_root)
