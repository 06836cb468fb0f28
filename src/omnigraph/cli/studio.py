"""`omnigraph studio`: the web page of one graph, on this machine."""

from __future__ import annotations

import logging
import os

import click

from omnigraph.cli import output
from omnigraph.cli.commands import Command
from omnigraph.cli.scope import LOCAL
from omnigraph.errors import BadRequest


@click.command(cls=Command, scope=LOCAL)
@click.argument("graph", metavar="[NAME=]GRAPH")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=0, metavar="N", help="The port; a free one unless given."
)
@click.option("--no-open", is_flag=True, help="Only print the address; open no browser.")
@click.option("--read-only", is_flag=True, help="Change nothing.")
def studio(graph: str, port: int, no_open: bool, read_only: bool) -> None:
    """Look at one graph in the browser.

    Serves the graph and its web page to this machine, until it is interrupted. The printed address holds a key that works once;
    further tabs ask for the token.
    """
    from omnigraph.server import settings as told
    from omnigraph.server.process import run
    from omnigraph.server.studio import is_built
    from omnigraph.server.tokens import new_token

    if not is_built():
        raise BadRequest(
            "this installation has no Studio: run `python scripts/build_studio.py` in a checkout, or install a wheel; "
            "`omnigraph serve` works without it"
        )
    token, key = new_token(), new_token()
    settings = told.Settings(
        graphs=(told.graph_source(graph),),
        port=port,
        one_time_token=token,
        read_only=read_only,
        drain_seconds=5,
        studio=True,
        studio_key=key,
        limits=told.limits_of_environment(os.environ, told.Limits()),
    )

    def announce(address: str) -> None:
        # Who sits at the terminal wants the address and what goes wrong, not a line for each request of the page.
        logging.getLogger("omnigraph").setLevel(logging.WARNING)
        place = f"http://{address}/#key={key}"
        output.note(f"Further tabs need this token: {token}")
        output.line(place)
        output.flush()
        if not no_open:
            _open(place)

    run(settings, announce)


def _open(address: str) -> None:
    """Open the browser of this machine; where there is none, the printed address is enough."""
    import threading
    import webbrowser

    threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()
