"""What the page is built from: packages that are pinned to what they contain."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.studio.browser import HERE, ROOT


@pytest.mark.parametrize("folder", [ROOT / "studio", HERE], ids=["studio", "tests"])
def test_every_package_is_pinned_by_its_content(folder: Path) -> None:
    """Also those of other platforms; and the lock names no place that it was downloaded from."""
    text = (folder / "package-lock.json").read_text()
    packages = json.loads(text)["packages"]
    assert [name for name, about in packages.items() if name and "integrity" not in about] == []
    assert "resolved" not in text
