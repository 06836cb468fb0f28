"""`omnigraph schema …`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from omnigraph.cli import output
from omnigraph.cli.addressing import Stored, cluster_root, echo_write, open_graph, resolve, resolve_storage
from omnigraph.cli.commands import Group
from omnigraph.cli.options import (
    branch_option,
    idempotency_option,
    json_option,
    message_option,
    positional_uri,
    snapshot_option,
)
from omnigraph.cli.scope import LOCAL, PREVIEW, WRITE
from omnigraph.cli.settings import Settings
from omnigraph.cli.sources import naming, read_source, source_name
from omnigraph.errors import BadRequest
from omnigraph.wire.shapes import schema_output

if TYPE_CHECKING:
    from omnigraph.evolution.plan import Plan

_wanted = click.option("--schema", "schema_path", metavar="FILE", required=True, help="The wanted schema, a .pg file.")
_data_loss = click.option(
    "--allow-data-loss", is_flag=True, help="What is dropped is gone for older snapshots too, not only from now on."
)
_backfill = click.option(
    "--backfill",
    "backfill",
    metavar="TEXT",
    multiple=True,
    help="What rows get that have no value, such as 'Person.slug = lower(name)'. Can be given several times.",
)
#: The exit code of a plan that can not be applied.
REFUSED = 3


@click.group(cls=Group)
def schema() -> None:
    """Look at schemas and change them."""


@schema.command(scope=WRITE)
@positional_uri
@branch_option
@snapshot_option
@json_option
@click.pass_context
def show(context: click.Context, uri: str | None, branch: str | None, snapshot: str | None, as_json: bool) -> None:
    """Show the schema of a branch, or of a commit."""
    source = open_graph(resolve(context, uri), "ro").schema(branch, snapshot=snapshot)
    if as_json:
        output.json({"schema_source": source})
    else:
        output.raw(source if source.endswith("\n") else f"{source}\n")


schema.add_command(show, "get")


@schema.command(scope=PREVIEW)
@positional_uri
@_wanted
@_data_loss
@_backfill
@branch_option
@json_option
@click.pass_context
def plan(
    context: click.Context,
    uri: str | None,
    schema_path: str,
    allow_data_loss: bool,
    backfill: tuple[str, ...],
    branch: str | None,
    as_json: bool,
) -> None:
    """Show what applying a schema would do; the exit code is 3 when it would be refused."""
    target = resolve_storage(context, uri)
    wanted = read_source(schema_path)
    graph = open_graph(target, "ro")
    with naming(schema_path):
        planned = graph.plan_schema(wanted, branch=branch, allow_data_loss=allow_data_loss, backfill=backfill)
    if as_json:
        output.json({"uri": target.uri} | planned.to_dict())
    else:
        output.line(f"schema plan for {target.uri}")
        output.line(f"supported: {_yes(planned.supported)}")
        _show_steps(planned)
    if not planned.supported:
        context.exit(REFUSED)


@schema.command(scope=WRITE)
@positional_uri
@_wanted
@_data_loss
@_backfill
@branch_option
@message_option
@idempotency_option
@json_option
@click.pass_context
def apply(
    context: click.Context,
    uri: str | None,
    schema_path: str,
    allow_data_loss: bool,
    backfill: tuple[str, ...],
    branch: str | None,
    message: str | None,
    idempotency_key: str | None,
    as_json: bool,
) -> None:
    """Make a schema that of a branch, in one commit; other branches keep theirs."""
    settings = context.ensure_object(Settings)
    target = resolve(context, uri)
    wanted = read_source(schema_path)
    root = cluster_root(target.uri) if isinstance(target, Stored) else None
    if root is not None:
        raise BadRequest(
            f"{target.uri} lies under the cluster root {root}; "
            "change its schema in the cluster's folder and run `omnigraph cluster apply`"
        )
    echo_write(settings, "schema apply", target)
    graph = open_graph(target, "rw", settings.actor)
    with naming(schema_path):
        result = graph.apply_schema(
            wanted,
            branch=branch,
            allow_data_loss=allow_data_loss,
            backfill=backfill,
            message=message,
            idempotency_key=idempotency_key,
        )
    if as_json:
        output.json(schema_output(target.uri, result))
        return
    output.line(f"schema apply for {target.uri}")
    output.line(f"supported: {_yes(result.plan.supported)}")
    output.line(f"applied: {_yes(result.applied)}")
    output.line(f"graph_manifest_version: {result.graph_manifest_version}")
    _show_steps(result.plan)


def _show_steps(plan: Plan) -> None:
    for step in plan.steps:
        output.line(f"- {step}")
    if not plan.steps:
        output.line("no schema changes")
    for hint in plan.hints:
        output.line(f"hint: {hint}")


def _yes(fact: bool) -> str:
    return "yes" if fact else "no"


@schema.command("show-ir", scope=LOCAL)
@click.argument("file")
def show_ir(file: str) -> None:
    """Show the canonical form of a schema FILE, as a new graph would keep it."""
    from omnigraph.language.schema.accept import accept_schema
    from omnigraph.language.schema.build import compile_schema

    catalog = compile_schema(read_source(file), source_name(file))
    output.json_text(accept_schema(catalog).to_json())
