"""Conflicts as people meet them: what each side says, and what can be typed to decide."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Literal

from omnigraph.cli import output
from omnigraph.cli.change_lines import shown_value
from omnigraph.errors import MergeConflicts, OmnigraphError

if TYPE_CHECKING:
    from omnigraph.client.graph import AnyGraph
    from omnigraph.merge.result import Conflict

#: A side as the library finds it: a branch or a commit.
Side = tuple[Literal["branch", "commit"], str]

_COMPARED = 10
_IN_THE_EXAMPLE = 3
#: What a strategy decides; a broken rule needs a decision about an entity.
_BETWEEN_THE_SIDES = ("SchemaConflict", "DivergentInsert", "DivergentUpdate", "DeleteVsUpdate")


def conflict_line(conflict: Conflict) -> str:
    """One conflict on one line."""
    named = conflict.type_key if conflict.entity_id is None else f"{conflict.type_key} {conflict.entity_id}"
    return f"{conflict.kind} {named}: {conflict.message}"


def explained(error: MergeConflicts, graph: AnyGraph, words: str, ours: Side, theirs: Side) -> MergeConflicts:
    """Say on stderr what is in conflict; the error that is left names the flags that decide."""
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
    """The properties in which both sides differ."""
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
    """What can be done, as it would be typed."""
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
