"""`omnigraph version`."""

from __future__ import annotations

import click

from omnigraph import __version__
from omnigraph.cli import output
from omnigraph.cli.commands import Command
from omnigraph.cli.options import json_option
from omnigraph.cli.scope import LOCAL


@click.command(cls=Command, scope=LOCAL)
@json_option
def version(as_json: bool) -> None:
    """Show the version of OmniGraph and of its on-disk format."""
    from omnigraph.commit.format import CURRENT

    if as_json:
        output.json({"omnigraph": __version__, "internal_schema": CURRENT})
        return
    output.line(f"omnigraph {__version__}")
    output.line(f"internal-schema {CURRENT}")
