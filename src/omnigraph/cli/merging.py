"""`omnigraph branch merge`, `branch rebase`, `revert` and `cherry-pick`: changes from one line of history to another."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from omnigraph.cli import output
from omnigraph.cli.addressing import echo_write, open_graph, resolve
from omnigraph.cli.changes import shown_value
from omnigraph.cli.commands import Command
from omnigraph.cli.options import (
    engine_options,
    idempotency_option,
    json_option,
    message_option,
    together,
    uri_option,
)
from omnigraph.cli.scope import WRITE
from omnigraph.cli.settings import Settings
from omnigraph.commit.model import MAIN
from omnigraph.errors import MergeConflicts, OmnigraphError
from omnigraph.wire.shapes import merge_output

if TYPE_CHECKING:
    from omnigraph.client.graph import AnyGraph
    from omnigraph.merge.result import Conflict, MergeResult


#: A reference to one side of a merge: a branch or a commit.
Side = tuple[Literal["branch", "commit"], str]

_COMPARED = 10
_IN_THE_EXAMPLE = 3
#: The kinds of conflicts that a strategy decides; a broken rule needs a resolution of an entity.
_BETWEEN_THE_SIDES = ("SchemaConflict", "DivergentInsert", "DivergentUpdate", "DeleteVsUpdate")


def conflict_line(conflict: Conflict) -> str:
    """One conflict on one line."""
    named = conflict.type_key if conflict.entity_id is None else f"{conflict.type_key} {conflict.entity_id}"
    return f"{conflict.kind} {named}: {conflict.message}"


def explained(error: MergeConflicts, graph: AnyGraph, words: str, ours: Side, theirs: Side) -> MergeConflicts:
    """Print the conflicts on stderr; the error that follows names the flags that decide them."""
    conflicts: Sequence[Conflict] = error.conflicts
    compared = iter(range(_COMPARED))
    for conflict in conflicts:
        output.note(conflict_line(conflict))
        # What one side says is a help; that it can not be read is no reason to hide the conflict.
        with suppress(OmnigraphError):
            if conflict.kind in _BETWEEN_THE_SIDES and next(compared, None) is not None:
                for line in _both_sides(graph, conflict, ours, theirs):
                    output.note(line)
    count = f"{len(conflicts)} conflict{'' if len(conflicts) == 1 else 's'}"
    return MergeConflicts(f"the {words} has {count}, nothing was written. {_way_out(conflicts)}", conflicts=conflicts)


def _both_sides(graph: AnyGraph, conflict: Conflict, ours: Side, theirs: Side) -> Iterator[str]:
    """Lines with the properties that differ between both sides, or with both declarations of a schema conflict."""
    from omnigraph.language.schema.build import compile_schema

    if conflict.entity_id is None:
        for side, declared in (("ours", conflict.ours), ("theirs", conflict.theirs)):
            text = "nothing" if declared is None else str(declared["declaration"]).strip()
            yield f"  {side}: {' '.join(text.split())}"
        return
    kind: Literal["node", "edge"] = "node" if conflict.entity_kind == "node" else "edge"
    catalog = compile_schema(graph.schema())
    entity = (catalog.nodes if kind == "node" else catalog.edges)[conflict.type_name]
    if conflict.entity_id is None or any(prop.type.is_blob for prop in entity.properties.values()):
        return
    mine, other = (
        graph.entity(kind, conflict.type_name, conflict.entity_id, snapshot=_snapshot(graph, side))
        for side in (ours, theirs)
    )
    if mine is None or other is None:
        yield f"  ours: {'deleted' if mine is None else 'changed'} | theirs: {'deleted' if other is None else 'changed'}"
        return
    for name in mine:
        if mine[name] != other[name]:
            yield f"  {name}: {shown_value(mine[name])} (ours) | {shown_value(other[name])} (theirs)"


def _snapshot(graph: AnyGraph, side: Side) -> str:
    """The snapshot id of a side."""
    kind, name = side
    return (graph.snapshot(name) if kind == "branch" else graph.snapshot(at=name)).id


def _way_out(conflicts: Sequence[Conflict]) -> str:
    """The possible next commands, as they would be typed."""
    import orjson

    text = "Change one side"
    if any(conflict.kind in _BETWEEN_THE_SIDES for conflict in conflicts):
        text += ", pass --strategy ours or --strategy theirs"
    decisions = [
        {"type_key": conflict.type_key, "id": conflict.entity_id, "take": "ours"}
        for conflict in conflicts
        if conflict.entity_id is not None
    ]
    if not decisions:
        return text
    example = ", ".join(orjson.dumps(decision).decode() for decision in decisions[:_IN_THE_EXAMPLE])
    more = ", …" if len(decisions) > _IN_THE_EXAMPLE else ""
    return f"{text}, or pass --resolve FILE with decisions such as\n  [{example}{more}]"


CONFLICTS = 1


@dataclass(frozen=True)
class Sides:
    """What is asked for, in words, and where the two sides of a conflict are found."""

    words: str
    ours: Side
    theirs: Callable[[AnyGraph], Side]


#: The options for conflicts and dry runs that these commands share.
_decisions = together(
    click.option(
        "--dry-run", is_flag=True, help="Show outcome, counts and conflicts; write nothing. Exit 1 on conflicts."
    ),
    click.option(
        "--strategy",
        type=click.Choice(["ours", "theirs"]),
        help="Decide conflicts between the sides for the target (ours) or for what comes (theirs).",
    ),
    click.option("--resolve", metavar="FILE", help="Decisions about entities: a JSON file."),
    click.option(
        "--schema", metavar="FILE", help="The schema to end with (.pg); decides what the schemas disagree about."
    ),
    click.option(
        "--property-level/--entity-level",
        "property_level",
        default=None,
        help="Combine changes to different properties of one entity, or do not; as `merge.level` of the graph says unless given.",
    ),
    message_option,
    idempotency_option,
    click.option(
        "--images/--no-images",
        default=True,
        help="With --dry-run --json: conflicts with the entity on all three sides (they are shown unless refused).",
    ),
)


@click.command("merge", cls=Command, scope=WRITE)
@uri_option
@click.argument("source", metavar="SRC")
@click.option("--into", metavar="BRANCH", default=MAIN, show_default=True, help="The branch to merge into.")
@click.option("--delete-branch", is_flag=True, help="Delete SRC after it was merged; that it is refused is a warning.")
@_decisions
@json_option
@engine_options
@click.pass_context
def merge(
    context: click.Context, /, uri: str | None, source: str, into: str, delete_branch: bool, as_json: bool, **given: Any
) -> None:
    """Merge the branch SRC into another one: one commit with two parents, or nothing when there are conflicts."""

    def carry_out(graph: AnyGraph, asked: dict[str, Any]) -> MergeResult:
        return graph.merge(source, into=into, delete_branch=delete_branch, **asked)

    words = f"merge of '{source}' into '{into}'"
    sides = Sides(words, ours=("branch", into), theirs=lambda _: ("branch", source))
    result, actor = _run(context, uri, "branch merge", carry_out, given, sides)
    refused = result.stats.get("branch_delete_error")
    if refused is not None:
        output.warn(f"branch {source} was merged and not deleted: {refused}")
    shape = merge_output(source, into, actor, result)
    _show(context, result, shape, f"{source} into {into}", "merged", as_json=as_json, dry_run=given["dry_run"])


@click.command("rebase", cls=Command, scope=WRITE)
@uri_option
@click.argument("name", metavar="BRANCH")
@click.option("--onto", metavar="BRANCH", default=MAIN, show_default=True, help="The branch to bring it up to.")
@_decisions
@json_option
@engine_options
@click.pass_context
def rebase(context: click.Context, /, uri: str | None, name: str, onto: str, as_json: bool, **given: Any) -> None:
    """Bring BRANCH up to another one, schema and data, with its own change on top: one commit on BRANCH."""

    def carry_out(graph: AnyGraph, asked: dict[str, Any]) -> MergeResult:
        return graph.rebase(name, onto, **asked)

    sides = Sides(f"rebase of '{name}' onto '{onto}'", ours=("branch", name), theirs=lambda _: ("branch", onto))
    result, actor = _run(context, uri, "branch rebase", carry_out, given, sides)
    shape = {"branch": name, "onto": onto, "outcome": result.outcome, "level": result.level, "actor_id": actor}
    _show(context, result, shape, f"{name} onto {onto}", "rebased", as_json=as_json, dry_run=given["dry_run"])


@click.command(cls=Command, scope=WRITE)
@uri_option
@click.argument("commit")
@click.option("--branch", metavar="BRANCH", default=MAIN, show_default=True, help="The branch to take it back on.")
@_decisions
@json_option
@engine_options
@click.pass_context
def revert(context: click.Context, /, uri: str | None, commit: str, branch: str, as_json: bool, **given: Any) -> None:
    """Take a COMMIT back: publish the inverse of what it changed."""

    def carry_out(graph: AnyGraph, asked: dict[str, Any]) -> MergeResult:
        return graph.revert(commit, branch, **asked)

    words = f"revert of commit {commit} on '{branch}'"
    sides = Sides(
        words, ours=("branch", branch), theirs=lambda graph: ("commit", graph.commit(commit).parent or commit)
    )
    result, actor = _run(context, uri, "revert", carry_out, given, sides)
    shape = _picked(actor, result, commit, branch)
    _show(context, result, shape, f"{commit} on {branch}", "reverted", as_json=as_json, dry_run=given["dry_run"])


@click.command("cherry-pick", cls=Command, scope=WRITE)
@uri_option
@click.argument("commit")
@click.option("--onto", metavar="BRANCH", default=MAIN, show_default=True, help="The branch to apply it to.")
@_decisions
@json_option
@engine_options
@click.pass_context
def cherry_pick(
    context: click.Context, /, uri: str | None, commit: str, onto: str, as_json: bool, **given: Any
) -> None:
    """Apply one COMMIT to another branch: publish what it changed against its first parent."""

    def carry_out(graph: AnyGraph, asked: dict[str, Any]) -> MergeResult:
        return graph.cherry_pick(commit, onto, **asked)

    words = f"cherry-pick of commit {commit} on '{onto}'"
    sides = Sides(words, ours=("branch", onto), theirs=lambda _: ("commit", commit))
    result, actor = _run(context, uri, "cherry-pick", carry_out, given, sides)
    shape = _picked(actor, result, commit, onto)
    _show(context, result, shape, f"{commit} onto {onto}", "picked", as_json=as_json, dry_run=given["dry_run"])


def _run(
    context: click.Context,
    uri: str | None,
    label: str,
    carry_out: Callable[[AnyGraph, dict[str, Any]], MergeResult],
    given: dict[str, Any],
    sides: Sides,
) -> tuple[MergeResult, str | None]:
    """Carry a merge out; returns what it did, and who has written."""
    settings = context.ensure_object(Settings)
    target = resolve(context, uri, named_by="--uri")
    if not given["dry_run"]:
        echo_write(settings, label, target)
    mode: Literal["rw", "ro"] = "ro" if given["dry_run"] else "rw"
    options = ("dry_run", "strategy", "property_level", "images", "engine", "message", "idempotency_key")
    asked = {name: given[name] for name in options}
    graph = open_graph(target, mode, settings.actor, spark=given["spark"])
    try:
        wanted = None if given["schema"] is None else Path(given["schema"])
        return carry_out(graph, {**asked, "resolutions": given["resolve"], "schema": wanted}), graph.actor
    except MergeConflicts as error:
        raise explained(error, graph, sides.words, sides.ours, sides.theirs(graph)) from error


def _picked(actor: str | None, result: MergeResult, commit: str, branch: str) -> dict[str, Any]:
    told = {"outcome": result.outcome, "level": result.level, "actor_id": actor}
    return {"graph_commit_id": commit, "target": branch} | told


def _show(
    context: click.Context,
    result: MergeResult,
    shape: dict[str, Any],
    what: str,
    done: str,
    *,
    as_json: bool,
    dry_run: bool,
) -> None:
    if as_json:
        foreseen = {
            "dry_run": True,
            "stats": dict(result.stats),
            "conflicts": [conflict.to_dict() for conflict in result.conflicts],
            "decided": [decision.to_dict() for decision in result.decided],
        }
        output.json(shape | (foreseen if dry_run else {"decided": foreseen["decided"]} if result.decided else {}))
    elif dry_run:
        counts = ", ".join(f"{result.stats.get(name, 0)} {name}" for name in ("inserted", "updated", "deleted"))
        if result.conflicts:
            met = f"{len(result.conflicts)} conflict{'s' * (len(result.conflicts) > 1)}"
            output.line(f"{what} would not be {done}: {met} ({counts} without conflict)")
        else:
            output.line(f"{what} would be {done}: {result.outcome} ({counts})")
        for conflict in result.conflicts:
            output.line(conflict_line(conflict))
    else:
        output.line(f"{done} {what}: {result.outcome}")
    if not as_json:
        for line in result.lines():
            output.line(f"  {line}")
    if result.conflicts:
        context.exit(CONFLICTS)
