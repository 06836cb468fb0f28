"""Loads, exports and upkeep through Spark Connect: every input, every mode, the same rows as anywhere."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

import omnigraph as og
from omnigraph.errors import KeyConflict
from omnigraph.spark import over_connect
from omnigraph.spark.connect import ConnectSession
from omnigraph.spark.session import REMOTE
from tests.cluster.checks import COUNT, TABLE, assert_whole, lines, new_graph
from tests.connect.events import sent
from tests.connect.server import ConnectServer
from tests.spark import tasks

INPUTS = ("jsonl", "parquet", "csv", "frame")
MODES = ("append", "merge", "overwrite", "update")
#: Each input and each mode is tried every time, all pairs in the long run.
ALWAYS = tuple(zip(INPUTS, MODES, strict=True))


def an_input(kind: str, session: ConnectSession, place: Path) -> Any:
    path = place / f"rows.{kind}"
    if kind == "jsonl":
        path.write_bytes(lines())
    elif kind == "parquet":
        pq.write_table(TABLE, path, row_group_size=5000)
    elif kind == "csv":
        pacsv.write_csv(TABLE, path)
    else:
        return session.sql.createDataFrame(TABLE).repartition(3)
    return path


@pytest.mark.usefixtures("staged")
@pytest.mark.parametrize(
    ("kind", "mode"),
    [
        pytest.param(kind, mode, marks=() if (kind, mode) in ALWAYS else pytest.mark.long)
        for kind in INPUTS
        for mode in MODES
    ],
)
def test_every_input_and_mode(kind: str, mode: Any, session: ConnectSession, tmp_path: Path) -> None:
    graph = new_graph(tmp_path)
    if mode != "append":
        graph.load(lines().replace(b'"n":1', b'"n":7'), engine="local")
    shown: list[Any] = []
    done = graph.load(
        an_input(kind, session, tmp_path),
        mode,
        engine="spark",
        type=None if kind == "jsonl" else "N",
        progress=shown.append,
    )
    assert (done.nodes_loaded, done.report.engine) == (COUNT, "spark")
    assert len({told.stage for told in shown}) > 1
    assert_whole(graph)


@pytest.mark.usefixtures("staged")
@pytest.mark.parametrize("kind", ["jsonl", pytest.param("frame", marks=pytest.mark.long)])
def test_workers_that_are_other_machines(
    kind: str, session: ConnectSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is not seen to be one machine is taken for several: rows and keys pass through the graph's storage."""
    monkeypatch.setitem(over_connect._same_disk, session.sql, False)
    graph = new_graph(tmp_path)
    data = an_input(kind, session, tmp_path)
    done = graph.load(data, engine="spark", type="N" if kind == "frame" else None)
    assert (done.nodes_loaded, done.report.engine) == (COUNT, "spark")
    assert_whole(graph)
    with pytest.raises(KeyConflict, match=r"^on the Spark worker \S+: two is taken$"):
        over_connect.OverConnect(session).run(tasks.conflict_at_two, [2])


def test_several_frames_are_one_commit(session: ConnectSession, tmp_path: Path) -> None:
    graph = og.init(tmp_path / "g", "node P { name: String @key }\nedge Knows: P -> P")
    people = session.sql.createDataFrame([("ada",), ("bob",)], "name string")
    pairs = session.sql.createDataFrame([("ada", "bob")], "from string, to string")
    done = graph.load_frames({"P": people, "Knows": pairs})
    assert (done.nodes_loaded, done.edges_loaded, len(graph.commits())) == (2, 1, 2)


@pytest.mark.usefixtures("staged")
def test_a_refused_load_leaves_nothing(session: ConnectSession, tmp_path: Path) -> None:
    graph = new_graph(tmp_path)
    before = graph.head()
    with pytest.raises(og.errors.OmnigraphError, match="load rejected, nothing was written"):
        graph.load(lines() + b'{"type": "N", "data": {"name": "k000001", "n": "no"}}\n', engine="spark")
    assert graph.head() == before
    assert graph.load(lines(), engine="spark").nodes_loaded == COUNT
    assert_whole(graph)


def test_a_merge_of_branches_an_optimize_indices_and_an_export(
    session: ConnectSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = og.init(tmp_path / "g", "node N { name: String @key @index  n: I64  text: String? }")
    graph.load(lines(), engine="local")
    graph.create_branch("work")
    changed = TABLE.slice(0, 400).set_column(1, "n", pa.array(range(1000, 1400), pa.int64()))
    graph.load(changed, "merge", type="N", branch="work", engine="local")
    other = TABLE.slice(5000, 100).set_column(1, "n", pa.array(range(100), pa.int64()))
    graph.load(other, "merge", type="N", engine="local")
    merged = graph.merge("work", engine="spark")
    assert merged.commit is not None
    graph.optimize(engine="spark")
    graph.ensure_indices(engine="spark")
    found = {row["name"]: row["n"] for row in graph.snapshot().open("node:N").read().to_pylist()}
    assert (found["k000000"], found["k005000"], found["k000500"], len(found)) == (1000, 0, 500, COUNT)
    monkeypatch.setattr("omnigraph.export.tasks.ROWS_PER_FILE", 2000)
    assert graph.export(tmp_path / "many", files="many", engine="spark") == COUNT
    exported = [line for path in (tmp_path / "many").rglob("*.jsonl") for line in path.read_bytes().splitlines()]
    assert len(set(exported)) == COUNT
    assert graph.export(tmp_path / "one.jsonl", engine="spark") == COUNT
    assert sorted((tmp_path / "one.jsonl").read_bytes().splitlines()) == sorted(exported)


def test_results_are_small_and_tasks_are_as_many_as_there_are_parts(
    session: ConnectSession, connect_server: ConnectServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At most 1 MB of results for a million rows, at the driver of Spark; what this process gets is less."""
    monkeypatch.setattr("omnigraph.load.inputs.RANGE_BYTES", 2 << 20)
    monkeypatch.setattr("omnigraph.load.inputs.SMALLEST_RANGE", 2 << 20)
    count = 200_000
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b"".join(b'{"type":"N","data":{"name":"k%06d","n":%d}}\n' % (n, n) for n in range(count)))
    graph = new_graph(tmp_path)
    before = sent(connect_server.events)
    assert graph.load(path, engine="spark").nodes_loaded == count
    found = sent(connect_server.events, before=before)
    assert found.bytes <= count, found
    # Descriptions are dealt out by one task; then come those that read and those that check.
    assert 4 <= found.tasks <= 40, found


@pytest.mark.long
def test_a_session_that_pyspark_starts_a_server_for(tmp_path: Path) -> None:
    """`remote("local[2]")`, in a process of its own: there is a SparkContext beside the client, which is not asked."""
    program = """
import sys, omnigraph as og
from pyspark.sql import SparkSession
spark = SparkSession.builder.remote("local[2]").getOrCreate()
graph = og.open(sys.argv[1], spark=spark)
people = spark.createDataFrame([("ada", 1), ("bob", 2)], "name string, n long")
print(graph.load(people, type="N", engine="spark").nodes_loaded)
print(og.open(sys.argv[1]).query("match { $n: N } return { sum($n.n) as n }", engine="spark").rows)
"""
    graph = new_graph(tmp_path)
    environ = {name: value for name, value in os.environ.items() if name not in (REMOTE, "SPARK_CONNECT_MODE_ENABLED")}
    command = [sys.executable, "-c", program, graph.uri]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environ)
    assert done.stdout.splitlines() == ["2", "[{'n': 3}]"], done.stderr
