"""Loads and exports on a cluster of which one machine does not see the driver's temporary files."""

from __future__ import annotations

import gzip
import io
import sys
from pathlib import Path
from typing import Any

import orjson
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

import omnigraph as og
from omnigraph.errors import BadRequest, SparkFailed
from omnigraph.spark.runner import OnSpark
from omnigraph.spark.session import Session
from omnigraph.spark.visibility import Look, sights
from tests.cluster.checks import COUNT, SCHEMA, TABLE, assert_whole, lines, new_graph
from tests.cluster.standalone import HOSTS, SECOND, Cluster

pytestmark = pytest.mark.usefixtures("session")


def _jsonl(folder: Path) -> Path:
    path = folder / "rows.jsonl"
    path.write_bytes(lines())
    return path


def an_input(kind: str, cluster: Cluster, session: Session, monkeypatch: pytest.MonkeyPatch, place: Path) -> Any:
    """The same rows in each form that a load takes; those that are files lie where the second worker sees none."""
    folder = cluster.private / place.name
    folder.mkdir(exist_ok=True)
    if kind == "shared path":
        return _jsonl(place)
    if kind == "driver's path":
        return _jsonl(folder)
    if kind == "driver's gz":
        (folder / "rows.jsonl.gz").write_bytes(gzip.compress(lines()))
        return folder / "rows.jsonl.gz"
    if kind == "driver's parquet":
        pq.write_table(TABLE, folder / "rows.parquet", row_group_size=5000)
        return folder / "rows.parquet"
    if kind == "driver's csv":
        pacsv.write_csv(TABLE, folder / "rows.csv")
        return folder / "rows.csv"
    if kind == "stdin":
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(lines())))
        return "-"
    if kind == "dicts":
        return [orjson.loads(line) for line in lines().splitlines()]
    if kind == "bytes":
        return lines()
    if kind == "arrow":
        monkeypatch.setattr("omnigraph.load.inputs.RANGE_BYTES", 100_000)
        return TABLE
    assert kind == "frame"
    return session.sql.createDataFrame(TABLE).repartition(4)


KINDS = ("shared path", "driver's path", "driver's gz", "driver's parquet", "driver's csv", "stdin", "dicts", "bytes")
TABLES = ("driver's parquet", "driver's csv", "arrow", "frame")


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(kind, marks=() if kind in ("driver's parquet", "frame") else pytest.mark.long)
        for kind in (*KINDS, "arrow", "frame")
    ],
)
def test_every_input_arrives_whole(
    kind: str, cluster: Cluster, session: Session, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = new_graph(place)
    data = an_input(kind, cluster, session, monkeypatch, place)
    done = graph.load(data, engine="spark", type="N" if kind in TABLES else None)
    assert (done.nodes_loaded, done.report.engine) == (COUNT, "spark")
    assert_whole(graph)


@pytest.mark.long
@pytest.mark.parametrize("mode", ["merge", "overwrite", "update"])
def test_the_other_modes(mode: Any, place: Path, session: Session) -> None:
    graph = new_graph(place)
    graph.load(lines(), engine="local")
    frame = session.sql.createDataFrame(TABLE)
    assert graph.load(frame, mode, engine="spark", type="N").nodes_loaded == COUNT
    assert graph.load(lines(), mode, engine="spark").nodes_loaded == COUNT
    assert_whole(graph)


@pytest.mark.long
def test_a_frame_is_the_same_twice(place: Path, session: Session) -> None:
    graph = new_graph(place)
    frame = session.sql.createDataFrame(TABLE)
    first = graph.load(frame, "merge", type="N", idempotency_key="k")
    again = graph.load(frame.repartition(3), "merge", type="N", idempotency_key="k")
    assert again.commit == first.commit
    with pytest.raises(BadRequest, match="another request"):
        graph.load(frame.limit(10), "merge", type="N", idempotency_key="k")
    assert_whole(graph)


def test_one_task_looks_from_each_executor(cluster: Cluster, session: Session) -> None:
    (cluster.private / "mine").write_bytes(b"x")
    found = sights(OnSpark(session), Look(None, ((str(cluster.private / "mine"), 1),)))
    assert len(found) == len(HOSTS)
    assert sorted(bool(sight.missing) for sight in found) == [False, True]


@pytest.mark.parametrize("kind", ["bytes", "frame"])
def test_a_graph_that_a_worker_does_not_see_names_its_host(
    kind: str, cluster: Cluster, session: Session, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = og.init(cluster.private / place.name / "g", SCHEMA)
    data = an_input(kind, cluster, session, monkeypatch, place)
    before = graph.snapshot().commit
    with pytest.raises(
        SparkFailed, match=f"{SECOND if cluster.isolated else HOSTS[1]}.* can not see the graph at"
    ) as raised:
        graph.load(data, engine="spark", type="N" if kind == "frame" else None)
    assert raised.value.kind == "unseen"
    assert "\n" not in str(raised.value)
    assert graph.snapshot().commit == before
    if kind == "bytes":
        # Without a word about the engine it is loaded by this process.
        assert graph.load(data).report.engine == "local"
        assert_whole(graph)


def test_an_export_of_many_files(cluster: Cluster, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("omnigraph.export.tasks.ROWS_PER_FILE", 2000)
    graph = new_graph(place)
    graph.load(lines(), engine="local")
    graph.load(lines().replace(b'"k', b'"x'), engine="local")
    assert graph.export(place / "out", files="many", engine="spark") == 2 * COUNT
    exported = [line for path in (place / "out").rglob("*.jsonl") for line in path.read_bytes().splitlines()]
    assert len(exported) == len(set(exported)) == 2 * COUNT
    assert {path.suffix for path in (place / "out").rglob("*") if path.is_file()} == {".jsonl"}
    hidden = cluster.private / place.name
    with pytest.raises(SparkFailed, match="can not see the folder") as raised:
        graph.export(hidden, files="many", engine="spark")
    assert raised.value.kind == "unseen"
    assert not hidden.exists()
    assert graph.export(hidden, files="many") == 2 * COUNT
    assert sum(path.read_bytes().count(b"\n") for path in hidden.rglob("*.jsonl")) == 2 * COUNT
