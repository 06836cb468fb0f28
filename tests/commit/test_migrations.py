"""Stepping old formats forward: nothing is lost, whoever dies, races or can not be read on the way."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import lance
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from omnigraph import failpoints
from omnigraph.commit import migrations, rows
from omnigraph.commit.branches import branch_names, create_branch
from omnigraph.commit.context import CommitContext
from omnigraph.commit.format import CURRENT, MIN_SUPPORTED
from omnigraph.commit.history import history
from omnigraph.commit.legacy import ACTORS_PATH, COMMITS_PATH
from omnigraph.commit.migrations import MIGRATION_RETRY_BUDGET, migrated
from omnigraph.commit.model import MAIN
from omnigraph.commit.publisher import publish
from omnigraph.commit.updates import SetTag
from omnigraph.errors import ManifestContention, OmnigraphError, StorageError
from omnigraph.graph.lifecycle import open_for_reading, open_for_writing
from omnigraph.graph.snapshot import resolve
from omnigraph.storage.tables.commit import set_schema_metadata
from tests import warm
from tests.commit.old_format import OldGraph, old_graph, old_org
from tests.commit.org import STAFF, again, ids, insert, lineage, staff
from tests.commit.test_manifest import stamp, tree


@pytest.fixture
def old(tmp_path: Path) -> OldGraph:
    """A graph of format 3."""
    return old_org(str(tmp_path / "graph"))


def opened(old: OldGraph) -> CommitContext:
    context = again(old.context)
    open_for_writing(context)
    return context


def manifest_rows(old: OldGraph, branch: str = MAIN) -> list[dict[str, object]]:
    listed: list[dict[str, object]] = old.dataset("__manifest", branch).to_table().to_pylist()
    return listed


# --- what a migration does --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("from_stamp", [2, 3])
def test_main_is_migrated_at_read_write_open_and_its_history_is_the_same(tmp_path: Path, from_stamp: int) -> None:
    old = old_org(str(tmp_path / "graph"), from_stamp)
    tables = {row["object_id"]: row for row in manifest_rows(old)}
    old_files = {path: data for path, data in tree(old.context).items() if path.startswith("_graph_commit")}

    context = opened(old)

    assert old.stamp() == CURRENT
    assert history(context.manifest) == old.history[MAIN]
    assert ids(context, STAFF) == ["ada", "ben", "cleo"]
    after = {row["object_id"]: row for row in manifest_rows(old)}
    assert {id_: after[id_] for id_ in tables} == tables, "tables and versions are as they were"
    added = sorted(str(after[id_]["object_type"]) for id_ in after if id_ not in tables)
    assert added == ["fence", "graph_commit", "graph_commit", "graph_commit", "graph_head"]
    assert {path: data for path, data in tree(old.context).items() if path.startswith("_graph_commit")} == old_files


def test_the_history_moves_in_one_manifest_version(old: OldGraph) -> None:
    version = old.dataset("__manifest").version
    opened(old)
    assert old.dataset("__manifest").version == version + 1


def test_migrating_again_does_nothing(old: OldGraph) -> None:
    opened(old)
    before = old.dataset("__manifest").version
    context = opened(old)
    migrated(context, MAIN)
    assert old.dataset("__manifest").version == before
    assert history(context.manifest) == old.history[MAIN]


def test_the_next_commit_continues_the_old_history(old: OldGraph) -> None:
    context = opened(old)
    head = insert(context, {STAFF: staff(["dov"])}).head
    listed = history(again(context).manifest)
    assert (listed[0].id, listed[0].parent) == (head, old.heads[MAIN])
    assert listed[1:] == old.history[MAIN]


def test_a_branch_is_migrated_by_its_first_write(old: OldGraph) -> None:
    context = opened(old)
    assert old.stamp("feature") == 3
    assert history(context.manifest, "feature") == old.history["feature"]
    assert ids(context, STAFF, "feature") == ["ada", "ben", "eve"]
    assert old.stamp("feature") == 3, "reading migrates nothing"

    insert(context, {STAFF: staff(["fay"])}, branch="feature")

    assert old.stamp("feature") == CURRENT
    listed = history(again(context).manifest, "feature")
    assert (listed[1:], listed[0].parent) == (old.history["feature"], old.heads["feature"])
    assert ids(again(context), STAFF, "feature") == ["ada", "ben", "eve", "fay"]
    heads = [row["object_id"] for row in manifest_rows(old, "feature") if row["object_type"] == rows.GRAPH_HEAD]
    assert heads == ["graph_head:feature"]
    assert history(context.manifest) == old.history[MAIN], "main is untouched"


def test_branches_without_old_history_of_their_own_inherit_it(old: OldGraph) -> None:
    old.create_branch("quiet", "feature", with_history=False)
    old.commit(["later"], branch="feature")
    context = opened(old)
    create_branch(context, "young", "feature")  # of a branch that is not migrated yet

    for name, base in (("quiet", old.history["quiet"]), ("young", old.history["feature"])):
        assert history(context.manifest, name) == base
        head = insert(context, {STAFF: staff(["new"])}, branch=name).head
        listed = history(again(context).manifest, name)
        assert (listed[0].id, listed[1:]) == (head, base)


def test_actors_are_read_from_the_flat_dataset_for_every_branch(old: OldGraph) -> None:
    context = opened(old)
    assert [commit.actor for commit in history(context.manifest)] == [None, "act-ann", None]
    assert [commit.actor for commit in history(context.manifest, "feature")] == ["act-eve", "act-ann", None]


def test_old_commits_can_still_be_visited(old: OldGraph) -> None:
    readable = again(old.context)
    open_for_reading(readable)
    context = opened(old)
    insert(context, {STAFF: staff(["x"])}, branch="feature")
    for handle in (readable, context):
        for branch, counts in ((MAIN, [3, 2, 0]), ("feature", [3, 2, 0])):
            seen = [
                resolve(handle.manifest, branch, commit.id).by_key[STAFF].row_count for commit in old.history[branch]
            ]
            assert seen == counts


def test_a_merge_in_the_old_history_keeps_both_parents(tmp_path: Path) -> None:
    old = old_graph(str(tmp_path / "graph"))
    first = old.commit(["ada"])
    version = old.dataset("__manifest").version
    merged = {
        "graph_commit_id": "01M00000000000000000000000",
        "manifest_version": version + 1,
        "parent_commit_id": first.id,
        "merged_parent_commit_id": "01K00000000000000000000000",
        "created_at": 7,
    }
    old.dataset("__manifest").update_config({"any": "thing"})
    old.append(COMMITS_PATH, MAIN, old.dataset(COMMITS_PATH).schema, merged)

    newest = history(opened(old).manifest)[0]
    assert (newest.parent, newest.merged_parent, newest.kind) == (first.id, "01K00000000000000000000000", "merge")


def test_a_graph_without_any_old_history_gets_a_root(tmp_path: Path) -> None:
    old = old_graph(str(tmp_path / "graph"))
    old.context.store.delete_prefix(COMMITS_PATH)
    old.context.store.delete_prefix(ACTORS_PATH)
    context = opened(old)
    insert(context, {STAFF: staff(["ada"])})
    assert [(commit.kind, commit.parent is None) for commit in history(context.manifest)] == [
        ("mutation", False),
        ("init", True),
    ]


def test_a_history_that_is_there_already_is_only_stamped(old: OldGraph) -> None:
    opened(old)
    before = manifest_rows(old)
    stamp(old.context.root.lance_uri("__manifest"), "3")

    context = opened(old)

    assert old.stamp() == CURRENT
    assert manifest_rows(old) == before
    assert history(context.manifest) == old.history[MAIN]


# --- format 2 ---------------------------------------------------------------------------------------------------------


def test_stale_run_branches_go_and_the_name_is_ordinary_afterwards(tmp_path: Path) -> None:
    old = old_org(str(tmp_path / "graph"), 2)
    for name, base in (("__run__1", MAIN), ("__run__2", "__run__1"), ("__run__kept", MAIN), ("child", "__run__kept")):
        old.create_branch(name, base)
    context = opened(old)
    assert branch_names(context) == [MAIN, "__run__kept", "child", "feature"], "one that others depend on stays"

    create_branch(context, "__run__mine", MAIN)
    insert(context, {STAFF: staff(["mine"])}, branch="__run__mine")
    insert(context, {STAFF: staff(["fay"])}, branch="feature")  # migrates a branch of format 2

    assert old.stamp("feature") == CURRENT
    assert ids(again(context), STAFF, "__run__mine") == ["ada", "ben", "cleo", "mine"]


def test_the_lowest_step_starts_at_the_oldest_supported_format() -> None:
    assert min(migrations._STEPS) == MIN_SUPPORTED
    assert sorted(migrations._STEPS) == list(range(MIN_SUPPORTED, CURRENT))


# --- read-only --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("from_stamp", [2, 3])
def test_a_read_only_open_writes_nothing_and_shows_the_old_history(tmp_path: Path, from_stamp: int) -> None:
    old = old_org(str(tmp_path / "graph"), from_stamp)
    before = tree(old.context)
    context = again(old.context)

    open_for_reading(context)

    assert history(context.manifest) == old.history[MAIN]
    assert history(context.manifest, "feature") == old.history["feature"]
    assert ids(context, STAFF) == ["ada", "ben", "cleo"]
    assert ids(context, STAFF, "feature") == ["ada", "ben", "eve"]
    assert context.manifest.load().head == old.heads[MAIN]
    assert tree(old.context) == before


# --- what can not be read ---------------------------------------------------------------------------------------------


def _garble(path: Path) -> None:
    for manifest in (path / "_versions").glob("*.manifest"):
        manifest.write_bytes(b"not a manifest")


def _lose_versions(path: Path) -> None:
    shutil.rmtree(path / "_versions")


def _lose_data(path: Path) -> None:
    shutil.rmtree(path / "data")


@pytest.mark.parametrize("damage", [_garble, _lose_versions, _lose_data])
@pytest.mark.parametrize("dataset", [COMMITS_PATH, ACTORS_PATH])
def test_an_unreadable_old_dataset_stops_the_migration_before_the_stamp(
    old: OldGraph, tmp_path: Path, dataset: str, damage: Callable[[Path], None]
) -> None:
    path = Path(old.context.root.uri, dataset)
    shutil.copytree(path, tmp_path / "backup")
    damage(path)
    manifest = {name: data for name, data in tree(old.context).items() if name.startswith("__manifest")}

    for _ in range(2):
        with pytest.raises(StorageError) as raised:
            open_for_writing(again(old.context))
        assert dataset in str(raised.value)
    assert old.stamp() == 3
    assert {name: data for name, data in tree(old.context).items() if name.startswith("__manifest")} == manifest

    shutil.rmtree(path)
    shutil.copytree(tmp_path / "backup", path)
    assert history(opened(old).manifest) == old.history[MAIN]


@pytest.mark.parametrize(("dataset", "column"), [(COMMITS_PATH, "parent_commit_id"), (ACTORS_PATH, "actor_id")])
def test_an_old_dataset_of_another_shape_stops_the_migration(old: OldGraph, dataset: str, column: str) -> None:
    old.dataset(dataset).drop_columns([column])
    with pytest.raises(StorageError, match=f"{dataset} exists but is no readable history"):
        open_for_writing(again(old.context))
    assert old.stamp() == 3


def test_times_may_be_stored_as_timestamps(old: OldGraph) -> None:
    commits = old.dataset(COMMITS_PATH)
    rows_ = commits.to_table()
    at = rows_.schema.get_field_index("created_at")
    as_times = rows_.set_column(at, "created_at", rows_["created_at"].cast(pa.timestamp("us", tz="UTC")))
    lance.write_dataset(as_times, commits.uri, mode="overwrite")
    assert history(opened(old).manifest) == old.history[MAIN]


def test_a_failure_to_open_the_old_history_stops_the_migration(old: OldGraph) -> None:
    with failpoints.armed("migration.v3_to_v4.legacy_open", "error"), pytest.raises(OmnigraphError):
        open_for_writing(again(old.context))
    assert old.stamp() == 3
    assert history(opened(old).manifest) == old.history[MAIN]


# --- dying and racing -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("from_stamp", "failpoint", "left"),
    [
        (2, "migration.v2_to_v3.before_stamp", 2),
        (2, "migration.v3_to_v4.before_overwrite", 3),
        (3, "migration.v3_to_v4.before_overwrite", 3),
        (3, "table_commit.lost_acknowledgement", 4),
    ],
)
def test_a_process_killed_in_a_migration_leaves_it_to_the_next(
    tmp_path: Path, from_stamp: int, failpoint: str, left: int
) -> None:
    old = old_org(str(tmp_path / "graph"), from_stamp)
    killed = _open_in_child(old, failpoint)

    assert killed == -signal.SIGKILL
    assert old.stamp() == left
    context = opened(old)
    assert old.stamp() == CURRENT
    assert history(context.manifest) == old.history[MAIN]
    assert ids(context, STAFF) == ["ada", "ben", "cleo"]
    insert(context, {STAFF: staff(["dov"])})


def test_a_process_killed_before_a_bare_stamp_leaves_it_to_the_next(old: OldGraph) -> None:
    opened(old)
    stamp(old.context.root.lance_uri("__manifest"), "3")
    assert _open_in_child(old, "migration.v4_stamp.force_incompatible") == -signal.SIGKILL
    assert old.stamp() == 3
    assert history(opened(old).manifest) == old.history[MAIN]


def _open_in_child(old: OldGraph, failpoint: str) -> int:
    child = "import sys, omnigraph; omnigraph.open(sys.argv[1])"
    environment = {**os.environ, "OMNIGRAPH_FAILPOINTS": f"{failpoint}=kill"}
    return warm.run([sys.executable, "-c", child, old.context.root.uri], env=environment).returncode


class OnceElsewhere:
    """A failpoint action: another runner does something at this point, the first time it is passed."""

    def __init__(self, action: Callable[[], object]) -> None:
        self.calls = 0
        self._action = action

    def __call__(self) -> None:
        self.calls += 1
        if self.calls == 1:
            self._action()


def test_the_slower_of_two_runners_finds_it_done(old: OldGraph) -> None:
    rival = OnceElsewhere(lambda: migrated(again(old.context), MAIN))
    with failpoints.armed("migration.v3_to_v4.before_overwrite", rival):
        context = opened(old)
    assert rival.calls == 2, "the rival passes it too"
    assert history(context.manifest) == old.history[MAIN]
    ids_ = [row["object_id"] for row in manifest_rows(old)]
    assert len(ids_) == len(set(ids_)), "nothing is there twice"


def test_the_slower_of_two_stampers_finds_it_done(old: OldGraph) -> None:
    opened(old)
    stamp(old.context.root.lance_uri("__manifest"), "3")
    manifest = old.context.root.lance_uri("__manifest")
    rival = OnceElsewhere(lambda: stamp(manifest, str(CURRENT)))
    with failpoints.armed("migration.v4_stamp.force_incompatible", rival):
        context = opened(old)
    assert rival.calls == 1
    assert context.manifest.load().stamp == CURRENT
    assert history(context.manifest) == old.history[MAIN]


def test_a_writer_that_comes_first_is_not_overwritten(old: OldGraph) -> None:
    """The overwrite is strict: an old writer's publish between the read and the overwrite is kept."""
    late = OnceElsewhere(lambda: old.commit(["late"]))
    with failpoints.armed("migration.v3_to_v4.before_overwrite", late):
        context = opened(old)
    assert late.calls == 2
    assert ids(context, STAFF) == ["ada", "ben", "cleo", "late"]
    assert history(context.manifest) == old.history[MAIN]


