"""`omnigraph config`: what flags, environment and configuration come to."""

from __future__ import annotations

from typing import Any

import click

from omnigraph.cli import output
from omnigraph.cli.addressing import scope_of
from omnigraph.cli.commands import Command
from omnigraph.cli.options import json_option
from omnigraph.cli.scope import EFFECTIVE
from omnigraph.cli.settings import Settings
from omnigraph.errors import BadRequest, redacted


@click.command(cls=Command, scope=EFFECTIVE)
@json_option
@click.pass_context
def config(context: click.Context, as_json: bool) -> None:
    """Show what flags, environment and configuration come to."""
    settings = context.ensure_object(Settings)
    read = settings.config
    shown: dict[str, Any] = {
        "config": str(read.path) if read.path.exists() else f"{read.path} (not there)",
        "actor": settings.actor,
        "profile": settings.profile_name,
        **_target(context),
        "output": settings.output(),
        "table_max_column_width": read.defaults.table_max_column_width,
        "table_cell_layout": read.defaults.table_cell_layout,
    }
    if as_json:
        output.json(shown | {"config": str(read.path)})
    else:
        output.fields({key: "(none)" if value is None else value for key, value in shown.items()})


def _target(context: click.Context) -> dict[str, str | None]:
    """The graph that commands would work on, or why they would not."""
    try:
        found = scope_of(context)
    except BadRequest as error:
        return {"store": None, "problem": error.message}
    if found.server is not None:
        return {"server": redacted(found.server.url), "graph": found.graph}
    return {"store": None if found.storage is None else found.storage.uri}
