"""What an agent is told when it connects."""

from __future__ import annotations

from omnigraph.mcp.session import Session

INSTRUCTIONS = """\
OmniGraph is a typed property graph with branches, commits and merges.
Begin with describe_type (all types, then one of them) and find (entities by words or meaning). entity_get, neighbours and \
paths look around without a query language; query runs .gq queries: read omnigraph://best-practices/queries before, and \
check a text with lint.
Write on a branch: branches_create, mutate or load, diff, merge_preview. A merge into main is for whoever has the right.
Errors say what to do in `next`. A cut answer has `truncated` with the arguments that give the rest.
"""


def about(session: Session) -> str:
    """The instructions of a session: what every agent is told, and how this one is confined."""
    if session.read_only:
        return f"{INSTRUCTIONS}This session reads only.\n"
    if session.branch is not None:
        return (
            f"{INSTRUCTIONS}This session writes to branch '{session.branch}' only, which is made by the first write.\n"
        )
    return INSTRUCTIONS
