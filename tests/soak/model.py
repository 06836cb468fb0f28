"""The independent model of the soak: what a graph holds, as plain dicts, and what each operation makes of it.

Nothing here uses the engine. A state is `{type: {key: row}}`; rows are never changed in place, so states share them. A node's key
is its key property, the key of a `Next` edge its two ends, the key of another edge its `token`, which no two edges share. A
property is known by the part of its name before `_`, so that a rename (`rank_3` to `rank_4`) changes nothing; null is absent.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

SCHEMA = """
node Item {
  code: String @key
  owner: String @index
  rank_0: I64?
  mark: I64? @unique
  note: String?
}
node Group {
  name: String @key
  size: I64?
}
edge Next: Item -> Item {
  weight: I64?
  @key(src, dst)
}
edge Joins: Item -> Group {
  token: String
  level: I64?
}
edge Leads: Item -> Group @card(0..1) {
  token: String
}
"""
#: The key property of each node type, and the types at the ends of each edge type.
NODES = {"Item": "code", "Group": "name"}
EDGES = {"Next": ("Item", "Item"), "Joins": ("Item", "Group"), "Leads": ("Item", "Group")}
TYPES = (*NODES, *EDGES)

Row = Mapping[str, Any]
State = Mapping[str, Mapping[str, Row]]
#: An operation as it is written down before it is tried.
Intent = Mapping[str, Any]
#: An export line: `{"type", "data"}` or `{"edge", "from", "to", "data"}`.
Line = Mapping[str, Any]

EMPTY: State = {name: {} for name in TYPES}


class Impossible(Exception):
    """The model says that an operation that was carried out had to be refused."""


# --- rows -------------------------------------------------------------------------------------------------------------


def placed(line: Line) -> tuple[str, str, Row]:
    """Type, key and row of an export or load line."""
    data = {name.partition("_")[0]: value for name, value in line["data"].items() if name != "id" and value is not None}
    if "type" in line:
        return line["type"], data[NODES[line["type"]]], data
    row = {"src": line["from"], "dst": line["to"], **data}
    return line["edge"], f"{line['from']}>{line['to']}" if line["edge"] == "Next" else data["token"], row


def state_of(lines: Iterable[Line]) -> State:
    """The state that an export shows; raises when it holds one entity twice."""
    state: dict[str, dict[str, Row]] = {name: {} for name in TYPES}
    ids: set[tuple[str, str]] = set()
    for line in lines:
        name, key, row = placed(line)
        entity = (name, line["data"]["id"])
        if key in state[name] or entity in ids:
            raise Impossible(f"{name} {key} (id {entity[1]}) is there twice")
        ids.add(entity)
        state[name][key] = row
    return state


def digest(state: State) -> str:
    """A short text that two states share only when they are equal."""
    plain = {name: dict(sorted(rows.items())) for name, rows in state.items() if rows}
    return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()[:16]


def flat(state: State) -> dict[tuple[str, str], Row]:
    return {(name, key): row for name, rows in state.items() for key, row in rows.items()}


def difference(before: State, after: State) -> dict[tuple[str, str], tuple[Row | None, Row | None]]:
    """The entities that differ, with both images."""
    old, new = flat(before), flat(after)
    return {at: (old.get(at), new.get(at)) for at in {*old, *new} if old.get(at) != new.get(at)}


def faults(state: State) -> Iterator[str]:
    """Every rule of the schema that a state breaks."""
    for name, ends in EDGES.items():
        for key, row in state[name].items():
            for end, node in zip(("src", "dst"), ends, strict=True):
                if row[end] not in state[node]:
                    yield f"{name} {key} dangles: {node} {row[end]} is gone"
    marks = Counter(row["mark"] for row in state["Item"].values() if "mark" in row)
    yield from (f"mark {mark} is on {count} items" for mark, count in marks.items() if count > 1)
    led = Counter(row["src"] for row in state["Leads"].values())
    yield from (f"{item} leads {count} groups" for item, count in led.items() if count > 1)


# --- operations -------------------------------------------------------------------------------------------------------


def write(state: State, intent: Intent) -> State:
    """What a mutation or a load makes of the state it was committed on."""
    after = {name: dict(rows) for name, rows in state.items()}
    match intent["op"]:
        case "insert":
            _put(after, intent["lines"])
        case "update":
            for key, row in state[intent["type"]].items():
                if row.get(intent["where"][0]) == intent["where"][1]:
                    after[intent["type"]][key] = _without_nulls({**row, **intent["set"]})
        case "delete":
            _delete(after, state, intent["type"], *intent["where"])
        case "load" | "ingest":
            _load(after, intent["lines"], intent["mode"])
        case other:
            raise Impossible(f"a {other} makes no commit")
    return after


def _put(after: dict[str, dict[str, Row]], lines: Iterable[Line]) -> None:
    for line in lines:
        name, key, row = placed(line)
        after[name][key] = row


def _without_nulls(row: Row) -> Row:
    return {name: value for name, value in row.items() if value is not None}


def _delete(after: dict[str, dict[str, Row]], before: State, name: str, column: str, value: object) -> None:
    gone = {key for key, row in before[name].items() if row.get(column) == value}
    for key in gone:
        del after[name][key]
    for edge, ends in EDGES.items():
        for key, row in before[edge].items():
            if any(node == name and row[end] in gone for end, node in zip(("src", "dst"), ends, strict=True)):
                after[edge].pop(key, None)


def _load(after: dict[str, dict[str, Row]], lines: Iterable[Line], mode: str) -> None:
    rows = [placed(line) for line in lines]
    if mode == "overwrite":
        for name in {name for name, _, _ in rows}:
            after[name] = {}
    for name, key, row in rows:
        if mode != "merge" and key in after[name]:
            raise Impossible(f"{mode} of {name} {key}, which existed")
        after[name][key] = row


# --- three states become one ------------------------------------------------------------------------------------------


@dataclass
class Merged:
    """A merge of three states; `conflicts` are the entities that only a strategy decides."""

    state: dict[str, dict[str, Row]]
    conflicts: list[tuple[str, str]] = field(default_factory=list)


def combine(base: State, ours: State, theirs: State, strategy: str | None, by_property: bool) -> Merged:
    """Three-way merge, entity by entity: what theirs changed since base, on top of ours."""
    merged = Merged({name: dict(rows) for name, rows in ours.items()})
    kept, returned = set(), set()
    for (name, key), (old, new) in sorted(difference(base, theirs).items()):
        mine = ours[name].get(key)
        if mine == new:
            continue
        if mine == old or (mine is None and new is None):
            decided = new
        elif (
            by_property
            and old is not None
            and mine is not None
            and new is not None
            and (strategy is not None or not _clash(old, mine, new))
        ):
            decided = _mixed(old, mine, new, strategy)
        elif strategy is None:
            merged.conflicts.append((name, key))
            continue
        else:
            decided = mine if strategy == "ours" else new
            if new is None and decided is not None and name in NODES:
                kept.add((name, key))
            if mine is None and decided is not None and name in NODES:
                returned.add((name, key))
        if decided is None:
            merged.state[name].pop(key, None)
        else:
            merged.state[name][key] = decided
    _keep_edges(merged.state, base, ours, theirs, kept)
    _bring_edges(merged.state, base, ours, theirs, returned)
    return merged


def _keep_edges(
    after: dict[str, dict[str, Row]], base: State, ours: State, theirs: State, kept: set[tuple[str, str]]
) -> None:
    """A node that theirs deleted and that stays keeps its edges, where their other ends stay too."""
    for name, ends in EDGES.items():
        for key, row in ours[name].items():
            if key in after[name] or key in theirs[name]:
                continue
            nodes = [(node, row[end]) for end, node in zip(("src", "dst"), ends, strict=True)]
            if any(node in kept for node in nodes) and all(at in after[node] for node, at in nodes):
                after[name][key] = row


def _bring_edges(
    after: dict[str, dict[str, Row]], base: State, ours: State, theirs: State, returned: set[tuple[str, str]]
) -> None:
    """A node that ours deleted and that comes back brings the edges it went with, where their other ends are there too."""
    for name, ends in EDGES.items():
        for key, row in theirs[name].items():
            if key in after[name] or key in ours[name] or key not in base[name]:
                continue
            nodes = [(node, row[end]) for end, node in zip(("src", "dst"), ends, strict=True)]
            if any(node in returned for node in nodes) and all(at in after[node] for node, at in nodes):
                after[name][key] = row


def _clash(old: Row, mine: Row, new: Row) -> bool:
    """Whether both sides changed one property differently."""
    return any(_differs(name, old, mine, new) for name in {*old, *mine, *new})


def _differs(name: str, old: Row, mine: Row, new: Row) -> bool:
    return len({old.get(name), mine.get(name), new.get(name)}) == 3


def _mixed(old: Row, mine: Row, new: Row, strategy: str | None) -> Row:
    """Property by property: the side that changed it, and of two changes the one that the strategy names."""
    taken = {}
    for name in {*old, *mine, *new}:
        kept = new.get(name) == old.get(name) or (strategy == "ours" and _differs(name, old, mine, new))
        taken[name] = mine.get(name) if kept else new.get(name)
    return _without_nulls(taken)


# --- history ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Node:
    """A commit as the model keeps it."""

    id: str
    parent: str | None
    merged_parent: str | None


def ancestors(nodes: Mapping[str, Node], commit: str) -> set[str]:
    """A commit and everything it is built on."""
    found: set[str] = set()
    waiting = [commit]
    while waiting:
        at = waiting.pop()
        if at not in found:
            found.add(at)
            waiting += [up for up in (nodes[at].parent, nodes[at].merged_parent) if up is not None]
    return found


def bases(nodes: Mapping[str, Node], one: str, other: str) -> set[str]:
    """The best common ancestors: common ones that no other common one is built on."""
    common = ancestors(nodes, one) & ancestors(nodes, other)
    covered = {
        up for at in common for up in (nodes[at].parent, nodes[at].merged_parent) if up is not None and up in common
    }
    return common - covered
