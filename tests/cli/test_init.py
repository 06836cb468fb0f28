"""`omnigraph init`."""

from __future__ import annotations

from pathlib import Path

import pytest

import omnigraph as og
from tests.cli.calling import call, spawn

Capsys = pytest.CaptureFixture[str]
SCHEMA = "node Staff { handle: String @key }\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "s.pg").write_text(SCHEMA)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_new_graph(capsys: Capsys, folder: Path, home: Path) -> None:
    (home / "config.yaml").write_text("operator: { actor: act-me }")
    outcome = call(capsys, "init", "--schema", "s.pg", "g.omni")
    assert (outcome.code, outcome.out, outcome.err) == (0, "initialized g.omni\n", "")
    graph = og.open(folder / "g.omni", "ro")
    assert graph.schema() == SCHEMA
    assert [(commit.kind, commit.actor) for commit in graph.commits()] == [("init", "act-me")]


def test_as_a_process(folder: Path) -> None:
    done = spawn("init", "--schema", "s.pg", "g.omni", cwd=folder)
    assert (done.returncode, done.stdout, done.stderr) == (0, "initialized g.omni\n", "")


def test_an_existing_graph_is_never_replaced(capsys: Capsys, folder: Path) -> None:
    og.init(folder / "g.omni", SCHEMA)
    for force in ((), ("--force",)):
        outcome = call(capsys, "init", "--schema", "s.pg", "g.omni", *force)
        assert (outcome.code, outcome.out) == (1, "")
        assert "is already initialized" in outcome.err


def test_force_replaces_orphans(capsys: Capsys, folder: Path) -> None:
    (folder / "g.omni").mkdir()
    (folder / "g.omni" / "_schema.pg").write_text("node Old { }")
    assert "remove them, or replace them with force" in call(capsys, "init", "--schema", "s.pg", "g.omni").err
    assert call(capsys, "init", "--schema", "s.pg", "--force", "g.omni").code == 0
    assert og.open(folder / "g.omni", "ro").schema() == SCHEMA


def test_a_bad_schema_is_pointed_at_and_nothing_is_made(capsys: Capsys, folder: Path) -> None:
    (folder / "s.pg").write_text("node Staff { handle: Strin @key }\n")
    outcome = call(capsys, "init", "--schema", "s.pg", "g.omni")
    assert outcome.code == 1
    error, source_line, caret = outcome.err.splitlines()
    assert error.startswith("Error: s.pg:1:22: parse error: expected ")
    assert error.endswith("did you mean `String`?")
    assert source_line == "  1 | node Staff { handle: Strin @key }"
    assert caret == "    |                      ^"
    assert not (folder / "g.omni").exists()


def test_a_missing_schema(capsys: Capsys, folder: Path) -> None:
    outcome = call(capsys, "init", "--schema", "no.pg", "g.omni")
    assert (outcome.code, outcome.err) == (1, "Error: cannot read 'no.pg': No such file or directory\n")


@pytest.mark.parametrize("arguments", [("init", "g.omni"), ("init", "--schema", "s.pg")], ids=" ".join)
def test_schema_and_uri_are_needed(capsys: Capsys, folder: Path, arguments: tuple[str, ...]) -> None:
    outcome = call(capsys, *arguments)
    assert outcome.code == 2
    assert "Missing" in outcome.err


def test_the_graphs_of_a_cluster_are_made_by_the_cluster(capsys: Capsys, folder: Path) -> None:
    (folder / "__cluster").mkdir()
    (folder / "__cluster" / "state.json").write_text("{}")
    outcome = call(capsys, "init", "--schema", "s.pg", "graphs/a.omni")
    assert outcome.code == 1
    assert f"graphs/a.omni lies under the cluster root {folder}" in outcome.err
    assert not (folder / "graphs").exists()
    assert call(capsys, "init", "--schema", "s.pg", "elsewhere/a.omni").code == 0


def test_a_folder_called_graphs_is_no_cluster(capsys: Capsys, folder: Path) -> None:
    assert call(capsys, "init", "--schema", "s.pg", "graphs/a.omni").code == 0
