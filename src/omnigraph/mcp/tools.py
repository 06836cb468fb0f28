"""All tools of a session, and calling one: arguments, permission, work, and an answer of bounded size."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from omnigraph.errors import NotFound, OmnigraphError
from omnigraph.language.source import did_you_mean, nearest_name
from omnigraph.mcp import exploring, finding, reading, writing
from omnigraph.mcp.answers import bounded, failure_text
from omnigraph.mcp.session import Session
from omnigraph.mcp.stored import stored_tools
from omnigraph.mcp.tool import Tool

_log = logging.getLogger(__name__)

#: The tools that every graph has, by name.
TOOLS: dict[str, Tool] = {
    tool.name: tool for tool in (*reading.TOOLS, *writing.TOOLS, *exploring.TOOLS, *finding.TOOLS)
}


@dataclass(frozen=True)
class Outcome:
    """The outcome of a call: the text of the answer, and whether it is an error."""

    text: str
    is_error: bool = False


def tools_of(session: Session) -> dict[str, Tool]:
    """The tools that a session may use, by name: the tools of every graph, then the stored queries of this graph."""
    known = {name: tool for name, tool in TOOLS.items() if not (tool.writes and session.read_only)}
    return known | stored_tools(session, TOOLS)


def find_tool(session: Session, name: str) -> Tool:
    """A tool by its name. Tools that write are found in read-only sessions too, so that their refusal gives the reason."""
    if name in TOOLS:
        return TOOLS[name]
    found = stored_tools(session, TOOLS)
    if name not in found:
        raise NotFound(f"there is no tool '{name[:80]}'{did_you_mean(nearest_name(name, [*TOOLS, *found]))}")
    return found[name]


def allow(session: Session, tool: Tool, asked: Any) -> None:
    """Raise `Denied` unless the session has the permissions that the call needs."""
    for need in tool.needs(session, asked):
        session.check(need)


def answer(session: Session, tool: Tool, asked: Any) -> Outcome:
    """Do the work of a tool, after the permission check."""
    return Outcome(bounded(tool.work(session, asked), session.answer_bytes))


def failed(error: Exception, session: Session | None, limit: int) -> Outcome:
    """An error as the answer of a tool; an unexpected error is logged, and reported without its details."""
    if not isinstance(error, OmnigraphError):
        _log.error("a tool failed", exc_info=error)
    return Outcome(failure_text(error, session, limit), is_error=True)


def call_tool(session: Session, name: str, arguments: Mapping[str, Any]) -> Outcome:
    """Carry out a call in this thread; errors become outcomes."""
    try:
        tool = find_tool(session, name)
        asked = tool.read(arguments)
        allow(session, tool, asked)
        return answer(session, tool, asked)
    except Exception as error:
        return failed(error, session, session.answer_bytes)
