"""`omnigraph login` and `omnigraph logout`: credentials for a server."""

from __future__ import annotations

import sys

import click

from omnigraph.cli import output
from omnigraph.cli.commands import Command
from omnigraph.cli.credentials import credentials_path, remove_token, store_token
from omnigraph.cli.options import json_option
from omnigraph.cli.scope import LOCAL
from omnigraph.cli.settings import Settings


@click.command(cls=Command, scope=LOCAL)
@click.argument("name")
@click.option("--token", metavar="TOKEN", help="The credential; one line of stdin unless given.")
@json_option
@click.pass_obj
def login(settings: Settings, name: str, token: str | None, as_json: bool) -> None:
    """Keep a credential for the server NAME."""
    store_token(name, _typed(name) if token is None else token)
    if name not in settings.config.servers:
        output.warn(f"no server '{name}' is configured yet; name it under `servers:` in {settings.config.path}")
    _told(settings, name, f"stored credential for '{name}' in {credentials_path()}", as_json=as_json)


@click.command(cls=Command, scope=LOCAL)
@click.argument("name")
@json_option
@click.pass_obj
def logout(settings: Settings, name: str, as_json: bool) -> None:
    """Forget the credential for the server NAME."""
    what = "removed credential" if remove_token(name) else "there was no credential"
    _told(settings, name, f"{what} for '{name}' in {credentials_path()}", as_json=as_json)


def _typed(name: str) -> str:
    """One line of standard input; a person at a terminal is asked, and what they type is not shown."""
    if output.is_terminal(sys.stdin):
        typed: str = click.prompt(f"Token for '{name}'", hide_input=True, err=True)
        return typed.strip()
    return "" if sys.stdin is None else sys.stdin.readline().strip()


def _told(settings: Settings, name: str, line: str, *, as_json: bool) -> None:
    if as_json:
        declared = name in settings.config.servers
        output.json({"server": name, "credentials_path": str(credentials_path()), "declared": declared})
    else:
        output.line(line)
