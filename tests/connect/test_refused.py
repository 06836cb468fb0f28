"""What does not work is said in one line, and nothing is written: addresses, sessions, servers that are gone or others."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from pathlib import Path

import pyspark
import pytest

import omnigraph as og
from omnigraph.errors import BadRequest, SparkFailed
from omnigraph.load.model import Progress
from omnigraph.spark.connect import ConnectSession, connect_to
from omnigraph.spark.options import SparkOptions
from omnigraph.spark.session import MASTER, REMOTE, spark_session, stop_session
from tests.cluster.checks import COUNT, assert_whole, lines, new_graph
from tests.connect.server import ConnectServer, running_connect_server


@pytest.mark.parametrize("address", ["sc://", "sc://host:port", "sc:///;token=hidden", "sc://a b:1"])
def test_what_is_no_address(address: str) -> None:
    with pytest.raises(BadRequest, match="is no address of Spark Connect; write sc://host:port") as raised:
        connect_to(address, {})
    assert "hidden" not in str(raised.value)


def test_a_remote_that_is_no_server(monkeypatch: pytest.MonkeyPatch) -> None:
    stop_session()
    monkeypatch.setenv(REMOTE, "local[2]")
    with pytest.raises(
        BadRequest, match=r"OMNIGRAPH_SPARK_REMOTE is the address of a Spark Connect server.*'local\[2\]'"
    ):
        spark_session()


@pytest.mark.parametrize("module", ["grpc", "grpc_status", "zstandard"])
def test_a_python_without_the_extra(module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(SparkFailed, match=r"run `pip install 'omnigraph\[connect\]'`") as raised:
        connect_to("sc://127.0.0.1:1", {})
    assert raised.value.kind == "connect"


def test_the_command_line_names_a_server_that_is_not_there(tmp_path: Path) -> None:
    graph = new_graph(tmp_path)
    (tmp_path / "rows.jsonl").write_bytes(lines())
    command = [sys.executable, "-m", "omnigraph", "load", graph.uri, "--mode", "append", "--engine", "spark", "--quiet"]
    done = subprocess.run(
        [*command, "--data", str(tmp_path / "rows.jsonl"), "--spark-master", "sc://127.0.0.1:1/;token=hidden"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    [line] = done.stderr.splitlines()
    assert line.startswith("Error: can not reach the Spark Connect server at sc://127.0.0.1:1: ")
    assert "hidden" not in line
    assert len(graph.commits()) == 1


def test_a_server_of_another_version(session: ConnectSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pyspark, "__version__", "4.1.2")
    with pytest.raises(SparkFailed, match=r"runs Spark 4\.3\.\d and this process has PySpark 4\.1\.2") as raised:
        spark_session(session.sql)
    assert raised.value.kind == "connect"


def test_a_setting_of_the_server(session: ConnectSession, connect_server: ConnectServer) -> None:
    with pytest.raises(BadRequest, match=r"'spark\.executor\.memory' is a setting of the Spark Connect server"):
        connect_to(connect_server.url, {"spark.executor.memory": "2g"})
    assert session.is_alive()


def test_a_stopped_session(session: ConnectSession, connect_server: ConnectServer, tmp_path: Path) -> None:
    other = connect_to(connect_server.url, {})
    other.sql.stop()
    graph = og.open(new_graph(tmp_path).uri, spark=other.sql)
    for work in (lambda: graph.load(lines(), engine="spark"), lambda: graph.spark_table("node:N")):
        with pytest.raises(
            SparkFailed, match="^the Spark session that was given has been stopped; give one that runs$"
        ):
            work()
    assert len(graph.commits()) == 1


@pytest.mark.long
@pytest.mark.usefixtures("staged")
@pytest.mark.parametrize("work", ["query", "load"])
def test_a_server_that_is_killed_under_way(work: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The load says so and nothing is published; with a server again, the same graph object loads."""
    stop_session()
    monkeypatch.delenv(REMOTE, raising=False)
    graph = new_graph(tmp_path)
    try:
        with running_connect_server(tmp_path / "first") as server:
            monkeypatch.setenv(MASTER, server.url)
            if work == "load":
                seen: list[str] = []

                def killing(told: Progress) -> None:
                    if told.stage not in ("engine", *seen):
                        seen.append(told.stage)
                        server.kill()

                with pytest.raises(SparkFailed, match="the Spark Connect server was lost while it ran") as raised:
                    graph.load(lines(), engine="spark", progress=killing)
            else:
                graph.load(lines(), engine="local")
                graph.query("match { $n: N } return { count($n) as n }", engine="spark")
                threading.Timer(0.3, server.kill).start()
                with pytest.raises(SparkFailed, match="the Spark Connect server was lost") as raised:
                    while True:
                        graph.query("match { $n: N } return { count($n) as n }", engine="spark")
        assert raised.value.kind == "lost"
        assert "\n" not in str(raised.value)
        assert len(graph.commits()) == (1 if work == "load" else 2)
        if work == "load":
            with running_connect_server(tmp_path / "second") as server:
                monkeypatch.setenv(MASTER, server.url)
                assert graph.load(lines(), engine="spark").nodes_loaded == COUNT
                assert_whole(graph)
                stop_session()
    finally:
        stop_session()


def test_options_of_python_name_a_session_a_server_and_the_sending_of_the_package() -> None:
    from omnigraph.spark.options import spark_options

    assert spark_options({"master": "sc://h:1", "ship_package": True}) == SparkOptions(
        master="sc://h:1", ship_package=True
    )
    with pytest.raises(BadRequest, match="ship_package is True or False"):
        spark_options({"ship_package": "yes"})
    given = time  # anything: it is looked at when it is used
    assert spark_options({"session": given, "ship_package": True}) == SparkOptions(given, ship_package=True)
