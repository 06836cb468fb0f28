"""`omnigraph diff`, `commit changes`, `changes …` and `tag …`."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

import omnigraph as og
from tests.cli.calling import Outcome, call
from tests.mutation.org_graph import call as write


@pytest.fixture
def graph(org: Path) -> og.Graph:
    return og.open(org / "org.omni", actor="act-x")


def ran(capsys: pytest.CaptureFixture[str], *arguments: str) -> Outcome:
    outcome = call(capsys, *arguments)
    assert outcome.code == 0, outcome.err
    return outcome


def test_commit_changes_for_people(graph: og.Graph, capsys: pytest.CaptureFixture[str]) -> None:
    parent = graph.head().id
    commit = graph.mutate(
        'query q() { insert Staff { handle: "eve" } update Staff set { level: 99 } where handle = "ben" '
        'insert Mentors { from: "eve", to: "ben" } }'
    ).commit
    assert commit is not None
    out = ran(capsys, "commit", "changes", "--uri", "org.omni", commit.id, "--limit", "1").out.splitlines()
    assert out[:4] == [
        f"graph_commit_id: {commit.id}",
        "authored_branch: main",
        f"parent_commit_id: {parent}",
        "actor_id: act-x",
    ]
    assert out[4].startswith("authored_at: 2")
    edge = next(change for change in graph.commit_changes(commit.id).changes if change.kind == "edge")
    assert out[5:] == [
        "update node Staff ben",
        "  level: 25 -> 99",
        "insert node Staff eve",
        "  + handle: eve",
        "  + level: <null>",
        f"insert edge Mentors {edge.id}",
        "  + from: eve",
        "  + to: ben",
        "  + began: <null>",
    ]


def test_commit_changes_as_json(graph: og.Graph, capsys: pytest.CaptureFixture[str]) -> None:
    commit = write(graph, "put_link", "eve", 1, "ben").commit
    assert commit is not None
    every = orjson.loads(ran(capsys, "commit", "changes", "--uri", "org.omni", commit.id, "--json").out)
    assert every == orjson.loads(orjson.dumps(graph.commit_changes(commit.id).to_dict()))
    paged = ran(capsys, "commit", "changes", "--uri", "org.omni", commit.id, "--json", "--limit", "1").out
    assert orjson.loads(paged) == every
    token = graph.commit_changes(commit.id, limit=1).next_page_token
    assert token is not None
    second = ("commit", "changes", "--uri", "org.omni", commit.id, "--page-token", token)
    assert orjson.loads(ran(capsys, *second, "--json").out)["changes"] == every["changes"][1:]
    assert "insert edge Mentors" in ran(capsys, *second).out
    edges = ran(
        capsys, "commit", "changes", "--uri", "org.omni", commit.id, "--kind", "edge", "--op", "insert", "--json"
    )
    assert [change["kind"] for change in orjson.loads(edges.out)["changes"]] == ["edge"]


def test_a_diff_tells_the_schema_first(graph: og.Graph, capsys: pytest.CaptureFixture[str]) -> None:
    graph.create_branch("wider")
    graph.apply_schema(graph.schema() + "\nnode River { name: String @key }\n", branch="wider")
    graph.mutate('insert River { name: "Rhine" }', branch="wider")
    out = ran(capsys, "diff", "--uri", "org.omni", "main", "wider").out.splitlines()
    assert out[:2] == ["schema: add node type 'River'", "insert node River Rhine"]
    told = orjson.loads(ran(capsys, "diff", "--uri", "org.omni", "main", "wider", "--json").out)
    assert [(step["kind"], step["text"]) for step in told["schema"]] == [("add_type", "add node type 'River'")]


def test_diff(graph: og.Graph, capsys: pytest.CaptureFixture[str]) -> None:
    graph.create_branch("b")
    graph.tag("v1")
    write(graph, "put", "e\nve", 1, branch="b")
    write(graph, "drop_staff", "dov")
    out = ran(capsys, "diff", "--uri", "org.omni", "main", "b", "--type", "Staff").out.splitlines()
    assert out == [
        "insert node Staff dov",
        "  + handle: dov",
        "  + level: 28",
        "insert node Staff e\\nve",
        "  + handle: e\\nve",
        "  + level: 1",
        "2 inserted, 0 updated, 0 deleted",
    ]
    told = orjson.loads(ran(capsys, "diff", "--uri", "org.omni", "v1", "--op", "delete", "--json").out)
    assert told["stats"] == {"inserts": 0, "updates": 0, "deletes": 2, "types": ["node:Staff", "edge:Mentors"]}
    assert [change["op"] for change in told["changes"]] == ["delete", "delete"]


def test_a_property_that_did_not_exist(graph: og.Graph, capsys: pytest.CaptureFixture[str]) -> None:
    graph.tag("v1")
    graph.apply_schema(graph.schema().replace("level: I32?", "level: I32? nick: String?"))
    graph.mutate(
        'query q($n: I32?) { update Staff set { nick: "b", level: $n } where handle = "ben" }', params={"n": None}
    )
    out = ran(capsys, "diff", "--uri", "org.omni", "v1").out.splitlines()
    assert out == [
        "schema: add property 'Staff.nick' (String?)",
        "update node Staff ben",
        "  level: 25 -> <null>",
        "  nick: <absent> -> b",
        "0 inserted, 1 updated, 0 deleted",
    ]


def test_poll(graph: og.Graph, capsys: pytest.CaptureFixture[str]) -> None:
    start = ran(capsys, "changes", "poll", "--uri", "org.omni").out.splitlines()
    assert start[0] == "(no new commits)"
    assert start[2] == "caught_up: true"
    cursor = start[1].removeprefix("cursor: ")
    one, two = (write(graph, "put_link", name, 1, "ada").commit for name in ("eve", "fay"))
    assert one is not None
    assert two is not None
    out = ran(capsys, "changes", "poll", "--uri", "org.omni", "--cursor", cursor, "--limit", "1").out
    assert [line for line in out.splitlines() if line.startswith("graph_commit_id")] == [
        f"graph_commit_id: {one.id}",
        f"graph_commit_id: {two.id}",
    ]
    assert out.count("insert node Staff") == out.count("insert edge Mentors") == 2
    polled = ("changes", "poll", "--uri", "org.omni", "--cursor", cursor, "--json")
    told = orjson.loads(ran(capsys, *polled, "--limit", "1").out)
    assert told == orjson.loads(ran(capsys, *polled).out)
    assert [block["cause"]["graph_commit_id"] for block in told["blocks"]] == [one.id, two.id]
    assert told["caught_up"] is True
    few = orjson.loads(ran(capsys, *polled, "--max-commits", "1").out)
    assert (len(few["blocks"]), few["caught_up"]) == (1, False)
    whole = ran(capsys, "changes", "poll", "--uri", "org.omni", "--start", "beginning", "--type", "Team", "--json").out
    assert len(orjson.loads(whole)["blocks"]) == 3


def test_baseline(graph: og.Graph, org: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = ran(capsys, "changes", "baseline", "--uri", "org.omni", "--out", "all.jsonl").out.splitlines()
    assert out[0] == f"snapshot_commit_id: {graph.head().id}"
    assert (org / "all.jsonl").read_bytes() == b"".join(graph.export_chunks())
    told = orjson.loads(ran(capsys, "changes", "baseline", "--uri", "org.omni", "--out", "all.jsonl", "--json").out)
    cursor = told["resume_cursor"]
    assert out[1] == f"resume_cursor: {cursor}"
    assert "(no new commits)" in ran(capsys, "changes", "poll", "--uri", "org.omni", "--cursor", cursor).out
    before = (org / "all.jsonl").read_bytes()
    failed = call(capsys, "changes", "baseline", "--uri", "org.omni", "--out", "all.jsonl", "--type", "Nothing")
    assert (failed.code, failed.out) == (1, "")
    assert (org / "all.jsonl").read_bytes() == before


def test_tags(graph: og.Graph, capsys: pytest.CaptureFixture[str]) -> None:
    head = graph.head().id
    assert ran(capsys, "tag", "create", "--uri", "org.omni", "v1").out == f"tagged {head} as v1\n"
    write(graph, "put", "eve", 1)
    told = ran(capsys, "tag", "create", "--uri", "org.omni", "v0", head, "--json").out
    assert orjson.loads(told) == {"name": "v0", "graph_commit_id": head}
    assert ran(capsys, "tag", "list", "--uri", "org.omni").out == f"v0 {head}\nv1 {head}\n"
    assert ran(capsys, "tag", "delete", "--uri", "org.omni", "v0").out == "deleted tag v0\n"
    listed = orjson.loads(ran(capsys, "tag", "list", "--uri", "org.omni", "--json").out)
    assert listed == {"tags": [{"name": "v1", "graph_commit_id": head}]}
    assert orjson.loads(ran(capsys, "tag", "delete", "--uri", "org.omni", "v1", "--json").out) == {"name": "v1"}


FAILURES = {
    "unknown target": (("diff", "nowhere"), "Error: branch 'nowhere' not found, and no tag, commit"),
    "unknown second target": (("diff", "main", "nowhere"), "Error: branch 'nowhere' not found"),
    "tag of nothing": (("tag", "create", "v1", "nowhere"), "Error: branch 'nowhere' not found"),
    "unknown type": (("diff", "main", "main", "--type", "X"), "Error: unknown type 'X'"),
    "unknown kind": (("diff", "main", "main", "--kind", "X"), "is no kind of change"),
    "unknown commit": (("commit", "changes", "01J00000000000000000000009"), "not found"),
    "bad limit": (("changes", "poll", "--limit", "0"), "a page has 1 to 8192 changes"),
    "large limit": (("changes", "poll", "--limit", "8193"), "at most 8192 changes"),
    "bad cursor": (("changes", "poll", "--cursor", "x"), "change cursor rejected"),
    "bad start": (("changes", "poll", "--start", "x"), "is no start of a feed"),
    "unknown branch": (("changes", "poll", "--branch", "x"), "branch 'x' not found"),
    "no folder": (("changes", "baseline", "--out", "missing/x"), "missing/x"),
    "odd tag": (("tag", "create", "a b"), "can not be a tag"),
    "unknown tag": (("tag", "delete", "x"), "tag 'x' not found"),
}


@pytest.mark.parametrize("name", FAILURES)
@pytest.mark.usefixtures("org")
def test_failures_are_one_line(capsys: pytest.CaptureFixture[str], name: str) -> None:
    arguments, message = FAILURES[name]
    outcome = call(capsys, *arguments, "--store", "org.omni")
    assert (outcome.code, outcome.out) == (1, "")
    assert message in outcome.err
    assert outcome.err.startswith("Error: ")
    assert outcome.err.count("\n") == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ("diff",),
        ("changes", "baseline"),
        ("changes", "poll", "--cursor", "a", "--start", "now"),
        ("changes", "poll", "--limit", "x"),
        ("tag", "create"),
        ("changes", "poll", "--as", "me"),
    ],
    ids=" ".join,
)
@pytest.mark.usefixtures("org")
def test_usage_errors(capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...]) -> None:
    assert call(capsys, *arguments, "--store", "org.omni").code == 2
