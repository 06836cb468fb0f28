"""The scenarios of the verbs, typed on the command line: on storage and over a server they print the same, with the same code."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest

from tests.client.outcomes import outcome
from tests.client.scenarios import READS, WRITES
from tests.client.typed import NotTyped, Typed
from tests.server.serving import TOKEN, Served, serving, settings_of

#: How many scenarios the command line has nothing for; one more would be a gap that nobody has noticed.
MOST_READS_WITHOUT, MOST_WRITES_WITHOUT = 60, 30


@pytest.fixture(autouse=True)
def operator(tmp_path_factory: pytest.TempPathFactory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An operator without a configuration, who has the token of the server; files go with the test."""
    monkeypatch.setenv("OMNIGRAPH_HOME", str(tmp_path_factory.mktemp("home")))
    monkeypatch.setenv("OMNIGRAPH_BEARER_TOKEN", TOKEN)
    monkeypatch.setenv("OMNIGRAPH_INLINE_LOAD_BYTES", "1000000000")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


@pytest.fixture(scope="module")
def reads(graph_template: Path, reading: Served, tmp_path_factory: pytest.TempPathFactory) -> list[Typed]:
    path = shutil.copytree(graph_template, tmp_path_factory.mktemp("stored") / "people.omni")
    return [stored(path), over(reading.url)]


def stored(path: Path) -> Typed:
    return Typed(str(path), "--store", str(path))


def over(url: str, graph: str = "people") -> Typed:
    return Typed(f"{url}/graphs/{graph}", "--server", url, "--graph", graph)


def typed_outcome(scenario: Any, graph: Typed) -> Any:
    """What a scenario comes to on the command line, without who has written; None when it can not be typed."""
    try:
        return _by_nobody(outcome(scenario, graph))
    except NotTyped:
        return None


def _by_nobody(value: Any) -> Any:
    """On storage nobody writes here, over the server the actor of the token."""
    if isinstance(value, dict):
        return {name: _by_nobody(item) for name, item in value.items() if name not in ("actor", "actor_id")}
    return [_by_nobody(item) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize("name", READS)
def test_reads(reads: list[Typed], name: str) -> None:
    embedded, served = (typed_outcome(READS[name], graph) for graph in reads)
    assert served == embedded


def test_most_scenarios_can_be_typed(reads: list[Typed]) -> None:
    without = [name for name, scenario in READS.items() if typed_outcome(scenario, reads[0]) is None]
    assert len(without) <= MOST_READS_WITHOUT, without


#: Enough of them for the quick suite: every verb, and errors of each kind.
QUICK = [name for number, name in enumerate(WRITES) if number % 4 == 0]


@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.long) for name in WRITES]
)
def test_writes(graph_path: Path, tmp_path: Path, name: str) -> None:
    other = Path(shutil.copytree(graph_path, tmp_path / "other" / "people.omni"))
    expected = typed_outcome(WRITES[name], stored(graph_path))
    if expected is None:
        return
    with serving(settings_of(other)) as served:
        assert typed_outcome(WRITES[name], over(served.url)) == expected
