"""An agent and a person work on a served graph: the agent finds, describes, branches, changes and previews; the person merges.

usage: agent.py

Starts a server with a policy in a temporary folder, and speaks to it with the official client of the Model Context Protocol.
The agent's token may read everything and write to branches, but not to main.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

import omnigraph as og

SCHEMA = """
node Person @description("Somebody who works here.") {
  name: String @key
  role: String?
}
node Project { name: String @key }
edge WorksOn: Person -> Project
"""
ROWS = b"""
{"type":"Person","data":{"name":"Ada","role":"engineer"}}
{"type":"Person","data":{"name":"Ben","role":"designer"}}
{"type":"Project","data":{"name":"Engine"}}
{"edge":"WorksOn","from":"Ada","to":"Engine","data":{}}
"""
CLUSTER = """
version: 1
graphs:
  team: { schema: team.pg, queries: queries/ }
policies:
  team: { file: team.policy.yaml, applies_to: [team] }
"""
QUERIES = """
query workers($project: String) @description("Who works on a project.") {
  match { $p: Person  $p worksOn $x  $x.name = $project } return { $p.name, $p.role } order { $p.name }
}
"""
POLICY = """
version: 1
groups: { agents: [claude], people: [lead] }
protected_branches: [main]
rules:
  - { id: all-read, allow: { actors: { group: agents }, actions: [read, invoke_query] } }
  - { id: agents-write, allow: { actors: { group: agents }, actions: [change], branch_scope: unprotected } }
  - { id: agents-branch, allow: { actors: { group: agents }, actions: [branch_create], target_branch_scope: unprotected } }
  - { id: people, allow: { actors: { group: people }, actions: [read, change, branch_merge, branch_delete] } }
"""
MOVE = """
query join($name: String, $role: String, $project: String) {
  insert Person { name: $name, role: $role }
  insert WorksOn { from: $name, to: $project }
}
"""


def main() -> None:
    """Prepare, serve, and let both work."""
    with tempfile.TemporaryDirectory() as folder, served(Path(folder)) as url:
        asyncio.run(work(url))
        with og.connect(url, "team", token="token-of-claude") as graph:
            last = graph.head()
            print(f"main: {last.actor} has merged, {len(graph.commits())} commits")


async def work(url: str) -> None:
    """What the agent does, and what the person does with it."""
    async with connected(url, "token-of-claude") as agent:
        found = await ask(agent, "find", text="engine")
        print("found:", [row[:2] for row in found["rows"]])
        about = await ask(agent, "describe_type", type="Person")
        print("described:", about["description"], about["edges"])
        print("stored query:", (await ask(agent, "workers", project="Engine", format="table"))["rows"])
        await ask(agent, "branches_create", name="agent/hiring")
        params = {"name": "Cleo", "role": "engineer", "project": "Engine"}
        done = await ask(agent, "mutate", query=MOVE, params=params, branch="agent/hiring", message="Cleo has joined")
        print("changed:", done["affected_nodes"], "node and", done["affected_edges"], "edge by", done["actor_id"])
        preview = await ask(agent, "merge_preview", source="agent/hiring")
        print("preview:", preview["outcome"], preview["inserted"], "inserted")
        refused = await ask(agent, "branches_merge", source="agent/hiring")
        print("refused:", refused["error"])
    async with connected(url, "token-of-lead") as person:
        merged = await ask(person, "branches_merge", source="agent/hiring", delete_branch=True)
        print("merged:", merged["outcome"], "by", merged["actor_id"])


def connected(url: str, token: str) -> Client:
    """A client of the graph with a token."""
    http = httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=60)
    return Client(streamable_http_client(f"{url}/graphs/team/mcp", http_client=http))


async def ask(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    """The answer of a tool, which is JSON in its text; of a failure the error object."""
    result = await client.call_tool(tool, arguments)
    told: dict[str, Any] = json.loads(getattr(result.content[0], "text", ""))
    return told


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """A server of a cluster with one graph, two tokens and a policy; gives its URL."""
    for name, text in {
        "cluster.yaml": CLUSTER,
        "team.pg": SCHEMA,
        "team.policy.yaml": POLICY,
        "queries/team.gq": QUERIES,
    }.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    command = [sys.executable, "-m", "omnigraph"]
    for step in (["import"], ["apply", "--as", "lead"]):
        done = [*command, "cluster", *step, "--config", str(folder)]
        subprocess.run(done, check=True, stdout=subprocess.DEVNULL)
    with og.open(folder / "graphs" / "team.omni") as graph:
        graph.load(ROWS)
    tokens = {"claude": "token-of-claude", "lead": "token-of-lead"}
    environment = os.environ | {"OMNIGRAPH_SERVER_BEARER_TOKENS_JSON": json.dumps(tokens)}
    serve = [*command, "serve", "--cluster", str(folder), "--bind", "127.0.0.1:0"]
    with subprocess.Popen(
        serve, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment
    ) as process:
        assert process.stdout is not None
        try:
            yield "http://" + process.stdout.readline().strip().removeprefix("OMNIGRAPH_LISTEN_ADDR=")
        finally:
            process.terminate()


if __name__ == "__main__":
    main()
