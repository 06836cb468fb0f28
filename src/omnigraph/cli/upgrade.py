"""`omnigraph upgrade`: every branch of a graph in the current format; says before what it will do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from omnigraph.cli import output
from omnigraph.cli.addressing import echo_write, resolve_storage
from omnigraph.cli.commands import Command
from omnigraph.cli.options import json_option, positional_uri
from omnigraph.cli.scope import DIRECT
from omnigraph.cli.settings import Settings

if TYPE_CHECKING:
    from omnigraph.graph.upgrading import UpgradeReport

#: The exit code of `--check` when there is something to do.
TO_DO = 3


@click.command(cls=Command, scope=DIRECT)
@positional_uri
@click.option("--check", is_flag=True, help="Only say what would be done; exit code 3 when there is something to do.")
@json_option
@click.pass_context
def upgrade(context: click.Context, uri: str | None, check: bool, as_json: bool) -> int:
    """Bring every branch of a graph of an older format to the current one; history, branches and tags stay."""
    from omnigraph.graph.upgrading import upgrade as upgrade_at

    settings = context.ensure_object(Settings)
    target = resolve_storage(context, uri)
    report = upgrade_at(target.uri, check=True, storage_options=target.storage_options)
    if not as_json:
        _show(target.uri, report)
    if not check:
        if report.needed:
            output.flush()
            echo_write(settings, "upgrade", target)
        report = upgrade_at(target.uri, storage_options=target.storage_options)
        if report.needed and not as_json:
            output.line(f"upgraded {_branches(len(report.branches))} to format {report.current}")
    if as_json:
        output.json(report.to_dict() | {"uri": target.uri})
    return TO_DO if check and report.needed else 0


def _show(uri: str, report: UpgradeReport) -> None:
    output.line(f"upgrade {uri} — format {report.found} found, {report.current} is current")
    if not report.needed:
        output.line("nothing to do")
        return
    for name, stamp in report.branches.items():
        output.line(f"  branch '{name}': format {stamp} → {report.current}")
    for name in report.removed:
        output.line(f"  branch '{name}': removed, a run of format {report.found} left it behind")


def _branches(count: int) -> str:
    return f"{count} {'branch' if count == 1 else 'branches'}"
