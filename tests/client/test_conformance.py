"""The same calls on an embedded graph and on a served one come to the same: results, and errors with their data."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from tests.client.outcomes import outcome
from tests.client.scenarios import READS, WRITES
from tests.server.serving import TOKEN, Served, serving, settings_of


@pytest.fixture(scope="module")
def both(graph_template: Path, reading: Served, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Any, Any]]:
    """A graph as it is, and the same graph through a server; nothing is written to either."""
    folder = tmp_path_factory.mktemp("embedded")
    with (
        og.open(shutil.copytree(graph_template, folder / "people.omni")) as embedded,
        og.connect(reading.url, graph="people", token=TOKEN) as remote,
    ):
        yield embedded, remote


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files that scenarios make go with their test."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


@pytest.mark.parametrize("name", READS)
def test_reads(both: tuple[Any, Any], name: str) -> None:
    embedded, remote = both
    assert outcome(READS[name], remote) == outcome(READS[name], embedded)


@pytest.mark.parametrize("name", WRITES)
def test_writes(graph_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv("OMNIGRAPH_INLINE_LOAD_BYTES", "1000000000")
    other = Path(shutil.copytree(graph_path, tmp_path / "other" / "people.omni"))
    with og.open(graph_path) as embedded:
        expected = outcome(WRITES[name], embedded)
    with serving(settings_of(other)) as served, og.connect(served.url, graph="people", token=TOKEN) as remote:
        found = outcome(WRITES[name], remote)
    assert _without_actor(found) == expected


def _without_actor(value: Any) -> Any:
    """The embedded handle writes as nobody, the token as `default`."""
    if isinstance(value, dict):
        return {
            name: None if name in ("actor", "actor_id") else _without_actor(item)
            for name, item in value.items()
            if name != "actor_id" or item != "default"
        }
    return [_without_actor(item) for item in value] if isinstance(value, list) else value
