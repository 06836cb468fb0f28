"""`omnigraph mutate`: run a mutation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from omnigraph.cli import output
from omnigraph.cli.addressing import open_graph, resolve
from omnigraph.cli.commands import Command
from omnigraph.cli.options import branch_option, idempotency_option, json_option, message_option
from omnigraph.cli.read_formats import print_change
from omnigraph.cli.scope import WRITE
from omnigraph.cli.settings import Settings
from omnigraph.cli.sources import QueryCall, naming, takes_queries
from omnigraph.cli.stored import run_stored
from omnigraph.commit.model import MAIN
from omnigraph.errors import PreconditionFailed
from omnigraph.wire.shapes import precondition_output

if TYPE_CHECKING:
    from omnigraph.client.graph import AnyGraph
    from omnigraph.mutation.execute import MutationResult

LOST = 4


@click.command(cls=Command, scope=WRITE)
@takes_queries
@branch_option
@click.option("--if-commit", metavar="ID", help="Only while this commit is the head of the branch; else exit 4.")
@message_option
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
    settings, target = context.ensure_object(Settings), resolve(context)
    asked = {"message": message, "if_commit": if_commit, "idempotency_key": idempotency_key}
    try:
        if calls[0].text is None:
            format = "json" if as_json else "table"
            run_stored(settings, target, calls[0], format=format, branch=branch, expect_mutation=True, **asked)
            return
        graph = open_graph(target, "rw", settings.actor)
        result = _mutated(graph, calls, branch=branch or MAIN, **asked)
    except PreconditionFailed as error:
        if as_json:
            output.json(precondition_output(error))
        else:
            output.report(error, settings.debug)
        context.exit(LOST)
    names = ", ".join(call.name for call in calls if call.name)
    print_change(branch or MAIN, names, graph.actor, result, as_json=as_json)


def _mutated(graph: AnyGraph, calls: list[QueryCall], **options: Any) -> MutationResult:
    """Run the calls as one commit; an error names the file of its query."""
    if len(calls) == 1:
        with naming(calls[0].file):
            return graph.mutate(calls[0].source, calls[0].name, calls[0].params, **options)
    with graph.transaction(**options) as transaction:
        for call in calls:
            with naming(call.file):
                transaction.mutate(call.source, call.name, call.params)
    assert transaction.result is not None, "a block that ended without an error is committed"
    return transaction.result
