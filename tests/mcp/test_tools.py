"""Every tool and every resource, over every transport, by the official client."""

from __future__ import annotations

from typing import Any

import pytest
from mcp.shared.exceptions import MCPError

import omnigraph as og
from omnigraph.mcp.resources import PAGES
from omnigraph.mcp.tools import TOOLS
from tests.mcp.agents import Agent
from tests.mcp.conftest import Connect
from tests.server.serving import ADD, ALL, SCHEMA

CONTRACT = [
    "health",
    "snapshot",
    "query",
    "schema_get",
    "branches_list",
    "graphs_list",
    "commits_list",
    "commits_get",
    "commits_changes",
    "changes_poll",
    "mutate",
    "load",
    "branches_create",
    "branches_delete",
    "branches_merge",
]
OWN = [
    "describe_type",
    "find",
    "entity_get",
    "neighbours",
    "paths",
    "diff",
    "merge_preview",
    "explain",
    "lint",
    "functions",
]
STORED = ["people", "one", "add_person", "near"]


def test_all_tools_are_listed_with_their_schemas(reader: Agent) -> None:
    tools = reader.tools()
    assert set(tools) == {*CONTRACT, *OWN, *STORED}
    assert set(TOOLS) == {*CONTRACT, *OWN}
    for name, tool in tools.items():
        assert tool.description, name
        assert tool.input_schema["type"] == "object"
        assert "$ref" not in str(tool.input_schema)
        writes = name in ("mutate", "load", "branches_create", "branches_delete", "branches_merge", "add_person")
        assert tool.annotations.read_only_hint is not writes
        for about in tool.input_schema["properties"].values():
            assert "description" in about or name in STORED, name
    assert tools["one"].input_schema["required"] == ["name"]
    near = tools["near"].input_schema["properties"]
    assert near["v"] == {"type": "array", "items": {"type": "number"}, "minItems": 3, "maxItems": 3}
    assert near["days"] == {"type": "array", "items": {"type": "string", "format": "date"}}
    assert tools["people"].description == "All people. Call it first. (stored query)"


#: Each tool that reads: arguments, and a part of the answer.
READS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "health": ({}, {"status": "ok", "version": og.__version__, "internal_schema_version": 4}),
    "snapshot": ({}, {"graph_branch": "main", "graph_manifest_version": 2}),
    "query": (
        {"query": ALL},
        {
            "query_name": "q",
            "target": {"branch": "main", "snapshot": None},
            "row_count": 2,
            "columns": ["p.name", "p.age"],
            "rows": [{"p.name": "ada", "p.age": 36}, {"p.name": "ben", "p.age": 25}],
        },
    ),
    "schema_get": ({}, {"schema_source": SCHEMA}),
    "branches_list": ({}, {"branches": ["main"]}),
    "commits_list": ({"limit": 1}, {}),
    "changes_poll": ({"start": "now"}, {"blocks": [], "caught_up": True}),
    "describe_type": ({"type": "Person"}, {"kind": "node", "name": "Person", "count": 2, "key": ["name"]}),
    "find": ({"text": "ada"}, {"columns": ["type", "id", "found_by", "score", "properties"]}),
    "entity_get": ({"type": "Person", "id": "ben"}, {}),
    "neighbours": (
        {"type": "Person", "id": "ada"},
        {"columns": ["edge", "direction", "type", "id", "label", "edge_id", "edge_properties"]},
    ),
    "paths": ({"from_type": "Person", "from_id": "ben", "to_type": "Doc", "to_id": "hello"}, {"length": 2}),
    "diff": ({"before": "main", "after": "main"}, {"changes": [], "counts": []}),
    "explain": ({"query": ALL}, {"analyzed": False}),
    "lint": ({"query": ALL}, {"status": "ok", "queries_processed": 1}),
    "functions": ({"name": "lower"}, {}),
    "people": ({}, {"query_name": "people", "row_count": 2}),
    "one": ({"name": "ada", "format": "table"}, {"columns": ["who"], "rows": [["ada"]]}),
}


@pytest.mark.parametrize("name", READS)
def test_a_tool_that_reads(reader: Agent, name: str) -> None:
    arguments, expected = READS[name]
    told = reader.ask(name, **arguments)
    assert expected.items() <= told.items()


