"""Pairs of schemas that differ in rules, keys and endpoints."""

from __future__ import annotations

from tests.evolution.case import Case, refused
from tests.evolution.people import BEFORE, KNOWS, changed, person

RULE_CASES = [
    # --- rules ---------------------------------------------------------------------------------------------------------
    Case("add-unique", person("code: I64 @unique"), ("add_constraint",)),
    Case("add-broken-unique", person("bio: String? @unique"), ("add_constraint",), broken=("unique", "cy")),
    Case(
        "add-composite-unique",
        person("age: I32?\n@unique(bio, code)"),
        ("add_constraint",),
    ),
    Case(
        "add-unique-over-nulls",
        person("age: I32? @unique"),
        ("add_constraint",),
    ),
    Case(
        "add-property-with-unique",
        person("nick: String? @unique"),
        ("add_property", "add_constraint"),
        {"node:Person": changed(nick=None)},
    ),
    Case(
        "add-default-that-must-be-unique",
        person('nick: String @default("x") @unique'),
        ("add_property", "add_constraint"),
        broken=("unique", "cy"),
    ),
    Case(
        "add-default-that-is-unique-with-another",
        person('nick: String @default("x")\n@unique(nick, code)'),
        ("add_property", "add_constraint"),
        {"node:Person": changed(nick="x")},
    ),
    Case(
        "add-default-that-breaks-a-composite",
        person('nick: String @default("x")\n@unique(nick, bio)'),
        ("add_property", "add_constraint"),
        broken=("unique", "cy"),
    ),
    Case(
        "remove-unique",
        "node U { k: String @key v: String? }",
        ("remove_constraint",),
        before="node U { k: String @key v: String? @unique }",
        load='query l() { insert U { k: "a", v: "x" } }',
        write='query w() { insert U { k: "b", v: "x" } }',
    ),
    Case("add-index", person("bio: String? @index"), ("add_constraint",)),
    Case(
        "remove-index",
        "node U { k: String @key v: String? }",
        ("remove_constraint",),
        before="node U { k: String @key v: String? @index }",
        load='query l() { insert U { k: "a", v: "x" } }',
    ),
    Case("add-range", person("age: I32?\n@range(age, 0..200)"), ("add_constraint",)),
    Case("add-broken-range", person("age: I32?\n@range(age, 10..)"), ("add_constraint",), broken=("range", "ben")),
    Case(
        "narrow-a-range",
        "node U { k: String @key v: I32? @range(v, 0..5) }",
        ("remove_constraint", "add_constraint"),
        before="node U { k: String @key v: I32? @range(v, 0..10) }",
        load='query l() { insert U { k: "a", v: 9 } }',
        broken=("range", "a"),
    ),
    Case(
        "widen-a-range",
        "node U { k: String @key v: I32? @range(v, 0..50) }",
        ("remove_constraint", "add_constraint"),
        before="node U { k: String @key v: I32? @range(v, 0..10) }",
        load='query l() { insert U { k: "a", v: 9 } }',
        write='query w() { insert U { k: "b", v: 40 } }',
    ),
    Case(
        "add-default-outside-its-range",
        person("rank: I32 @default(50)\n@range(rank, 0..9)"),
        ("add_property", "add_constraint"),
        broken=("range", "ada"),
    ),
    Case("add-check", person('bio: String?\n@check(bio, "^o")'), ("add_constraint",)),
    Case("add-broken-check", person('bio: String?\n@check(bio, "^t")'), ("add_constraint",), broken=("check", "ada")),
    Case(
        "add-broken-check-on-a-renamed",
        person('about: String? @rename_from("bio")\n@check(about, "^t")', without=["bio"]),
        ("rename_property", "add_constraint"),
        broken=("check", "ada"),
    ),
    Case(
        "rename-under-its-rules",
        'node U { k: String @key w: I32? @rename_from("v") @unique @index @range(w, 0..10) }',
        ("rename_property",),
        {"node:U": [{"id": "a", "k": "a", "w": 9}]},
        before="node U { k: String @key v: I32? @unique @index @range(v, 0..10) }",
        load='query l() { insert U { k: "a", v: 9 } }',
    ),
    Case(
        "drop-with-its-rules",
        "node U { k: String @key }",
        ("drop_property OG-DS-104",),
        {"node:U": [{"id": "a", "k": "a"}]},
        before="node U { k: String @key v: I32? @unique @index @range(v, 0..10) }",
        load='query l() { insert U { k: "a", v: 9 } }',
    ),
    Case("add-cardinality", BEFORE.replace("-> Person {", "-> Person @card(0..2) {"), ("add_constraint",)),
    Case(
        "add-broken-maximum",
        BEFORE.replace("-> Person {", "-> Person @card(0..1) {"),
        ("add_constraint",),
        broken=("cardinality", None),
    ),
    Case(
        "add-broken-minimum",
        BEFORE.replace("-> Person {", "-> Person @card(3..) {"),
        ("add_constraint",),
        broken=("cardinality", None),
    ),
    Case(
        "remove-cardinality",
        "node A { k: String @key } edge R: A -> A",
        ("remove_constraint",),
        before="node A { k: String @key } edge R: A -> A @card(0..1)",
        load='query l() { insert A { k: "a" } insert R { from: "a", to: "a" } }',
        write='query w() { insert R { from: "a", to: "a" } }',
    ),
    Case(
        "add-unique-endpoints",
        BEFORE.replace("since: Date?", "since: Date? @unique(src, dst)"),
        ("add_constraint",),
    ),
    Case(
        "add-broken-unique-endpoint",
        BEFORE.replace("since: Date?", "since: Date? @unique(src)"),
        ("add_constraint",),
        broken=("unique", None),
    ),
    # --- keys and endpoints --------------------------------------------------------------------------------------------
    Case("drop-the-key", person("name: String"), refused("OG-MF-101")),
    Case("add-to-the-key", person("name: String\n@key(name, code)"), refused("OG-MF-101")),
    Case("another-key", person("name: String", "code: I64 @key"), refused("OG-MF-101")),
    Case(
        "drop-the-key-property",
        person("code: I64 @key", without=["name"]),
        (*refused("OG-MF-101"), "drop_property OG-DS-104"),
    ),
    Case(
        "key-of-an-edge",
        BEFORE.replace("since: Date?", "since: Date? @key(src, dst)"),
        ("add_constraint", "rekey"),
        {"edge:Knows": [row | {"id": f'["{row["src"]}","{row["dst"]}"]'} for row in KNOWS]},
        empty_steps=("add_constraint",),
    ),
    Case(
        "other-endpoint",
        BEFORE.replace("MemberOf: Person -> Team", "MemberOf: Person -> Person"),
        refused("OG-MF-102"),
    ),
    Case(
        "turned-around",
        BEFORE.replace("MemberOf: Person -> Team", "MemberOf: Team -> Person"),
        refused("OG-MF-102") * 2,
    ),
]
