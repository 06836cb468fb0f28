"""Pairs of schemas as data: what lies between them, what becomes of the rows, and what is refused with which code.

Each pair starts from the graph of `BEFORE` (or its own), with its rows or without. `rows` in a case are what a type shows
afterwards; types that a case does not name keep what they had.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

BEFORE = """
node Person {
  name: String @key
  age: I32?
  mood: enum(glad, sad)?
  bio: String?
  code: I64
}
node Team {
  slug: String @key
}
edge Knows: Person -> Person {
  since: Date?
}
edge MemberOf: Person -> Team
"""

ROWS = """query load() {
  insert Person { name: "ada", age: 30, mood: "glad", bio: "one", code: 1 }
  insert Person { name: "ben", age: 5, mood: "sad", code: 2 }
  insert Person { name: "cy", bio: "one", code: 3 }
  insert Team { slug: "core" }
  insert Knows { from: "ada", to: "ben" }
  insert Knows { from: "ada", to: "cy" }
  insert MemberOf { from: "ada", to: "core" }
}"""

Row = dict[str, Any]
Shown = Mapping[str, Sequence[Row]]

ADA: Row = {"id": "ada", "name": "ada", "age": 30, "mood": "glad", "bio": "one", "code": 1}
BEN: Row = {"id": "ben", "name": "ben", "age": 5, "mood": "sad", "bio": None, "code": 2}
CY: Row = {"id": "cy", "name": "cy", "age": None, "mood": None, "bio": "one", "code": 3}
PEOPLE = (ADA, BEN, CY)
KNOWS = ({"src": "ada", "dst": "ben", "since": None}, {"src": "ada", "dst": "cy", "since": None})


def changed(*, without: Sequence[str] = (), renamed: Mapping[str, str] | None = None, **new: Any) -> list[Row]:
    """The people with other columns."""
    names = renamed or {}
    return [{names.get(key, key): value for key, value in row.items() if key not in without} | new for row in PEOPLE]


def person(*members: str, head: str = "node Person", without: Sequence[str] = (), rest: str | None = None) -> str:
    """The schema with other members of Person: each replaces the one of its name, or is new."""
    kept = {
        "name": "name: String @key",
        "age": "age: I32?",
        "mood": "mood: enum(glad, sad)?",
        "bio": "bio: String?",
        "code": "code: I64",
    }
    for member in members:
        kept[member.partition(":")[0]] = member
    listed = "\n".join(text for name, text in kept.items() if name not in without)
    own = "Person" if "Person" in head.split("@")[0] else head.split()[1]
    tail = f"""
node Team {{ slug: String @key }}
edge Knows: {own} -> {own} {{ since: Date? }}
edge MemberOf: {own} -> Team
"""
    return f"{head} {{\n{listed}\n}}\n{tail if rest is None else rest}"


@dataclass(frozen=True)
class Case:
    """One pair. `steps`: kinds of the plan's steps, with the code where there is one. `broken`: kind and an id in the way."""

    id: str
    after: str
    steps: tuple[str, ...]
    rows: Shown = field(default_factory=dict)
    broken: tuple[str, str | None] | None = None
    before: str = BEFORE
    load: str = ROWS
    #: What an empty graph makes of it, where that differs.
    empty_steps: tuple[str, ...] | None = None
    #: A write that only the new schema takes.
    write: str | None = None

    @property
    def write_joins(self) -> bool:
        """Whether the write joins nodes that must be there."""
        return "from:" in (self.write or "")

    @property
    def refused(self) -> tuple[str, ...]:
        return codes(self.steps)


def codes(steps: Sequence[str]) -> tuple[str, ...]:
    """The codes of the refused steps."""
    return tuple(step.partition(" ")[2] for step in steps if step.startswith("unsupported_change"))


def _refused(code: str) -> tuple[str, ...]:
    return (f"unsupported_change {code}",)


