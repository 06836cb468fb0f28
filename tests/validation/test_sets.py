"""Section 10, rules about many rows: judged on what is committed, minus what the write removes, plus what it brings.

The rows here are those a mutation, a load or a merge ends up with: one per id. Rows that speak of a load are tested as far as
the evaluator goes.
"""

from __future__ import annotations

import math
from typing import Any

import pytest

from omnigraph.language.schema.build import compile_schema
from omnigraph.language.schema.catalog import Catalog
from omnigraph.validation.rows import Violation
from omnigraph.validation.sets import Changes, check_sets
from tests.validation.stored_rows import StoredRows, change

USERS = compile_schema("node U { name: String @key mail: String? @unique(mail) }")


def user(name: str, mail: str | None) -> dict[str, Any]:
    return {"id": name, "name": name, "mail": mail}


def found(catalog: Catalog, changes: Changes, **stored: list[dict[str, Any]]) -> list[Violation]:
    """The violations of a write; stored rows are given as `node_U=[…]`."""
    committed = StoredRows(catalog, {key.replace("_", ":", 1): rows for key, rows in stored.items()})
    return list(check_sets(changes, committed))


# --- unique -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("incoming", "deleted", "stored", "clash"),
    [
        pytest.param([("ann", "m"), ("bob", "m")], [], [], ["ann", "bob"], id="VAL-06 within one write"),
        pytest.param([("bob", "m")], [], [("ann", "m")], ["ann", "bob"], id="VAL-07 with a committed row"),
        pytest.param([("carol", "m"), ("dave", "d")], [], [("bob", "m")], ["bob", "carol"], id="VAL-08 one of several"),
        pytest.param([("ann", "m")], [], [("ann", "m")], [], id="VAL-09 never with itself"),
        pytest.param([("ann", None), ("bob", None)], [], [("cy", None)], [], id="VAL-10 nulls are exempt"),
        pytest.param([("ann", "f"), ("cy", "t")], [], [("ann", "t")], [], id="VAL-11 given up in the same write"),
        pytest.param([("ann", "b"), ("bob", "a")], [], [("ann", "a"), ("bob", "b")], [], id="VAL-11 exchanged"),
        pytest.param([("bob", "m")], ["ann"], [("ann", "m")], [], id="a deleted row does not clash"),
    ],
)
def test_unique(incoming: list[Any], deleted: list[str], stored: list[Any], clash: list[str]) -> None:
    changes = change(USERS, "node:U", [user(*row) for row in incoming], deleted)
    violations = found(USERS, changes, node_U=[user(*row) for row in stored])
    if not clash:
        assert violations == []
        return
    (violation,) = violations
    assert (violation.kind, violation.type_key, violation.property) == ("unique", "node:U", "mail")
    assert f"@unique violation on U.mail: 'm' belongs to {clash[0]!r} and to {clash[1]!r}" in violation.message


@pytest.mark.parametrize(
    ("kind", "one", "same", "other"),
    [
        pytest.param("Date", 19723, 19723, 19724, id="VAL-12 Date"),
        pytest.param("DateTime", 0, 0, 1, id="DateTime"),
        pytest.param("Bool", True, True, False, id="Bool"),
        pytest.param("U64", 2**64 - 1, 2**64 - 1, 0, id="U64"),
        pytest.param("F64", 0.0, -0.0, 1.0, id="F64 −0 is 0"),
        pytest.param("[String]", ("a", "b"), ("a", "b"), ("a, b",), id="list"),
        pytest.param("[F64]", (0.0, math.inf), (-0.0, math.inf), (0.0, -math.inf), id="list of floats"),
        pytest.param("[DateTime]", (0,), (0,), (1,), id="list of instants"),
        pytest.param("Vector(2)", (0.0, 1.0), (-0.0, 1.0), (1.0, 0.0), id="vector"),
    ],
)
def test_unique_by_value(kind: str, one: object, same: object, other: object) -> None:
    catalog = compile_schema(f"node K {{ name: String @key v: {kind}? @unique(v) }}")
    for value, clashes in ((same, 1), (other, 0)):
        changes = change(catalog, "node:K", [{"id": "b", "name": "b", "v": value}])
        violations = found(catalog, changes, node_K=[{"id": "a", "name": "a", "v": one}])
        assert len(violations) == clashes


