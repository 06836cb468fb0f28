"""Commands about this machine: `omnigraph config`, `profile`, `completion` and `version`."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import click
from click.shell_completion import get_completion_class

from omnigraph import __version__
from omnigraph.cli import output
from omnigraph.cli.addressing import echo_write, open_graph, resolve, scope_of
from omnigraph.cli.commands import Command, Group
from omnigraph.cli.operator_config import OperatorConfig, Profile
from omnigraph.cli.options import idempotency_option, json_option, uri_option
from omnigraph.cli.scope import EFFECTIVE, LOCAL, READ, WRITE
from omnigraph.cli.settings import Settings
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
@idempotency_option
@json_option
@click.pass_context
def set_(
    context: click.Context, uri: str | None, name: str, value: str, idempotency_key: str | None, as_json: bool
) -> None:
    """Give the setting NAME of a graph a VALUE, for everybody who works on it."""
    _write(context, uri, "config set", name, value, idempotency_key, as_json=as_json)


@config.command(scope=WRITE)
@uri_option
@click.argument("name")
@idempotency_option
@json_option
@click.pass_context
def unset(context: click.Context, uri: str | None, name: str, idempotency_key: str | None, as_json: bool) -> None:
    """Give the setting NAME of a graph its default back."""
    _write(context, uri, "config unset", name, None, idempotency_key, as_json=as_json)


def _write(
    context: click.Context,
    uri: str | None,
    label: str,
    name: str,
    value: str | None,
    idempotency_key: str | None,
    *,
    as_json: bool,
) -> None:
    from omnigraph.commit.config import check_setting

    check_setting(name, value)
    settings = context.ensure_object(Settings)
    target = resolve(context, uri, named_by="--uri")
    echo_write(settings, label, target)
    graph = open_graph(target, "rw", settings.actor)
    held = graph.set_config(name, value, idempotency_key=idempotency_key)[name]
    if as_json:
        output.json({"name": name, "value": held, "actor_id": graph.actor})
        return
    output.line(f"{name} = {held}")


#: The environment variable with which the completion script asks the program for candidates.
VARIABLE = "_OMNIGRAPH_COMPLETE"


@click.command(cls=Command, scope=LOCAL)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the completion script of a SHELL.

    For bash and zsh: eval "$(omnigraph completion bash)". For fish: save it as completions/omnigraph.fish.
    """
    script = get_completion_class(shell)
    assert script is not None
    output.line(script(context.find_root().command, {}, "omnigraph", VARIABLE).source())


@click.command(cls=Command, scope=LOCAL)
@json_option
def version(as_json: bool) -> None:
    """Show the version of OmniGraph and of its on-disk format."""
    from omnigraph.commit.format import CURRENT

    if as_json:
        output.json({"omnigraph": __version__, "internal_schema": CURRENT})
        return
    output.line(f"omnigraph {__version__}")
    output.line(f"internal-schema {CURRENT}")


@click.group(cls=Group)
def profile() -> None:
    """Show the profiles of the configuration."""


@profile.command("list", scope=LOCAL)
@json_option
@click.pass_obj
def list_profiles(settings: Settings, as_json: bool) -> None:
    """List the profiles; the active one is marked."""
    config, active = settings.config, settings.profile_name
    if as_json:
        output.json(
            {"profiles": [_listed(config, name) | {"active": name == active} for name in sorted(config.profiles)]}
        )
        return
    for name in sorted(config.profiles):
        mark = " (active)" if name == active else ""
        output.line(f"{name}{mark}  {_summary(_listed(config, name))}")
    if not config.profiles:
        output.line("(no profiles)")


@profile.command("show", scope=LOCAL)
@click.argument("name", required=False)
@json_option
@click.pass_obj
def show_profile(settings: Settings, name: str | None, as_json: bool) -> None:
    """Show the profile NAME, or the active one."""
    chosen = name or settings.profile_name
    if chosen is None:
        raise BadRequest("no profile is active; name one, or set OMNIGRAPH_PROFILE")
    found = settings.config.profile(chosen)
    if as_json:
        output.json(asdict(found) | {"endpoint": _endpoint(settings.config, found)})
        return
    output.fields(
        {
            "profile": found.name,
            "scope": found.scope,
            "endpoint": _endpoint(settings.config, found),
            "default graph": found.default_graph,
            "output": found.output or settings.config.defaults.output or "table",
        }
    )


def _listed(config: OperatorConfig, name: str) -> dict[str, Any]:
    """A profile in the list: its scope and graph, or why it can not be used."""
    try:
        found = config.profile(name)
    except BadRequest as error:
        return {"name": name, "invalid": error.message}
    graph = {} if found.default_graph is None else {"default_graph": found.default_graph}
    return {"name": name, found.scope: redacted(found.endpoint), **graph}


def _summary(listed: dict[str, Any]) -> str:
    labels = {"default_graph": "graph"}
    return " · ".join(f"{labels.get(key, key)}: {value}" for key, value in listed.items() if key != "name")


def _endpoint(config: OperatorConfig, found: Profile) -> str:
    """The URL or root to which a profile resolves."""
    known = {"server": config.servers, "cluster": config.clusters}.get(found.scope, {})
    return redacted(known.get(found.endpoint, found.endpoint))
