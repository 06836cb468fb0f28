"""Agents over HTTP. Each tool call is handled like a request: permission, admission, a thread of the readers or writers."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from omnigraph.mcp.resources import Page, read_page
from omnigraph.mcp.session import ANSWER_BYTES, Confined, Session, check_confinement
from omnigraph.mcp.stored import Stored, stored_from
from omnigraph.mcp.tool import Tool
from omnigraph.mcp.tools import Outcome, allow, answer, failed, find_tool, tools_of
from omnigraph.policy.actions import SERVER_ACTIONS, Guard, Need
from omnigraph.server.access import ReadOnly
from omnigraph.server.bodies import AgentParameters
from omnigraph.server.graphs import ServedGraph
from omnigraph.server.operation import Call
from omnigraph.server.state import ServerState
from omnigraph.wire.shapes import stored_query_output


@dataclass(frozen=True)
class _Both:
    """Checks needs by the rule of the graph, or, for needs of the server as a whole, by the server's rule."""

    graph: Guard
    server: Guard

    def check(self, actor: str | None, need: Need) -> None:
        (self.server if need.action in SERVER_ACTIONS else self.graph).check(actor, need)


def session_of(call: Call, state: ServerState) -> Session:
    """The session of one request: the confinement from its URL, in addition to the rules of the server."""
    served, asked = call.served, call.parameters
    assert served is not None
    assert isinstance(asked, AgentParameters)
    if asked.branch is not None:
        check_confinement(asked.branch)
    read_only = bool(asked.read_only) or isinstance(call.access, ReadOnly)
    return Session(
        served.graph,
        Confined(asked.branch, read_only, _Both(call.access, state.graphs.access)),
        call.actor,
        branch=asked.branch,
        read_only=read_only,
        answer_bytes=asked.max_bytes or ANSWER_BYTES,
        stored=lambda: _stored(served),
        graphs=lambda: [{"graph_id": other.graph_id, "uri": other.graph.uri} for other in state.graphs.listed()],
        key_prefix=f"{call.actor or ''}:",
        timeout=call.timeout,
        cancel=call.cancel,
        hidden=served.hidden,
    )


def _stored(served: ServedGraph) -> dict[str, Stored]:
    return {
        name: stored_from(stored_query_output(found.query), found.source)
        for name, found in sorted(served.stored.items())
    }


class PoolHost:
    """Runs the tool calls of one request in the thread pools of the server."""

    def __init__(self, call: Call, state: ServerState, session: Session) -> None:
        self._call, self._state, self._session = call, state, session

    async def tools(self) -> list[Tool]:
        return await self._state.readers.run(self._call.actor, lambda: list(tools_of(self._session).values()))

    async def call(self, name: str, arguments: Mapping[str, Any]) -> Outcome:
        try:
            return await self._answered(name, arguments)
        except Exception as error:
            return failed(error, self._session, self._session.answer_bytes)

    async def read(self, uri: str) -> tuple[Page, str] | Outcome:
        return await self._state.readers.run(self._call.actor, lambda: read_page(self._session, uri))

    async def _answered(self, name: str, arguments: Mapping[str, Any]) -> Outcome:
        session, state, actor = self._session, self._state, self._call.actor

        def allowed() -> tuple[Tool, Any]:
            tool = find_tool(session, name)
            asked = tool.read(arguments)
            allow(session, tool, asked)
            return tool, asked

        tool, asked = await state.readers.run(actor, allowed)
        if not tool.writes:
            return await state.readers.run(actor, lambda: answer(session, tool, asked), seconds=self._call.timeout)
        with state.admission.admit(actor, len(self._call.content)):
            outcome = await state.writers.run(actor, lambda: answer(session, tool, asked))
        self._call.committed = session.committed
        return outcome


async def load_protocol() -> Any:
    """The module of the protocol, imported in a thread, so that other requests go on during the first import."""

    def load() -> Any:
        from omnigraph.mcp import http

        return http

    return await asyncio.to_thread(load)