@pytest.mark.parametrize(
    ("kind", "value", "shown"),
    [
        ("String", "it's", '"it\'s"'),
        ("Date", -1, "'1969-12-31'"),
        ("DateTime", 1, "'1970-01-01T00:00:00.001Z'"),
        ("Bool", True, "true"),
        ("F64", math.nan, "'NaN'"),
        ("[Date]", (0,), '["1970-01-01"]'),
        ("Vector(1)", (0.5,), "[0.5]"),
    ],
)
def test_a_clash_shows_the_value_as_it_is_written(kind: str, value: object, shown: str) -> None:
    catalog = compile_schema(f"node K {{ name: String @key v: {kind} @unique(v) }}")
    (violation,) = found(catalog, change(catalog, "node:K", [{"id": name, "name": name, "v": value} for name in "ab"]))
    assert violation.message == f"@unique violation on K.v: {shown} belongs to 'a' and to 'b'"


@pytest.mark.parametrize("separator", [":", ",", "|", "\x1f", "\x00", " ", '"', "\\"])
@pytest.mark.row("VAL-14")
def test_composite_unique_does_not_join_texts(separator: str, row: list[str]) -> None:
    catalog = compile_schema("node X { slug: String @key a: String b: String @unique(a, b) }")
    rows = [
        {"id": "1", "slug": "1", "a": f"p{separator}q", "b": "r"},
        {"id": "2", "slug": "2", "a": "p", "b": f"q{separator}r"},
    ]
    assert found(catalog, change(catalog, "node:X", rows)) == []
    assert found(catalog, change(catalog, "node:X", rows[:1]), node_X=rows[1:]) == []
    again = {**rows[0], "id": "3", "slug": "3"}
    (violation,) = found(catalog, change(catalog, "node:X", [again]), node_X=rows)
    assert "@unique violation on X(a, b)" in violation.message
    assert violation.property is None


def test_a_null_in_one_of_several_columns_is_exempt() -> None:
    catalog = compile_schema("node X { slug: String @key a: String? b: String? @unique(a, b) }")
    rows = [{"id": name, "slug": name, "a": "p", "b": None} for name in ("1", "2")]
    assert found(catalog, change(catalog, "node:X", rows)) == []


def test_several_rules_are_each_judged() -> None:
    catalog = compile_schema("node X { slug: String @key a: I32? @unique(a) b: I32? @unique(b) }")
    rows = [{"id": name, "slug": name, "a": 1, "b": 2} for name in ("1", "2")]
    assert [violation.property for violation in found(catalog, change(catalog, "node:X", rows))] == ["a", "b"]


# --- endpoints --------------------------------------------------------------------------------------------------------

PEOPLE = "node S { h: String @key } node T { c: String @key }"
PLAIN = compile_schema(f"{PEOPLE} edge W: S -> T")


def source(*names: str) -> list[dict[str, Any]]:
    return [{"id": name, "h": name} for name in names]


def target(*names: str) -> list[dict[str, Any]]:
    return [{"id": name, "c": name} for name in names]


def edges(*listed: str) -> list[dict[str, Any]]:
    """Edges written `id: source target`."""
    found = []
    for line in listed:
        edge_id, _, ends = line.partition(": ")
        src, dst = ends.split()
        found.append({"id": edge_id, "src": src, "dst": dst})
    return found


@pytest.mark.parametrize(
    ("changes", "missing"),
    [
        pytest.param({"edge:W": (edges("e: s1 t1"), [])}, [], id="both committed"),
        pytest.param({"edge:W": (edges("e: s1 t9"), [])}, [("to", "t9")], id="MUT-10 no such target"),
        pytest.param({"edge:W": (edges("e: s9 t9"), [])}, [("from", "s9"), ("to", "t9")], id="LOD-11 neither end"),
        pytest.param({"edge:W": (edges("e: t1 s1"), [])}, [("from", "t1"), ("to", "s1")], id="of the other type"),
        pytest.param(
            {"edge:W": (edges("e: s2 t1"), []), "node:S": (source("s2"), [])}, [], id="LOD-10 brought by the same write"
        ),
        pytest.param(
            {"edge:W": (edges("e: s1 t1"), []), "node:S": ([], ["s1"])},
            [("from", "s1")],
            id="LOD-09 deleted by the same write",
        ),
        pytest.param(
            {"edge:W": (edges("e: s1 t1"), []), "node:S": (source("s1"), ["s1"])}, [], id="deleted and brought again"
        ),
        pytest.param({"edge:W": ([], ["e0"]), "node:S": ([], ["s1"])}, [], id="a deleted edge needs no ends"),
    ],
)
def test_endpoints(changes: dict[str, Any], missing: list[tuple[str, str]]) -> None:
    made: dict[str, Any] = {}
    for key, (rows, deleted) in changes.items():
        made |= change(PLAIN, key, rows, deleted)
    violations = found(PLAIN, made, node_S=source("s1"), node_T=target("t1"), edge_W=edges("e0: s1 t1"))
    assert {violation.kind for violation in violations} <= {"endpoint"}
    assert [violation.property for violation in violations] == [side for side, _ in missing]
    for violation, (_, name) in zip(violations, missing, strict=True):
        assert f"{name!r} not found" in violation.message
        assert violation.entity_id == "e"


