"""Three schemas become one: by identity, each side's change once, everything else a clash."""

from __future__ import annotations

import pytest

from omnigraph.language.schema.accept import accept_schema
from omnigraph.language.schema.build import compile_schema
from omnigraph.language.schema.ir import SchemaIR, fingerprint
from omnigraph.language.schema.printer import print_schema
from omnigraph.language.schema.three_way import Merged, Side, merge_schemas

BASE = """
node Person { name: String @key age: I32? kind: enum(a, b)? }
node Team { slug: String @key }
edge Knows: Person -> Person
edge In: Person -> Team
"""
NICK = BASE.replace("age: I32?", "age: I32? nick: String?")
NO_TEAM = BASE.replace("node Team { slug: String @key }", "").replace("edge In: Person -> Team", "")
HUMAN = BASE.replace("node Person", 'node Human @rename_from("Person")').replace("Person ->", "Human ->")
HUMAN = HUMAN.replace("-> Person", "-> Human")


def accepted(text: str, before: SchemaIR | None = None, apart: int = 0) -> SchemaIR:
    return accept_schema(compile_schema(text), before, 7, apart)


def merged(ours: str, theirs: str, prefer: Side | None = None, base: str = BASE) -> Merged:
    start = accepted(base)
    return merge_schemas(start, accepted(ours, start), accepted(theirs, start, 1000), incarnation=9, prefer=prefer)


#: What ours and theirs make of the base, and what both together are.
TOGETHER = {
    "only ours": (NICK, BASE, NICK),
    "only theirs": (BASE, NICK, NICK),
    "both alike": (NICK, NICK, NICK),
    "two properties": (
        NICK,
        BASE.replace("age: I32?", "age: I32? city: String?"),
        BASE.replace("age: I32?", "age: I32? city: String? nick: String?"),
    ),
    "a property and a new name": (HUMAN, NICK, HUMAN.replace("age: I32?", "age: I32? nick: String?")),
    "an edge type to a renamed type": (HUMAN, BASE + "edge Likes: Person -> Team", HUMAN + "edge Likes: Human -> Team"),
    "values of an enum": (
        BASE.replace("enum(a, b)", "enum(a, b, z)"),
        BASE.replace("enum(a, b)", "enum(a, b, y)"),
        BASE.replace("enum(a, b)", "enum(a, b, y, z)"),
    ),
    "rules": (
        BASE.replace("kind:", "@range(age, 0..9) kind:"),
        BASE.replace("kind:", "@unique(age) kind:"),
        BASE.replace("kind:", "@range(age, 0..9) @unique(age) kind:"),
    ),
    "equal rules": (
        BASE.replace("kind:", "@range(age, 0..9) kind:"),
        BASE.replace("kind:", "@range(age, 0..9) kind:"),
        BASE.replace("kind:", "@range(age, 0..9) kind:"),
    ),
    "a type dropped": (NO_TEAM, BASE, NO_TEAM),
    "dropped on both": (NO_TEAM, NO_TEAM, NO_TEAM),
    "types added alike": (
        BASE + "node New { k: String @key }",
        BASE + "node New { k: String @key }",
        BASE + "node New { k: String @key }",
    ),
    "a rename and a rule by the old name": (
        BASE.replace("age: I32?", 'years: I32? @rename_from("age")'),
        BASE.replace("kind:", "@range(age, 0..9) kind:"),
        BASE.replace("age: I32?", "years: I32?").replace("kind:", "@range(years, 0..9) kind:"),
    ),
}


@pytest.mark.parametrize("case", TOGETHER)
@pytest.mark.parametrize("turned", [False, True])
def test_changes_that_go_together(case: str, turned: bool) -> None:
    ours, theirs, wanted = TOGETHER[case]
    found = merged(theirs, ours) if turned else merged(ours, theirs)
    assert found.clashes == ()
    text = print_schema(found.ir).replace(' @rename_from("Person")', "").replace(' @rename_from("age")', "")
    plain = wanted.replace(' @rename_from("Person")', "")
    assert fingerprint(compile_schema(text)) == fingerprint(compile_schema(plain))


RANGE = BASE.replace("kind:", "@range(age, LIMITS) kind:")
#: Two changes that do not go together, what they are about, and what either side alone makes of it.
CLASHES = {
    "different types": (NICK, NICK.replace("nick: String?", "nick: I64?"), ("node:Person", "nick")),
    "different ranges": (RANGE.replace("LIMITS", "0..9"), RANGE.replace("LIMITS", "0..8"), ("node:Person", None)),
    "different names": (
        HUMAN,
        HUMAN.replace("Human", "Being"),
        ("node:Human", None),
    ),
    "one name for two types": (
        BASE + "node Person2 { k: String @key }",
        HUMAN.replace("Human", "Person2"),
        ("node:Person2", None),
    ),
    "types declared differently": (
        BASE + "node New { k: String @key a: I32? }",
        BASE + "node New { k: String @key b: I32? }",
        ("node:New", None),
    ),
    "dropped and changed": (
        NO_TEAM,
        BASE.replace("slug: String @key", "slug: String @key x: I32?"),
        ("node:Team", None),
    ),
    "dropped and joined": (NO_TEAM, BASE + "edge More: Person -> Team", ("edge:More", None)),
    "dropped and used": (
        BASE.replace("age: I32?", ""),
        BASE.replace("kind:", "@unique(age) kind:"),
        ("node:Person", "age"),
    ),
    "one name for two properties": (
        BASE.replace("age: I32?", 'x: I32? @rename_from("age")'),
        BASE.replace("age: I32?", "age: I32? x: I64?"),
        ("node:Person", "x"),
    ),
    "defaults": (
        BASE.replace("age: I32?", "age: I32? @default(1)"),
        BASE.replace("age: I32?", "age: I32? @default(2)"),
        ("node:Person", "age"),
    ),
}


