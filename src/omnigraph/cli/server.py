"""`omnigraph-server`: serves the applied revision of a cluster, and takes no other flags than that needs."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click

from omnigraph.cli.main import run


@click.command()
@click.option("--cluster", metavar="DIR|URI", required=True, help="The cluster whose applied revision is served.")
@click.option("--bind", metavar="HOST:PORT", default="127.0.0.1:8080", show_default=True, help="The address.")
@click.option("--unauthenticated", is_flag=True, help="Need no token: whoever reaches it may do everything.")
@click.option("--require-all-graphs", is_flag=True, help="Do not start when a graph can not be served.")
def server(cluster: str, bind: str, unauthenticated: bool, require_all_graphs: bool) -> None:
    """Serve the applied revision of a cluster over HTTP."""
    flags = ["--unauthenticated"] * unauthenticated + ["--require-all-graphs"] * require_all_graphs
    sys.exit(run(["serve", "--cluster", cluster, "--bind", bind, *flags]))


def main(arguments: Sequence[str] | None = None) -> None:
    """The entry point of the installed command."""
    server.main(arguments, prog_name="omnigraph-server")
