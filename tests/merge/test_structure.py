"""How a merge does its work, as counts: transactions, merge-inserts, opened tables, rows in memory. Never times."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from lance import LanceOperation

import omnigraph as og
from omnigraph.merge import difference, judge, writing
from omnigraph.storage.tables.handles import Tables
from omnigraph.storage.tables.location import Location
from omnigraph.storage.tables.staged import write_rows
from tests.merge.graphs import do, everything, ids, rows, shown, write


@pytest.fixture
def merge_inserts(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The tables that Lance was asked for a merge-insert of; the manifest needs none either."""
    asked: list[str] = []
    original = lance.LanceDataset.merge_insert

    def spy(self: lance.LanceDataset, *args: Any, **options: Any) -> Any:
        asked.append(self.uri)
        return original(self, *args, **options)

    monkeypatch.setattr(lance.LanceDataset, "merge_insert", spy)
    return asked


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[Location]:
    """The datasets that were opened."""
    seen: list[Location] = []
    original = Tables.open_dataset

    def spy(self: Tables, location: Location, version: int | None = None) -> Any:
        seen.append(location)
        return original(self, location, version)

    monkeypatch.setattr(Tables, "open_dataset", spy)
    return seen


def operation(graph: og.Graph, type_key: str, branch: str = "main") -> Any:
    """What the newest transaction of a table was."""
    table = graph.snapshot(branch).open(type_key)
    transaction = table.dataset.read_transaction(table.version)
    assert transaction is not None
    return transaction.operation


def test_an_append_only_fast_forward_is_one_append(graph: og.Graph, merge_inserts: list[str]) -> None:
    for name in ("eli", "fay"):
        do(graph, "feature", "put", name, 1)
    before = graph.snapshot().entry("node:Staff")
    merge_inserts.clear()
    assert graph.merge("feature").outcome == "fast_forward"
    after = graph.snapshot().entry("node:Staff")
    assert (after.version, after.location) == (before.version + 1, before.location)
    assert isinstance(operation(graph, "node:Staff"), LanceOperation.Append)
    assert merge_inserts == []


def test_everything_else_is_one_transaction_without_a_merge_insert(graph: og.Graph, merge_inserts: list[str]) -> None:
    do(graph, "feature", "put", "eli", 1)
    do(graph, "feature", "relevel", "ada", 31)
    do(graph, "feature", "drop", "dov")
    do(graph, "main", "relevel", "ben", 26)
    before = graph.snapshot().entry("node:Staff")
    merge_inserts.clear()
    assert graph.merge("feature").outcome == "merged"
    assert graph.snapshot().entry("node:Staff").version == before.version + 1
    assert isinstance(operation(graph, "node:Staff"), LanceOperation.Update)
    assert merge_inserts == []


def test_a_table_that_is_shared_is_forked_and_then_moved_once(graph: og.Graph) -> None:
    graph.create_branch("other")
    do(graph, "feature", "put", "eli", 1)
    before = graph.snapshot("other")
    graph.merge("feature", into="other")
    after = graph.snapshot("other")
    assert after.entry("node:Staff").version == before.entry("node:Staff").version + 1
    assert after.entry("node:Staff").branch not in (None, graph.snapshot("feature").entry("node:Staff").branch)
    assert after.entry("edge:Mentors") == before.entry("edge:Mentors")


@pytest.mark.parametrize("diverged", [False, True], ids=["fast-forward", "three-way"])
@pytest.mark.parametrize(
    ("change", "touched"),
    [
        pytest.param(("put", "eli", 1), {"node:Staff"}, id="nodes"),
        pytest.param(("link", "ada", "dov"), {"edge:Mentors"}, id="edges"),
    ],
)
def test_only_what_theirs_moved_is_opened(
    graph: og.Graph, opened: list[Location], change: tuple[Any, ...], touched: set[str], diverged: bool
) -> None:
    """Also the nodes that new edges lie between, when both sides have the very same nodes."""
    do(graph, "feature", *change)
    if diverged:
        # The same table as theirs.
        do(graph, "main", *({"put": ("put", "fay", 1), "link": ("link", "ada", "dov")}[change[0]]))
    fresh = og.open(graph.uri)
    paths = {fresh.snapshot().entry(key).path for key in touched}
    opened.clear()
    fresh.merge("feature")
    tables = {location.path for location in opened if location.path.startswith(("nodes/", "edges/"))}
    assert tables == paths


