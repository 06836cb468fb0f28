"""Merges whose rows are read and written by tasks: the same graph as by one process, whole or not at all."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import omnigraph as og
from omnigraph import failpoints
from omnigraph.maintenance.workplace import Workplace
from omnigraph.merge import spread, writing
from omnigraph.spark.runner import Inline, OnSpark
from omnigraph.spark.session import Session, spark_session
from tests.merge.graphs import everything, named, write
from tests.merge.test_truth_table import CELLS, cell, expected

SCHEMA = """
node Item { slug: String @key n: I32? note: String? }
node Photo { slug: String @key picture: Blob? }
edge Near: Item -> Item { w: I32? @key(src, dst) }
"""


class InTasks:
    """Runs tasks in this process, and is asked for as many as if several ran at once."""

    parallelism = 4

    def run(self, task: Any, specs: Any, **options: Any) -> Any:
        return Inline().run(task, specs, **options)


@pytest.fixture
def by_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every table of a merge is cut into pieces that tasks of this process carry out."""
    monkeypatch.setattr(spread, "IDS_PER_TASK", 5)
    monkeypatch.setattr(Workplace, "runner", lambda *_: InTasks())


def random_graph(path: Path, seed: int) -> og.Graph:
    """Two branches with random changes to nodes, blobs and edges; a third, `other`, is like main."""
    drawn = random.Random(seed)
    graph = og.init(path, SCHEMA)
    items = [f"i{number:02}" for number in range(40)]
    graph.load([{"type": "Item", "data": {"slug": slug, "n": 0, "note": "n"}} for slug in items])
    graph.load([{"type": "Photo", "data": {"slug": slug, "picture": "base64:AAEC"}} for slug in items[:9]])
    pairs = drawn.sample([(a, b) for a in items for b in items], 60)
    graph.load([{"edge": "Near", "from": a, "to": b, "data": {"w": 1}} for a, b in pairs])
    graph.create_branch("feature")
    for branch, value in (("feature", 2), ("main", 3)):
        statements = [
            f'insert Item {{ slug: "{branch}{number}", n: {value} }}' for number in range(drawn.randint(0, 30))
        ]
        statements += [f'update Item set {{ n: {value} }} where slug = "{slug}"' for slug in drawn.sample(items, 8)]
        statements += [
            f'update Item set {{ note: "{branch}" }} where slug = "{slug}"' for slug in drawn.sample(items, 5)
        ]
        for statement in statements:
            write(graph, branch, statement)
        for slug in drawn.sample(items, 3):
            write(graph, branch, f'delete Item where slug = "{slug}"')
    rows = [{"type": "Photo", "data": {"slug": f"i{number:02}", "picture": "base64:BAUG"}} for number in range(4, 12)]
    graph.load(rows, branch="feature", mode="merge")
    graph.create_branch("other")
    return graph


@pytest.mark.parametrize("strategy", ["theirs", "ours"])
@pytest.mark.parametrize("property_level", [False, True], ids=["rows", "properties"])
@pytest.mark.parametrize("seed", range(2))
def test_a_merge_by_tasks_is_the_merge(
    tmp_path: Path, by_tasks: None, seed: int, property_level: bool, strategy: str
) -> None:
    graph = random_graph(tmp_path / "g", seed)
    asked: Any = {"property_level": property_level, "strategy": strategy}
    by_tasks_first = graph.merge("feature", **asked)
    assert by_tasks_first.commit is not None
    with pytest.MonkeyPatch.context() as undone:
        undone.setattr(Workplace, "runner", lambda *_: Inline())
        one_piece = graph.merge("feature", into="other", **asked)
    assert everything(graph) == everything(graph, "other")
    assert by_tasks_first.stats == one_piece.stats
    assert sorted(map(str, by_tasks_first.decided)) == sorted(map(str, one_piece.decided))
    # Blobs are compared by their bytes.
    assert list(graph.diff("main", "other").changes) == []


def test_conflicts_by_tasks(tmp_path: Path, by_tasks: None) -> None:
    graph = random_graph(tmp_path / "g", 5)
    found = graph.merge("feature", dry_run=True)
    with pytest.MonkeyPatch.context() as undone:
        undone.setattr(Workplace, "runner", lambda *_: Inline())
        expected = graph.merge("feature", dry_run=True)
    assert named(found.conflicts) == named(expected.conflicts)
    assert found.stats == expected.stats


def test_a_new_type_is_written_by_tasks(tmp_path: Path, by_tasks: None) -> None:
    graph = random_graph(tmp_path / "g", 1)
    graph.create_branch("wider", base="other")
    graph.apply_schema(SCHEMA + "node Extra { k: I32 @key }", branch="wider")
    graph.load([{"type": "Extra", "data": {"k": number}} for number in range(23)], branch="wider")
    merged = graph.merge("wider", into="other")
    assert merged.stats["tables"]["node:Extra"]["inserted"] == 23
    count = "query q() { match { $e: Extra } return { count($e) as n } }"
    assert graph.query(count, branch="other").rows == [{"n": 23}]


