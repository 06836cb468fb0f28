"""`omnigraph cleanup`: remove old versions and what nothing refers to any more."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import click

from omnigraph.cli import output
from omnigraph.cli.addressing import open_graph, resolve_storage
from omnigraph.cli.commands import Command
from omnigraph.cli.options import confirm_option, json_option, positional_uri
from omnigraph.cli.scope import DIRECT
from omnigraph.cli.settings import Settings
from omnigraph.cli.types_shown import dataset_name, size
from omnigraph.cli.writing import confirm_destruction, echo_write

if TYPE_CHECKING:
    from omnigraph.maintenance.retention import Reason

_REASONS: Mapping[Reason, str] = {
    "head": "as its newest state",
    "feed": "for the change feed (OMNIGRAPH_FEED_RETENTION)",
    "job": "for running jobs",
    "tag": "for tags",
    "merge_base": "as the base of merges between branches",
    "fork_point": "for branches that began there",
}
_UNITS = ((86_400, "d"), (3600, "h"), (60, "m"), (1, "s"))


@click.command(cls=Command, scope=DIRECT)
@positional_uri
@click.option("--keep", type=click.IntRange(min=1), metavar="N", help="Keep the newest N commits of each branch.")
@click.option("--older-than", metavar="AGE", help="Remove only what is older: 30s, 90m, 24h, 7d, 2w.")
@confirm_option
@json_option
@click.pass_context
def cleanup(
    context: click.Context, uri: str | None, keep: int | None, older_than: str | None, confirm: bool, as_json: bool
) -> int:
    """Remove old versions, and files that nothing refers to any more."""
    if keep is None and older_than is None:
        raise click.UsageError("cleanup needs to know what to keep; pass --keep N, --older-than AGE, or both")
    settings = context.ensure_object(Settings)
    target = resolve_storage(context, uri)
    if confirm:
        confirm_destruction(settings, "cleanup", target, as_json=as_json)
    echo_write(settings, "cleanup", target)
    graph = open_graph(target, "rw", settings.actor)
    report = graph.cleanup(keep=keep, older_than=older_than, dry_run=not confirm)
    if not confirm:
        output.note(f"would {_policy(keep, older_than)}{_feed_window()}; pass --confirm to do it")
    if as_json:
        output.json({"uri": target.uri} | report.to_dict())
    else:
        removed = "removed" if confirm else "to remove"
        output.line(f"cleanup {target.uri} — {size(report.bytes_removed)} {removed}")
        for dataset in report.datasets:
            line = (
                f"  {dataset_name(dataset.type_key)}  {dataset.old_versions_removed} old versions, "
                f"{size(dataset.bytes_removed)} {removed}"
            )
            output.line(line if dataset.error is None else f"{line} (not finished: {dataset.error})")
        for kept in report.kept:
            commits = f"{kept.commits} more commit{'s' if kept.commits > 1 else ''}"
            output.line(f"  keeps {commits} of branch '{kept.branch}' {_REASONS[kept.reason]}")
    return int(any(dataset.error is not None for dataset in report.datasets))


def _feed_window() -> str:
    """What stays whatever the policy says, and what to set for another length of time."""
    from omnigraph.maintenance.durations import FEED_RETENTION, feed_retention

    seconds = int(feed_retention().total_seconds())
    if not seconds:
        return ""
    size, unit = next((size, unit) for size, unit in _UNITS if seconds % size == 0)
    return f", and all commits of the last {seconds // size}{unit} ({FEED_RETENTION})"


def _policy(keep: int | None, older_than: str | None) -> str:
    """The policy in words."""
    parts = []
    if keep is not None:
        parts.append(f"keep the newest {keep} commit{'s' if keep > 1 else ''} of each branch")
    if older_than is not None:
        parts.append(f"keep what is younger than {older_than}")
    return " and ".join(parts)
