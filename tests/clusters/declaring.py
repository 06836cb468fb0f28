"""A declared cluster for tests: its files, and ways to run commands on it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from omnigraph.cluster import commands
from omnigraph.cluster.commands import Outcome

SCHEMA = "node Person { name: String @key  age: I32? }\nedge Knows: Person -> Person\n"
WIDER = "node Person { name: String @key  age: I32?  email: String? }\nedge Knows: Person -> Person\n"
SECOND = "node Task { title: String @key }\n"
QUERIES = """query people() { match { $p: Person } return { $p.name } order { $p.name } }
query add_person($name: String) { insert Person { name: $name } }
"""
POLICY = """version: 1
groups: { readers: [ann], writers: [bob] }
protected_branches: [main]
rules:
  - { id: all-read, allow: { actors: { group: readers }, actions: [read, invoke_query] } }
  - { id: writers, allow: { actors: { group: writers }, actions: [read, change, invoke_query] } }
"""
LISTING = """version: 1
groups: { ops: [ann] }
rules: [{ id: list, allow: { actors: { group: ops }, actions: [graph_list] } }]
"""
CONFIG = """version: 1
metadata: { name: test }
{storage}graphs:
  team:
    schema: team.pg
    queries: queries/
  tasks:
    schema: tasks.pg
policies:
  base: { file: base.policy.yaml, applies_to: [team] }
  listing: { file: listing.policy.yaml, applies_to: [cluster] }
"""


def declare(folder: Path, storage: str | None = None) -> Path:
    """Write the files of a cluster of two graphs."""
    (folder / "queries").mkdir(parents=True)
    (folder / "team.pg").write_text(SCHEMA)
    (folder / "tasks.pg").write_text(SECOND)
    (folder / "queries" / "people.gq").write_text(QUERIES)
    (folder / "base.policy.yaml").write_text(POLICY)
    (folder / "listing.policy.yaml").write_text(LISTING)
    (folder / "cluster.yaml").write_text(
        CONFIG.replace("{storage}", "" if storage is None else f"storage: {storage}\n")
    )
    return folder


def replace_in(path: Path, old: str, new: str) -> None:
    """Edit a file of the declaration."""
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def without_graph(folder: Path, graph_id: str) -> None:
    """Take a graph out of cluster.yaml."""
    lines = (folder / "cluster.yaml").read_text().splitlines(keepends=True)
    start = lines.index(f"  {graph_id}:\n")
    end = start + 1
    while lines[end].startswith("    "):
        end += 1
    (folder / "cluster.yaml").write_text("".join(lines[:start] + lines[end:]))


def codes(outcome: Outcome, severity: str = "error") -> list[str]:
    """The codes of the diagnostics of one severity."""
    return [found.code for found in outcome.findings.listed if found.severity == severity]


def applied(folder: Path) -> dict[str, Any]:
    """Apply, which must succeed."""
    outcome = commands.apply(folder, "op")
    assert outcome.ok, outcome.findings.listed
    return outcome.data


def started(folder: Path) -> Path:
    """Import and apply, which must converge."""
    assert commands.import_(folder).ok
    assert applied(folder)["converged"]
    return folder


def dispositions(outcome: Outcome) -> dict[str, tuple[str, str]]:
    """The operation and disposition of each change."""
    return {change["resource"]: (change["operation"], change["disposition"]) for change in outcome.data["changes"]}
