"""Executors that have what this package needs, and not the package: it is sent to them, or the error says what they lack."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.errors import SparkFailed
from omnigraph.spark.session import Session, stop_session
from tests.cluster.checks import COUNT, TABLE, assert_whole, lines, new_graph
from tests.cluster.standalone import Cluster
from tests.spark.bare_python import bare_python


@pytest.fixture
def without_package(cluster: Cluster, session: Session, monkeypatch: pytest.MonkeyPatch) -> Iterator[Session]:
    """A session whose workers run a Python that has all dependencies, and finds no package of ours."""
    monkeypatch.setattr(session.context, "pythonExec", str(bare_python(cluster.shared)))
    yield session
    # What was sent stays with a session.
    stop_session()


def test_the_package_is_sent_to_workers_that_lack_it(without_package: Session, place: Path) -> None:
    graph = new_graph(place)
    with pytest.raises(
        SparkFailed, match=r"has no module 'omnigraph'; run `pip install omnigraph` on the workers"
    ) as raised:
        og.open(graph.uri, spark=without_package).load(lines(), engine="spark")
    assert "\n" not in str(raised.value)
    assert len(graph.commits()) == 1
    sent = og.open(graph.uri, spark={"session": without_package, "ship_package": True})
    frame = without_package.sql.createDataFrame(TABLE).repartition(2)
    assert sent.load(frame, type="N", engine="spark").nodes_loaded == COUNT
    assert_whole(graph)
    assert sent.query("match { $n: N } return { count($n) as n }", engine="spark").rows == [{"n": COUNT}]