class Wrong(InTasks):
    """A scheduler that loses, repeats or alters results of the tasks that write."""

    def __init__(self, way: str) -> None:
        self._way = way

    def run(self, task: Any, specs: Any, **options: Any) -> Any:
        results = super().run(task, specs, **options)
        if task is not writing.write_piece or not results:
            return results
        if self._way == "lost":
            return results[:-1]
        if self._way == "twice":
            return [*results, results[0]]
        return [replace(results[0], fragments=()), *results[1:]]


@pytest.mark.parametrize("way", ["lost", "twice", "fewer rows"])
def test_a_result_too_few_or_too_many(
    tmp_path: Path, by_tasks: None, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    graph = random_graph(tmp_path / "g", 2)
    before = everything(graph)
    monkeypatch.setattr(Workplace, "runner", lambda *_: Wrong(way))
    files = set((tmp_path / "g").rglob("*.lance"))
    with pytest.raises(og.errors.OmnigraphError, match="is not whole"):
        graph.merge("feature", strategy="theirs")
    assert everything(graph) == before
    left = set((tmp_path / "g").rglob("*.lance")) - files
    # What the lost result stands for is not known here; cleanup finds it.
    assert len(left) <= 1
    monkeypatch.setattr(Workplace, "runner", lambda *_: InTasks())
    assert graph.merge("feature", strategy="theirs").outcome == "merged"


def test_a_task_that_fails_leaves_nothing(tmp_path: Path, by_tasks: None, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = random_graph(tmp_path / "g", 3)
    calls = 0

    def fails_at_last(task: writing.WriteTask) -> writing.WrittenPiece:
        nonlocal calls
        calls += 1
        if calls == 3:
            raise og.errors.StorageError("no space left", kind="full")
        return original(task)

    original = writing.write_piece
    monkeypatch.setattr(writing, "write_piece", fails_at_last)
    files = set((tmp_path / "g").rglob("*.lance"))
    with pytest.raises(og.errors.StorageError, match="no space"):
        graph.merge("feature", strategy="theirs")
    assert set((tmp_path / "g").rglob("*.lance")) == files


def test_a_death_behind_a_written_piece_changes_nothing(tmp_path: Path, by_tasks: None) -> None:
    graph = random_graph(tmp_path / "g", 3)
    before, head = everything(graph), graph.head()
    with failpoints.armed("branch_merge.piece_written"), pytest.raises(failpoints.FailpointError):
        graph.merge("feature", strategy="theirs")
    assert (everything(graph), graph.head()) == (before, head)
    assert graph.merge("feature", strategy="theirs").commit is not None
    assert graph.verify(deep=True).ok


def test_what_comes_back_is_small(tmp_path: Path, by_tasks: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """A judged piece has no values of rows beyond what rules look at, and no list of rows that are left out."""
    graph = og.init(tmp_path / "g", "node Item { slug: String @key n: I32? note: String? }")
    rows = pa.table({"slug": [f"i{number}" for number in range(400)], "n": [0] * 400, "note": ["x" * 1000] * 400})
    graph.load(rows, type="Item")
    graph.create_branch("feature")
    for branch in ("feature", "main"):
        graph.load(rows.set_column(1, "n", pa.array([1] * 400)), type="Item", mode="merge", branch=branch)
    seen: list[spread.JudgedPiece] = []

    class Watching(InTasks):
        def run(self, task: Any, specs: Any, **options: Any) -> Any:
            results = super().run(task, specs, **options)
            seen.extend(one for one in results if isinstance(one, spread.JudgedPiece))
            return results

    monkeypatch.setattr(spread, "IDS_PER_TASK", 100)
    monkeypatch.setattr(Workplace, "runner", lambda *_: Watching())
    assert graph.merge("feature", dry_run=True).stats["identical"] == 400
    assert len(seen) >= 4
    assert sum(len(piece.part.skipped) for piece in seen) == 0
    assert all(piece.alters for piece in seen)
    assert all(piece.part.checked is None or piece.part.checked.column_names == ["id"] for piece in seen)


SAMPLE = random.Random(19).sample(CELLS, 32)


@pytest.mark.parametrize("some", SAMPLE[:24], ids=" ".join)
def test_the_truth_table_by_tasks(tmp_path: Path, by_tasks: None, some: tuple[str, str, str, str]) -> None:
    assert cell(tmp_path, *some) == expected(*some)


@pytest.mark.parametrize("some", SAMPLE[24:], ids=" ".join)
def test_the_truth_table_on_spark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, some: tuple[str, str, str, str]
) -> None:
    session = spark_session()
    assert isinstance(session, Session)
    on_spark = OnSpark(session)
    monkeypatch.setattr(spread, "IDS_PER_TASK", 1)
    monkeypatch.setattr(Workplace, "runner", lambda *_: on_spark)
    assert cell(tmp_path, *some) == expected(*some)
