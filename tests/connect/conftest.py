"""One Spark Connect server for the tests of a process; in this package everything on Spark goes through it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from omnigraph.commit.context import HELD_BYTES_VARIABLE
from omnigraph.spark.connect import ConnectSession
from omnigraph.spark.session import REMOTE, spark_session, stop_session
from tests.connect.server import ConnectServer, running_connect_server
from tests.query_spark.conftest import LEAN


@pytest.fixture(scope="session")
def connect_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConnectServer]:
    with running_connect_server(tmp_path_factory.mktemp("connect") / "server") as server:
        yield server


@pytest.fixture(scope="package")
def remote(connect_server: ConnectServer) -> Iterator[str]:
    """The address, which the environment of these tests names."""
    stop_session()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(REMOTE, connect_server.url)
        yield connect_server.url
        stop_session()


@pytest.fixture
def session(remote: str) -> ConnectSession:
    """The session of these tests, lean: they ask for few rows. A new one when a test has lost it."""
    found = spark_session()
    assert isinstance(found, ConnectSession)
    for name, value in LEAN.items():
        found.sql.conf.set(name, value)
    return found


@pytest.fixture
def staged(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loads are small here, and are carried out as large ones, in many parts."""
    monkeypatch.setenv(HELD_BYTES_VARIABLE, "0")
    monkeypatch.setattr("omnigraph.load.inputs.RANGE_BYTES", 64 << 10)
    monkeypatch.setattr("omnigraph.load.inputs.SMALLEST_RANGE", 64 << 10)
