"""`omnigraph log`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.cli.log import drawn
from omnigraph.cli.wording import iso
from tests.cli.calling import call

Capsys = pytest.CaptureFixture[str]


@pytest.fixture
def graph(org: Path) -> og.Graph:
    graph = og.open("org.omni")
    graph.create_branch("b")
    graph.mutate('query q() { insert Staff { handle: "eve" } }', actor="me", message="Hire Eve")
    graph.mutate('query q() { insert Staff { handle: "fay" } }', branch="b", message="hire fay")
    graph.merge("b", delete_branch=True)
    return graph


def test_a_pipe_gets_the_lines_of_commit_list(capsys: Capsys, graph: og.Graph) -> None:
    outcome = call(capsys, "log", "org.omni")
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out == call(capsys, "commit", "list", "org.omni").out


@pytest.mark.parametrize(
    ("flags", "messages"),
    [
        (("--grep", "HIRE"), ["hire fay", "Hire Eve"]),
        (("--grep", "h.re"), []),
        (("--actor", "me"), ["Hire Eve"]),
        (("--kind", "merge"), ["Merge b into main"]),
        (("--grep", "hire", "-n", "1"), ["hire fay"]),
        (("--since", "2999-01-01"), []),
        (("--until", "1999-01-01"), []),
    ],
)
def test_filters(capsys: Capsys, graph: og.Graph, flags: tuple[str, ...], messages: list[str]) -> None:
    outcome = call(capsys, "log", "org.omni", *flags, "--json")
    assert [commit["message"] for commit in json.loads(outcome.out)["commits"]] == messages


def test_what_a_terminal_shows(graph: og.Graph) -> None:
    merge, on_b, on_main, load, genesis = graph.commits()
    times = {commit.id: f"{iso(commit.created_at)[:19]}Z" for commit in graph.commits()}
    assert drawn(graph.commits(), {merge.id: "main"}, colours=False) == [
        f"*  {merge.id} (main) {times[merge.id]} merge [1 node, 0 edges] Merge b into main",
        "|\\",
        f"| *  {on_b.id} {times[on_b.id]} mutation on b [1 node, 0 edges] hire fay",
        f"* |  {on_main.id} {times[on_main.id]} mutation me [1 node, 0 edges] Hire Eve",
        "|/",
        f"*  {load.id} {times[load.id]} mutation [6 nodes, 5 edges]",
        f"*  {genesis.id} {times[genesis.id]} init",
    ]
    assert "\x1b[33m" in drawn(graph.commits(), {}, colours=True)[0]


@pytest.mark.parametrize("flags", [("--kind", "nonsense"), ("--since", "soon"), ("-n", "0"), ("--branch", "no")])
def test_what_is_refused(capsys: Capsys, graph: og.Graph, flags: tuple[str, ...]) -> None:
    outcome = call(capsys, "log", "org.omni", *flags)
    assert outcome.code in (1, 2)
    assert outcome.out == ""
