"""`omnigraph commit …`."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.cli.commit import read_filters
from omnigraph.cli.log import draw
from omnigraph.cli.wording import iso
from omnigraph.commit.history import children_first
from omnigraph.commit.model import Commit
from tests.cli.calling import call

Capsys = pytest.CaptureFixture[str]


def insert(graph: og.Graph, handle: str, **options: Any) -> Commit:
    commit = graph.mutate(f'query q() {{ insert Staff {{ handle: "{handle}" }} }}', **options).commit
    assert commit is not None
    return commit


@pytest.fixture
def graph(org: Path) -> og.Graph:
    """The graph with one commit by an actor on main and one on the branch b."""
    graph = og.open("org.omni")
    graph.create_branch("b")
    insert(graph, "eve", actor="me", message="hire eve\n\nat last")
    insert(graph, "fay", branch="b")
    return graph


# --- list -------------------------------------------------------------------------------------------------------------


def test_list(capsys: Capsys, graph: og.Graph) -> None:
    outcome = call(capsys, "commit", "list", "org.omni")
    newest, load, genesis = graph.commits()
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.splitlines() == [
        f"{newest.id} graph_branch=main graph_manifest_version=3 actor=me "
        f"created_at={iso(newest.created_at)} kind=mutation nodes=1 edges=0 message=hire eve",
        f"{load.id} graph_branch=main graph_manifest_version=2 "
        f"created_at={iso(load.created_at)} kind=mutation nodes=6 edges=5",
        f"{genesis.id} graph_branch=main graph_manifest_version=1 created_at={iso(genesis.created_at)} kind=init",
    ]


def test_list_of_a_branch_as_json(capsys: Capsys, graph: og.Graph) -> None:
    head = graph.head("b")
    listed = json.loads(call(capsys, "commit", "list", "org.omni", "--branch", "b", "--json").out)["commits"]
    assert [commit["graph_branch"] for commit in listed] == ["b", None, None]
    assert listed[0] == {
        "graph_commit_id": head.id,
        "graph_branch": "b",
        "graph_manifest_version": head.manifest_version,
        "parent_commit_id": head.parent,
        "merged_parent_commit_id": None,
        "actor_id": None,
        "created_at": head.created_at,
        "kind": "mutation",
        "changed": {"nodes": 1, "edges": 0},
    }


TODAY = datetime.now(UTC).date()


@pytest.mark.parametrize(
    ("filters", "kinds"),
    [
        (("actor=me",), ["mutation"]),
        (("kind=init",), ["init"]),
        (("kind=mutation", "actor=nobody"), []),
        ((f"since={TODAY - timedelta(1)}",), ["mutation", "mutation", "init"]),
        ((f"since={TODAY + timedelta(2)}",), []),
        ((f"until={TODAY - timedelta(2)}",), []),
        ((f"until={TODAY + timedelta(2)}T00:00:00+01:00", "kind=init"), ["init"]),
    ],
    ids=["actor", "kind", "both", "since", "since_later", "until_earlier", "until_with_zone"],
)
def test_filters(capsys: Capsys, graph: og.Graph, filters: tuple[str, ...], kinds: list[str]) -> None:
    flags = [word for text in filters for word in ("--filter", text)]
    outcome = call(capsys, "commit", "list", "org.omni", *flags)
    assert outcome.code == 0
    by_id = {commit.id: commit.kind for commit in graph.commits()}
    assert [by_id[line.split()[0]] for line in outcome.out.splitlines()] == kinds


def test_a_day_begins_with_since_and_ends_with_until() -> None:
    filters = read_filters(["since=2026-04-01", "until=2026-04-01"])
    assert filters.since == datetime(2026, 4, 1, tzinfo=UTC)
    assert filters.until == datetime(2026, 4, 1, 23, 59, 59, 999_999, UTC)


@pytest.mark.parametrize("text", ["2026-04-01T08:30:00", "2026-04-01T08:30:00Z", "2026-04-01T10:30:00+02:00"])
def test_times_are_utc_unless_they_say_otherwise(text: str) -> None:
    filters = read_filters([f"since={text}", f"until={text}"])
    assert filters.since == filters.until == datetime(2026, 4, 1, 8, 30, tzinfo=UTC)


def test_the_edges_of_a_time(capsys: Capsys, graph: og.Graph) -> None:
    load = graph.commits()[1]
    for bound, expected in (("since", 2), ("until", 2)):
        outcome = call(capsys, "commit", "list", "org.omni", "--filter", f"{bound}={iso(load.created_at)}")
        assert len(outcome.out.splitlines()) == expected


@pytest.mark.parametrize(
    ("text", "code", "message"),
    [
        ("colour=red", 2, "--filter 'colour=red' is not one of actor=…, kind=…, since=…, until=…"),
        ("actor", 2, "is not one of"),
        ("actor=", 2, "is not one of"),
        ("kind=wedding", 1, "'wedding' is no kind of commit; the kinds are"),
        ("since=yesterday", 1, "'yesterday' is not a date or time; write 2026-04-01"),
        ("until=2026-02-30", 1, "is not a date or time"),
        ("since=0001-01-01T00:00:00+05:00", 1, "is not a date or time"),
    ],
)
def test_wrong_filters(capsys: Capsys, graph: og.Graph, text: str, code: int, message: str) -> None:
    outcome = call(capsys, "commit", "list", "org.omni", "--filter", text)
    assert (outcome.code, outcome.out) == (code, "")
    assert message in outcome.err


def test_a_filter_given_twice(capsys: Capsys, graph: og.Graph) -> None:
    outcome = call(capsys, "commit", "list", "org.omni", "--filter", "actor=a", "--filter", "actor=b")
    assert outcome.code == 2
    assert "--filter actor=… is given twice" in outcome.err


# --- show -------------------------------------------------------------------------------------------------------------


def test_show(capsys: Capsys, graph: og.Graph) -> None:
    head = graph.head()
    assert call(capsys, "commit", "show", "--uri", "org.omni", head.id).out.splitlines() == [
        f"graph_commit_id: {head.id}",
        "graph_branch: main",
        "graph_manifest_version: 3",
        f"parent_commit_id: {head.parent}",
        "actor_id: me",
        f"created_at: {iso(head.created_at)}",
        "kind: mutation",
        "message: hire eve",
        "",
        "at last",
        "changed: 1 nodes, 0 edges",
    ]


def test_show_finds_commits_of_other_branches(capsys: Capsys, graph: og.Graph) -> None:
    head = graph.head("b")
    shown = json.loads(call(capsys, "commit", "show", "--uri", "org.omni", head.id, "--json").out)
    assert (shown["graph_commit_id"], shown["graph_branch"]) == (head.id, "b")


def test_show_of_an_unknown_commit(capsys: Capsys, graph: og.Graph) -> None:
    outcome = call(capsys, "commit", "show", "--uri", "org.omni", "01ARZ3NDEKTSV4RRFFQ69G5FAV")
    assert (outcome.code, outcome.out) == (1, "")
    assert outcome.err == "Error: commit '01ARZ3NDEKTSV4RRFFQ69G5FAV' not found\n"


# --- graph ------------------------------------------------------------------------------------------------------------


def test_graph(capsys: Capsys, graph: og.Graph) -> None:
    outcome = call(capsys, "commit", "graph", "org.omni")
    assert (outcome.code, outcome.err) == (0, "")
    on_main, on_b, (load, genesis) = graph.head(), graph.head("b"), graph.commits()[1:]
    assert outcome.out.splitlines() == [
        f"*  {on_b.id} (b) mutation on b, {iso(on_b.created_at)}",
        f"| *  {on_main.id} (main) mutation on main by me, {iso(on_main.created_at)}",
        "|/",
        f"*  {load.id} mutation on main, {iso(load.created_at)}",
        f"*  {genesis.id} init on main, {iso(genesis.created_at)}",
    ]


def test_graph_of_one_branch(capsys: Capsys, graph: og.Graph) -> None:
    outcome = call(capsys, "commit", "graph", "org.omni", "--branch", "main", "--json")
    shown = json.loads(outcome.out)
    assert shown["heads"] == {"main": graph.head().id}
    assert [commit["graph_commit_id"] for commit in shown["commits"]] == [commit.id for commit in graph.commits()]


def test_graph_of_an_unknown_branch(capsys: Capsys, graph: og.Graph) -> None:
    assert "branch 'nope' not found" in call(capsys, "commit", "graph", "org.omni", "--branch", "nope").err


def drawn(*edges: str) -> str:
    """The drawing of commits that are given oldest first as `id:parent,merged`."""
    commits = {}
    for number, edge in enumerate(edges):
        name, _, rest = edge.partition(":")
        first, _, second = rest.partition(",")
        commits[name] = Commit(name, "main", first or None, second or None, None, number, number, "mutation")
    return "\n".join(draw(children_first(commits), lambda commit: commit.id))


@pytest.mark.parametrize(
    ("edges", "picture"),
    [
        pytest.param(["a"], "*  a", id="one"),
        pytest.param(["a", "b:a"], "*  b\n*  a", id="a-line"),
        pytest.param(
            ["a", "b:a", "c:a", "d:b,c"],
            r"""
*  d
|\
| *  c
* |  b
|/
*  a
""",
            id="a-merge",
        ),
        pytest.param(
            ["a", "b:a", "c:a", "d:a"],
            r"""
*  d
| *  c
| | *  b
|_|/
|/
*  a
""",
            id="three-branches",
        ),
        pytest.param(
            ["a", "x:a", "y:a", "b:a", "c:b,x", "d:c,y"],
            r"""
*  d
|\
* |  c
|\ \
* | |  b
| | *  y
| * |  x
|_|/
|/
*  a
""",
            id="two-merges",
        ),
        pytest.param(["a", "b", "c:a"], "*  c\n| *  b\n*  a", id="two-roots"),
        pytest.param(["a", "b:a", "c"], "*  c\n*  b\n*  a", id="an-old-root-ends"),
        pytest.param(
            ["a", "b:a", "r", "t:r", "s:t,b"],
            r"""
*  s
|\
* |  t
* |  r
 /
*  b
*  a
""",
            id="a-root-ends-beside-another-line",
        ),
        pytest.param(["b:gone"], "*  b", id="a-parent-that-is-not-shown"),
    ],
)
def test_drawings(edges: list[str], picture: str) -> None:
    assert drawn(*edges) == picture.strip("\n")
