"""`og.upgrade`: every branch of an old graph in the current format, whoever dies or races on the way."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph import failpoints
from omnigraph.commit import rows
from omnigraph.commit.branches import branch_names
from omnigraph.commit.format import CURRENT
from omnigraph.commit.history import history
from omnigraph.commit.model import MAIN
from omnigraph.commit.tags import tagged_commits
from omnigraph.errors import BadRequest, FormatTooNew, FormatTooOld, GraphNotFound
from omnigraph.graph.lifecycle import open_for_reading
from tests import warm
from tests.commit.old_format import OldGraph, old_org
from tests.commit.org import STAFF, again, ids, insert, new_graph, staff
from tests.commit.test_manifest import stamp, tree

PEOPLE = {MAIN: ["ada", "ben", "cleo"], "feature": ["ada", "ben", "eve"], "quiet": ["ada", "ben", "eve"]}


def org(tmp_path: Path, from_stamp: int = 3) -> OldGraph:
    """Main, a branch, and a branch of that branch without history of its own."""
    old = old_org(str(tmp_path / "graph"), from_stamp)
    old.create_branch("quiet", "feature", with_history=False)
    return old


def assert_upgraded(old: OldGraph) -> None:
    context = again(old.context)
    open_for_reading(context)
    assert branch_names(context) == list(PEOPLE)
    for branch, people in PEOPLE.items():
        assert old.stamp(branch) == CURRENT
        assert history(context.manifest, branch) == old.history[branch]
        assert ids(context, STAFF, branch) == people
        present = old.dataset("__manifest", branch).to_table(columns=["object_id"])["object_id"].to_pylist()
        assert len(present) == len(set(present)), "nothing is there twice"
    insert(context, {STAFF: staff(["zoe"])}, branch="quiet")
    assert history(again(context).manifest, "quiet")[1:] == old.history["quiet"]


def upgrade_in_child(old: OldGraph, failpoint: str | None = None) -> subprocess.Popen[bytes]:
    child = "import sys, omnigraph; omnigraph.upgrade(sys.argv[1])"
    armed = {} if failpoint is None else {"OMNIGRAPH_FAILPOINTS": failpoint}
    return warm.Popen([sys.executable, "-c", child, old.context.root.uri], env={**os.environ, **armed})


@pytest.mark.parametrize("from_stamp", [2, 3])
def test_every_branch_moves_and_a_second_run_does_nothing(tmp_path: Path, from_stamp: int) -> None:
    old = org(tmp_path, from_stamp)
    report = og.upgrade(old.context.root.uri)
    assert (report.found, report.current, report.check) == (from_stamp, CURRENT, False)
    assert report.branches == dict.fromkeys([MAIN, "feature", "quiet"], from_stamp)

    before = tree(old.context)
    again_ = og.upgrade(old.context.root.uri)
    assert (again_.needed, again_.found, again_.branches) == (False, CURRENT, {})
    assert tree(old.context) == before, "a graph of the current format is not touched"
    assert_upgraded(old)


def test_a_check_says_the_same_and_writes_nothing(tmp_path: Path) -> None:
    old = org(tmp_path)
    before = tree(old.context)
    report = og.upgrade(Path(old.context.root.uri), check=True)
    assert (report.needed, report.check, report.found) == (True, True, 3)
    assert list(report.branches) == [MAIN, "feature", "quiet"]
    assert tree(old.context) == before
    done = og.upgrade(old.context.root.uri)
    assert (done.branches, done.found, done.removed) == (report.branches, report.found, report.removed)


def test_branches_are_left_when_main_has_moved_already(tmp_path: Path) -> None:
    old = org(tmp_path)
    og.open(old.context.root.uri)
    report = og.upgrade(old.context.root.uri)
    assert (report.found, report.branches) == (3, {"feature": 3, "quiet": 3})
    assert_upgraded(old)


def test_tags_stay(tmp_path: Path) -> None:
    old = org(tmp_path)
    old.dataset("__manifest").insert(rows.to_arrow([rows.tag_row("first", old.history[MAIN][1].id)]))
    og.upgrade(old.context.root.uri)
    context = again(old.context)
    assert dict(tagged_commits(context)) == {"first": old.history[MAIN][1].id}


def test_runs_that_format_2_left_behind_are_told_and_go(tmp_path: Path) -> None:
    old = org(tmp_path, 2)
    for name, base in (("__run__1", MAIN), ("__run__2", "__run__1"), ("__run__kept", MAIN), ("child", "__run__kept")):
        old.create_branch(name, base)
    told = og.upgrade(old.context.root.uri, check=True)
    assert sorted(told.removed) == ["__run__1", "__run__2"]
    assert list(told.branches) == [MAIN, "__run__kept", "child", "feature", "quiet"]
    assert og.upgrade(old.context.root.uri).branches == told.branches
    context = again(old.context)
    assert branch_names(context) == list(told.branches)
    assert {old.stamp(name) for name in told.branches} == {CURRENT}


@pytest.mark.parametrize(
    ("from_stamp", "failpoint", "left"),
    [
        (2, "migration.v2_to_v3.before_stamp", {MAIN: 2, "feature": 2, "quiet": 2}),
        (2, "migration.v3_to_v4.before_overwrite", {MAIN: 3, "feature": 2, "quiet": 2}),
        (3, "table_commit.lost_acknowledgement", {MAIN: CURRENT, "feature": 3, "quiet": 3}),
    ],
)
def test_a_killed_upgrade_is_finished_by_the_next(
    tmp_path: Path, from_stamp: int, failpoint: str, left: dict[str, int]
) -> None:
    old = org(tmp_path, from_stamp)
    assert upgrade_in_child(old, f"{failpoint}=kill").wait() == -signal.SIGKILL
    assert {name: old.stamp(name) for name in left} == left
    assert og.upgrade(old.context.root.uri).branches == {name: at for name, at in left.items() if at != CURRENT}
    assert_upgraded(old)


@pytest.mark.parametrize(
    ("failpoint", "left"),
    [("migration.v3_to_v4.before_overwrite", 3), ("table_commit.lost_acknowledgement", CURRENT)],
)
def test_an_upgrade_killed_at_a_branch_is_finished_by_the_next(tmp_path: Path, failpoint: str, left: int) -> None:
    old = org(tmp_path)
    og.open(old.context.root.uri)  # main has moved: the first to meet the failpoint is a branch
    assert upgrade_in_child(old, f"{failpoint}=kill").wait() == -signal.SIGKILL
    assert (old.stamp(), old.stamp("feature"), old.stamp("quiet")) == (CURRENT, left, 3)
    og.upgrade(old.context.root.uri)
    assert_upgraded(old)


def test_two_processes_at_once(tmp_path: Path) -> None:
    old = org(tmp_path, 2)
    children = [upgrade_in_child(old, "migration.v3_to_v4.before_overwrite=delay:50") for _ in range(2)]
    assert [child.wait() for child in children] == [0, 0]
    assert_upgraded(old)


def test_a_branch_that_is_made_of_an_old_one_meanwhile_moves_too(tmp_path: Path) -> None:
    old = org(tmp_path)
    og.open(old.context.root.uri)
    late: list[str] = []

    def make_branch() -> None:
        if not late:
            late.append("late")
            old.create_branch("late", "quiet", with_history=False)

    with failpoints.armed("migration.v3_to_v4.before_overwrite", make_branch):
        report = og.upgrade(old.context.root.uri)
    assert report.branches == {"feature": 3, "quiet": 3, "late": 3}
    assert old.stamp("late") == CURRENT


@pytest.mark.parametrize(("other", "error"), [("9", FormatTooNew), ("1", FormatTooOld)])
@pytest.mark.parametrize("check", [True, False])
def test_formats_that_are_not_known_are_refused(
    tmp_path: Path, other: str, error: type[Exception], check: bool
) -> None:
    context = new_graph(str(tmp_path / "graph"))
    stamp(context.root.lance_uri("__manifest"), other)
    before = tree(context)
    with pytest.raises(error):
        og.upgrade(context.root.uri, check=check)
    assert tree(context) == before


def test_what_can_not_be_upgraded(tmp_path: Path) -> None:
    with pytest.raises(GraphNotFound):
        og.upgrade(tmp_path / "nothing")
    old = org(tmp_path)
    Path(old.context.root.uri, "__root.json").write_text(
        '{"uri": "elsewhere", "backup": {"complete": true, "of": "elsewhere"}}'
    )
    assert og.upgrade(old.context.root.uri, check=True).needed
    with pytest.raises(BadRequest, match="is a backup and can only be read; restore it"):
        og.upgrade(old.context.root.uri)
    assert old.stamp() == 3
