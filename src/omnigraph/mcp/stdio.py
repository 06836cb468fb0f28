"""One agent on standard input and output. Calls run in threads, some at a time; the end of the input ends the process."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import anyio
import anyio.to_thread
from mcp.server.stdio import stdio_server

from omnigraph.mcp.instructions import about
from omnigraph.mcp.protocol import protocol_server
from omnigraph.mcp.resources import Page, read_page
from omnigraph.mcp.session import Session
from omnigraph.mcp.tool import Tool
from omnigraph.mcp.tools import Outcome, call_tool, tools_of

_Value = TypeVar("_Value")
#: Calls of one agent that run at the same time; others wait.
_THREADS = 8


class ThreadHost:
    """Carries out the calls of one session in threads. A call that was begun is finished, also when nobody waits any more."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._limiter = anyio.CapacityLimiter(_THREADS)

    async def tools(self) -> list[Tool]:
        return await self._run(lambda: list(tools_of(self._session).values()))

    async def call(self, name: str, arguments: Mapping[str, Any]) -> Outcome:
        return await self._run(lambda: call_tool(self._session, name, arguments))

    async def read(self, uri: str) -> tuple[Page, str] | Outcome:
        return await self._run(lambda: read_page(self._session, uri))

    async def _run(self, work: Callable[[], _Value]) -> _Value:
        return await anyio.to_thread.run_sync(work, limiter=self._limiter)


def run_stdio(session: Session) -> None:
    """Serve one agent until it closes the input."""

    async def serve() -> None:
        server = protocol_server(ThreadHost(session), about(session))
        async with stdio_server() as (received, sent):
            await server.run(received, sent, server.create_initialization_options())

    anyio.run(serve)
