"""`omnigraph verify`: look for damage, say what it affects and what can be done, and with `--repair` do it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Literal

import click

from omnigraph.cli import output
from omnigraph.cli.addressing import Stored, echo_write, resolve_storage
from omnigraph.cli.commands import Command
from omnigraph.cli.options import engine_options, json_option, positional_uri
from omnigraph.cli.progress import counted_progress
from omnigraph.cli.scope import DIRECT
from omnigraph.cli.settings import Settings
from omnigraph.cli.wording import dataset_name, size
from omnigraph.errors import BadRequest
from omnigraph.spark.options import SparkOptions

if TYPE_CHECKING:
    from omnigraph.maintenance.verify_report import Damage, Restored, VerifyReport


@click.command(cls=Command, scope=DIRECT)
@positional_uri
@click.option("--deep", is_flag=True, help="Read every file whole and compare it with what was written.")
@click.option("--record", is_flag=True, help="Write the digests of files down that have none; needs --deep.")
@click.option("--repair", is_flag=True, help="Go back to undamaged versions, and drop damaged indexes; asks first.")
@json_option
@engine_options
@click.pass_context
def verify(
    context: click.Context,
    uri: str | None,
    deep: bool,
    record: bool,
    repair: bool,
    as_json: bool,
    engine: Literal["auto", "local", "spark"],
    spark: SparkOptions,
) -> int:
    """Look for damage: missing, cut or changed files, and rows that break the schema."""
    from omnigraph.graph.verification import verify as verify_at

    if record and not deep:
        raise click.UsageError("--record writes down what was read whole; it needs --deep")
    settings = context.ensure_object(Settings)
    target = resolve_storage(context, uri)
    if repair and as_json and not settings.yes:
        raise BadRequest("refusing to repair without being asked to confirm; pass --yes with --json")

    def look(*, repairing: bool) -> VerifyReport:
        with counted_progress(settings.quiet) as progress:
            return verify_at(
                target.uri,
                deep=deep,
                record=record,
                repair=repairing,
                actor=settings.actor,
                engine=engine,
                progress=progress,
                spark=spark,
                storage_options=target.storage_options,
            )

    report = look(repairing=False)
    if repair and report.repairable and _confirmed(settings, target, report, as_json=as_json):
        echo_write(settings, "verify --repair", target)
        report = look(repairing=True)
    if as_json:
        output.json({"uri": target.uri} | report.to_dict())
    else:
        _show(target, report)
    return int(not report.ok)


def _confirmed(settings: Settings, target: Stored, report: VerifyReport, *, as_json: bool) -> bool:
    """Whether the repair is wanted: `--yes`, or a person who has read what is lost and types `yes`."""
    if settings.yes:
        return True
    if as_json or not output.is_terminal(sys.stdin):
        raise BadRequest("refusing to repair without being asked to confirm; pass --yes to go ahead")
    for planned in report.repairable:
        output.note(_restored(planned, "would be"))
    answer = click.prompt(f"repair {target.uri}? What is lost stays lost; type `yes` to go ahead", default="", err=True)
    return bool(answer == "yes")


def _show(target: Stored, report: VerifyReport) -> None:
    output.line(
        f"verify {target.uri} — {_counted(report.branches, 'branch', 'branches')}, {_counted(report.tags, 'tag')}, "
        f"{_counted(report.commits, 'commit')}, {_counted(report.files, 'file')}"
        + (f", {size(report.bytes)} read" if report.deep else "")
    )
    for note in report.notes:
        output.line(f"  note: {note}")
    if report.unrecorded:
        output.line(
            f"  note: {_counted(report.unrecorded, 'file')} without a digest; `omnigraph verify --deep --record` writes it down"
        )
    if report.recorded:
        output.line(f"  {_counted(report.recorded, 'digest')} recorded")
    for restored in report.repaired:
        output.line(f"  {_restored(restored, 'was')}")
    for damage in report.damages:
        _show_damage(damage)
    output.line("no damage" if report.ok else f"{_counted(len(report.damages), 'damage')} found")
    if report.repairable:
        output.note("`omnigraph verify --repair` would do this:")
        for planned in report.repairable:
            output.note(f"  {_restored(planned, 'would be')}")


def _show_damage(damage: Damage) -> None:
    output.line(f"  {damage.kind.value}: {damage.message}")
    affected = [
        *(f"branch {name}" for name in damage.branches),
        *(f"tag {name}" for name in damage.tags),
        *([_counted(damage.commit_count, "commit")] if damage.commit_count else []),
    ]
    if affected:
        rows = f"; {_counted(damage.rows, 'row')}" if damage.rows is not None else ""
        output.line(f"    affects {', '.join(affected)}{rows}")
    if damage.entities:
        output.line(f"    such as {', '.join(damage.entities[:5])}")
    output.line(f"    ↳ {damage.remedy}")


def _restored(restored: Restored, tense: str) -> str:
    """What a repair did, or would do, to one table."""
    name = f"{dataset_name(restored.type_key)} on branch '{restored.branch}'"
    edges = f", {_counted(restored.removed_edges, 'edge')} removed" if restored.removed_edges else ""
    if restored.action == "index_dropped":
        return f"{name}: damaged indexes {tense.replace('was', 'were')} dropped"
    if restored.action == "edges_removed":
        return (
            f"{name}: {_counted(restored.removed_edges, 'edge')} without a node {tense.replace('was', 'were')} removed"
        )
    lost = "an unknown number of rows" if restored.lost_rows is None else _counted(restored.lost_rows, "row")
    return (
        f"{name}: {tense} restored to version {restored.version}; lost: {lost}, the changes of "
        f"{_counted(len(restored.lost_commits), 'commit')}{edges}"
    )


def _counted(number: int, one: str, many: str | None = None) -> str:
    return f"{number} {one if number == 1 else many or f'{one}s'}"
