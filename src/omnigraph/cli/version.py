"""`omnigraph version`."""

from __future__ import annotations

import click

from omnigraph import __version__
from omnigraph.cli import output
from omnigraph.cli.commands import Command
from omnigraph.cli.scope import LOCAL


@click.command(cls=Command, scope=LOCAL)
def version() -> None:
    """Show the version of OmniGraph and of its on-disk format."""
    from omnigraph.commit.format import CURRENT

    output.line(f"omnigraph {__version__}")
    output.line(f"internal-schema {CURRENT}")
