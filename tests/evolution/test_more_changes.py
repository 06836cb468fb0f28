"""Changes that look at the rows: wider types, required properties, enums. Change × rows × node or edge × where it happens."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pytest

import omnigraph as og
from omnigraph.errors import SchemaChangeRefused

Kind = Literal["node", "edge"]
Place = Literal["main", "branch", "shared"]


@dataclass(frozen=True)
class Change:
    """A property that changes its declaration. `refused`: the reason, by what the rows hold; none: it is carried out."""

    id: str
    old: str
    new: str
    values: tuple[Any, ...]
    after: tuple[Any, ...]
    steps: tuple[str, ...]
    refused: str | None = None
    refused_with_nulls: str | None = None
    null_becomes: Any = None


BIG = 2**63 - 1
CHANGES = [
    Change("i32-i64", "I32?", "I64?", (1, -(2**31)), (1, -(2**31)), ("widen",)),
    Change("u32-u64", "U32?", "U64?", (0, 2**32 - 1), (0, 2**32 - 1), ("widen",)),
    Change("u32-i64", "U32?", "I64?", (0, 2**32 - 1), (0, 2**32 - 1), ("widen",)),
    Change("f32-f64", "F32?", "F64?", (0.5, -0.1), (0.5, -0.10000000149011612), ("widen",)),
    Change("i32-f64", "I32?", "F64?", (7, 2**31 - 1), (7.0, 2147483647.0), ("widen",)),
    Change("i64-string", "I64?", "String?", (-BIG - 1, BIG), (str(-BIG - 1), str(BIG)), ("widen",)),
    Change("list", "[I32]?", "[I64]?", ([1, 2], []), ([1, 2], []), ("widen",)),
    Change("list-to-text", "[I64]?", "[String]?", ([1, 2], []), (["1", "2"], []), ("widen",)),
    Change(
        "widen-and-require",
        "I32?",
        "I64",
        (1, 2),
        (1, 2),
        ("widen", "add_constraint"),
        refused_with_nulls="{key}.x: it is null in 1 of 3 rows ({null}) of T; give it @default(…) or a backfill, "
        "or fill those rows first [OG-MF-104]",
    ),
    Change("widen-and-relax", "I32", "I64?", (1, 2), (1, 2), ("widen", "remove_constraint")),
    Change(
        "require",
        "I32?",
        "I32",
        (1, 2),
        (1, 2),
        ("add_constraint",),
        refused_with_nulls="{key}.x: it is null in 1 of 3 rows ({null}) of T; give it @default(…) or a backfill, "
        "or fill those rows first [OG-MF-104]",
    ),
    Change(
        "default-fills", "I32?", "I32 @default(9)", (1, 2), (1, 2), ("fill_nulls", "add_constraint"), null_becomes=9
    ),
    Change("text-to-enum", "String?", "enum(a, b)?", ("a", "b"), ("a", "b"), ("add_constraint",)),
    Change(
        "text-to-enum-refused",
        "String?",
        "enum(a)?",
        ("b", "z"),
        (),
        ("add_constraint",),
        refused="{key}.x: 2 of {rows} rows ('b' in 1, 'z' in 1) of T have other values; a are allowed; "
        "change them first [OG-MF-106]",
    ),
    Change("enum-value-removed", "enum(a, b, c)?", "enum(a, b)?", ("a", "b"), ("a", "b"), ("narrow_enum",)),
    Change(
        "enum-value-in-use",
        "enum(a, b, c)?",
        "enum(a, d)?",
        ("c", "b"),
        (),
        ("narrow_enum", "extend_enum"),
        refused="{key}.x: 2 of {rows} rows ('b' in 1, 'c' in 1) of T have other values; change them first [OG-MF-106]",
    ),
    Change(
        "not-wider",
        "I64?",
        "I32?",
        (1, 2),
        (),
        (),
        refused="{key}.x: its type can not change from I64 to I32; add another property and drop this one [OG-MF-106]",
    ),
]
CASES = [
    pytest.param(change, rows, kind, place, id=f"{change.id}-{rows}-{kind}-{place}")
    for number, change in enumerate(CHANGES)
    for rows in ("empty", "full", "nulls")
    for at, (kind, place) in enumerate(
        [(kind, place) for kind in ("node", "edge") for place in ("main", "branch", "shared")]
    )
    # Every change is met everywhere by one kind of rows, and by every kind of rows somewhere.
    if (number + at + ("empty", "full", "nulls").index(rows)) % 3 == 0
    if not (rows == "nulls" and not change.old.endswith("?"))
]


def schema(kind: Kind, declared: str) -> str:
    if kind == "node":
        return f"node T {{ k: String @key x: {declared} }}"
    return f"node N {{ k: String @key }} edge T: N -> N {{ x: {declared} }}"


def written(kind: Kind, values: tuple[Any, ...]) -> Iterator[dict[str, Any]]:
    if kind == "edge":
        yield {"type": "N", "data": {"k": "n"}}
    for number, value in enumerate(values):
        data = {} if value is None else {"x": value}
        if kind == "node":
            yield {"type": "T", "data": {"k": f"t{number}", **data}}
        else:
            yield {"edge": "T", "from": "n", "to": "n", "data": data}


def shown(graph: og.Graph, kind: Kind, branch: str | None) -> list[Any]:
    pattern = "$t: T" if kind == "node" else "$n: N $n $t:t $m"
    found = graph.query(f"query q() {{ match {{ {pattern} }} return {{ $t.x as x }} }}", branch=branch)
    return sorted((row["x"] for row in found.to_dicts()), key=repr)


@pytest.mark.parametrize(("change", "rows", "kind", "place"), CASES)
def test_changes(change: Change, rows: str, kind: Kind, place: Place, tmp_path: Path) -> None:
    graph = og.init(tmp_path / "graph", schema(kind, change.old))
    values = {"empty": (), "full": change.values, "nulls": (*change.values, None)}[rows]
    branch = None if place == "main" else "b"
    if place == "branch":
        # The table is the branch's own before the change.
        graph.create_branch("b")
    graph.load(list(written(kind, values)), branch=branch if place == "branch" else None)
    if place == "shared":
        graph.create_branch("b")
    before, wanted = shown(graph, kind, branch), schema(kind, change.new)
    plan = graph.plan_schema(wanted, branch=branch)
    reason = change.refused if rows != "empty" or not change.steps else None
    if rows == "nulls" and reason is None:
        reason = change.refused_with_nulls
    if reason is not None:
        assert not plan.supported
        with pytest.raises(SchemaChangeRefused) as refused:
            graph.apply_schema(wanted, branch=branch)
        null = f"'{_null_id(graph, kind, branch)}'" if rows == "nulls" else ""
        told = reason.format(key=f"{kind}:T", rows=len(values), null=null)
        assert refused.value.message == f"the schema can not be applied: {told}"
        assert shown(graph, kind, branch) == before
        return
    applied = graph.apply_schema(wanted, branch=branch)
    filled = ("fill_nulls",) if rows == "nulls" and change.null_becomes is not None else ()
    expected = tuple(step for step in change.steps if step != "fill_nulls" or filled)
    assert tuple(step.kind for step in applied.plan.steps if step.kind != "update_property_metadata") == expected
    after = () if rows == "empty" else (*change.after, *((change.null_becomes,) if rows == "nulls" else ()))
    assert shown(graph, kind, branch) == sorted(after, key=repr)
    if branch is not None:
        assert graph.schema() == schema(kind, change.old)
    assert not graph.apply_schema(wanted, branch=branch).applied
    assert graph.verify(deep=True).ok


def _null_id(graph: og.Graph, kind: Kind, branch: str | None) -> str:
    found = graph.snapshot(branch).open(f"{kind}:T").read(["id"], "x is null")
    return str(found["id"][0].as_py())
