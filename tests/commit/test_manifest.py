"""Reading `__manifest`: warm handles, old versions, formats, and what a commit costs in reads and writes."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import lance
import pyarrow.compute as pc
import pytest

from omnigraph import failpoints
from omnigraph.commit import rows
from omnigraph.commit.branches import create_branch
from omnigraph.commit.context import CommitContext
from omnigraph.commit.history import history
from omnigraph.commit.model import MAIN
from omnigraph.commit.publisher import COMPACT_ABOVE_FRAGMENTS, compact_when_due, publish
from omnigraph.commit.recovery import heal
from omnigraph.commit.updates import SetTag
from omnigraph.errors import (
    BranchNotFound,
    CommitNotFound,
    FormatTooNew,
    FormatTooOld,
    HistoricalVersionReclaimed,
    OmnigraphError,
    StorageError,
)
from omnigraph.graph.lifecycle import connect, open_for_reading, open_for_writing
from omnigraph.ids import new_ulid
from tests.commit.org import STAFF, again, ids, insert, lineage, new_graph, staff

# --- warm handles -----------------------------------------------------------------------------------------------------


def test_a_warm_handle_sees_what_others_publish(shared_graph: CommitContext) -> None:
    reader = again(shared_graph)
    assert ids(reader, STAFF) == []
    insert(shared_graph, {STAFF: staff(["ada"])})
    assert ids(reader, STAFF) == ["ada"]


def test_a_state_never_changes(graph: CommitContext) -> None:
    state = graph.manifest.load()
    insert(graph, {STAFF: staff(["ada"])})
    assert state.by_key[STAFF].row_count == 0
    with pytest.raises(TypeError):
        state.by_key["node:New"] = state.by_key[STAFF]  # type: ignore[index]  # refused: read-only


@pytest.mark.parametrize("branch", [MAIN, "feature"])
def test_reading_again_costs_no_scan_while_nothing_moved(graph: CommitContext, branch: str) -> None:
    create_branch(graph, "feature", MAIN)
    reader = again(graph)
    reader.manifest.load(branch)
    scans = reader.manifest.scans

    for _ in range(5):
        reader.manifest.load(branch)
    assert reader.manifest.scans == scans

    insert(graph, {STAFF: staff(["ada"])}, branch=branch)
    reader.manifest.load(branch)
    assert reader.manifest.scans == scans + 1


def test_an_unknown_branch_is_an_error_also_when_it_was_known(graph: CommitContext) -> None:
    with pytest.raises(BranchNotFound, match="branch 'nowhere' not found"):
        graph.manifest.load("nowhere")
    with pytest.raises(BranchNotFound):
        graph.manifest.load_at("nowhere", 1)
    with pytest.raises(BranchNotFound):
        graph.manifest.commits("nowhere")


# --- golden numbers ---------------------------------------------------------------------------------------------------


def test_a_commit_is_one_manifest_write_and_a_warm_writer_scans_nothing(graph: CommitContext) -> None:
    insert(graph, {STAFF: staff(["warm"])})
    versions, scans = manifest_versions(graph), graph.manifest.scans

    insert(graph, {STAFF: staff(["ada"])})

    assert manifest_versions(graph) == versions + 1
    assert graph.manifest.scans == scans


def test_a_writer_that_is_behind_scans_once(graph: CommitContext) -> None:
    behind = again(graph)
    behind.manifest.load()
    insert(graph, {STAFF: staff(["ada"])})
    scans = behind.manifest.scans
    insert(behind, {STAFF: staff(["ben"])})
    assert behind.manifest.scans == scans + 1


def test_healing_with_nothing_to_do_is_one_list(shared_graph: CommitContext) -> None:
    shared_graph.store.counts.clear()
    assert heal(shared_graph) == []
    assert shared_graph.store.counts == {"list": 1}


def manifest_versions(context: CommitContext) -> int:
    return len(list(Path(context.root.uri, "__manifest/_versions").glob("*.manifest")))


# --- compaction -------------------------------------------------------------------------------------------------------


def test_300_commits_keep_few_fragments_and_all_of_history(graph: CommitContext) -> None:
    heads = [graph.manifest.load().head]
    most_fragments = 0
    for number in range(300):
        if number % 50 == 0:
            state = insert(graph, {STAFF: staff([f"p{number}"])})
        else:
            state = publish(graph, MAIN, [SetTag("last", heads[-1])], [], lineage())
            compact_when_due(graph.manifest, MAIN)
        heads.append(state.head)
        most_fragments = max(most_fragments, graph.manifest.load().fragment_count)

    assert most_fragments <= COMPACT_ABOVE_FRAGMENTS + 2
    fresh = again(graph)
    listed = history(fresh.manifest)
    assert [commit.id for commit in reversed(listed)] == heads
    versions = [commit.manifest_version for commit in listed]
    assert versions == sorted(set(versions), reverse=True), "a version of its own for every commit"
    assert versions[0] > len(heads), "compaction made versions that no commit made"
    for commit in listed[::23]:
        state = fresh.manifest.load_at(MAIN, commit.manifest_version)
        assert state.head == commit.id
        assert state.tags.get("last") in {None, *heads[: heads.index(commit.id)]}
    assert len(ids(fresh, STAFF)) == 6


def test_compaction_that_fails_never_fails_the_write_and_is_made_up_for(graph: CommitContext) -> None:
    with failpoints.armed("publisher.before_compact", "error"):
        for number in range(COMPACT_ABOVE_FRAGMENTS + 5):
            insert(graph, {STAFF: staff([f"p{number}"])})
    assert graph.manifest.load().fragment_count > COMPACT_ABOVE_FRAGMENTS
    insert(graph, {STAFF: staff(["last"])})
    assert graph.manifest.load().fragment_count <= 2
    assert len(ids(again(graph), STAFF)) == COMPACT_ABOVE_FRAGMENTS + 6


def test_a_publish_that_meets_a_compaction_is_retried(graph: CommitContext) -> None:
    with failpoints.armed("publisher.before_compact", "error"):
        for number in range(COMPACT_ABOVE_FRAGMENTS + 2):
            insert(graph, {STAFF: staff([f"p{number}"])})
    compacted: list[bool] = []

    def compact_first() -> None:
        if not compacted:
            compacted.append(compact_when_due(again(graph).manifest, MAIN))

    with failpoints.armed("publisher.before_commit", compact_first):
        state = publish(graph, MAIN, [SetTag("t", "x")], [], lineage())
    assert compacted == [True]
    assert again(graph).manifest.load().head == state.head
    assert len(history(again(graph).manifest)) == COMPACT_ABOVE_FRAGMENTS + 4


# --- old versions -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [0, -1, 3, 99999, 2**70])
def test_a_version_that_never_was_is_not_found(graph: CommitContext, version: int) -> None:
    insert(graph, {STAFF: staff(["ada"])})
    with pytest.raises(CommitNotFound, match=f"branch 'main' has no manifest version {version}"):
        graph.manifest.load_at(MAIN, version)


def test_versions_below_the_fork_point_are_those_of_the_parent(shared_graph: CommitContext) -> None:
    insert(shared_graph, {STAFF: staff(["ada"])})
    insert(shared_graph, {STAFF: staff(["ben"])})
    create_branch(shared_graph, "feature", MAIN)
    insert(shared_graph, {STAFF: staff(["cleo"])})
    insert(shared_graph, {STAFF: staff(["eve"])}, branch="feature")

    counts = {
        version: again(shared_graph).manifest.load_at("feature", version).by_key[STAFF].row_count
        for version in (1, 2, 3, 4)
    }
    assert counts == {1: 0, 2: 1, 3: 2, 4: 3}


def test_a_version_that_was_cleaned_up_is_its_own_error(graph: CommitContext) -> None:
    for name in ("ada", "ben", "cleo"):
        insert(graph, {STAFF: staff([name])})
    dataset = lance.dataset(graph.root.lance_uri("__manifest"))
    dataset.cleanup_old_versions(timedelta(0), delete_unverified=True)

    with pytest.raises(HistoricalVersionReclaimed, match="version 2 of branch 'main'"):
        again(graph).manifest.load_at(MAIN, 2)
    assert ids(again(graph), STAFF) == ["ada", "ben", "cleo"]
    assert len(history(again(graph).manifest)) == 4, "history lives in the newest version"


# --- history ----------------------------------------------------------------------------------------------------------


def test_history_is_rebuilt_from_the_manifest_alone(graph: CommitContext, tmp_path: Path) -> None:
    create_branch(graph, "feature", MAIN)
    for number in range(15):
        insert(graph, {STAFF: staff([f"p{number}"])}, actor=f"actor-{number % 3}")
    expected = history(graph.manifest)

    bare = connect(str(tmp_path / "bare"))
    shutil.copytree(Path(graph.root.uri, "__manifest"), Path(bare.root.uri, "__manifest"))

    assert history(bare.manifest) == expected
    assert bare.manifest.load().tables == graph.manifest.load().tables


def test_a_commit_is_found_by_id_on_its_branch_or_any_other(shared_graph: CommitContext) -> None:
    create_branch(shared_graph, "feature", MAIN)
    on_feature = insert(shared_graph, {STAFF: staff(["eve"])}, branch="feature").head

    assert shared_graph.manifest.find_commit(MAIN, on_feature) is None
    found = again(shared_graph).manifest.commit_near(on_feature, MAIN)
    assert (found.id, found.branch) == (on_feature, "feature")
    with pytest.raises(CommitNotFound):
        shared_graph.manifest.commit_near(new_ulid())
    with pytest.raises(BranchNotFound):
        shared_graph.manifest.commit_near(on_feature, "nowhere")


# --- formats ----------------------------------------------------------------------------------------------------------


def stamp(uri: str, value: str | None) -> None:
    """Give a manifest another format stamp, behind the back of OmniGraph."""
    lance.dataset(uri).update_schema_metadata({} if value is None else {rows.STAMP_KEY: value}, replace=True)


OPENERS = [pytest.param(open_for_writing, id="rw"), pytest.param(open_for_reading, id="ro")]


@pytest.mark.parametrize("open_graph", OPENERS)
@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        pytest.param("5", FormatTooNew, "upgrade omnigraph", id="next"),
        pytest.param("99", FormatTooNew, "upgrade omnigraph", id="future"),
        pytest.param("1", FormatTooOld, "rebuild it via export/import", id="below the floor"),
        pytest.param(None, FormatTooOld, "format 1.*rebuild it via export/import", id="absent means 1"),
        pytest.param("four", StorageError, "not a number", id="not a number"),
    ],
)
def test_an_unsupported_format_is_refused_and_nothing_touched(
    tmp_path: Path,
    open_graph: Callable[[CommitContext], object],
    value: str | None,
    error: type[OmnigraphError],
    message: str,
) -> None:
    context = new_graph(str(tmp_path / "graph"))
    stamp(context.root.lance_uri("__manifest"), value)
    before = tree(context)
    fresh = again(context)

    with pytest.raises(error, match=message):
        open_graph(fresh)
    assert tree(context) == before
    assert not {"put", "create", "swap", "delete"} & set(fresh.store.counts), "nothing was even tried"


@pytest.mark.parametrize(("value", "error"), [("5", FormatTooNew), ("1", FormatTooOld)])
def test_an_unsupported_format_is_refused_on_a_branch_too(
    graph: CommitContext, value: str, error: type[OmnigraphError]
) -> None:
    create_branch(graph, "feature", MAIN)
    stamp(graph.root.lance_uri("__manifest/tree/feature"), value)
    fresh = again(graph)
    open_for_writing(fresh)

    with pytest.raises(error):
        fresh.manifest.load("feature")
    with pytest.raises(error):
        insert(fresh, {STAFF: staff(["eve"])}, branch="feature")
    assert ids(fresh, STAFF) == []


def test_a_manifest_without_a_fence_is_refused(graph: CommitContext) -> None:
    lance.dataset(graph.root.lance_uri("__manifest")).delete(pc.field("object_id") == rows.FENCE)
    with pytest.raises(StorageError, match="no fence row"):
        again(graph).manifest.load()


def tree(context: CommitContext) -> dict[str, bytes]:
    """Every file of a graph, byte by byte."""
    root = Path(context.root.uri)
    return {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}
