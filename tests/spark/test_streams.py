"""Streams into a graph: every micro-batch is one commit, also when the driver is killed again and again."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import orjson
import pytest
from pyspark.errors import StreamingQueryException

import omnigraph as og
from omnigraph.errors import BadRequest
from omnigraph.spark.session import spark_session
from tests import warm

SCHEMA = "node Person {\n  name: String @key\n  age: I32?\n}"
ROWS = "name string, age int"


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    return og.init(tmp_path / "g.omni", SCHEMA)


def put(folder: Path, number: int, *rows: dict[str, object]) -> None:
    folder.mkdir(exist_ok=True)
    path = folder / f"{number:04d}.json"
    path.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))
    # Spark takes files by the time of their last change.
    os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))


def names(graph: og.Graph) -> list[str]:
    return sorted(graph.snapshot().open("node:Person").read()["name"].to_pylist())


def run(graph: og.Graph, folder: Path, checkpoint: Path, rejects: Path | None = None) -> None:
    stream = spark_session().sql.readStream.schema(ROWS).option("maxFilesPerTrigger", 1).json(str(folder))
    query = graph.stream_load(
        stream,
        checkpoint=str(checkpoint),
        type="Person",
        rejects=None if rejects is None else str(rejects),
        available_now=True,
    )
    query.awaitTermination()


def test_each_batch_is_a_commit_and_a_restart_repeats_none(graph: og.Graph, tmp_path: Path) -> None:
    folder, checkpoint = tmp_path / "in", tmp_path / "checkpoint"
    put(folder, 0, {"name": "a", "age": 1}, {"name": "b"})
    put(folder, 1, {"name": "c"})
    run(graph, folder, checkpoint)
    assert names(graph) == ["a", "b", "c"]
    assert len(graph.commits()) == 3
    # A driver that dies between the commit of the graph and Spark's note of it repeats the batch.
    for note in (checkpoint / "commits").glob("*1*"):
        note.unlink()
    run(graph, folder, checkpoint)
    assert len(graph.commits()) == 3
    put(folder, 2, {"name": "d"})
    run(graph, folder, checkpoint)
    assert names(graph) == ["a", "b", "c", "d"]
    assert not [path for path in (Path(graph.uri) / "__staging").rglob("*") if path.is_file()]


def test_refused_rows_stop_the_stream_or_go_to_their_folder(graph: og.Graph, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    put(folder, 0, {"name": "a"}, {"age": 2}, {"name": "b"}, {"name": "a", "age": 3}, {"age": 4})
    with pytest.raises(StreamingQueryException, match="load rejected, nothing was written"):
        run(graph, folder, tmp_path / "first")
    assert names(graph) == []
    put(folder, 1, {"name": "b"}, {"name": "c"})
    run(graph, folder, tmp_path / "second", tmp_path / "rejects")
    assert names(graph) == ["a", "b", "c"] or names(graph) == ["b", "c"]
    told = [orjson.loads(line) for path in (tmp_path / "rejects").iterdir() for line in path.read_bytes().splitlines()]
    assert sorted(row["row"]["age"] for row in told if row["row"]["name"] is None) == [2, 4]
    assert all(row["reasons"] for row in told)
    assert "b" in {row["row"]["name"] for row in told}


def test_what_is_no_stream_or_does_not_fit(graph: og.Graph, tmp_path: Path) -> None:
    spark = spark_session().sql
    with pytest.raises(BadRequest, match="`stream_load` takes a stream"):
        graph.stream_load(spark.createDataFrame([("a",)], "name string"), checkpoint=str(tmp_path / "c"), type="Person")
    stream = spark.readStream.schema("nam string").json(str(tmp_path))
    with pytest.raises(BadRequest, match="nam"):
        graph.stream_load(stream, checkpoint=str(tmp_path / "c"), type="Person")
    with pytest.raises(BadRequest, match="overwrite"):
        graph.stream_load(stream, "overwrite", checkpoint=str(tmp_path / "c"), type="Person")
    assert not (tmp_path / "c").exists()


def killed_runs(child_module: str, arguments: list[str], written: og.Graph, kills: int) -> None:
    """Run processes that write a graph, of which so many are killed at any time of their work, until one comes to its end."""
    chance = random.Random(7)
    left = kills
    while True:
        child = warm.Popen([sys.executable, "-m", child_module, *arguments], stdout=subprocess.PIPE, text=True)
        assert child.stdout is not None
        assert child.stdout.readline() == "started\n"
        if left:
            left -= 1
            before = len(written.commits())
            # Somewhere behind at least one more commit, so that each run gets on.
            while child.poll() is None and len(written.commits()) == before:
                time.sleep(0.05)
            time.sleep(chance.random())
            child.send_signal(signal.SIGKILL)
            child.wait()
            continue
        assert child.stdout.read() == "ended\n"
        assert child.wait() == 0
        return


def killed_loads(graph: og.Graph, tmp_path: Path, *, batches: int, kills: int) -> None:
    """Load a folder of files, one for each batch."""
    folder = tmp_path / "in"
    for number in range(batches):
        put(folder, number, {"name": f"p{number}a"}, {"name": f"p{number}b"})
    arguments = [graph.uri, str(folder), str(tmp_path / "checkpoint"), "-"]
    killed_runs("tests.spark.stream_child", arguments, graph, kills)
    assert names(graph) == sorted(f"p{number}{end}" for number in range(batches) for end in "ab")
    assert len(graph.commits()) == batches + 1


def killed_copies(graph: og.Graph, tmp_path: Path, *, commits: int, kills: int) -> None:
    """Copy the feed of a graph whose rows come and change, commit by commit, to a second graph."""
    for number in range(commits):
        rows = [{"name": f"p{number}", "age": 0}, {"name": f"p{number // 2}", "age": number}]
        graph.load([{"type": "Person", "data": row} for row in rows], "merge")
    second = og.init(tmp_path / "second.omni", SCHEMA)
    arguments = [graph.uri, second.uri, str(tmp_path / "copy")]
    killed_runs("tests.spark.copy_child", arguments, second, kills)
    columns = ["id", "name", "age"]
    first_rows, second_rows = (
        sorted(one.snapshot().open("node:Person").read(columns).to_pylist(), key=lambda row: row["id"])
        for one in (graph, second)
    )
    assert first_rows == second_rows
    # One commit for each commit of the first, after that of `init`.
    assert len(second.commits()) == commits + 1


def test_a_killed_driver_neither_loses_nor_repeats_a_row(graph: og.Graph, tmp_path: Path) -> None:
    killed_loads(graph, tmp_path, batches=3, kills=1)


def test_a_copy_of_a_graph_stays_equal_when_its_driver_is_killed(graph: og.Graph, tmp_path: Path) -> None:
    killed_copies(graph, tmp_path, commits=3, kills=1)


# Eleven processes with a JVM each, and two hundred commits, take longer than any other test.
@pytest.mark.timeout(0)
@pytest.mark.long
def test_two_hundred_batches_and_ten_kills(graph: og.Graph, tmp_path: Path) -> None:
    killed_loads(graph, tmp_path, batches=200, kills=10)


@pytest.mark.timeout(0)
@pytest.mark.long
def test_two_hundred_commits_copied_and_ten_kills(graph: og.Graph, tmp_path: Path) -> None:
    killed_copies(graph, tmp_path, commits=200, kills=10)
