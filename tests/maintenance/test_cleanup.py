"""`cleanup`: what nobody can ask for goes, and nothing else."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph import failpoints
from omnigraph.commit.branch_refs import MANIFEST_PATH
from omnigraph.commit.branches import create_branch
from omnigraph.commit.context import CommitContext
from omnigraph.commit.model import MAIN
from omnigraph.commit.protocol import Write, execute
from omnigraph.commit.sidecar import Kind
from omnigraph.commit.staging_jobs import scratch_folder, staging_job
from omnigraph.commit.updates import DropTable
from omnigraph.graph.lifecycle import connect
from omnigraph.ids import new_ulid
from omnigraph.maintenance.cleanup import LOOKS_WITHOUT_LOCKS, CleanupReport, cleanup
from omnigraph.maintenance.retention import Policy
from omnigraph.storage.object_store import ObjectStore
from omnigraph.storage.root import Root
from omnigraph.storage.tables.commit import fork
from omnigraph.storage.tables.dataset_files import DatasetFiles, list_dataset
from omnigraph.storage.tables.staged import stage_append
from tests import warm
from tests.commit.healthy import assert_healthy, picture, tree
from tests.commit.org import (
    MEMBER_OF,
    STAFF,
    TEAM,
    accepted,
    again,
    ids,
    insert,
    lineage,
    new_graph,
    staff,
    table_of,
    team,
)
from tests.maintenance.referenced import all_readable, unreferenced, version_count
from tests.mutation.org_graph import WRITES, org_graph

CHILD = Path(__file__).with_name("cleanup_child.py")
DEATHS = ["cleanup.after_record", "cleanup.mid_versions", "cleanup.after_versions", "cleanup.mid_files"]


@pytest.fixture(autouse=True)
def no_feed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a feed to keep commits for, only the policy decides."""
    monkeypatch.setenv("OMNIGRAPH_FEED_RETENTION", "0s")


@pytest.fixture
def org(tmp_path: Path) -> og.Graph:
    """FX-ORG with some history: eight commits after the load."""
    graph = org_graph(tmp_path / "org")
    for level in range(4):
        graph.mutate(WRITES, "relevel", {"h": "ada", "n": level})
        graph.mutate(WRITES, "put", {"h": f"new{level}", "n": level})
    return graph


@pytest.fixture
def graph(tmp_path: Path) -> CommitContext:
    return new_graph(str(tmp_path / "graph"))


@pytest.fixture
def shared_graph(shared_root: Root) -> CommitContext:
    return new_graph(shared_root.uri, storage_options=shared_root.storage_options)


def levels(graph: og.Graph, **options: Any) -> dict[str, int]:
    source = "query q() { match { $s: Staff } return { $s.handle, $s.level } }"
    return {row["s.handle"]: row["s.level"] for row in graph.query(source, **options).rows}


def readable(graph: og.Graph, commits: list[str]) -> list[bool]:
    """Which commits can still be read."""

    def can_read(commit: str) -> bool:
        try:
            levels(graph, snapshot=commit)
        except og.errors.HistoricalVersionReclaimed:
            return False
        return True

    return [can_read(commit) for commit in commits]


# --- the policy -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        ({}, "what to keep"),
        ({"keep": 0}, "at least the newest"),
        ({"older_than": "soon"}, "no length of time"),
        ({"older_than": "7"}, "no length of time"),
        ({"keep": True}, "whole number"),
        ({"keep": 1.5}, "whole number"),
        ({"keep": "3"}, "whole number"),
        ({"older_than": 7}, "length of time"),
        ({"older_than": timedelta(seconds=-1)}, "negative"),
    ],
    ids=str,
)
def test_a_policy_is_needed(org: og.Graph, policy: dict[str, Any], message: str) -> None:
    files = tree(connect(org.uri))
    with pytest.raises(og.errors.BadRequest, match=message):
        org.cleanup(**policy)
    assert tree(connect(org.uri)) == files


def test_a_reader_cleans_nothing(org: og.Graph) -> None:
    with pytest.raises(og.errors.BadRequest, match="read-only"):
        og.open(org.uri, "ro").cleanup(keep=1)


