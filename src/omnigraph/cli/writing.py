"""What writing commands owe their caller: an echo of what they write to, and a question before they destroy."""

from __future__ import annotations

import sys

import click

from omnigraph.cli import output
from omnigraph.cli.addressing import Target
from omnigraph.cli.settings import Settings
from omnigraph.errors import BadRequest


def echo_write(settings: Settings, label: str, target: Target) -> None:
    """Say on stderr which graph a command is about to write to, unless `--quiet`."""
    if not settings.quiet:
        output.note(f"omnigraph {label} → {target.uri} ({target.access})")


def confirm_destruction(settings: Settings, label: str, target: Target, *, as_json: bool) -> None:
    """Let a destructive write on a non-local target pass only with `--yes`, or when a person types `yes`."""
    if target.is_local or settings.yes:
        return
    if as_json or not output.is_terminal(sys.stdin):
        raise BadRequest(
            f"refusing destructive `{label}` against non-local target {target.uri}; pass --yes to go ahead"
        )
    answer = click.prompt(f"`{label}` destroys data in {target.uri}; type `yes` to go ahead", default="", err=True)
    if answer != "yes":
        raise BadRequest(f"`{label}` was not confirmed; nothing was changed")
