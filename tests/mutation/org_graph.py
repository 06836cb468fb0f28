"""The shared fixture FX-ORG with its writes M-ORG, loaded by one mutation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import omnigraph as og

SCHEMA = """
node Staff {
  handle: String @key
  level: I32?
}
node Team {
  code: String @key
}
edge Mentors: Staff -> Staff {
  began: Date?
}
edge MemberOf: Staff -> Team
"""

LOAD = """query load() {
  insert Staff { handle: "ada", level: 30 } insert Staff { handle: "ben", level: 25 }
  insert Staff { handle: "cleo", level: 35 } insert Staff { handle: "dov", level: 28 }
  insert Team { code: "core" } insert Team { code: "labs" }
  insert Mentors { from: "ada", to: "ben" } insert Mentors { from: "ada", to: "cleo" }
  insert Mentors { from: "ben", to: "dov" }
  insert MemberOf { from: "ada", to: "core" } insert MemberOf { from: "ben", to: "labs" }
}"""

WRITES = """
query put($h: String, $n: I32) { insert Staff { handle: $h, level: $n } }
query link($a: String, $b: String) { insert Mentors { from: $a, to: $b } }
query relevel($h: String, $n: I32) { update Staff set { level: $n } where handle = $h }
query drop_staff($h: String) { delete Staff where handle = $h }
query unlink($a: String) { delete Mentors where from = $a }
query put_link($h: String, $n: I32, $b: String) {
  insert Staff { handle: $h, level: $n } insert Mentors { from: $h, to: $b }
}
query hire($a: String, $t: String) { insert MemberOf { from: $a, to: $t } }
"""


def org_graph(path: Path) -> og.Graph:
    """A graph at a path that holds FX-ORG."""
    graph = og.init(path, SCHEMA)
    graph.mutate(LOAD)
    return graph


_PARAMETERS = {
    "put": "hn",
    "link": "ab",
    "relevel": "hn",
    "drop_staff": "h",
    "unlink": "a",
    "put_link": "hnb",
    "hire": "at",
}


def call(graph: og.Graph, name: str, *values: object, **options: Any) -> og.MutationResult:
    """Run one of the writes with its parameters in order."""
    return graph.mutate(WRITES, name, dict(zip(_PARAMETERS[name], values, strict=True)), **options)


def rows(graph: og.Graph, type_key: str, branch: str | None = None, at: Any = None) -> list[dict[str, Any]]:
    """All rows of a type, by id."""
    found = graph.snapshot(branch, at).open(type_key).read(blobs="bytes").to_pylist()
    return sorted(found, key=lambda row: row["id"])


def ids(graph: og.Graph, type_key: str, branch: str | None = None, at: Any = None) -> list[str]:
    """All ids of a type, sorted."""
    return [row["id"] for row in rows(graph, type_key, branch, at)]


def pairs(graph: og.Graph, edge: str, branch: str | None = None, at: Any = None) -> list[tuple[str, str]]:
    """The endpoints of all edges of a type, sorted."""
    return sorted((row["src"], row["dst"]) for row in rows(graph, f"edge:{edge}", branch, at))


def level(graph: og.Graph, handle: str, branch: str | None = None) -> int | None:
    """The level of one member of staff."""
    found = [row["level"] for row in rows(graph, "node:Staff", branch) if row["handle"] == handle]
    assert len(found) == 1, f"{len(found)} rows of {handle}"
    value: int | None = found[0]
    return value


def known_level(graph: og.Graph, handle: str, branch: str | None = None) -> int:
    """The level of one member of staff, which must not be null."""
    found = level(graph, handle, branch)
    assert found is not None
    return found


def commit_of(result: og.MutationResult) -> og.Commit:
    """The commit that a mutation made; an AssertionError when it changed nothing."""
    assert result.commit is not None
    return result.commit


def content(graph: og.Graph, branch: str | None = None, at: Any = None) -> dict[str, Any]:
    """Everything a graph of this schema holds, without the generated ids of edges."""
    return {
        "Staff": {row["id"]: row["level"] for row in rows(graph, "node:Staff", branch, at)},
        "Team": ids(graph, "node:Team", branch, at),
        "Mentors": pairs(graph, "Mentors", branch, at),
        "MemberOf": pairs(graph, "MemberOf", branch, at),
    }
