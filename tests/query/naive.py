"""The same random data twice: in a real graph and in the memory of a naive interpreter of the IR."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import omnigraph as og
from omnigraph.query.limits import Limits
from tests.language.query.interpreter import Graph as Memory
from tests.query.loading import append

STAFF = tuple(f"s{number}" for number in range(1, 7))
# Equal id texts in both types: they must never be mixed up.
TEAMS = ("s1", "s2", "t1")
NUMBERS = ("I32", "I64", "U32", "U64", "F32", "F64")
VECTORS = (None, (0.0, 1.0), (1.0, 0.0), (2.0, 2.0), (-1.0, 0.5))
BRANCH = "work"
#: As queries run, and in batches so small that every operator gets several.
BATCHES = (Limits(), Limits(batch_rows=3))


@dataclass
class World:
    """A graph with a branch, and what should be on each of the two."""

    graph: og.Graph
    main: Memory
    branch: Memory
    modes: tuple[str, ...] = ("indexed", "csr", "auto")
    branches: dict[str, Memory] = field(init=False)

    def __post_init__(self) -> None:
        self.branches = {"main": self.main, BRANCH: self.branch}


def make_schema(random: Random) -> str:
    """The types of a test with other number types each time, indexed or not."""
    level, size, weight = (random.choice(NUMBERS) for _ in range(3))
    index = random.choice(("", " @index"))
    return f"""
node Staff {{ handle: String @key level: {level}?{index} emb: Vector(2)? }}
node Team {{ code: String @key size: {size}{index} }}
edge Mentors: Staff -> Staff {{ weight: {weight}? }}
edge MemberOf: Staff -> Team
"""


def make_world(random: Random, path: Path, limits: Limits) -> World:
    """Nulls, self-loops, parallel edges and cycles; the branch has more edges than main."""
    graph = og.init(path, make_schema(random))
    graph._limits = limits
    main = Memory({"Staff": [], "Team": []}, {"Mentors": [], "MemberOf": []})
    _add(graph, "main", list(_nodes(random, graph)), main)
    _add(graph, "main", list(_edges(random, graph, 0)), main)
    if random.random() < 0.6:
        graph.ensure_indices()
    graph.create_branch(BRANCH)
    branch = Memory(
        {name: list(rows) for name, rows in main.nodes.items()}, {name: list(rows) for name, rows in main.edges.items()}
    )
    _add(graph, BRANCH, list(_edges(random, graph, 100)), branch)
    # Newer than the indexes.
    _add(graph, "main", list(_edges(random, graph, 200)), main)
    return World(graph, main, branch)


def _add(graph: og.Graph, branch: str, documents: list[dict[str, Any]], memory: Memory) -> None:
    append(graph, documents, branch)
    for document in documents:
        if "type" in document:
            memory.nodes[document["type"]].append(document["data"] | {"id": document["id"]})
        else:
            ends = {"id": document["id"], "src": document["from"], "dst": document["to"]}
            memory.edges[document["edge"]].append(document["data"] | ends)


def _number(
    random: Random, graph: og.Graph, kind: str, type_name: str, name: str, nullable: bool
) -> int | float | None:
    if nullable and random.random() < 0.25:
        return None
    catalog = graph.contract().catalog
    entity = catalog.nodes[type_name] if kind == "node" else catalog.edges[type_name]
    is_float = str(entity.properties[name].type).startswith("F")
    return random.choice((0.0, 0.5, 1.0, 2.0, 2.5, 3.0)) if is_float else random.randint(0, 3)


def _nodes(random: Random, graph: og.Graph) -> Iterator[dict[str, Any]]:
    for name in STAFF:
        level = _number(random, graph, "node", "Staff", "level", True)
        data = {"handle": name, "level": level, "emb": random.choice(VECTORS)}
        yield {"type": "Staff", "id": name, "data": data}
    for name in TEAMS:
        size = _number(random, graph, "node", "Team", "size", False)
        yield {"type": "Team", "id": name, "data": {"code": name, "size": size}}


def _edges(random: Random, graph: og.Graph, first: int) -> Iterator[dict[str, Any]]:
    for number in range(first, first + random.randint(1, 8)):
        weight = _number(random, graph, "edge", "Mentors", "weight", True)
        ends = {"from": random.choice(STAFF), "to": random.choice(STAFF)}
        yield {"edge": "Mentors", "id": f"e{number}", **ends, "data": {"weight": weight}}
    for number in range(first, first + random.randint(1, 5)):
        ends = {"from": random.choice(STAFF), "to": random.choice(TEAMS)}
        yield {"edge": "MemberOf", "id": f"m{number}", **ends, "data": {}}
