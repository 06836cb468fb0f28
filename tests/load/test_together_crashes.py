"""Loads and transactions that were being published together in a process that is killed: all are found done, or none."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.errors import LoadRejected
from omnigraph.graph.lifecycle import connect
from tests import warm
from tests.commit.healthy import assert_healthy, assert_linear
from tests.load.loading import content, ids, org
from tests.load.together_child import calls

CHILD = Path(__file__).with_name("together_child.py")
GOOD = ("one", "two", "three", "four")

#: Every window, and whether the members are found done afterwards.
DEATHS = [
    pytest.param("group.gathered", False, marks=pytest.mark.long),
    pytest.param("mutation.prepared", False, marks=pytest.mark.long),
    pytest.param("mutation.pre_phase_a", False, marks=pytest.mark.long),
    pytest.param("mutation.post_phase_a", False, marks=pytest.mark.long),
    ("mutation.mid_phase_b", False),
    ("mutation.post_phase_b_pre_manifest_commit", True),
    pytest.param("publisher.before_commit", True, marks=pytest.mark.long),
    ("publisher.after_commit", True),
    pytest.param("mutation.post_phase_c", True, marks=pytest.mark.long),
    pytest.param("recovery.sidecar_delete", True, marks=pytest.mark.long),
    pytest.param("group.published", True, marks=pytest.mark.long),
]


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(org(tmp_path_factory.mktemp("filled") / "g").uri)


@pytest.fixture
def graph(filled: Path, tmp_path: Path) -> og.Graph:
    shutil.copytree(filled, tmp_path / "g")
    return og.open(tmp_path / "g")


@pytest.mark.parametrize(("failpoint", "done"), DEATHS)
def test_death(graph: og.Graph, filled: Path, tmp_path: Path, failpoint: str, done: bool) -> None:
    before, commits = content(graph), len(graph.commits())
    environment = {**os.environ, "OMNIGRAPH_FAILPOINTS": f"{failpoint}=kill"}
    child = warm.run([sys.executable, str(CHILD), graph.uri], env=environment, capture_output=True, check=False)
    assert child.returncode == -signal.SIGKILL, f"it did not die at {failpoint}: {child.stderr.decode()}"

    shutil.copytree(filled, tmp_path / "undisturbed")
    undisturbed = og.open(tmp_path / "undisturbed")
    for key in GOOD:
        calls(undisturbed)[key]()
    survivor = og.open(graph.uri)
    own = [commit for commit in survivor.commits() if commit.kind != "recovery"]
    assert content(survivor) == (content(undisturbed) if done else before)
    assert len(own) == commits + (len(GOOD) if done else 0)
    if done:
        made = own[: len(GOOD)][::-1]
        assert [commit.kind for commit in made] == ["load", "mutation", "mutation", "load"]
        assert [commit.message for commit in made] == [f"for {key}" for key in GOOD]
        assert [commit.recovery_for_actor or commit.actor for commit in made] == [f"by {key}" for key in GOOD]
        assert [len(survivor.commit_changes(commit.id).changes) for commit in made] == [2, 2, 1, 2]
    assert_healthy(connect(graph.uri))
    # A repeat of each request does it once, whether the group has done it or not.
    answers = [calls(survivor)[key]() for key in GOOD]
    with pytest.raises(LoadRejected):
        calls(survivor)["bad"]()
    own = [commit for commit in survivor.commits() if commit.kind != "recovery"]
    assert [one.commit for one in answers] == own[: len(GOOD)][::-1]
    assert len(own) == commits + len(GOOD)
    assert content(survivor) == content(undisturbed)
    assert_linear(connect(graph.uri), "main")
    assert_healthy(connect(graph.uri))


def test_two_processes(graph: og.Graph) -> None:
    """Groups of one process meet those of another; nothing is lost and the history is one chain."""
    before = len(graph.commits())
    children = [warm.Popen([sys.executable, str(CHILD), graph.uri, name], stderr=subprocess.PIPE) for name in "ab"]
    failed = [child.communicate()[1].decode() for child in children if child.wait()]
    assert not failed
    written = {f"{name}{thread}{turn}" for name in "ab" for thread in range(3) for turn in range(5)}
    assert written <= set(ids(graph, "node:Staff"))
    assert len(graph.commits()) == before + len(written)
    assert_linear(connect(graph.uri), "main")
    assert_healthy(connect(graph.uri))