CASES = [
    # --- properties that come -----------------------------------------------------------------------------------------
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
        _refused("OG-MF-103"),
        empty_steps=("add_property",),
        write='query w() { insert Person { name: "dov", code: 9, city: "x" } }',
    ),
    Case(
        "add-required-vector",
        person("vec: Vector(2)"),
        _refused("OG-MF-103"),
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
        _refused("OG-MF-103"),
        empty_steps=("add_property",),
    ),
    # --- properties that go or change their name ----------------------------------------------------------------------
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
        ("rename_property", *_refused("OG-MF-106")),
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
    # --- types of properties ------------------------------------------------------------------------------------------
    Case("relax", person("code: I64?"), ("remove_constraint",), write='query w() { insert Person { name: "dov" } }'),
    Case(
        "relax-and-fill-another",
        person("code: I64?", "n: I32 @default(3)"),
        ("add_property", "remove_constraint"),
        {"node:Person": changed(n=3)},
        write='query w() { insert Person { name: "dov" } }',
    ),
    Case("nullable-to-required", person("age: I32"), _refused("OG-MF-104")),
    Case(
        "nullable-to-required-with-default",
        person("age: I32 @default(1)"),
        (*_refused("OG-MF-104"), "update_property_metadata"),
    ),
    Case("widen-number", person("age: I64?"), _refused("OG-MF-106")),
    Case("narrow-number", person("code: I32"), _refused("OG-MF-106")),
    Case("number-to-text", person("age: String?"), _refused("OG-MF-106")),
    Case("scalar-to-list", person("bio: [String]?"), _refused("OG-MF-106")),
    Case("text-to-enum", person("bio: enum(one, two)?"), _refused("OG-MF-106")),
    Case("enum-to-text", person("mood: String?"), _refused("OG-MF-106")),
    Case(
        "other-dimension",
        "node V { k: String @key vec: Vector(3)? }",
        _refused("OG-MF-106"),
        before="node V { k: String @key vec: Vector(2)? }",
        load='query l() { insert V { k: "a" } }',
    ),
    Case("retype-and-require", person("age: I64"), (*_refused("OG-MF-106"), *_refused("OG-MF-104"))),
    Case(
        "widen-enum",
        person("mood: enum(glad, sad, calm)?"),
        ("extend_enum",),
        write='query w() { insert Person { name: "dov", code: 4, mood: "calm" } }',
    ),
    Case("reorder-enum", person("mood: enum(sad, glad)?"), ()),
    Case("narrow-enum", person("mood: enum(glad)?"), _refused("OG-MF-106")),
    Case("rename-a-variant", person("mood: enum(glad, blue)?"), _refused("OG-MF-106")),
    Case("widen-and-narrow-enum", person("mood: enum(glad, calm, wild)?"), _refused("OG-MF-106")),
    # --- rules --------------------------------------------------------------------------------------------------------
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
        broken=("unique", "ben"),
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
    # --- keys and endpoints -------------------------------------------------------------------------------------------
    Case("drop-the-key", person("name: String"), _refused("OG-MF-101")),
    Case("add-to-the-key", person("name: String\n@key(name, code)"), _refused("OG-MF-101")),
    Case("another-key", person("name: String", "code: I64 @key"), _refused("OG-MF-101")),
    Case(
        "drop-the-key-property",
        person("code: I64 @key", without=["name"]),
        (*_refused("OG-MF-101"), "drop_property OG-DS-104"),
    ),
    Case("key-of-an-edge", BEFORE.replace("since: Date?", "since: Date? @key(src, dst)"), _refused("OG-MF-101")),
    Case(
        "other-endpoint",
        BEFORE.replace("MemberOf: Person -> Team", "MemberOf: Person -> Person"),
        _refused("OG-MF-102"),
    ),
    Case(
        "turned-around",
        BEFORE.replace("MemberOf: Person -> Team", "MemberOf: Team -> Person"),
        _refused("OG-MF-102") * 2,
    ),
    # --- types --------------------------------------------------------------------------------------------------------
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
        person("age: I64?", "nick: String?"),
        ("add_property", *_refused("OG-MF-106")),
    ),
    # --- metadata -----------------------------------------------------------------------------------------------------
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
    # --- nothing ------------------------------------------------------------------------------------------------------
    Case("the-same", BEFORE, ()),
    Case("the-same-in-other-words", f"// as it was\n{person()}", ()),
    Case("keep-a-rename-that-is-done", person(head='node Person @rename_from("Old")'), ()),
]
