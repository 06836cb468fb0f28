"""`omnigraph shell`: queries and mutations one after the other, at a prompt or from a pipe."""

from __future__ import annotations

import sys

import click

from omnigraph import __version__
from omnigraph.cli import output
from omnigraph.cli.addressing import resolve
from omnigraph.cli.commands import Command
from omnigraph.cli.operator_config import config_path
from omnigraph.cli.options import branch_option, json_option, positional_uri
from omnigraph.cli.read_formats import table_style
from omnigraph.cli.scope import WRITE
from omnigraph.cli.settings import OUTPUTS, Settings
from omnigraph.cli.shell_session import Session, inputs
from omnigraph.commit.model import MAIN

FORMATS = [name for name in OUTPUTS if name != "arrow"]


@click.command(cls=Command, scope=WRITE)
@positional_uri
@branch_option
@click.option("--format", "chosen", type=click.Choice(FORMATS), help="How to print answers; a table unless given.")
@json_option
@click.pass_context
def shell(context: click.Context, uri: str | None, branch: str | None, chosen: str | None, as_json: bool) -> None:
    """Type queries and mutations at a prompt.

    From a pipe it runs what it reads and stops at the first error.
    """
    settings = context.ensure_object(Settings)
    configured = settings.output() if settings.output() in FORMATS else "table"
    session = Session(
        resolve(context, uri),
        settings.actor,
        branch or MAIN,
        "json" if as_json else chosen or configured,
        table_style(settings),
    )
    # Now, so that a graph or branch that is not there is said before anything is typed.
    session.graph.head(session.branch)
    try:
        if output.is_terminal(sys.stdin):
            _at_a_terminal(session, settings.debug)
        else:
            _from_a_pipe(session)
    finally:
        session.close()


def _from_a_pipe(session: Session) -> None:
    """Run inputs until one fails: what follows an error may depend on what it did not do."""
    for text in inputs(sys.stdin or ()):
        session.run(text)
        output.flush()
        if session.over:
            break
    session.end_script()


def _at_a_terminal(session: Session, debug: bool) -> None:
    """Run inputs until the person leaves; an error ends its input and nothing else."""
    from omnigraph.cli.shell_prompt import prompt_of

    prompt = prompt_of(session, config_path().with_name("shell_history"), sys.stdout)
    output.note(f"omnigraph {__version__} on {session.target.uri}; :help says what can be typed, :quit leaves")
    while not session.over:
        try:
            text = prompt.prompt(f"{session.branch}> ")
        except EOFError:
            return
        except KeyboardInterrupt:
            continue
        if text.strip():
            _tried(session, text, debug)


def _tried(session: Session, text: str, debug: bool) -> None:
    try:
        session.run(text)
    except KeyboardInterrupt:
        output.note("interrupted")
    except Exception as error:
        output.report(error, debug)
