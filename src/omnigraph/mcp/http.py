"""One stateless exchange of the protocol over HTTP: a message in, its answer out.
Every worker process of a server can answer every message; each message has its own token, actor and permissions.
"""

from __future__ import annotations

import logging
from typing import Any

import anyio
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.types import Message, Scope

from omnigraph.mcp.protocol import Host, protocol_server

# The SDK would log the beginning and the end of each exchange; the server logs each request itself.
logging.getLogger("mcp").setLevel(logging.WARNING)


async def exchange(host: Host, instructions: str, scope: Scope, content: bytes) -> tuple[int, dict[str, str], bytes]:
    """The status, headers and body of the protocol's answer to a message."""
    server: Server[Any] = protocol_server(host, instructions)
    manager = StreamableHTTPSessionManager(
        server, json_response=True, stateless=True, max_request_body_size=len(content) + 1
    )
    status, body = 500, bytearray()
    headers: dict[str, str] = {}
    waiting: list[Message] = [{"type": "http.request", "body": content, "more_body": False}]

    async def receive() -> Message:
        if not waiting:
            # The dispatcher handles disconnects.
            await anyio.sleep_forever()
        return waiting.pop()

    async def send(message: Message) -> None:
        nonlocal status
        if message["type"] == "http.response.start":
            status = message["status"]
            headers.update({name.decode("latin-1"): value.decode("latin-1") for name, value in message["headers"]})
        else:
            body.extend(message.get("body", b""))

    async with manager.run():
        await manager.handle_request(scope, receive, send)
    return status, headers, bytes(body)