def test_nodes_that_ours_has_moved_are_looked_up(graph: og.Graph, opened: list[Location]) -> None:
    do(graph, "feature", "link", "ada", "dov")
    do(graph, "main", "put", "fay", 1)
    fresh = og.open(graph.uri)
    opened.clear()
    fresh.merge("feature")
    assert fresh.snapshot().entry("node:Staff").path in {location.path for location in opened}


def test_no_merge_builds_an_index(graph: og.Graph) -> None:
    graph.ensure_indices()
    graph.merge("main", into="feature")
    do(graph, "feature", "put", "eli", 1)
    before = {entry.key: graph.snapshot().open(entry.key).indices() for entry in graph.snapshot().entries()}
    graph.merge("feature")
    after = {entry.key: graph.snapshot().open(entry.key).indices() for entry in graph.snapshot().entries()}
    assert after == before
    assert graph.entity("node", "Staff", "eli") is not None


# --- bounded memory ---------------------------------------------------------------------------------------------------


class Alive:
    """Counts the batches of a stream that somebody still holds."""

    def __init__(self) -> None:
        self.most = 0
        self.rows: list[int] = []
        self._held: list[weakref.ref[pa.RecordBatch]] = []

    def watch(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        assert not isinstance(batches, list | pa.Table)
        for batch in batches:
            self._held = [held for held in self._held if held() is not None] + [weakref.ref(batch)]
            self.rows.append(batch.num_rows)
            self.most = max(self.most, len(self._held))
            yield batch


@pytest.mark.parametrize("diverged", [False, True], ids=["fast-forward", "three-way"])
def test_a_large_delta_is_streamed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, diverged: bool) -> None:
    """Above the size that is kept, a few batches are in memory at a time, whatever the number of rows."""
    monkeypatch.setattr(difference, "KEPT_ROWS", 100)
    monkeypatch.setattr(difference, "BATCH_ROWS", 64)
    monkeypatch.setattr(judge, "IDS_PER_LOOKUP", 100)
    graph = og.init(tmp_path / "g", "node P { name: String @key v: Vector(4)? }")
    insert = "query q() { %s }"
    graph.create_branch("feature")
    for start in range(0, 2000, 500):
        puts = " ".join(f'insert P {{ name: "p{n:04}", v: [1.0, 2.0, 3.0, {n}.0] }}' for n in range(start, start + 500))
        graph.mutate(insert % puts, branch="feature")
    if diverged:
        write(graph, "main", 'insert P { name: "p0003", v: [1.0, 2.0, 3.0, 3.0] }', 'insert P { name: "q" }')
    alive = Alive()
    monkeypatch.setattr(writing, "write_rows", lambda table, data: write_rows(table, alive.watch(data)))
    result = graph.merge("feature")
    assert result.stats["inserted"] == (1999 if diverged else 2000)
    assert result.stats["identical"] == int(diverged)
    assert sum(alive.rows) == result.stats["inserted"]
    assert alive.most <= 3 < len(alive.rows)
    assert len(ids(graph, "node:P")) == (2001 if diverged else 2000)


def test_a_large_delta_gives_the_same_as_a_small_one(graph: og.Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    graph.create_branch("other")
    for number in range(40):
        do(graph, "feature", "put", f"p{number:02}", number)
    for number in range(0, 40, 3):
        do(graph, "feature", "relevel", f"p{number:02}", 100)
    do(graph, "feature", "drop", "ben")
    for branch in ("main", "other"):
        do(graph, branch, "put", "p05", 5)
        do(graph, branch, "relevel", "ada", 31)
    graph.merge("feature")
    monkeypatch.setattr(difference, "KEPT_ROWS", 3)
    monkeypatch.setattr(difference, "BATCH_ROWS", 7)
    monkeypatch.setattr(judge, "IDS_PER_LOOKUP", 5)
    graph.merge("feature", into="other")
    assert everything(graph, "other") == everything(graph)
    assert shown(graph) == "43/0/31/no"


# --- other than by physical difference --------------------------------------------------------------------------------


@pytest.mark.parametrize("compacted", ["feature", "main"])
def test_compaction_is_no_change(graph: og.Graph, compacted: str) -> None:
    for number in range(4):
        do(graph, "feature", "put", f"f{number}", number)
        do(graph, "main", "put", f"m{number}", number)
    graph.optimize(compacted)
    do(graph, "feature", "relevel", "ada", 31)
    result = graph.merge("feature")
    assert (result.stats["inserted"], result.stats["updated"], result.stats["deleted"]) == (4, 1, 0)
    assert len(rows(graph, "node:Staff")) == 12
