"""`omnigraph cluster …`: graphs, queries and policies that are declared in one folder and applied together."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from omnigraph.cli import output
from omnigraph.cli.commands import Group
from omnigraph.cli.options import json_option, together
from omnigraph.cli.scope import CLUSTER_ACTOR, CLUSTER_APPLY, CLUSTER_CONTROL, CLUSTER_PLAN
from omnigraph.cli.servers import Server, server_at
from omnigraph.cli.settings import Settings
from omnigraph.errors import BadRequest

if TYPE_CHECKING:
    from omnigraph.cluster.commands import Outcome

_options = together(
    click.option("--config", metavar="DIR", default=".", show_default=True, help="The folder with cluster.yaml."),
    json_option,
    click.pass_context,
)


@click.group(cls=Group)
def cluster() -> None:
    """Declare and apply the graphs of a cluster."""


@cluster.command(scope=CLUSTER_CONTROL)
@_options
def validate(context: click.Context, config: str, as_json: bool) -> None:
    """Check the declaration by itself."""
    from omnigraph.cluster import commands

    outcome = commands.validate(Path(config))
    told = outcome.data
    lines = ["cluster config invalid"]
    if outcome.ok:
        count, edges = len(told["resources"]), len(told["dependencies"])
        lines = [f"cluster config valid: {count} resource(s), {edges} dependency edge(s)"]
        lines += [f"  {resource['address']}  {_short(resource['digest'])}" for resource in told["resources"]]
    _end(context, outcome, as_json, lines)


@cluster.command(scope=CLUSTER_PLAN)
@_options
def plan(context: click.Context, config: str, as_json: bool) -> None:
    """Show what applying the declaration would change; with --server, in the cluster of that server."""
    from omnigraph.cluster import commands

    server = _server(context)
    outcome = commands.plan(Path(config)) if server is None else _asked(server, "plan", config)
    told = outcome.data
    lines = ["cluster plan failed"]
    if "changes" in told:
        gates = told["approvals_required"]
        lines = [f"cluster plan: {len(told['changes'])} change(s), {len(gates)} approval gate(s)"]
        affected = {entry["resource"]: entry["affected"] for entry in told["blast_radius"]}
        for change in told["changes"]:
            lines += _change_lines(change)
            if affected[change["resource"]]:
                lines.append(f"      affects {', '.join(affected[change['resource']])}")
        lines += [
            f"  gate {gate['resource']} ({gate['reason']}): {'approved' if gate['satisfied'] else 'waits for approval'}"
            for gate in gates
        ]
    _end(context, outcome, as_json, lines)


@cluster.command(scope=CLUSTER_APPLY)
@_options
def apply(context: click.Context, config: str, as_json: bool) -> None:
    """Make the cluster what the declaration says; with --server, the cluster of that server, which serves it then."""
    from omnigraph.cluster import commands

    server = _server(context)
    if server is None:
        outcome = commands.apply(Path(config), context.ensure_object(Settings).actor)
    else:
        outcome = _asked(server, "apply", config)
    told = outcome.data
    lines = ["cluster apply failed"]
    if "changes" in told:
        lines = [f"cluster apply: {told['applied_count']} applied, {told['deferred_count']} deferred/blocked"]
        for change in told["changes"]:
            lines += _change_lines(change)
        revision = told["state_observations"]["state_revision"]
        lines.append(
            f"  state: revision {revision}, converged: {_word(told['converged'])}, written: {_word(told['state_written'])}"
        )
        if "served_revision" in told:
            lines.append(f"  served: revision {told['served_revision']}")
    _end(context, outcome, as_json, lines)


@cluster.command(scope=CLUSTER_ACTOR)
@click.argument("resource")
@_options
def approve(context: click.Context, resource: str, config: str, as_json: bool) -> None:
    """Approve the change of RESOURCE that waits for it."""
    from omnigraph.cluster import commands

    actor = context.ensure_object(Settings).actor
    if actor is None:
        raise BadRequest("an approval needs somebody who gives it: pass --as ACTOR, or set operator.actor")
    outcome = commands.approve(Path(config), resource, actor)
    lines = ["cluster approve failed"]
    if outcome.ok:
        told = outcome.data
        lines = [f"approved {told['operation']} of {resource} by {actor} (approval {told['approval_id']})"]
    _end(context, outcome, as_json, lines)


@cluster.command(scope=CLUSTER_CONTROL)
@_options
def status(context: click.Context, config: str, as_json: bool) -> None:
    """Show the state of the cluster."""
    from omnigraph.cluster import commands

    outcome = commands.status(Path(config))
    _end(context, outcome, as_json, _state_lines(outcome, "cluster state:", "cluster status failed"))


@cluster.command(scope=CLUSTER_CONTROL)
@_options
def refresh(context: click.Context, config: str, as_json: bool) -> None:
    """Compare the state with what there is, and write it down."""
    from omnigraph.cluster import commands

    outcome = commands.refresh(Path(config))
    _end(context, outcome, as_json, _state_lines(outcome, "cluster refresh:", "cluster refresh failed"))


@cluster.command("import", scope=CLUSTER_CONTROL)
@_options
def import_(context: click.Context, config: str, as_json: bool) -> None:
    """Make a first state from what there is."""
    from omnigraph.cluster import commands

    outcome = commands.import_(Path(config))
    _end(context, outcome, as_json, _state_lines(outcome, "cluster import:", "cluster import failed"))


@cluster.command("force-unlock", scope=CLUSTER_CONTROL)
@click.argument("lock_id", metavar="ID")
@_options
def force_unlock(context: click.Context, lock_id: str, config: str, as_json: bool) -> None:
    """Remove the lock ID that a dead process left."""
    from omnigraph.cluster import commands

    outcome = commands.force_unlock(Path(config), lock_id)
    removed = outcome.data.get("lock_removed", False)
    _end(context, outcome, as_json, [f"removed lock {lock_id}" if removed else "the lock was not removed"])


# --- the cluster of a server ------------------------------------------------------------------------------------------


def _server(context: click.Context) -> Server | None:
    """The server that carries out the command; None when it runs here, on the storage of the cluster."""
    settings = context.ensure_object(Settings)
    address = settings.flags.get("server")
    if address is None:
        return None
    if "as" in settings.flags:
        raise BadRequest("`--as` is not allowed on a served write: the server takes the actor from the token")
    return server_at(settings, address)


def _asked(server: Server, verb: Literal["plan", "apply"], config: str) -> Outcome:
    """The server's answer to the declaration of a folder; an invalid declaration is not sent."""
    from omnigraph.client.graph import ask_cluster
    from omnigraph.cluster import commands
    from omnigraph.cluster.diagnostics import Diagnostic, Findings
    from omnigraph.cluster.sources import Folder

    source = Folder(Path(config))
    checked = commands.validate(source)
    if not checked.ok:
        return commands.Outcome(source, checked.findings)
    told = ask_cluster(server.url, server.token, verb, source.seen)
    found = [Diagnostic(**diagnostic) for diagnostic in told.pop("diagnostics")]
    kept = {name: value for name, value in told.items() if name not in ("ok", "config_dir")}
    return commands.Outcome(source, Findings(found), kept)


