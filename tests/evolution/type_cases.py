"""Pairs of schemas that differ in their types, in what is said about them, or not at all."""

from __future__ import annotations

from tests.evolution.case import Case, refused
from tests.evolution.people import BEFORE, KNOWS, PEOPLE, changed, person

TYPE_CASES = [
    # --- types ---------------------------------------------------------------------------------------------------------
    Case(
        "add-node-type",
        f"{BEFORE} node Office {{ code: String @key floor: I32? }}",
        ("add_type",),
        {"node:Office": []},
        write='query w() { insert Office { code: "o1" } }',
    ),
    Case(
        "add-edge-type",
        f"{BEFORE} edge Leads: Person -> Team",
        ("add_type",),
        {"edge:Leads": []},
        write='query w() { insert Leads { from: "ada", to: "core" } }',
    ),
    Case(
        "add-node-and-edge-type",
        f"{BEFORE} node Office {{ code: String @key }} edge SitsIn: Person -> Office @card(0..1)",
        ("add_type", "add_type"),
        {"node:Office": [], "edge:SitsIn": []},
    ),
    Case("drop-edge-type", BEFORE.replace("edge MemberOf: Person -> Team\n", ""), ("drop_type OG-DS-103",)),
    Case(
        "drop-node-type-and-its-edge",
        BEFORE.replace("edge MemberOf: Person -> Team\n", "").replace("node Team {\n  slug: String @key\n}\n", ""),
        ("drop_type OG-DS-103", "drop_type OG-DS-102"),
    ),
    Case("drop-everything", "", ("drop_type OG-DS-103",) * 2 + ("drop_type OG-DS-102",) * 2),
    Case(
        "rename-node-type",
        person(head='node Human @rename_from("Person")'),
        ("rename_type",),
        {"node:Human": PEOPLE},
        write='query w() { insert Human { name: "dov", code: 4 } insert Knows { from: "ada", to: "dov" } }',
    ),
    Case(
        "rename-edge-type",
        BEFORE.replace("edge Knows: Person -> Person {", 'edge Likes: Person -> Person @rename_from("Knows") {'),
        ("rename_type",),
        {"edge:Likes": KNOWS},
    ),
    Case(
        "rename-type-and-property",
        person('years: I32? @rename_from("age")', head='node Human @rename_from("Person")', without=["age"]),
        ("rename_type", "rename_property"),
        {"node:Human": changed(renamed={"age": "years"})},
    ),
    Case(
        "rename-type-and-fill",
        person("n: I32 @default(1)", head='node Human @rename_from("Person")'),
        ("rename_type", "add_property"),
        {"node:Human": changed(n=1)},
    ),
    Case(
        "rename-type-and-break-it",
        person("bio: String? @unique", head='node Human @rename_from("Person")'),
        ("rename_type", "add_constraint"),
        broken=("unique", "cy"),
    ),
    Case(
        "rename-and-drop-types",
        person(
            head='node Human @rename_from("Person")',
            rest='edge Likes: Human -> Human @rename_from("Knows") { since: Date? }',
        ),
        ("rename_type", "rename_type", "drop_type OG-DS-103", "drop_type OG-DS-102"),
        {"node:Human": PEOPLE, "edge:Likes": KNOWS},
    ),
    Case(
        "everything-at-once",
        person(
            'years: I32? @rename_from("age")',
            "mood: enum(glad, sad, calm)?",
            "code: I64 @unique",
            'city: String @default("Oslo")',
            "nick: String?",
            head='node Human @rename_from("Person") @description("people")',
            without=["age", "bio"],
            rest="node Office { code: String @key } edge Knows: Human -> Human @card(0..5) { since: Date? }",
        ),
        (
            "rename_type",
            "add_type",
            "rename_property",
            "add_property",
            "add_property",
            "extend_enum",
            "add_constraint",
            "update_type_metadata",
            "drop_property OG-DS-104",
            "add_constraint",
            "drop_type OG-DS-103",
            "drop_type OG-DS-102",
        ),
        {
            "node:Human": changed(renamed={"age": "years"}, without=["bio"], city="Oslo", nick=None),
            "node:Office": [],
        },
    ),
    Case(
        "one-refusal-refuses-all",
        person("age: String?", "nick: String?"),
        ("add_property", *refused("OG-MF-106")),
    ),
    # --- metadata ------------------------------------------------------------------------------------------------------
    Case("describe-a-type", BEFORE.replace("node Team {", 'node Team @description("d") {'), ("update_type_metadata",)),
    Case("describe-a-property", person('bio: String? @description("d")'), ("update_property_metadata",)),
    Case(
        "give-a-default",
        person("age: I32? @default(18)"),
        ("update_property_metadata",),
        write='query w() { insert Person { name: "dov", code: 4 } }',
    ),
    Case(
        "embed-another-text",
        "node D { k: String @key a: String? b: String? vec: Vector(2)? @embed(b) }",
        ("update_property_metadata",),
        before="node D { k: String @key a: String? b: String? vec: Vector(2)? @embed(a) }",
        load='query l() { insert D { k: "x", vec: [1.0, 2.0] } }',
    ),
    Case(
        "rename-what-is-embedded",
        'node D { k: String @key text: String? @rename_from("a") vec: Vector(2)? @embed(text) }',
        ("rename_property",),
        {"node:D": [{"id": "x", "k": "x", "text": None, "vec": [1.0, 2.0]}]},
        before="node D { k: String @key a: String? vec: Vector(2)? @embed(a) }",
        load='query l() { insert D { k: "x", vec: [1.0, 2.0] } }',
    ),
    Case(
        "another-metric",
        'node D { k: String @key vec: Vector(2)? @metric("cosine") }',
        ("update_property_metadata",),
        before="node D { k: String @key vec: Vector(2)? }",
        load='query l() { insert D { k: "x", vec: [1.0, 2.0] } }',
    ),
    Case(
        "implement-an-interface",
        person("nick: String?", head="node Person implements Named").replace(
            "node", "interface Named { nick: String? } node", 1
        ),
        ("add_type", "add_property", "update_type_metadata"),
        {"node:Person": changed(nick=None)},
    ),
    Case(
        "drop-an-interface",
        "node A { k: String @key x: I32? }",
        ("drop_type", "update_type_metadata"),
        before="interface I { x: I32? } node A implements I { k: String @key }",
        load='query l() { insert A { k: "a", x: 1 } }',
    ),
    # --- nothing -------------------------------------------------------------------------------------------------------
    Case("the-same", BEFORE, ()),
    Case("the-same-in-other-words", f"// as it was\n{person()}", ()),
    Case("keep-a-rename-that-is-done", person(head='node Person @rename_from("Old")'), ()),
]
