"""The limits of writes: from the environment when a graph is opened, and each handle has its own."""

from __future__ import annotations

from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.commit.context import HELD_BYTES_VARIABLE, Limits
from omnigraph.errors import BadRequest
from tests.commit.limited import limit
from tests.commit.org import SCHEMA


def test_a_graph_is_opened_with_the_limits_of_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = og.init(tmp_path / "g", SCHEMA)
    assert graph._context.limits == Limits()
    monkeypatch.setenv(HELD_BYTES_VARIABLE, "17")
    assert og.open(graph.uri)._context.limits == Limits(held_bytes=17)
    assert graph._context.limits == Limits(), "one that is open keeps its own"
    monkeypatch.setenv(HELD_BYTES_VARIABLE, "many")
    with pytest.raises(BadRequest, match="OMNIGRAPH_HELD_LOAD_BYTES is a number, not 'many'"):
        og.open(graph.uri)


def test_a_limit_belongs_to_one_handle(tmp_path: Path) -> None:
    graph = og.init(tmp_path / "g", SCHEMA)
    limit(graph, restarts=0)
    assert og.open(graph.uri)._context.limits.restarts == 5