# --- output -----------------------------------------------------------------------------------------------------------


def _end(context: click.Context, outcome: Outcome, as_json: bool, lines: list[str]) -> None:
    """Show an outcome, and fail the command when it failed."""
    if as_json:
        output.json(outcome.to_dict())
    else:
        for line in lines:
            output.line(line)
        for found in outcome.findings.listed:
            output.note(found.line)
    if not outcome.ok:
        context.exit(1)


def _change_lines(change: dict[str, Any]) -> list[str]:
    reason = f": {change['reason']}" if "reason" in change else ""
    lines = [f"  {change['operation']:<6} {change['resource']}  [{change['disposition']}{reason}]"]
    for step in change.get("migration", {}).get("steps", ()):
        told = ", ".join(
            f"{name} {value}" for name, value in step.items() if name != "kind" and value not in (None, [], {})
        )
        lines.append(f"      {step.get('kind', 'step')}: {told}")
    return lines


def _state_lines(outcome: Outcome, head: str, failed: str) -> list[str]:
    told = outcome.data
    if "resource_statuses" not in told:
        return [failed]
    seen = told["state_observations"]
    lines = [f"{head} revision {seen['state_revision']}, {seen['resource_count']} resource(s)"]
    if seen["locked"]:
        lines.append(f"  locked by {seen.get('lock_operation', 'somebody')} (lock {seen.get('lock_id', 'unknown')})")
    for address, about in told["resource_statuses"].items():
        message = f": {about['message']}" if "message" in about else ""
        lines.append(f"  {about['status']:<8} {address}{message}")
    return lines


def _word(value: bool) -> str:
    return "true" if value else "false"


def _short(digest: str) -> str:
    return digest[:12]
