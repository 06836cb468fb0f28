"""Transactions in processes that are killed in every window: the graph is as before or as after, never in between."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import time
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.graph.lifecycle import connect
from tests import warm
from tests.commit.healthy import assert_healthy
from tests.mutation.org_graph import content, org_graph
from tests.mutation.test_crashes import DEATHS
from tests.mutation.transaction_child import run

CHILD = Path(__file__).with_name("transaction_child.py")


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(org_graph(tmp_path_factory.mktemp("filled") / "g").uri)


@pytest.fixture
def graph(filled: Path, tmp_path: Path) -> og.Graph:
    shutil.copytree(filled, tmp_path / "g")
    graph = og.open(tmp_path / "g")
    graph.create_branch("feature")
    return graph


@pytest.fixture(scope="module")
def after(tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    """What an undisturbed transaction leads to."""
    graph = org_graph(tmp_path_factory.mktemp("undisturbed") / "g")
    run(graph, "main")
    return content(graph)


@pytest.mark.parametrize("branch", ["main", pytest.param("feature", marks=pytest.mark.long)])
@pytest.mark.parametrize("failpoint", ["transaction.between_queries", *DEATHS])
def test_death(graph: og.Graph, after: dict[str, object], failpoint: str, branch: str) -> None:
    before = {name: content(graph, name) for name in graph.branches()}
    environment = {**os.environ, "OMNIGRAPH_FAILPOINTS": f"{failpoint}=kill"}
    child = warm.run([sys.executable, str(CHILD), graph.uri, branch], env=environment, capture_output=True, check=False)
    assert child.returncode == -signal.SIGKILL, f"it did not die at {failpoint}: {child.stderr.decode()}"
    done = DEATHS.get(failpoint, False)
    survivor = og.open(graph.uri)
    assert {name: content(survivor, name) for name in survivor.branches()} == {
        **before,
        branch: after if done else before[branch],
    }
    assert_healthy(connect(graph.uri))
    if done:
        assert survivor.head(branch).message == "all of it"
    # A repeat does it once, whether the dead one did it or not.
    result = run(survivor, branch)
    assert content(survivor, branch) == after
    assert result.commit == survivor.head(branch)
    assert_healthy(connect(graph.uri))


def test_what_a_dead_one_left_in_temporary_files_goes_with_the_next(graph: og.Graph, tmp_path: Path) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    environment = {**os.environ, "TMPDIR": str(temporary)}
    command = [sys.executable, str(CHILD), graph.uri, "main"]
    dying = {**environment, "OMNIGRAPH_FAILPOINTS": "mutation.prepared=kill"}
    assert warm.run(command, env=dying, check=False).returncode == -signal.SIGKILL
    assert len(list(temporary.iterdir())) == 1
    assert warm.run(command, env=environment, check=False).returncode == 0
    assert list(temporary.iterdir()) == []


@pytest.mark.long
def test_killed_at_any_moment(filled: Path, tmp_path: Path, after: dict[str, object]) -> None:
    """No failpoint: the process is killed after a time that grows from nothing to more than it needs."""
    seen = set()
    for number in range(60):
        place = tmp_path / str(number)
        shutil.copytree(filled, place)
        before = content(og.open(place, "ro"))
        child = warm.Popen([sys.executable, str(CHILD), str(place), "main"])
        time.sleep(0.05 * number)
        child.kill()
        child.wait()
        survivor = og.open(place)
        found = content(survivor)
        assert found in (before, after)
        seen.add(found == after)
        assert_healthy(connect(survivor.uri))
        shutil.rmtree(place)
    assert seen == {True, False}
