"""Columns written by tasks: what travels to them can be pickled, and what they write is what one process writes."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.evolution import rewriting
from omnigraph.evolution.rewriting import write_some
from omnigraph.spark.runner import Runner, choose_runner

BEFORE = "node T { k: String n: I32? t: String? } edge E: T -> T { w: I64? }"
AFTER = "node T { k: String n: F64 @default(9) t: String? slug: String @key } edge E: T -> T { w: String? }"
SLUGS = {"T.slug": 'concat("t-", k)'}


class Pickling:
    """Runs tasks here, after a journey there and back."""

    parallelism = 2

    def run(self, task: Any, specs: Any, **_: Any) -> list[Any]:
        return [pickle.loads(pickle.dumps(task(pickle.loads(pickle.dumps(spec))))) for spec in specs]


def fill(graph: og.Graph) -> None:
    """Four fragments of each table."""
    for part in range(4):
        people = [
            {"type": "T", "data": {"id": f"{part}-{row}", "k": f"{part}{row}", "n": row if row else None}}
            for row in range(5)
        ]
        graph.load([*people, {"edge": "E", "from": f"{part}-0", "to": f"{part}-1", "data": {"w": part}}], "append")
    graph.mutate('query q() { delete T where k = "12" }')


def shown(graph: og.Graph) -> list[dict[str, Any]]:
    nodes = graph.snapshot().open("node:T").read(["id", "k", "n", "slug"]).to_pylist()
    edges = graph.snapshot().open("edge:E").read(["src", "dst", "w"]).to_pylist()
    return sorted((*nodes, *edges), key=repr)


def test_tasks_write_what_one_process_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here, there = og.init(tmp_path / "here", BEFORE), og.init(tmp_path / "there", BEFORE)
    fill(here)
    fill(there)
    here.apply_schema(AFTER, backfill=SLUGS)
    runner: Runner = Pickling()
    monkeypatch.setattr(rewriting, "_runner", lambda *_: runner)
    there.apply_schema(AFTER, backfill=SLUGS)
    assert shown(there) == shown(here)
    assert len(shown(there)) == 19 + 4
    assert {row["n"] for row in shown(there) if "n" in row} == {9.0, 1.0, 2.0, 3.0, 4.0}
    assert there.verify(deep=True).ok


@pytest.mark.long
def test_on_spark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here, there = og.init(tmp_path / "here", BEFORE), og.init(tmp_path / "there", BEFORE)
    fill(here)
    fill(there)
    here.apply_schema(AFTER, backfill=SLUGS)
    monkeypatch.setattr(rewriting, "ROWS_FOR_A_JOB", 1)
    monkeypatch.setattr(rewriting, "choose_runner", lambda _, options, **more: choose_runner("spark", options, **more))
    there.apply_schema(AFTER, backfill=SLUGS)
    assert shown(there) == shown(here)
    assert there.verify(deep=True).ok


def test_a_task_is_a_function_of_a_module() -> None:
    assert pickle.loads(pickle.dumps(write_some)) is write_some