@pytest.mark.parametrize("keep", [1, 3, 100])
def test_the_newest_commits_stay(org: og.Graph, keep: int) -> None:
    before = picture(connect(org.uri))
    commits = [commit.id for commit in org.commits()]
    report = org.cleanup(keep=keep)
    assert readable(og.open(org.uri), commits) == [place < keep for place in range(len(commits))]
    assert readable(org, commits) == [place < keep for place in range(len(commits))]
    assert [commit.id for commit in org.commits()] == commits, "history itself is never lost"
    assert bool(report.datasets) == (keep < len(commits))
    assert picture(connect(org.uri)) == before
    assert unreferenced(connect(org.uri)) == set()
    all_readable(connect(org.uri))
    assert_healthy(connect(org.uri))
    org.mutate(WRITES, "put", {"h": "later", "n": 1})
    assert levels(org)["later"] == 1


def test_a_second_run_finds_nothing(org: og.Graph) -> None:
    org.cleanup(keep=2)
    files = tree(connect(org.uri))
    assert org.cleanup(keep=2).datasets == ()
    assert tree(connect(org.uri)) == files


def test_a_later_run_may_want_to_keep_more_than_there_is(org: og.Graph) -> None:
    commits = [commit.id for commit in org.commits()]
    org.cleanup(keep=2)
    org.mutate(WRITES, "put", {"h": "later", "n": 1})
    for policy in ({"keep": 100}, {"older_than": "1w"}):
        org.cleanup(**policy)
        assert readable(org, commits) == [place < 2 for place in range(len(commits))]
    all_readable(connect(org.uri))


def test_a_dry_run_says_what_goes_and_removes_nothing(org: og.Graph) -> None:
    files = tree(connect(org.uri))
    foreseen = org.cleanup(keep=1, dry_run=True)
    assert tree(connect(org.uri)) == files
    done = org.cleanup(keep=1)
    assert done.datasets == foreseen.datasets
    left = tree(connect(org.uri))
    # The digest log is shortened, and notes of what is gone are new: neither is something that was removed.
    notes = {name for name in left if name.endswith("_reclaimed.json") or name == "__digests.log"}
    before = sum(size for name, size in files.items() if name not in notes)
    assert before - sum(size for name, size in left.items() if name not in notes) == done.bytes_removed


def test_young_commits_stay(org: og.Graph) -> None:
    assert org.cleanup(older_than="1h").datasets == ()
    commits = [commit.id for commit in org.commits()]
    assert org.cleanup(older_than="0s").datasets
    assert readable(org, commits) == [True] + [False] * (len(commits) - 1)


