"""One cluster for the tests of a process, and a session on it that runs every task twice when it can.

A cluster takes a while to start, work and die: some tests run in every suite, the others only in the long one.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from omnigraph.spark.executors import active_executors
from omnigraph.spark.session import Session, stop_session
from tests.cluster.standalone import HOSTS, SHORT_LIVED, Cluster, running_cluster
from tests.spark.classic import classic_session

CONF = {
    "spark.cores.max": "2",
    "spark.executor.cores": "1",
    "spark.executor.memory": "512m",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.shuffle.partitions": "4",
    "spark.driver.extraJavaOptions": " ".join(SHORT_LIVED),
    "spark.executor.extraJavaOptions": " ".join(SHORT_LIVED),
    # The first job waits for both executors.
    "spark.scheduler.minRegisteredResourcesRatio": "1.0",
    # A copy of a task is started as soon as it takes a little longer than the quickest ones.
    "spark.speculation": "true",
    "spark.speculation.quantile": "0.1",
    "spark.speculation.multiplier": "1.1",
    "spark.speculation.minTaskRuntime": "50ms",
}


class Running:
    """The one session of the tests on a cluster."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def session(self) -> Session:
        if self._cluster.mend():
            # Its executors may all have gone to the other worker, and stay there.
            stop_session()
        while True:
            found = classic_session(master=self._cluster.url, conf=CONF)
            hosts = sorted(one.host for one in active_executors(found.context))
            if hosts == sorted(HOSTS):
                return found
            if len(hosts) == len(HOSTS):
                # Both are on one worker and stay there. Spark copies a slow task to another host only.
                stop_session()
            time.sleep(0.1)


@pytest.fixture(scope="package")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with running_cluster(tmp_path_factory.mktemp("cluster") / "c") as running:
        yield running


@pytest.fixture(scope="package")
def running(cluster: Cluster) -> Iterator[Running]:
    """The session on the cluster; the driver's temporary folder is one that the second worker does not see."""
    stop_session()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tempfile, "tempdir", str(cluster.private))
        yield Running(cluster)
        stop_session()


@pytest.fixture
def session(running: Running) -> Session:
    """A session with one executor on each worker; a new one when a test has left it otherwise."""
    return running.session()


@pytest.fixture
def place(cluster: Cluster, request: pytest.FixtureRequest) -> Path:
    """A new folder that all machines see."""
    name = "".join(letter if letter.isalnum() else "-" for letter in request.node.name)
    folder = cluster.shared / name
    folder.mkdir()
    return folder


@pytest.fixture(autouse=True)
def staged(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loads are small here, and are carried out as large ones, in many parts."""
    monkeypatch.setenv("OMNIGRAPH_HELD_LOAD_BYTES", "0")
    monkeypatch.setattr("omnigraph.load.inputs.RANGE_BYTES", 64 << 10)
    monkeypatch.setattr("omnigraph.load.inputs.SMALLEST_RANGE", 64 << 10)
