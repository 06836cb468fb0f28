"""Processes of a cluster are killed while a load runs on them: the load is there as a whole or not at all, and nothing is left.

Tasks are also run twice in all of these (speculation), and a process that only stops for a while is one more case.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.commit.staging_jobs import list_jobs, remove_job
from omnigraph.errors import SparkFailed
from omnigraph.graph.lifecycle import connect
from omnigraph.load.model import Progress
from omnigraph.spark.session import Session
from tests.cluster.checks import COUNT, TABLE, assert_references, assert_whole, lines, new_graph
from tests.cluster.conftest import CONF
from tests.cluster.standalone import Cluster

DRIVER = Path(__file__).with_name("driver.py")


class Once:
    """A progress callback that does something when the first part of the input has been read, and never again."""

    def __init__(self, deed: Callable[[], None]) -> None:
        self._deed = deed
        self.done = False

    def __call__(self, progress: Progress) -> None:
        if not self.done and progress.stage == "read":
            self.done = True
            self._deed()


def deed(victim: str, cluster: Cluster, session: Session) -> Callable[[], None]:
    """What is done to the cluster."""
    app = str(session.context.applicationId)

    def kill(pids: list[int]) -> None:
        assert pids, f"there is no {victim} to kill"
        os.kill(pids[0], signal.SIGKILL)

    def kill_all() -> None:
        for pid in cluster.python_workers(app):
            os.kill(pid, signal.SIGKILL)

    if victim == "executor":
        return lambda: kill(cluster.executors(app))
    if victim == "Python worker":
        return lambda: kill(cluster.python_workers(app))
    if victim == "all Python workers":
        return kill_all
    assert victim == "worker"
    return lambda: cluster.kill_worker(0)


@pytest.mark.parametrize(
    ("victim", "form"),
    [
        pytest.param(victim, form, marks=() if (victim, form) == ("executor", "lines") else pytest.mark.long)
        for victim in ("executor", "Python worker", "all Python workers", "worker")
        for form in ("lines", "frame")
    ],
)
def test_a_death_while_reading(victim: str, form: str, cluster: Cluster, session: Session, place: Path) -> None:
    graph = new_graph(place)
    data: Any = lines() if form == "lines" else session.sql.createDataFrame(TABLE).repartition(8)
    if form == "lines":
        (place / "rows.jsonl").write_bytes(data)
        data = place / "rows.jsonl"
    options: dict[str, Any] = {"engine": "spark", "type": "N" if form == "frame" else None}
    killing = Once(deed(victim, cluster, session))
    try:
        done = graph.load(data, progress=killing, **options)
        assert done.nodes_loaded == COUNT
    except SparkFailed:
        # Then it is not there at all, and a repeat does it.
        assert graph.snapshot().open("node:N").count_rows() == 0
        assert_references(graph)
        assert graph.load(data, **options).nodes_loaded == COUNT
    assert killing.done
    assert_whole(graph)


@pytest.mark.long
def test_a_task_that_runs_twice_counts_once(cluster: Cluster, session: Session, place: Path) -> None:
    """An executor stands still in the middle: copies of its tasks do the work, and it comes back when all is committed."""
    graph = new_graph(place)
    (place / "rows.jsonl").write_bytes(lines())
    stopped: list[int] = []

    def stop() -> None:
        stopped.append(cluster.executors(str(session.context.applicationId))[0])
        os.kill(stopped[0], signal.SIGSTOP)

    try:
        done = graph.load(place / "rows.jsonl", engine="spark", progress=Once(stop))
    finally:
        for pid in stopped:
            os.kill(pid, signal.SIGCONT)
    assert stopped
    assert done.nodes_loaded == COUNT
    assert_whole(graph)
    assert graph.load(place / "rows.jsonl", "merge", engine="spark").nodes_loaded == COUNT
    assert_whole(graph)


def test_a_progress_that_raises_writes_nothing_and_harms_no_later_load(session: Session, place: Path) -> None:
    graph = new_graph(place)
    (place / "rows.jsonl").write_bytes(lines())

    def fail() -> None:
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        graph.load(place / "rows.jsonl", engine="spark", progress=Once(fail))
    assert graph.snapshot().open("node:N").count_rows() == 0
    assert_references(graph)
    for mode in ("append", "merge"):
        assert graph.load(place / "rows.jsonl", mode, engine="spark").nodes_loaded == COUNT
    assert_whole(graph)


@pytest.mark.long
def test_a_killed_driver(cluster: Cluster, place: Path) -> None:
    """Its tasks end with it. Its record keeps what it staged from cleanup until the lease runs out; the graph is untouched."""
    graph = new_graph(place)
    (place / "rows.jsonl").write_bytes(lines())
    others = set(cluster.executors("app-"))
    command = [sys.executable, str(DRIVER), graph.uri, cluster.url, str(place / "rows.jsonl"), json.dumps(CONF)]
    child = subprocess.run(command, capture_output=True, check=False)
    assert child.returncode == -signal.SIGKILL, child.stderr.decode()
    context = connect(graph.uri)
    jobs = list_jobs(context.store)
    assert jobs
    assert graph.snapshot().open("node:N").count_rows() == 0
    while set(cluster.executors("app-")) - others:
        time.sleep(0.1)
    for job in jobs:
        remove_job(context.store, job.job_id)
    assert_references(graph)
    assert og.open(graph.uri).load(place / "rows.jsonl", engine="local").nodes_loaded == COUNT
    assert_whole(graph)
