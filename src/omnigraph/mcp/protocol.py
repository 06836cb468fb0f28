"""The Model Context Protocol for the tools, with its official SDK.
The SDK takes a second to load, so this module is imported only when the protocol is used.
A `Host` decides where the work runs: in a thread of a process that serves one agent, or in the pools of a server.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Protocol

import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError

from omnigraph import __version__
from omnigraph.mcp.resources import PAGES, Page
from omnigraph.mcp.tool import Tool
from omnigraph.mcp.tools import Outcome

#: The protocol's error codes for a missing resource and for an unreadable resource.
_NOT_FOUND, _FAILED = -32002, -32603


class Host(Protocol):
    """Runs the requests of an agent."""

    async def tools(self) -> list[Tool]:
        """The tools that the agent sees."""

    async def call(self, name: str, arguments: Mapping[str, Any]) -> Outcome:
        """One call of a tool; it never raises."""

    async def read(self, uri: str) -> tuple[Page, str] | Outcome:
        """One resource and its text, or an error."""


def protocol_server(host: Host, instructions: str) -> Server[Any]:
    """A server of the protocol that asks a host."""

    async def list_tools(context: Any, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[_listed(tool) for tool in await host.tools()])

    async def call_tool(context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        outcome = await host.call(params.name, params.arguments or {})
        content: list[types.ContentBlock] = [types.TextContent(type="text", text=outcome.text)]
        return types.CallToolResult(content=content, is_error=outcome.is_error)

    async def list_resources(context: Any, params: types.PaginatedRequestParams | None) -> types.ListResourcesResult:
        return types.ListResourcesResult(
            resources=[
                types.Resource(
                    name=page.uri.removeprefix("omnigraph://"),
                    uri=page.uri,
                    title=page.title,
                    description=page.description,
                    mime_type=page.media_type,
                )
                for page in PAGES.values()
            ]
        )

    async def read_resource(context: Any, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        found = await host.read(str(params.uri))
        if isinstance(found, Outcome):
            told = json.loads(found.text)
            code = _NOT_FOUND if told.get("code") == "not_found" else _FAILED
            raise MCPError(code=code, message=told["error"], data=told)
        page, text = found
        content = types.TextResourceContents(uri=str(params.uri), mime_type=page.media_type, text=text)
        return types.ReadResourceResult(contents=[content])

    return Server(
        "omnigraph",
        version=__version__,
        title="OmniGraph",
        instructions=instructions,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources,
        on_read_resource=read_resource,
    )


def _listed(tool: Tool) -> types.Tool:
    return types.Tool(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=dict(tool.schema),
        annotations=types.ToolAnnotations(
            title=tool.title,
            read_only_hint=not tool.writes,
            destructive_hint=tool.destroys,
            idempotent_hint=not tool.writes,
            open_world_hint=False,
        ),
    )