def test_ages_beyond_all_dates_keep_everything(org: og.Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMNIGRAPH_STAGING_GRACE", "99999999d")
    assert org.cleanup(older_than="99999999w").datasets == ()


def test_both_together_remove_only_what_both_allow(org: og.Graph) -> None:
    assert org.cleanup(keep=1, older_than="1h").datasets == ()


def test_the_feed_keeps_what_it_may_be_asked_for(org: og.Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMNIGRAPH_FEED_RETENTION")
    assert org.cleanup(keep=1).datasets == ()
    monkeypatch.setenv("OMNIGRAPH_FEED_RETENTION", "a while")
    with pytest.raises(og.errors.BadRequest, match="OMNIGRAPH_FEED_RETENTION"):
        org.cleanup(keep=1)


# --- what stays whatever the policy says ------------------------------------------------------------------------------


def test_tags(org: og.Graph) -> None:
    commits = [commit.id for commit in org.commits()]
    then = levels(org, snapshot=commits[4])
    org.tag("release", commits[4])
    org.cleanup(keep=1)
    assert readable(org, commits) == [place in (0, 4) for place in range(len(commits))]
    assert levels(og.open(org.uri), snapshot=commits[4]) == then
    org.delete_tag("release")
    org.cleanup(keep=1)
    assert readable(org, commits) == [place == 0 for place in range(len(commits))]
    assert unreferenced(connect(org.uri)) == set()


def test_an_idle_reader_is_not_fooled_by_the_gap_above_a_tagged_version(org: og.Graph) -> None:
    """It has the tagged version in its hands; the next one is gone, but there are newer ones."""
    idle, idle_writer, writer = og.open(org.uri, "ro"), og.open(org.uri), og.open(org.uri)
    assert "fay" not in levels(idle)
    assert "fay" not in levels(idle_writer)
    writer.tag("here", writer.head().id)
    for level in range(3):
        writer.mutate(WRITES, "put", {"h": "fay", "n": level})
    writer.cleanup(keep=1)
    assert levels(idle)["fay"] == 2
    idle_writer.mutate(WRITES, "put", {"h": "gil", "n": 1})
    assert levels(idle)["gil"] == 1


def test_a_branch_keeps_what_it_shares(org: og.Graph) -> None:
    """A branch that has written nothing pins old versions of main's tables."""
    org.create_branch("work")
    shared = levels(org, branch="work")
    for level in range(5):
        org.mutate(WRITES, "relevel", {"h": "ben", "n": 100 + level})
    org.optimize()
    org.cleanup(keep=1)
    assert levels(og.open(org.uri), branch="work") == shared
    all_readable(connect(org.uri))
    org.mutate(WRITES, "put", {"h": "mine", "n": 7}, branch="work")
    org.mutate(WRITES, "put", {"h": "mine", "n": 8}, branch="work")
    org.cleanup(keep=1)
    assert levels(og.open(org.uri), branch="work") == {**shared, "mine": 8}
    assert "mine" not in levels(org)
    org.delete_branch("work")
    org.cleanup(keep=1)
    assert unreferenced(connect(org.uri)) == set()
    assert_healthy(connect(org.uri))


@pytest.mark.row("MRG-77")
def test_branches_can_still_be_merged(org: og.Graph) -> None:
    org.create_branch("work")
    for level in range(4):
        org.mutate(WRITES, "relevel", {"h": "cleo", "n": 200 + level}, branch="work")
        org.mutate(WRITES, "relevel", {"h": "dov", "n": 300 + level})
    org.cleanup(keep=1)
    org.merge("work")
    assert (levels(org)["cleo"], levels(org)["dov"]) == (203, 303)
    for level in range(4):
        org.mutate(WRITES, "relevel", {"h": "cleo", "n": 400 + level}, branch="work")
        org.mutate(WRITES, "relevel", {"h": "dov", "n": 500 + level})
    org.cleanup(keep=1)
    org.merge("work")
    assert (levels(org)["cleo"], levels(org)["dov"]) == (403, 503)
    assert_healthy(connect(org.uri))


# --- why something stays ----------------------------------------------------------------------------------------------


def reasons(report: CleanupReport) -> dict[tuple[str, str], int]:
    return {(kept.reason, kept.branch): kept.commits for kept in report.kept}


def test_it_says_what_stays_beyond_the_policy(org: og.Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    commits = [commit.id for commit in org.commits()]
    assert org.cleanup(keep=3, dry_run=True).kept == ()
    org.tag("release", commits[4])
    org.create_branch("work")
    for level in range(2):
        org.mutate(WRITES, "put", {"h": "later", "n": level})
        org.mutate(WRITES, "put", {"h": "mine", "n": level}, branch="work")
    because = {("tag", "main"): 1, ("merge_base", "main"): 1, ("fork_point", "main"): 1}
    assert reasons(org.cleanup(keep=1, dry_run=True)) == because
    assert reasons(org.cleanup(keep=3, dry_run=True)) == {("tag", "main"): 1}
    # Without a number, nothing but the newest state of a branch is sure to stay.
    heads = {("head", "main"): 1, ("head", "work"): 1}
    assert reasons(org.cleanup(older_than="0s", dry_run=True)) == because | heads
    monkeypatch.setenv("OMNIGRAPH_FEED_RETENTION", "1h")
    feed = {("feed", "main"): len(commits) + 1, ("feed", "work"): 1}
    foreseen = org.cleanup(keep=1, dry_run=True)
    assert reasons(foreseen) == because | feed
    assert foreseen.datasets == ()
    assert foreseen.to_dict()["kept"][0] == {"reason": "feed", "branch": "main", "commits": len(commits) + 1}
    monkeypatch.setenv("OMNIGRAPH_FEED_RETENTION", "0s")
    assert reasons(org.cleanup(keep=1)) == because
    assert reasons(org.cleanup(keep=1)) == because, "what is gone keeps nothing"
    assert readable(org, commits) == [place in (0, 4) for place in range(len(commits))]


def test_it_says_that_a_running_job_keeps_commits(org: og.Graph) -> None:
    store = connect(org.uri).store
    with staging_job(store, new_ulid(), "load", MAIN, []):
        for level in range(3):
            org.mutate(WRITES, "put", {"h": "late", "n": level})
        report = org.cleanup(keep=1)
    # The three, and the one before them that the job began on; the newest is kept by the policy.
    assert reasons(report) == {("job", "main"): 3}
    assert org.cleanup(keep=1).kept == ()


# --- leftovers --------------------------------------------------------------------------------------------------------


def test_scratch_of_a_job_that_is_gone(org: og.Graph) -> None:
    """What a process left that died while it removed its scratch goes when it is old; that of a running job stays."""
    context = connect(org.uri)
    with staging_job(context.store, new_ulid(), "load", MAIN, []) as running:
        own = f"{scratch_folder(running.job.job_id)}/keys/0"
        young, old = (f"{scratch_folder(new_ulid())}/keys/0" for _ in range(2))
        for path in (own, young, old):
            context.store.put(path, b"x")
        make_old(context, {old, own}, days=8)
        org.cleanup(keep=1)
        assert {info.path for info in context.store.list("__staging")} == {own, running.job.path, young}


def stage_and_forget(context: CommitContext) -> set[str]:
    """Files of a write that never came to its commit."""
    before = set(tree(context))
    entry = context.manifest.load().by_key[STAFF]
    stage_append(table_of(context, entry), staff(["nobody"]))
    return set(tree(context)) - before


def make_old(context: CommitContext, names: set[str], days: float) -> None:
    for name in names:
        path = Path(context.root.uri) / name
        then = path.stat().st_mtime - days * 86_400
        os.utime(path, (then, then))


@pytest.mark.parametrize(("days", "stays"), [(0, True), (6.9, True), (7.1, False)])
def test_files_that_no_version_ever_named_go_when_they_are_old(org: og.Graph, days: float, stays: bool) -> None:
    context = connect(org.uri)
    staged = stage_and_forget(context)
    make_old(context, staged, days)
    org.cleanup(keep=1)
    assert (staged <= set(tree(context))) == stays
    assert unreferenced(context) == (staged if stays else set())


def test_a_running_job_keeps_its_files_and_what_it_read(org: og.Graph) -> None:
    context = connect(org.uri)
    staged = stage_and_forget(context)
    make_old(context, staged, 30)
    entry = context.manifest.load().by_key[STAFF]
    with staging_job(context.store, new_ulid(), "Load", MAIN, [entry.location]):
        for level in range(3):
            org.mutate(WRITES, "relevel", {"h": "ada", "n": level})
        org.cleanup(keep=1)
        assert staged <= set(tree(context))
        assert context.tables.open_dataset(entry.location, entry.version).count_rows() == entry.row_count
    org.cleanup(keep=1)
    assert not staged & set(tree(context))


def test_a_staged_write_survives_a_cleanup_in_between(org: og.Graph) -> None:
    """Another process cleans up between the preparation of a mutation and its commit."""
    other = og.open(org.uri)

    def clean() -> None:
        with failpoints.armed("mutation.prepared", lambda: None):
            other.cleanup(keep=1)

    with failpoints.armed("mutation.prepared", clean):
        org.mutate(WRITES, "put", {"h": "between", "n": 1})
    assert levels(og.open(org.uri))["between"] == 1
    all_readable(connect(org.uri))


def test_forks_of_a_branch_whose_deletion_died(org: og.Graph) -> None:
    org.create_branch("work")
    org.mutate(WRITES, "put", {"h": "mine", "n": 7}, branch="work")
    with failpoints.armed("branch_delete.after_ref"), pytest.raises(failpoints.FailpointError):
        org.delete_branch("work")
    with pytest.raises(AssertionError):
        assert_healthy(connect(org.uri))
    report = org.cleanup(keep=100)
    assert [dataset.type_key for dataset in report.datasets] == [STAFF]
    assert_healthy(connect(org.uri))
    assert unreferenced(connect(org.uri)) == set()


def test_the_states_are_read_once_however_many_tables_have_leftovers(org: og.Graph) -> None:
    context = org._context
    entries = list(context.manifest.load("main").tables.values())
    assert len(entries) > 2
    scans = []
    for leftovers in (entries[:1], entries):
        for entry in leftovers:
            fork(context.tables, entry.location, entry.version, new_ulid())
        before = context.manifest.scans
        org.cleanup(keep=100)
        scans.append(context.manifest.scans - before)
    assert scans[1] <= scans[0]


def test_a_fork_that_a_running_job_made_is_no_orphan(org: og.Graph) -> None:
    """A load forks a table before it stages rows for it, long before it publishes."""
    org.create_branch("work")
    context = connect(org.uri)
    entry = context.manifest.load("work").by_key[STAFF]
    name = new_ulid()
    with staging_job(context.store, name, "Load", "work", [replace(entry.location, branch=name)]):
        made = fork(context.tables, entry.location, entry.version, name)
        org.cleanup(keep=1)
        assert context.tables.open_dataset(made).count_rows() == entry.row_count
    org.cleanup(keep=1)
    assert context.tables.head_version(made) is None


def test_dropped_tables(graph: CommitContext) -> None:
    insert(graph, {STAFF: staff(["ada"]), TEAM: team(["core"])})
    state = graph.manifest.load()
    dropped = state.by_key[MEMBER_OF]
    execute(graph, Write(Kind.SCHEMA_APPLY, MAIN, lineage(), (), accepted(state), updates=(DropTable(dropped),)))
    cleanup(graph, Policy(keep=2))
    assert graph.store.exists(dropped.path), "the commit before still shows it"
    insert(graph, {STAFF: staff(["ben"])})
    report = cleanup(graph, Policy(keep=1))
    assert not graph.store.exists(dropped.path)
    assert MEMBER_OF in [dataset.type_key for dataset in report.datasets]
    assert_healthy(graph)
    assert ids(graph, STAFF) == ["ada", "ben"]


def test_a_folder_of_a_table_that_is_being_made_is_not_a_leftover(graph: CommitContext) -> None:
    graph.store.put("nodes/00000000000000aa-00000000000000bb/data/x.lance", b"being written")
    insert(graph, {STAFF: staff(["ada"])})
    cleanup(graph, Policy(keep=1))
    assert graph.store.exists("nodes/00000000000000aa-00000000000000bb")
    make_old(graph, {"nodes/00000000000000aa-00000000000000bb/data/x.lance"}, 8)
    cleanup(graph, Policy(keep=1))
    assert not graph.store.exists("nodes/00000000000000aa-00000000000000bb")


def test_old_versions_of_the_audit_log(org: og.Graph) -> None:
    for number in range(3):
        with failpoints.armed("mutation.post_phase_b_pre_manifest_commit"):
            org.mutate(WRITES, "put", {"h": f"x{number}", "n": 1})
    context = connect(org.uri)
    assert version_count(context, "_graph_commit_recoveries.lance") == 3
    org.cleanup(keep=1)
    assert version_count(context, "_graph_commit_recoveries.lance") == 1
    assert len(org.recoveries()) == 3


# --- recovery ---------------------------------------------------------------------------------------------------------


def test_pending_recovery_is_settled_first(org: og.Graph) -> None:
    with failpoints.armed("recovery.sidecar_delete"):
        org.mutate(WRITES, "put", {"h": "late", "n": 1})
    org.cleanup(keep=1)
    assert not org.pending_operations()
    assert levels(org)["late"] == 1


def test_what_can_not_be_settled_stands_in_the_way(org: og.Graph) -> None:
    context = connect(org.uri)
    context.store.put("__recovery/01ARZ3NDEKTSV4RRFFQ69G5FAV.json", b"{")
    files = tree(context)
    for dry_run in (True, False):
        with pytest.raises(og.errors.OmnigraphError, match="is not valid JSON"):
            org.cleanup(keep=1, dry_run=dry_run)
    assert tree(context) == files


@pytest.mark.parametrize("failpoint", DEATHS)
@pytest.mark.parametrize("how", ["dies", "fails"])
def test_death(org: og.Graph, failpoint: str, how: str) -> None:
    """Killed while it removes things: everything that is kept is whole, and the next cleanup finishes."""
    org.create_branch("work")
    org.mutate(WRITES, "put", {"h": "mine", "n": 7}, branch="work")
    org.tag("then", org.commits()[3].id)
    org.optimize()
    before, tagged = picture(connect(org.uri)), levels(org, snapshot=org.commits()[4].id)
    if how == "dies":
        environment = {**os.environ, "OMNIGRAPH_FAILPOINTS": f"{failpoint}=kill"}
        command = [sys.executable, str(CHILD), org.uri, "1"]
        child = warm.run(command, env=environment, capture_output=True, check=False)
        assert child.returncode == -signal.SIGKILL, child.stderr.decode()
    else:
        with failpoints.armed(failpoint):
            report = org.cleanup(keep=1)
        assert {dataset.error for dataset in report.datasets} == {f"failpoint {failpoint}"}
    survivor = og.open(org.uri)
    assert picture(connect(org.uri)) == before
    assert levels(survivor, snapshot=org.commits()[4].id) == tagged
    survivor.mutate(WRITES, "put", {"h": "after", "n": 1})

    survivor.cleanup(keep=1)
    assert unreferenced(connect(org.uri)) == set()
    all_readable(connect(org.uri))
    assert connect(org.uri).store.list("__reclaim") == []
    assert survivor.cleanup(keep=1).datasets == ()
    assert levels(survivor, snapshot=org.commits()[5].id) == tagged


def test_a_later_cleanup_that_keeps_more_does_not_finish_what_another_began(org: og.Graph) -> None:
    """The first one died before it removed a single version; the second one wants those versions kept."""
    commits = [commit.id for commit in org.commits()]
    with failpoints.armed("cleanup.after_record"):
        org.cleanup(keep=1)
    org.cleanup(keep=100)
    assert readable(org, commits) == [True] * len(commits)
    all_readable(connect(org.uri))
    assert connect(org.uri).store.list("__reclaim") == []


# --- on every kind of store, and with others --------------------------------------------------------------------------


def test_everywhere(shared_graph: CommitContext) -> None:
    context = shared_graph
    for number in range(4):
        insert(context, {STAFF: staff([f"p{number}"]), TEAM: team([f"t{number}"])})
    create_branch(context, "work", MAIN)
    insert(context, {STAFF: staff(["mine"])}, branch="work")
    insert(context, {STAFF: staff(["main"])})
    report = cleanup(context, Policy(keep=1))
    assert {dataset.error for dataset in report.datasets} == {None}
    fresh = again(context)
    assert ids(fresh, STAFF) == ["main", "p0", "p1", "p2", "p3"]
    assert ids(fresh, STAFF, "work") == ["mine", "p0", "p1", "p2", "p3"]
    assert unreferenced(fresh) == set()
    all_readable(fresh)
    insert(fresh, {STAFF: staff(["more"])}, branch="work")
    assert cleanup(fresh, Policy(keep=1)).bytes_removed > 0


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda graph: graph.tag("late", graph.commits()[3].id), id="a tag"),
        pytest.param(lambda graph: graph.mutate(WRITES, "put", {"h": "x", "n": 1}), id="a commit"),
        pytest.param(lambda graph: graph.create_branch("late"), id="a branch"),
    ],
)
def test_what_happens_between_the_look_and_the_removal_counts(
    org: og.Graph, monkeypatch: pytest.MonkeyPatch, change: Callable[[og.Graph], object]
) -> None:
    from omnigraph.maintenance import cleanup as module

    true_carry_out = module._Cleanup.carry_out
    other = og.open(org.uri)
    commits = [commit.id for commit in org.commits()]

    def carry_out(run: Any, found: Any) -> object:
        change(other)
        return true_carry_out(run, found)

    monkeypatch.setattr(module._Cleanup, "carry_out", carry_out)
    org.cleanup(keep=1)
    all_readable(connect(org.uri))
    assert unreferenced(connect(org.uri)) == set()
    kept = readable(org, commits)
    assert kept[0] or org.head().id != commits[0]
    assert kept[3] == ("late" in org.tags())


