"""Branches whose schemas and rows both change, as plain values: the states of a graph, and what a merge of three of them is.

A property or a type is a number that never changes, with a name that may. Two branches that add the same give it two numbers;
the merge that finds out writes down, in `aliases`, that they are one thing. Written from the words of the specification.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

Value = int | None
Row = Mapping[int, Value]
#: What a merge is stopped by: kinds of conflicts with the key of the item, None for one about the schema.
Conflicts = frozenset[tuple[str, str | None]]

NOTHING: Mapping[int, frozenset[str]] = {}


@dataclass(frozen=True)
class State:
    """One state of a branch: the type Item with its properties and rows, and further types that have keys alone."""

    properties: Mapping[int, str]
    items: Mapping[str, Row] = field(default_factory=dict)
    types: Mapping[int, str] = field(default_factory=dict)
    members: Mapping[int, frozenset[str]] = field(default_factory=dict)
    #: From a number that went to the one that stayed.
    aliases: Mapping[int, int] = field(default_factory=dict)

    def text(self, renamed: Mapping[str, str] | None = None) -> str:
        """The schema as `.pg`; `renamed`: the old names of things that are called otherwise now."""
        old = renamed or {}

        def mark(name: str) -> str:
            return f' @rename_from("{old[name]}")' if name in old else ""

        lines = [f"  {name}: I32?{mark(name)}" for name in sorted(self.properties.values())]
        types = [f"node {name}{mark(name)} {{ k: String @key }}" for name in sorted(self.types.values())]
        return "\n".join(["node Item {", "  k: String @key", *lines, "}", *types])

    def shown(self) -> dict[str, dict[str, dict[str, Value]]]:
        """The rows by type and key, with names in the place of numbers."""
        items = {
            key: {name: row[number] for number, name in self.properties.items()} for key, row in self.items.items()
        }
        return {"Item": items} | {
            name: {key: {} for key in self.members[number]} for number, name in self.types.items()
        }


def merged(
    base: State,
    ours: State,
    theirs: State,
    *,
    strategy: Literal["ours", "theirs"] | None = None,
    by_property: bool = False,
) -> State | Conflicts:
    """What a merge of theirs into ours leads to. A strategy decides about rows, and never about schemas here."""
    schema = merged_schema(base, ours, theirs)
    if isinstance(schema, frozenset):
        return schema
    states = [_seen(state, schema) for state in (base, ours, theirs)]
    items: dict[str, Row] = {}
    conflicts: set[tuple[str, str | None]] = set()
    known = schema.same.known(theirs.properties)
    for key in {key for state in states for key in state.items}:
        was, own, other = (state.items.get(key) for state in states)
        row = _row(was, own, other, known, strategy, by_property=by_property)
        if isinstance(row, str):
            conflicts.add((row, key))
        elif row is not None:
            items[key] = row
    if conflicts:
        return frozenset(conflicts)
    members = {
        number: _members(*(state.members.get(number, frozenset()) for state in states)) for number in schema.types
    }
    return State(schema.properties, items, schema.types, members, schema.aliases)


# --- schemas ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Same:
    """Which numbers mean one thing, by the number that it is known by."""

    chosen: dict[int, int]

    def of(self, number: int) -> int:
        while number in self.chosen:
            number = self.chosen[number]
        return number

    def known(self, things: Mapping[int, str]) -> dict[int, str]:
        """Things by the numbers that they are known by."""
        return {self.of(number): name for number, name in things.items()}


@dataclass(frozen=True)
class Schema:
    """The schema of a merge."""

    properties: Mapping[int, str]
    types: Mapping[int, str]
    aliases: Mapping[int, int]
    same: Same


def merged_schema(base: State, ours: State, theirs: State) -> Schema | Conflicts:
    """The schema that a merge leads to, or that there is none without a decision."""
    same = _sameness(base, ours, theirs)
    for of in ("properties", "types"):
        _join_added(same, *(getattr(state, of) for state in (base, ours, theirs)))
    found: list[dict[int, str]] = []
    for of in ("properties", "types"):
        three = [same.known(getattr(state, of)) for state in (base, ours, theirs)]
        things = _things(*three)
        if things is None or len(set(things.values())) < len(things):
            return _CLASH
        found.append(things)
        for number in three[0].keys() - things.keys():
            # One side has dropped it; has the other written to it since?
            for side, there in ((ours, three[1]), (theirs, three[2])):
                if number in there and _wrote(base, side, same, number):
                    return _CLASH
    properties, types = found
    numbers = {number for state in (base, ours, theirs) for number in _numbers(state)}
    aliases = {
        number: same.of(number)
        for number in numbers
        if same.of(number) != number and same.of(number) in {**properties, **types}
    }
    return Schema(properties, types, aliases, same)


_CLASH: Conflicts = frozenset({("SchemaConflict", None)})


def _numbers(state: State) -> Iterator[int]:
    yield from state.properties
    yield from state.types
    for pair in state.aliases.items():
        yield from pair


def _sameness(base: State, ours: State, theirs: State) -> Same:
    """What the schemas say of each other; of several numbers the one that ours uses is kept, then that of theirs."""
    groups: list[set[int]] = []
    for state in (ours, theirs, base):
        for pair in state.aliases.items():
            joined = set(pair)
            for group in [group for group in groups if group & joined]:
                groups.remove(group)
                joined |= group
            groups.append(joined)
    used = [{*state.properties, *state.types} for state in (ours, theirs, base)]

    def order(number: int) -> tuple[int, int]:
        return next((place for place, numbers in enumerate(used) if number in numbers), len(used)), number

    chosen: dict[int, int] = {}
    for group in groups:
        first, *others = sorted(group, key=order)
        chosen |= dict.fromkeys(others, first)
    return Same(chosen)


def _join_added(same: Same, base: Mapping[int, str], ours: Mapping[int, str], theirs: Mapping[int, str]) -> None:
    """What both sides have added under one name is one thing, known by the number of ours."""
    old = same.known(base)
    added = {name: number for number, name in same.known(ours).items() if number not in old}
    for number, name in same.known(theirs).items():
        if number not in old and name in added and added[name] != number:
            same.chosen[number] = added[name]


def _things(base: Mapping[int, str], ours: Mapping[int, str], theirs: Mapping[int, str]) -> dict[int, str] | None:
    """The names of what is there after a merge; None where the sides have changed one thing differently."""
    found: dict[int, str] = {}
    for number in {**ours, **theirs}:
        was, mine, other = (names.get(number) for names in (base, ours, theirs))
        if mine is None or other is None:
            there = mine or other
            assert there is not None
            if was is None:
                found[number] = there
            elif there != was:
                return None
        elif mine == other or other == was:
            found[number] = mine
        elif mine == was:
            found[number] = other
        else:
            return None
    return found


def _wrote(base: State, side: State, same: Same, number: int) -> bool:
    """Whether a side has written to a property or a type since the base. What it has deleted is no new data."""
    own = next((mine for mine in side.properties if same.of(mine) == number), None)
    old = next((was for was in base.properties if same.of(was) == number), None)
    if own is not None and old is not None:
        return any(row[own] != base.items.get(key, {old: None})[old] for key, row in side.items.items())
    after = next((keys for mine, keys in side.members.items() if same.of(mine) == number), frozenset())
    before = next((keys for was, keys in base.members.items() if same.of(was) == number), frozenset())
    return bool(after - before)


# --- rows -------------------------------------------------------------------------------------------------------------


def _seen(state: State, schema: Schema) -> State:
    """A state as the merged schema shows it: what it does not have is null."""
    numbers = {schema.same.of(number): number for number in state.properties}
    items = {
        key: {number: row[numbers[number]] if number in numbers else None for number in schema.properties}
        for key, row in state.items.items()
    }
    members = {schema.same.of(number): keys for number, keys in state.members.items()}
    return replace(state, items=items, members=members)


def _row(
    base: Row | None,
    ours: Row | None,
    theirs: Row | None,
    known: Mapping[int, str],
    strategy: str | None,
    *,
    by_property: bool,
) -> Row | str | None:
    """The merged row, None for none, or the kind of a conflict. `known`: the properties that theirs has."""
    if theirs in (base, ours):
        return ours
    if ours == base:
        return theirs
    if ours is None or theirs is None:
        return ours if strategy == "ours" else theirs if strategy == "theirs" else "DeleteVsUpdate"
    if base is not None and by_property:
        return _combined(base, ours, theirs, strategy)
    if strategy == "ours":
        return ours
    if strategy == "theirs":
        return {number: theirs[number] if number in known else ours[number] for number in ours}
    return "DivergentInsert" if base is None else "DivergentUpdate"


def _combined(base: Row, ours: Row, theirs: Row, strategy: str | None) -> Row | str:
    row: dict[int, Value] = {}
    for number, was in base.items():
        mine, other = ours[number], theirs[number]
        clashes = was not in (mine, other) and mine != other
        if clashes and strategy is None:
            return "DivergentUpdate"
        row[number] = mine if other == was or (clashes and strategy == "ours") else other
    return row


def _members(base: frozenset[str], ours: frozenset[str], theirs: frozenset[str]) -> frozenset[str]:
    return (ours | (theirs - base)) - (base - theirs)
