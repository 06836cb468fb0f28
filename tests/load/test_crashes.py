"""Real loads in real processes, killed in every window: the graph is as before or as after, and works."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import tempfile
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph import failpoints
from omnigraph.commit.staging_jobs import list_jobs
from omnigraph.errors import OmnigraphError, SparkFailed
from omnigraph.graph.lifecycle import connect
from omnigraph.storage.tables.commit import drop_fork
from tests import warm
from tests.commit.healthy import assert_healthy, published_locations
from tests.commit.limited import limit
from tests.load.crash_child import LOADS, MODES
from tests.load.loading import content, files, org

CHILD = Path(__file__).with_name("crash_child.py")

#: Every window, and whether the load is found done afterwards.
DEATHS = {
    "staging.job_written": False,
    "load.chunk_read": False,
    "load.chunk_staged": False,
    "load.read": False,
    "load.checked": False,
    "load.forked": False,
    "load.prepared": False,
    "load.pre_phase_a": False,
    "load.post_phase_a": False,
    "branch_create.before_ref": False,
    "table_commit.before_commit": False,
    "load.mid_phase_b": False,
    "load.post_phase_b_pre_manifest_commit": True,
    "load.post_phase_c": True,
    "staging.job_removed": True,
}


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A graph to copy; without branches it may be."""
    return Path(org(tmp_path_factory.mktemp("filled") / "g").uri)


@pytest.fixture
def graph(filled: Path, tmp_path: Path) -> og.Graph:
    shutil.copytree(filled, tmp_path / "g")
    graph = og.open(tmp_path / "g")
    graph.create_branch("feature")
    return graph


def kill(graph: og.Graph, failpoint: str, load: str, branch: str, way: str) -> None:
    """Run a load in a process that dies at a failpoint."""
    command = [sys.executable, str(CHILD), graph.uri, load, branch, way]
    environment = {**os.environ, "OMNIGRAPH_FAILPOINTS": f"{failpoint}=kill"}
    child = warm.run(command, env=environment, capture_output=True, check=False)
    assert child.returncode == -signal.SIGKILL, f"it did not die at {failpoint}: {child.stderr.decode()}"


def passes(failpoint: str, load: str, branch: str, way: str) -> bool:
    """Whether a load comes by a failpoint at all."""
    if failpoint == "load.forked":
        return way != "held" and branch != "main" and load != "empty"
    if failpoint == "branch_create.before_ref":
        return branch == "new"
    if failpoint in ("table_commit.before_commit", "load.mid_phase_b"):
        return load != "empty"
    return True


LONG = (pytest.mark.long,)
#: The load, its branch, the way it is carried out, and the marks of its tests.
KILLED: list[tuple[str, str, str, tuple[pytest.MarkDecorator, ...]]] = [
    ("append", "main", "held", LONG),
    ("merge", "main", "staged", LONG),
    ("overwrite", "main", "staged", LONG),
    ("append", "new", "staged", ()),
    ("append", "new", "held", LONG),
    ("empty", "new", "held", LONG),
    ("merge", "feature", "held", LONG),
    ("merge", "feature", "staged", ()),
    ("overwrite", "feature", "staged", LONG),
    ("merge", "main", "spark", LONG),
]
CASES = [
    pytest.param(load, branch, way, failpoint, id=f"{load}-{branch}-{way}-{failpoint}", marks=marks)
    for load, branch, way, marks in KILLED
    for failpoint in DEATHS
    if passes(failpoint, load, branch, way)
    # On Spark these are passed in worker processes, which die instead of the driver; another test covers that.
    and not (way == "spark" and failpoint.startswith("load.chunk"))
]


