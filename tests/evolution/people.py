"""The graph that schema changes start from: its schema, its rows, and both with a change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