def test_endpoints_are_looked_up_once_each() -> None:
    committed = StoredRows(PLAIN, {"node:S": source("s1"), "node:T": target("t1", "t2")})
    rows = edges(*(f"e{number}: s1 t{1 + number % 2}" for number in range(50)))
    assert list(check_sets(change(PLAIN, "edge:W", rows), committed)) == []
    assert committed.looked_up == [("node:S", "id", 1), ("node:T", "id", 2)]


# --- cardinality ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("card", "incoming", "deleted", "stored", "broken"),
    [
        pytest.param("0..1", edges("a: s1 t1", "b: s1 t2"), [], [], "s1: 2 edge(s), max 1", id="VAL-15 in one write"),
        pytest.param(
            "0..1", edges("b: s1 t2"), [], edges("a: s1 t1"), "s1: 2 edge(s), max 1", id="VAL-15 with a committed edge"
        ),
        pytest.param("0..1", edges("b: s2 t1"), [], edges("a: s1 t1"), None, id="VAL-15 another source"),
        pytest.param("2..", edges("a: s1 t1"), [], [], "s1: 1 edge(s), min 2", id="VAL-16 too few"),
        pytest.param("2..", edges("a: s1 t1", "b: s1 t2"), [], [], None, id="VAL-16 enough"),
        pytest.param(
            "1..", edges("e1: s2 t1"), [], edges("e1: s1 t1"), "s1: 0 edge(s), min 1", id="VAL-17 vacated source"
        ),
        pytest.param("1..", edges("e1: s2 t1"), [], edges("e1: s1 t1", "e2: s1 t2"), None, id="VAL-17 one is left"),
        pytest.param("1..", [], ["e1"], edges("e1: s1 t1"), "s1: 0 edge(s), min 1", id="VAL-18 after a delete"),
        pytest.param(
            "0..1", edges("e1: s2 t2"), [], edges("e0: s1 t1"), None, id="VAL-19 the last of two lines counts"
        ),
        pytest.param("1..", edges("a: s1 t1"), [], [], None, id="VAL-20 s2 has none and is not touched"),
        pytest.param(
            "0..1", edges("w1: s1 t2"), [], edges("w1: s1 t1"), None, id="LOD-15 a replacement is no second edge"
        ),
        pytest.param("1..1", edges("b: s1 t2"), ["a"], edges("a: s1 t1"), None, id="deleted and brought"),
    ],
)
def test_cardinality(card: str, incoming: Any, deleted: list[str], stored: Any, broken: str | None) -> None:
    catalog = compile_schema(f"{PEOPLE} edge W: S -> T @card({card})")
    changes = change(catalog, "edge:W", incoming, deleted)
    violations = found(catalog, changes, node_S=source("s1", "s2"), node_T=target("t1", "t2"), edge_W=stored)
    if broken is None:
        assert violations == []
        return
    (violation,) = violations
    name, _, counted = broken.partition(": ")
    assert (violation.kind, violation.type_key) == ("cardinality", "edge:W")
    assert f"@card violation on W: S {name!r} would have {counted}" in violation.message


@pytest.mark.row("VAL-18")
def test_a_source_that_is_deleted_is_not_counted(row: list[str]) -> None:
    catalog = compile_schema(f"{PEOPLE} edge W: S -> T @card(1..)")
    changes = {**change(catalog, "edge:W", deleted=["e1"]), **change(catalog, "node:S", deleted=["s1"])}
    assert found(catalog, changes, node_S=source("s1"), node_T=target("t1"), edge_W=edges("e1: s1 t1")) == []


def test_an_edge_type_without_bounds_counts_nothing() -> None:
    committed = StoredRows(PLAIN, {"edge:W": edges("e1: s1 t1")})
    assert list(check_sets(change(PLAIN, "edge:W", deleted=["e1"]), committed)) == []
    assert committed.looked_up == []


@pytest.mark.row("VAL-20")
def test_only_touched_sources_are_looked_up(row: list[str]) -> None:
    catalog = compile_schema(f"{PEOPLE} edge W: S -> T @card(1..)")
    committed = StoredRows(catalog, {"node:S": source("s1", "s2"), "node:T": target("t1")})
    assert list(check_sets(change(catalog, "edge:W", edges("a: s1 t1")), committed)) == []
    assert ("edge:W", "src", 1) in committed.looked_up
