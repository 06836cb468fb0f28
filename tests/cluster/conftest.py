"""One cluster for the tests of a process, and a session on it that runs every task twice when it can."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from omnigraph.spark.session import Session, spark_session, stop_session
from tests.cluster.standalone import Cluster, running_cluster

CONF = {
    "spark.cores.max": "2",
    "spark.executor.cores": "1",
    "spark.executor.memory": "512m",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.shuffle.partitions": "4",
    # A copy of a task is started as soon as it takes a little longer than the quickest ones.
    "spark.speculation": "true",
    "spark.speculation.quantile": "0.1",
    "spark.speculation.multiplier": "1.1",
    "spark.speculation.minTaskRuntime": "50ms",
}


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with running_cluster(tmp_path_factory.mktemp("cluster") / "c") as running:
        yield running


@pytest.fixture(scope="module")
def session(cluster: Cluster) -> Iterator[Session]:
    """A session on the cluster; the driver's temporary folder is one that the second worker does not see."""
    stop_session()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tempfile, "tempdir", str(cluster.private))
        yield spark_session(master=cluster.url, conf=CONF)
        stop_session()


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
    monkeypatch.setattr("omnigraph.load.execute.HELD_BYTES", -1)
    monkeypatch.setattr("omnigraph.load.inputs.RANGE_BYTES", 64 << 10)
    monkeypatch.setattr("omnigraph.load.inputs.SMALLEST_RANGE", 64 << 10)