def test_what_tools_tell_about_entities(reader: Agent) -> None:
    assert reader.ask("find", text="ada")["rows"][0][:3] == ["Person", "ada", "id, words in name"]
    assert reader.ask("find", text="adda", types=["Person"])["rows"][0][1] == "ada"
    assert reader.ask("find", text="zzzz")["rows"] == []
    assert reader.ask("entity_get", type="Person", id="ben")["entity"]["age"] == 25
    rows = reader.ask("neighbours", type="Person", id="ada")["rows"]
    assert [row[:5] for row in rows] == [
        ["Knows", "out", "Person", "ben", "ben"],
        ["Wrote", "out", "Doc", "hello", "hello"],
    ]
    (path,) = reader.ask("paths", from_type="Person", from_id="ben", to_type="Doc", to_id="hello")["paths"]
    assert [step.get("edge") or step["id"] for step in path] == ["ben", "Knows", "ada", "Wrote", "hello"]
    assert (
        reader.ask("paths", from_type="Person", from_id="ben", to_type="Doc", to_id="hello", direction="out")["paths"]
        == []
    )
    assert reader.ask("paths", from_type="Doc", from_id="empty", to_type="Doc", to_id="hello")["notes"]
    described = reader.ask("describe_type", type="Person")
    assert {"name": "age", "type": "I32?"} in described["properties"]
    assert described["edges"] == ["(Person) knows (Person): 1", "(Person) wrote (Doc): 1"]
    assert described["samples"][1] == {"id": "ben", "name": "ben", "age": 25}
    edge = reader.ask("describe_type", type="Knows")
    assert (edge["from"], edge["to"], edge["written"]) == ("Person", "Person", "$a knows $b")
    assert edge["samples"][0].keys() == {"id", "src", "dst", "since"}
    assert [row[:3] for row in reader.ask("describe_type")["rows"]][:2] == [["node", "Doc", 2], ["node", "Person", 2]]


def test_history(reader: Agent) -> None:
    (newest,) = reader.ask("commits_list", limit=1)["commits"]
    token = reader.ask("commits_list", limit=1)["next_page_token"]
    assert (
        reader.ask("commits_list", limit=1, pageToken=token)["commits"][0]["graph_commit_id"]
        == newest["parent_commit_id"]
    )
    assert reader.ask("commits_get", commit_id=newest["graph_commit_id"]) == newest
    changed = reader.ask("commits_changes", commit_id=newest["graph_commit_id"], kind=["edge"], limit=1)
    assert [change["type"]["name"] for change in changed["changes"]] == ["Knows"]
    assert changed["next_page_token"]
    polled = reader.ask("changes_poll", start="beginning", type=["Person"])
    assert sum(len(block["changes"]) for block in polled["blocks"]) == 2
    assert reader.ask("query", query=ALL, snapshot=newest["graph_commit_id"])["row_count"] == 2


def test_resources(reader: Agent) -> None:
    listed = reader.portal.call(reader.client.list_resources).resources
    assert {str(resource.uri) for resource in listed} == set(PAGES)
    assert reader.read("omnigraph://schema") == SCHEMA
    assert reader.read("omnigraph://branches") == '["main"]'
    for name in ("index", "data", "queries", "schema", "search"):
        assert reader.read(f"omnigraph://best-practices/{name}").startswith("# ")
    with pytest.raises(MCPError, match="there is no resource 'omnigraph://nothing'"):
        reader.read("omnigraph://nothing")
    with pytest.raises(MCPError):
        reader.read("file:///etc/passwd")


def test_writes_are_the_agents(connect: Connect) -> None:
    with connect() as (agent, path):
        done = agent.ask(
            "mutate", query=ADD, params={"name": "cleo", "age": 3}, message="cleo is new", idempotency_key="k1"
        )
        again = agent.ask(
            "mutate", query=ADD, params={"name": "cleo", "age": 3}, message="cleo is new", idempotency_key="k1"
        )
        assert again == done
        assert (done["affected_nodes"], done["affected_edges"], done["branch"], done["query_name"]) == (
            1,
            0,
            "main",
            "add",
        )
        assert done["idempotency_key"] == "k1"
        assert agent.ask("mutate", query='query d() { delete Person where name = "nobody" }')["commit"] is None
        agent.ask("add_person", name="dov")
        loaded = agent.ask("load", data='{"type":"Person","data":{"name":"eve"}}\n', branch="topic", **{"from": "main"})
        assert (loaded["branch_created"], loaded["total_entities"], loaded["mode"]) == (True, 1, "merge")
        made = agent.ask("branches_create", name="other")
        assert (made["name"], made["from"]) == ("other", "main")
        assert agent.ask("branches_delete", name="other")["name"] == "other"
        preview = agent.ask("merge_preview", source="topic")
        assert (preview["outcome"], preview["inserted"], preview["conflicts"]) == ("fast_forward", 1, [])
        merged = agent.ask("branches_merge", source="topic", delete_branch=True)
        assert (merged["outcome"], merged["branch_deleted"]) == ("fast_forward", True)
        with og.open(path, "ro") as graph:
            names = [row["p.name"] for row in graph.query(ALL)]
            assert names == ["ada", "ben", "cleo", "dov", "eve"]
            assert graph.branches() == ["main"]
            actors = {commit.actor for commit in graph.commits()[:4]}
            assert actors == {done["actor_id"]}
            assert done["actor_id"]
            assert graph.commit(done["commit"]["graph_commit_id"]).message == "cleo is new"
            # The merge, the load, and the two mutations: each commit says what it is about.
            messages = [commit.message for commit in graph.commits()[:4]]
            assert messages[2:] == ["add_person (MCP)", "cleo is new"]
            assert all(messages)
