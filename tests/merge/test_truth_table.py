"""Every case of a three-way merge of one entity: what each side did to it, times how the schemas of the sides differ.

The outcome of each cell is foretold by a small model that knows nothing of the implementation: rows are dictionaries, a schema
is a set of properties with what rows get that have no value.
"""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.errors import MergeConflicts
from tests.merge.graphs import everything

KINDS = ("node", "keyed edge", "plain edge")
STATES = ("absent", "same", "same property", "other property", "deleted")
SCHEMAS = ("same", "ours wider", "theirs wider", "both equal", "both different", "dropped")

#: What each side adds to the properties a and b, with its default; None: it drops b.
_ADDED: dict[str, tuple[str | None, str | None]] = {
    "same": ("", ""),
    "ours wider": ("c: I32? @default(7)", ""),
    "theirs wider": ("", "c: I32? @default(7)"),
    "both equal": ("c: I32? @default(7)", "c: I32? @default(7)"),
    "both different": ("c: I32?", "c: String?"),
    "dropped": ("", None),
}
_TYPES = {
    "node": "node T {{ k: String @key a: I32? {rest} }}",
    "keyed edge": "edge T: P -> P {{ a: I32? {rest} @key(src, dst) }}",
    "plain edge": "edge T: P -> P {{ a: I32? {rest} }}",
}


def schema(kind: str, added: str | None) -> str:
    """The schema of a side."""
    rest = "" if added is None else f"b: I32? {added}"
    return "node P { name: String @key }\n" + _TYPES[kind].format(rest=rest)


def changed(state: str, side: str) -> dict[str, Any]:
    """The properties that a side has changed in an entity that the base has."""
    value = 1 if side == "ours" else 2
    # `same property` is a on both sides; `other property` is b of ours and a of theirs, or the other way round.
    return {"same": {}, "same property": {"a": value}, "other property": {"b": value}, "deleted": {}}[state]


# --- the model --------------------------------------------------------------------------------------------------------


def foretold(kind: str, ours: str, theirs: str, schemas: str) -> str | dict[str, Any] | None:
    """The kind of the first conflict, else the values of the merged entity; None: it is gone."""
    if schemas == "both different":
        return "SchemaConflict"
    absent = "absent" in (ours, theirs)
    base: Any = None if absent else {"a": 0, "b": 0}
    mine, other = (
        None if state in ("absent", "deleted") else {"a": 0, "b": 0} | changed(state, side)
        for state, side in ((ours, "ours"), (theirs, "theirs"))
    )
    if schemas == "dropped":
        # Theirs has no b; what ours has written to b since the base is lost by the drop.
        wrote = mine is not None and mine["b"] is not None and (base is None or mine["b"] != base["b"])
        if wrote:
            return "SchemaConflict"
        base, mine, other = (None if row is None else {"a": row["a"]} for row in (base, mine, other))
    merged: str | dict[str, Any] | None = _three_way(base, mine, other)
    if isinstance(merged, str) or merged is None:
        return merged
    return merged | ({} if schemas in ("same", "dropped") else {"c": 7})


def _three_way(base: Any, ours: Any, theirs: Any) -> Any:
    if ours == theirs or theirs == base:
        return ours
    if ours == base:
        return theirs
    if base is None:
        return "DivergentInsert"
    return "DeleteVsUpdate" if ours is None or theirs is None else "DivergentUpdate"


# --- the graph --------------------------------------------------------------------------------------------------------


def carry_out(graph: og.Graph, kind: str, state: str, side: str, *, absent: bool, has_b: bool) -> None:
    """What one side does to the entity."""
    branch = "main" if side == "ours" else "feature"
    values = changed(state, side) if state not in ("absent", "deleted") else {}
    if not has_b:
        values = {name: value for name, value in values.items() if name != "b"}
    if absent and state in ("absent", "deleted"):
        return
    if absent:
        values = ({"a": 0, "b": 0} if has_b else {"a": 0}) | values
        listed = ", ".join(f"{name}: {value}" for name, value in values.items())
        ends = 'k: "t"' if kind == "node" else 'from: "x", to: "y"'
        graph.mutate(f"query w() {{ insert T {{ {ends}, {listed} }} }}", branch=branch)
        return
    where = 'k = "t"' if kind == "node" else 'from = "x"'
    if state == "deleted":
        graph.mutate(f"query w() {{ delete T where {where} }}", branch=branch)
    elif values:
        listed = ", ".join(f"{name}: {value}" for name, value in values.items())
        graph.mutate(f"query w() {{ update T set {{ {listed} }} where {where} }}", branch=branch)


def cell(tmp_path: Path, kind: str, ours: str, theirs: str, schemas: str) -> str | dict[str, Any] | None:
    """What a merge of the cell does."""
    absent = "absent" in (ours, theirs)
    graph = og.init(tmp_path / "g", schema(kind, ""))
    graph.mutate('query w() { insert P { name: "x" } insert P { name: "y" } }')
    if not absent:
        ends = 'k: "t"' if kind == "node" else 'from: "x", to: "y"'
        graph.mutate(f"query w() {{ insert T {{ {ends}, a: 0, b: 0 }} }}")
    graph.create_branch("feature")
    added = _ADDED[schemas]
    for side, state, extra in (("ours", ours, added[0]), ("theirs", theirs, added[1])):
        branch = "main" if side == "ours" else "feature"
        if extra is None:
            # What is written before the drop goes with it.
            carry_out(graph, kind, state, side, absent=absent, has_b=True)
        graph.apply_schema(schema(kind, extra), branch=branch)
        if extra is not None:
            carry_out(graph, kind, state, side, absent=absent, has_b=True)
    try:
        graph.merge("feature")
    except MergeConflicts as error:
        kinds = [conflict.kind for conflict in error.conflicts]
        return "SchemaConflict" if "SchemaConflict" in kinds else kinds[0]
    key = "node:T" if kind == "node" else "edge:T"
    rows = everything(graph)[key]
    assert len(rows) <= 1 or kind == "plain edge"
    found: list[dict[str, Any]] = [{name: row[name] for name in ("a", "b", "c") if name in row} for row in rows]
    if len(found) == 2:
        return {"rows": 2}
    return found[0] if found else None


def expected(kind: str, ours: str, theirs: str, schemas: str) -> str | dict[str, Any] | None:
    """The model, and what is different about edges without a key: two that were inserted are two."""
    there = [state not in ("absent", "deleted") for state in (ours, theirs)]
    if kind == "plain edge" and "absent" in (ours, theirs) and all(there):
        raise AssertionError("one side of such a cell has nothing")
    return foretold(kind, ours, theirs, schemas)


CELLS = list(product(KINDS, STATES, STATES, SCHEMAS))


@pytest.mark.parametrize("schemas", SCHEMAS)
@pytest.mark.parametrize("kind", KINDS)
def test_some_cells(tmp_path: Path, kind: str, schemas: str) -> None:
    pairs = [
        ("same", "same property"),
        ("same property", "other property"),
        ("deleted", "other property"),
        ("absent", "same"),
    ]
    for number, (ours, theirs) in enumerate(pairs):
        found = cell(tmp_path / str(number), kind, ours, theirs, schemas)
        assert found == expected(kind, ours, theirs, schemas), (ours, theirs)


@pytest.mark.long
@pytest.mark.parametrize(("kind", "ours", "theirs", "schemas"), CELLS)
def test_the_whole_table(tmp_path: Path, kind: str, ours: str, theirs: str, schemas: str) -> None:
    assert cell(tmp_path, kind, ours, theirs, schemas) == expected(kind, ours, theirs, schemas)
