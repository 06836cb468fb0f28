"""`omnigraph branch merge`, `omnigraph revert` and `omnigraph cherry-pick`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import omnigraph as og
from tests.cli.calling import call
from tests.mutation.org_graph import call as do
from tests.mutation.org_graph import ids, level

Capsys = pytest.CaptureFixture[str]
URI = ("--uri", "org.omni")


@pytest.fixture
def graph(org: Path) -> og.Graph:
    opened = og.open("org.omni")
    opened.create_branch("b")
    return opened


# --- branch merge -----------------------------------------------------------------------------------------------------


def test_merge(capsys: Capsys, graph: og.Graph) -> None:
    do(graph, "put", "eve", 22, branch="b")
    outcome = call(capsys, "branch", "merge", *URI, "b", "--as", "me")
    assert (outcome.code, outcome.out) == (0, "merged b into main: fast_forward\n  node:Staff: 1 inserted\n")
    assert outcome.err == "omnigraph branch merge → org.omni (direct, local)\n"
    assert graph.head().actor == "me"
    assert call(capsys, "branch", "merge", *URI, "b").out == "merged b into main: already_up_to_date\n"


def test_merge_into_another_branch_as_json(capsys: Capsys, graph: og.Graph) -> None:
    graph.create_branch("other")
    do(graph, "put", "eve", 22, branch="b")
    outcome = call(capsys, "branch", "merge", *URI, "b", "--into", "other", "--json", "--delete-branch", "--quiet")
    assert (outcome.code, outcome.err) == (0, "")
    assert json.loads(outcome.out) == {
        "source": "b",
        "target": "other",
        "outcome": "fast_forward",
        "actor_id": None,
        "branch_deleted": True,
    }
    assert graph.branches() == ["main", "other"]


def test_a_source_that_is_not_deleted(capsys: Capsys, graph: og.Graph) -> None:
    graph.create_branch("child", base="b")
    do(graph, "put", "eve", 22, branch="b")
    outcome = call(capsys, "branch", "merge", *URI, "b", "--delete-branch", "--json", "--quiet")
    assert outcome.code == 0
    assert outcome.err.startswith("warning: branch b was merged and not deleted: ")
    assert "child" in outcome.err
    shape = json.loads(outcome.out)
    assert shape["branch_deleted"] is False
    assert "child" in shape["branch_delete_error"]


def diverge(graph: og.Graph) -> None:
    do(graph, "relevel", "ada", 31, branch="b")
    do(graph, "relevel", "ada", 32)
    do(graph, "put", "eve", 1, branch="b")
    do(graph, "put", "eve", 2)


def test_conflicts(capsys: Capsys, graph: og.Graph) -> None:
    diverge(graph)
    outcome = call(capsys, "branch", "merge", *URI, "b", "--quiet", "--json", "--delete-branch")
    assert (outcome.code, outcome.out) == (1, "")
    lines = outcome.err.splitlines()
    assert lines[:2] == [
        "DivergentUpdate node:Staff ada: Staff 'ada' was updated differently on both sides",
        "  level: 32 (ours) | 31 (theirs)",
    ]
    assert lines[2].startswith("DivergentInsert node:Staff eve: ")
    assert lines[3] == "  level: 2 (ours) | 1 (theirs)"
    assert lines[4].startswith(
        "Error: the merge of 'b' into 'main' has 2 conflicts, nothing was written. Change one side"
    )
    assert "--strategy ours" in lines[4]
    assert len(lines) == 6
    assert (level(graph, "ada"), graph.branches()) == (32, ["main", "b"])


def test_dry_run(capsys: Capsys, graph: og.Graph) -> None:
    do(graph, "put", "fay", 1, branch="b")
    head = graph.head()
    outcome = call(capsys, "branch", "merge", *URI, "b", "--dry-run")
    assert (outcome.code, outcome.err) == (0, "")
    said = "b into main would be merged: fast_forward (1 inserted, 0 updated, 0 deleted)\n  node:Staff: 1 inserted\n"
    assert outcome.out == said
    diverge(graph)
    head = graph.head()
    outcome = call(capsys, "branch", "merge", *URI, "b", "--dry-run")
    assert outcome.code == 1
    assert outcome.out.splitlines()[1].startswith("DivergentUpdate node:Staff ada: ")
    outcome = call(capsys, "branch", "merge", *URI, "b", "--dry-run", "--json", "--images")
    shape = json.loads(outcome.out)
    assert (outcome.code, shape["dry_run"], shape["outcome"]) == (1, True, "conflicts")
    assert [conflict["kind"] for conflict in shape["conflicts"]] == ["DivergentUpdate", "DivergentInsert"]
    assert [shape["conflicts"][0][side]["level"] for side in ("base", "ours", "theirs")] == [30, 32, 31]
    assert graph.head() == head


def test_strategy(capsys: Capsys, graph: og.Graph) -> None:
    diverge(graph)
    assert call(capsys, "branch", "merge", *URI, "b", "--strategy", "theirs").code == 0
    assert (level(graph, "ada"), level(graph, "eve")) == (31, 1)


def test_resolve(capsys: Capsys, graph: og.Graph, org: Path) -> None:
    diverge(graph)
    (org / "r.json").write_text(
        '[{"type_key": "node:Staff", "id": "ada", "take": "base"}, {"type_key": "node:Staff", "id": "eve", "take": {"level": 5}}]'
    )
    assert call(capsys, "branch", "merge", *URI, "b", "--resolve", "r.json").code == 0
    assert (level(graph, "ada"), level(graph, "eve")) == (30, 5)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param(("b", "--into", "b"), "distinct source and target", id="itself"),
        pytest.param(("nope",), "branch 'nope' not found", id="unknown source"),
        pytest.param(("b", "--into", "nope"), "branch 'nope' not found", id="unknown target"),
        pytest.param(("b", "--resolve", "no.json"), "cannot read 'no.json'", id="no file"),
    ],
)
def test_failures(capsys: Capsys, graph: og.Graph, arguments: tuple[str, ...], message: str) -> None:
    outcome = call(capsys, "branch", "merge", *URI, *arguments, "--quiet")
    assert (outcome.code, outcome.out) == (1, "")
    assert outcome.err.startswith("Error: ")
    assert message in outcome.err


def test_usage(capsys: Capsys, graph: og.Graph) -> None:
    assert call(capsys, "branch", "merge", *URI).code == 2
    assert call(capsys, "branch", "merge", *URI, "b", "--strategy", "mine").code == 2


# --- revert and cherry-pick -------------------------------------------------------------------------------------------


def test_revert(capsys: Capsys, graph: og.Graph) -> None:
    changed = do(graph, "relevel", "ada", 31).commit
    assert changed is not None
    outcome = call(capsys, "revert", *URI, changed.id, "--as", "me")
    assert (outcome.code, outcome.out) == (0, f"reverted {changed.id} on main: merged\n  node:Staff: 1 updated\n")
    assert outcome.err == "omnigraph revert → org.omni (direct, local)\n"
    assert (level(graph, "ada"), graph.head().actor, graph.head().kind) == (30, "me", "revert")
    again = call(capsys, "revert", *URI, changed.id, "--json", "--quiet")
    assert json.loads(again.out) == {
        "graph_commit_id": changed.id,
        "target": "main",
        "outcome": "already_up_to_date",
        "level": "entity",
        "actor_id": None,
    }


def test_cherry_pick(capsys: Capsys, graph: og.Graph) -> None:
    picked = do(graph, "put", "eve", 1, branch="b").commit
    do(graph, "put", "fay", 2, branch="b")
    assert picked is not None
    foreseen = call(capsys, "cherry-pick", *URI, picked.id, "--dry-run")
    assert foreseen.out.splitlines() == [
        f"{picked.id} onto main would be picked: merged (1 inserted, 0 updated, 0 deleted)",
        "  node:Staff: 1 inserted",
    ]
    outcome = call(capsys, "cherry-pick", *URI, picked.id)
    assert (outcome.code, outcome.out) == (0, f"picked {picked.id} onto main: merged\n  node:Staff: 1 inserted\n")
    assert "eve" in ids(graph, "node:Staff")
    assert "fay" not in ids(graph, "node:Staff")


@pytest.mark.parametrize("command", ["revert", "cherry-pick"])
def test_commits_that_can_not_be_taken(capsys: Capsys, graph: og.Graph, command: str) -> None:
    first = graph.commits()[-1].id
    outcome = call(capsys, command, *URI, first, "--quiet")
    assert (outcome.code, outcome.out) == (1, "")
    assert "has no parent" in outcome.err
    outcome = call(capsys, command, *URI, "nope", "--quiet")
    assert (outcome.code, "commit 'nope' not found" in outcome.err) == (1, True)


# --- conflicts are decided from what is printed -----------------------------------------------------------------------


def printed_decisions(err: str) -> list[dict[str, str]]:
    decisions: list[dict[str, str]] = json.loads(err.splitlines()[-1])
    return decisions


def test_the_printed_decisions_can_be_passed(capsys: Capsys, graph: og.Graph, org: Path) -> None:
    diverge(graph)
    decisions = printed_decisions(call(capsys, "branch", "merge", *URI, "b").err)
    assert [(one["type_key"], one["id"]) for one in decisions] == [("node:Staff", "ada"), ("node:Staff", "eve")]
    (org / "r.json").write_text(json.dumps(decisions))
    assert call(capsys, "branch", "merge", *URI, "b", "--resolve", "r.json").code == 0
    assert (level(graph, "ada"), level(graph, "eve")) == (32, 2)


def test_a_deletion_is_shown_as_one(capsys: Capsys, graph: og.Graph) -> None:
    do(graph, "relevel", "ada", 31, branch="b")
    do(graph, "drop_staff", "ada")
    outcome = call(capsys, "branch", "merge", *URI, "b", "--quiet")
    lines = outcome.err.splitlines()
    assert lines[0].startswith("DeleteVsUpdate node:Staff ada: ")
    assert lines[1] == "  ours: deleted | theirs: changed"
    assert "has 1 conflict, nothing was written" in outcome.err


def test_a_revert_says_what_it_would_bring_back(capsys: Capsys, graph: og.Graph) -> None:
    changed = do(graph, "relevel", "ada", 31).commit
    do(graph, "relevel", "ada", 40)
    assert changed is not None
    outcome = call(capsys, "revert", *URI, changed.id, "--quiet")
    assert outcome.code == 1
    assert outcome.err.splitlines()[1] == "  level: 40 (ours) | 30 (theirs)"
    assert f"Error: the revert of commit {changed.id} on 'main' has 1 conflict" in outcome.err


def test_a_cherry_pick_says_what_it_would_bring(capsys: Capsys, graph: og.Graph) -> None:
    changed = do(graph, "relevel", "ada", 31, branch="b").commit
    do(graph, "relevel", "ada", 40)
    assert changed is not None
    outcome = call(capsys, "cherry-pick", *URI, changed.id, "--quiet")
    assert outcome.code == 1
    assert outcome.err.splitlines()[1] == "  level: 40 (ours) | 31 (theirs)"


def test_what_a_strategy_decided_is_listed(capsys: Capsys, graph: og.Graph) -> None:
    """ada is updated on both sides; ben goes on the branch and is updated on main, so his edges stay with him."""
    do(graph, "relevel", "ada", 31, branch="b")
    do(graph, "relevel", "ada", 32)
    do(graph, "drop_staff", "ben", branch="b")
    do(graph, "relevel", "ben", 1)
    lines = call(capsys, "branch", "merge", *URI, "b", "--strategy", "ours").out.splitlines()
    assert lines[:3] == [
        "merged b into main: merged",
        "  decided DivergentUpdate node:Staff ada: ours (strategy)",
        "  decided DeleteVsUpdate node:Staff ben: ours (strategy)",
    ]
    assert len(lines) == 6
    assert all(line.startswith("  decided edge:") and line.endswith(": ours (kept node)") for line in lines[3:])


def test_a_dry_run_counts_its_conflicts(capsys: Capsys, graph: og.Graph) -> None:
    diverge(graph)
    first = call(capsys, "branch", "merge", *URI, "b", "--dry-run").out.splitlines()[0]
    assert first == "b into main would not be merged: 2 conflicts (0 inserted, 0 updated, 0 deleted without conflict)"


def test_repeats_with_the_same_key(capsys: Capsys, graph: og.Graph) -> None:
    """Each of the three writes once, however often it is sent."""
    added = do(graph, "put", "eve", 22, branch="b").commit
    assert added is not None
    for words in (
        ("branch", "merge", *URI, "b"),
        ("revert", *URI, added.id),
        ("cherry-pick", *URI, added.id),
    ):
        keyed = (*words, "--idempotency-key", words[0], "--quiet")
        first = call(capsys, *keyed)
        head = graph.head()
        do(graph, "put", f"after-{words[0]}", 1)
        later = graph.head()
        assert (first.code, call(capsys, *keyed).out) == (0, first.out)
        assert first.out.splitlines()[0].split()[-1] in ("fast_forward", "merged")
        assert later.parent == head.id
        assert graph.head() == later


# --- the level --------------------------------------------------------------------------------------------------------


def test_the_habit_of_the_graph(capsys: Capsys, graph: og.Graph) -> None:
    do(graph, "put", "eve", 22, branch="b")
    assert call(capsys, "config", "set", "merge.level", "property", *URI).code == 0
    foreseen = json.loads(call(capsys, "branch", "merge", *URI, "b", "--dry-run", "--json").out)
    assert foreseen["level"] == "property"
    foreseen = json.loads(call(capsys, "branch", "merge", *URI, "b", "--dry-run", "--json", "--entity-level").out)
    assert "level" not in foreseen
    assert json.loads(call(capsys, "branch", "rebase", *URI, "b", "--json").out)["level"] == "property"
    assert call(capsys, "branch", "merge", *URI, "b").out.splitlines()[1] == "  merge.level: property"
