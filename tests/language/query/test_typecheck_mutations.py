"""Type checking of mutations: T10 … T16, values for properties, and predicates."""

from __future__ import annotations

import pytest

from omnigraph.errors import TypecheckError
from omnigraph.language.query.ast import Comparison, Ident, Insert, Mutation, Query, StringLit, Update
from omnigraph.language.query.check import check_query
from omnigraph.language.source import Source
from tests.language.query.catalogs import EVENT, KINDS, ORG, SPOT
from tests.language.query.typecheck_cases import Bad, Good, all_different, check_case, kind

CASES = all_different(
    # --- T10 … T16
    Bad("T10 update", ORG, 'query q() { update Nobody set { a: 1 } where b = "x" }', "T10"),
    Bad("T10 edge words are not types", ORG, 'query q() { delete Mentor where from = "x" }', "T10", ("Mentors",)),
    Bad("T11 update", ORG, 'query q() { update Staff set { nope: 1 } where handle = "x" }', "T11"),
    Bad("T11 update where", ORG, 'query q() { update Staff set { level: 1 } where nope = "x" }', "T11"),
    Bad("T11 delete", ORG, 'query q() { delete Staff where nope = "x" }', "T11"),
    Bad("T11 edge property", ORG, 'query q() { insert Mentors { from: "a", to: "b", nope: 1 } }', "T11"),
    Bad(
        "T11 edge columns are not written",
        ORG,
        'query q() { insert Mentors { src: "a", dst: "b" } }',
        "T11",
        ("`from`",),
    ),
    Bad("T11 dst in where", ORG, 'query q() { delete Mentors where dst = "a" }', "T11", ("written `to`",)),
    Bad("T11 from on a node", ORG, 'query q() { delete Staff where from = "a" }', "T11"),
    Bad("T11 id can not be assigned", ORG, 'query q() { insert Staff { handle: "x", id: "y" } }', "T11", ("the key",)),
    Bad("T12 from", ORG, 'query q() { insert Mentors { to: "a" } }', "T12", ("`from`",)),
    Bad("T12 edge property", KINDS, 'query q() { insert Pair { from: "a", to: "b" } }', "T12", ("`n`",)),
    Bad("T13 update", ORG, 'query q() { update Staff set { level: 1, level: 2 } where handle = "x" }', "T13"),
    Bad("T13 endpoint", ORG, 'query q() { insert Mentors { from: "a", from: "b", to: "c" } }', "T13"),
    Bad("T14 where", ORG, "query q() { delete Staff where handle = $zz }", "T14"),
    Bad("T14 Blob", KINDS, kind("bytes: $zz"), "T14"),
    Bad("T3 assignment", ORG, 'query q() { insert Staff { handle: "x", level: "high" } }', "T3", ("Staff.level",)),
    Bad("T3 fraction for an integer", KINDS, kind("i: 2.7"), "T3", ("whole",)),
    Bad("T3 beyond I32", KINDS, kind("i: 3000000000"), "T3", ("range",)),
    Bad("T3 beyond U32", KINDS, kind("u: 4294967296"), "T3", ("range",)),
    Bad("T3 beyond F32", KINDS, kind("f: 400000000000000000000000000000000000000.0"), "T3", ("range",)),
    Bad("T3 list element beyond I32", KINDS, kind("is: [1, 3000000000]"), "T3", ("range",)),
    Bad("T3 enum assignment", KINDS, kind('e: "ajar"'), "T3", ("open, shut",)),
    Bad("T3 vector assignment", KINDS, kind("v: [1.0]"), "T3", ("2",)),
    Bad("T3 scalar for a list", KINDS, kind('ss: "a"'), "T3"),
    Bad("T3 list of other elements", KINDS, kind("ss: [1]"), "T3"),
    Bad("T3 endpoint", ORG, 'query q() { insert Mentors { from: 3, to: "b" } }', "T3"),
    Bad("T7 assignment parameter", ORG, 'query q($n: String) { insert Staff { handle: "x", level: $n } }', "T7"),
    Bad("T7 endpoint parameter", ORG, 'query q($n: I32) { insert Mentors { from: $n, to: "b" } }', "T7"),
    Bad("T7 Blob parameter for text", KINDS, kind("s: $p", "$p: Blob"), "T7"),
    Bad("T7 number for a Blob", KINDS, kind("bytes: $p", "$p: I32"), "T7"),
    Bad("T7 vector of another length", KINDS, kind("v: $p", "$p: Vector(3)"), "T7"),
    Bad("T7 list for a vector", KINDS, kind("v: $p", "$p: [F32]"), "T7"),
    Bad("T7 now for text", KINDS, kind("s: now()"), "T7"),
    Bad("T7 where literal", ORG, 'query q() { delete Staff where level = "x" }', "T7"),
    Bad("T7 where parameter", ORG, "query q($p: String) { delete Staff where level = $p }", "T7"),
    Bad("T7 where now", ORG, "query q() { delete Staff where handle = now() }", "T7"),
    Bad("T7 where list", KINDS, 'query q() { delete Kind where ss = "a" }', "T7"),
    Bad("T7 where vector", KINDS, "query q($v: Vector(2)) { delete Kind where v = $v }", "T7"),
    Bad("T7 where endpoint", ORG, "query q() { delete Mentors where from = 3 }", "T7"),
    Bad("T3 where enum", KINDS, 'query q() { delete Kind where e = "ajar" }', "T3"),
    Bad("T11 property of an edge", ORG, 'query q() { update Mentors set { nope: 1 } where from = "x" }', "T11"),
    Bad("T16 src", ORG, 'query q() { update Mentors set { src: "y" } where from = "x" }', "T16"),
    Bad("T30 upsert of an edge", ORG, 'query q() { upsert Mentors { from: "a", to: "b" } }', "T30"),
    Bad("T12 upsert without its key", ORG, "query q() { upsert Staff { level: 3 } }", "T12"),
    Bad("T27 no condition", ORG, "query q() { delete Staff where level + 1 }", "T27"),
    Bad("T11 no column", ORG, "query q($a: I64) { delete Staff where $a = 1 }", "T11"),
    Bad("T11 a row that is not there yet", ORG, 'query q() { insert Staff { handle: "x", level: level + 1 } }', "T11"),
    Bad("T3 null for a required property", ORG, "query q() { insert Staff { handle: null } }", "T3"),
    # --- uncoded
    Bad(
        "no such datetime in an assignment",
        EVENT,
        'query q() { update Ev set { at: datetime("x") } where slug = "x" }',
        None,
    ),
    Bad("the key", KINDS, 'query q() { update Kind set { k: "y" } where s = "x" }', None, ("@key", "'k'", "Kind")),
    Bad(
        "part of a composite key",
        SPOT,
        "query q() { update Spot set { z: 1 x: 2 } where y = 3 }",
        None,
        ("@key", "'x'", "Spot"),
    ),
    # --- accepted
    Good("defaults need no value", KINDS, kind("")),
    Good("every literal", KINDS, kind('s: "a", b: true, i: 2.0, l: 5, u: 4294967295, w: 7, f: 0.1, d: 3, e: "open"')),
    Good(
        "dates",
        KINDS,
        kind('day: date("2024-01-01"), at: datetime("2024-01-01T00:00:00Z"), days: [date("2024-01-01")]'),
    ),
    Good("lists and vectors", KINDS, kind('ss: ["a"], is: [1, 2], v: [1, 2.5]')),
    Good("empty list of strings", KINDS, kind("ss: []")),
    Good("empty list of whatever its place takes", KINDS, kind("is: []")),
    Good("list parameter", KINDS, kind("is: $p", "$p: [I64]")),
    Good("nullable parameter for a required property", KINDS, kind("need: $p", "$p: I32?")),
    Good("edge with a property", KINDS, 'query q() { insert Pair { from: "a", to: "b", n: 3 } }'),
    Good(
        "delete edges by endpoint and property",
        ORG,
        'query q() { delete Mentors where to = "a" delete Mentors where began < date("2024-01-01") }',
    ),
    Good("delete by id", ORG, 'query q() { delete Mentors where id = "x" delete Staff where id != "y" }'),
    Good("where by another numeric type", ORG, "query q() { delete Staff where level >= 2.5 }"),
    Good("where now", EVENT, "query q() { delete Ev where at < now() }"),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_case(case: Bad | Good) -> None:
    check_case(case)


@pytest.mark.parametrize(
    "statement",
    [Insert("Staff", ()), Update("Staff", (), Comparison(Ident("handle"), "=", StringLit("x")))],
    ids=["insert", "update"],
)
def test_a_statement_that_assigns_nothing(statement: Insert | Update) -> None:
    """T10; the grammar does not let it through, a tree built by a program may hold it."""
    with pytest.raises(TypecheckError) as caught:
        check_query(Query("q", (), Mutation((statement,))), ORG, Source(""))
    assert caught.value.code == "T10"
