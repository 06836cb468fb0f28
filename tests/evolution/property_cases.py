"""Pairs of schemas that differ in their properties."""

from __future__ import annotations

from tests.evolution.case import Case, refused
from tests.evolution.people import ADA, BEFORE, BEN, CY, KNOWS, Row, changed, person

WITHOUT_NULLS = "node T { k: String @key n: I32? t: String? }"
OLD = 'query w() { insert Person { name: "dov", code: 9, age: 5000000000 } }'


def with_age(*ages: int) -> list[Row]:
    return [row | {"age": age} for row, age in zip((ADA, BEN, CY), ages, strict=True)]


def with_code(*codes: str) -> list[Row]:
    return [row | {"code": code} for row, code in zip((ADA, BEN, CY), codes, strict=True)]


PROPERTY_CASES = [
    # --- properties that come ------------------------------------------------------------------------------------------
    Case("add-nullable", person("nick: String?"), ("add_property",), {"node:Person": changed(nick=None)}),
    Case("add-list", person("tags: [String]?"), ("add_property",), {"node:Person": changed(tags=None)}),
    Case("add-vector", person("vec: Vector(2)?"), ("add_property",), {"node:Person": changed(vec=None)}),
    Case("add-blob", person("pic: Blob?"), ("add_property",), {"node:Person": changed(pic=None)}),
    Case("add-datetime", person("at: DateTime?"), ("add_property",), {"node:Person": changed(at=None)}),
    Case("add-enum", person("size: enum(s, m)?"), ("add_property",), {"node:Person": changed(size=None)}),
    Case(
        "add-embedded",
        person("vec: Vector(2)? @embed(bio)"),
        ("add_property",),
        {"node:Person": changed(vec=None)},
    ),
    Case(
        "add-required-with-default",
        person('city: String @default("Oslo")'),
        ("add_property",),
        {"node:Person": changed(city="Oslo")},
    ),
    Case(
        "add-nullable-with-default",
        person("score: F64? @default(1.5)"),
        ("add_property",),
        {"node:Person": changed(score=1.5)},
    ),
    Case("add-bool-default", person("ok: Bool @default(true)"), ("add_property",), {"node:Person": changed(ok=True)}),
    Case(
        "add-enum-default",
        person('size: enum(s, m) @default("m")'),
        ("add_property",),
        {"node:Person": changed(size="m")},
    ),
    Case(
        "add-unsigned-default",
        person("big: U64 @default(18446744073709551615)"),
        ("add_property",),
        {"node:Person": changed(big=18446744073709551615)},
    ),
    Case(
        "add-two-defaults-and-a-null",
        person("a: I32 @default(1)", "b: I32 @default(2)", "c: I32?"),
        ("add_property",) * 3,
        {"node:Person": changed(a=1, b=2, c=None)},
    ),
    Case(
        "add-required-without-default",
        person("city: String"),
        refused("OG-MF-103"),
        empty_steps=("add_property",),
        write='query w() { insert Person { name: "dov", code: 9, city: "x" } }',
    ),
    Case(
        "add-required-vector",
        person("vec: Vector(2)"),
        refused("OG-MF-103"),
        empty_steps=("add_property",),
    ),
    Case(
        "add-to-an-edge",
        BEFORE.replace("since: Date?", "since: Date? weight: F32 @default(0.5)"),
        ("add_property",),
        {"edge:Knows": [row | {"weight": 0.5} for row in KNOWS]},
    ),
    Case(
        "add-required-to-an-edge",
        BEFORE.replace("since: Date?", "since: Date? weight: F32"),
        refused("OG-MF-103"),
        empty_steps=("add_property",),
    ),
    # --- properties that go or change their name -----------------------------------------------------------------------
    Case(
        "drop-property",
        person(without=["bio"]),
        ("drop_property OG-DS-104",),
        {"node:Person": changed(without=["bio"])},
    ),
    Case(
        "drop-required-property",
        person(without=["code"]),
        ("drop_property OG-DS-104",),
        {"node:Person": changed(without=["code"])},
        write='query w() { insert Person { name: "dov" } }',
    ),
    Case(
        "drop-all-but-the-key",
        person(without=["bio", "code", "age", "mood"]),
        ("drop_property OG-DS-104",) * 4,
        {"node:Person": changed(without=["bio", "code", "age", "mood"])},
    ),
    Case(
        "drop-and-add-another",
        person("nick: String?", without=["bio"]),
        ("add_property", "drop_property OG-DS-104"),
        {"node:Person": changed(without=["bio"], nick=None)},
    ),
    Case(
        "drop-and-fill-another",
        person('nick: String @default("n")', without=["bio"]),
        ("add_property", "drop_property OG-DS-104"),
        {"node:Person": changed(without=["bio"], nick="n")},
    ),
    Case(
        "drop-of-an-edge",
        BEFORE.replace("since: Date?", ""),
        ("drop_property OG-DS-104",),
        {"edge:Knows": [{"src": row["src"], "dst": row["dst"]} for row in KNOWS]},
    ),
    Case(
        "rename-property",
        person('about: String? @rename_from("bio")', without=["bio"]),
        ("rename_property",),
        {"node:Person": changed(renamed={"bio": "about"})},
    ),
    Case(
        "rename-the-key",
        person('handle: String @key @rename_from("name")', without=["name"]),
        ("rename_property",),
        {"node:Person": changed(renamed={"name": "handle"})},
        write='query w() { insert Person { handle: "ada", code: 9 } }',
    ),
    Case(
        "rename-two-and-add",
        person(
            'years: I32? @rename_from("age")',
            'about: String? @rename_from("bio")',
            "nick: String?",
            without=["age", "bio"],
        ),
        ("rename_property", "rename_property", "add_property"),
        {"node:Person": changed(renamed={"age": "years", "bio": "about"}, nick=None)},
    ),
    Case(
        "rename-drop-and-fill",
        person('years: I32? @rename_from("age")', "n: I32 @default(3)", without=["age", "bio"]),
        ("rename_property", "add_property", "drop_property OG-DS-104"),
        {"node:Person": changed(renamed={"age": "years"}, without=["bio"], n=3)},
    ),
    Case(
        "rename-and-drop",
        person('years: I32? @rename_from("age")', without=["age", "bio"]),
        ("rename_property", "drop_property OG-DS-104"),
        {"node:Person": changed(renamed={"age": "years"}, without=["bio"])},
    ),
    Case(
        "rename-and-relax",
        person('number: I64? @rename_from("code")', without=["code"]),
        ("rename_property", "remove_constraint"),
        {"node:Person": changed(renamed={"code": "number"})},
        write='query w() { insert Person { name: "dov" } }',
    ),
    Case(
        "rename-and-retype",
        person('years: I64? @rename_from("age")', without=["age"]),
        ("rename_property", "widen"),
        {"node:Person": changed(renamed={"age": "years"})},
        write='query w() { insert Person { name: "dov", code: 9, years: 5000000000 } }',
    ),
    Case(
        "rename-from-nothing",
        person('nick: String? @rename_from("alias")'),
        ("add_property",),
        {"node:Person": changed(nick=None)},
    ),
    Case(
        "rename-of-an-edge-property",
        BEFORE.replace("since: Date?", 'began: Date? @rename_from("since")'),
        ("rename_property",),
        {"edge:Knows": [{"src": row["src"], "dst": row["dst"], "began": None} for row in KNOWS]},
    ),
    # --- types of properties -------------------------------------------------------------------------------------------
    Case("relax", person("code: I64?"), ("remove_constraint",), write='query w() { insert Person { name: "dov" } }'),
    Case(
        "relax-and-fill-another",
        person("code: I64?", "n: I32 @default(3)"),
        ("add_property", "remove_constraint"),
        {"node:Person": changed(n=3)},
        write='query w() { insert Person { name: "dov" } }',
    ),
    Case("nullable-to-required", person("age: I32"), refused("OG-MF-104"), empty_steps=("add_constraint",)),
    Case(
        "nullable-to-required-with-default",
        person("age: I32 @default(1)"),
        ("fill_nulls", "add_constraint", "update_property_metadata"),
        {"node:Person": with_age(30, 5, 1)},
        empty_steps=("add_constraint", "update_property_metadata"),
        write='query w() { insert Person { name: "dov", code: 9 } }',
    ),
    Case(
        "nullable-to-required-of-an-edge",
        BEFORE.replace("since: Date?", "since: Date"),
        refused("OG-MF-104"),
        empty_steps=("add_constraint",),
    ),
    Case(
        "nullable-to-required-without-nulls",
        WITHOUT_NULLS.replace("n: I32?", "n: I32"),
        ("add_constraint",),
        {"node:T": [{"id": "a", "k": "a", "n": 1, "t": "x"}, {"id": "b", "k": "b", "n": 2, "t": "y"}]},
        before=WITHOUT_NULLS,
        load='query l() { insert T { k: "a", n: 1, t: "x" } insert T { k: "b", n: 2, t: "y" } }',
    ),
    Case("widen-number", person("age: I64?"), ("widen",), write=OLD),
    Case("widen-to-float", person("age: F64?"), ("widen",)),
    Case("widen-to-text", person("code: String"), ("widen",), {"node:Person": with_code("1", "2", "3")}),
    Case(
        "widen-and-relax",
        person("code: String?"),
        ("widen", "remove_constraint"),
        {"node:Person": with_code("1", "2", "3")},
        write='query w() { insert Person { name: "dov" } }',
    ),
    Case(
        "widen-and-fill",
        person("age: I64 @default(7)", "code: I64?", "n: I32 @default(3)"),
        ("add_property", "widen", "fill_nulls", "add_constraint", "remove_constraint", "update_property_metadata"),
        {"node:Person": [row | {"n": 3} for row in with_age(30, 5, 7)]},
        empty_steps=("add_property", "widen", "add_constraint", "remove_constraint", "update_property_metadata"),
    ),
    Case(
        "widen-a-rule",
        person("age: I64? @index @range(age, 0..100)", "code: String @unique"),
        ("widen", "widen", "add_constraint", "add_constraint", "add_constraint"),
        {"node:Person": with_code("1", "2", "3")},
    ),
    Case("narrow-number", person("code: I32"), refused("OG-MF-106")),
    Case("number-to-text", person("age: String?"), refused("OG-MF-106")),
    Case("scalar-to-list", person("bio: [String]?"), refused("OG-MF-106")),
    Case("text-to-enum", person("bio: enum(one, two)?"), ("add_constraint",)),
    Case(
        "text-to-enum-with-others",
        person("bio: enum(two)?"),
        refused("OG-MF-106"),
        empty_steps=("add_constraint",),
    ),
    Case("enum-to-text", person("mood: String?"), refused("OG-MF-106")),
    Case(
        "other-dimension",
        "node V { k: String @key vec: Vector(3)? }",
        refused("OG-MF-106"),
        before="node V { k: String @key vec: Vector(2)? }",
        load='query l() { insert V { k: "a" } }',
    ),
    Case(
        "widen-and-require",
        person("age: I64"),
        ("widen", *refused("OG-MF-104")),
        empty_steps=("widen", "add_constraint"),
    ),
    Case(
        "widen-enum",
        person("mood: enum(glad, sad, calm)?"),
        ("extend_enum",),
        write='query w() { insert Person { name: "dov", code: 4, mood: "calm" } }',
    ),
    Case("reorder-enum", person("mood: enum(sad, glad)?"), ()),
    Case("narrow-enum", person("mood: enum(glad)?"), refused("OG-MF-106"), empty_steps=("narrow_enum",)),
    Case(
        "rename-a-variant",
        person("mood: enum(glad, blue)?"),
        refused("OG-MF-106"),
        empty_steps=("narrow_enum", "extend_enum"),
    ),
    Case(
        "narrow-by-an-unused-value",
        person("mood: enum(glad, sad, wild)?"),
        ("narrow_enum", "extend_enum"),
        before=person("mood: enum(glad, sad, calm)?"),
    ),
]
