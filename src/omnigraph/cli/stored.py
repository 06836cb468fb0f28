"""What only a server answers: stored queries called by name, `omnigraph alias` and `omnigraph graphs`."""

from __future__ import annotations

from typing import Any

import click

from omnigraph.cli import output
from omnigraph.cli.addressing import Served, Stored, Target, open_graph, scope_of
from omnigraph.cli.commands import Command, Group
from omnigraph.cli.operator_config import Alias
from omnigraph.cli.options import idempotency_option, json_option
from omnigraph.cli.read_formats import ReadOutput, print_change, print_read, table_style
from omnigraph.cli.scope import LOCAL, SERVED
from omnigraph.cli.servers import server_at
from omnigraph.cli.settings import OUTPUTS, Settings
from omnigraph.cli.sources import QueryCall, by_name_needs_a_server, params_object
from omnigraph.commit.model import MAIN
from omnigraph.errors import BadRequest


def run_stored(
    settings: Settings,
    target: Target,
    call: QueryCall,
    *,
    format: str,
    branch: str | None = None,
    snapshot: str | None = None,
    **asked: Any,
) -> None:
    """Call a stored query and print its rows, or what it did. `asked`: further options of `RemoteGraph.invoke`."""
    if isinstance(target, Stored):
        raise by_name_needs_a_server(call.name)
    from omnigraph.query.result import Result

    graph = open_graph(target, "rw")
    result = graph.invoke(call.name, call.params, branch=branch, snapshot=snapshot, **asked)
    if isinstance(result, Result):
        shown = None if snapshot is not None else branch or MAIN
        print_read(ReadOutput(call.name, shown, snapshot, result), format, table_style(settings))
    else:
        print_change(branch or MAIN, call.name, graph.actor, result, as_json=format in ("json", "jsonl"))


@click.command(cls=Command, scope=LOCAL)
@click.argument("name")
@click.argument("arguments", metavar="[ARGS]...", nargs=-1)
@click.option("--params", metavar="JSON", help="Parameters, as a JSON object; they win over ARGS.")
@click.option("--format", "chosen", type=click.Choice(OUTPUTS), help="How to print the answer.")
@idempotency_option
@json_option
@click.pass_obj
def alias(
    settings: Settings,
    name: str,
    arguments: tuple[str, ...],
    params: str | None,
    chosen: str | None,
    idempotency_key: str | None,
    as_json: bool,
) -> None:
    """Run the stored query that the configuration calls NAME."""
    found = settings.config.alias(name)
    given = {} if params is None else params_object(params, "--params")
    bound = _bind(found, arguments) | given
    format = "json" if as_json else chosen or found.format or settings.output()
    server = server_at(settings, found.server)
    target = Served(server, found.graph or server.only_graph())
    call = QueryCall(None, None, found.query, bound)
    run_stored(settings, target, call, format=format, idempotency_key=idempotency_key)


def _bind(alias: Alias, arguments: tuple[str, ...]) -> dict[str, Any]:
    """The parameters of the alias, and over them the positional ones."""
    if len(arguments) != len(alias.args):
        raise BadRequest(
            f"alias '{alias.name}' takes {len(alias.args)} positional arg(s) ({', '.join(alias.args)}), "
            f"got {len(arguments)}"
        )
    return dict(alias.params) | dict(zip(alias.args, arguments, strict=True))


@click.group(cls=Group)
def graphs() -> None:
    """Look at the graphs of a server."""


@graphs.command("list", scope=SERVED)
@json_option
@click.pass_context
def list_(context: click.Context, as_json: bool) -> None:
    """List the graphs of a server, as ID and URI."""
    server = scope_of(context).server
    if server is None:
        raise BadRequest(
            "`graphs list` asks a server; address it with --server <name|url>, or with a profile of a server"
        )
    found = server.graphs()
    if as_json:
        output.json({"graphs": found})
        return
    for entry in found:
        output.line(f"{entry['graph_id']}\t{entry['uri']}")
