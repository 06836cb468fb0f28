"""`omnigraph ensure-indices`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.graph.lifecycle import connect
from tests.cli.calling import call
from tests.commit.healthy import tree

Capsys = pytest.CaptureFixture[str]


def test_build_once(capsys: Capsys, org: Path) -> None:
    outcome = call(capsys, "ensure-indices", "org.omni")
    assert outcome.code == 0
    assert outcome.err == "omnigraph ensure-indices → org.omni (direct, local)\n"
    first, *lines = outcome.out.splitlines()
    assert first.startswith("ensure-indices org.omni — ")
    assert any(line.startswith("  node type 'Staff' property '") for line in lines)
    assert og.open("org.omni", "ro").head().kind == "maintenance"
    assert call(capsys, "ensure-indices", "org.omni").out.startswith("ensure-indices org.omni — 0 built, ")


def test_dry_run(capsys: Capsys, org: Path) -> None:
    files = tree(connect("org.omni"))
    outcome = call(capsys, "ensure-indices", "org.omni", "--dry-run", "--type", "node:Team")
    assert outcome.out.splitlines()[0] == "ensure-indices org.omni — 3 to build, 0 pending"
    assert outcome.err == "nothing was changed; leave --dry-run out to do it\n"
    shown = json.loads(call(capsys, "ensure-indices", "org.omni", "--dry-run", "--json").out)
    assert (shown["dry_run"], shown["commit"]) == (True, None)
    assert {index["type_key"] for index in shown["built"]} >= {"node:Team", "edge:Mentors"}
    assert tree(connect("org.omni")) == files


def test_json_of_some_types(capsys: Capsys, org: Path, home: Path) -> None:
    (home / "config.yaml").write_text("operator: { actor: act-me }")
    outcome = call(capsys, "ensure-indices", "--store", "org.omni", "--type", "node:Team", "--json", "--quiet")
    shown = json.loads(outcome.out)
    head = og.open("org.omni", "ro").head()
    assert (shown["uri"], shown["branch"], shown["commit"], outcome.err) == ("org.omni", "main", head.id, "")
    assert {index["type_key"] for index in shown["built"]} == {"node:Team"}
    assert head.actor == "act-me"


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--type", "node:Nope"), "node:Nope"),
        (("--branch", "nope"), "branch 'nope' not found"),
    ],
)
def test_failures(capsys: Capsys, org: Path, flags: tuple[str, ...], message: str) -> None:
    outcome = call(capsys, "ensure-indices", "org.omni", *flags)
    assert (outcome.code, outcome.out) == (1, "")
    assert message in outcome.err