def test_branches_that_live_shorter_than_a_look_do_not_stop_it(org: og.Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    looks = 0

    def list_and_delete(store: ObjectStore, path: str) -> DatasetFiles:
        """Somebody deletes a branch right after it was seen, as long as nobody holds its lock."""
        nonlocal looks
        found = list_dataset(store, path)
        if path == MANIFEST_PATH and (going := [name for name in org.branches() if name != MAIN]):
            looks += 1
            with contextlib.suppress(og.errors.BadRequest):
                org.delete_branch(going[0])
        return found

    for number in range(LOOKS_WITHOUT_LOCKS + 1):
        org.create_branch(f"short-{number}")
        org.mutate(WRITES, "put", {"h": f"s{number}", "n": number}, branch=f"short-{number}")
    monkeypatch.setattr("omnigraph.maintenance.cleanup.list_dataset", list_and_delete)
    report = org.cleanup(keep=1)
    assert looks == LOOKS_WITHOUT_LOCKS + 1
    assert report.bytes_removed > 0
    assert all(dataset.error is None for dataset in report.datasets)
    assert org.branches() == [MAIN, f"short-{LOOKS_WITHOUT_LOCKS}"]
    assert unreferenced(connect(org.uri)) == set()


def test_counts_of_a_plan_are_those_of_its_versions(org: og.Graph) -> None:
    context = connect(org.uri)
    before = version_count(context, "__manifest")
    report = {dataset.type_key: dataset for dataset in org.cleanup(keep=1).datasets}
    assert report["__manifest"].old_versions_removed == before - version_count(context, "__manifest")
    assert replace(report["__manifest"], error="x").to_dict()["error"] == "x"
