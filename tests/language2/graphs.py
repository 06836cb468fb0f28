"""The graph of the tables about patterns: two node types with an interface, four edge types, nulls, a self-loop, parallel edges,
and one id in both node types."""

from __future__ import annotations

from typing import Any

SCHEMA = """
interface Named { name: String }
node Person implements Named { name: String @key age: I32? city: String? born: Date? }
node Company implements Named { name: String @key size: I32? city: String? }
edge Knows: Person -> Person { since: I32? cost: F64? }
edge Likes: Person -> Person { since: I32? }
edge WorksAt: Person -> Company { since: I32? }
edge Owns: Company -> Company { share: F64? }
"""

_PERSONS = (
    ("ada", 36, "London", "1990-05-17"),
    ("bob", 20, "Paris", None),
    ("cy", None, "Paris", "2000-02-29"),
    ("dan", 50, None, "1975-01-01"),
    ("eve", 41, "London", None),
    ("zed", 1, "Rome", "2024-12-31"),
)
_COMPANIES = (("acme", 10, "London"), ("bolt", None, "Paris"), ("ada", 3, None))
_EDGES: tuple[tuple[str, str, str, str, dict[str, Any]], ...] = (
    ("Knows", "k1", "ada", "bob", {"since": 1, "cost": 1.0}),
    ("Knows", "k2", "ada", "bob", {"since": 9, "cost": 2.0}),
    ("Knows", "k3", "ada", "cy", {"since": 2, "cost": 5.0}),
    ("Knows", "k4", "bob", "cy", {"since": 3, "cost": 1.0}),
    ("Knows", "k5", "cy", "dan", {"since": 4, "cost": 1.0}),
    ("Knows", "k6", "bob", "eve", {"cost": 9.0}),
    ("Knows", "k7", "dan", "eve", {"cost": 1.0}),
    ("Knows", "k8", "eve", "eve", {}),
    ("Likes", "l1", "ada", "bob", {"since": 7}),
    ("Likes", "l2", "eve", "ada", {"since": 8}),
    ("Likes", "l3", "zed", "ada", {}),
    ("WorksAt", "w1", "ada", "acme", {"since": 2000}),
    ("WorksAt", "w2", "bob", "acme", {}),
    ("WorksAt", "w3", "eve", "ada", {"since": 2010}),
    ("Owns", "o1", "acme", "bolt", {"share": 0.5}),
    ("Owns", "o2", "bolt", "ada", {}),
)


def documents() -> list[dict[str, Any]]:
    """All entities, as loads take them."""
    found: list[dict[str, Any]] = []
    for name, age, city, born in _PERSONS:
        found.append({"type": "Person", "data": {"name": name, "age": age, "city": city, "born": born}})
    for name, size, city in _COMPANIES:
        found.append({"type": "Company", "data": {"name": name, "size": size, "city": city}})
    for kind, id_, start, end, data in _EDGES:
        found.append({"edge": kind, "id": id_, "from": start, "to": end, "data": data})
    return found
