"""Agents over HTTP have the token, the actor, the permissions and the limits of every other request."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

import omnigraph as og
from omnigraph.mcp.tools import TOOLS
from omnigraph.policy.bundle import read_bundle
from omnigraph.server.settings import Limits
from tests.mcp.agents import over_http
from tests.policy.bundles import LISTERS, TEAM
from tests.server.serving import ADD, ALL, Served, serving, settings_of
from tests.server.test_policy import Asked, Told, _with_access

ROW = '{"type":"Person","data":{"name":"zoe"}}\n'
READ_MAIN: list[Told] = [("read", "main", None)]
READ_NONE: list[Told] = [("read", None, None)]
INVOKE: Told = ("invoke_query", None, None)
#: Each tool: arguments that reach its decision, and all that it must ask for; the same as the route of its verb asks.
TABLE: dict[str, tuple[dict[str, Any], list[Told]]] = {
    "health": ({}, []),
    "functions": ({}, []),
    "snapshot": ({"branch": "topic"}, [("read", "topic", None)]),
    "query": ({"query": ALL}, READ_MAIN),
    "schema_get": ({}, READ_NONE),
    "branches_list": ({}, READ_NONE),
    "graphs_list": ({}, [("graph_list", None, None)]),
    "commits_list": ({"branch": "topic"}, [("read", "topic", None)]),
    "commits_get": ({"commit_id": "COMMIT"}, READ_NONE),
    "commits_changes": ({"commit_id": "COMMIT"}, READ_MAIN),
    "changes_poll": ({"branch": " topic "}, [("read", "topic", None)]),
    "describe_type": ({"branch": "topic"}, [("read", "topic", None)]),
    "find": ({"text": "ada", "branch": "topic"}, [("read", "topic", None)]),
    "entity_get": ({"type": "Person", "id": "ada"}, READ_MAIN),
    "neighbours": ({"type": "Person", "id": "ada", "branch": "topic"}, [("read", "topic", None)]),
    "paths": ({"from_type": "Person", "from_id": "ada", "to_type": "Person", "to_id": "ben"}, READ_MAIN),
    "diff": ({"before": "main", "after": "topic"}, [("read", "main", None), ("read", "topic", None)]),
    "merge_preview": ({"source": "topic"}, [("read", "topic", None), ("read", "main", None)]),
    "explain": ({"query": ALL}, READ_MAIN),
    "lint": ({"query": ALL}, READ_NONE),
    "mutate": ({"query": ADD, "branch": "topic", "params": {"name": "y"}}, [("change", "topic", None)]),
    "load": (
        {"data": ROW, "branch": "fork", "from": "main"},
        [("branch_create", "main", "fork"), ("change", "fork", None)],
    ),
    "branches_create": ({"name": "new"}, [("branch_create", "main", "new")]),
    "branches_delete": ({"name": "gone"}, [("branch_delete", None, "gone")]),
    "branches_merge": (
        {"source": "merged", "delete_branch": True},
        [("branch_merge", "merged", "main"), ("branch_delete", None, "merged")],
    ),
    "people": ({"branch": "topic"}, [INVOKE, ("read", "topic", None)]),
    "add_person": ({"name": "x"}, [INVOKE, ("change", "main", None)]),
}
#: What a forbidden call looks like where 403 would tell too much.
HIDDEN = {"commits_changes": 404, "people": 404, "add_person": 404}


@pytest.fixture(scope="module")
def server(graph_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("policy")
    shutil.copytree(graph_template, folder / "people.omni")
    with og.open(folder / "people.omni") as graph:
        for name in ("topic", "gone", "merged"):
            graph.create_branch(name)
    with serving(settings_of(folder / "people.omni")) as running:
        yield running


def _called(server: Served, name: str, arguments: dict[str, Any], **options: Any) -> tuple[bool, dict[str, Any]]:
    """Call a tool with one plain request, as any HTTP client could."""
    with og.open(server.path, "ro") as graph:
        head = graph.head().id
    given = {key: head if value == "COMMIT" else value for key, value in arguments.items()}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": given}}
    answer = server.post(
        "/mcp", message, headers={"Accept": "application/json"} | options.pop("headers", {}), **options
    )
    assert answer.status_code == 200, answer.text
    result = answer.json()["result"]
    return bool(result.get("isError")), json.loads(result["content"][0]["text"])


def test_every_tool_has_a_decision() -> None:
    assert TOOLS.keys() <= TABLE.keys()


@pytest.mark.parametrize("name", [name for name, (_, needs) in TABLE.items() if needs])
def test_a_denied_call_does_no_work(server: Served, name: str) -> None:
    arguments, needs = TABLE[name]
    rule = Asked(allows=False)
    _with_access(server, rule)
    with og.open(server.path, "ro") as graph:
        before = [(branch, graph.head(branch).id) for branch in graph.branches()]
    is_error, told = _called(server, name, arguments)
    assert is_error
    assert told["status"] == HIDDEN.get(name, 403), told
    assert rule.needs[:1] == needs[:1]
    with og.open(server.path, "ro") as graph:
        assert [(branch, graph.head(branch).id) for branch in graph.branches()] == before


@pytest.mark.parametrize("name", TABLE)
def test_what_each_tool_asks_for(server: Served, name: str) -> None:
    rule = Asked(allows=True)
    _with_access(server, rule)
    is_error, told = _called(server, name, TABLE[name][0])
    assert not is_error, told
    # A stored query is looked up by each step that needs it, and asks each time.
    assert list(dict.fromkeys(rule.needs)) == TABLE[name][1]


@pytest.fixture
def policed(graph_template: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    path = Path(shutil.copytree(graph_template, tmp_path / "people.omni"))
    monkeypatch.setenv("OMNIGRAPH_SERVER_BEARER_TOKENS_JSON", '{"ann":"ogt_ann","bob":"ogt_bob","cleo":"ogt_cleo"}')
    settings = settings_of(path, rights="default-deny", one_time_token=None, policy=read_bundle(LISTERS, "cluster"))
    source = replace(settings.graphs[0], policy=read_bundle(TEAM, "graph"))
    with serving(replace(settings, graphs=(source,))) as running:
        yield running


def test_a_policed_server(policed: Served) -> None:
    with (
        over_http(policed.url, "ogt_ann") as ann,
        over_http(policed.url, "ogt_bob") as bob,
        over_http(policed.url, "ogt_cleo") as cleo,
    ):
        # A reader reads, sees no stored queries, and writes by no tool.
        assert ann.ask("query", query=ALL)["row_count"] == 2
        assert "people" not in ann.tools()
        for tool, arguments in (
            ("mutate", {"query": ADD, "params": {"name": "z"}}),
            ("load", {"data": ROW}),
            ("branches_create", {"name": "t"}),
            ("branches_merge", {"source": "main", "target": "t"}),
            ("branches_delete", {"name": "main"}),
        ):
            assert ann.refused(tool, **arguments)["error"].endswith("for actor 'ann'")
        assert ann.refused("add_person", name="z")["status"] == 404
        assert ann.ask("graphs_list")["graphs"][0]["graph_id"] == "people"
        assert bob.refused("graphs_list")["status"] == 403
        # A writer works on a branch and previews; only a lead merges.
        bob.ask("branches_create", name="topic")
        done = bob.ask("add_person", name="yan", branch="topic")
        assert (done["actor_id"], done["branch"]) == ("bob", "topic")
        assert bob.refused("add_person", name="yan")["status"] == 403
        assert bob.ask("merge_preview", source="topic")["inserted"] == 1
        assert bob.refused("branches_merge", source="topic")["status"] == 403
        assert cleo.ask("branches_merge", source="topic")["actor_id"] == "cleo"
        # The key of one actor is not that of another.
        first = bob.ask("mutate", query=ADD, params={"name": "a1"}, branch="topic", idempotency_key="k")
        other = policed.post(
            "/mutate",
            {"query": ADD, "params": {"name": "a1"}, "branch": "topic"},
            headers={"Authorization": "Bearer ogt_bob", "Idempotency-Key": "k"},
        )
        assert other.status_code in (200, 400)
        assert first["idempotency_key"] == "k"


def test_the_door(server: Served) -> None:
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    assert httpx.post(f"{server.url}/graphs/people/mcp", json=message).status_code == 401
    wrong = {"Authorization": "Bearer nobody"}
    assert httpx.post(f"{server.url}/graphs/people/mcp", json=message, headers=wrong).status_code == 401
    assert server.http.post("/graphs/nothing/mcp", json=message).status_code == 404
    assert server.get("/mcp").status_code == 405
    assert server.request("DELETE", "/mcp").status_code == 405
    assert server.request("POST", "/mcp", content=b"{", headers={"Content-Type": "application/json"}).status_code == 400
    assert server.post("/mcp", [message]).status_code == 400
    assert server.post("/mcp?nothing=1", message).status_code == 400
    assert server.post("/mcp?max_bytes=1", message).status_code == 400
    notification = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    assert server.post("/mcp", notification, headers={"Accept": "application/json"}).status_code == 202


def test_limits_are_those_of_every_request(graph_template: Path, tmp_path: Path) -> None:
    path = Path(shutil.copytree(graph_template, tmp_path / "people.omni"))
    limits = Limits(body_bytes=4096, actor_requests=0)
    with serving(settings_of(path, limits=limits)) as served:
        is_error, told = _called(served, "mutate", {"query": ADD, "params": {"name": "q"}})
        assert is_error
        assert (told["status"], told["code"]) == (429, "too_many_requests")
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"x": "y" * 5000}}
        assert served.post("/mcp", message).status_code == 413
