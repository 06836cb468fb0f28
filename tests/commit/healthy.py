"""What a healthy graph looks like: everything a reader sees, and everything that must not be left lying around."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from omnigraph.commit.branches import branch_names
from omnigraph.commit.context import CommitContext
from omnigraph.commit.history import history
from omnigraph.commit.sidecar import FOLDER
from omnigraph.graph.lifecycle import connect, open_for_writing
from omnigraph.storage.tables.location import Location

Rows = dict[str, list[dict[str, Any]]]


@dataclass(frozen=True)
class Picture:
    """What readers can tell: the rows of every table on every branch, and the schema."""

    branches: dict[str, Rows]
    schema: str


def picture(context: CommitContext) -> Picture:
    """The graph as a reader sees it now."""
    branches = {}
    for name in branch_names(context):
        entries = context.manifest.load(name).tables.values()
        branches[name] = {entry.key: _rows(context, entry.location, entry.version) for entry in entries}
    return Picture(branches, context.store.get("_schema.pg").decode())


def _rows(context: CommitContext, location: Location, version: int) -> list[dict[str, Any]]:
    rows = context.tables.open(location, version).read().to_pylist()
    return sorted(rows, key=lambda row: str(row["id"]))


def assert_healthy(context: CommitContext) -> None:
    """Nothing is pending, nothing is left over, every head is its pin, and history is one line."""
    assert context.store.list(FOLDER) == []
    control_files = {info.path for info in context.store.list() if "/" not in info.path}
    expected = {"_schema.pg", "_schema.ir.json", "__schema_state.json", "__root.json", "__digests.log", "__config.json"}
    assert control_files <= expected
    published = published_locations(context)
    for name in branch_names(context):
        assert_linear(context, name)
        for entry in context.manifest.load(name).tables.values():
            rows = context.tables.open(entry.location, entry.version).count_rows()
            assert rows == entry.row_count, f"{entry.key} of {name} says it has {entry.row_count} rows"
    for path in {location.path for location in published}:
        forks = set(context.tables.open_dataset(Location(path)).branches.list())
        assert forks == {location.branch for location in published if location.path == path and location.branch}
    stored = {
        "/".join(info.path.split("/")[:2]) for folder in ("nodes", "edges") for info in context.store.list(folder)
    }
    assert stored == {location.path for location in published}, "left-over tables"
    for location, pin in published.items():
        assert context.tables.head_version(location) == pin, f"{location} is not where it is published"


def published_locations(context: CommitContext) -> dict[Location, int]:
    """Every line of every table that some branch publishes, with the newest version published of it.

    A branch that shares the line of another one publishes an older version of it.
    """
    found: dict[Location, int] = {}
    for name in branch_names(context):
        for entry in context.manifest.load(name).tables.values():
            found[entry.location] = max(entry.version, found.get(entry.location, 0))
    return found


def assert_linear(context: CommitContext, branch: str) -> None:
    """The commits made on a branch are one chain from its head, without a gap or a fork."""
    commits = history(context.manifest, branch)
    assert commits[0].id == context.manifest.load(branch).head
    assert [commit.id for commit in commits if commit.parent is None] == [commits[-1].id], "not exactly one root"
    children = Counter(commit.parent for commit in commits if commit.branch == branch)
    assert all(count == 1 for count in children.values()), "two commits of one branch share a parent"
    assert {commit.parent for commit in commits} <= {commit.id for commit in commits} | {None}


def tree(context: CommitContext) -> dict[str, int]:
    """Every file of a local graph with its size, but the locks."""
    root = Path(context.root.uri)
    files = (path for path in root.rglob("*") if path.is_file() and path.relative_to(root).parts[0] != "__locks")
    return {str(path.relative_to(root)): path.stat().st_size for path in files}


def assert_open_is_idle(context: CommitContext) -> None:
    """One more read-write open has nothing to do: not one file is written, changed or removed."""
    before = tree(context)
    open_for_writing(connect(context.root.uri))
    assert tree(context) == before
