"""The feed as a Spark structured stream: a real query, stopped and started again."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import orjson
import pytest

import omnigraph as og
from omnigraph.changes.filter import Filter
from omnigraph.errors import BadRequest, ChangeCursorRejected
from tests.changes.test_commit_changes import made
from tests.mutation.org_graph import call, org_graph


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    return org_graph(tmp_path / "g")


def test_a_query_follows_the_feed(graph: og.Graph, tmp_path: Path) -> None:
    begin = graph.changes().cursor
    one = made(call(graph, "put_link", "eve", 1, "ada"))
    frame = graph.spark_changes(cursor=begin)
    assert frame.isStreaming

    def run() -> list[dict[str, Any]]:
        """What there is by now, and no more; the checkpoint says from where on."""
        out = tmp_path / "out"
        query = (
            frame.writeStream.format("json")
            .option("path", str(out))
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .option("ignoreNullFields", "false")
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        lines = [line for file in sorted(out.glob("*.json")) for line in file.read_bytes().splitlines()]
        return sorted(map(orjson.loads, lines), key=lambda row: (row["commit_id"], row["kind"] != "node", row["id"]))

    first = run()
    assert [(row["commit_id"], row["op"], row["kind"], row["type"]) for row in first] == [
        (one, "insert", "node", "Staff"),
        (one, "insert", "edge", "Mentors"),
    ]
    assert (first[1]["src"], first[1]["dst"]) == ("eve", "ada")
    assert orjson.loads(first[0]["after"]) == {"handle": "eve", "level": 1}
    assert first[0]["before"] is None
    two = made(call(graph, "relevel", "ben", 99))
    graph.ensure_indices()
    three = made(call(graph, "drop_staff", "dov"))
    every = run()
    assert every[:2] == first
    told = [
        (commit.id, change.op, change.id)
        for commit in (graph.commit(two), graph.commit(three))
        for change in graph.commit_changes(commit.id).changes
    ]
    assert [(row["commit_id"], row["op"], row["id"]) for row in every[2:]] == told


def test_a_batch_has_at_most_so_many_commits(graph: og.Graph, tmp_path: Path) -> None:
    begin = graph.changes().cursor
    for name in ("eve", "fay", "gus"):
        call(graph, "put_link", name, 1, "ada")
    frame = graph.spark_changes(cursor=begin, max_commits_per_trigger=2)
    batches: list[set[str]] = []
    query = (
        frame.writeStream.foreachBatch(lambda rows, _: batches.append({row.commit_id for row in rows.collect()}))
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    assert [len(batch) for batch in batches] == [2, 1]
    for wrong in (0, -1, True, "2"):
        most: Any = wrong
        with pytest.raises(BadRequest, match="max_commits_per_trigger is a number from 1 on"):
            graph.spark_changes(max_commits_per_trigger=most)


def test_a_large_commit_is_read_by_several_tasks(
    graph: og.Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from omnigraph.changes import stream

    begin = graph.changes().cursor
    assert begin is not None
    people = [f"s{number:03}" for number in range(40)]
    graph.load([{"type": "Staff", "data": {"handle": name, "level": 1}} for name in people])
    graph.load([{"edge": "Mentors", "from": a, "to": b} for a, b in pairwise(people)])
    call(graph, "drop_staff", "s007")
    track = graph._watch.identities()
    feed = stream.Stream(graph._context.root, track, "main", Filter(None, None, None), begin)
    whole = [feed.rows(task) for task in feed.tasks(begin, feed.newest())]
    assert len(whole) == 3
    monkeypatch.setattr(stream, "CHANGES_PER_TASK", 10)
    tasks = feed.tasks(begin, feed.newest())
    assert len(tasks) == 4 + 4 + 1
    told = [
        sorted(row["id"] for batches in some for batch in batches for row in batch.to_pylist())
        for some in (
            whole,
            [feed.rows(task) for task in tasks],
        )
    ]
    assert told[0] == told[1]
    assert len(told[0]) == 40 + 39 + 3


def test_where_a_stream_can_not_begin(graph: og.Graph) -> None:
    cursor = graph.changes(types="Staff").cursor
    with pytest.raises(ChangeCursorRejected):
        graph.spark_changes(cursor=cursor)
    with pytest.raises(ChangeCursorRejected):
        graph.spark_changes(start="after:01J00000000000000000000009")
    with pytest.raises(BadRequest):
        graph.spark_changes(start="yesterday")
    with pytest.raises(BadRequest):
        graph.spark_changes(start="now", cursor=cursor)
