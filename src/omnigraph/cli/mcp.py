"""`omnigraph mcp`: the tools of a graph for an agent, on standard input and output."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

import click

from omnigraph.cli.addressing import Served, Stored, Target, resolve
from omnigraph.cli.commands import Command
from omnigraph.cli.options import positional_uri
from omnigraph.cli.scope import WRITE
from omnigraph.cli.settings import Settings
from omnigraph.errors import BadRequest

if TYPE_CHECKING:
    from omnigraph.mcp.session import Confined, Session
    from omnigraph.mcp.stored import Stored as StoredQuery

#: The default actor.
AGENT = "agent"
#: The default timeout of reads by tools in seconds, the same as for requests to a server.
READ_SECONDS = 30.0


@click.command(cls=Command, scope=WRITE)
@positional_uri
@click.option("--read-only", is_flag=True, help="Offer only tools that read, and refuse every write.")
@click.option("--branch", metavar="NAME", help="Write to this branch only; the first write makes it from main.")
@click.option(
    "--queries",
    "places",
    multiple=True,
    metavar="PATH",
    help="A file or folder of .gq queries that become tools; may be given again.",
)
@click.option(
    "--max-bytes",
    type=click.IntRange(2048, 4 * 1024 * 1024),
    metavar="N",
    help="The largest answer of a tool; 32768 unless given.",
)
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True, max=86_400),
    metavar="SECONDS",
    help="The longest time of a tool that reads; 30 unless given.",
)
@click.pass_context
def mcp(
    context: click.Context,
    uri: str | None,
    read_only: bool,
    branch: str | None,
    places: tuple[str, ...],
    max_bytes: int | None,
    timeout: float | None,
) -> None:
    """Offer the tools of a graph to an agent.

    Speaks the Model Context Protocol on standard input and output, for a client that starts this command: for a graph at URI, or
    for a served one with --server and --graph. Ends when the input ends.
    """
    from omnigraph.mcp.session import ANSWER_BYTES, check_confinement

    if branch is not None:
        check_confinement(branch)
    settings = context.ensure_object(Settings)
    target = resolve(context, uri)
    session = _session(target, settings, read_only, branch, max_bytes or ANSWER_BYTES, places)
    session.timeout = timeout or READ_SECONDS
    from omnigraph.mcp.stdio import run_stdio

    run_stdio(session)


def _session(
    target: Target, settings: Settings, read_only: bool, branch: str | None, max_bytes: int, places: tuple[str, ...]
) -> Session:
    from omnigraph.mcp.session import Confined, Session

    guard = Confined(branch, read_only)
    if isinstance(target, Stored):
        from omnigraph.graph.entry import open
        from omnigraph.graph.stored import read_stored
        from omnigraph.mcp.stored import stored_from
        from omnigraph.wire.shapes import stored_query_output

        actor = settings.actor or AGENT
        # The graph asks the same guard again at its own door.
        graph = open(
            target.uri, "ro" if read_only else "rw", actor=actor, storage_options=target.storage_options, guard=guard
        )
        stored = {
            name: stored_from(stored_query_output(found.query), found.source)
            for name, found in read_stored(places, graph).items()
        }
        name = PurePosixPath(target.uri.rstrip("/")).name.removesuffix(".omni")
        return Session(
            graph,
            guard,
            actor,
            branch=branch,
            read_only=read_only,
            answer_bytes=max_bytes,
            stored=lambda: stored,
            graphs=lambda: [{"graph_id": name, "uri": graph.uri}],
        )
    if places:
        raise BadRequest("--queries is for a graph on storage; a server has its own stored queries")
    return _served_session(target, guard, read_only, branch, max_bytes)


def _served_session(target: Served, guard: Confined, read_only: bool, branch: str | None, max_bytes: int) -> Session:
    from omnigraph.client.graph import connect
    from omnigraph.mcp.session import Session
    from omnigraph.mcp.stored import stored_from

    graph = connect(target.server.url, target.graph, token=target.server.token)

    def stored() -> Mapping[str, StoredQuery]:
        return {told["name"]: stored_from(told) for told in graph.stored_queries()}

    return Session(
        graph,
        guard,
        names_actor=False,
        branch=branch,
        read_only=read_only,
        answer_bytes=max_bytes,
        stored=stored,
        graphs=target.server.graphs,
    )
