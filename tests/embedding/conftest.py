"""A service to ask, and an environment that says nothing about embedding."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.embedding.provider_server import Service, running_service


@pytest.fixture
def service() -> Iterator[Service]:
    with running_service() as running:
        yield running


@pytest.fixture(autouse=True)
def silent_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in os.environ:
        if name.startswith("OMNIGRAPH_EMBED") or name.endswith("_API_KEY"):
            monkeypatch.delenv(name)
