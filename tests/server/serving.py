"""A real server on a loopback port, in a thread of the test, and the graph it serves."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx
import uvicorn

import omnigraph as og
from omnigraph.server.app import build_app
from omnigraph.server.process import address_of, listen, server_config
from omnigraph.server.settings import GraphSource, Settings
from omnigraph.server.state import ServerState, open_state

TOKEN = "ogt_test"
SCHEMA = """
node Person {
  name: String @key
  age: I32?
  big: I64?
  born: DateTime?
  day: Date?
  tags: [String]?
}
node Doc {
  title: String @key
  content: Blob?
}
edge Knows: Person -> Person {
  since: Date?
}
edge Wrote: Person -> Doc {
  draft: Blob?
}
"""
ROWS = (
    '{"type":"Person","data":{"name":"ada","age":36,"big":9007199254740993,"born":"1815-12-10T09:00:00.000Z",'
    '"day":"1815-12-10","tags":["x","y"]}}\n'
    '{"type":"Person","data":{"name":"ben","age":25}}\n'
    '{"type":"Doc","data":{"title":"hello","content":"base64:SGVsbG8gV29ybGQ="}}\n'
    '{"type":"Doc","data":{"title":"empty"}}\n'
    '{"edge":"Knows","from":"ada","to":"ben","data":{"since":"1840-01-01"}}\n'
    '{"edge":"Wrote","from":"ada","to":"hello","data":{"id":"w1","draft":"base64:AQID"}}\n'
)
QUERIES = """
query people() @description("All people.") @instruction("Call it first.") {
  match { $p: Person } return { $p.name, $p.age } order { $p.name }
}
query one($name: String, $least: I64?) { match { $p: Person { name: $name } } return { $p.name as who } }
query add_person($name: String, $age: I32?) { insert Person { name: $name, age: $age } }
query near($v: Vector(3), $days: [Date]) { match { $p: Person } return { $p.name } }
"""
ALL = "query q() { match { $p: Person } return { $p.name, $p.age } order { $p.name } }"
ADD = "query add($name: String, $age: I32?) { insert Person { name: $name, age: $age } }"
AGE = "query age($name: String, $age: I32) { update Person set { age: $age } where name = $name }"
DROP = "query drop($name: String) { delete Person where name = $name }"


def make_graph(folder: Path) -> Path:
    """The graph of these tests, in a folder of its own."""
    path = folder / "people.omni"
    with og.init(path, SCHEMA) as graph:
        graph.load(ROWS.encode())
    return path


@dataclass(frozen=True)
class Served:
    """A running server and a client that has its token."""

    url: str
    http: httpx.Client
    state: ServerState
    path: Path

    def request(self, method: str, path: str, **options: Any) -> httpx.Response:
        """A request to a path of the graph."""
        return self.http.request(method, f"/graphs/people{path}", **options)

    def get(self, path: str, **options: Any) -> httpx.Response:
        return self.request("GET", path, **options)

    def post(self, path: str, body: Any = None, **options: Any) -> httpx.Response:
        return (
            self.request("POST", path, json=body, **options)
            if body is not None
            else self.request("POST", path, **options)
        )

    def put(self, path: str, body: Any, **options: Any) -> httpx.Response:
        return self.request("PUT", path, json=body, **options)

    def mutate(self, source: str, branch: str | None = None, **params: Any) -> dict[str, Any]:
        """Run a mutation that succeeds."""
        answer = self.post("/mutate", {"query": source, "params": params, "branch": branch})
        assert answer.status_code == 200, answer.text
        told: dict[str, Any] = answer.json()
        return told

    def head(self, branch: str = "main") -> str:
        return str(self.get("/commits", params={"branch": branch}).json()["commits"][0]["graph_commit_id"])


def settings_of(path: Path, **changes: Any) -> Settings:
    """The settings of a server of one graph, on a free port."""
    queries = path.parent / "queries"
    queries.mkdir(exist_ok=True)
    (queries / "people.gq").write_text(QUERIES)
    source = GraphSource("people", str(path), (str(queries),))
    base = Settings((source,), port=0, one_time_token=TOKEN, drain_seconds=5)
    return replace(base, **changes)


class Prompt(uvicorn.Server):
    """Ends soon after it was told to: it looks a hundred times a second instead of ten."""

    async def main_loop(self) -> None:
        tick = 0
        while not await self.on_tick(tick):
            await asyncio.sleep(0.01)
            tick += 1


@contextmanager
def serving(settings: Settings) -> Iterator[Served]:
    """Serve while the block runs."""
    listening = listen(settings)
    state = open_state(settings)
    server = Prompt(server_config(build_app(state), settings))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    address = f"http://{address_of(listening)}"
    thread.start()
    headers = {} if settings.rights == "open" else {"Authorization": f"Bearer {TOKEN}"}
    try:
        with httpx.Client(base_url=address, headers=headers, timeout=60, verify=False) as http:
            http.get("/healthz")
            yield Served(address, http, state, Path(settings.graphs[0].uri))
    finally:
        server.should_exit = True
        thread.join(30)


def without_id(answer: httpx.Response) -> dict[str, Any]:
    """An error body, with its request id checked and taken out."""
    body: dict[str, Any] = answer.json()
    assert body.pop("request_id") == answer.headers["x-request-id"]
    assert answer.headers["content-type"] == "application/json"
    return body


def assert_error(
    answer: httpx.Response, status: int, code: str | None, error: str | None = None, **details: Any
) -> None:
    """The one JSON error object: status, code, message and details, and nothing else."""
    body = without_id(answer)
    assert answer.status_code == status, body
    message = body.pop("error")
    if error is not None:
        assert error in message, message
    expected = dict(details) if code is None else {"code": code, **details}
    assert body == expected