@pytest.mark.parametrize(("load", "branch", "way", "failpoint"), CASES)
@pytest.mark.row("REC-12", "REC-13")
def test_death(
    graph: og.Graph, filled: Path, tmp_path: Path, load: str, branch: str, way: str, failpoint: str, row: list[str]
) -> None:
    before = {name: content(graph, name) for name in graph.branches()}
    kill(graph, failpoint, load, branch, way)
    shutil.copytree(filled, tmp_path / "undisturbed")
    undisturbed = og.open(tmp_path / "undisturbed")
    undisturbed.load(LOADS[load].encode(), MODES[load], engine="local")
    survivor = og.open(graph.uri)
    expected = dict(before)
    # When no table has moved there is nothing to finish, and recovery only removes the record.
    if DEATHS[failpoint] and not (load == "empty" and failpoint == "load.post_phase_b_pre_manifest_commit"):
        expected[branch] = content(undisturbed)
    assert {name: content(survivor, name) for name in survivor.branches()} == expected
    # The job record of the dead process names every fork that was not published, and stays until its lease has run out.
    context = connect(graph.uri)
    jobs = list_jobs(context.store)
    assert len(jobs) == (0 if failpoint == "staging.job_removed" else 1)
    for location in {location for job in jobs for location in job.tables if location.branch is not None}:
        if location not in published_locations(context):
            drop_fork(context.tables, location)
    assert_healthy(connect(graph.uri))
    # A repeat of the request does it once, whether the first one did it or not.
    data = LOADS[load].encode()
    survivor.load(data, MODES[load], branch=branch, base="main", engine="local", idempotency_key="once")
    assert content(survivor, branch) == content(undisturbed)
    assert_healthy(connect(graph.uri))


def test_the_next_load_removes_the_keys_of_a_killed_one(
    graph: og.Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "temporary"
    place.mkdir()
    monkeypatch.setenv("TMPDIR", str(place))
    kill(graph, "load.read", "append", "main", "staged")
    (left,) = place.glob("omnigraph-load-*")
    assert list(left.rglob("chunk-*"))
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    limit(graph, held_bytes=0)
    graph.load(LOADS["append"].encode(), engine="local")
    assert list(place.iterdir()) == []


@pytest.mark.parametrize("failpoint", [name for name in DEATHS if name not in ("staging.job_removed",)])
@pytest.mark.parametrize(
    ("load", "branch", "holds"), [("merge", "main", False), ("append", "new", False), ("overwrite", "feature", True)]
)
def test_a_failure_leaves_nothing(graph: og.Graph, load: str, branch: str, holds: bool, failpoint: str) -> None:
    """After an error the graph is as before or holds the whole load, nothing is left over, and loads still work."""
    if not passes(failpoint, load, branch, "held" if holds else "staged"):
        pytest.skip("this load does not pass the failpoint")
    if not holds:
        limit(graph, held_bytes=0)
    before, there = {name: content(graph, name) for name in graph.branches()}, files(graph)
    done = False
    with failpoints.armed(failpoint):
        try:
            graph.load(LOADS[load].encode(), MODES[load], branch=branch, base="main", engine="local")
            done = True
        except OmnigraphError:
            pass
    assert failpoints.was_hit(failpoint)
    assert done == DEATHS[failpoint]
    assert list_jobs(connect(graph.uri).store) == []
    if not done:
        assert {name: content(graph, name) for name in graph.branches()} == before
        if failpoint in ("staging.job_written", "load.prepared") or failpoint.startswith(
            ("load.c", "load.r", "load.f")
        ):
            assert files(graph) == there
        graph.load(LOADS[load].encode(), MODES[load], branch=branch, base="main", engine="local")
    assert_healthy(connect(graph.uri))


def test_a_worker_that_dies(graph: og.Graph) -> None:
    """Its load fails with one line, nothing is written, and the next one works."""
    before, there = content(graph), files(graph)
    limit(graph, held_bytes=0)
    with pytest.raises(SparkFailed, match="a Spark worker process died"):
        graph.load([Deadly()], "append", engine="spark")
    assert content(graph) == before
    assert files(graph) == there
    graph.load(LOADS["append"].encode(), engine="spark")


class Deadly(dict[str, object]):
    """A document that kills the process it is sent to."""

    def __reduce__(self) -> tuple[object, ...]:
        return os.kill, (_Own(), signal.SIGKILL)


class _Own(int):
    """The process id of whoever unpickles it."""

    def __reduce__(self) -> tuple[object, ...]:
        return os.getpid, ()
