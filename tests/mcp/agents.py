"""Agents of the tests: the official client of the protocol, over each transport, with plain calls."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
from anyio.from_thread import BlockingPortal, start_blocking_portal
from mcp import Client
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from tests.server.serving import TOKEN


@dataclass(frozen=True)
class Told:
    """The answer of a tool: whether it is an error, its JSON, and how many bytes it had."""

    is_error: bool
    shape: dict[str, Any]
    size: int


@dataclass
class Agent:
    """A connected agent."""

    client: Client
    portal: BlockingPortal

    def call(self, tool: str, /, **arguments: Any) -> Told:
        """Call a tool."""
        result = self.portal.call(lambda: self.client.call_tool(tool, arguments))
        (content,) = result.content
        assert content.type == "text"
        assert result.structured_content is None
        return Told(bool(result.is_error), json.loads(content.text), len(content.text.encode()))

    def ask(self, tool: str, /, **arguments: Any) -> dict[str, Any]:
        """The answer of a call that succeeds."""
        told = self.call(tool, **arguments)
        assert not told.is_error, told.shape
        return told.shape

    def refused(self, tool: str, /, **arguments: Any) -> dict[str, Any]:
        """The error of a call that fails; it always says what to do next."""
        told = self.call(tool, **arguments)
        assert told.is_error, told.shape
        assert told.shape["error"]
        assert told.shape["next"]
        return told.shape

    def tools(self) -> dict[str, Any]:
        """The tools by name."""
        return {tool.name: tool for tool in self.portal.call(self.client.list_tools).tools}

    def read(self, uri: str) -> str:
        """The text of a resource."""
        (content,) = self.portal.call(lambda: self.client.read_resource(uri)).contents
        text: str = getattr(content, "text", "")
        return text


@contextmanager
def on_stdio(*arguments: str, env: dict[str, str] | None = None) -> Iterator[Agent]:
    """An agent that starts `omnigraph mcp` with these arguments."""
    command = StdioServerParameters(
        command=sys.executable, args=["-m", "omnigraph", "mcp", *map(str, arguments)], env=env
    )
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(Client(command)) as client:
        yield Agent(client, portal)


@contextmanager
def over_http(url: str, token: str = TOKEN, query: str = "", mode: str = "auto") -> Iterator[Agent]:
    """An agent of the graph `people` of a server."""
    headers = {"Authorization": f"Bearer {token}"}
    with start_blocking_portal() as portal:
        made = portal.call(_http_client, headers)
        transport = streamable_http_client(f"{url}/graphs/people/mcp{query}", http_client=made)
        with portal.wrap_async_context_manager(Client(transport, mode=mode)) as client:
            yield Agent(client, portal)
        portal.call(made.aclose)


async def _http_client(headers: dict[str, str]) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(headers=headers, timeout=60)


def queries_beside(path: Path) -> Path:
    """The folder of stored queries that the server of the tests has."""
    return path.parent / "queries"
