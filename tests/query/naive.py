"""The same random data twice: in a real graph and in the memory of the naive interpreters."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import omnigraph as og
from omnigraph.query.limits import Limits
from tests.naive.graph import World as Memory
from tests.naive.graph import make_world as remember
from tests.query.loading import append

STAFF = tuple(f"s{number}" for number in range(1, 7))
# Equal id texts in both types: they must never be mixed up.
TEAMS = ("s1", "s2", "t1")
NUMBERS = ("I32", "I64", "U32", "U64", "F32", "F64")
VECTORS = (None, (0.0, 1.0), (1.0, 0.0), (2.0, 2.0), (-1.0, 0.5))
LABELS = (None, "x", "y", "s1")
NOTES = (None, "", "s1", "a s2", "Xy", "ys")
DAYS = (None, "2020-02-29", "1999-12-31", "2024-06-01", "1968-03-07")
MOMENTS = (None, "2024-02-29T23:30:00Z", "2020-02-29T00:15:30.250Z", "1969-12-31T23:59:59.999Z")
BRANCH = "work"
#: As queries run, and in batches so small that every operator gets several.
BATCHES = (Limits(), Limits(batch_rows=3))


@dataclass
class World:
    """A graph with a branch, and what should be on each of the two."""

    graph: og.Graph
    main: Memory
    branch: Memory
    #: The types of the properties that are numbers.
    types: dict[str, str]
    modes: tuple[str, ...] = ("indexed", "csr", "auto")
    branches: dict[str, Memory] = field(init=False)

    def __post_init__(self) -> None:
        self.branches = {"main": self.main, BRANCH: self.branch}


def make_schema(types: dict[str, str], index: str) -> str:
    """The types of a test, with these types of numbers, indexed or not."""
    return f"""
interface Named {{ label: String? }}
node Staff implements Named {{
  handle: String @key
  level: {types["level"]}?{index}
  emb: Vector(2)?
  note: String?{index}
  born: Date?{index}
  seen: DateTime?
  active: Bool?
  tags: [String]?
}}
node Team implements Named {{ code: String @key size: {types["size"]}{index} }}
edge Mentors: Staff -> Staff {{ weight: {types["weight"]}? since: Date? }}
edge Likes: Staff -> Staff {{ weight: {types["weight"]}? }}
edge MemberOf: Staff -> Team
"""


def make_world(random: Random, path: Path, limits: Limits) -> World:
    """Nulls, self-loops, parallel edges and cycles; the branch has more edges than main."""
    types = {name: random.choice(NUMBERS) for name in ("level", "size", "weight")}
    graph = og.init(path, make_schema(types, random.choice(("", " @index"))))
    graph._limits = limits
    catalog = graph.contract().catalog
    documents = list(_nodes(random, types))
    append(graph, documents)
    documents += _add(graph, "main", list(_edges(random, types, 0)))
    if random.random() < 0.6:
        graph.ensure_indices()
    graph.create_branch(BRANCH)
    added = _add(graph, BRANCH, list(_edges(random, types, 100)))
    branch = remember(catalog, [*documents, *added])
    # Newer than the indexes.
    documents += _add(graph, "main", list(_edges(random, types, 200)))
    return World(graph, remember(catalog, documents), branch, types)


def _add(graph: og.Graph, branch: str, documents: list[dict[str, Any]]) -> list[dict[str, Any]]:
    append(graph, documents, branch)
    return documents


def _number(random: Random, kind: str, nullable: bool) -> int | float | None:
    if nullable and random.random() < 0.25:
        return None
    return random.choice((0.0, 0.5, 1.0, 2.0, 2.5, 3.0)) if kind.startswith("F") else random.randint(0, 3)


def _nodes(random: Random, types: dict[str, str]) -> Iterator[dict[str, Any]]:
    for name in STAFF:
        data = {
            "handle": name,
            "level": _number(random, types["level"], True),
            "emb": random.choice(VECTORS),
            "label": random.choice(LABELS),
            "note": random.choice(NOTES),
            "born": random.choice(DAYS),
            "seen": random.choice(MOMENTS),
            "active": random.choice((None, True, False)),
            "tags": random.choice((None, [], ["a"], ["a", "b"], ["b", "c"])),
        }
        yield {"type": "Staff", "id": name, "data": data}
    for name in TEAMS:
        data = {"code": name, "size": _number(random, types["size"], False), "label": random.choice(LABELS)}
        yield {"type": "Team", "id": name, "data": data}


def _edges(random: Random, types: dict[str, str], first: int) -> Iterator[dict[str, Any]]:
    for kind, prefix, most in (("Mentors", "e", 8), ("Likes", "l", 4)):
        for number in range(first, first + random.randint(1, most)):
            data: dict[str, Any] = {"weight": _number(random, types["weight"], True)}
            if kind == "Mentors":
                data["since"] = random.choice(DAYS)
            ends = {"from": random.choice(STAFF), "to": random.choice(STAFF)}
            yield {"edge": kind, "id": f"{prefix}{number}", **ends, "data": data}
    for number in range(first, first + random.randint(1, 5)):
        ends = {"from": random.choice(STAFF), "to": random.choice(TEAMS)}
        yield {"edge": "MemberOf", "id": f"m{number}", **ends, "data": {}}
