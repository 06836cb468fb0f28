"""`omnigraph config`: what flags, environment and configuration come to, and the settings that are stored with a graph."""

from __future__ import annotations

from typing import Any

import click

from omnigraph.cli import output
from omnigraph.cli.addressing import open_graph, resolve, scope_of
from omnigraph.cli.commands import Group
from omnigraph.cli.options import json_option, uri_option
from omnigraph.cli.scope import EFFECTIVE, READ, WRITE
from omnigraph.cli.settings import Settings
from omnigraph.cli.writing import echo_write
from omnigraph.errors import BadRequest, redacted


@click.group(cls=Group, invoke_without_command=True)
@json_option
@click.pass_context
def config(context: click.Context, as_json: bool) -> None:
    """Show what flags, environment and configuration come to; read and change the settings of a graph."""
    if context.invoked_subcommand is None:
        context.invoke(show, as_json=as_json)
    elif as_json:
        raise click.UsageError(f"--json stands behind `config {context.invoked_subcommand}`", context)


@config.command(scope=EFFECTIVE)
@json_option
@click.pass_context
def show(context: click.Context, as_json: bool) -> None:
    """Show what flags, environment and configuration come to; `omnigraph config` alone does the same."""
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


# --- the settings of a graph ------------------------------------------------------------------------------------------


@config.command(scope=READ)
@uri_option
@click.argument("name")
@json_option
@click.pass_context
def get(context: click.Context, uri: str | None, name: str, as_json: bool) -> None:
    """Print the value of the setting NAME of a graph."""
    from omnigraph.commit.config import check_setting

    check_setting(name, None)
    value = open_graph(resolve(context, uri, named_by="--uri"), "ro").config()[name]
    if as_json:
        output.json({"name": name, "value": value})
        return
    output.line(value)


@config.command("list", scope=READ)
@uri_option
@json_option
@click.pass_context
def list_(context: click.Context, uri: str | None, as_json: bool) -> None:
    """List the settings of a graph and their values."""
    settings = open_graph(resolve(context, uri, named_by="--uri"), "ro").config()
    if as_json:
        output.json({"config": settings})
        return
    for name, value in settings.items():
        output.line(f"{name} = {value}")


@config.command("set", scope=WRITE)
@uri_option
@click.argument("name")
@click.argument("value")
@json_option
@click.pass_context
def set_(context: click.Context, uri: str | None, name: str, value: str, as_json: bool) -> None:
    """Give the setting NAME of a graph a VALUE, for everybody who works on it."""
    _write(context, uri, "config set", name, value, as_json=as_json)


@config.command(scope=WRITE)
@uri_option
@click.argument("name")
@json_option
@click.pass_context
def unset(context: click.Context, uri: str | None, name: str, as_json: bool) -> None:
    """Give the setting NAME of a graph its default back."""
    _write(context, uri, "config unset", name, None, as_json=as_json)


def _write(context: click.Context, uri: str | None, label: str, name: str, value: str | None, *, as_json: bool) -> None:
    from omnigraph.commit.config import check_setting

    check_setting(name, value)
    settings = context.ensure_object(Settings)
    target = resolve(context, uri, named_by="--uri")
    echo_write(settings, label, target)
    graph = open_graph(target, "rw", settings.actor)
    held = graph.set_config(name, value)[name]
    if as_json:
        output.json({"name": name, "value": held, "actor_id": graph.actor})
        return
    output.line(f"{name} = {held}")
