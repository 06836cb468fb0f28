"""A merge as plain dictionaries, written from the words of the specification: what the engine is compared with."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

Key = tuple[str, str]
#: Entities by type key and id.
State = dict[Key, dict[str, Any]]
Conflicts = set[tuple[str, str, str]]

ENDS = {"edge:Mentors": "node:Staff", "edge:Follows": "node:Staff"}


def three_way(base: State, ours: State, theirs: State) -> tuple[State, Conflicts]:
    """The merged image, and the conflicts; an entity in conflict stays as ours has it."""
    merged: State = {}
    conflicts: Conflicts = set()
    for key in base.keys() | ours.keys() | theirs.keys():
        images = (image.get(key) for image in (base, ours, theirs))
        image, kind = _entity(*images)
        if kind is not None:
            conflicts.add((kind, *key))
        if image is not None:
            merged[key] = image
    undecided = {key[1:] for key in conflicts}
    conflicts |= {("OrphanEdge", *key) for key in _orphans(merged, undecided)}
    return merged, conflicts


def _entity(
    base: dict[str, Any] | None, ours: dict[str, Any] | None, theirs: dict[str, Any] | None
) -> tuple[dict[str, Any] | None, str | None]:
    if ours == theirs or theirs == base:
        return ours, None
    if ours == base:
        return theirs, None
    if ours is None or theirs is None:
        return ours, "DeleteVsUpdate"
    return ours, "DivergentInsert" if base is None else "DivergentUpdate"


def _orphans(merged: State, undecided: set[tuple[str, str]]) -> Iterator[Key]:
    for key, row in merged.items():
        if key in undecided:
            continue
        node = ENDS.get(key[0])
        ends = [] if node is None else [(node, row["src"]), (node, row["dst"])]
        if any(end not in merged and end not in undecided for end in ends):
            yield key
