"""Durability "power": everything is on disk before the next step relies on it; what was torn counts as never made."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph import failpoints
from omnigraph.commit.branches import create_branch
from omnigraph.commit.context import PROCESS, CommitContext
from omnigraph.commit.model import MAIN
from omnigraph.commit.recovery import heal
from omnigraph.commit.sidecar import list_sidecars
from omnigraph.errors import OmnigraphError, RecoveryRequired, StorageError
from omnigraph.graph.lifecycle import connect, create, open_for_writing
from omnigraph.storage.faults import FaultyStore, error_before
from omnigraph.storage.objects import open_store
from omnigraph.storage.root import Root
from tests.commit.org import SCHEMA, STAFF, TEAM, ids, insert, staff, team


@dataclass(frozen=True)
class Synced:
    """One flush: what was flushed, and how far the graph was at that moment."""

    path: str
    staff_version: int | None
    manifest_version: int | None


class Watched(FaultyStore):
    """A store that writes down every flush."""

    def __init__(self, root: Root) -> None:
        super().__init__(open_store(root))
        self.observer = connect(root.uri)
        self.synced: list[Synced] = []

    def sync(self, path: str) -> None:
        super().sync(path)
        self.synced.append(Synced(path, *self.seen()))

    def seen(self) -> tuple[int | None, int | None]:
        if not self.inner.exists("__manifest/_versions"):
            return None, None
        state = self.observer.manifest.load()
        return self.observer.tables.head_version(state.by_key[STAFF].location), state.version


@pytest.fixture
def watched(tmp_path: Path) -> Watched:
    return Watched(Root.parse(tmp_path / "graph"))


@pytest.fixture
def graph(watched: Watched) -> CommitContext:
    """An empty graph that survives a power failure."""
    context = connect(watched.describe, durability="power", store=watched)
    create(context, SCHEMA)
    return context


# --- the order of things ----------------------------------------------------------------------------------------------


def test_a_commit_is_flushed_step_by_step(graph: CommitContext, watched: Watched) -> None:
    watched.synced.clear()
    insert(graph, {STAFF: staff(["ada"])})

    table = graph.manifest.load().by_key[STAFF].path
    sidecar, data, manifest = watched.synced
    assert sidecar.path.startswith("__recovery/")
    assert (sidecar.staff_version, sidecar.manifest_version) == (1, 1), "the record before the first effect"
    assert data == Synced(table, 2, 1), "the tables before the publish"
    assert manifest == Synced("__manifest", 2, 2), "the manifest before the answer"


def test_every_table_of_a_write_is_flushed(graph: CommitContext, watched: Watched) -> None:
    watched.synced.clear()
    insert(graph, {STAFF: staff(["ada"]), TEAM: team(["core"])})
    state = graph.manifest.load()
    assert {state.by_key[STAFF].path, state.by_key[TEAM].path} <= {synced.path for synced in watched.synced}


def test_a_new_graph_is_flushed_before_and_with_its_manifest(graph: CommitContext, watched: Watched) -> None:
    assert [(synced.path, synced.manifest_version) for synced in watched.synced] == [("", None), ("__manifest", 1)]


def test_a_new_branch_is_flushed(graph: CommitContext, watched: Watched) -> None:
    watched.synced.clear()
    create_branch(graph, "feature", MAIN)
    assert [synced.path for synced in watched.synced] == ["__manifest"]


def test_what_recovery_publishes_is_flushed(graph: CommitContext, watched: Watched) -> None:
    leave_half_done(graph)
    watched.synced.clear()
    open_for_writing(connect(watched.describe, durability="power", store=watched))
    assert {"__manifest", "_graph_commit_recoveries.lance"} <= {synced.path for synced in watched.synced}


def test_without_it_nothing_is_flushed(watched: Watched) -> None:
    context = connect(watched.describe, durability=PROCESS, store=watched)
    create(context, SCHEMA)
    create_branch(context, "feature", MAIN)
    insert(context, {STAFF: staff(["ada"])})
    assert watched.synced == []


def test_the_mode_comes_from_the_caller_or_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert og.init(tmp_path / "a", SCHEMA)._context.durability == "process"
    monkeypatch.setenv("OMNIGRAPH_DURABILITY", "power")
    assert og.open(tmp_path / "a")._context.durability == "power"
    assert og.open(tmp_path / "a", durability="process")._context.durability == "process"
    monkeypatch.setenv("OMNIGRAPH_DURABILITY", "always")
    with pytest.raises(OmnigraphError, match="'always'"):
        og.open(tmp_path / "a")


# --- a flush that fails -----------------------------------------------------------------------------------------------


def test_a_record_that_is_not_flushed_means_no_effect(graph: CommitContext, watched: Watched) -> None:
    watched.inject(error_before("sync", "__recovery/*", nth=None, kind="permanent"))
    with pytest.raises(StorageError):
        insert(graph, {STAFF: staff(["ada"])})
    watched.clear()
    insert(graph, {STAFF: staff(["ben"])})
    assert ids(connect(watched.describe), STAFF) == ["ben"]


@pytest.mark.parametrize("path", ["nodes/*", "__manifest"])
def test_a_commit_that_is_not_flushed_is_not_acknowledged(graph: CommitContext, watched: Watched, path: str) -> None:
    watched.inject(error_before("sync", path, nth=None, kind="permanent"))
    with pytest.raises(RecoveryRequired) as raised:
        insert(graph, {STAFF: staff(["ada"])})
    assert list_sidecars(watched) == [raised.value.operation_id], "the record stays until it is flushed"
    watched.clear()
    assert [recovery.recovery_kind for recovery in heal(graph)] == ["RolledForward"]
    insert(graph, {STAFF: staff(["ben"])})
    assert ids(connect(watched.describe), STAFF) == ["ada", "ben"]
    assert list_sidecars(watched) == []


def test_a_flush_that_fails_once_is_repeated(graph: CommitContext, watched: Watched) -> None:
    watched.inject(error_before("sync", "__manifest", kind="transient"))
    watched.synced.clear()
    insert(graph, {STAFF: staff(["ada"])})
    assert "__manifest" in {synced.path for synced in watched.synced}
    assert ids(connect(watched.describe), STAFF) == ["ada"]


# --- after a power failure --------------------------------------------------------------------------------------------


class PowerFailure(BaseException):
    """The machine stops; nothing that runs can do anything about it."""


def leave_half_done(
    context: CommitContext, failpoint: str = "mutation.post_phase_b_pre_manifest_commit", branch: str = MAIN
) -> None:
    def stop() -> None:
        raise PowerFailure

    with failpoints.armed(failpoint, stop), pytest.raises(PowerFailure):
        insert(context, {STAFF: staff(["half"])}, branch=branch)


def newest_version_file(context: CommitContext, dataset: str) -> Path:
    return min(Path(context.root.uri, dataset, "_versions").glob("*.manifest"))


@pytest.mark.parametrize("content", [b"", b"\x00" * 300, b"torn"])
@pytest.mark.parametrize("branch", [MAIN, "feature"])
def test_a_torn_version_above_the_pin_counts_as_no_movement(graph: CommitContext, content: bytes, branch: str) -> None:
    insert(graph, {STAFF: staff(["ada"])})
    create_branch(graph, "feature", MAIN)
    insert(graph, {STAFF: staff(["eve"])}, branch="feature")
    leave_half_done(graph, branch=branch)
    table = graph.manifest.load(branch).by_key[STAFF].location.dataset_path
    newest_version_file(graph, table).write_bytes(content)

    fresh = connect(graph.root.uri, durability="power")
    open_for_writing(fresh)

    assert ids(fresh, STAFF, branch) == (["ada"] if branch == MAIN else ["ada", "eve"])
    assert list_sidecars(fresh.store) == []
    insert(fresh, {STAFF: staff(["new"])}, branch=branch)
    assert "new" in ids(connect(graph.root.uri), STAFF, branch)


@pytest.mark.parametrize("content", [b"", b"torn"])
def test_a_torn_manifest_version_was_never_acknowledged(graph: CommitContext, content: bytes) -> None:
    insert(graph, {STAFF: staff(["ada"])})
    leave_half_done(graph, "publisher.after_commit")
    newest_version_file(graph, "__manifest").write_bytes(content)

    fresh = connect(graph.root.uri, durability="power")
    open_for_writing(fresh)

    assert ids(fresh, STAFF) in (["ada"], ["ada", "half"])
    insert(fresh, {STAFF: staff(["new"])})
    assert "new" in ids(connect(graph.root.uri), STAFF)


def test_torn_data_above_the_pin_counts_as_no_movement(graph: CommitContext) -> None:
    insert(graph, {STAFF: staff(["ada"])})
    leave_half_done(graph)
    table = Path(graph.root.uri, graph.manifest.load().by_key[STAFF].path)
    newest = max((table / "data").iterdir(), key=lambda file: file.stat().st_mtime_ns)
    newest.write_bytes(b"")

    fresh = connect(graph.root.uri, durability="power")
    open_for_writing(fresh)

    assert ids(fresh, STAFF) == ["ada"]
    insert(fresh, {STAFF: staff(["new"])})
    assert ids(connect(graph.root.uri), STAFF) == ["ada", "new"]
