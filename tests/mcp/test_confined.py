"""A confined agent: whatever tool and argument it tries, nothing but its own branch changes."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.mcp.tools import TOOLS
from tests.mcp.agents import Agent
from tests.mcp.conftest import Connect
from tests.server.serving import ADD, ALL, assert_error, serving, settings_of

ROW = '{"type":"Person","data":{"name":"zoe"}}\n'
#: Every way to write elsewhere than to the branch agent/x, by tool and arguments.
ATTEMPTS: list[tuple[str, dict[str, Any]]] = [
    *(
        ("mutate", {"query": ADD, "params": {"name": "z"}, "branch": name})
        for name in ("main", "other", " main", "main ", "agent/y", "")
    ),
    *(("add_person", {"name": "z", "branch": name}) for name in ("main", "other", "agent")),
    ("load", {"data": ROW, "branch": "main"}),
    ("load", {"data": ROW, "branch": "main", "mode": "overwrite"}),
    ("load", {"data": ROW, "branch": "other"}),
    ("load", {"data": ROW, "branch": "fresh", "from": "main"}),
    ("branches_create", {"name": "fresh"}),
    ("branches_create", {"name": "agent/y", "from": "agent/x"}),
    ("branches_delete", {"name": "main"}),
    ("branches_delete", {"name": "other"}),
    ("branches_merge", {"source": "agent/x"}),
    ("branches_merge", {"source": "agent/x", "target": "main"}),
    ("branches_merge", {"source": "agent/x", "target": "other"}),
    ("branches_merge", {"source": "other", "target": "main"}),
    ("branches_merge", {"source": "other", "target": "agent/x", "delete_branch": True}),
]


def _heads(path: Path) -> dict[str, str]:
    with og.open(path, "ro") as graph:
        return {name: graph.head(name).id for name in graph.branches() if name != "agent/x"}


def test_every_tool_that_writes_is_attempted() -> None:
    assert {name for name, tool in TOOLS.items() if tool.writes} == {name for name, _ in ATTEMPTS} - {"add_person"}


def test_a_confined_agent_writes_nowhere_else(connect: Connect) -> None:
    with connect(branch="agent/x") as (agent, path):
        with og.open(path) as graph:
            graph.create_branch("other")
        before = _heads(path)
        _refuse_all(agent)
        assert _heads(path) == before
        # Reading main is what it does until it has written; the first write makes the branch.
        assert agent.ask("query", query=ALL)["target"]["branch"] == "main"
        assert "agent/x" not in agent.ask("branches_list")["branches"]
        assert agent.ask("mutate", query=ADD, params={"name": "zoe"})["branch"] == "agent/x"
        assert agent.ask("query", query=ALL)["target"]["branch"] == "agent/x"
        assert agent.ask("add_person", name="yan")["branch"] == "agent/x"
        assert agent.ask("load", data=ROW.replace("zoe", "xi"))["branch"] == "agent/x"
        assert agent.ask("branches_merge", source="other", target="agent/x")["outcome"] == "already_up_to_date"
        assert agent.ask("merge_preview")["inserted"] == 3
        _refuse_all(agent)
        assert _heads(path) == before
        assert agent.ask("branches_delete", name="agent/x")["name"] == "agent/x"
        # A load makes the branch together with its rows.
        assert agent.ask("load", data=ROW)["branch_created"]
        assert _heads(path) == before


def _refuse_all(agent: Agent) -> None:
    for tool, arguments in ATTEMPTS:
        told = agent.refused(tool, **arguments)
        assert (told["status"], told["code"]) == (403, "forbidden"), (tool, arguments, told)
        assert "agent/x" in told["error"]


def test_a_read_only_agent(connect: Connect) -> None:
    with connect(read_only=True) as (agent, path):
        assert not [name for name, tool in agent.tools().items() if not tool.annotations.read_only_hint]
        before = _heads(path)
        for tool, arguments in ATTEMPTS:
            if tool == "add_person":
                assert agent.refused(tool, **arguments)["status"] == 404
            else:
                told = agent.refused(tool, **arguments)
                assert "read-only" in told["error"], told
        assert agent.ask("query", query=ALL)["row_count"] == 2
        assert _heads(path) == before


@pytest.mark.parametrize("name", ["main", "a//b", "-x", "a b"])
def test_a_branch_that_confines_nothing_is_refused(graph_template: Path, name: str) -> None:
    from omnigraph.cli.main import run

    assert run(["mcp", str(graph_template), "--branch", name]) != 0


def test_a_branch_that_confines_nothing_is_refused_over_http(graph_template: Path, tmp_path: Path) -> None:
    path = Path(shutil.copytree(graph_template, tmp_path / "people.omni"))
    with serving(settings_of(path)) as served:
        for name in ("main", "../x", "a b", "x..y"):
            message = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
            answer = served.http.post("/graphs/people/mcp", params={"branch": name}, json=message)
            assert_error(answer, 400, "bad_request")
