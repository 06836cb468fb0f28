"""Stored queries of a server, called by their name; `query`, `mutate` and `alias` end here."""

from __future__ import annotations

from typing import Any

from omnigraph.cli.addressing import Stored, Target, open_graph
from omnigraph.cli.read_formats import ReadOutput, print_change, print_read, table_style
from omnigraph.cli.settings import Settings
from omnigraph.cli.sources import QueryCall, by_name_needs_a_server
from omnigraph.commit.model import MAIN


def run_stored(
    settings: Settings,
    target: Target,
    call: QueryCall,
    *,
    format: str,
    branch: str | None = None,
    snapshot: str | None = None,
    **asked: Any,
) -> None:
    """Call a stored query and print its rows, or what it did. `asked`: further options of `RemoteGraph.invoke`."""
    if isinstance(target, Stored):
        raise by_name_needs_a_server(call.name)
    from omnigraph.query.result import Result

    graph = open_graph(target, "rw")
    result = graph.invoke(call.name, call.params, branch=branch, snapshot=snapshot, **asked)
    if isinstance(result, Result):
        shown = None if snapshot is not None else branch or MAIN
        print_read(ReadOutput(call.name, shown, snapshot, result), format, table_style(settings))
    else:
        print_change(branch or MAIN, call.name, graph.actor, result, as_json=format in ("json", "jsonl"))
