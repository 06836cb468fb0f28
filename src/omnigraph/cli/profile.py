"""`omnigraph profile …`: the addresses that the configuration names."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import click

from omnigraph.cli import output
from omnigraph.cli.commands import Group
from omnigraph.cli.operator_config import OperatorConfig, Profile
from omnigraph.cli.options import json_option
from omnigraph.cli.scope import LOCAL
from omnigraph.cli.settings import Settings
from omnigraph.errors import BadRequest, redacted


@click.group(cls=Group)
def profile() -> None:
    """Show the profiles of the configuration."""


@profile.command("list", scope=LOCAL)
@json_option
@click.pass_obj
def list_(settings: Settings, as_json: bool) -> None:
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


@profile.command(scope=LOCAL)
@click.argument("name", required=False)
@json_option
@click.pass_obj
def show(settings: Settings, name: str | None, as_json: bool) -> None:
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
    """Where a profile leads: the URL or root behind a name."""
    known = {"server": config.servers, "cluster": config.clusters}.get(found.scope, {})
    return redacted(known.get(found.endpoint, found.endpoint))
