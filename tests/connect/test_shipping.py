"""A Connect server whose Python lacks this package: it is sent there, or the error says what is missing."""

from __future__ import annotations

from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.errors import SparkFailed
from omnigraph.spark.session import REMOTE, stop_session
from tests.cluster.checks import COUNT, TABLE, assert_whole, new_graph
from tests.connect.server import running_connect_server
from tests.spark.bare_python import bare_python


@pytest.mark.long
@pytest.mark.usefixtures("staged")
def test_the_package_is_sent_to_a_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stop_session()
    monkeypatch.delenv(REMOTE, raising=False)
    graph = new_graph(tmp_path)
    python = bare_python(tmp_path)
    try:
        with running_connect_server(tmp_path / "server", python=str(python)) as server:
            with pytest.raises(
                SparkFailed, match="has no module 'omnigraph'; run `pip install omnigraph` on the workers"
            ):
                og.open(graph.uri, spark=server.url).load(TABLE, type="N", engine="spark")
            assert len(graph.commits()) == 1
            sent = og.open(graph.uri, spark={"master": server.url, "ship_package": True})
            assert sent.load(TABLE, type="N", engine="spark").nodes_loaded == COUNT
            assert_whole(graph)
            assert sent.query("match { $n: N } return { count($n) as n }", engine="spark").rows == [{"n": COUNT}]
            assert sent.spark_table("node:N", ["n"]).where("n < 10").count() == 10
            stop_session()
    finally:
        stop_session()
