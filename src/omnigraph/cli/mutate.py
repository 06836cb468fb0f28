"""`omnigraph mutate`: run a mutation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from omnigraph.cli import output
from omnigraph.cli.addressing import open_graph, resolve
from omnigraph.cli.commands import Command
from omnigraph.cli.options import branch_option, idempotency_option, json_option
from omnigraph.cli.scope import WRITE
from omnigraph.cli.settings import Settings
from omnigraph.cli.shapes import change_output, precondition_output
from omnigraph.cli.sources import QueryCall, naming, takes_query
from omnigraph.commit.model import MAIN
from omnigraph.errors import PreconditionFailed

if TYPE_CHECKING:
    from omnigraph.mutation.execute import MutationResult

LOST = 4


@click.command(cls=Command, scope=WRITE)
@takes_query
@branch_option
@click.option("--if-commit", metavar="ID", help="Only while this commit is the head of the branch; else exit 4.")
@idempotency_option
@json_option
@click.pass_context
def mutate(
    context: click.Context,
    call: QueryCall,
    branch: str | None,
    if_commit: str | None,
    idempotency_key: str | None,
    as_json: bool,
) -> None:
    """Run a mutation: one commit for all of its statements, or none."""
    target = resolve(context)
    actor = context.ensure_object(Settings).actor
    graph = open_graph(target, "rw", actor)
    try:
        with naming(call.file):
            result = graph.mutate(
                call.text,
                call.name,
                call.params,
                branch=branch or MAIN,
                if_commit=if_commit,
                idempotency_key=idempotency_key,
            )
    except PreconditionFailed as error:
        if as_json:
            output.json(precondition_output(error))
        else:
            output.report(error, context.ensure_object(Settings).debug)
        context.exit(LOST)
    print_change(branch or MAIN, call.name, actor, result, as_json=as_json)


def print_change(branch: str, query_name: str, actor: str | None, result: MutationResult, *, as_json: bool) -> None:
    """Print what a mutation did."""
    if as_json:
        output.json(change_output(branch, query_name, actor, result))
        return
    output.line(f"changed {branch} via {query_name}: {result.affected_nodes} nodes, {result.affected_edges} edges")
    output.fields({"actor_id": actor})
