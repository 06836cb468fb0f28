"""Storage that fails while a cluster command works: what is told, and that the next command comes to the end."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from omnigraph.cluster import commands
from omnigraph.cluster.layout import Place, place_at
from omnigraph.storage.faults import Fault, FaultyStore, error_after, error_before
from omnigraph.storage.root import Root
from tests.clusters.declaring import QUERIES, WIDER, applied, codes, declare, replace_in, started, without_graph


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cluster whose next apply creates a graph, changes a schema, stores queries and deletes a graph."""
    folder = started(declare(tmp_path_factory.mktemp("faults") / "c"))
    without_graph(folder, "tasks")
    replace_in(folder / "cluster.yaml", "graphs:\n", "graphs:\n  notes:\n    schema: tasks.pg\n")
    (folder / "team.pg").write_text(WIDER)
    (folder / "queries" / "people.gq").write_text(QUERIES + "\n")
    assert commands.approve(folder, "graph.tasks", "me").ok
    return folder


@pytest.fixture
def folder(template: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(template, tmp_path / "c"))


@contextmanager
def failing(monkeypatch: pytest.MonkeyPatch, *faults: Fault) -> Iterator[None]:
    """Let the control files of clusters fail; every fault must have taken place in the end."""
    stores: list[FaultyStore] = []

    def faulty(root: Root) -> Place:
        place = place_at(root)
        stores.append(FaultyStore(place.store, faults))
        return replace(place, store=stores[-1])

    with monkeypatch.context() as patched:
        patched.setattr(commands, "place_at", faulty)
        yield
    assert [fault for store in stores for fault in store.fired], "no fault took place"


RECORDS, STATE, LOCK = "__cluster/recoveries/*", "__cluster/state.json", "__cluster/lock.json"
CASES: list[tuple[str, Fault, list[str], list[str]]] = [
    ("lock", error_before("create", LOCK), ["state_lock_error"], []),
    ("lock answer lost", error_after("create", LOCK), [], []),
    ("state unreadable", error_before("get", STATE), ["state_read_error"], []),
    ("record", error_before("create", RECORDS), ["recovery_sidecar_write_error"], ["schema_apply_skipped"]),
    ("record answer lost", error_after("create", RECORDS), ["recovery_sidecar_write_error"], ["graph_delete_skipped"]),
    ("payload", error_before("put", "__cluster/resources/*"), ["resource_payload_write_error"], []),
    ("mark", error_before("put", "graphs/tasks.omni/*"), ["graph_delete_failed"], []),
    (
        "mark answer lost",
        error_after("put", "graphs/tasks.omni/*"),
        ["graph_delete_failed"],
        ["graph_delete_incomplete"],
    ),
    ("state", error_before("swap", STATE), ["state_write_error"], []),
    ("state answer lost", error_after("swap", STATE), [], []),
    ("record stays", error_before("delete", RECORDS), [], ["recovery_sidecar_cleanup_failed"]),
]


@pytest.mark.parametrize(("fault", "errors", "warnings"), [row[1:] for row in CASES], ids=[row[0] for row in CASES])
def test_an_apply_with_a_fault(
    folder: Path, monkeypatch: pytest.MonkeyPatch, fault: Fault, errors: list[str], warnings: list[str]
) -> None:
    with failing(monkeypatch, fault):
        outcome = commands.apply(folder, "op")
    assert codes(outcome) == errors
    assert set(warnings) <= set(codes(outcome, "warning"))
    assert not (folder / "__cluster" / "lock.json").exists()
    assert applied(folder)["converged"]
    assert not applied(folder)["state_written"]
    assert not list((folder / "__cluster" / "recoveries").glob("*"))
    assert sorted(path.name for path in (folder / "graphs").iterdir()) == ["notes.omni", "team.omni"]


def test_faults_of_other_commands(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with failing(monkeypatch, error_before("get", LOCK)):
        assert codes(commands.status(folder), "warning") == ["state_lock_read_error"]
    with failing(monkeypatch, error_before("put", "__cluster/approvals/*")):
        assert codes(commands.approve(folder, "graph.tasks", "me")) == ["approval_write_error"]
    with failing(monkeypatch, error_before("get", "__cluster/resources/query/*")):
        refreshed = commands.refresh(folder)
    assert codes(refreshed) == ["catalog_payload_read_error"]
    assert "error" in {about["status"] for about in refreshed.data["resource_statuses"].values()}
    shutil.rmtree(folder / "graphs" / "team.omni")
    assert "schema_preview_unavailable" in codes(commands.plan(folder), "warning")
