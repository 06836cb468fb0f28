"""The fixture FX-MRG, its operations, and small graphs for the tests of merges."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import omnigraph as og
from tests.mutation.org_graph import ids, pairs, rows

SCHEMA = "node Staff { handle: String @key level: I32? }\nedge Mentors: Staff -> Staff"

LOAD = """query load() {
  insert Staff { handle: "ada", level: 30 } insert Staff { handle: "ben", level: 25 }
  insert Staff { handle: "cleo", level: 40 } insert Staff { handle: "dov", level: 50 }
  insert Mentors { from: "ben", to: "cleo" }
}"""

WRITES = """
query put($h: String, $n: I32) { insert Staff { handle: $h, level: $n } }
query relevel($h: String, $n: I32?) { update Staff set { level: $n } where handle = $h }
query drop($h: String) { delete Staff where handle = $h }
query link($a: String, $b: String) { insert Mentors { from: $a, to: $b } }
query unlink($a: String) { delete Mentors where from = $a }
"""

_PARAMETERS = {"put": "hn", "relevel": "hn", "drop": "h", "link": "ab", "unlink": "a"}


def merge_graph(path: Path) -> og.Graph:
    """A graph at a path that holds FX-MRG."""
    graph = og.init(path, SCHEMA)
    graph.mutate(LOAD)
    return graph


def do(graph: og.Graph, branch: str, name: str, *values: object) -> og.MutationResult:
    """Run one of the writes with its parameters in order."""
    return graph.mutate(WRITES, name, dict(zip(_PARAMETERS[name], values, strict=True)), branch=branch)


def write(graph: og.Graph, branch: str, *statements: str) -> og.MutationResult:
    """One commit with these statements."""
    return graph.mutate("query w() { " + " ".join(statements) + " }", branch=branch)


def shown(graph: og.Graph, branch: str = "main") -> str:
    """FX-MRG in short: staff/edges/ada's level/whether eli is there."""
    staff = {row["id"]: row["level"] for row in rows(graph, "node:Staff", branch)}
    edges = len(ids(graph, "edge:Mentors", branch))
    return f"{len(staff)}/{edges}/{staff.get('ada', 'absent')}/{'yes' if 'eli' in staff else 'no'}"


def everything(graph: og.Graph, branch: str = "main") -> dict[str, list[dict[str, Any]]]:
    """All rows of all types, edges with their ids."""
    return {entry.key: rows(graph, entry.key, branch) for entry in graph.snapshot(branch).entries()}


def named(conflicts: Any) -> list[tuple[str, str, str | None]]:
    """Conflicts in short: kind, type key, id."""
    return [(conflict.kind, conflict.type_key, conflict.entity_id) for conflict in conflicts]


__all__ = ["do", "everything", "ids", "merge_graph", "named", "pairs", "rows", "shown", "write"]
