"""`omnigraph alias`: a stored query of a server under a short name of the configuration."""

from __future__ import annotations

from typing import Any

import click

from omnigraph.cli.addressing import Served
from omnigraph.cli.commands import Command
from omnigraph.cli.operator_config import Alias
from omnigraph.cli.options import json_option
from omnigraph.cli.scope import LOCAL
from omnigraph.cli.served import server_at
from omnigraph.cli.settings import OUTPUTS, Settings
from omnigraph.cli.sources import QueryCall, params_object
from omnigraph.cli.stored import run_stored
from omnigraph.errors import BadRequest


@click.command(cls=Command, scope=LOCAL)
@click.argument("name")
@click.argument("arguments", metavar="[ARGS]...", nargs=-1)
@click.option("--params", metavar="JSON", help="Parameters, as a JSON object; they win over ARGS.")
@click.option("--format", "chosen", type=click.Choice(OUTPUTS), help="How to print the answer.")
@json_option
@click.pass_obj
def alias(
    settings: Settings, name: str, arguments: tuple[str, ...], params: str | None, chosen: str | None, as_json: bool
) -> None:
    """Run the stored query that the configuration calls NAME."""
    found = settings.config.alias(name)
    given = {} if params is None else params_object(params, "--params")
    bound = _bind(found, arguments) | given
    format = "json" if as_json else chosen or found.format or settings.output()
    server = server_at(settings, found.server)
    target = Served(server, found.graph or server.only_graph())
    run_stored(settings, target, QueryCall(None, None, found.query, bound), format=format)


def _bind(alias: Alias, arguments: tuple[str, ...]) -> dict[str, Any]:
    """The parameters of the alias, and over them the positional ones."""
    if len(arguments) != len(alias.args):
        raise BadRequest(
            f"alias '{alias.name}' takes {len(alias.args)} positional arg(s) ({', '.join(alias.args)}), "
            f"got {len(arguments)}"
        )
    return dict(alias.params) | dict(zip(alias.args, arguments, strict=True))
