"""`omnigraph.connect`: the way to a graph of a server."""

from __future__ import annotations

import os

from omnigraph.client.graph import RemoteGraph
from omnigraph.client.transport import Transport
from omnigraph.errors import BadRequest


def connect(url: str, graph: str | None = None, *, token: str | None = None, verify: bool | str = True) -> RemoteGraph:
    """A handle of a served graph, with the verbs, results and errors of `open`.

    `graph`: its id; the only one of the server unless given. `token`: the bearer token; `OMNIGRAPH_BEARER_TOKEN` unless given.
    `verify`: whether certificates are checked, or the file of the authorities that are trusted.
    Works in a `with` statement, which closes its connections at the end.
    """
    token = token if token is not None else os.environ.get("OMNIGRAPH_BEARER_TOKEN") or None
    if graph is None:
        graph = _only_graph(url, token, verify)
    connected = RemoteGraph(Transport(url, graph, token, verify))
    # A wrong address, token or id is told here, not by the first verb.
    connected.head()
    return connected


def _only_graph(url: str, token: str | None, verify: bool | str) -> str:
    flat = Transport(url, "", token, verify)
    try:
        listed = [entry["graph_id"] for entry in flat.flat("/graphs")["graphs"]]
    finally:
        flat.close()
    if len(listed) != 1:
        raise BadRequest(f"{url} serves {len(listed)} graphs ({', '.join(listed)}); name one with graph=")
    return str(listed[0])
