"""`omnigraph mutate`: run a mutation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from omnigraph.cli import output
from omnigraph.cli.addressing import open_graph, resolve
from omnigraph.cli.commands import Command
from omnigraph.cli.options import branch_option, idempotency_option, json_option
from omnigraph.cli.scope import WRITE
from omnigraph.cli.settings import Settings
from omnigraph.cli.sources import QueryCall, naming, takes_queries
from omnigraph.commit.model import MAIN
from omnigraph.errors import PreconditionFailed
from omnigraph.wire.shapes import change_output, precondition_output

if TYPE_CHECKING:
    from omnigraph.graph.graph import Graph
    from omnigraph.mutation.execute import MutationResult

LOST = 4


@click.command(cls=Command, scope=WRITE)
@takes_queries
@branch_option
@click.option("--if-commit", metavar="ID", help="Only while this commit is the head of the branch; else exit 4.")
@click.option("--message", metavar="TEXT", help="What the commit is about; it is kept with it.")
@idempotency_option
@json_option
@click.pass_context
def mutate(
    context: click.Context,
    calls: list[QueryCall],
    branch: str | None,
    if_commit: str | None,
    message: str | None,
    idempotency_key: str | None,
    as_json: bool,
) -> None:
    """Run a mutation: one commit for all of its statements, or none.

    Several mutations (NAMEs of one source, or several --query) run in order, each on what those before left, and are one commit
    too; when one fails nothing is written.
    """
    target = resolve(context)
    actor = context.ensure_object(Settings).actor
    graph = open_graph(target, "rw", actor)
    try:
        result = _mutated(
            graph,
            calls,
            branch=branch or MAIN,
            message=message,
            if_commit=if_commit,
            idempotency_key=idempotency_key,
        )
    except PreconditionFailed as error:
        if as_json:
            output.json(precondition_output(error))
        else:
            output.report(error, context.ensure_object(Settings).debug)
        context.exit(LOST)
    print_change(branch or MAIN, ", ".join(call.name for call in calls if call.name), actor, result, as_json=as_json)


def _mutated(graph: Graph, calls: list[QueryCall], **options: Any) -> MutationResult:
    """Run the calls as one commit; an error names the file of the query it comes from."""
    if len(calls) == 1:
        with naming(calls[0].file):
            return graph.mutate(calls[0].text, calls[0].name, calls[0].params, **options)
    with graph.transaction(**options) as transaction:
        for call in calls:
            with naming(call.file):
                transaction.mutate(call.text, call.name, call.params)
    assert transaction.result is not None, "a block that ended without an error is committed"
    return transaction.result


def print_change(branch: str, query_name: str, actor: str | None, result: MutationResult, *, as_json: bool) -> None:
    """Print what a mutation did."""
    if as_json:
        output.json(change_output(branch, query_name, actor, result))
        return
    via = f" via {query_name}" if query_name else ""
    output.line(f"changed {branch}{via}: {result.affected_nodes} nodes, {result.affected_edges} edges")
    output.fields({"actor_id": actor})
