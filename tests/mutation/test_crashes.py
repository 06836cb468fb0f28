"""Real mutations in real processes, killed in every window of the protocol: the graph is as before or as after, and works."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.graph.lifecycle import connect
from tests import warm
from tests.commit.healthy import assert_healthy
from tests.mutation.crash_child import MUTATIONS
from tests.mutation.org_graph import call, content, org_graph

CHILD = Path(__file__).with_name("crash_child.py")

#: Every window, and whether the mutation is found done afterwards.
DEATHS = {
    "mutation.prepared": False,
    "mutation.pre_phase_a": False,
    "mutation.post_phase_a": False,
    "mutation.mid_phase_b": False,
    "mutation.post_phase_b_pre_manifest_commit": True,
    "mutation.post_phase_c": True,
}


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A graph to copy; without branches it may be."""
    return Path(org_graph(tmp_path_factory.mktemp("filled") / "g").uri)


@pytest.fixture
def graph(filled: Path, tmp_path: Path) -> og.Graph:
    shutil.copytree(filled, tmp_path / "g")
    graph = og.open(tmp_path / "g")
    graph.create_branch("feature")
    return graph


def kill(graph: og.Graph, failpoint: str, mutation: str, branch: str) -> None:
    """Run a mutation in a process that dies at a failpoint."""
    command = [sys.executable, str(CHILD), graph.uri, mutation, branch]
    environment = {**os.environ, "OMNIGRAPH_FAILPOINTS": f"{failpoint}=kill"}
    child = warm.run(command, env=environment, capture_output=True, check=False)
    assert child.returncode == -signal.SIGKILL, f"it did not die at {failpoint}: {child.stderr.decode()}"


@pytest.mark.parametrize("failpoint", DEATHS)
@pytest.mark.parametrize(
    ("mutation", "branch"),
    [
        pytest.param("insert", "main", id="insert"),
        pytest.param("update", "main", id="update"),
        pytest.param("delete", "main", id="cascading delete"),
        pytest.param("insert", "feature", id="first write on a branch"),
        pytest.param("delete", "feature", id="first write is a cascading delete", marks=pytest.mark.long),
    ],
)
@pytest.mark.row("REC-12", "REC-13")
def test_death(graph: og.Graph, tmp_path: Path, mutation: str, branch: str, failpoint: str, row: list[str]) -> None:
    before = {name: content(graph, name) for name in graph.branches()}
    kill(graph, failpoint, mutation, branch)
    undisturbed = org_graph(tmp_path / "undisturbed")
    undisturbed.mutate(MUTATIONS[mutation])
    survivor = og.open(graph.uri)
    expected = {**before, branch: content(undisturbed) if DEATHS[failpoint] else before[branch]}
    assert {name: content(survivor, name) for name in survivor.branches()} == expected
    assert_healthy(connect(graph.uri))
    # A repeat of the request does it once, whether the first one did it or not.
    graph.mutate(MUTATIONS[mutation], branch=branch, idempotency_key="once")
    assert content(graph, branch) == content(undisturbed)
    assert_healthy(connect(graph.uri))


@pytest.mark.parametrize("failpoint", ["mutation.mid_phase_b", "mutation.post_phase_b_pre_manifest_commit"])
@pytest.mark.parametrize("name", ["put", "relevel", "drop_staff"])
def test_a_handle_that_was_open_heals_before_it_writes(graph: og.Graph, failpoint: str, name: str) -> None:
    """Also for an update or a delete: what the dead writer left is no conflict of theirs."""
    kill(graph, failpoint, "insert", "main")
    call(graph, name, *{"put": ("fay", 1), "relevel": ("ben", 1), "drop_staff": ("cleo",)}[name])
    shown = content(graph)
    assert ("eve" in shown["Staff"]) == (("eve", "ada") in shown["Mentors"]) == DEATHS[failpoint]
    assert [recovery.writer_kind for recovery in graph.recoveries()] == ["Mutation"]
    assert_healthy(connect(graph.uri))
