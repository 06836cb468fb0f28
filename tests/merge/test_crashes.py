"""Real merges in real processes, killed in every window: rolled back as a whole or finished as a whole, then merged again."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph import failpoints
from omnigraph.commit.model import RECOVERY_ACTOR
from omnigraph.failpoints import FailpointError
from omnigraph.graph.lifecycle import connect
from tests import warm
from tests.commit.healthy import assert_healthy
from tests.merge.graphs import do, everything

CHILD = Path(__file__).with_name("crash_child.py")

#: Every window in the order it is passed, and whether the merge is found done afterwards.
DEATHS = {
    "branch_merge.after_append": False,
    "branch_merge.after_upsert": False,
    "branch_merge.after_delete": False,
    "branch_merge.prepared": False,
    "branch_merge.pre_phase_a": False,
    "branch_merge.post_phase_a": False,
    "table_commit.before_commit": False,
    "table_commit.lost_acknowledgement": False,
    "branch_merge.mid_phase_b": False,
    # The second table, then the confirmation.
    "table_commit.before_commit:2": False,
    "table_commit.lost_acknowledgement:2": False,
    "recovery.sidecar_write:2": False,
    "branch_merge.post_confirm": True,
    "branch_merge.post_phase_b_pre_manifest_commit": True,
    "publisher.before_commit": True,
    "publisher.after_commit": True,
    "branch_merge.post_phase_c": True,
    "recovery.sidecar_delete": True,
}
#: Where the merge goes: its own tables, tables it still shares, tables it has forked, and whether it has diverged.
TARGETS = ("main", "shares", "forked")
SHORT = {("main", name) for name in DEATHS if ":" in name or name.startswith("branch_merge.")} | {
    ("shares", "branch_merge.after_append"),
    ("shares", "branch_merge.after_delete"),
    ("shares", "branch_merge.mid_phase_b"),
    ("shares", "branch_merge.post_confirm"),
    ("forked", "branch_merge.mid_phase_b"),
    ("forked", "branch_merge.post_phase_b_pre_manifest_commit"),
}


def prepare(graph: og.Graph) -> None:
    """Rows that a merge appends, replaces and deletes, in two tables; and three targets."""
    graph.create_branch("shares")
    graph.create_branch("forked")
    do(graph, "feature", "put", "eli", 22)
    do(graph, "feature", "relevel", "ada", 31)
    do(graph, "feature", "drop", "dov")
    do(graph, "feature", "link", "ada", "eli")
    do(graph, "feature", "unlink", "ben")
    for target in ("main", "forked"):
        do(graph, target, "relevel", "ben", 26)
        do(graph, target, "link", "cleo", "ada")


@pytest.fixture(scope="module")
def merged(merge_template: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    """What the merges lead to when nobody dies, without the ids of edges, which every graph makes anew."""
    path = tmp_path_factory.mktemp("undisturbed") / "g"
    shutil.copytree(merge_template, path)
    graph = og.open(path)
    graph.create_branch("feature")
    prepare(graph)
    for target in TARGETS:
        graph.merge("feature", into=target)
    return {target: without_ids(everything(graph, target)) for target in TARGETS}


def without_ids(shown: dict[str, list[dict[str, object]]]) -> object:
    edges = sorted((row["src"], row["dst"]) for row in shown["edge:Mentors"])
    return shown["node:Staff"], edges


def kill(graph: og.Graph, death: str, into: str) -> None:
    """Merge in a process that dies."""
    name, _, passing = death.partition(":")
    environment = {**os.environ, "OMNIGRAPH_FAILPOINTS": "" if passing else f"{name}=kill"}
    environment["CRASH_AT"] = death if passing else ""
    command = [sys.executable, str(CHILD), graph.uri, "feature", into]
    child = warm.run(command, env=environment, capture_output=True, check=False)
    assert child.returncode == -signal.SIGKILL, f"it did not die at {death}: {child.stderr.decode()}"


@pytest.mark.parametrize(
    ("target", "death"),
    [
        pytest.param(target, death, marks=() if (target, death) in SHORT else pytest.mark.long)
        for target in TARGETS
        for death in DEATHS
    ],
)
def test_death(graph: og.Graph, merged: dict[str, object], target: str, death: str) -> None:
    prepare(graph)
    before = {name: everything(graph, name) for name in graph.branches()}
    kill(graph, death, target)
    survivor = og.open(graph.uri)
    assert_healthy(connect(graph.uri))
    for name in graph.branches():
        if name != target:
            assert everything(survivor, name) == before[name]
    if DEATHS[death]:
        assert without_ids(everything(survivor, target)) == merged[target]
        commit = survivor.head(target)
        assert (commit.kind, commit.merged_parent) == ("merge", survivor.head("feature").id)
        assert survivor.merge("feature", into=target).outcome == "already_up_to_date"
    else:
        assert everything(survivor, target) == before[target]
        assert survivor.head(target).actor in (None, RECOVERY_ACTOR)
    # A repeat of the request does it once, whether the first one did it or not, and gives the whole result.
    result = survivor.merge("feature", into=target, actor="act-merge", idempotency_key="once")
    assert result.outcome in ("fast_forward", "merged")
    assert result.commit is not None
    assert result.commit.id in {commit.id for commit in survivor.commits(target)}
    assert without_ids(everything(survivor, target)) == merged[target]
    assert survivor.merge("feature", into=target).outcome == "already_up_to_date"
    assert_healthy(connect(graph.uri))


@pytest.mark.parametrize("target", ["main", "shares"])
@pytest.mark.parametrize("name", [name for name in DEATHS if name.startswith("branch_merge.")])
def test_failure(graph: og.Graph, merged: dict[str, object], target: str, name: str) -> None:
    """A merge that fails without dying settles itself: done, or nothing happened, and the handle writes on."""
    prepare(graph)
    before = everything(graph, target)
    with failpoints.armed(name):
        try:
            graph.merge("feature", into=target)
        except FailpointError:
            assert not DEATHS[name]
            assert everything(graph, target) == before
        else:
            assert DEATHS[name]
    assert_healthy(connect(graph.uri))
    graph.merge("feature", into=target)
    assert without_ids(everything(graph, target)) == merged[target]
    do(graph, target, "put", "zoe", 1)
    assert_healthy(connect(graph.uri))


@pytest.mark.parametrize("death", ["branch_merge.mid_phase_b", "branch_merge.post_confirm"])
def test_a_handle_that_was_open_heals_before_it_merges(graph: og.Graph, merged: dict[str, object], death: str) -> None:
    prepare(graph)
    kill(graph, death, "main")
    outcome = graph.merge("feature").outcome
    assert outcome == ("already_up_to_date" if DEATHS[death] else "merged")
    assert without_ids(everything(graph)) == merged["main"]
    assert [recovery.writer_kind for recovery in graph.recoveries()] == ["BranchMerge"]
    assert_healthy(connect(graph.uri))
