"""`omnigraph ensure-indices`, `optimize`, `cleanup` and `repair`: the upkeep of the tables of a graph."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

import click

from omnigraph.cli import output
from omnigraph.cli.addressing import Stored, confirm_destruction, echo_write, open_graph, resolve_storage
from omnigraph.cli.commands import Command
from omnigraph.cli.options import (
    branch_option,
    confirm_option,
    dry_run_option,
    engine_options,
    idempotency_option,
    json_option,
    message_option,
    positional_uri,
)
from omnigraph.cli.progress import counted_progress
from omnigraph.cli.scope import DIRECT
from omnigraph.cli.settings import Settings
from omnigraph.cli.wording import dataset_name, size
from omnigraph.commit.model import MAIN
from omnigraph.spark.options import SparkOptions

if TYPE_CHECKING:
    from omnigraph.graph.graph import Graph
    from omnigraph.maintenance.optimize import OptimizedTable
    from omnigraph.maintenance.repair import RepairedTable
    from omnigraph.maintenance.retention import Reason


@click.command("ensure-indices", cls=Command, scope=DIRECT)
@positional_uri
@branch_option
@click.option(
    "--type", "types", metavar="TYPE", multiple=True, help="Only this type, such as node:Person; may be repeated."
)
@message_option
@idempotency_option
@dry_run_option
@json_option
@engine_options
@click.pass_context
def ensure_indices(
    context: click.Context,
    uri: str | None,
    branch: str | None,
    types: tuple[str, ...],
    message: str | None,
    idempotency_key: str | None,
    dry_run: bool,
    as_json: bool,
    engine: Literal["auto", "local", "spark"],
    spark: SparkOptions,
) -> None:
    """Build the indexes that are declared and missing."""
    target, graph = _opened(context, "ensure-indices", uri, spark, dry_run=dry_run)
    with counted_progress(context.ensure_object(Settings).quiet) as progress:
        report = graph.ensure_indices(
            branch or MAIN,
            types=types or None,
            engine=engine,
            message=message,
            progress=progress,
            dry_run=dry_run,
            idempotency_key=idempotency_key,
        )
    if as_json:
        output.json({"uri": target.uri, "branch": branch or MAIN} | report.to_dict())
        return
    built = "to build" if dry_run else "built"
    output.line(f"ensure-indices {target.uri} — {len(report.built)} {built}, {len(report.pending)} pending")
    for index in report.built:
        output.line(f"  {_place(index.type_key, index.column)}: {index.kind}")
    for index in report.pending:
        output.line(f"  {_place(index.type_key, index.column)}: {index.kind} pending: {index.reason}")
    if dry_run:
        output.note("nothing was changed; leave --dry-run out to do it")


def _opened(
    context: click.Context, command: str, uri: str | None, spark: SparkOptions, *, dry_run: bool
) -> tuple[Stored, Graph]:
    """Where the graph lies, and the graph, which a dry run only reads."""
    settings = context.ensure_object(Settings)
    target = resolve_storage(context, uri)
    if not dry_run:
        echo_write(settings, command, target)
    return target, open_graph(target, "ro" if dry_run else "rw", settings.actor, spark=spark)


def _place(type_key: str, column: str) -> str:
    kind, _, name = type_key.partition(":")
    return f"{kind} type '{name}' property '{column}'"


@click.command(cls=Command, scope=DIRECT)
@positional_uri
@branch_option
@message_option
@idempotency_option
@dry_run_option
@json_option
@engine_options
@click.pass_context
def optimize(
    context: click.Context,
    uri: str | None,
    branch: str | None,
    message: str | None,
    idempotency_key: str | None,
    dry_run: bool,
    as_json: bool,
    engine: Literal["auto", "local", "spark"],
    spark: SparkOptions,
) -> None:
    """Compact the tables of a branch and build and complete their indexes, in one commit."""
    target, graph = _opened(context, "optimize", uri, spark, dry_run=dry_run)
    with counted_progress(context.ensure_object(Settings).quiet) as progress:
        report = graph.optimize(
            branch,
            engine=engine,
            message=message,
            progress=progress,
            dry_run=dry_run,
            idempotency_key=idempotency_key,
        )
    if as_json:
        output.json({"uri": target.uri} | report.to_dict())
        return
    output.line(f"optimize {target.uri} — {len(report.datasets)} datasets")
    for table in report.datasets:
        outcome = _plan(table) if dry_run else _outcome(table)
        output.line(f"  {dataset_name(table.type_key)}  {outcome}")
        for pending in table.pending_indexes:
            output.line(f"    ↳ index pending on property '{pending.property}': {pending.reason}")
    if dry_run:
        output.note("nothing was changed; leave --dry-run out to do it")


def _outcome(table: OptimizedTable) -> str:
    if table.skipped is not None:
        return f"skipped ({table.skipped})"
    if not table.committed:
        return "no-op"
    return f"frags {table.fragments_before} → {table.fragments_after} ✓"


def _plan(table: OptimizedTable) -> str:
    """What would be done about a table."""
    if table.skipped is not None:
        return f"would be skipped ({table.skipped})"
    parts = []
    if table.built_indexes:
        parts.append(f"build {len(table.built_indexes)} indexes")
    if table.folded_indexes:
        parts.append(f"bring {len(table.folded_indexes)} indexes up to date")
    if table.fragments_removed:
        parts.append(f"compact frags {table.fragments_before} → {table.fragments_after}")
    return f"would {', '.join(parts)}" if parts else "no-op"


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
@idempotency_option
@json_option
@click.pass_context
def cleanup(
    context: click.Context,
    uri: str | None,
    keep: int | None,
    older_than: str | None,
    confirm: bool,
    idempotency_key: str | None,
    as_json: bool,
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
    report = graph.cleanup(keep=keep, older_than=older_than, dry_run=not confirm, idempotency_key=idempotency_key)
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


@click.command(cls=Command, scope=DIRECT)
@positional_uri
@branch_option
@confirm_option
@click.option("--force", is_flag=True, help="Publish also what changed rows; needs --confirm.")
@json_option
@click.pass_context
def repair(
    context: click.Context, uri: str | None, branch: str | None, confirm: bool, force: bool, as_json: bool
) -> int:
    """Look at tables whose storage is ahead of the graph, and publish what is verified."""
    if force and not confirm:
        raise click.UsageError("--force publishes rows that nobody committed; it needs --confirm")
    settings = context.ensure_object(Settings)
    target = resolve_storage(context, uri)
    echo_write(settings, "repair", target)
    # Looking changes nothing, not even what waits for recovery.
    graph = open_graph(target, "rw" if confirm else "ro", settings.actor)
    report = graph.repair(branch, confirm=confirm, force=force)
    if as_json:
        output.json({"uri": target.uri} | report.to_dict())
        return int(report.refused)
    drifted = [table for table in report.datasets if table.action != "no_op"]
    output.line(f"repair {target.uri} — {len(report.datasets)} datasets, {len(drifted)} drifted")
    for table in drifted:
        output.line(f"  {dataset_name(table.type_key)}{_on(table)}  {_repair_outcome(table)}")
    if drifted and not confirm:
        output.note("nothing was changed; pass --confirm to publish what is verified")
    return int(report.refused)


def _on(table: RepairedTable) -> str:
    return "" if table.branch == "main" else f" on branch '{table.branch}'"


def _repair_outcome(table: RepairedTable) -> str:
    head = "unreadable" if table.lance_head_version is None else str(table.lance_head_version)
    operations = f" by {', '.join(table.operations)}" if table.operations else ""
    problem = f": {table.error}" if table.error is not None else ""
    return (
        f"published {table.published_dataset_version}, storage {head}{operations}: "
        f"{table.classification}, {table.action}{problem}"
    )
