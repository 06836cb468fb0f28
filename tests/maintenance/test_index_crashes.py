"""`ensure_indices` fails or dies on the way: the graph is as before or as after, and the next call finishes it."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph import failpoints
from omnigraph.failpoints import FailpointError
from omnigraph.graph.lifecycle import connect
from tests import warm
from tests.commit.healthy import assert_healthy, picture
from tests.maintenance.coverage import published
from tests.mutation.org_graph import org_graph

CHILD = Path(__file__).with_name("index_child.py")
PLACES = ["main", "work"]

BEFORE = [
    "recovery.sidecar_write",
    "ensure_indices.pre_phase_a",
    "ensure_indices.post_phase_a",
    "ensure_indices.mid_phase_b",
]
AFTER = ["ensure_indices.post_phase_b_pre_manifest_commit", "ensure_indices.post_phase_c"]


@pytest.fixture
def org(tmp_path: Path) -> og.Graph:
    graph = org_graph(tmp_path / "org")
    graph.create_branch("work")
    return graph


def is_complete(graph: og.Graph, branch: str) -> bool:
    """Whether every table has its indexes."""
    tables = [published(graph, entry.key, branch) for entry in graph.snapshot(branch).entries()]
    return all(
        table.indices() and all(index.rows == table.count_rows() for index in table.indices()) for table in tables
    )


@pytest.mark.parametrize("branch", PLACES)
@pytest.mark.parametrize("failpoint", BEFORE)
def test_an_error_before_all_tables_moved_leaves_nothing(org: og.Graph, branch: str, failpoint: str) -> None:
    before = picture(connect(org.uri))
    with failpoints.armed(failpoint), pytest.raises(FailpointError):
        org.ensure_indices(branch)
    assert picture(connect(org.uri)) == before
    assert_healthy(connect(org.uri))
    org.ensure_indices(branch)
    assert is_complete(org, branch)
    assert org.ensure_indices(branch).commit is None


@pytest.mark.parametrize("branch", PLACES)
@pytest.mark.parametrize("failpoint", AFTER)
def test_an_error_after_all_tables_moved_is_settled_at_once(org: og.Graph, branch: str, failpoint: str) -> None:
    before = picture(connect(org.uri))
    with failpoints.armed(failpoint):
        report = org.ensure_indices(branch)
    assert org.head(branch).id == report.commit
    assert is_complete(org, branch)
    assert picture(connect(org.uri)) == before
    assert_healthy(connect(org.uri))


@pytest.mark.parametrize(("branch", "failpoint"), [("main", BEFORE[-1]), ("work", AFTER[0])])
def test_death(org: og.Graph, branch: str, failpoint: str) -> None:
    """The next call on a handle that was open all the time recovers what the dead process left, then builds the rest."""
    before = picture(connect(org.uri))
    environment = {**os.environ, "OMNIGRAPH_FAILPOINTS": f"{failpoint}=kill"}
    command = [sys.executable, str(CHILD), org.uri, branch]
    child = warm.run(command, env=environment, capture_output=True, check=False)
    assert child.returncode == -signal.SIGKILL, child.stderr.decode()
    report = org.ensure_indices(branch)
    assert (report.commit is None) == (failpoint in AFTER), "all tables had moved, so recovery finished it"
    assert len(org.recoveries()) == 1
    assert is_complete(org, branch)
    assert picture(connect(org.uri)) == before
    assert_healthy(connect(org.uri))


def test_what_others_left_is_settled_also_when_there_is_nothing_to_build(org: og.Graph) -> None:
    with failpoints.armed("recovery.sidecar_delete"):
        org.ensure_indices()
    assert org.pending_operations()
    assert org.ensure_indices().commit is None
    assert not org.pending_operations()
