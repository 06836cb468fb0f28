"""`omnigraph graphs …`: the graphs of a server."""

from __future__ import annotations

import click

from omnigraph.cli.addressing import resolve
from omnigraph.cli.commands import Group
from omnigraph.cli.options import json_option
from omnigraph.cli.scope import SERVED
from omnigraph.cli.served import no_server
from omnigraph.cli.settings import Settings
from omnigraph.errors import BadRequest


@click.group(cls=Group)
def graphs() -> None:
    """Look at the graphs of a server."""


@graphs.command("list", scope=SERVED)
@json_option
@click.pass_context
def list_(context: click.Context, as_json: bool) -> None:
    """List the graphs of a server, as ID and URI."""
    settings = context.ensure_object(Settings)
    profile = settings.profile
    if profile is not None and profile.scope != "server":
        raise BadRequest(f"`graphs list` asks a server, and profile '{profile.name}' is a {profile.scope}")
    if profile is not None or "server" in settings.flags or settings.config.defaults.server is not None:
        resolve(context)
    raise no_server("`graphs list`")
