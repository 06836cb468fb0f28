"""`omnigraph completion`: the script that teaches a shell to complete our commands and flags."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from omnigraph.cli import output
from omnigraph.cli.commands import Command
from omnigraph.cli.scope import LOCAL

#: The variable through which the script asks the program itself what could follow.
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
