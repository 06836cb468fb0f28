"""What a caller is told of a load, and what becomes of it when the caller's function raises."""

from __future__ import annotations

from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.commit.staging_jobs import list_jobs
from omnigraph.graph.lifecycle import connect
from omnigraph.load.model import Progress
from tests.load.conftest import Load
from tests.load.loading import files, lines, node, rows

SCHEMA = "node N { name: String @key }"
ROWS = 6000


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    return og.init(tmp_path / "g", SCHEMA)


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file that is read in several parts."""
    monkeypatch.setattr("omnigraph.load.inputs.RANGE_BYTES", 20_000)
    monkeypatch.setattr("omnigraph.load.inputs.SMALLEST_RANGE", 20_000)
    path = tmp_path / "in.jsonl"
    path.write_bytes(lines(node("N", name=f"k{number}") for number in range(ROWS)))
    return path


def test_progress_comes_to_its_total(graph: og.Graph, load: Load, data: Path) -> None:
    told: list[Progress] = []
    load(graph, data, progress=told.append)
    read = [progress for progress in told if progress.stage == "read"]
    assert len(read) > 3
    assert (read[-1].done, read[-1].rows) == (read[-1].total, ROWS)
    assert [(one.done, one.total) for one in told if one.stage == "commit"] == [(0, 1), (1, 1)]


@pytest.mark.parametrize("stage", ["read", "check", "commit"])
def test_an_error_of_the_callers_ends_the_load_with_nothing_written(
    graph: og.Graph, load: Load, data: Path, stage: str
) -> None:
    there = files(graph)

    def fail_once(progress: Progress) -> None:
        if progress.stage == stage and not raised:
            raised.append(progress)
            raise RuntimeError("enough")

    raised: list[Progress] = []
    with pytest.raises(RuntimeError, match="enough"):
        load(graph, data, progress=fail_once)
    assert raised
    assert files(graph) == there
    assert list_jobs(connect(graph.uri).store) == []
    # Later loads, with and without a progress, have every row.
    told: list[Progress] = []
    assert load(graph, data, progress=told.append).nodes_loaded == ROWS
    assert load(graph, data, "merge").nodes_loaded == ROWS
    assert len(rows(graph, "node:N")) == ROWS


def test_an_error_after_the_commit_can_not_undo_it(
    graph: og.Graph, load: Load, data: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def fail_late(progress: Progress) -> None:
        if (progress.stage, progress.done) == ("commit", 1):
            raise RuntimeError("too late")

    assert load(graph, data, progress=fail_late).nodes_loaded == ROWS
    assert "the load is committed, and its progress callback raised an error" in caplog.text
    assert len(rows(graph, "node:N")) == ROWS
