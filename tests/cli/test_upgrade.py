"""`omnigraph upgrade`: what it says before and after, and its exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from omnigraph.commit.format import CURRENT
from tests.cli.calling import call
from tests.commit.old_format import OldGraph, old_org
from tests.commit.test_manifest import stamp

Capsys = pytest.CaptureFixture[str]


@pytest.fixture
def old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> OldGraph:
    monkeypatch.chdir(tmp_path)
    return old_org(str(tmp_path / "old.omni"))


def test_it_says_what_it_will_do_and_does_it_once(capsys: Capsys, old: OldGraph) -> None:
    plan = [
        "upgrade old.omni — format 3 found, 4 is current",
        "  branch 'main': format 3 → 4",
        "  branch 'feature': format 3 → 4",
    ]
    checked = call(capsys, "upgrade", "old.omni", "--check")
    assert (checked.code, checked.out.splitlines(), checked.err) == (3, plan, "")
    assert old.stamp() == 3

    done = call(capsys, "upgrade", "old.omni")
    assert (done.code, done.out.splitlines()) == (0, [*plan, "upgraded 2 branches to format 4"])
    assert done.err == "omnigraph upgrade → old.omni (direct, local)\n"
    assert (old.stamp(), old.stamp("feature")) == (CURRENT, CURRENT)

    for flags in ([], ["--check"]):
        again = call(capsys, "upgrade", "old.omni", *flags)
        assert (again.code, again.err) == (0, "")
        assert again.out.splitlines() == ["upgrade old.omni — format 4 found, 4 is current", "nothing to do"]


def test_json(capsys: Capsys, old: OldGraph) -> None:
    branches = [{"branch": "main", "format": 3}, {"branch": "feature", "format": 3}]
    told = {"uri": "old.omni", "found": 3, "current": CURRENT, "branches": branches, "removed": []}
    checked = call(capsys, "upgrade", "old.omni", "--check", "--json")
    assert (checked.code, json.loads(checked.out)) == (3, told | {"check": True})
    done = call(capsys, "upgrade", "old.omni", "--json")
    assert (done.code, json.loads(done.out)) == (0, told | {"check": False})


def test_a_newer_format_is_refused_in_one_line(capsys: Capsys, old: OldGraph) -> None:
    stamp(old.context.root.lance_uri("__manifest"), "9")
    outcome = call(capsys, "upgrade", "old.omni", "--check")
    assert (outcome.code, outcome.out) == (1, "")
    assert "this graph has format 9, this OmniGraph knows 4; upgrade omnigraph" in outcome.err
