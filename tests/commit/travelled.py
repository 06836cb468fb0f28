"""A graph with branches, branches of branches, tags, merges and indexes, and all that it answers, for tests that move it."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import omnigraph as og
from omnigraph.storage.objects import open_store
from omnigraph.storage.root import Root
from tests import warm
from tests.mutation.org_graph import LOAD, SCHEMA, WRITES

#: What a child process runs: open the graph and write once, on a branch.
WRITE = """
import sys
import omnigraph as og
from tests.mutation.org_graph import WRITES
og.open(sys.argv[1]).mutate(WRITES, "put", {"h": sys.argv[2], "n": 1}, branch=sys.argv[3])
"""


@dataclass(frozen=True)
class Told:
    """Cursors that were given out while a graph was written, by branch, each with the commits behind it."""

    cursors: dict[str, list[str]]


def travelled_graph(
    uri: str | Path, *, branches: int = 4, rounds: int = 2, storage_options: Mapping[str, str] | None = None
) -> tuple[og.Graph, Told]:
    """A graph that every kind of line has: forks of main, forks of forks, shared tables, deleted branches, a merge."""
    graph = og.init(uri, SCHEMA, storage_options=storage_options)
    graph.mutate(LOAD)
    graph.ensure_indices()
    names = ["main"]
    cursors: dict[str, list[str]] = {"main": [graph.changes(start="beginning").cursor or ""]}
    for number in range(branches):
        base = names[-1] if number % 3 == 2 else "main"
        name = f"b{number}/x" if number % 4 == 1 else f"b{number}"
        graph.create_branch(name, base)
        names.append(name)
        cursors[name] = [graph.changes(name, start="now").cursor or ""]
    for round in range(rounds):
        for number, name in enumerate(names):
            graph.mutate(WRITES, "put", {"h": f"p{round}-{number}", "n": round}, branch=name)
            if number % 2:
                graph.mutate(WRITES, "relevel", {"h": "ben", "n": round * 100 + number}, branch=name)
            cursors[name].append(graph.changes(name, cursor=cursors[name][-1]).cursor or "")
    graph.tag("first", graph.commits()[-1].id)
    graph.tag("on-branch", graph.head(names[1]).id)
    graph.create_branch("gone")
    graph.mutate(WRITES, "put", {"h": "gone", "n": 1}, branch="gone")
    graph.merge("gone", delete_branch=True)
    return graph, Told(cursors)


def answers(graph: og.Graph, told: Told) -> dict[str, Any]:
    """Everything that can be asked: branches, commits with their changes, tags, cursors, queries now and then."""
    found: dict[str, Any] = {"branches": graph.branches(), "tags": graph.tags()}
    for branch in graph.branches():
        commits = graph.commits(branch)
        found[f"commits {branch}"] = [(commit.id, commit.parent, commit.kind) for commit in commits]
        found[f"rows {branch}"] = rows(graph, branch=branch)
        for cursor in told.cursors.get(branch, []):
            page = graph.changes(branch, cursor=cursor)
            found[f"cursor {cursor}"] = [block.to_dict() for block in page.blocks]
    for tag in graph.tags():
        found[f"tag {tag}"] = rows(graph, snapshot=tag)
    for commit in graph.commits()[:5]:
        if commit.parent is not None and commit.branch in graph.branches():
            changes = graph.commit_changes(commit.id).changes
            found[f"changes {commit.id}"] = [(change.op, change.type, change.id) for change in changes]
            found[f"at {commit.id}"] = rows(graph, snapshot=commit.id)
    return found


def rows(graph: og.Graph, **target: Any) -> list[Any]:
    query = "query all() { match { $s: Staff } return { $s.handle, $s.level } order { $s.handle } }"
    ada = '$s: Staff { handle: "ada" }'
    linked = f"query l() {{ match {{ {ada} $s mentors $t }} return {{ $t.handle, $t.level }} order {{ $t.handle }} }}"
    return [graph.query(text, **target).to_dicts() for text in (query, linked)]


def write_elsewhere(uri: str, handle: str, branch: str, failpoint: str | None = None, **environment: str) -> int:
    """One write by another process, which may be killed at a failpoint; how it ended."""
    armed = {} if failpoint is None else {"OMNIGRAPH_FAILPOINTS": f"{failpoint}=kill"}
    return warm.run(
        [sys.executable, "-c", WRITE, uri, handle, branch],
        env={**os.environ, **environment, **armed},
        cwd=Path(__file__).resolve().parents[2],
        check=False,
        capture_output=True,
    ).returncode


def copy_prefix(source: Root, target: Root) -> None:
    """Every object of one prefix to another, as a tool that copies buckets does."""
    there = open_store(target)
    here = open_store(source)
    for info in here.list():
        there.put(info.path, here.get(info.path))


def texts_below(root: Path, text: str) -> list[str]:
    """The version files that hold a text."""
    return [str(path) for path in root.rglob("*.manifest") if text.encode() in path.read_bytes()]
