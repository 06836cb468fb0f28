"""Mutations that were being published together in a process that is killed: all of them are found done, or none."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.errors import ValidationError
from omnigraph.graph.lifecycle import connect
from tests import warm
from tests.commit.healthy import assert_healthy, assert_linear
from tests.mutation.org_graph import content, org_graph
from tests.mutation.together_child import MUTATIONS

CHILD = Path(__file__).with_name("together_child.py")

#: Every window, and whether the mutations are found done afterwards.
DEATHS = {
    "group.gathered": False,
    "mutation.prepared": False,
    "mutation.pre_phase_a": False,
    "recovery.sidecar_write": False,
    "mutation.post_phase_a": False,
    "mutation.mid_phase_b": False,
    "mutation.post_phase_b_pre_manifest_commit": True,
    "publisher.before_commit": True,
    "publisher.after_commit": True,
    "mutation.post_phase_c": True,
    "recovery.sidecar_delete": True,
    "group.published": True,
}
GOOD = [key for key in MUTATIONS if key != "bad"]


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(org_graph(tmp_path_factory.mktemp("filled") / "g").uri)


@pytest.fixture
def graph(filled: Path, tmp_path: Path) -> og.Graph:
    shutil.copytree(filled, tmp_path / "g")
    graph = og.open(tmp_path / "g")
    graph.create_branch("feature")
    return graph


def own_commits(graph: og.Graph, branch: str) -> list[og.Commit]:
    """The commits of a branch without those by which recovery takes something back."""
    return [commit for commit in graph.commits(branch) if commit.kind != "recovery"]


def mutate(graph: og.Graph, key: str, branch: str) -> og.MutationResult:
    source = MUTATIONS[key]
    return graph.mutate(source, branch=branch, actor=f"by {key}", message=f"for {key}", idempotency_key=key)


@pytest.mark.parametrize("failpoint", DEATHS)
@pytest.mark.parametrize(
    "branch", ["main", pytest.param("feature", id="first write on a branch", marks=pytest.mark.long)]
)
def test_death(graph: og.Graph, tmp_path: Path, branch: str, failpoint: str) -> None:
    before, commits = content(graph, branch), len(own_commits(graph, branch))
    command = [sys.executable, str(CHILD), graph.uri, branch]
    environment = {**os.environ, "OMNIGRAPH_FAILPOINTS": f"{failpoint}=kill"}
    child = warm.run(command, env=environment, capture_output=True, check=False)
    assert child.returncode == -signal.SIGKILL, f"it did not die at {failpoint}: {child.stderr.decode()}"

    undisturbed = org_graph(tmp_path / "undisturbed")
    for key in GOOD:
        mutate(undisturbed, key, "main")
    survivor = og.open(graph.uri)
    done = DEATHS[failpoint]
    assert content(survivor, branch) == (content(undisturbed) if done else before)
    assert len(own_commits(survivor, branch)) == commits + (len(GOOD) if done else 0)
    if done:
        made = own_commits(survivor, branch)[: len(GOOD)][::-1]
        assert [(commit.group.place, commit.group.size) for commit in made if commit.group] == [
            (place, len(GOOD)) for place in range(1, len(GOOD) + 1)
        ]
        assert [commit.message for commit in made] == [f"for {key}" for key in GOOD]
        actors = [commit.recovery_for_actor or commit.actor for commit in made]
        assert actors == [f"by {key}" for key in GOOD]
        changes = [{one.id for one in survivor.commit_changes(commit.id).changes} for commit in made]
        assert changes[1] == {"ben"}
        assert [len(ids) for ids in changes] == [2, 1, 2, 1]
    assert_healthy(connect(graph.uri))
    # A repeat of each request does it once, whether the group has done it or not.
    answers = [mutate(survivor, key, branch) for key in GOOD]
    with pytest.raises(ValidationError):
        mutate(survivor, "bad", branch)
    assert [(one.affected_nodes, one.affected_edges) for one in answers] == [(1, 1), (1, 0), (1, 1), (0, 1)]
    assert [one.commit for one in answers] == own_commits(survivor, branch)[: len(GOOD)][::-1]
    assert len(own_commits(survivor, branch)) == commits + len(GOOD)
    assert content(survivor, branch) == content(undisturbed)
    assert_linear(connect(graph.uri), branch)
    assert_healthy(connect(graph.uri))
