"""`omnigraph snapshot`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import omnigraph as og
from tests.cli.calling import call

Capsys = pytest.CaptureFixture[str]


def test_what_people_see(capsys: Capsys, org: Path) -> None:
    outcome = call(capsys, "snapshot", "org.omni")
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.splitlines() == [
        "graph_branch: main",
        "graph_manifest_version: 2",
        "internal_schema_version: 4",
        "node type 'Staff' published_dataset_version=2 native_dataset_branch=main entities=4",
        "node type 'Team' published_dataset_version=2 native_dataset_branch=main entities=2",
        "edge type 'MemberOf' published_dataset_version=2 native_dataset_branch=main entities=2",
        "edge type 'Mentors' published_dataset_version=2 native_dataset_branch=main entities=3",
    ]


def test_json_of_a_branch(capsys: Capsys, org: Path) -> None:
    graph = og.open("org.omni")
    graph.create_branch("b")
    graph.mutate('query q() { insert Staff { handle: "eve" } }', branch="b")
    shown = json.loads(call(capsys, "snapshot", "org.omni", "--branch", "b", "--json").out)
    entry = graph.snapshot("b").entry("node:Staff")
    assert (shown["graph_branch"], shown["internal_schema_version"]) == ("b", 4)
    assert shown["graph_manifest_version"] == graph.snapshot("b").version
    assert shown["datasets"][0] == {
        "entity_kind": "node",
        "type_name": "Staff",
        "dataset_path": entry.path,
        "published_dataset_version": entry.version,
        "native_dataset_branch": entry.branch,
        "entity_count": 5,
    }
    assert "native_dataset_branch" not in shown["datasets"][1], "main is not named"


def test_an_unknown_branch(capsys: Capsys, org: Path) -> None:
    outcome = call(capsys, "snapshot", "org.omni", "--branch", "nope")
    assert (outcome.code, outcome.out) == (1, "")
    assert "branch 'nope' not found" in outcome.err


def test_looking_writes_nothing(capsys: Capsys, org: Path) -> None:
    before = sorted((path, path.stat().st_mtime_ns) for path in org.rglob("*"))
    assert call(capsys, "snapshot", "org.omni").code == 0
    assert sorted((path, path.stat().st_mtime_ns) for path in org.rglob("*")) == before
