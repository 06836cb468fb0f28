"""`omnigraph verify`: what it prints, its exit code, and that it asks before it repairs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import omnigraph as og
from tests.cli.calling import call
from tests.mutation.org_graph import WRITES, org_graph

Capsys = pytest.CaptureFixture[str]


@pytest.fixture
def graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> og.Graph:
    monkeypatch.chdir(tmp_path)
    made = org_graph(tmp_path / "org.omni")
    made.mutate(WRITES, "put", {"h": "eve", "n": 1})
    return made


def damaged(graph: og.Graph) -> Path:
    """The newest data file of the staff, with one bit flipped."""
    entry = graph._context.manifest.load().by_key["node:Staff"]
    fragment = graph._context.tables.open(entry.location, entry.version).dataset.get_fragments()[-1]
    file = Path(graph.uri) / entry.path / "data" / fragment.metadata.files[0].path
    data = bytearray(file.read_bytes())
    data[40] ^= 1
    file.write_bytes(data)
    return file


def test_a_whole_graph(capsys: Capsys, graph: og.Graph) -> None:
    outcome = call(capsys, "verify", "org.omni")
    assert outcome.code == 0
    first, last = outcome.out.splitlines()
    assert first.startswith("verify org.omni — 1 branch, 0 tags, 3 commits, ")
    assert last == "no damage"
    shown = json.loads(call(capsys, "verify", "org.omni", "--deep", "--json").out)
    assert (shown["ok"], shown["deep"], shown["damages"], shown["unrecorded"]) == (True, True, [], 0)


def test_damage_is_told_with_what_it_affects(capsys: Capsys, graph: og.Graph) -> None:
    file = damaged(graph)
    outcome = call(capsys, "verify", "org.omni", "--deep")
    assert outcome.code == 1
    assert f"content: data {file.relative_to(graph.uri)}" in outcome.out
    assert "affects branch main, 1 commit; 1 row" in outcome.out
    assert "1 damage found" in outcome.out
    assert "node type 'Staff' on branch 'main': would be restored" in outcome.err
    shown = json.loads(call(capsys, "verify", "org.omni", "--deep", "--json").out)
    (damage,) = shown["damages"]
    assert (damage["kind"], damage["branches"], damage["rows"]) == ("content", ["main"], 1)


def test_repair_is_confirmed(capsys: Capsys, graph: og.Graph) -> None:
    damaged(graph)
    head = graph.head().id
    for arguments in (["--repair"], ["--repair", "--json"]):
        outcome = call(capsys, "verify", "org.omni", "--deep", *arguments)
        assert (outcome.code, "--yes" in outcome.err) == (1, True)
    assert og.open(graph.uri, mode="ro").head().id == head
    outcome = call(capsys, "verify", "org.omni", "--deep", "--repair", "--yes")
    assert "was restored to version 2; lost: 1 row, the changes of 1 commit" in outcome.out
    assert og.open(graph.uri, mode="ro").entity("node", "Staff", "eve") is None


def test_a_graph_that_can_not_be_opened(capsys: Capsys, graph: og.Graph) -> None:
    (Path(graph.uri) / "_schema.ir.json").write_text("{}")
    outcome = call(capsys, "verify", "org.omni")
    assert outcome.code == 1
    assert "_schema.ir.json" in outcome.out
    assert call(capsys, "verify", "nowhere.omni").code == 1


def test_recording_needs_reading(capsys: Capsys, graph: og.Graph) -> None:
    assert call(capsys, "verify", "org.omni", "--record").code == 2
    (Path(graph.uri) / "__digests.log").unlink()
    assert "without a digest" in call(capsys, "verify", "org.omni").out
    assert "digests recorded" in call(capsys, "verify", "org.omni", "--deep", "--record").out
