"""The operation for agents: the Model Context Protocol over HTTP, one message per request."""

from __future__ import annotations

from starlette.types import Scope

from omnigraph.mcp.session import about
from omnigraph.server import bodies
from omnigraph.server.agents import PoolHost, load_protocol, session_of
from omnigraph.server.operation import JSON, Answer, Call, Operation, no_needs, no_work
from omnigraph.server.state import ServerState


def operations(state: ServerState) -> list[Operation]:
    """The operation for agents. The needed permissions depend on the tool that a message calls, and are checked then."""

    async def converse(call: Call, scope: Scope) -> Answer:
        protocol = await load_protocol()
        session = session_of(call, state)
        host = PoolHost(call, state, session)
        status, headers, content = await protocol.exchange(host, about(session), scope, call.content)
        kept = {
            name: value for name, value in headers.items() if name.lower() not in ("content-length", "content-type")
        }
        return Answer(content, headers.get("content-type"), status, kept)

    return [
        Operation(
            "mcp",
            "POST",
            "/mcp",
            "The Model Context Protocol for agents (streamable HTTP): one JSON-RPC message, and its answer.",
            no_work,
            no_needs,
            parameters=bodies.AgentParameters,
            body=bodies.AgentMessage,
            answers=JSON,
            statuses=(202, 406),
            conversation=converse,
        )
    ]