def test_a_runner_that_always_loses_reports_contention_and_can_be_repeated(old: OldGraph) -> None:
    tries: list[int] = []

    def move_it() -> None:
        tries.append(1)
        set_schema_metadata(old.dataset("__manifest"), "someone", str(len(tries)))

    with failpoints.armed("migration.v3_to_v4.before_overwrite", move_it), pytest.raises(ManifestContention):
        open_for_writing(again(old.context))
    assert len(tries) == MIGRATION_RETRY_BUDGET + 1
    assert old.stamp() == 3
    assert history(opened(old).manifest) == old.history[MAIN]


def test_the_publishers_own_retry_completes_a_contended_migration(old: OldGraph) -> None:
    tries: list[int] = []

    def move_it_for_a_while() -> None:
        tries.append(1)
        if len(tries) <= MIGRATION_RETRY_BUDGET + 1:
            set_schema_metadata(old.dataset("__manifest"), "someone", str(len(tries)))

    context = again(old.context)
    with failpoints.armed("migration.v3_to_v4.before_overwrite", move_it_for_a_while):
        state = publish(context, MAIN, [SetTag("t", "x")], [], lineage())
    assert history(context.manifest)[1:] == old.history[MAIN]
    assert history(context.manifest)[0].id == state.head


def test_other_schema_metadata_survives(old: OldGraph) -> None:
    """A stamp is not the only thing that may stand there."""
    set_schema_metadata(old.dataset("__manifest"), "somebody", "was here")
    opened(old)
    assert old.dataset("__manifest").schema.metadata[b"somebody"] == b"was here"


def test_rows_are_in_a_fixed_order(tmp_path: Path) -> None:
    """Two runners write the same image: the old rows, the commits by age, then head and fence."""
    old = old_org(str(tmp_path / "graph"))
    opened(old)
    types = old.dataset("__manifest").to_table(columns=["object_type"])["object_type"]
    position = pc.index(types, "graph_commit").as_py()
    assert types.to_pylist()[position:] == ["graph_commit"] * 3 + ["graph_head", "fence"]
    commits = [row["object_id"] for row in manifest_rows(old) if row["object_type"] == "graph_commit"]
    assert commits == [commit.id for commit in reversed(old.history[MAIN])]