@pytest.mark.parametrize("case", CLASHES)
def test_changes_that_clash(case: str) -> None:
    ours, theirs, about = CLASHES[case]
    (found, *_) = merged(ours, theirs).clashes
    assert (found.type_key, found.property) == about
    # Both declarations are shown; None: that side has none.
    assert found.ours != found.theirs
    turned = merged(theirs, ours).clashes
    assert turned


NAMED = "interface Aged { age: I32? }" + BASE.replace("node Person {", "node Person implements Aged {")


@pytest.mark.parametrize("change", ["dropped", "renamed"])
@pytest.mark.parametrize("turned", [False, True])
def test_what_an_interface_asks_for_is_not_taken_away(change: str, turned: bool) -> None:
    """The property itself stays, with its number: one that is made anew under its name would be empty."""
    without = BASE.replace("age: I32?", "" if change == "dropped" else 'years: I32? @rename_from("age")')
    sides = (without, NAMED) if turned else (NAMED, without)
    (found,) = merged(*sides).clashes
    assert (found.type_key, found.property) == ("node:Person", "age")
    assert found.message == f"node:Person: interface Aged asks for age, which was {change} on the other side"
    assert found.ours != found.theirs
    number = accepted(BASE).catalog.nodes["Person"].properties["age"].id
    for prefer in ("ours", "theirs"):
        decided = merged(*sides, prefer)
        assert (decided.clashes, len(decided.decided)) == ((), 1)
        person = decided.ir.catalog.nodes["Person"]
        if (prefer == "ours") == turned:
            assert person.implements == ()
            assert "age" not in person.properties
        else:
            assert person.implements == ("Aged",)
            assert person.properties["age"].id == number


def test_an_interface_that_asks_for_less_lets_a_property_go() -> None:
    less = "interface Aged { }" + BASE.replace("node Person {", "node Person implements Aged {").replace(
        "age: I32?", ""
    )
    found = merged(NAMED, less, base=NAMED)
    assert found.clashes == ()
    assert "age" not in found.ir.catalog.nodes["Person"].properties


@pytest.mark.parametrize("prefer", [None, "ours", "theirs"])
def test_what_the_language_can_not_say_is_one_line_with_both_schemas(prefer: Side | None) -> None:
    """Each change is taken, and together they are no schema: a range of a text."""
    wide = BASE.replace("age: I32?", "age: I64?")
    text, ranged = BASE.replace("age: I32?", "age: String?"), wide.replace("kind:", "@range(age, 0..9) kind:")
    start = accept_schema(compile_schema(wide))
    sides = [accept_schema(compile_schema(side), start) for side in (text, ranged)]
    (found,) = merge_schemas(start, *sides, prefer=prefer).clashes
    assert found.message == (
        "both schemas together are not valid: parse error: @range needs a numeric property, and Person.age is String?; "
        "give the schema of the result, or change one side"
    )
    assert (found.base, found.ours, found.theirs) == tuple(map(print_schema, (start, *sides)))


@pytest.mark.parametrize("case", CLASHES)
@pytest.mark.parametrize("prefer", ["ours", "theirs"])
def test_a_side_decides(case: str, prefer: Side) -> None:
    ours, theirs, _ = CLASHES[case]
    found = merged(ours, theirs, prefer)
    assert found.clashes == ()
    assert found.decided
    chosen = ours if prefer == "ours" else theirs
    if ours == NO_TEAM and prefer == "theirs":
        # Only what theirs has changed or needs comes back.
        chosen = chosen.replace("edge In: Person -> Team", "")
    assert fingerprint(found.ir) == fingerprint(compile_schema(chosen))


def test_a_key_is_decided_by_no_side() -> None:
    found = merged(BASE + "node New { k: String @key }", BASE + "node New { k: String j: String @key }", "ours")
    assert [clash.type_key for clash in found.clashes] == ["node:New"]


def test_what_both_added_has_the_number_of_ours_and_remembers_the_other() -> None:
    base = accepted(BASE)
    ours, theirs = accepted(NICK, base), accepted(NICK, base, 1000)
    found = merge_schemas(base, ours, theirs).ir
    assert found.catalog == ours.catalog
    assert len(found.aliases) == 1
    # A later merge knows both numbers, in either direction, and from text.
    again = SchemaIR.from_json(found.to_json())
    for one, other in ((again, theirs), (theirs, again)):
        assert merge_schemas(theirs, one, other).drops == ()
        assert fingerprint(merge_schemas(theirs, one, other).ir) == fingerprint(found)


def test_a_type_of_theirs_gets_a_table_of_its_own() -> None:
    found = merged(BASE, BASE + "node New { k: String @key }").ir.catalog.nodes
    assert found["New"].incarnation == 9
    assert found["Person"].incarnation == 7


def test_drops_are_told_with_who_dropped() -> None:
    assert [(drop.by, drop.type_key, drop.property) for drop in merged(NO_TEAM, BASE).drops] == [
        ("ours", "node:Team", None),
        ("ours", "edge:In", None),
    ]
    assert [(drop.by, drop.property) for drop in merged(BASE, BASE.replace("age: I32?", "")).drops] == [
        ("theirs", "age")
    ]
