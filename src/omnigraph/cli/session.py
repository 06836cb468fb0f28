"""`omnigraph login` and `omnigraph logout`: credentials for a server."""

from __future__ import annotations

import click

from omnigraph.cli.commands import Command
from omnigraph.cli.options import json_option
from omnigraph.cli.scope import LOCAL
from omnigraph.cli.served import no_server


@click.command(cls=Command, scope=LOCAL)
@click.argument("name")
@click.option("--token", metavar="TOKEN", help="The credential; one line of stdin unless given.")
@json_option
def login(name: str, token: str | None, as_json: bool) -> None:
    """Keep a credential for the server NAME."""
    # Nothing is read from stdin and nothing is kept: a token without a use is only a risk.
    raise no_server(f"a login to '{name}'")


@click.command(cls=Command, scope=LOCAL)
@click.argument("name")
@json_option
def logout(name: str, as_json: bool) -> None:
    """Forget the credential for the server NAME."""
    raise no_server(f"a logout from '{name}'")
