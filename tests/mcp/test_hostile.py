"""Agents that do everything wrong: huge answers, hostile arguments, unknown tools, wrong types, lost clients, many at once."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

import omnigraph as og
from tests.mcp.agents import Agent, on_stdio, over_http
from tests.mcp.conftest import Connect
from tests.server.serving import ADD, ALL, SCHEMA, serving, settings_of

#: Calls that are wrong, with the status and a part of the message.
WRONG: list[tuple[str, dict[str, Any], int, str]] = [
    ("no_such_tool", {}, 404, "there is no tool 'no_such_tool'"),
    ("quer", {"query": ALL}, 404, "did you mean `query`?"),
    ("query", {}, 400, "missing required field `query`"),
    ("query", {"query": 7}, 400, "expected `str`, got `int`"),
    ("query", {"query": ALL, "branch": ["main"]}, 400, "branch"),
    ("query", {"query": ALL, "brnch": "main"}, 400, "did you mean `branch`?"),
    ("query", {"query": ALL, "branch": "main", "snapshot": "main"}, 400, "exclude each other"),
    ("query", {"query": ALL, "branch": "nowhere"}, 404, "branch 'nowhere' not found"),
    ("query", {"query": ALL, "snapshot": "01ARZ3NDEKTSV4RRFFQ69G5FAV"}, 404, "not found"),
    ("query", {"query": ALL, "offset": -1}, 400, "offset"),
    ("query", {"query": "query q( {"}, 400, "parse error"),
    ("query", {"query": ADD}, 400, "call mutate with it"),
    ("query", {"query": "/etc/passwd.gq"}, 400, ""),
    ("query", {"query": "queries.gq"}, 400, ""),
    (
        "query",
        {"query": "query q($n: String) { match { $p: Person { name: $n } } return { $p.name } }"},
        400,
        "parameter 'n' not provided",
    ),
    ("mutate", {"query": ALL}, 400, "call query with it"),
    ("mutate", {"query": ADD, "params": {"name": "x"}, "idempotency_key": ""}, 400, "1 to 255 printable"),
    ("mutate", {"query": ADD, "params": {"name": "x"}, "if_graph_commit": "nothing"}, 412, ""),
    ("mutate", {"query": ADD, "params": {"name": "x"}, "message": "\u202e"}, 400, "message"),
    ("load", {"data": '{"type":"Nobody","data":{}}'}, 400, "record 1"),
    ("load", {"data": "{", "mode": "merge"}, 400, ""),
    ("load", {"data": "", "mode": "destroy"}, 400, "mode"),
    ("entity_get", {"type": "Person", "id": "nobody"}, 404, "there is no Person with the id 'nobody'"),
    ("entity_get", {"type": "Persn", "id": "x"}, 404, "did you mean `Person`?"),
    ("entity_get", {"type": "Person", "id": "ada", "property": "ag"}, 404, "did you mean `age`?"),
    ("describe_type", {"type": "x' } return { 1"}, 404, "has no type"),
    ("find", {"text": ""}, 400, ""),
    ("find", {"text": "ada", "types": ["Knows"]}, 400, "edge type"),
    ("find", {"text": "ada", "limit": 100000}, 400, "limit"),
    ("find", {"text": "ada", "mode": "meaning"}, 400, "@embed"),
    ("neighbours", {"type": "Person", "id": "ada", "limit": 5000}, 400, "limit"),
    ("paths", {"from_type": "Person", "from_id": "nobody", "to_type": "Person", "to_id": "ada"}, 404, "nobody"),
    ("diff", {"before": "nowhere"}, 404, ""),
    ("merge_preview", {"source": "nowhere"}, 404, "not found"),
    ("merge_preview", {}, 400, "source"),
    ("branches_create", {"name": "a//b"}, 400, ""),
    ("branches_create", {"name": "main"}, 400, "reserved"),
    ("branches_delete", {"name": "main"}, 400, "cannot delete branch 'main'"),
    ("branches_merge", {"source": "main"}, 400, "distinct source and target"),
    ("commits_get", {"commit_id": "x"}, 404, "not found"),
    ("commits_list", {"page_token": "x"}, 400, "page token"),
    ("changes_poll", {"cursor": "x", "start": "now"}, 400, ""),
    ("functions", {"name": "lowr"}, 404, "did you mean `lower`?"),
    ("one", {}, 400, "parameter 'name' not provided"),
    ("one", {"name": 5}, 400, "name"),
    ("one", {"name": "ada", "branch": 5}, 400, "branch"),
    ("one", {"name": "ada", "other": 5}, 400, "has no argument 'other'"),
]


def test_what_is_wrong_is_told(reader: Agent) -> None:
    for tool, arguments, status, message in WRONG:
        told = reader.refused(tool, **arguments)
        assert told["status"] == status, (tool, arguments, told)
        assert message in told["error"], (tool, arguments, told)
        assert "Traceback" not in str(told)
    # Nothing of it has changed anything.
    assert reader.ask("query", query=ALL)["row_count"] == 2
    assert reader.ask("branches_list")["branches"] == ["main"]


def test_conflicts_are_told_with_both_sides(connect: Connect) -> None:
    age = "query age($name: String, $age: I32) { update Person set { age: $age } where name = $name }"
    with connect() as (agent, _):
        agent.ask("branches_create", name="topic")
        agent.ask("mutate", query=age, params={"name": "ada", "age": 1})
        agent.ask("mutate", query=age, params={"name": "ada", "age": 2}, branch="topic")
        (conflict,) = agent.ask("merge_preview", source="topic")["conflicts"]
        assert (conflict["kind"], conflict["entity_id"]) == ("divergent_update", "ada")
        assert [conflict[side]["age"] for side in ("base", "ours", "theirs")] == [36, 1, 2]
        told = agent.refused("branches_merge", source="topic")
        assert (told["status"], told["merge_conflicts"][0]["kind"]) == (409, "divergent_update")


def test_answers_are_bounded(connect: Connect) -> None:
    with connect(max_bytes=2048) as (agent, path):
        rows: list[dict[str, Any]] = [
            {"type": "Person", "data": {"name": f"p{n:04}", "tags": ["t" * 40] * 3}} for n in range(600)
        ]
        rows.append({"type": "Doc", "data": {"title": "x" * 30_000}})
        with og.open(path) as graph:
            graph.load("\n".join(map(json.dumps, rows)).encode())
            for number in range(120):
                graph.create_branch(f"branch-{number:03}-{'n' * 40}")
        # All rows arrive, part by part, each part within its bytes.
        seen: list[str] = []
        arguments: dict[str, Any] = {"query": ALL, "format": "table"}
        while True:
            told = agent.call("query", **arguments)
            assert not told.is_error
            assert told.size <= 2048
            assert told.shape["row_count"] == 602
            seen += [row[0] for row in told.shape["rows"]]
            if "truncated" not in told.shape:
                break
            arguments |= told.shape["truncated"]["arguments"]
        assert seen == ["ada", "ben", *(row["data"]["name"] for row in rows[:600])]
        names: list[str] = []
        paged: dict[str, Any] = {}
        while True:
            told = agent.call("branches_list", **paged)
            assert told.size <= 2048
            names += told.shape["branches"]
            if "truncated" not in told.shape:
                break
            paged = told.shape["truncated"]["arguments"]
        assert len(names) == len(set(names)) == 121
        everything = "query q() { match { $p: Person } return { $p.name, $p.tags } }"
        head = agent.ask("commits_list", limit=1)["commits"][0]["graph_commit_id"]
        calls: list[tuple[str, dict[str, Any]]] = [
            ("query", {"query": everything}),
            ("query", {"query": "query q() { match { $d: Doc } return { $d.title } order { $d.title desc } }"}),
            ("snapshot", {}),
            ("schema_get", {}),
            ("commits_list", {}),
            ("commits_changes", {"commit_id": head}),
            ("changes_poll", {"start": "beginning"}),
            ("describe_type", {}),
            ("describe_type", {"type": "Person", "samples": 20}),
            ("find", {"text": "p0001", "limit": 100}),
            ("entity_get", {"type": "Doc", "id": "x" * 30_000}),
            (
                "diff",
                {
                    "before": agent.ask("commits_list", limit=1, page_token=head)["commits"][0]["graph_commit_id"],
                    "limit": 500,
                },
            ),
            ("explain", {"query": ALL}),
            ("lint", {"query": ALL.replace("query q", "query a") + ALL * 20}),
            ("functions", {}),
            ("no_such_tool_" + "x" * 5000, {}),
            ("entity_get", {"type": "Person", "id": "y" * 5000}),
            ("people", {}),
        ]
        for tool, given in calls:
            told = agent.call(tool, **given)
            assert told.size <= 2048, (tool, given)
            assert "resource_limit" not in told.shape, (tool, told.shape)
        # A long text comes in parts.
        text, offset = "", 0
        while True:
            told = agent.call("entity_get", type="Doc", id="x" * 30_000, property="title", offset=offset)
            assert told.size <= 2048
            text += told.shape["value"]
            if "truncated" not in told.shape:
                break
            offset = told.shape["truncated"]["arguments"]["offset"]
        assert text == "x" * 30_000
        # A page of the feed that was made smaller goes on where it ended.
        feed: dict[str, Any] = {"start": "beginning", "type": ["Person"]}
        count = 0
        for _ in range(400):
            told = agent.call("changes_poll", **feed)
            count += sum(len(block["changes"]) for block in told.shape["blocks"])
            if "next_page_token" not in told.shape:
                break
            feed = {"page_token": told.shape["next_page_token"], "type": ["Person"]}
        assert count == 602


def test_many_agents_at_once(graph_template: Path, tmp_path: Path) -> None:
    path = Path(shutil.copytree(graph_template, tmp_path / "people.omni"))
    with serving(settings_of(path)) as served:

        def write(number: int) -> list[str]:
            with over_http(served.url, query="?branch=agent/all") as agent:
                return [agent.ask("add_person", name=f"a{number}-{turn}")["branch"] for turn in range(5)]

        with ThreadPoolExecutor(6) as pool:
            assert {branch for found in pool.map(write, range(6)) for branch in found} == {"agent/all"}
    with og.open(path, "ro") as graph:
        assert len(graph.query(ALL, branch="agent/all")) == 32
        assert len(graph.query(ALL)) == 2


def test_a_client_that_disappears(graph_template: Path, tmp_path: Path) -> None:
    """A write that was begun is made or not made as a whole, and the process ends with its input."""
    path = Path(shutil.copytree(graph_template, tmp_path / "people.omni"))
    begin = {
        "jsonrpc": "2.0",
        "id": 0,
        "method": "initialize",
        "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
    }
    call = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {
            "name": "mutate",
            "arguments": {"query": ADD, "params": {"name": "late"}, "idempotency_key": "once"},
        },
    }
    command = [sys.executable, "-m", "omnigraph", "mcp", str(path)]
    lines = [
        json.dumps(begin),
        '{"jsonrpc":"2.0","method":"notifications/initialized"}',
        "not json",
        json.dumps(call),
        "",
    ]
    done = subprocess.run(command, input="\n".join(lines), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    with on_stdio(str(path)) as agent:
        first = agent.ask("mutate", query=ADD, params={"name": "late"}, idempotency_key="once")
        assert first["commit"]
    with og.open(path, "ro") as graph:
        assert len(graph.query(ALL)) == 3
        assert len(graph.commits()) == 3
    # A client that hangs up in the middle of a request.
    with serving(settings_of(path)) as served:
        with pytest.raises(httpx.TimeoutException):
            slow = "query q() { match { $a: Person  $b: Person  $c: Person } return { $a.name, $b.name, $c.name } }"
            body = {
                "jsonrpc": "2.0",
                "id": 1,
                "method": "tools/call",
                "params": {"name": "query", "arguments": {"query": slow}},
            }
            served.post("/mcp", body, headers={"Accept": "application/json"}, timeout=0.001)
        with over_http(served.url) as agent:
            assert agent.ask("query", query=ALL)["row_count"] == 3


def test_older_and_newer_clients(graph_template: Path, tmp_path: Path) -> None:
    path = Path(shutil.copytree(graph_template, tmp_path / "people.omni"))
    with serving(settings_of(path)) as served:
        for mode in ("legacy", "auto", "2026-07-28"):
            with over_http(served.url, mode=mode) as agent:
                assert agent.ask("query", query=ALL)["row_count"] == 2
                assert "find" in agent.tools()


#: Longer than anybody waits: three thousand people, three times.
ENDLESS = (
    "query q() { match { $a: Person  $b: Person  $c: Person  $a.name != $b.name  $b.name != $c.name } "
    "return { count($a) as n } }"
)


@pytest.fixture
def crowd(tmp_path: Path) -> Path:
    rows = "".join(f'{{"type":"Person","data":{{"name":"p{number}"}}}}\n' for number in range(3000))
    with og.init(tmp_path / "people.omni", SCHEMA) as graph:
        graph.load(rows.encode())
    return tmp_path / "people.omni"


def test_calls_that_are_taken_back_end(crowd: Path) -> None:
    """As many endless calls as there are threads: when the agent cancels them, the next call is answered."""
    process = subprocess.Popen(
        [sys.executable, "-m", "omnigraph", "mcp", str(crowd), "--timeout", "80000"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None

    def send(**message: object) -> None:
        assert process.stdin is not None
        process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        process.stdin.flush()

    told = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    send(id=0, method="initialize", params=told)
    assert json.loads(process.stdout.readline())["id"] == 0
    send(method="notifications/initialized")
    for number in range(1, 9):
        send(id=number, method="tools/call", params={"name": "query", "arguments": {"query": ENDLESS}})
    time.sleep(2)
    for number in range(1, 9):
        send(method="notifications/cancelled", params={"requestId": number})
    send(id=99, method="tools/call", params={"name": "query", "arguments": {"query": ALL, "limit": 1}})
    while json.loads(process.stdout.readline())["id"] != 99:
        pass
    process.stdin.close()
    assert process.wait() == 0


def test_a_read_has_a_time_limit(crowd: Path) -> None:
    with on_stdio(str(crowd), "--timeout", "0.5") as agent:
        told = agent.refused("query", query=ENDLESS)
        assert "0.5" in told["error"]
        assert "Ask for less" in told["next"]
