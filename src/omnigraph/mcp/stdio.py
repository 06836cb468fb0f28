"""Serving one agent on standard input and output. Calls run in threads, a few at a time; the end of the input ends the process.
When the agent cancels a call, a read ends soon and a write that was begun is finished.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

import anyio
import anyio.to_thread
from mcp.server.stdio import stdio_server

from omnigraph.mcp.protocol import protocol_server
from omnigraph.mcp.resources import Page, read_page
from omnigraph.mcp.session import Session, about
from omnigraph.mcp.tool import Tool
from omnigraph.mcp.tools import Outcome, call_tool, tools_of
from omnigraph.query.limits import Cancel

_Value = TypeVar("_Value")
#: How many calls of an agent run at the same time.
_THREADS = 8


class ThreadHost:
    """Runs the calls of one session in threads, each with a `Cancel` for its reads."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._limiter = anyio.CapacityLimiter(_THREADS)

    async def tools(self) -> list[Tool]:
        return await self._run(lambda session: list(tools_of(session).values()))

    async def call(self, name: str, arguments: Mapping[str, Any]) -> Outcome:
        return await self._run(lambda session: call_tool(session, name, arguments))

    async def read(self, uri: str) -> tuple[Page, str] | Outcome:
        return await self._run(lambda session: read_page(session, uri))

    async def _run(self, work: Callable[[Session], _Value]) -> _Value:
        """The result of a call in a thread; the thread is awaited even when the agent cancels the call."""
        cancel = Cancel()
        session = replace(self._session, cancel=cancel)
        async with anyio.create_task_group() as beside:
            beside.start_soon(_cancel_at_end, cancel)
            value = await anyio.to_thread.run_sync(lambda: work(session), limiter=self._limiter)
            beside.cancel_scope.cancel()
        return value


async def _cancel_at_end(cancel: Cancel) -> None:
    """Call `cancel` when this task ends, which happens at once when the agent cancels the call."""
    try:
        await anyio.sleep_forever()
    finally:
        cancel.cancel()


def run_stdio(session: Session) -> None:
    """Serve one agent until it closes the input."""

    async def serve() -> None:
        server = protocol_server(ThreadHost(session), about(session))
        async with stdio_server() as (received, sent):
            await server.run(received, sent, server.create_initialization_options())

    anyio.run(serve)
