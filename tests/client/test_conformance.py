"""The same calls on an embedded graph and on a served one come to the same: results, and errors with their data."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.server.settings import GraphSource
from tests.client.on_loop import connected_on_loop
from tests.client.outcomes import outcome
from tests.client.scenarios import READS, WRITES
from tests.server.serving import TOKEN, Served, serving, settings_of


@pytest.fixture(scope="module")
def handles(
    graph_template: Path, reading: Served, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Any]]:
    """A graph as it is, and the same graph through a server, blocking and awaited; nothing is written to either."""
    folder = tmp_path_factory.mktemp("embedded")
    with (
        og.open(shutil.copytree(graph_template, folder / "people.omni")) as embedded,
        og.connect(reading.url, graph="people", token=TOKEN) as remote,
        connected_on_loop(reading.url, "people", TOKEN) as awaited,
    ):
        yield {"embedded": embedded, "connect": remote, "connect_async": awaited}


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files that scenarios make go with their test."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


@pytest.mark.parametrize("name", READS)
def test_reads(handles: dict[str, Any], name: str) -> None:
    expected = outcome(READS[name], handles["embedded"])
    assert outcome(READS[name], handles["connect"]) == expected
    assert outcome(READS[name], handles["connect_async"]) == expected


@pytest.mark.parametrize("name", WRITES)
def test_writes(graph_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv("OMNIGRAPH_INLINE_LOAD_BYTES", "1000000000")
    places = {kind: shutil.copytree(graph_path, tmp_path / kind / "people.omni") for kind in ("blocking", "awaited")}
    with og.open(graph_path) as embedded:
        expected = outcome(WRITES[name], embedded)
    sources = tuple(GraphSource(graph_id, str(path)) for graph_id, path in places.items())
    with serving(settings_of(graph_path, graphs=sources)) as served:
        with og.connect(served.url, graph="blocking", token=TOKEN) as remote:
            assert _without_actor(outcome(WRITES[name], remote)) == expected
        with connected_on_loop(served.url, "awaited", TOKEN) as awaited:
            assert _without_actor(outcome(WRITES[name], awaited)) == expected


def _without_actor(value: Any) -> Any:
    """The embedded handle writes as nobody, the token as `default`."""
    if isinstance(value, dict):
        return {
            name: None if name in ("actor", "actor_id") else _without_actor(item)
            for name, item in value.items()
            if name != "actor_id" or item != "default"
        }
    return [_without_actor(item) for item in value] if isinstance(value, list) else value
